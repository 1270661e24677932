"""The jackknife interval of an ICC: what is left out, its formula, and how often it holds."""

from dataclasses import replace

import numpy as np
import pytest
from kit.composites import JURY
from kit.verdict_studies import Design, drawn, grid_of, loading
from scipy import stats

from calibration.columns import column_icc, columns
from calibration.intervals import (
    icc_difference,
    jackknife_error,
    jackknife_interval,
    left_out,
)
from calibration.weighted import scorer_iccs


def jury_icc(grid, weights):
    return scorer_iccs(grid, [JURY], "paper", weights)[:, 0]


def test_each_instance_is_left_out_once_and_many_in_even_groups():
    few, many = left_out(5), left_out(1001)
    assert few.shape == (6, 5)
    assert (few[0] == 1).all()
    assert sorted(np.flatnonzero(row == 0).tolist() for row in few[1:]) == [[n] for n in range(5)]
    assert many.shape == (201, 1001)
    assert ((many[1:] == 0).sum(axis=0) == 1).all()
    assert set((many[1:] == 0).sum(axis=1)) == {5, 6}
    assert (left_out(1001) == many).all()


def test_it_is_the_icc_of_the_study_without_each_instance_taken_back_from_fishers_z():
    table = drawn(Design(3, 0.4, 30), loading(Design(3, 0.4, 30), 0.0), np.random.default_rng(0))
    values = jury_icc(grid_of(table), left_out(30))
    own = []
    for rest in (table, *(table.drop(index=n) for n in range(30))):
        grid = grid_of(rest.reset_index(drop=True))
        pair = columns(grid, JURY, "paper")
        own.append(column_icc(pair.clinicians, pair.scorer, "paper"))
    assert sorted(values[1:]) == pytest.approx(sorted(own[1:]))
    z = -np.log(1 - np.array(own)) / 2
    about = z[1:] - z[1:].mean()
    freedom = 2 * 30 / (np.mean(about**4) / np.mean(about**2) ** 2 - 1)
    half = stats.t.ppf(0.975, min(freedom, 29)) * np.sqrt(29 * np.mean(about**2))
    ends = jackknife_interval(values)
    assert (ends.low, ends.high) == pytest.approx(
        tuple(1 - np.exp(-2 * (z[0] + np.array([-half, half]))))
    )
    assert jackknife_error(values) == pytest.approx(
        np.sqrt(29 / 30 * ((values[1:] - values[1:].mean()) ** 2).sum())
    )


def test_the_interval_of_a_difference_narrows_where_the_same_instances_move_both():
    first, moves = np.array([0.5, 0.4, 0.55, 0.52, 0.49]), np.array([0, 0.02, -0.01, 0.03, -0.04])
    alike = icc_difference(first, first + moves / 10)
    unlike = icc_difference(first, 0.5 + moves)
    assert alike.low < 0 < alike.high
    assert alike.high - alike.low < 0.6 * (unlike.high - unlike.low)


@pytest.mark.parametrize("values", [[0.5, 0.4], [0.5, np.nan, 0.4, 0.3], [np.nan, 0.1, 0.2, 0.3]])
def test_what_is_undefined_anywhere_has_no_interval(values):
    ends = jackknife_interval(np.array(values))
    assert np.isnan([ends.low, ends.high, jackknife_error(np.array(values))]).all()


@pytest.mark.slow
@pytest.mark.parametrize("clinicians", [2, 4])
@pytest.mark.parametrize("ceiling", [False, True])
def test_it_holds_the_truth_as_often_as_it_says(clinicians, ceiling):
    design = Design(clinicians, 0.4, 100, ceiling=ceiling)
    random, loaded = np.random.default_rng(3), loading(design, 0.0)
    large = grid_of(drawn(replace(design, responses=200_000), loaded, random))
    pair = columns(large, JURY, "paper")
    truth = column_icc(pair.clinicians, pair.scorer, "paper")
    found = [
        jackknife_interval(jury_icc(grid_of(drawn(design, loaded, random)), left_out(100)))
        for _ in range(400)
    ]
    held = np.mean([ends.low <= truth <= ends.high for ends in found])
    assert held + 2 * np.sqrt(0.95 * 0.05 / 400) >= 0.93
