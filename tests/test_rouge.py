"""ROUGE-L against Google's rouge-score, and Porter's stemmer against NLTK's."""

import csv
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from calibration.baselines.rouge import as_helm_reads, rouge_l, stem

DATASETS = Path(__file__).parents[2] / "shared" / "datasets"
ACI = DATASETS / "aci_bench"
GOOGLE = RougeScorer(["rougeL"], use_stemmer=True)
SUFFIXES = str.split(
    "s ss sses es ies ied ed eed ing y ly ational tional enci anci izer bli abli alli entli eli"
    " ousli ization ation ator alism iveness fulness ousness aliti iviti biliti fulli logi icate"
    " ative alize iciti ical ful ness al ance ence er ic able ible ant ement ment ent ion sion"
    " tion ou ism ate iti ous ive ize e l ll"
)
BEGINNINGS = str.split("b ea toy tr tax fil hopp syzyg oat trouble p9 yyy xy new sk proc")


def google(pairs: list[tuple[str, str]]) -> list[float]:
    return [
        GOOGLE.score(reference, prediction)["rougeL"].fmeasure for prediction, reference in pairs
    ]


def aci_pairs(system: str) -> list[tuple[str, str]]:
    """Return (system's note, reference note) of ACI-Bench test set 1, or skip."""
    if not ACI.is_dir():
        pytest.skip(f"the ACI-Bench notes are not at {ACI}")
    csv.field_size_limit(10**7)
    written = _notes(ACI / "predictions" / system)
    references = _notes(ACI / "clinicalnlp_taskB_test1.csv")
    return [(written[encounter], reference) for encounter, reference in references.items()]


def _notes(path: Path) -> dict[str, str]:
    with path.open(newline="", encoding="utf-8") as file:
        return {row["encounter_id"]: row["note"] for row in csv.DictReader(file)}


def test_a_hand_count_gives_the_same_value() -> None:
    # "chest pain resolv" against "the chest pain ha resolv": common 3, so P = 3/3, R = 3/5
    # (stems of five words), F = 2 * 1 * 0.6 / 1.6 = 0.75.
    score = rouge_l([("Chest pains resolved.", "The chest pain has resolved")])
    assert score == pytest.approx([0.75], rel=1e-15)


@pytest.mark.real
@pytest.mark.parametrize(
    "system",
    ["BART_large_clinicalnlp_taskB_test1_full.csv", "LED_clinicalnlp_taskB_test1_full.csv"],
)
def test_real_notes_score_as_google_scores_them(system: str) -> None:
    pairs = aci_pairs(system)
    assert len(pairs) == 40
    assert rouge_l(pairs).tolist() == google(pairs)


@given(st.lists(st.tuples(st.text(), st.text()), max_size=4))
@settings(deadline=None)
def test_any_text_scores_as_google_scores_it(pairs: list[tuple[str, str]]) -> None:
    assert rouge_l(pairs).tolist() == google(pairs)


WORDY = st.lists(
    st.sampled_from(
        str.split("the patients patient denied denies 2.5mg {Pain} pained ΣΑΣ İv K no")
    ),
    max_size=30,
).map(" ".join)


@given(WORDY, WORDY)
@settings(deadline=None)
def test_texts_that_share_words_score_as_google_scores_them(one: str, other: str) -> None:
    assert rouge_l([(one, other)]).tolist() == google([(one, other)])


@given(WORDY, WORDY)
@settings(deadline=None)
def test_helm_s_strip_and_brace_removal_change_nothing(one: str, other: str) -> None:
    braced = (f"\n {{{one}}} ", f"{{{other}}}")
    assert rouge_l([braced]) == rouge_l([as_helm_reads(*braced)]) == google([(one, other)])


def test_a_text_without_a_word_scores_zero() -> None:
    pairs = [("", "pain"), ("pain", ""), ("", ""), ("...", "---"), ("pain", "fever")]
    assert rouge_l(pairs).tolist() == [0.0] * 5


def test_no_pairs_give_no_scores() -> None:
    assert rouge_l([]).shape == (0,)


def test_a_pair_scores_the_same_in_any_company() -> None:
    pairs = [("fever and chills", "chills, then fever"), ("fever", "no fever"), ("", "a")]
    alone = [rouge_l([pair])[0] for pair in pairs]
    assert rouge_l(pairs * 3).tolist() == alone * 3


def test_more_words_than_there_are_common_characters_stay_apart() -> None:
    # 70,000 distinct words pass the surrogate block, U+D800 to U+DFFF, where letters are unusual.
    words = [f"w{number}" for number in range(70_000)]
    start = " ".join(words)
    pairs = [(start, start), (" ".join(words[55_000:56_000]), " ".join(words[55_500:56_500]))]
    assert rouge_l(pairs).tolist() == [1.0, 0.5]


@pytest.mark.slow
def test_words_beyond_the_room_of_one_alphabet_are_told_apart() -> None:
    texts = [" ".join(f"{block}w{number}" for number in range(300_000)) for block in "abcde"]
    pairs = [(text, f"{block}w7 {block}w8") for text, block in zip(texts, "abcde", strict=True)]
    expected = 2 * (2 / 300_000) / (2 / 300_000 + 1)
    assert rouge_l([*pairs, (texts[0], "ew7")]).tolist() == [expected] * 5 + [0.0]


@pytest.mark.real
def test_every_word_of_the_real_texts_has_nltk_s_stem() -> None:
    words = set(_real_words())
    nltk_stem = GOOGLE._tokenizer._stemmer.stem
    assert len(words) > 40_000
    assert [word for word in words if stem(word) != nltk_stem(word)] == []


def _real_words() -> Iterator[str]:
    if not DATASETS.is_dir():
        pytest.skip(f"the public data sets are not at {DATASETS}")
    for path in filter(Path.is_file, DATASETS.rglob("*")):
        yield from re.findall("[a-z0-9]+", path.read_text(errors="replace").lower())


def test_every_pair_of_suffixes_has_nltk_s_stem() -> None:
    nltk_stem = GOOGLE._tokenizer._stemmer.stem
    words = ["".join(parts) for parts in product(BEGINNINGS, ["", *SUFFIXES], ["", *SUFFIXES])]
    assert [word for word in words if stem(word) != nltk_stem(word)] == []


@given(
    st.text("aeioubcdlstyzwxmnr1", max_size=6),
    st.lists(st.sampled_from(SUFFIXES), max_size=3).map("".join),
)
@settings(max_examples=500, deadline=None)
def test_any_word_has_nltk_s_stem(beginning: str, end: str) -> None:
    word = beginning + end
    assert stem(word) == GOOGLE._tokenizer._stemmer.stem(word)


def test_irregular_words_have_nltk_s_stem() -> None:
    words = str.split(
        "sky skies dying lying tying news innings inning outings canning howe proceed"
    )
    nltk_stem = GOOGLE._tokenizer._stemmer.stem
    assert [stem(word) for word in words] == [nltk_stem(word) for word in words]
