"""Drift of the model against drift of the case mix: planted ones are told apart."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from kit.scores import CRITERIA
from scipy import stats

from calibration.columns import columns
from calibration.monitoring import (
    anchor_rows,
    anchors,
    case_mix,
    drift_of,
    mean_shift,
    without_later,
)
from calibration.scope import scopes
from calibration.scores import RubricShape, Scores
from calibration.values import AnalysisOptions

JURORS = ("j0", "j1")
SHAPE = RubricShape(CRITERIA, 1, 5)
BEGUN = datetime(2025, 1, 1, tzinfo=UTC)


def drifting(
    n=80, *, noise=0.6, later_noise=0.6, shift=0.0, shares=(0.5, 0.5), bad=0.6, spread=1.0, seed=0
):
    """Return scores and dated juror readings of two halves of time, n responses each.

    The jurors score the first half again when the second is rated, with `later_noise` and
    `shift`. `shares` are those of the easy benchmark then and now; on the other the jurors'
    noise is `bad`. `spread` is the quality's SD in the second half.
    """
    random = np.random.default_rng(seed)
    rows, responses = [], []
    for place in range(2 * n):
        now = place >= n
        benchmark = "easy" if random.random() < shares[now] else "hard"
        key = (f"r{place}", f"i{place}", benchmark)
        responses.append(key)
        quality = 3 + (spread if now else 1.0) * random.normal() * 0.6

        def score(around, sd):
            return float(np.clip(around + sd * random.normal(), 1, 5))

        def rate(rater, kind, replicate, day, sd, key=key, quality=quality, moved=0.0):
            at = BEGUN + timedelta(days=day)
            rows.extend(
                (*key, rater, kind, one, score(quality + moved, sd), 0, replicate, at)
                for one in CRITERIA
            )

        for doctor in ("dr0", "dr1"):
            rate(doctor, "clinician", 0, 200 * now, 0.4)
        own = bad if benchmark == "hard" else noise
        for juror in JURORS:
            rate(juror, "juror", 0, 200 * now, later_noise if now and later_noise != noise else own)
            if not now:
                again = later_noise if later_noise != noise else own
                rate(juror, "juror", 1, 200, again, moved=shift)
    names = ["response_id", "instance_id", "benchmark", "rater", "kind", "criterion", "score"]
    table = pd.DataFrame(rows, columns=[*names, "pass_", "replicate", "at"])
    found = Scores(
        table.drop(columns="at"),
        pd.DataFrame(responses, columns=names[:3]),
        dict.fromkeys(("easy", "hard"), SHAPE),
    )
    return found, table[table["kind"] == "juror"]


def judged(found, *, reps=300, alarm=False):
    """Return the anchor's rows, the case mix, and the drift, as `monitor` makes them."""
    scores, readings = found
    own = without_later(scores, readings)
    *_, scope = scopes(own, AnalysisOptions(jurors=JURORS, reps=reps))
    rows = anchor_rows(scope, scope.jury, JURORS, anchors(readings, scores.rubrics))
    half = len(scope.grid.responses) // 2
    then = np.array([int(name[1:]) < half for name in scope.grid.responses])
    mix = case_mix(scope, scope.jury, ("then", then), ("now", ~then))
    return rows, mix, drift_of(rows, mix, alarm)


def test_the_mean_shift_of_single_responses_is_the_paired_t_test():
    random = np.random.default_rng(0)
    first = random.normal(size=12)
    latest = first + 0.3 + 0.4 * random.normal(size=12)
    oracle = stats.ttest_rel(latest, first)
    ends = oracle.confidence_interval(0.95)

    found = mean_shift(latest - first, np.arange(12))

    assert found.value == pytest.approx((latest - first).mean())
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high))
    assert found.p == pytest.approx(oracle.pvalue)


def test_responses_of_one_instance_count_as_one_where_they_say_the_same():
    differences = np.random.default_rng(1).normal(size=10)
    once = mean_shift(differences, np.arange(10))
    thrice = mean_shift(np.repeat(differences, 3), np.repeat(np.arange(10), 3))
    assert thrice.value == pytest.approx(once.value)
    assert (thrice.low, thrice.p) == pytest.approx((once.low, once.p))


@pytest.mark.parametrize(
    ("differences", "clusters", "p"),
    [([0.0] * 5, range(5), 1.0), ([0.5] * 5, range(5), math.nan), ([0.5, 1.0], [0, 0], math.nan)],
)
def test_without_spread_or_a_second_instance_there_is_no_test(differences, clusters, p):
    found = mean_shift(np.array(differences), np.array(clusters))
    assert found.p == pytest.approx(p, nan_ok=True)
    assert math.isnan(mean_shift(np.array([]), np.array([])).value)


def test_a_replicate_of_the_same_week_is_no_anchor_and_stays_in_the_scores():
    scores, readings = drifting(n=10)
    soon = readings.assign(
        at=readings["at"].where(readings["replicate"] == 0, BEGUN + timedelta(days=6))
    )
    assert anchors(soon, scores.rubrics).empty
    assert len(without_later(scores, soon).ratings) == len(scores.ratings)


