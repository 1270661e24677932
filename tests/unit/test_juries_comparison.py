"""Which of two juries agrees better: claimed only where p corrected for all tried shows it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.decision import CLAIMS, Decision, DecisionKind
from calibration.differences import DifferenceRow
from calibration.jury_decisions import compared_juries
from calibration.notes import note

NAN = math.nan
FIRST, SECOND = ("a", "b"), ("c",)
CLEAR = {"difference": 0.2, "low": 0.1, "high": 0.3, "p": 0.001, "n_tried": 10}


def row(*notes, **figures) -> DifferenceRow:
    given = {"icc_a": 0.6, "icc_b": 0.4, "n_responses": 60} | CLEAR | figures
    return DifferenceRow("aci", "jury", "jury:c", **given, notes=notes)


def decided(*notes, **figures) -> Decision:
    return compared_juries(row(*notes, **figures), FIRST, SECOND)


def codes(decision: Decision) -> list[str]:
    return [one.code for one in decision.reasons]


def test_how_many_comparisons_were_tried_decides_nothing():
    figures = {"difference": 0.315, "low": 0.02, "high": 0.6, "p": 0.04}
    alone, among = decided(**figures, n_tried=1), decided(**figures, n_tried=20)
    assert alone.kind is among.kind is DecisionKind.FIRST_BETTER
    assert (alone.p, among.p) == (0.04, 0.04)
    assert "20 different comparisons" in among.sentences[1]


@pytest.mark.parametrize(
    ("figures", "kind", "better"),
    [
        ({}, DecisionKind.FIRST_BETTER, FIRST),
        ({"difference": -0.2, "low": -0.3, "high": -0.1}, DecisionKind.SECOND_BETTER, SECOND),
    ],
)
def test_a_difference_that_is_shown_is_claimed_of_the_jury_that_has_it(figures, kind, better):
    found = decided(**figures)
    assert (found.kind, found.next["jurors"]) == (kind, better)


@pytest.mark.parametrize(
    ("notes", "figures", "kind", "why"),
    [
        ([note("simulated", "simulated", raters=["sim"])], {}, DecisionKind.SIMULATED, "made_up"),
        (
            [note("too_few_responses", "too_few_responses", responses=2, least=3)],
            {"difference": NAN, "low": NAN, "high": NAN, "p": NAN},
            DecisionKind.UNDEFINED,
            "too_few_responses",
        ),
        (
            [note("too_few_for_p", "too_few_for_p", instances=19)],
            {},
            DecisionKind.TOO_FEW,
            "few_to_trust",
        ),
        (
            [],
            {"low": NAN, "high": NAN, "p": NAN},
            DecisionKind.TOO_FEW,
            "no_interval",
        ),
        ([], {"low": -0.1, "p": 0.2}, DecisionKind.INCONCLUSIVE, "none_shown"),
    ],
)
def test_what_shows_nothing_says_why(notes, figures, kind, why):
    found = decided(*notes, **figures)
    assert found.kind is kind
    assert why in codes(found)
    assert found.next is not None


@pytest.mark.parametrize(
    ("figures", "todo"),
    [
        ({"low": -0.1, "p": 0.2}, "do_more_responses"),
        ({"difference": 0.001, "low": -0.1, "p": 0.9}, "do_cheaper_jury"),
        (
            {"difference": 0.0, "low": 0.0, "high": 0.0, "p": 1.0},
            "do_cheaper_jury",
        ),
    ],
)
def test_what_is_not_shown_says_what_would_show_it(figures, todo):
    assert decided(**figures).next.code == todo


numbers = st.floats(-2, 2) | st.just(NAN)
chances = st.floats(0, 1) | st.just(NAN)
notes_on_it = st.lists(
    st.sampled_from(
        [
            note("simulated", "simulated", raters=["sim"]),
            note("too_few_for_p", "too_few_for_p", instances=12),
            note("no_test", "no_test"),
            note(
                "only_both", "only_both", first="jury", of_first=60, second="jury:c", of_second=30
            ),
        ]
    ),
    max_size=3,
)


@given(
    difference=numbers,
    ends=st.tuples(numbers, numbers).map(sorted),
    p=chances,
    n_tried=st.integers(0, 3000),
    notes=notes_on_it,
)
def test_no_headline_contradicts_its_interval_its_p_or_its_raters(
    difference, ends, p, n_tried, notes
):
    given = row(
        *notes,
        difference=difference,
        low=ends[0],
        high=ends[1],
        p=p,
        n_tried=n_tried,
    )
    found = compared_juries(given, FIRST, SECOND)
    assert all(found.sentences)
    assert found.action
    assert found.on
    if found.kind in CLAIMS:
        assert p <= 0.05
        assert (ends[0] > 0, ends[1] < 0) == (
            found.kind is DecisionKind.FIRST_BETTER,
            found.kind is DecisionKind.SECOND_BETTER,
        )
        assert (difference > 0) is (found.kind is DecisionKind.FIRST_BETTER)
        assert not given.simulated
        assert not given.told("too_few_for_p")
