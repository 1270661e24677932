"""Scorers beside their ICC and what is missing of them: pandas and scipy as oracles, and what is undefined."""

import numpy as np
import pandas as pd
import pytest
from kit.scores import JURORS, note_of, study, without
from scipy import stats

from calibration.data_quality import missing_rows
from calibration.other_measures import secondary_rows, spearman
from calibration.report.content import IN_POINTS
from calibration.scope import scopes
from calibration.scores import Scores
from calibration.values import AnalysisOptions


def two_raters(seed=0, n=40):
    random = np.random.default_rng(seed)
    quality = random.normal(size=n)
    return tuple(np.round(2 * (quality + random.normal(size=n))) / 2 for _ in range(2))


def test_examples_by_hand():
    # Squared differences of the ranks 0, 0, 1, 1: rho 1 - 6 * 2 / (4 * 15).
    assert spearman(np.array([1.0, 2, 3, 4]), np.array([10.0, 20, 40, 30])) == pytest.approx(0.8)
    tied = spearman(np.array([1.0, 1, 2]), np.array([1.0, 2, 3]))
    assert tied == pytest.approx(np.sqrt(3) / 2)  # ranks 1.5, 1.5, 3 with 1, 2, 3


@pytest.mark.parametrize("seed", range(5))
def test_it_is_what_pandas_finds(seed):
    x, y = two_raters(seed)
    assert spearman(x, y) == pytest.approx(pd.Series(x).corr(pd.Series(y), method="spearman"))


@pytest.mark.parametrize(
    ("change", "sign"),
    [
        (lambda x, y: (x + 9, y), 1),
        (lambda x, y: (x, 0.01 * y), 1),
        (lambda x, y: (np.exp(x), y**3), 1),
        (lambda x, y: (x[::-1], y[::-1]), 1),
        (lambda x, y: (y, x), 1),
        (lambda x, y: (x, -y), -1),
    ],
    ids=["shift", "scale", "monotone", "permutation", "exchange", "reversal"],
)
def test_only_the_order_counts(change, sign):
    x, y = two_raters()
    assert spearman(*change(x, y)) == pytest.approx(sign * spearman(x, y))


def test_means_that_differ_by_rounding_alone_are_ties():
    sums = np.array([0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1, 0.9])
    assert sums[0] != sums[1]
    assert spearman(sums, np.array([1.0, 2, 3])) == pytest.approx(np.sqrt(3) / 2)


@pytest.mark.parametrize(
    ("x", "y"),
    [([], []), ([1.0], [2.0]), ([3.0, 3, 3], [1.0, 2, 3]), ([1.0, 2, 3], [0.0, 0, 0])],
    ids=["nothing", "one", "first constant", "second constant"],
)
def test_what_has_no_order_has_no_correlation(x, y):
    assert np.isnan(spearman(np.array(x), np.array(y)))


def rows(scores, name="aci", **asked):
    every = scopes(scores, AnalysisOptions(**{"reps": 60} | asked))
    scope = next(one for one in every if one.name == name)
    return {row.scorer: row for row in secondary_rows(scope, scores)}


def points(row):
    return [getattr(row, name) for name in IN_POINTS]


def rescored(scores, rater, change):
    own = scores.ratings["rater"] == rater
    score = scores.ratings["score"].where(~own, change(scores.ratings["score"]))
    ratings = scores.ratings.assign(score=score)
    return Scores(ratings, scores.responses, scores.rubrics, scores.simulated)


def raw_columns(scores, members):
    """Means of composites by the definition, step by step in pandas."""
    judged = scores.ratings[scores.ratings["kind"] != "metric"]
    table = judged.groupby(["response_id", "rater"])["score"].mean().unstack()
    return table.filter(like="dr").mean(axis=1), table[list(members)].mean(axis=1)


@pytest.mark.parametrize("scorer", ["jury", "juror:gpt"])
def test_a_row_is_what_scipy_finds_in_the_raw_columns(scorer):
    scores = study(n=40, seed=3)
    x, y = raw_columns(scores, JURORS if scorer == "jury" else [scorer.removeprefix("juror:")])

    row = rows(scores, method="published")[scorer]

    assert row.spearman == pytest.approx(stats.spearmanr(x.round(9), y.round(9)).statistic)
    apart = stats.ttest_1samp(y - x, 0.0)
    assert row.bias == pytest.approx((y - x).mean())
    assert (row.bias_low, row.bias_high) == pytest.approx(tuple(apart.confidence_interval(0.95)))
    reach = stats.norm.ppf(0.975) * (y - x).std()
    assert (row.limits_low, row.limits_high) == pytest.approx((row.bias - reach, row.bias + reach))
    assert row.n == 40
    assert note_of(row) == "scored 40 of 40"


def test_a_generous_juror_keeps_its_order_and_has_a_bias():
    scores = rescored(study(n=60, seed=5), "gpt", lambda s: 1 + (s - 1) / 2)
    stricter = rescored(scores, "gpt", lambda s: s + 1.5)

    before, after = rows(scores)["juror:gpt"], rows(stricter)["juror:gpt"]

    assert after.spearman == pytest.approx(before.spearman)
    assert after.bias == pytest.approx(before.bias + 1.5)
    width = before.limits_high - before.limits_low
    assert after.limits_high - after.limits_low == pytest.approx(width)


