"""Severity: distances by hand, BLUPs by statsmodels, intervals by resampling, properties."""

import math
from dataclasses import replace

import numpy as np
import pytest
from kit.scores import note_of, scope_of
from scipy import stats

from calibration.raters import distances, severity_rows

NAN = math.nan


def simulate(n=60, clinicians=4, jurors=3, seed=0, severities=None):
    random = np.random.default_rng(seed)
    raters = clinicians + jurors
    own = 0.5 * random.normal(size=raters) if severities is None else np.asarray(severities)
    table = 3 + random.normal(size=(n, 1)) + own + 0.6 * random.normal(size=(n, raters))
    for row in table:
        row[random.permutation(clinicians)[2:]] = NAN
    return table


def test_a_severity_is_the_mean_distance_to_the_others_of_the_same_response():
    # dr0: 4 - (2+3)/2 = 1.5, 5 - 4 = 1; j0: 3 - (4+2)/2 = 0, 4 - 5 = -1, and 1 alone.
    table = [[4, 2, 3], [5, NAN, 4], [NAN, NAN, 1]]

    rows = {row.rater: row for row in severity_rows(scope_of(table, 2))}

    assert (rows["dr0"].severity, rows["dr0"].n) == (1.25, 2)
    assert (rows["dr1"].severity, rows["dr1"].n) == (-1.5, 1)
    assert (rows["j0"].severity, rows["j0"].n) == (-0.5, 2)
    assert [rows[name].kind for name in ("dr0", "dr1", "j0")] == ["clinician"] * 2 + ["juror"]


def test_poor_responses_do_not_make_a_rater_severe():
    table = np.full((40, 3), NAN)
    table[:20, 0], table[20:, 1] = 1.0, 5.0  # dr0 saw the poor ones, dr1 the good ones
    table[:, 2] = np.repeat([1.0, 5.0], 20)

    rows = severity_rows(scope_of(table, 2))

    assert [row.severity for row in rows] == [0, 0, 0]


def test_the_interval_is_the_t_interval_of_single_responses():
    table = simulate(n=40)
    row = severity_rows(scope_of(table, 4))[0]
    away = distances(table)[:, 0]
    ends = stats.ttest_1samp(away[~np.isnan(away)], 0.0).confidence_interval(0.95)
    assert (row.low, row.high) == pytest.approx((ends.low, ends.high))


def test_planted_severities_lie_in_their_intervals_and_nobody_is_called_strict():
    table = simulate(n=200, severities=[0, 0, 0, 0, -0.8, 0, 0.8], seed=5)

    rows = {row.rater: row for row in severity_rows(scope_of(table, 4))}

    # Five raters a response: j0's others are two clinicians, j1 and j2, 0.2 above 0 together.
    assert rows["j0"].low < -0.8 - 0.2 < rows["j0"].high
    assert rows["j2"].low < 0.8 + 0.2 < rows["j2"].high
    for row in rows.values():  # many raters: nobody is called strict for an interval of his own
        assert "stricter" not in note_of(row)
        assert "lenient" not in note_of(row)


def test_what_is_undefined_is_nan_with_a_reason():
    rows = severity_rows(scope_of([[3, NAN, 4], [2, NAN, 4], [1, NAN, 2]], 1))

    assert math.isnan(rows[1].severity)
    assert note_of(rows[1]) == "undefined: no response that this rater and another one rated"
    (alone,) = severity_rows(scope_of([[3], [2], [1]], 1))
    assert math.isnan(alone.severity)


def test_severity_is_in_points_under_both_methods_and_metrics_take_no_part():
    table = simulate()
    paper, published = (
        severity_rows(scope_of(table, 4, method=method)) for method in ("paper", "published")
    )
    scope = scope_of(table, 4)
    grid = replace(scope.grid, kinds=(*scope.grid.kinds[:6], "metric"))

    assert paper == published
    assert [row.rater for row in severity_rows(replace(scope, grid=grid))] == [*grid.raters[:6]]


@pytest.mark.parametrize(
    ("change", "factor"),
    [
        (lambda table: table + 10, 1),
        (lambda table: table * 3, 3),
        (lambda table: table[::-1], 1),
        (lambda table: np.vstack([table, np.full((5, table.shape[1]), NAN)]), 1),
    ],
    ids=["shift", "scale", "permutation", "missing"],
)
def test_shift_order_and_empty_rows_change_nothing_and_scale_scales(change, factor):
    table = simulate()

    before = [row.severity for row in severity_rows(scope_of(table, 4))]
    after = [row.severity for row in severity_rows(scope_of(change(table), 4))]
    assert after == pytest.approx(np.array(before) * factor, abs=1e-4)