def test_later_replicates_are_anchors_and_leave_what_was_said_then_alone():
    scores, readings = drifting(n=10)
    found = anchors(readings, scores.rubrics)
    left = without_later(scores, readings).ratings
    assert len(found) == 10 * len(JURORS)
    assert (left["replicate"] == 0).all()
    assert len(scores.ratings) - len(left) == 10 * len(JURORS) * len(CRITERIA)
    one = readings[(readings["response_id"] == "r3") & (readings["rater"] == "j1")]
    means = one.groupby("replicate")["score"].mean()
    row = found[(found["response_id"] == "r3") & (found["rater"] == "j1")].iloc[0]
    assert (row["first"], row["latest"]) == pytest.approx((means[0], means[1]))


def test_a_reading_without_all_criteria_is_no_anchor():
    scores, readings = drifting(n=10)
    lost = (readings["response_id"] == "r3") & (readings["criterion"] == "clarity")
    assert "r3" not in set(anchors(readings[~lost], scores.rubrics)["response_id"])


def test_a_juror_without_an_anchor_has_an_empty_row_and_without_any_there_are_none():
    scores, readings = drifting(n=10)
    one = readings[(readings["rater"] == "j0") | (readings["replicate"] == 0)]
    rows, _, _ = judged((scores, one))
    assert [row.n_responses for row in rows] == [10, 0, 0]
    rows, _, found = judged((scores, readings[readings["replicate"] == 0]), alarm=True)
    assert (rows, found) == ([], "unknown")


def test_the_jurys_shift_is_the_mean_of_its_jurors():
    rows, _, _ = judged(drifting(n=30, shift=0.5))
    assert [row.scorer for row in rows] == ["juror:j0", "juror:j1", "jury"]
    assert rows[2].shift == pytest.approx((rows[0].shift + rows[1].shift) / 2)


def test_unchanged_material_has_the_same_shares_and_nothing_to_weight():
    scores, readings = drifting(n=40)
    twice = replace(scores, ratings=scores.ratings, responses=scores.responses)
    *_, scope = scopes(without_later(twice, readings), AnalysisOptions(jurors=JURORS, reps=50))
    every = np.ones(len(scope.grid.responses), dtype=bool)
    mix = case_mix(scope, scope.jury, ("a", every), ("b", every))
    assert (mix.moved, mix.icc_now, mix.mean_now, mix.sd_now) == (
        0,
        mix.icc_baseline,
        mix.mean_baseline,
        mix.sd_baseline,
    )
    assert mix.icc_reweighted == pytest.approx(mix.icc_now)


def test_weighting_back_is_what_writing_the_responses_out_gives():
    scores, readings = drifting(n=60, shares=(0.5, 0.75), bad=2.0)
    *_, scope = scopes(without_later(scores, readings), AnalysisOptions(jurors=JURORS, reps=0))
    named = scope.composites.drop_duplicates("response_id").set_index("response_id")["benchmark"]
    of = named.reindex(scope.grid.responses).to_numpy()
    then, now = np.zeros(120, dtype=bool), np.zeros(120, dtype=bool)
    easy, hard = np.flatnonzero(of == "easy"), np.flatnonzero(of == "hard")
    then[easy[:10]] = then[hard[:10]] = True
    now[easy[10:30]] = now[hard[10:20]] = True  # 20 to 10: each hard one counts twice

    found = case_mix(scope, scope.jury, ("then", then), ("now", now))

    written = np.concatenate([easy[10:30], hard[10:20], hard[10:20]])
    pair = columns(scope.grid, scope.jury, "paper")
    cov = np.cov(pair.clinicians[written], pair.scorer[written], ddof=0)
    expected = 4 * cov[0, 1] / (cov[0, 0] + cov[1, 1] + 2 * cov[0, 1])
    assert found.icc_reweighted == pytest.approx(expected)
    assert found.moved == pytest.approx(2 / 3 - 1 / 2)


def test_weights_that_rest_on_a_handful_of_responses_give_no_figure():
    _, mix, _ = judged(drifting(n=60, shares=(0.95, 0.03), bad=2.0))
    assert math.isnan(mix.icc_reweighted)


def test_where_nothing_fell_nothing_is_blamed_but_a_moved_juror_is_named():
    rows, _, found = judged(drifting(n=60, shift=0.6))
    assert found == "none"
    assert rows[0].p_holm < 0.05 < rows[0].low < rows[0].shift


def test_with_one_period_only_nothing_is_claimed():
    assert drift_of([], None, alarm=False) == "not_compared"


def count(runs=24, **planted):
    return [judged(drifting(n=100, seed=seed, **planted), reps=200)[2] for seed in range(runs)]


@pytest.mark.slow
def test_a_planted_change_of_the_jurors_is_attributed_to_the_model():
    found = count(later_noise=2.0)
    assert np.mean([one == "model" for one in found]) >= 0.85
    assert np.mean([one in ("case_mix", "neither", "none") for one in found]) <= 0.05


@pytest.mark.slow
def test_a_planted_change_of_the_benchmarks_is_attributed_to_the_case_mix():
    found = count(shares=(0.9, 0.25), bad=3.0)
    assert np.mean(["case_mix" in one for one in found]) >= 0.8
    assert np.mean([one == "case_mix" for one in found]) >= 0.6
    assert np.mean([one == "model" for one in found]) <= 0.1


@pytest.mark.slow
def test_without_any_change_little_is_blamed():
    found = count()
    assert np.mean([one == "none" for one in found]) >= 0.9
