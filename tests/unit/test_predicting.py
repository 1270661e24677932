"""What clinicians would have said: the map, intervals and means against ppi_py, and whether predictions may be used."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.scores import both, lost, rescored, study, without
from scipy import stats
from sklearn.isotonic import IsotonicRegression

from calibration import headlines, predicting
from calibration.clustered_intervals import ClusteredMean
from calibration.decision import Decision, DecisionKind
from calibration.notes import note, told
from calibration.protocol import Protocol
from calibration.scores import Array, Integers
from calibration.table import agreement_rows
from calibration.values import COMBINED, NAN, AnalysisOptions
from calibration.verdict import JuryClaim, decisions
from data.errors import BadInput, TooFew


class Sample(NamedTuple):
    """Composites of clinicians, NaN where they rated nothing, those of the jury, and instances: (n,)."""

    clinicians: Array
    jury: Array
    instances: Integers

    def of(self, rows):
        """Return some of the responses."""
        return Sample(*(own[rows] for own in self))


def juried(n=60, seed=0):
    """Means of three whole scores and of two: many responses share a jury composite."""
    random = np.random.default_rng(seed)
    quality = 3 + random.normal(size=n)
    jury = np.clip(np.round(3 * (quality + 0.5 * random.normal(size=n))) / 3, 1, 5)
    return jury, np.clip(np.round(2 * (quality + 0.5 * random.normal(size=n))) / 2, 1, 5)


def test_the_same_three_scores_added_in_another_order_are_one_knot():
    thirds = np.array([(0.1 + 0.2) + 0.3, 0.1 + (0.2 + 0.3), 2.0])
    assert len(np.unique(thirds)) == 3
    assert len(predicting.isotonic_map(thirds, np.array([1.0, 2, 3]))[0]) == 2


@pytest.mark.parametrize("seed", range(5))
def test_map_and_interpolation_are_scikit_learns(seed):
    jury, clinicians = juried(seed=seed)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(jury, clinicians)
    asked = np.linspace(0.5, 5.5, 101)
    found = predicting.isotonic_map(jury, clinicians)
    assert np.interp(asked, *found) == pytest.approx(theirs.predict(asked), abs=1e-8)


FIVE = [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("jury", "clinicians", "knots", "values"),
    [
        # 3 then 2 becomes 2.5 twice, 4 then 3.5 becomes 3.75 twice; the rest stays.
        (FIVE, [1, 3, 2, 4, 3.5], FIVE, [1, 2.5, 2.5, 3.75, 3.75]),
        # 4 (twice, mean 3) above 5 (once, 1.5): one knot of weight 2, pooled to (3 + 3 + 1.5) / 3.
        ([4, 5, 4, 1], [2, 1.5, 4, 1], [1, 4, 5], [1, 2.5, 2.5]),
        (FIVE, [5, 4, 3, 3, 1], FIVE, [3.2] * 5),  # against the clinicians: everyone has their mean
    ],
)
def test_violators_are_pooled_as_by_hand(jury, clinicians, knots, values):
    found = predicting.isotonic_map(np.array(jury, float), np.array(clinicians, float))
    assert found[0] == pytest.approx(knots)
    assert found[1] == pytest.approx(values, abs=1e-9)


def ends(rated, jury, level, seed):
    """Return the intervals of new responses with these jury composites, each an instance of its own."""
    new = np.full(len(jury), np.nan), jury, 10_000_000 + np.arange(len(jury))
    every = (np.concatenate(both) for both in zip(rated, new, strict=True))
    low, high = predicting.conformal_interval(*every, level, seed)
    return low[len(rated.jury) :], high[len(rated.jury) :]


def simulate(instances=60, per=1, seed=0, noise=0.5):
    """Responses of instances that differ in quality, and in how far off the jury is."""
    random = np.random.default_rng(seed)
    numbers = np.repeat(np.arange(instances), per)
    own = 0.6 * random.normal(size=(2, instances))[:, numbers]
    quality = 3 + own[0] + 0.6 * random.normal(size=len(numbers))
    clinicians = quality + 0.3 * random.normal(size=len(numbers))
    jury = 4 + 0.5 * quality + own[1] + noise * random.normal(size=len(numbers))
    return Sample(clinicians, jury, numbers)


@pytest.mark.parametrize("level", ["0.5", "0.6", "0.7", "0.8", "0.9", "0.95", "0.99"])
def test_the_least_instances_and_the_rank_are_those_of_exact_arithmetic(level):
    # In floating point 1 / (1 - 0.9) is a little more than 10, and a ceiling would jump.
    exact = Fraction(level)
    least = math.ceil(1 / (1 - exact)) - 1
    assert predicting.least_instances(float(level)) == max(4, least)
    for m in range(max(1, least - 3), 300):
        values = np.arange(1.0, m + 1)[:, None]
        found = predicting.weighted_quantile(values, np.full(m, 1 / (m + 1)), float(level))
        rank = math.ceil((m + 1) * exact)
        assert found[0] == (rank if rank <= m else math.inf)


def test_responses_of_one_instance_share_its_weight():
    # Three instances at 0.25 each: the last has two responses at 0.125. At 0.6 the values 1, 2
    # (0.5) are not enough and 3 is; the first of the last instance's lies before 2.
    values = np.array([[1.0, 9.0], [2.0, 8.0], [1.5, 3.0], [3.0, 4.0]])
    weights = np.array([0.25, 0.25, 0.125, 0.125])
    assert predicting.weighted_quantile(values, weights, 0.6).tolist() == [2.0, 9.0]
    assert predicting.weighted_quantile(values, weights, 0.7).tolist() == [3.0, 9.0]
    assert np.isinf(predicting.weighted_quantile(values, weights, 0.8)).all()


def by_loops(rated, jury, parts, level):
    """Return the interval of CV+ as the paper writes it, in plain loops; one response an instance."""
    lows, highs = [], []
    for part, x, y in zip(parts, rated.jury, rated.clinicians, strict=True):
        left = parts != part
        made = predicting.isotonic_map(rated.jury[left], rated.clinicians[left])
        error = abs(y - np.interp(x, *made))
        lows.append(np.interp(jury, *made) - error)
        highs.append(np.interp(jury, *made) + error)
    n = len(lows)
    low, high = math.floor((n + 1) * (1 - level) + 1e-9), math.ceil((n + 1) * level)
    return sorted(lows)[low - 1], sorted(highs)[high - 1]


def width(rated, level=0.9, seed=0):
    low, high = ends(rated, rated.jury, level, seed)
    return float((high - low).mean())


@pytest.mark.parametrize("instances", [9, 10, 39])
def test_the_interval_is_that_of_the_paper_in_plain_loops(instances):
    rated = simulate(instances)
    parts = np.random.default_rng(5).permutation(instances) % min(10, instances)
    low, high = ends(rated, np.array([4.0, 5.5, 4.0]), 0.9, seed=5)
    for place, jury in enumerate([4.0, 5.5, 4.0]):
        assert (low[place], high[place]) == pytest.approx(by_loops(rated, jury, parts, 0.9))


def test_an_instance_counts_once_and_one_seed_gives_the_same_parts():
    rated = simulate(41)
    thrice = Sample(*(np.repeat(own, 3) for own in rated))
    assert width(thrice) == pytest.approx(width(rated))
    rated = simulate()
    first, again, other = (width(rated, seed=seed) for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize(("instances", "level"), [(0, 0.9), (3, 0.5), (8, 0.9), (17, 0.95)])
def test_too_few_instances_have_no_interval(instances, level):
    low, high = ends(simulate(instances), np.array([4.0]), level, 0)
    assert np.isnan([low, high]).all()
    enough = simulate(predicting.least_instances(level))
    assert np.isfinite(ends(enough, np.array([4.0]), level, 0)).all()


@pytest.mark.parametrize(
    ("change", "factor"),
    [
        (lambda one: one._replace(jury=one.jury + 3), 1),
        (lambda one: one._replace(clinicians=one.clinicians + 3), 1),
        (lambda one: one._replace(clinicians=one.clinicians * 2), 2),
        (lambda one: one._replace(instances=one.instances * 7), 1),
    ],
    ids=["jury shifted", "clinicians shifted", "clinicians scaled", "instances renumbered"],
)
def test_the_width_is_in_the_clinicians_points_and_knows_no_offset(change, factor):
    rated = simulate()
    assert width(change(rated), seed=3) == pytest.approx(factor * width(rated, seed=3))


def split(rated, level, seed):
    """Return the interval of a map of one half of the instances by the errors of the other."""
    random = np.random.default_rng(seed)
    names, place = np.unique(rated.instances, return_inverse=True)
    fitting = np.isin(place, random.permutation(len(names))[: len(names) // 2])
    made = predicting.isotonic_map(rated.jury[fitting], rated.clinicians[fitting])
    other = rated.of(~fitting)
    order = random.permutation(len(other.jury))
    one = other.of(order[np.unique(other.instances[order], return_index=True)[1]])
    errors = np.sort(np.abs(one.clinicians - np.interp(one.jury, *made)))
    radius = errors[math.ceil((len(errors) + 1) * (level - 1e-9)) - 1]
    return lambda jury: (np.interp(jury, *made) - radius, np.interp(jury, *made) + radius)


def coverage(interval, new):
    low, high = interval(new.jury)
    return ((low <= new.clinicians) & (new.clinicians <= high)).mean(), (high - low).mean()


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.3, 3.0], ids=["a good jury", "a useless jury"])
@pytest.mark.parametrize("per", [1, 4])
@pytest.mark.parametrize(("instances", "level"), [(18, 0.9), (56, 0.9), (56, 0.95)])
def test_intervals_hold_the_truth_as_often_as_they_say_and_are_narrower_than_halves(
    instances, level, per, noise
):
    found, halves = [], []
    for seed in range(600):
        every = simulate(instances + 20, per, seed=seed, noise=noise)
        new = every.instances >= instances
        rated, fresh = every.of(~new), every.of(new)
        interval = partial(ends, rated, level=level, seed=seed)
        found.append(coverage(interval, fresh))
        if instances == 56:
            halves.append(coverage(split(rated, level, seed), fresh))
    held, width = np.mean(found, axis=0)
    error = np.std([one[0] for one in found]) / math.sqrt(len(found))
    assert held > level - 0.005 - 3 * error
    if halves:
        assert width < 0.97 * np.mean(halves, axis=0)[1]


CLINICIANS = np.array([4.0, 3, 4.67, 2.33, 5, 3.67, 4.33, 1.67, 3, 4, 2.67, 5])
JURY = np.array([4.33, 3.33, 4.67, 3, 4.67, 4, 4.67, 2, 4, 4, 3.33, 4.67])
UNRATED = np.array(
    str.split("4.67 4 3.33 2.67 5 4.33 4 3.67 1.67 4.67 3 4.33 5 2.33 4 3.67 4.67 4.33 3.33 4"),
    float,
)
TRUTH = 3.5


def powered(sample):
    return predicting.prediction_powered_mean(*sample)


def mean_of(value, error, instances):
    """Return a mean with an error, between so many instances."""
    return ClusteredMean(value, np.array([error]), instances)


def singles(clinicians=CLINICIANS, jury=JURY):
    """Return responses of an instance each, of which the last have the jury's score alone."""
    given = np.append(clinicians, np.full(len(UNRATED), np.nan))
    return Sample(given, np.append(jury, UNRATED), np.arange(len(given)))


