"""Responses for a width: what is simulated is what calibrate computes, and the number keeps the width."""

import numpy as np
import pytest
from kit.composites import JURY
from kit.verdict_studies import grid_of
from pandas import DataFrame

from calibration.intervals import jackknife_interval, left_out
from calibration.planning import (
    PlanRow,
    SimulatedStudies,
    assumed_rows,
    icc_with_mean,
    n_for_width,
    single_of,
)
from calibration.values import PlanOptions
from calibration.weighted import scorer_iccs


def raters(single, clinicians, studies, n, seed=0):
    """Return scores of clinicians and of a jury like them, shape (studies, n, clinicians + 1)."""
    random = np.random.default_rng(seed)
    worth = np.sqrt(single) * random.normal(size=(studies, n, 1))
    return worth + np.sqrt(1 - single) * random.normal(size=(studies, n, clinicians + 1))


def calibrated(scores):
    """Return the jury's ICC, then without each response, of one study as calibrate computes them."""
    table = DataFrame(scores[:, :-1], columns=[f"dr{i}" for i in range(scores.shape[1] - 1)])
    grid = grid_of(table.assign(**dict.fromkeys(JURY.members, scores[:, -1])))
    return scorer_iccs(grid, [JURY], "paper", left_out(len(scores)))[:, 0]


@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_icc_with_the_mean_of_clinicians_is_that_of_a_large_study(k):
    (large,) = raters(0.4, k, 1, 200_000)
    z = (large - large.mean(axis=0)) / large.std(axis=0)
    cov = np.cov(z[:, :-1].mean(axis=1), z[:, -1])
    assert icc_with_mean(0.4, k) == pytest.approx(4 * cov[0, 1] / cov.sum(), abs=0.01)
    assert single_of(icc_with_mean(0.4, k), k) == pytest.approx(0.4)


@pytest.mark.parametrize("k", [1, 2])
def test_the_widths_are_those_of_the_intervals_that_calibrate_computes(k):
    scores = raters(0.4, k, 60, 80)
    studies = SimulatedStudies(scores[:, :, :-1], scores[:, :, -1], np.ones((80, k), dtype=bool))
    ends = [jackknife_interval(calibrated(one)) for one in scores]
    widths = np.array([end.high - end.low for end in ends])

    mean, assured = studies.widths(80, 0.8)

    assert mean == pytest.approx(widths.mean(), rel=0.03)
    assert assured == pytest.approx(np.quantile(widths, 0.8), rel=0.04)


@pytest.mark.slow
@pytest.mark.parametrize(("single", "k"), [(0.31, 1), (0.31, 2), (0.5, 2), (0.4, 3)])
@pytest.mark.parametrize("width", [0.2, 0.3])
def test_the_numbers_give_the_width_with_assurance_and_the_intervals_hold_the_truth(
    single, k, width
):
    n = n_for_width(single, k, 0.0, width)
    row = PlanRow("", single, k, k)
    studies = SimulatedStudies.of(row, n, seed=1)
    found = [jackknife_interval(calibrated(one)) for one in raters(single, k, 200, n, seed=1)]
    widths = np.array([end.high - end.low for end in found])
    truth = icc_with_mean(single, k)
    assert np.mean(widths <= width) >= 0.72
    assert studies.widths(n, 0.8)[1] == pytest.approx(width, rel=0.05)
    assert np.mean([end.low <= truth <= end.high for end in found]) >= 0.9


def test_a_narrower_interval_more_assurance_or_a_ceiling_take_more_responses():
    few = n_for_width(0.5, 2, 0.0, 0.3)
    assert n_for_width(0.5, 2, 0.0, 0.15) > 2.5 * few
    assert n_for_width(0.5, 2, 0.0, 0.3, assurance=0.95) > few
    assert n_for_width(0.5, 2, 0.7, 0.3) > 1.3 * few


def test_of_very_many_responses_the_widths_fall_as_the_root_of_their_number():
    row = PlanRow("", 0.4, 1, 1)
    few, many = (SimulatedStudies.of(row, n, 0).widths(n, 0.8)[1] for n in (5000, 20_000))
    assert many == pytest.approx(few / 2)


def test_a_plan_of_so_many_responses_has_their_widths():
    (row,) = assumed_rows(PlanOptions(responses=100), None, 0.3)
    assert row.n == 100
    assert row.n_for_width > 150
    assert 0.3 < row.width_expected < row.width_assured
