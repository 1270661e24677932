"""Whether predictions may be used: no claim that its figures do not bear out, and no words read."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.codes import NoteCode as Code
from calibration.decision import CLAIMS, Decision, Kind, to_json
from calibration.messages import MESSAGES, REASONS, headlines
from calibration.predicting.decision import USABLE, decide
from calibration.predicting.row import PredictedRow
from calibration.predicting.validated import Agreement
from calibration.values import COMBINED, NAN, Note, note

SIMULATED = note(Code.SIMULATED, raters=("Smith, John",))
REAL_NOTES = [
    note(Code.WEIGHED_BY_RESPONSES),
    note(Code.NO_VARIANCE, raters=("dr_c; simulated raters: nobody",)),
    note(Code.RATED_UNLIKE, rated=4.0, unrated=3.0, deviations=0.9),
]


@st.composite
def agreements(draw: st.DrawFn) -> Agreement:
    """Draw an agreement of jury and clinicians, defined, without an interval, or undefined."""
    n = draw(st.integers(0, 60))
    kind = draw(st.sampled_from(["whole", "no interval", "undefined"]))
    if kind == "undefined":
        return Agreement(responses=n, instances=n, reason=note(Code.MIRRORED))
    icc = draw(st.floats(-3, 1))
    if kind == "no interval":
        return Agreement(icc, responses=n, instances=n)
    low, high = sorted([draw(st.floats(-1600, 1)), draw(st.floats(-1600, 1))])
    return Agreement(icc, low, high, n, n)


@st.composite
def studies(draw: st.DrawFn) -> list[PredictedRow]:
    """Draw the rows of a study of one to three benchmarks, and of all combined if several."""
    number = draw(st.integers(1, 3))
    names = [f"b{place}" for place in range(number)] + ([COMBINED] if number > 1 else [])
    told = st.lists(st.sampled_from([*REAL_NOTES, SIMULATED]), max_size=3).map(tuple)
    unlike = st.sampled_from([NAN, 0.0, 0.9])
    return [
        PredictedRow(
            name,
            agreement=draw(agreements()),
            rated_unrated_difference=draw(unlike),
            notes=draw(told),
        )
        for name in names
    ]


def parts(rows: list[PredictedRow]) -> list[PredictedRow]:
    return [row for row in rows if row.benchmark != COMBINED]


@given(studies())
def test_predictions_are_called_usable_only_where_real_raters_are_shown_to_agree(
    rows: list[PredictedRow],
) -> None:
    found = decide(rows)
    if found.kind not in CLAIMS:
        return
    assert found.kind in USABLE
    assert 0 < found.low <= found.high
    assert not any(row.simulated for row in rows)
    if found.kind is Kind.USABLE:
        assert all(row.validated for row in parts(rows))
    else:
        assert rows[-1].validated
        assert not all(row.validated for row in parts(rows))


@given(studies())
def test_every_other_kind_is_what_its_figures_are(rows: list[PredictedRow]) -> None:
    found = decide(rows)
    assert (found.kind is Kind.SIMULATED) == any(row.simulated for row in rows)
    if found.kind is Kind.TOO_FEW:
        assert found.basis[0]["instances"] < 20
        assert found.next == note(
            Code.DO_RATE_INSTANCES, instances=20 - found.basis[0]["instances"]
        )
    if found.kind is Kind.INCONCLUSIVE:
        assert found.low <= 0
    if found.kind is Kind.UNDEFINED:
        assert math.isnan(found.low)
    assert found.reasons
    assert found.headline == headlines.HEADLINES["predictions"][found.kind.value]
    assert len(found.sentences) == len(found.reasons)


@given(studies())
def test_no_note_but_that_of_simulated_raters_decides(rows: list[PredictedRow]) -> None:
    def only(notes: tuple[Note, ...]) -> tuple[Note, ...]:
        return tuple(one for one in notes if one.code is Code.SIMULATED)

    figures = [
        PredictedRow(
            row.benchmark,
            agreement=row.agreement,
            rated_unrated_difference=row.rated_unrated_difference,
            notes=only(row.notes),
        )
        for row in rows
    ]
    bare, full = decide(figures), decide(rows)
    assert bare.kind is full.kind
    assert (bare.estimate, bare.low, bare.high) == pytest.approx(
        (full.estimate, full.low, full.high), nan_ok=True
    )
    assert (bare.basis, bare.next) == (full.basis, full.next)


def decided(*rows: PredictedRow) -> Decision:
    return decide(list(rows))


GOOD, FEW = Agreement(0.8, 0.6, 0.9, 60, 30), Agreement(0.8, 0.6, 0.9, 60, 19)
BAD = Agreement(0.2, -0.3, 0.5, 60, 30)


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        ([PredictedRow("b", agreement=GOOD)], Kind.USABLE),
        ([PredictedRow("b", agreement=FEW)], Kind.TOO_FEW),
        ([PredictedRow("b", agreement=BAD)], Kind.INCONCLUSIVE),
        ([PredictedRow("b")], Kind.UNDEFINED),
        ([PredictedRow("b", agreement=GOOD, notes=(SIMULATED,))], Kind.SIMULATED),
        (
            [
                PredictedRow("b", agreement=FEW),
                PredictedRow("c", agreement=GOOD),
                PredictedRow(COMBINED, agreement=GOOD),
            ],
            Kind.USABLE_COMBINED,
        ),
        (
            [
                PredictedRow("b", agreement=GOOD),
                PredictedRow("c", agreement=GOOD),
                PredictedRow(COMBINED),
            ],
            Kind.USABLE,
        ),
        (
            [
                PredictedRow("b", agreement=GOOD),
                PredictedRow("c", agreement=FEW),
                PredictedRow(COMBINED),
            ],
            Kind.TOO_FEW,
        ),
    ],
)
def test_the_kind_follows_from_the_row_that_decides(rows: list[PredictedRow], kind: Kind) -> None:
    assert decide(rows).kind is kind


def test_the_decision_names_each_benchmark_on_which_nothing_is_shown() -> None:
    found = decided(
        PredictedRow("b", agreement=FEW),
        PredictedRow("c", agreement=GOOD),
        PredictedRow(COMBINED, agreement=GOOD),
    )
    (other,) = [one for one in found.reasons if one.code is Code.UNSHOWN_IN]
    assert (other["benchmark"], other["why"].code) == ("b", Code.INSTANCES_NEEDED)


def test_rated_responses_unlike_the_others_are_a_reason_and_the_next_thing_to_do() -> None:
    unlike = note(Code.RATED_UNLIKE, rated=4.0, unrated=3.0, deviations=0.9)
    row = PredictedRow("b", agreement=GOOD, rated_unrated_difference=0.9, notes=(unlike,))
    found = decided(row)
    assert found.reasons[-1] == note(Code.OF_BENCHMARK, benchmark="b", what=unlike)
    assert found.next == note(Code.DO_RATE_AT_RANDOM)
    assert "if the responses that clinicians rated are a random sample" in found.headline


def test_json_has_the_decision_with_codes_figures_and_words() -> None:
    body = to_json(decided(PredictedRow("b", agreement=GOOD)))
    assert (body["kind"], body["estimate"], body["low"], body["high"]) == ("usable", 0.8, 0.6, 0.9)
    assert body["reasons"] == [
        {
            "code": "agrees",
            "icc": 0.8,
            "low": 0.6,
            "high": 0.9,
            "words": "ICC(C,2) 0.80, 95 % interval 0.60 to 0.90, all above 0",
        }
    ]
    assert body["next"] is None


def test_every_code_of_plans_and_predictions_has_its_words_once() -> None:
    from calibration.messages import PARTS, planning, predicting

    for part in (planning, predicting):
        own = {*part.REASONS, *part.MESSAGES}
        others = {
            code for one in PARTS if one is not part for code in {*one.REASONS, *one.MESSAGES}
        }
        assert not own & others
        assert not set(part.REASONS) & set(part.MESSAGES)
        assert own <= {*REASONS, *MESSAGES}
