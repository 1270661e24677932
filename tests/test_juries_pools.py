"""Juries by median and by learnt weights, beside numpy and scipy; juries without an ICC."""

import math

import numpy as np
import pytest
from kit.composites import METHODS, NAN, simulate
from kit.scores import note_of, scope_of
from scipy.optimize import nnls

from calibration.agreement import PanelColumns, column_icc, columns
from calibration.juries.pools import median_of_columns
from calibration.juries.ranking import RankingOptions, jury_ranking
from calibration.rating_matrix import z_within_raters


@pytest.mark.parametrize("method", METHODS)
def test_weights_are_those_of_scipys_nnls_and_sum_to_one(method):
    scope = scope_of(simulate(n=50, jurors=5, seed=3), 3, method=method, reps=2)
    pair = columns(scope.grid, PanelColumns(("j0",), 1), method)
    values = (
        scope.grid.composites if method == "published" else z_within_raters(scope.grid.composites)
    )
    y = pair.clinicians - pair.clinicians.mean()

    found = jury_ranking(scope, RankingOptions(pool="weighted"))

    assert len(found.rows) == 31
    assert any(0.0 in row.weights for row in found.rows)
    for row in found.rows:
        own = values[:, scope.grid.columns(row.jurors)]
        weights, _ = nnls(own - own.mean(axis=0), y)
        weights /= weights.sum()
        assert row.weights == pytest.approx(weights.tolist(), abs=1e-8)
        assert sum(row.weights) == pytest.approx(1)
        assert row.icc == pytest.approx(
            column_icc(pair.clinicians, own @ weights, method), abs=1e-8
        )


def test_a_jury_in_which_nobody_agrees_has_no_weights():
    table = simulate(jurors=2)
    table[:, 3:] *= -1
    found = jury_ranking(scope_of(table, 3, reps=20), RankingOptions(pool="weighted"))
    assert [row.rank for row in found.rows] == [1, 2, None]
    assert "none of them agrees" in note_of(found.rows[2])
    assert found.rows[2].weights is None
    assert found.rows[0].weights == (1.0,)


def test_jurors_who_say_the_same_share_their_weight():
    table = simulate(jurors=2)
    table[:, 4] = table[:, 3]
    found = jury_ranking(
        scope_of(table, 3, reps=5), RankingOptions(pool="weighted", sizes=range(2, 3))
    )
    assert found.rows[0].weights == pytest.approx((0.5, 0.5), abs=1e-5)  # the ridge is 1e-10


@pytest.mark.parametrize("method", METHODS)
def test_the_median_of_members_is_numpys(method):
    scope = scope_of(simulate(n=50, jurors=5, lost=0.1), 3, method=method, reps=3)
    values = (
        scope.grid.composites if method == "published" else z_within_raters(scope.grid.composites)
    )
    for row in jury_ranking(scope, RankingOptions(pool="median")).rows:
        pair = columns(scope.grid, PanelColumns(row.jurors, row.size), method)
        median = np.median(values[:, scope.grid.columns(row.jurors)][pair.both], axis=1)
        icc = column_icc(pair.clinicians[pair.both], median, method)
        assert row.icc == pytest.approx(icc, abs=1e-12)


@pytest.mark.parametrize("size", range(1, 9))
def test_the_middle_is_the_median_of_any_number(size):
    values = np.random.default_rng(size).integers(0, 5, (size, 200)).astype(float)
    assert median_of_columns(values).tolist() == np.median(values, axis=0).tolist()


def test_a_juror_without_scores_or_variance_sits_nowhere_and_is_named():
    table = simulate(jurors=3)
    table[:, 4], table[:, 5] = 4.0, NAN
    found = jury_ranking(scope_of(table, 3), RankingOptions())
    assert found.pool == ("j0",)
    assert "left out, with no scores or all scores equal: j1, j2" in note_of(found)


def test_a_jury_whose_members_never_rated_the_same_has_no_icc_and_says_why():
    table = simulate(jurors=3)
    table[:30, 3], table[30:, 4] = NAN, NAN
    found = jury_ranking(scope_of(table, 3, reps=20), RankingOptions())
    lost = found.rows[-1]
    assert math.isnan(lost.icc)
    assert lost.rank is None
    assert (lost.n_responses, lost.on_front) == (0, False)
    assert note_of(lost) == "undefined: no response has all the scores needed, and 3 are required"
    assert {row.jurors for row in found.rows if row.rank is None} == {
        ("j0", "j1"),
        ("j0", "j1", "j2"),
    }


def test_two_responses_are_too_few_for_an_icc():
    table = simulate(jurors=2)
    table[2:, 4] = NAN
    found = jury_ranking(scope_of(table, 3, reps=20), RankingOptions())
    assert [row.rank for row in found.rows] == [1, None, None]
    assert note_of(found.rows[1]).startswith("undefined: 2 responses have")


def test_resamples_without_an_icc_are_counted():
    table = simulate(n=12, jurors=2)
    table[3:, 4] = NAN
    found = jury_ranking(scope_of(table, 3, reps=200), RankingOptions())
    assert "of 200 resamples undefined and left out" in note_of(found.rows[1])


def test_no_resamples_give_iccs_without_intervals():
    found = jury_ranking(scope_of(simulate(), 3, reps=0), RankingOptions())
    assert math.isfinite(found.winner.row.icc)
    assert math.isnan(found.winner.row.low)
    assert math.isnan(found.winner.row.icc_honest)
