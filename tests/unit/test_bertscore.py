"""BERTScore against bert-score's values.

The expected values lie in tests/fixtures, which say what made them, so that no test needs torch.
"""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.tiny_backbone import VOCABULARY, tiny

from calibration.encoder import load_encoder
from calibration.text_metrics import WordPieces, bert_score, read_wordpieces, windows
from data.errors import BadFile

FIXTURE = Path(__file__).parents[1] / "fixtures" / "bertscore_minilm.json"
MINILM = json.loads(FIXTURE.read_text(encoding="utf-8"))
PAIRS = [(row["prediction"], row["reference"]) for row in MINILM["pairs"]]
ACI = Path(__file__).parents[3] / "shared" / "datasets" / "aci_bench"


def test_scores_are_those_of_bert_score() -> None:
    found = bert_score(PAIRS)
    for name in ("precision", "recall", "f1"):
        expected = [row[name] for row in MINILM["pairs"]]
        np.testing.assert_allclose(getattr(found, name), expected, rtol=0, atol=1e-6)
    assert (found.backbone, found.layer) == ("all-MiniLM-L6-v2", 5)
    assert found.sha256.startswith("53aa5117")


@pytest.mark.parametrize("pair", [("", "pain"), ("pain", " \n"), ("", ""), ("pain", "\x00")])
def test_a_text_with_nothing_in_it_scores_zero(tmp_path: Path, pair: tuple[str, str]) -> None:
    found = bert_score([pair], tiny(tmp_path, "bert"))
    assert [*found.precision, *found.recall, *found.f1] == [0, 0, 0]


def test_half_a_character_does_not_stop_the_run(tmp_path: Path) -> None:
    found = bert_score([("pain \ud83d", "pain")], tiny(tmp_path, "bert"))
    assert found.f1 == pytest.approx([1.0])


def test_a_pair_scores_the_same_in_any_company(tmp_path: Path) -> None:
    folder = tiny(tmp_path, "bert")
    words = [word for word in VOCABULARY if word.isalpha()]
    pairs = [(f"{a} {b}", f"{b} {c}") for a in words for b in words for c in words[:2]]
    alone = [bert_score([pair], folder).f1[0] for pair in pairs[::40]]
    assert bert_score(pairs, folder).f1[::40].tolist() == alone


def test_texts_longer_than_the_backbone_reads_are_reported(tmp_path: Path) -> None:
    long = "no pain " * 8
    pairs = [("pain", "fever"), (long, "fever"), ("fever", long), ("pain " * 14, "fever")]
    found = bert_score(pairs, tiny(tmp_path, "bert"))
    assert found.truncated == (1, 2)


def test_windows_give_each_half_of_a_long_text_its_own_context(tmp_path: Path) -> None:
    # 20 inner word pieces in windows of 14: 0-13 and 6-19, which part between 9 and 10.
    folder = tiny(tmp_path, "bert")
    encode = load_encoder(folder).states
    text, reference = "no chest pain today fever " * 4, "aspirin was given"
    ids, short = _pieces(folder).ids(text), _pieces(folder).ids(reference)
    first, last = encode(np.array([*ids[:15], 3])), encode(np.array([2, *ids[7:]]))
    states = _unit(np.concatenate([first[:11], last[5:]]))
    other = _unit(encode(np.array(short)))
    cosines = states @ other.T
    found = bert_score([(text, reference)], folder, long_texts="windows")
    assert found.precision == pytest.approx([cosines.max(axis=1)[1:-1].mean()], abs=1e-6)
    assert found.recall == pytest.approx([cosines.max(axis=0)[1:-1].mean()], abs=1e-6)
    assert found.truncated == ()


def _pieces(folder: Path) -> WordPieces:
    return read_wordpieces(folder, longest=512, vocabulary_size=50_000)


def _unit(states: Any) -> Any:
    return states / np.linalg.norm(states, axis=1, keepdims=True)


@given(st.integers(0, 2000), st.integers(32, 512))
@settings(deadline=None)
def test_windows_keep_every_word_piece_once_where_it_has_most_context(
    length: int, longest: int
) -> None:
    found = windows(length, longest)
    kept = [at for window in found for at in range(window.used_from, window.used_to)]
    assert kept == list(range(length))
    assert all(window.end - window.start <= longest - 2 for window in found)
    for window in found:
        for at in {window.used_from, window.used_to - 1} & set(range(length)):
            contexts = [min(at - w.start, w.end - 1 - at) for w in found]
            assert min(at - window.start, window.end - 1 - at) >= max(contexts)


@pytest.mark.real
def test_the_long_notes_among_real_ones_are_those_counted() -> None:
    if not ACI.is_dir():
        pytest.skip(f"the ACI-Bench notes are not at {ACI}")
    csv.field_size_limit(10**7)
    with (ACI / "clinicalnlp_taskB_test1.csv").open(newline="", encoding="utf-8") as file:
        notes = [row["note"] for row in csv.DictReader(file)][:8]
    pieces = _pieces(load_encoder(layer=1).folder)
    lengths = [len(pieces.ids(note)) for note in notes]
    found = bert_score([("Stable.", note) for note in notes], layer=1)
    assert found.truncated == tuple(np.flatnonzero(np.array(lengths) > 512).tolist())
    assert 0 < len(found.truncated) < 8


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_folder_that_lacks_a_file_is_refused_by_name(tmp_path: Path, name: str) -> None:
    folder = tiny(tmp_path, "bert")
    (folder / name).unlink()
    (folder / "vocab.txt").unlink()
    with pytest.raises(BadFile, match=name):
        bert_score([("a", "b")], folder)
