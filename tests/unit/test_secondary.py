"""Scorers beside their ICC: pingouin and scipy as oracles, properties, and what is undefined."""

import numpy as np
import pytest
from kit.scores import JURORS, note_of, study, without
from scipy import stats

from calibration.other_measures import secondary_rows
from calibration.report.content import IN_POINTS
from calibration.scope import scopes
from calibration.scores import Scores
from calibration.table import agreement_table
from calibration.values import AnalysisOptions

METHODS = ["paper", "published"]


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
    composite = judged.groupby(["response_id", "kind", "rater"])["score"].mean()
    wide = composite.reset_index(["kind"]).set_index("kind", append=True)["score"]
    table = wide.reset_index().pivot(index="response_id", columns="rater", values="score")
    doctors = [name for name in table if name.startswith("dr")]
    return table[doctors].mean(axis=1), table[list(members)].mean(axis=1)


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


@pytest.mark.parametrize("method", METHODS)
def test_the_rank_correlation_is_that_of_the_agreement_table_but_for_rounding(method):
    scores = study(n=50, seed=4)

    table = agreement_table(scores, method=method, reps=0).set_index("scorer")["spearman"]

    found = rows(scores, method=method)
    assert list(found) == list(table.index[:5])
    assert [row.spearman for row in found.values()] == pytest.approx(table[:5].tolist(), abs=0.01)


def test_a_generous_juror_keeps_its_order_and_has_a_bias():
    scores = rescored(study(n=60, seed=5), "gpt", lambda s: 1 + (s - 1) / 2)
    stricter = rescored(scores, "gpt", lambda s: s + 1.5)

    before, after = rows(scores)["juror:gpt"], rows(stricter)["juror:gpt"]

    assert after.spearman == pytest.approx(before.spearman)
    assert after.bias == pytest.approx(before.bias + 1.5)
    width = before.limits_high - before.limits_low
    assert after.limits_high - after.limits_low == pytest.approx(width)


def test_points_are_points_whatever_the_method():
    scores = study(n=40, seed=6)

    found = [rows(scores, method=method) for method in METHODS]

    assert points(found[0]["jury"]) == points(found[1]["jury"])


def test_the_order_of_rows_changes_nothing():
    scores = study(n=40, seed=6)
    shuffled = scores.ratings.sample(frac=1, random_state=0)
    other = Scores(shuffled, scores.responses.iloc[::-1], scores.rubrics)
    for one, two in zip(rows(scores).values(), rows(other).values(), strict=True):
        if one.bias is not None:
            assert points(one) == pytest.approx(points(two))
        assert (one.spearman, one.n, note_of(one)) == (
            pytest.approx(two.spearman),
            two.n,
            note_of(two),
        )


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


@pytest.mark.parametrize("method", METHODS)
def test_a_constant_juror_has_a_bias_and_no_order(method):
    scores = rescored(study(), "gpt", lambda s: 0 * s + 4)

    row = rows(scores, method=method)["juror:gpt"]

    assert np.isnan(row.spearman)
    assert np.isfinite([row.bias, row.bias_low, row.limits_high]).all()
    said = "rank correlation undefined: the scorer"
    assert said in note_of(row)
    assert note_of(row).count("undefined") == 1
    assert "not in the order" not in note_of(row)


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

    for row in (rows(mixed, "combined")["jury"], rows(lacking, criterion="tone")["juror:gpt"]):
        assert np.isnan(points(row)).all()
        assert "undefined: " in note_of(row)
    assert points(rows(mixed, "combined")["metric:rouge-l"]) == [None] * len(IN_POINTS)
    assert np.isfinite(rows(lacking, "chw", criterion="tone")["jury"].bias)