def clustered(n, unrated, jury="good", per=1, seed=0, whole_instances=False):
    """Responses of which a random sample is rated; the clinicians' mean of all is 3.5."""
    random = np.random.default_rng(seed)
    total = n + unrated
    numbers = np.repeat(np.arange(total // per), per)
    own = random.normal(size=(2, total // per))[:, numbers]
    quality = TRUTH + 0.6 * own[0] + 0.5 * random.normal(size=total)
    clinicians = quality + 0.3 * random.normal(size=total)
    noise = 0.3 * own[1] + 0.3 * random.normal(size=total)
    said = {
        "good": quality + noise,
        "biased": 2.5 + 0.5 * quality + noise,
        "useless": 3 + random.normal(size=total),
        "against": 7 - quality + noise,
    }[jury]
    if whole_instances:
        rated = np.isin(numbers, random.permutation(total // per)[: n // per])
    else:
        rated = np.isin(np.arange(total), random.permutation(total)[:n])
    return Sample(np.where(rated, clinicians, np.nan), said, numbers)


def test_mean_and_standard_error_are_those_of_ppi_py():
    # ppi_py 0.2.3 on these data: mean and normal 95 % interval. Its variances divide by n.
    theirs, low, high = 3.574832711680263, 3.168960915491109, 3.980704507869417
    found = powered(singles())
    assert found.corrected.value == pytest.approx(theirs, abs=1e-12)
    rated = np.var(CLINICIANS - found.weight * JURY) / 12
    unrated = found.weight**2 * np.var(UNRATED) / 20
    normal = stats.norm.ppf(0.975) * math.sqrt(rated + unrated)
    assert [theirs - normal, theirs + normal] == pytest.approx([low, high], abs=1e-12)
    assert found.corrected.error**2 == pytest.approx(rated * 12 / 11 + unrated * 20 / 19)


def test_a_jury_that_ranks_against_the_clinicians_is_not_believed_as_in_ppi_py():
    # ppi_py 0.2.3 with 6 - jury on the rated: 3.611666666666667, lambda cut to 0.
    found = powered(singles(jury=6 - JURY))
    assert found.weight == 0
    assert found.corrected.value == pytest.approx(3.611666666666667, abs=1e-12)
    assert found.corrected is found.clinicians
    assert found.gain == 1


def test_the_clinicians_alone_have_the_textbook_t_interval_and_gain_is_in_ratings():
    found = powered(singles()).clinicians
    error = stats.sem(CLINICIANS)
    ends, textbook = found.interval(0.9), stats.t.interval(0.9, 11, CLINICIANS.mean(), error)
    assert (found.error, ends.low, ends.high) == pytest.approx((error, *textbook))
    wide, narrow, none = (mean_of(3, error, 10) for error in (0.2, 0.1, 0.0))
    assert predicting.PredictionPowered(wide, narrow, 1).gain == pytest.approx(4)
    assert math.isnan(predicting.PredictionPowered(none, none, 1).gain)


def test_with_several_responses_lambda_is_the_ratio_of_docs_predict_and_no_other_has_less_error():
    sample = clustered(60, 180, per=4, seed=3)
    rated, names = ~np.isnan(sample.clinicians), np.unique(sample.instances)

    def parts(values, rows):
        values, of = values[rows], sample.instances[rows]
        centred, instances = values - values.mean(), len(set(of))
        sums = np.array([centred[of == one].sum() / rows.sum() for one in names])
        return math.sqrt(instances / (instances - 1)) * sums

    clinical = parts(sample.clinicians, rated)
    jury = parts(sample.jury, rated) - parts(sample.jury, ~rated)
    weight = powered(sample).weight
    assert weight == pytest.approx((clinical * jury).sum() / (jury**2).sum(), rel=1e-12)
    assert 0 < weight < 1
    errors = [((clinical - (weight + step) * jury) ** 2).sum() for step in (-0.01, 0.0, 0.01)]
    assert min(errors) == errors[1]


@pytest.mark.parametrize("per", [1, 4])
def test_the_error_is_near_the_jackknife_over_instances(per):
    sample = clustered(120, 240, per=per, seed=1)
    names = np.unique(sample.instances)
    left = [powered(sample.of(sample.instances != one)).corrected.value for one in names]
    jackknife = math.sqrt((len(names) - 1) * np.var(left))
    assert powered(sample).corrected.error == pytest.approx(jackknife, rel=0.06)


@pytest.mark.parametrize("n", [0, 1, 2, 4])
def test_of_few_rated_instances_no_more_is_said_than_they_tell(n):
    found = powered(singles(CLINICIANS[:n], JURY[:n]))
    assert math.isnan(found.corrected.value) == (n == 0)
    assert math.isnan(found.corrected.error) == (n < 2)
    assert math.isnan(found.corrected.interval(0.9).low) == (n < 2)
    assert n == 0 or found.weight == 0


def test_rated_responses_of_one_instance_have_a_mean_and_no_error():
    found = powered(singles()._replace(instances=np.append(np.zeros(12, int), np.arange(20))))
    assert found.corrected.value == pytest.approx(CLINICIANS.mean())
    assert math.isnan(found.corrected.error)
    assert math.isnan(found.gain)


def test_strata_are_weighted_by_their_size_not_by_how_much_of_them_was_rated():
    strata = [mean_of(4, 0.1, 10), mean_of(2, 0.3, 20)]
    mean, error, ends = predicting.stratified(strata, [300, 100], 0.9)
    assert (mean, error) == pytest.approx((3.5, math.sqrt((0.75 * 0.1) ** 2 + (0.25 * 0.3) ** 2)))
    parts = np.array([(0.75 * 0.1) ** 2, (0.25 * 0.3) ** 2])
    freedom = parts.sum() ** 2 / (parts**2 / [9, 19]).sum()
    by_hand = stats.t.interval(0.9, freedom, loc=3.5, scale=math.sqrt(parts.sum()))
    assert (ends.low, ends.high) == pytest.approx(by_hand)


def simulated(n, unrated, jury, per=1, whole=False, reps=1500):
    """Return how often the two intervals hold the truth, and the ratio of their widths."""
    held, widths = [], []
    for seed in range(reps):
        found = powered(clustered(n, unrated, jury, per, seed, whole))
        ends = [one.interval(0.95) for one in (found.corrected, found.clinicians)]
        held.append([one.low <= TRUTH <= one.high for one in ends])
        widths.append([one.high - one.low for one in ends])
    mean = np.mean(widths, axis=0)
    return *np.mean(held, axis=0), mean[0] / mean[1]


@pytest.mark.slow
@pytest.mark.parametrize("jury", ["good", "biased", "useless", "against"])
@pytest.mark.parametrize(
    ("n", "unrated", "per", "whole"),
    [
        *((20, 400, 1, False), (60, 400, 1, False), (60, 60, 1, False), (100, 400, 4, False)),
        *((100, 400, 4, True), (60, 60, 4, False)),
    ],
)
def test_intervals_hold_the_truth_whatever_the_jury_is_worth(n, unrated, per, whole, jury):
    corrected, alone, ratio = simulated(n, unrated, jury, per, whole)
    # 95 % of 1,500 studies: the error of simulation is 0.6 points; small samples cost one more.
    assert corrected > 0.93
    assert alone > 0.93
    assert ratio < 1.03
    if jury == "good" and unrated > n:
        assert ratio < 0.85


@pytest.mark.parametrize(
    ("change", "back"),
    [
        (lambda jury, own: (jury, own + 2), lambda value: value - 2),
        (lambda jury, own: (jury, own * 3), lambda value: value / 3),
        (lambda jury, own: (jury[::-1], own[::-1]), lambda value: value),
        (lambda jury, own: (np.tile(jury, 2), np.tile(own, 2)), lambda value: value),
        (lambda jury, own: (jury**2, own), lambda value: value),
    ],
    ids=["shift", "scale", "permutation", "everything twice", "a rising change of the jury"],
)
def test_values_follow_the_clinicians_and_only_the_jurys_order(change, back):
    jury, clinicians = juried()
    _, before = predicting.isotonic_map(jury, clinicians)
    _, after = predicting.isotonic_map(*change(jury, clinicians))
    assert back(after) == pytest.approx(before)


@pytest.mark.parametrize("per", [1, 4])
@pytest.mark.parametrize(
    ("change", "factor", "offset"),
    [
        (lambda one: one._replace(clinicians=one.clinicians + 2), 1, 2),
        (lambda one: one._replace(jury=one.jury + 2), 1, 0),
        (lambda one: one._replace(clinicians=3 * one.clinicians, jury=3 * one.jury), 3, 0),
        (lambda one: one.of(slice(None, None, -1)), 1, 0),
        (lambda one: one._replace(instances=9 - one.instances), 1, 0),
    ],
    ids=["clinicians shifted", "jury shifted", "all scaled", "permuted", "instances renamed"],
)
def test_shifts_scale_and_order_change_only_what_they_must(change, factor, offset, per):
    sample = clustered(40, 80, per=per)
    before, after = powered(sample), powered(change(sample))
    assert after.corrected.value == pytest.approx(factor * before.corrected.value + offset)
    assert after.corrected.error == pytest.approx(factor * before.corrected.error)
    assert after.weight == pytest.approx(before.weight)


def sampled(scores, share, seed=1):
    """Take the clinicians' ratings of a random share of the instances out."""
    names = np.unique(scores.responses["instance_id"].to_numpy(dtype=str))
    left = np.random.default_rng(seed).random(len(names)) > share
    rows = scores.ratings["instance_id"].isin(names[left])
    return without(scores, rows & (scores.ratings["kind"] == "clinician"))


def predict(scores, level=0.9, **asked):
    options = AnalysisOptions(**{"reps": 100} | asked)
    rows = agreement_rows(scores, options)
    verdicts = decisions(rows, JuryClaim(Protocol(0.2, jurors=("j",))))
    rows, responses = predicting.predictions(scores, options, verdicts, level)
    return SimpleNamespace(rows=rows, responses=responses)


def means(scores, kind):
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
    low, high = predicting.conformal_interval(*every, 0.9, 4)
    mapped = np.interp(jury[names], *predicting.isotonic_map(every[1][is_rated], given[is_rated]))
    found = predict(scores, seed=4)
    table = found.responses.set_index("response_id")
    assert list(found.responses.columns) == list(predicting.COLUMNS)
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
    weighed = (40 * parts[0].mean_corrected + 120 * parts[1].mean_corrected) / 160
    assert combined.mean_corrected == pytest.approx(weighed)
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


def verdict_of(kind):
    reasons = (note("all_above", "all_above", margin=0.1),)
    known = {"reasons": reasons, "next": note("do_see_notes", "do_see_notes")}
    return Decision("agreement", kind, estimate=0.01, low=-0.05, high=0.07, **known)


def study_of(*kinds, **other):
    """Return the rows and verdicts of a study; the last of several kinds is of all combined."""
    names = [*["b", "c", "d"][: len(kinds) - 1], COMBINED] if len(kinds) > 1 else ["b"]
    of = dict(zip(names, kinds, strict=True))
    rows = [predicting.PredictedRow(name, verdict=kind.value, **other) for name, kind in of.items()]
    return rows, {name: verdict_of(kind) for name, kind in of.items()}


@st.composite
def studies(draw):
    """Draw the rows of a study of one to three benchmarks, and of all combined if several."""
    number = draw(st.integers(1, 3))
    kinds = [draw(st.sampled_from(KINDS)) for _ in range(number + (number > 1))]
    told = st.lists(st.sampled_from([*REAL_NOTES, SIMULATED]), max_size=3).map(tuple)
    rows, verdicts = study_of(*kinds)
    unlike = st.sampled_from([NAN, 0.0, 0.9])
    drawn = [replace(row, rated_unrated_difference=draw(unlike), notes=draw(told)) for row in rows]
    return drawn, verdicts


def parts(rows):
    return [row for row in rows if row.benchmark != COMBINED]


@given(studies())
def test_predictions_are_called_usable_only_where_the_studys_verdict_is_non_inferior(study):
    rows, verdicts = study
    found = predicting.decide(rows, verdicts)
    assert (found.kind is DecisionKind.SIMULATED) == any(row.simulated for row in rows)
    if found.kind in predicting.USABLE:
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
        *((["non_inferior"], "usable"), (["too_few"], "too_few"), (["inferior"], "inferior")),
        *((["no_protocol"], "no_protocol"), (["non_inferior"] * 3, "usable")),
        (["too_few", "non_inferior", "non_inferior"], "usable_combined"),
        (["non_inferior", "non_inferior", "inconclusive"], "inconclusive"),
        (["non_inferior", "non_inferior", "undefined"], "usable"),
        (["non_inferior", "too_few", "undefined"], "too_few"),
    ],
)
def test_the_kind_follows_from_the_verdict_that_decides(kinds, expected):
    assert predicting.decide(*study_of(*map(DecisionKind, kinds))).kind.value == expected


def test_figures_reasons_and_next_step_are_the_verdicts():
    found, verdict = predicting.decide(*study_of(FEW)), verdict_of(FEW)
    assert (found.estimate, found.low, found.high) == (0.01, -0.05, 0.07)
    assert (found.reasons, found.next) == (verdict.reasons, verdict.next)
    assert predicting.decide(*study_of(GOOD)).next is None


def test_rated_responses_unlike_the_others_are_a_reason_and_the_next_thing_to_do():
    unlike = note("rated_unlike", "rated_unlike", rated=4.0, unrated=3.0, deviations=0.9)
    found = predicting.decide(*study_of(GOOD, rated_unrated_difference=0.9, notes=(unlike,)))
    assert found.reasons[-1] == note("of_benchmark", "of_benchmark", benchmark="b", what=unlike)
    assert found.next == note("do_rate_at_random", "do_rate_at_random")
    assert "if the responses that clinicians rated are a random sample" in found.headline