def test_a_metric_is_compared_by_its_order_alone():
    row = rows(study())["metric:rouge-l"]

    assert points(row) == [None] * len(IN_POINTS)
    assert np.isfinite(row.spearman)
    assert "not in points of the scale: only its order is compared" in note_of(row)


def test_the_bias_of_responses_that_share_an_instance_has_its_error_between_instances():
    # Each instance has its own luck: 20 differences, six times each. The t interval of 120
    # would be about sqrt(6) times too narrow.
    scores = study(n=120, per=6, seed=7)
    luck = np.repeat(np.random.default_rng(0).integers(-1, 2, 20), 6)
    place = scores.ratings["response_id"].str.removeprefix("aci-r").astype(int)
    scores = rescored(scores, "gpt", lambda s: (s + luck[place]).clip(1, 5))

    row = rows(scores)["juror:gpt"]

    x, y = raw_columns(scores, ["gpt"])
    naive = stats.ttest_1samp(y - x, 0.0).confidence_interval(0.95)
    assert row.bias_high - row.bias_low > 1.5 * (naive.high - naive.low)
    assert row.bias_low < row.bias < row.bias_high


def test_one_instance_leaves_the_bias_without_interval():
    row = rows(study(n=8, per=8))["jury"]
    assert np.isfinite(row.bias)
    assert np.isnan([row.bias_low, row.bias_high]).all()
    assert "1 instance: an interval over instances is undefined" in note_of(row)


@pytest.mark.parametrize("method", ["paper", "published"])
def test_a_constant_juror_has_a_bias_and_no_order(method):
    scores = rescored(study(), "gpt", lambda s: 0 * s + 4)

    row = rows(scores, method=method)["juror:gpt"]

    assert np.isnan(row.spearman)
    assert np.isfinite([row.bias, row.bias_low, row.limits_high]).all()
    assert "rank correlation undefined: the scorer" in note_of(row)
    assert note_of(row).count("undefined") == 1


def test_two_common_responses_are_too_few_for_anything():
    scores = study()
    gone = (scores.ratings["rater"] == "gpt") & ~scores.ratings["response_id"].isin(
        ["aci-r0", "aci-r1"]
    )

    found = rows(without(scores, gone))

    row = found["juror:gpt"]
    assert np.isnan([*points(row), row.spearman]).all()
    assert (row.n, found["juror:claude"].n) == (2, 30)
    assert note_of(row).startswith(
        "scored 2 of 30; undefined: 2 responses have all the scores needed"
    )


def test_benchmarks_on_different_scales_and_a_criterion_that_is_lacking_are_undefined():
    mixed = study(("aci", "chw"), scales={"chw": (0, 10)})
    lacking = study(("aci", "chw"), criteria={"chw": ("tone",)})

    combined = rows(mixed, "combined")
    for row in (combined["jury"], rows(lacking, criterion="tone")["juror:gpt"]):
        assert np.isnan(points(row)).all()
        assert "undefined: " in note_of(row)
    assert points(combined["metric:rouge-l"]) == [None] * len(IN_POINTS)
    assert np.isfinite(rows(lacking, "chw", criterion="tone")["jury"].bias)


def missing_of(scores, needed=None, name=None, **options):
    found = list(scopes(scores, AnalysisOptions(**{"reps": 0, "min_jurors": needed} | options)))
    scope = next(one for one in found if name in (None, one.name))
    return {row.scorer: row for row in missing_rows(scope, scores)}


def with_gaps(**options):
    """Return a study in which gpt said nothing of r1 and half of r2, and llama half of r2 and r3."""
    scores = study(n=20, **options)
    table = scores.ratings
    at = table["response_id"]
    gone = (table["rater"] == "gpt") & (at == "aci-r1")
    half = (table["rater"] == "gpt") & (at == "aci-r2") | (
        (table["rater"] == "llama") & at.isin(["aci-r2", "aci-r3"])
    )
    gone |= half & (table["criterion"] == "clarity")
    return without(scores, gone)


def test_what_is_missing_is_counted_by_what_is_known_of_it():
    rows = missing_of(with_gaps())
    counts = {
        name: (row.n_responses, row.n_scored, row.n_missing, row.n_no_rating, row.n_incomplete)
        for name, row in rows.items()
    }

    assert counts == {
        "jury": (20, 17, 3, 1, 2),
        "juror:claude": (20, 20, 0, 0, 0),
        "juror:gpt": (20, 18, 2, 1, 1),
        "juror:llama": (20, 18, 2, 0, 2),
        "metric:rouge-l": (20, 20, 0, 0, 0),
    }
    lenient = missing_of(with_gaps(), needed=2)["jury"]
    assert (lenient.n_scored, lenient.n_no_rating, lenient.n_incomplete) == (19, 0, 1)


def test_a_metric_has_counts_too():
    scores = with_gaps()
    gone = (scores.ratings["kind"] == "metric") & (scores.ratings["response_id"] == "aci-r9")
    row = missing_of(without(scores, gone))["metric:rouge-l"]

    assert (row.n_scored, row.n_no_rating, row.n_incomplete) == (19, 1, 0)


def test_a_jury_that_scored_nothing_together_has_no_score():
    scores = study(n=10)
    table = scores.ratings
    even = table["response_id"].str[-1].astype(int) % 2 == 0
    gone = (table["rater"] == "gpt") & even | ((table["rater"] == "llama") & ~even)
    row = missing_of(without(scores, gone))["jury"]

    assert (row.n_scored, row.n_no_rating) == (0, 10)
