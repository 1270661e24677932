"""Juror value: the ICCs that calibrate gives, and the difference of two juries that it is."""

import math

import numpy as np
import pytest
from kit.composites import METHODS, NAN, simulate
from kit.scores import note_of, scope_of

from calibration.columns import PanelColumns, column_icc, columns
from calibration.differences import difference_rows
from calibration.raters import value_rows


def icc_of(scope, members):
    """Return the ICC of some jurors as calibrate computes it, all of them needed."""
    method = scope.options.method
    pair = columns(scope.grid, PanelColumns(tuple(members), len(members)), method)
    return column_icc(pair.clinicians[pair.both], pair.scorer[pair.both], method)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("lost", [0.0, 0.1])
def test_every_icc_is_the_one_that_calibrate_gives(method, lost):
    scope = scope_of(simulate(n=120, jurors=4, lost=lost), 3, method=method)

    for row in value_rows(scope):
        others = [name for name in scope.jurors if name != row.juror]
        assert row.icc_alone == pytest.approx(icc_of(scope, [row.juror]))
        assert row.icc_without == pytest.approx(icc_of(scope, others))
        assert row.icc_jury == pytest.approx(icc_of(scope, scope.jurors))


@pytest.mark.parametrize("lost", [0.0, 0.1])
def test_what_a_juror_adds_is_the_paired_difference_to_the_jury_without_it(lost):
    scope = scope_of(simulate(jurors=3, lost=lost), 3)
    without = {row: [name for name in scope.jurors if name != row] for row in scope.jurors}
    panels = {name: PanelColumns(tuple(others), len(others)) for name, others in without.items()}
    pairs = {row.b: row for row in difference_rows(scope, panels)}

    for row in value_rows(scope):
        pair = pairs[f"jury:{row.juror}"]
        assert (row.adds, row.low, row.high) == pytest.approx(
            (pair.difference, pair.low, pair.high)
        )
        if not lost:
            assert row.adds == pytest.approx(row.icc_jury - row.icc_without)
        assert bool(row.told("only_both")) is bool(lost)


def test_a_noisier_juror_is_worth_less_and_is_missed_less():
    rows = value_rows(scope_of(simulate(n=400, jurors=3), 3))

    assert rows[0].adds > rows[1].adds > rows[2].adds
    assert rows[0].icc_without < rows[1].icc_without < rows[2].icc_without
    assert all(row.low < row.adds < row.high for row in rows)


def test_a_jury_of_one_has_nobody_to_be_compared_with():
    (row,) = value_rows(scope_of(simulate(jurors=1), 3))

    assert row.icc_jury == row.icc_alone
    assert np.isnan([row.icc_without, row.adds, row.low]).all()
    assert note_of(row) == "a jury of one"


def test_a_juror_without_variance_takes_no_part():
    table = simulate(jurors=3)
    table[:, 4] = 4.0

    rows = value_rows(scope_of(table, 3))

    pair = value_rows(scope_of(table[:, [0, 1, 2, 3, 5]], 3))
    assert [rows[0].adds, rows[2].adds] == pytest.approx([row.adds for row in pair])
    assert math.isnan(rows[1].adds)
    assert "do not vary" in note_of(rows[1])
    assert "left out, no variance: j1" in note_of(rows[0])


def test_jurors_who_never_rated_the_same_response_are_no_jury():
    table = simulate(jurors=3)
    table[:30, 3], table[30:, 4] = NAN, NAN

    rows = value_rows(scope_of(table, 3))

    assert all(np.isnan([row.icc_jury, row.adds, row.low]).all() for row in rows)
    assert math.isfinite(rows[0].icc_alone)
    assert "undefined" in note_of(rows[0])


def test_without_jurors_there_are_no_rows():
    assert value_rows(scope_of([[1, 2], [2, 3]], 2)) == []


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "change",
    [
        lambda table: table + 10,
        lambda table: table * 3,
        lambda table: table[::-1],
        lambda table: np.vstack([table, np.full((5, 6), NAN)]),
    ],
    ids=["shift", "scale", "permutation", "missing"],
)
def test_shift_scale_order_and_empty_rows_change_nothing(change, method):
    before, after = (
        [(row.icc_alone, row.icc_without, row.adds) for row in value_rows(scope)]
        for scope in (
            scope_of(simulate(jurors=3), 3, method=method, reps=0),
            scope_of(change(simulate(jurors=3)), 3, method=method, reps=0),
        )
    )

    assert np.array(after) == pytest.approx(np.array(before))
