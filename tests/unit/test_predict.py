"""Predictions: figures from the ratings, warnings, what is counted and not dropped, and whether they may be used."""

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.scores import both, lost, rescored, study, without

from calibration import headlines
from calibration.decision import Decision, DecisionKind
from calibration.notes import note, told
from calibration.predicting import (
    COLUMNS,
    USABLE,
    PredictedRow,
    conformal_interval,
    decide,
    isotonic_map,
    predictions,
)
from calibration.protocol import Protocol
from calibration.scores import Scores
from calibration.table import agreement_rows
from calibration.values import COMBINED, NAN, AnalysisOptions
from calibration.verdict import JuryClaim, decisions
from data.errors import BadInput, TooFew


def sampled(scores: Scores, share: float, seed: int = 1) -> Scores:
    """Take the clinicians' ratings of a random share of the instances out."""
    names = np.unique(scores.responses["instance_id"].to_numpy(dtype=str))
    left = np.random.default_rng(seed).random(len(names)) > share
    rows = scores.ratings["instance_id"].isin(names[left])
    return without(scores, rows & (scores.ratings["kind"] == "clinician"))


def predict(scores: Scores, level: float = 0.9, **asked: Any):
    options = AnalysisOptions(**{"reps": 100} | asked)
    rows = agreement_rows(scores, options)
    verdicts = decisions(rows, JuryClaim(Protocol(0.2, jurors=("j",))))
    rows, responses = predictions(scores, options, verdicts, level)
    return SimpleNamespace(rows=rows, responses=responses)


def means(scores: Scores, kind: str) -> pd.Series:
    """Return raters' means by response, written out: criteria, then raters."""
    own = scores.ratings[scores.ratings["kind"] == kind]
    own = own.groupby(["response_id", "rater"])["score"].mean()
    return own.groupby("response_id").mean()


def test_figures_are_those_of_the_ratings_written_out():
    scores = sampled(study(n=60), 0.5)
    jury, clinicians = means(scores, "juror"), means(scores, "clinician")
    rated, other = jury[clinicians.index], jury.drop(clinicians.index)
    n, unrated = len(rated), len(other)
    weight = np.cov(clinicians, rated, ddof=0)[0, 1] / ((1 + n / unrated) * jury.var(ddof=1))
    error = clinicians - weight * rated
    (row,) = predict(scores).rows
    assert (row.n_rated, row.n_unrated, row.n_predicted) == (n, unrated, 60)
    assert row.n_calibration == n
    assert row.weight == pytest.approx(weight)
    assert row.mean_clinicians == pytest.approx(clinicians.mean())
    assert row.mean_jury == pytest.approx(jury.mean())
    assert row.mean_corrected == pytest.approx(error.mean() + weight * other.mean())
    variance = error.var(ddof=1) / n + weight**2 * other.var(ddof=1) / unrated
    assert row.gain == pytest.approx(clinicians.var(ddof=1) / n / variance)
    assert row.low < row.mean_corrected < row.high
    assert row.notes == ()


def test_single_responses_are_those_of_the_raw_composites():
    scores = sampled(study(n=80), 0.6)
    jury, clinicians = means(scores, "juror"), means(scores, "clinician")
    names = sorted(jury.index)
    rated = [name for name in names if name in clinicians.index]
    given = np.array([clinicians.get(name, np.nan) for name in names])
    every = given, jury[names].to_numpy(), np.arange(len(names))
    is_rated = ~np.isnan(given)
    low, high = conformal_interval(*every, 0.9, 4)
    mapped = np.interp(jury[names], *isotonic_map(every[1][is_rated], given[is_rated]))
    found = predict(scores, seed=4)
    table = found.responses.set_index("response_id")
    assert list(found.responses.columns) == list(COLUMNS)
    assert list(table.index) == names
    assert table["jury"].to_numpy() == pytest.approx(jury[names].to_numpy())
    assert found.rows[0].q == pytest.approx((high - low)[is_rated].mean() / 2)
    assert table["clinician_scale"].to_numpy() == pytest.approx(mapped)
    assert table["low"].to_numpy() == pytest.approx(np.maximum(low, 1))
    assert table["high"].to_numpy() == pytest.approx(np.minimum(high, 5))
    assert table["rated_by_clinicians"].sum() == len(rated)


def test_combined_weighs_benchmarks_by_their_responses_and_not_by_how_many_were_rated():
    one, other = study(("aci",), n=40), sampled(study(("med",), n=120, seed=1), 0.2)
    *parts, combined = predict(both(one, other)).rows
    assert combined.mean_corrected == pytest.approx(
        (40 * parts[0].mean_corrected + 120 * parts[1].mean_corrected) / 160
    )
    assert combined.n_rated == parts[0].n_rated + parts[1].n_rated
    assert math.isnan(combined.q)
    assert combined.gain > 1


def test_a_benchmark_no_clinician_rated_is_named_and_in_no_mean():
    scores = study(("aci", "med"), n=30)
    unrated = lost(scores, "benchmark == 'med' and kind == 'clinician'")
    aci, med, combined = predict(unrated).rows
    assert med.told("not_rated")
    assert math.isnan(med.mean_corrected)
    assert (med.n_unrated, med.n_predicted) == (30, 0)
    assert combined.mean_corrected == pytest.approx(aci.mean_corrected)
    assert combined.told("in_no_mean")["benchmarks"] == ("med",)
    *_, unlike = predict(study(("aci", "med"), n=30, scales={"med": (1, 7)})).rows
    assert math.isnan(unlike.mean_corrected)
    assert unlike.told("different_scales")


