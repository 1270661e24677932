"""Whether predictions may be used: no claim that its figures do not bear out, and no words read."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration import headlines as decisions
from calibration.decision import Decision, DecisionKind
from calibration.notes import note
from calibration.predicting import USABLE, PredictedRow, decide
from calibration.values import COMBINED, NAN

SIMULATED = note("simulated", "simulated", raters=("Smith, John",))
REAL_NOTES = [
    note("no_variance", "no_variance", raters=("dr_c; simulated raters: nobody",)),
    note("rated_unlike", "rated_unlike", rated=4.0, unrated=3.0, deviations=0.9),
]
KINDS = [
    *(
        DecisionKind.NON_INFERIOR,
        DecisionKind.INFERIOR,
        DecisionKind.INCONCLUSIVE,
        DecisionKind.NO_PROTOCOL,
    ),
    *(DecisionKind.TOO_FEW, DecisionKind.UNDEFINED),
]
Study = tuple[list[PredictedRow], dict[str, Decision]]


def verdict_of(kind: DecisionKind) -> Decision:
    return Decision(
        "agreement",
        kind,
        estimate=0.01,
        low=-0.05,
        high=0.07,
        reasons=(note("all_above", "all_above", margin=0.1),),
        next=note("do_see_notes", "do_see_notes"),
    )


def row_of(name: str, kind: DecisionKind, **other: object) -> PredictedRow:
    return PredictedRow(name, verdict=kind.value, **other)  # type: ignore[arg-type]


def study_of(*kinds: DecisionKind, **other: object) -> Study:
    """Return the rows and verdicts of a study; the last of several kinds is of all combined."""
    names = [*["b", "c", "d"][: len(kinds) - 1], COMBINED] if len(kinds) > 1 else ["b"]
    rows = [row_of(name, kind, **other) for name, kind in zip(names, kinds, strict=True)]
    return rows, {name: verdict_of(kind) for name, kind in zip(names, kinds, strict=True)}


@st.composite
def studies(draw: st.DrawFn) -> Study:
    """Draw the rows of a study of one to three benchmarks, and of all combined if several."""
    number = draw(st.integers(1, 3))
    kinds = [draw(st.sampled_from(KINDS)) for _ in range(number + (number > 1))]
    told = st.lists(st.sampled_from([*REAL_NOTES, SIMULATED]), max_size=3).map(tuple)
    rows, verdicts = study_of(*kinds)
    unlike = st.sampled_from([NAN, 0.0, 0.9])
    drawn = [replace(row, rated_unrated_difference=draw(unlike), notes=draw(told)) for row in rows]
    return drawn, verdicts


def parts(rows: list[PredictedRow]) -> list[PredictedRow]:
    return [row for row in rows if row.benchmark != COMBINED]


@given(studies())
def test_predictions_are_called_usable_only_where_the_studys_verdict_is_non_inferior(
    study: Study,
) -> None:
    rows, verdicts = study
    found = decide(rows, verdicts)
    assert (found.kind is DecisionKind.SIMULATED) == any(row.simulated for row in rows)
    if found.kind in USABLE:
        assert (found.kind is DecisionKind.USABLE) == all(row.validated for row in parts(rows))
        assert verdicts[rows[-1].benchmark].kind in (
            DecisionKind.NON_INFERIOR,
            DecisionKind.UNDEFINED,
        )
    elif found.kind is not DecisionKind.SIMULATED:
        assert found.kind in {one.kind for one in verdicts.values()} - {DecisionKind.NON_INFERIOR}
    assert found.headline == decisions.HEADLINES["predictions"][found.kind.value]
    assert len(found.sentences) == len(found.reasons) > 0


GOOD, FEW = DecisionKind.NON_INFERIOR, DecisionKind.TOO_FEW


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ([GOOD], DecisionKind.USABLE),
        ([FEW], DecisionKind.TOO_FEW),
        ([DecisionKind.NO_PROTOCOL], DecisionKind.NO_PROTOCOL),
        ([DecisionKind.INFERIOR], DecisionKind.INFERIOR),
        ([FEW, GOOD, GOOD], DecisionKind.USABLE_COMBINED),
        ([GOOD, GOOD, GOOD], DecisionKind.USABLE),
        ([GOOD, GOOD, DecisionKind.INCONCLUSIVE], DecisionKind.INCONCLUSIVE),
        ([GOOD, GOOD, DecisionKind.UNDEFINED], DecisionKind.USABLE),
        ([GOOD, FEW, DecisionKind.UNDEFINED], DecisionKind.TOO_FEW),
    ],
)
def test_the_kind_follows_from_the_verdict_that_decides(
    kinds: list[DecisionKind], expected: DecisionKind
) -> None:
    assert decide(*study_of(*kinds)).kind is expected


def test_figures_reasons_and_next_step_are_the_verdicts() -> None:
    found, verdict = decide(*study_of(FEW)), verdict_of(FEW)
    assert (found.estimate, found.low, found.high) == (0.01, -0.05, 0.07)
    assert (found.reasons, found.next) == (verdict.reasons, verdict.next)
    assert decide(*study_of(GOOD)).next is None


def test_rated_responses_unlike_the_others_are_a_reason_and_the_next_thing_to_do() -> None:
    unlike = note("rated_unlike", "rated_unlike", rated=4.0, unrated=3.0, deviations=0.9)
    found = decide(*study_of(GOOD, rated_unrated_difference=0.9, notes=(unlike,)))
    assert found.reasons[-1] == note("of_benchmark", "of_benchmark", benchmark="b", what=unlike)
    assert found.next == note("do_rate_at_random", "do_rate_at_random")
    assert "if the responses that clinicians rated are a random sample" in found.headline
