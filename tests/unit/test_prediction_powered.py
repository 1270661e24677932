"""Prediction-powered means: ppi_py's numbers, variances by hand, a jackknife, simulated coverage."""

import math

import numpy as np
import pytest
from kit.rated_sample import RatedSample
from scipy import stats

from calibration.clustered_intervals import ClusteredMean
from calibration.predicting import (
    PredictionPowered,
    prediction_powered_mean,
    stratified,
)

CLINICIANS = np.array([4.0, 3, 4.67, 2.33, 5, 3.67, 4.33, 1.67, 3, 4, 2.67, 5])
JURY = np.array([4.33, 3.33, 4.67, 3, 4.67, 4, 4.67, 2, 4, 4, 3.33, 4.67])
UNRATED = np.array(
    [
        4.67,
        4,
        3.33,
        2.67,
        5,
        4.33,
        4,
        3.67,
        1.67,
        4.67,
        3,
        4.33,
        5,
        2.33,
        4,
        3.67,
        4.67,
        4.33,
        3.33,
        4,
    ]
)
TRUTH = 3.5


def powered(sample):
    return prediction_powered_mean(*sample.arrays)


def mean_of(value, error, instances):
    """Return a mean with an error, between so many instances."""
    return ClusteredMean(value, np.array([error]), instances)


def singles(clinicians=CLINICIANS, jury=JURY, unrated=UNRATED):
    """Every response its own instance."""
    n = len(clinicians)
    return RatedSample(clinicians, jury, np.arange(n), unrated, n + np.arange(len(unrated)))


def simulate(n, unrated, jury="good", per=1, seed=0, whole_instances=False):
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
    return RatedSample(
        clinicians[rated], said[rated], numbers[rated], said[~rated], numbers[~rated]
    )


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


def test_the_clinicians_alone_have_the_textbook_t_interval():
    found = powered(singles()).clinicians
    error = stats.sem(CLINICIANS)

    assert found.error == pytest.approx(error)
    ends = found.interval(0.9)
    assert (ends.low, ends.high) == pytest.approx(
        stats.t.interval(0.9, 11, loc=CLINICIANS.mean(), scale=error)
    )


def test_the_gain_is_how_many_more_ratings_would_help_as_much():
    wide, narrow, none = (mean_of(3, error, 10) for error in (0.2, 0.1, 0.0))
    assert PredictionPowered(wide, narrow, 1).gain == pytest.approx(4)
    assert math.isnan(PredictionPowered(none, none, 1).gain)


def test_with_several_responses_lambda_is_the_ratio_of_docs_predict_and_no_other_has_less_error():
    sample = simulate(60, 180, per=4, seed=3)
    names = set(sample.instances) | set(sample.unrated_instances)

    def parts(values, of, size):
        centred, instances = values - values.mean(), len(set(of))
        sums = np.array([centred[of == one].sum() / size for one in names])
        return math.sqrt(instances / (instances - 1)) * sums

    clinical = parts(sample.clinicians, sample.instances, 60)
    jury = parts(sample.jury, sample.instances, 60)
    jury -= parts(sample.unrated_jury, sample.unrated_instances, 180)
    weight = powered(sample).weight
    assert weight == pytest.approx((clinical * jury).sum() / (jury**2).sum(), rel=1e-12)
    assert 0 < weight < 1
    errors = [((clinical - (weight + step) * jury) ** 2).sum() for step in (-0.01, 0.0, 0.01)]
    assert min(errors) == errors[1]


def without(sample, instance):
    """Leave one instance out, rated and unrated."""
    rated, other = sample.instances != instance, sample.unrated_instances != instance
    left = sample.of(rated)
    unrated = sample.unrated_jury[other], sample.unrated_instances[other]
    return RatedSample(left.clinicians, left.jury, left.instances, *unrated)


@pytest.mark.parametrize("per", [1, 4])
def test_the_error_is_near_the_jackknife_over_instances(per):
    sample = simulate(120, 240, per=per, seed=1)
    names = np.unique(np.concatenate([sample.instances, sample.unrated_instances]))
    left = [powered(without(sample, one)).corrected.value for one in names]
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
    found = powered(RatedSample(CLINICIANS, JURY, np.zeros(12, dtype=int), UNRATED, np.arange(20)))

    assert found.corrected.value == pytest.approx(CLINICIANS.mean())
    assert math.isnan(found.corrected.error)
    assert math.isnan(found.gain)


def test_strata_are_weighted_by_their_size_not_by_how_much_of_them_was_rated():
    mean, error, ends = stratified([mean_of(4, 0.1, 10), mean_of(2, 0.3, 20)], [300, 100], 0.9)

    assert (mean, error) == pytest.approx((3.5, math.sqrt((0.75 * 0.1) ** 2 + (0.25 * 0.3) ** 2)))
    parts = np.array([(0.75 * 0.1) ** 2, (0.25 * 0.3) ** 2])
    freedom = parts.sum() ** 2 / (parts**2 / [9, 19]).sum()
    by_hand = stats.t.interval(0.9, freedom, loc=3.5, scale=math.sqrt(parts.sum()))
    assert (ends.low, ends.high) == pytest.approx(by_hand)


SCORED, PLACES = ("clinicians", "jury", "unrated_jury"), ("instances", "unrated_instances")


@pytest.mark.parametrize("per", [1, 4])
@pytest.mark.parametrize(
    ("names", "change", "factor", "offset"),
    [
        (["clinicians"], lambda value: value + 2, 1, 2),
        (["jury", "unrated_jury"], lambda value: value + 2, 1, 0),
        (SCORED, lambda value: 3 * value, 3, 0),
        ((*SCORED, *PLACES), lambda value: value[::-1], 1, 0),
        (PLACES, lambda value: 9 - value, 1, 0),
    ],
    ids=["clinicians shifted", "jury shifted", "all scaled", "permuted", "instances renamed"],
)
def test_shifts_scale_and_order_change_only_what_they_must(names, change, factor, offset, per):
    sample = simulate(40, 80, per=per)
    before = powered(sample)
    values = vars(sample)

    after = powered(RatedSample(**values | {name: change(values[name]) for name in names}))

    assert after.corrected.value == pytest.approx(factor * before.corrected.value + offset)
    assert after.corrected.error == pytest.approx(factor * before.corrected.error)
    assert after.weight == pytest.approx(before.weight)


def simulated(n, unrated, jury, per=1, whole=False, reps=1500):
    """Return how often the two intervals hold the truth, and the ratio of their widths."""
    held, widths = [], []
    for seed in range(reps):
        found = powered(simulate(n, unrated, jury, per, seed, whole))
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
        (20, 400, 1, False),
        (60, 400, 1, False),
        (60, 60, 1, False),
        (100, 400, 4, False),
        (100, 400, 4, True),
        (60, 60, 4, False),
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
