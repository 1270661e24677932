"""Closed-ended metrics: equal to HELM's own on recorded answers, and by hand where HELM is wrong."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from calibration.closed_ended import (
    EXACT,
    QUASI_EXACT,
    AnswerKey,
    answer_score,
    label_scores,
    medcalc_match,
)
from data.errors import BadInput

RECORDED = Path(__file__).parents[1] / "fixtures" / "helm_closed_ended.json"


@cache
def recorded() -> dict[str, Any]:
    """Return what HELM 0.5.16 says of made answers."""
    body: dict[str, Any] = json.loads(RECORDED.read_text("utf-8"))
    return body


def rows(part: str) -> list[dict[str, Any]]:
    """Return the recorded answers of one part: 200 at least, or the claim is not made."""
    found: list[dict[str, Any]] = recorded()[part]
    assert len(found) >= 200
    return found


@pytest.mark.parametrize("name", [EXACT, QUASI_EXACT])
def test_a_match_is_helms_to_the_last_digit(name: str) -> None:
    ours = [answer_score(name, AnswerKey((row["key"],)), row["answer"]) for row in rows("matches")]
    assert ours == [row[name] for row in rows("matches")]
    assert len(set(ours)) > 1


def test_a_calculation_is_right_where_helm_says_so() -> None:
    for row in rows("calculations"):
        key = AnswerKey((row["key"],), row["category"], row["lower_limit"], row["upper_limit"])
        assert medcalc_match(key, row["answer"]) == row["accuracy"], row


def test_f1_of_labels_is_helms() -> None:
    for row in rows("labels"):
        found = label_scores(row["keys"], row["answers"], row["labels"])
        for average in ("macro", "micro"):
            ours = getattr(found, f"{average}_f1")
            assert ours == pytest.approx(row[f"classification_{average}_f1"], abs=1e-15)


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
def test_every_match_is_0_or_1(key: str, answer: str) -> None:
    for name in (EXACT, QUASI_EXACT):
        assert answer_score(name, AnswerKey((key,)), answer) in (0, 1)


def test_several_keys_count_as_the_best_of_them() -> None:
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
def test_limits_that_cannot_be_met_are_refused(
    category: str, lower: str, upper: str, said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        medcalc_match(AnswerKey(("1",), category, lower, upper), "1")
