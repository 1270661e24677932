"""The share of failing responses, corrected for the errors of who flags them."""

import math

import numpy as np
import pandas as pd
import pytest

from calibration.corrected_rate import Share, corrected_rate, fieller
from calibration.detection import detection
from calibration.scores import RubricShape, Scores
from calibration.values import AnalysisOptions

DESIGNS = [(rate, n, s) for rate in (0.01, 0.05, 0.2) for n in (100, 400) for s in (0.7, 0.95)]


def study(random, rate, rated, sensitivity, total=2000, specificity=0.9, size=1):
    """Return flags, clusters, where the rated ones stand, and which of them fail."""
    failing = np.repeat(random.random(total // size) < rate, size)
    chance = np.where(failing, sensitivity, 1 - specificity)
    flagged = random.random(total) < chance
    clusters = np.arange(total) // size
    chosen = np.sort(random.choice(total // size, rated // size, replace=False))
    where = (chosen[:, None] * size + np.arange(size)).ravel()
    return flagged, clusters, where, failing[where]


def covered(seed, studies, *design, **options):
    random, hits, known = np.random.default_rng(seed), 0, 0
    for _ in range(studies):
        _, ends = corrected_rate(*study(random, *design, **options))
        if not math.isnan(ends.low):
            known += 1
            hits += ends.low <= design[0] <= ends.high
    return hits / known


def test_the_rate_is_rogan_and_gladens():
    # 4 of 5 failing and 10 of 95 others flagged of the rated; 300 of 1,000 in all
    failing = np.arange(100) < 5
    flagged = np.zeros(1000, bool)
    flagged[[0, 1, 2, 3, *range(5, 15), *range(100, 386)]] = True
    rate, ends = corrected_rate(flagged, np.arange(1000), np.arange(100), failing)
    assert rate == pytest.approx((0.3 - 10 / 95) / (0.8 - 10 / 95))
    assert ends.low < rate < ends.high


def test_where_all_are_rated_nothing_is_corrected():
    failing, flagged = np.arange(50) < 10, np.arange(50) % 3 == 0
    rate, ends = corrected_rate(flagged, np.arange(50), np.arange(50), failing)
    assert rate == pytest.approx(0.2)
    assert (ends.low, ends.high) == pytest.approx((0.1124, 0.3304), abs=0.001)  # Wilson


@pytest.mark.parametrize(
    ("failing", "flags"),
    [([0] * 6, [1, 0, 0, 0, 0, 0]), ([1] * 6, [1, 0, 0, 0, 0, 0]), ([1, 1, 0, 0], [0, 1, 1, 0])],
    ids=["none fails", "all fail", "flags tell nothing"],
)
def test_where_flags_say_nothing_of_failing_there_is_no_rate(failing, flags):
    flagged = np.array([*flags, 0, 1], bool)
    rated = np.arange(len(flags))
    rate, ends = corrected_rate(flagged, np.arange(len(flagged)), rated, np.array(failing, bool))
    assert math.isnan(rate)
    assert math.isnan(ends.low)
    assert math.isnan(ends.high)


def test_flags_that_hardly_tell_leave_every_rate_open():
    assert fieller(Share(0.3, 1000), Share(0.4, 8), Share(0.3, 90)).high == 1.0


def test_the_errors_of_both_kinds_widen_the_interval():
    p, s, f = Share(0.2, 2000), Share(0.8, 400), Share(0.1, 400)
    known = fieller(p, s, f)
    for fewer in ((p, Share(0.8, 20), f), (p, s, Share(0.1, 20)), (Share(0.2, 100), s, f)):
        wider = fieller(*fewer)
        assert wider.high - wider.low > known.high - known.low


@pytest.mark.parametrize("design", [(0.05, 100, 0.7), (0.2, 400, 0.95)])
def test_the_interval_holds_the_truth_as_often_as_it_says(design):
    assert 0.90 < covered(1, 300, *design) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_the_interval_covers_93_to_97_of_100_studies(design):
    assert 0.925 < covered(7, 4000, *design) < 0.98  # of 4,000: 95 is known to 0.7


@pytest.mark.slow
@pytest.mark.parametrize(("total", "size"), [(500, 1), (2000, 4)])
def test_it_covers_where_most_are_rated_and_where_an_instance_has_several(total, size):
    assert 0.925 < covered(8, 4000, 0.2, 400, 0.8, total=total, size=size) < 0.985


def test_responses_that_no_clinician_rated_count_in_the_rate_and_nowhere_else():
    random = np.random.default_rng(3)
    truth = np.where(random.random(400) < 0.2, 1.0, 5.0)
    juror = np.where(random.random(400) < 0.9, truth, 3.0)
    names = [f"r{n}" for n in range(400)]
    about = pd.DataFrame({"response_id": names, "instance_id": names, "benchmark": "b"})
    rows = [(name, "j", "juror", juror[n]) for n, name in enumerate(names)]
    rows += [(names[n], "c", "clinician", truth[n]) for n in range(100)]
    long = pd.DataFrame(rows, columns=["response_id", "rater", "kind", "score"])
    long = long.assign(criterion="safety", pass_=0, replicate=0).merge(about, on="response_id")
    scores = Scores(long, about, {"b": RubricShape(("safety",), 1, 5, (("safety", 2.0),))})
    row = next(one for one in detection(scores, AnalysisOptions()) if one.scorer == "jury")

    assert (row.n, row.n_all) == (100, 400)
    flagged = (juror <= 2).mean()
    found = (flagged - (1 - row.specificity)) / (row.sensitivity - (1 - row.specificity))
    assert row.corrected_rate == pytest.approx(found)
    assert row.corrected_low < row.corrected_rate < row.corrected_high
    for name in ("specificity", "ppv", "npv"):
        low, high = (getattr(row, f"{name}_{end}") for end in ("low", "high"))
        assert low <= getattr(row, name) <= high
