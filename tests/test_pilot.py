"""What a pilot says: its figures by definition, by other statistics, and in simulated pilots."""

from itertools import permutations

import numpy as np
import pytest
from kit.scores import rows_of, scope_of, study

from calibration.bootstrap import draw_counts
from calibration.crossed import clinicians_mixed_model
from calibration.notes import told
from calibration.planning import (
    clinicians_reliability,
    jury_reliability,
    paired_correlation,
)
from calibration.rating_matrix import z_within_raters
from calibration.scope import scopes
from calibration.table import agreement_table
from calibration.values import AnalysisOptions


def readings(n=80, r=0.4, clinicians=4, per=2, seed=0):
    """Return composites of clinicians, `per` of whom read a response, and of two jurors."""
    random = np.random.default_rng(seed)
    quality = random.normal(size=(n, 1))
    doctors = np.sqrt(r) * quality + np.sqrt(1 - r) * random.normal(size=(n, clinicians))
    doctors += random.normal(size=clinicians)
    doctors[np.argsort(random.random((n, clinicians)), axis=1) >= per] = np.nan
    return np.hstack([doctors, quality + random.normal(size=(n, 2))])


def by_definition(composites):
    """Return the correlation over all ordered pairs of z on a response, about their common mean."""
    z = z_within_raters(composites)
    rows = [own[~np.isnan(own)] for own in z]
    pairs = np.array([pair for own in rows for pair in permutations(own, 2)])
    used = np.concatenate([own for own in rows if len(own) > 1])
    about = pairs - used.mean()
    return (about[:, 0] * about[:, 1]).sum() / (about[:, 0] ** 2).sum()


@pytest.mark.parametrize("per", [2, 3, 4])
def test_the_single_rater_icc_is_the_correlation_over_pairs_of_readings(per):
    table = readings(per=per)
    found = clinicians_reliability(scope_of(table, 4))
    assert found.icc == pytest.approx(by_definition(table[:, :4]))


def test_every_resample_takes_every_z_anew():
    table = readings(n=40, per=3)
    table[7, :4] = np.nan
    table[8, 1:4] = np.nan
    scope = scope_of(table, 4, per=2)
    counts = next(draw_counts(20, reps=20, seed=1))
    drawn = paired_correlation(scope.grid, counts)
    for own, value in zip(counts.astype(int), drawn, strict=True):
        rows = np.repeat(np.arange(40), own[scope.grid.clusters])
        assert value == pytest.approx(by_definition(table[rows, :4]))


def test_it_is_near_the_mixed_model_where_clinicians_differ_in_severity_alone():
    scope = scope_of(readings(n=300, per=3), 4)
    model = clinicians_mixed_model(scope.grid).consistency()
    assert clinicians_reliability(scope).icc == pytest.approx(model, abs=0.02)


@pytest.mark.parametrize("truth", [0.2, 0.6])
def test_the_truth_is_found_on_average(truth):
    iccs = [
        clinicians_reliability(scope_of(readings(200, truth, seed=seed), 4, reps=0)).icc
        for seed in range(30)
    ]
    assert np.mean(iccs) == pytest.approx(truth, abs=0.025)


def test_severity_spread_order_and_a_clinician_of_no_variance_change_nothing():
    table = readings()
    found = clinicians_reliability(scope_of(table, 4)).icc
    moved = table * np.array([2, 1, 3, 1, 1, 1]) + np.arange(6)
    assert clinicians_reliability(scope_of(moved, 4)).icc == pytest.approx(found)
    turned = table[::-1][:, [3, 1, 0, 2, 4, 5]]
    assert clinicians_reliability(scope_of(turned, 4)).icc == pytest.approx(found)
    flat = np.insert(table, 4, 3.0, axis=1)
    assert clinicians_reliability(scope_of(flat, 5)).icc == pytest.approx(found)


def test_an_interval_over_instances_is_around_the_icc_and_the_counts_are_told():
    found = clinicians_reliability(scope_of(readings(), 4, per=2))
    assert found.low < found.icc < found.high
    assert (found.n_responses, found.n_instances) == (80, 40)


def test_the_jurys_icc_and_interval_are_those_of_the_table():
    scores = study(n=20, per=2)
    row = rows_of(agreement_table(scores, reps=100))["aci", "jury"]
    found = jury_reliability(next(scopes(scores, AnalysisOptions(reps=100))))
    assert (found.icc, found.low, found.high) == (row.icc, row.low, row.high)
    assert (found.n_responses, found.n_instances) == (row.n_responses, row.n_instances)


def test_what_cannot_be_told_is_undefined_with_a_reason():
    alone = scope_of(readings(per=1), 4)
    found = clinicians_reliability(alone)
    assert np.isnan([found.icc, found.low, found.high]).all()
    assert "undefined: 0 responses have two clinicians with a z" in told(found.notes)


def test_without_a_jury_there_is_no_reliability_of_one():
    scope = scope_of(readings()[:, :4], 4)
    assert jury_reliability(scope).told("nobody_on_jury")


def test_one_instance_has_no_interval():
    scope = scope_of(readings(), 4, per=80)
    for found in (clinicians_reliability(scope), jury_reliability(scope)):
        assert np.isfinite(found.icc)
        assert np.isnan([found.low, found.high]).all()
        assert found.told("one_instance")


def test_few_composites_few_instances_and_simulated_raters_are_told():
    scope = scope_of(readings(8), 4, simulated={"dr0", "j1"})
    found = clinicians_reliability(scope)
    assert "fewer than 5 composites" in told(found.notes)
    assert "fewer than 20 instances" in told(found.notes)
    assert found.simulated == ("dr0",)
    assert jury_reliability(scope).simulated == ("dr0", "j1")
