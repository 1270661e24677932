"""Closed-ended metrics: equal to HELM's own on recorded answers, and by hand where HELM is wrong."""

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from calibration.closed_ended.calculations import Limits, medcalc_match
from calibration.closed_ended.codes import code_match, icd_codes
from calibration.closed_ended.corrections import correction
from calibration.closed_ended.labels import label_scores
from calibration.closed_ended.matching import MATCHES, best_match, chosen_option, word_f1
from calibration.closed_ended.queries import QueryMatch, answering
from data.errors import BadInput

RECORDED = Path(__file__).parent / "fixtures" / "helm_closed_ended.json"


@cache
def recorded() -> dict[str, Any]:
    """Return what `benchmarks/helm_closed_ended.py` recorded of HELM."""
    body: dict[str, Any] = json.loads(RECORDED.read_text("utf-8"))
    return body


def rows(part: str) -> list[dict[str, Any]]:
    """Return the recorded answers of one part: 200 at least, or the claim is not made."""
    found: list[dict[str, Any]] = recorded()[part]
    assert len(found) >= 200
    return found


@pytest.mark.parametrize("name", MATCHES)
def test_a_match_is_helms_to_the_last_digit(name: str) -> None:
    ours = [best_match(MATCHES[name], [row["key"]], row["answer"]) for row in rows("matches")]
    assert ours == [row[name] for row in rows("matches")]
    assert len(set(ours)) > 1


def test_an_option_is_the_one_that_helm_maps_an_answer_to() -> None:
    for row in rows("options"):
        assert chosen_option(row["options"], row["answer"], row["pattern"]) == row["chosen"]


def test_a_calculation_is_right_where_helm_says_so() -> None:
    for row in rows("calculations"):
        limits = Limits(row["key"], row["category"], row["lower_limit"], row["upper_limit"])
        assert medcalc_match(limits, row["answer"]) == row["accuracy"], row


def test_flags_and_sentences_are_helms() -> None:
    for row in rows("corrections"):
        found = correction(row["key"], row["answer"])
        assert (found.flag, found.sentence_in_helm) == (row["flag"], row["sentence"]), row


def test_a_wrong_sentence_that_is_found_counts_though_helm_never_counts_one() -> None:
    found = correction("5 The dose is 5 mg.", "5 The dose should be 5 mg.")
    assert (found.flag, found.sentence, found.sentence_in_helm) == (1, 1, 0)
    missed = correction("5 The dose is 5 mg.", "6 The dose is 5 mg.")
    assert (missed.flag, missed.sentence) == (1, 0)


def test_f1_of_labels_is_helms() -> None:
    for row in rows("labels"):
        found = label_scores(row["keys"], row["answers"], row["labels"])
        for average in ("macro", "micro"):
            for score in ("f1", "precision", "recall"):
                ours = getattr(found, f"{average}_{score}")
                assert ours == pytest.approx(row[f"classification_{average}_{score}"], abs=1e-15)


def test_f1_of_codes_is_helms() -> None:
    for row in rows("codes"):
        found = code_match(row["keys"], row["answer"])
        assert found.precision == pytest.approx(row["precision"], abs=1e-15)
        assert found.recall == pytest.approx(row["recall"], abs=1e-15)
        assert found.f1 == pytest.approx(row["f1"], abs=1e-15)


LABELS = st.sampled_from(["yes", "no", "maybe"])


@given(st.lists(st.tuples(LABELS, LABELS), min_size=1, max_size=30))
def test_macro_and_micro_f1_are_scikit_learns(pairs: list[tuple[str, str]]) -> None:
    keys, answers = zip(*pairs, strict=True)
    known = ["maybe", "no", "yes"]
    found = label_scores([[key] for key in keys], [[answer] for answer in answers], known)
    for average, ours in (("macro", found.macro_f1), ("micro", found.micro_f1)):
        theirs = f1_score(keys, answers, labels=known, average=average, zero_division=0)
        assert ours == pytest.approx(theirs)
    assert found.micro_f1 == pytest.approx(sum(k == a for k, a in pairs) / len(pairs))


@given(st.text(), st.text())
def test_every_match_lies_between_0_and_1_and_words_overlap_both_ways(
    key: str, answer: str
) -> None:
    for match in MATCHES.values():
        assert 0 <= match(key, answer) <= 1
    assert word_f1(key, answer) == pytest.approx(word_f1(answer, key))


def test_several_keys_count_as_the_best_of_them() -> None:
    assert best_match(MATCHES["exact-match"], ["no", "yes"], " yes ") == 1


@pytest.mark.parametrize(
    ("category", "lower", "upper", "said"),
    [
        ("weight", "1", "2", "category 'weight'"),
        ("physical", "a", "2", "takes numbers"),
        ("physical", "3", "2", "the lower one comes first"),
        ("date", "2024-01-01", "2024-01-02", "takes dates"),
    ],
)
def test_limits_that_cannot_be_met_are_refused(
    category: str, lower: str, upper: str, said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        Limits("1", category, lower, upper)


def test_codes_are_read_with_and_without_marks() -> None:
    assert icd_codes("**J18.9.** and I10, not x10") == {"J18.9", "I10"}


def test_each_share_of_answering_has_its_own_denominator() -> None:
    # 4 questions: answered rightly, answered though it cannot be, declined rightly, declined wrongly.
    found = answering(
        [
            QueryMatch(1, 1, 1, 1),
            QueryMatch(0, 1, 1, 0),
            QueryMatch(1, 0, 0, 0),
            QueryMatch(0, 0, 0, 1),
        ]
    )
    assert (found.precision, found.recall) == (0.5, 0.5)
    assert (found.refusing_precision, found.refusing_recall) == (0.5, 0.5)
    assert math.isnan(answering([QueryMatch(1, 1, 1, 1)]).refusing_recall)
