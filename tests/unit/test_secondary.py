"""Scorers beside their ICC, what is missing of them, and raters' own distributions: pandas and scipy as oracles."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.scores import CRITERIA, JURORS, lost, note_of, rescored_of, study
from scipy import stats

from calibration.data_quality import at_points, distribution_rows, missing_rows, share_apart
from calibration.other_measures import bland_altman, secondary_rows, spearman
from calibration.report.content import IN_POINTS
from calibration.scope import scopes
from calibration.values import AnalysisOptions


def two_raters(seed=0, n=40):
    random = np.random.default_rng(seed)
    quality = random.normal(size=n)
    return tuple(np.round(2 * (quality + random.normal(size=n))) / 2 for _ in range(2))


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        # Squared differences of the ranks 0, 0, 1, 1: rho 1 - 6 * 2 / (4 * 15).
        ([1, 2, 3, 4], [10, 20, 40, 30], 0.8),
        ([1, 1, 2], [1, 2, 3], np.sqrt(3) / 2),  # ranks 1.5, 1.5, 3 with 1, 2, 3
        ([0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1, 0.9], [1, 2, 3], np.sqrt(3) / 2),
        ([], [], np.nan),
        ([1], [2], np.nan),
        ([3, 3, 3], [1, 2, 3], np.nan),
        ([1, 2, 3], [0, 0, 0], np.nan),
    ],
    ids=["ranks", "ties", "rounding", "nothing", "one", "first constant", "second constant"],
)
def test_rank_correlations_by_hand_and_none_where_there_is_no_order(x, y, expected):
    found = spearman(np.array(x, float), np.array(y, float))
    assert found == pytest.approx(expected, nan_ok=True)


def rows(scores, name="aci", **asked):
    every = scopes(scores, AnalysisOptions(**{"reps": 60} | asked))
    scope = next(one for one in every if one.name == name)
    return {row.scorer: row for row in secondary_rows(scope, scores)}


def points(row):
    return [getattr(row, name) for name in IN_POINTS]


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
    bias, reach = (y - x).mean(), stats.norm.ppf(0.975) * (y - x).std()
    ends = stats.ttest_1samp(y - x, 0.0).confidence_interval(0.95)
    assert (row.bias, row.bias_low, row.bias_high) == pytest.approx((bias, *ends))
    assert (row.limits_low, row.limits_high) == pytest.approx((bias - reach, bias + reach))
    assert (row.n, note_of(row)) == (40, "scored 40 of 40")


def test_a_generous_juror_keeps_its_order_and_has_a_bias():
    scores = rescored_of(study(n=60, seed=5), "gpt", lambda s: 1 + (s - 1) / 2)
    stricter = rescored_of(scores, "gpt", lambda s: s + 1.5)
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
    scores = rescored_of(scores, "gpt", lambda s: (s + luck[place]).clip(1, 5))
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
    scores = rescored_of(study(), "gpt", lambda s: 0 * s + 4)
    row = rows(scores, method=method)["juror:gpt"]
    assert np.isnan(row.spearman)
    assert np.isfinite([row.bias, row.bias_low, row.limits_high]).all()
    assert "rank correlation undefined: the scorer" in note_of(row)
    assert note_of(row).count("undefined") == 1


def test_two_common_responses_are_too_few_for_anything():
    gone = "rater == 'gpt' and response_id not in ['aci-r0', 'aci-r1']"
    found = rows(lost(study(), gone))
    row = found["juror:gpt"]
    said = "scored 2 of 30; undefined: 2 responses have all the scores needed"
    assert np.isnan([*points(row), row.spearman]).all()
    assert (row.n, found["juror:claude"].n) == (2, 30)
    assert note_of(row).startswith(said)


def test_benchmarks_on_different_scales_and_a_criterion_that_is_lacking_are_undefined():
    mixed = study(("aci", "chw"), scales={"chw": (0, 10)})
    lacking = study(("aci", "chw"), criteria={"chw": ("tone",)})
    combined = rows(mixed, "combined")
    for row in (combined["jury"], rows(lacking, criterion="tone")["juror:gpt"]):
        assert np.isnan(points(row)).all()
        assert "undefined: " in note_of(row)
    assert points(combined["metric:rouge-l"]) == [None] * len(IN_POINTS)
    assert np.isfinite(rows(lacking, "chw", criterion="tone")["jury"].bias)


def asked(scores, needed=None, name=None):
    """Return a scope of a study in which so many jurors make a jury: the first, or that of a name."""
    found = scopes(scores, AnalysisOptions(reps=0, min_jurors=needed))
    return next(one for one in found if name in (None, one.name))


def missing_of(scores, needed=None):
    return {row.scorer: row for row in missing_rows(asked(scores, needed), scores)}


def with_gaps():
    """Return a study in which gpt said nothing of r1 and half of r2, and llama half of r2 and r3."""
    half = "rater == 'gpt' and response_id == 'aci-r2'"
    half += " or rater == 'llama' and response_id in ['aci-r2', 'aci-r3']"
    silent = "rater == 'gpt' and response_id == 'aci-r1'"
    return lost(study(n=20), f"{silent} or criterion == 'clarity' and ({half})")


def test_what_is_missing_is_counted_by_what_is_known_of_it():
    names = [f"n_{one}" for one in ("responses", "scored", "missing", "no_rating", "incomplete")]
    found = missing_of(with_gaps()).items()
    assert {scorer: tuple(getattr(row, name) for name in names) for scorer, row in found} == {
        "jury": (20, 17, 3, 1, 2),
        "juror:gpt": (20, 18, 2, 1, 1),
        "juror:llama": (20, 18, 2, 0, 2),
        **dict.fromkeys(("juror:claude", "metric:rouge-l"), (20, 20, 0, 0, 0)),
    }
    lenient = missing_of(with_gaps(), needed=2)["jury"]
    assert (lenient.n_scored, lenient.n_no_rating, lenient.n_incomplete) == (19, 0, 1)


APART = "rater == 'gpt' and instance_id > 'aci-i5' or rater == 'llama' and instance_id <= 'aci-i5'"


@pytest.mark.parametrize(
    ("gone", "scorer", "counts"),
    [
        ("kind == 'metric' and response_id == 'aci-r9'", "metric:rouge-l", (19, 1, 0)),
        (APART, "jury", (0, 20, 0)),  # nothing scored together
    ],
)
def test_what_a_metric_or_a_jury_lacks_is_counted_too(gone, scorer, counts):
    row = missing_of(lost(study(n=20), gone))[scorer]
    assert (row.n_scored, row.n_no_rating, row.n_incomplete) == counts


# Bland & Altman (1986), table 1: first peak flow by the large Wright meter and by the mini one.
LARGE = [494, 395, 516, 434, 476, 557, 413, 442, 650, 433, 417, 656, 267, 478, 178, 423, 427]
MINI = [512, 430, 520, 428, 500, 600, 364, 380, 658, 445, 432, 626, 260, 477, 259, 350, 451]
PEAK_FLOW = np.array(LARGE, float) - np.array(MINI, float)


def ends(interval):
    return (interval.low, interval.high)


def test_the_peak_flow_meters_of_the_source_come_out_as_printed_and_as_scipy_has_one_mean():
    # Printed there: mean -2.1, sd 38.8, interval of the bias -22.0 to 17.8. The source rounds
    # 1.96 to 2 for the limits, -79.7 and 75.5.
    bias, interval, limits = bland_altman(PEAK_FLOW)
    assert bias == pytest.approx(-2.1, abs=0.05)
    assert ends(interval) == pytest.approx((-22.0, 17.8), abs=0.1)
    assert (limits.high - bias) / 1.96 == pytest.approx(38.8, abs=0.05)
    assert ends(limits) == pytest.approx((-79.7 + 0.04 * 38.8, 75.5 - 0.04 * 38.8), abs=0.1)
    theirs = stats.ttest_1samp(PEAK_FLOW, 0.0).confidence_interval(0.95)
    assert ends(bland_altman(PEAK_FLOW)[1]) == pytest.approx(tuple(theirs))


@pytest.mark.parametrize(
    ("change", "bias", "width"),
    [
        *((lambda d: d + 2, lambda b: b + 2, 1.0), (lambda d: 3 * d, lambda b: 3 * b, 3.0)),
        *((lambda d: -d, lambda b: -b, 1.0), (lambda d: d[::-1], lambda b: b, 1.0)),
    ],
    ids=["shift", "scale", "exchange", "permutation"],
)
def test_shift_scale_exchange_and_order_move_only_what_they_should(change, bias, width):
    before, after = bland_altman(PEAK_FLOW), bland_altman(change(PEAK_FLOW))
    assert after[0] == pytest.approx(bias(before[0]))
    for old, new in zip(before[1:], after[1:], strict=True):
        assert new.high - new.low == pytest.approx(width * (old.high - old.low))


def test_one_difference_has_no_limits_none_nothing_and_equal_ones_no_width():
    alone, nothing = bland_altman(np.array([1.5])), bland_altman(np.array([]))
    assert alone[0] == 1.5
    assert np.isnan(nothing[0])
    assert np.isnan([*ends(alone[1]), *ends(alone[2])]).all()
    assert ends(bland_altman(np.full(5, 0.5))[2]) == (0.5, 0.5)


def test_responses_of_one_instance_count_as_one_where_they_are_alike():
    random = np.random.default_rng(1)
    differences = random.normal(size=12)
    once = bland_altman(differences)
    thrice = bland_altman(np.repeat(differences, 3), np.repeat(np.arange(12), 3))
    assert thrice[0] == pytest.approx(once[0])
    assert ends(thrice[1]) == pytest.approx(ends(once[1]))
    assert ends(bland_altman(np.append(differences, np.nan))[1]) == pytest.approx(ends(once[1]))


def rows_of(scores, needed=None, name=None):
    found = distribution_rows(asked(scores, needed, name), scores)
    return {(row.rater, row.criterion): row for row in found}


def test_there_is_a_row_a_rater_and_criterion():
    rows = rows_of(study(n=10))
    raters = ["clinicians", "jury", *(f"juror:{name}" for name in JURORS)]
    assert list(rows) == [(rater, criterion) for criterion in CRITERIA for rater in raters]
    assert {row.n for (rater, _), row in rows.items() if rater == "clinicians"} == {20}
    assert {row.n for (rater, _), row in rows.items() if rater != "clinicians"} == {10}


def test_figures_are_those_of_pandas():
    scores = study(n=25, seed=4)
    rows = rows_of(scores)
    table = scores.ratings
    for criterion in CRITERIA:
        own = table[table["criterion"] == criterion]
        doctors = own[own["kind"] == "clinician"]["score"]
        row = rows["clinicians", criterion]
        assert (row.mean, row.sd) == pytest.approx((doctors.mean(), doctors.std()))
        assert row.at_top == pytest.approx((doctors == 5).mean())
        expected = doctors.value_counts()
        assert row.counts == {str(i): int(expected.get(i, 0)) for i in range(1, 6)} | {"between": 0}
        means = own[own["kind"] == "juror"].pivot_table(index="response_id", values="score")
        jury = rows["jury", criterion]
        assert (jury.mean, jury.sd) == pytest.approx((means["score"].mean(), means["score"].std()))


def test_responses_two_points_apart_are_counted_as_by_hand():
    # Clinicians' means: a 4 (3 and 5), b 4, c 2 (its repeats 1 and 3 first), d none; the scorer's 2, 3, 4, 5.
    # Distances 2, 1, 2 and none: 2 of 3 responses.
    given = [("a", "x", 3), ("a", "y", 5), ("b", "x", 4), ("c", "x", 1), ("c", "x", 3)]
    scored = [("a", "j", 2), ("b", "j", 3), ("c", "j", 4), ("d", "j", 5)]
    columns = ["response_id", "rater", "score"]
    clinicians, own = (pd.DataFrame(rows, columns=columns) for rows in (given, scored))
    assert share_apart(own, clinicians) == pytest.approx(2 / 3)
    assert np.isnan(share_apart(own[3:], clinicians))


def test_the_share_apart_is_of_the_jury_and_not_of_the_clinicians():
    scores = study(n=25, seed=4)
    own = scores.ratings[scores.ratings["criterion"] == "clarity"]
    means = own.pivot_table(index="response_id", columns="kind", values="score")
    rows = rows_of(scores)
    far = (means["juror"] - means["clinician"]).abs() >= 2
    assert rows["jury", "clarity"].apart == pytest.approx(far.mean())
    assert rows["clinicians", "clarity"].apart is None


def test_the_jury_has_a_mean_where_enough_of_it_scored_the_criterion():
    gone = "rater == 'gpt' and response_id == 'aci-r4' and criterion == 'accuracy'"
    less = lost(study(n=12), gone)
    assert rows_of(less)["jury", "accuracy"].n == 11
    assert rows_of(less)["jury", "clarity"].n == 12
    assert rows_of(less, needed=2)["jury", "accuracy"].n == 12


def test_replicates_are_counted_as_given_and_averaged_for_the_jury():
    scores = study(n=10)
    own = scores.ratings["rater"] == "gpt"
    again = scores.ratings[own].assign(replicate=1, score=5.0)
    rows = rows_of(replace(scores, ratings=pd.concat([scores.ratings, again])))
    assert (rows["juror:gpt", "clarity"].n, rows["jury", "clarity"].n) == (20, 10)
    sums = scores.ratings.query("criterion == 'clarity'").groupby("rater")["score"].sum()
    expected = ((sums["gpt"] + 50) / 2 + sums["claude"] + sums["llama"]) / 30
    assert rows["jury", "clarity"].mean == pytest.approx(expected)


def test_only_analysed_responses_are_counted_and_without_a_score_there_are_no_figures():
    fewer = lost(study(n=10), "kind == 'clinician' and response_id == 'aci-r0'")
    assert rows_of(fewer)["juror:gpt", "clarity"].n == 9
    fewer = lost(study(n=8), "rater == 'gpt' and criterion == 'clarity'")
    row = rows_of(fewer)["juror:gpt", "clarity"]
    assert (row.n, note_of(row)) == (0, "undefined: no score")
    assert np.isnan([row.mean, row.sd, row.at_top]).all()


def test_combined_has_every_criterion_of_its_benchmarks_and_scales_that_differ_are_not_pooled():
    scores = study(("aci", "mts"), n=8, criteria={"mts": ("clarity", "safety")})
    rows = rows_of(scores, name="combined")
    assert [name for rater, name in rows if rater == "jury"] == [*CRITERIA, "safety"]
    assert rows["jury", "clarity"].n == 16
    assert rows["jury", "safety"].n == 8
    rows = rows_of(study(("aci", "mts"), n=8, scales={"mts": (0, 5)}), name="combined")
    row = rows["jury", "clarity"]
    assert np.isnan([row.mean, row.sd, row.at_top]).all()
    assert row.counts == {}
    assert note_of(row) == "undefined: the benchmarks use different scales"


def test_two_thirds_and_repeated_means_lie_between_and_rounding_does_not():
    values = np.array([1.0, 5.0, 14 / 3, 4.5, 0.1 + 0.2 + 2.7, 5.0 - 1e-15])
    assert at_points(values, 1, 5) == {"1": 1, "2": 0, "3": 1, "4": 0, "5": 2, "between": 2}


@given(st.lists(st.floats(1, 5), max_size=30), st.randoms())
def test_counts_sum_to_the_scores_in_any_order(values, random):
    mixed = random.sample(values, len(values))
    counts = at_points(np.array(values), 1, 5)
    assert sum(counts.values()) == len(values)
    assert at_points(np.array(mixed), 1, 5) == counts
    moved = at_points(np.array([round(value) + 10.0 for value in values]), 11, 15)
    assert moved["between"] == 0


@pytest.mark.parametrize(
    ("change", "sign"),
    [
        *((lambda x, y: (x + 9, y), 1), (lambda x, y: (x, 0.01 * y), 1)),
        *((lambda x, y: (np.exp(x), y**3), 1), (lambda x, y: (x[::-1], y[::-1]), 1)),
        *((lambda x, y: (y, x), 1), (lambda x, y: (x, -y), -1)),
    ],
    ids=["shift", "scale", "monotone", "permutation", "exchange", "reversal"],
)
def test_only_the_order_counts(change, sign):
    x, y = two_raters()
    assert spearman(*change(x, y)) == pytest.approx(sign * spearman(x, y))