def test_a_response_without_all_jurors_is_in_no_figure_and_counted():
    scores = lost(study(n=60), "response_id in ['aci-r1', 'aci-r2'] and rater == 'claude'")
    strict, relaxed = predict(scores), predict(scores, min_jurors=2)
    assert (strict.rows[0].n_rated, len(strict.responses)) == (58, 58)
    assert "the jury scored 58 of 60 responses" in told(strict.rows[0].notes)
    assert "2 of them rated by clinicians" in told(strict.rows[0].notes)
    assert (relaxed.rows[0].n_rated, len(relaxed.responses)) == (60, 60)


def test_a_jury_not_shown_to_agree_is_said_not_to_be_validated():
    scores = study(n=60, juror_noise=0.3)
    dice = np.random.default_rng(0).integers(1, 6, len(scores.ratings)).astype(float)
    bad = rescored(scores, lambda t: t["score"].where(t["kind"] != "juror", dice))
    good, useless, few = (predict(one).rows[0] for one in (scores, bad, study(n=19)))
    assert (good.validated, useless.validated, few.validated) == (True, False, False)
    assert useless.verdict in ("inferior", "inconclusive")
    assert few.verdict == "too_few"
    assert math.isfinite(useless.mean_corrected)
    assert useless.q > good.q


def test_rated_responses_that_the_jury_finds_better_are_warned_of():
    scores = study(n=80)
    jury = means(scores, "juror")
    worst = jury.sort_values().index[:40]
    rows = scores.ratings["response_id"].isin(worst) & (scores.ratings["kind"] == "clinician")
    (biased,) = predict(without(scores, rows)).rows
    (fair,) = predict(sampled(study(n=300), 0.5)).rows
    assert biased.rated_unrated_difference > 1
    assert biased.told("rated_unlike")
    assert abs(fair.rated_unrated_difference) < 0.25
    assert fair.told("rated_unlike") is None


def test_with_few_instances_intervals_are_undefined_with_the_reason():
    found = predict(study(n=16), level=0.95)
    assert math.isnan(found.rows[0].q)
    assert found.rows[0].told("few_to_calibrate")["responses"] == 16
    assert found.responses["low"].isna().all()
    assert found.responses["clinician_scale"].notna().all()
    assert all(notes[-1]["least"] == 19 for notes in found.responses["notes"])


def test_responses_beyond_what_the_map_was_fitted_on_are_flagged():
    def moved(ratings):
        jury, far = ratings["kind"] == "juror", ratings["response_id"] == "aci-r3"
        return ratings["score"].mask(jury, ratings["score"].clip(2, 4)).mask(jury & far, 5.0)

    found = predict(rescored(sampled(study(n=60), 0.5), moved))
    row = found.responses.set_index("response_id").loc["aci-r3"]
    assert row["notes"][0] == note("outside_map", "outside_map")
    assert row["clinician_scale"] == found.responses["clinician_scale"].max()


@pytest.mark.parametrize("change", ["ratings", "responses"])
def test_the_order_of_rows_changes_nothing(change):
    scores = sampled(study(n=50, per=2), 0.5)
    moved = replace(scores, **{change: getattr(scores, change).sample(frac=1, random_state=0)})
    before, after = predict(scores), predict(moved)
    numbers = [
        [value for value in vars(one.rows[0]).values() if isinstance(value, float | int)]
        for one in (before, after)
    ]
    assert numbers[0] == pytest.approx(numbers[1], nan_ok=True)
    pd.testing.assert_frame_equal(before.responses, after.responses)


def test_a_level_that_is_no_share_and_a_study_without_jurors_are_refused():
    scores = study(n=10)
    for level in (0.0, 1.0, -0.1, 90.0):
        with pytest.raises(BadInput, match="between 0 and 1"):
            predict(scores, level=level)
    with pytest.raises(TooFew, match="no juror"):
        predict(without(scores, scores.ratings["kind"] == "juror"))


SIMULATED = note("simulated", "simulated", raters=("Smith, John",))
REAL_NOTES = [
    note("no_variance", "no_variance", raters=("dr_c; simulated raters: nobody",)),
    note("rated_unlike", "rated_unlike", rated=4.0, unrated=3.0, deviations=0.9),
]
KINDS = [
    *(DecisionKind.NON_INFERIOR, DecisionKind.INFERIOR, DecisionKind.INCONCLUSIVE),
    *(DecisionKind.NO_PROTOCOL, DecisionKind.TOO_FEW, DecisionKind.UNDEFINED),
]
Study = tuple[list[PredictedRow], dict[str, Decision]]


def verdict_of(kind: DecisionKind) -> Decision:
    reasons = (note("all_above", "all_above", margin=0.1),)
    known = {"reasons": reasons, "next": note("do_see_notes", "do_see_notes")}
    return Decision("agreement", kind, estimate=0.01, low=-0.05, high=0.07, **known)  # type: ignore[arg-type]


def study_of(*kinds: DecisionKind, **other: object) -> Study:
    """Return the rows and verdicts of a study; the last of several kinds is of all combined."""
    names = [*["b", "c", "d"][: len(kinds) - 1], COMBINED] if len(kinds) > 1 else ["b"]
    of = dict(zip(names, kinds, strict=True))
    rows = [PredictedRow(name, verdict=kind.value, **other) for name, kind in of.items()]  # type: ignore[arg-type]
    return rows, {name: verdict_of(kind) for name, kind in of.items()}


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
        decides = verdicts[rows[-1].benchmark].kind
        assert decides in (DecisionKind.NON_INFERIOR, DecisionKind.UNDEFINED)
    elif found.kind is not DecisionKind.SIMULATED:
        assert found.kind in {one.kind for one in verdicts.values()} - {DecisionKind.NON_INFERIOR}
    assert found.headline == headlines.HEADLINES["predictions"][found.kind.value]
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
