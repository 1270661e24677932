"""ROUGE-L against Google's rouge-score."""

import csv
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from calibration.text_metrics import rouge_l

DATASETS = Path(__file__).parents[3] / "shared" / "datasets"
ACI = DATASETS / "aci_bench"
GOOGLE = RougeScorer(["rougeL"], use_stemmer=True)


def google(pairs: list[tuple[str, str]]) -> list[float]:
    return [
        GOOGLE.score(reference, prediction)["rougeL"].fmeasure for prediction, reference in pairs
    ]


def notes(path: Path) -> dict[str, str]:
    csv.field_size_limit(10**7)
    with path.open(newline="", encoding="utf-8") as file:
        return {row["encounter_id"]: row["note"] for row in csv.DictReader(file)}


def test_a_hand_count_gives_the_same_value() -> None:
    # "chest pain resolv" against "the chest pain ha resolv": common 3, so P = 3/3, R = 3/5
    # (stems of five words), F = 2 * 1 * 0.6 / 1.6 = 0.75.
    score = rouge_l([("Chest pains resolved.", "The chest pain has resolved")])
    assert score == pytest.approx([0.75], rel=1e-15)


@pytest.mark.real
@pytest.mark.parametrize("system", ["BART_large", "LED"])
def test_real_notes_score_as_google_scores_them(system: str) -> None:
    if not ACI.is_dir():
        pytest.skip(f"the ACI-Bench notes are not at {ACI}")
    written = notes(ACI / "predictions" / f"{system}_clinicalnlp_taskB_test1_full.csv")
    references = notes(ACI / "clinicalnlp_taskB_test1.csv")
    pairs = [(written[encounter], reference) for encounter, reference in references.items()]
    assert len(pairs) == 40
    assert rouge_l(pairs).tolist() == google(pairs)


WORDY = st.lists(
    st.sampled_from(
        str.split("the patients patient denied denies 2.5mg {Pain} pained ΣΑΣ İv K no")
    ),
    max_size=30,
).map(" ".join)


@given(st.lists(st.one_of(st.tuples(st.text(), st.text()), st.tuples(WORDY, WORDY)), max_size=4))
@settings(deadline=None)
def test_any_texts_score_as_google_scores_them(pairs: list[tuple[str, str]]) -> None:
    assert rouge_l(pairs).tolist() == google(pairs)


@given(WORDY, WORDY)
@settings(deadline=None)
def test_helm_s_strip_and_brace_removal_change_nothing(one: str, other: str) -> None:
    braced = (f"\n {{{one}}} ", f"{{{other}}}")
    assert rouge_l([braced]) == google([(one, other)])


def test_a_text_without_a_word_scores_zero() -> None:
    pairs = [("", "pain"), ("pain", ""), ("", ""), ("...", "---"), ("pain", "fever")]
    assert rouge_l(pairs).tolist() == [0.0] * 5


def test_more_words_than_there_are_common_characters_stay_apart() -> None:
    # 70,000 distinct words pass the surrogate block, U+D800 to U+DFFF, where letters are unusual.
    words = [f"w{number}" for number in range(70_000)]
    start = " ".join(words)
    pairs = [(start, start), (" ".join(words[55_000:56_000]), " ".join(words[55_500:56_500]))]
    assert rouge_l(pairs).tolist() == [1.0, 0.5]
