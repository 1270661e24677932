"""Juror value: games with known Shapley values, the ICCs that calibrate gives, resampling."""

import math
from itertools import permutations

import numpy as np
import pytest
from plain_scope import scope_of
from wording import note_of

from calibration.agreement import Panel, column_icc, columns
from calibration.juries.mean import mean_pool
from calibration.juror_value import ORDERS, shapley_game, value_rows

NAN = math.nan
METHODS = ["paper", "published"]


def simulate(n=60, jurors=3, clinicians=3, seed=0, lost=0.0):
    random = np.random.default_rng(seed)
    quality = 3 + random.normal(size=(n, 1))
    noise = np.linspace(0.4, 1.5, jurors)
    doctors = quality + 0.6 * random.normal(size=(n, clinicians))
    table = np.hstack([doctors, quality + noise * random.normal(size=(n, jurors))])
    table[random.random(table.shape) < lost] = NAN
    table[np.isnan(table[:, :clinicians]).all(axis=1), 0] = 3.0
    return table


def icc_of(scope, members):
    """Return the ICC of some jurors as calibrate computes it, all of them needed."""
    method = scope.asked.method
    pair = columns(scope.grid, Panel(tuple(members), len(members)), method)
    return column_icc(pair.clinicians[pair.both], pair.scorer[pair.both], method)


def test_the_glove_game_has_its_textbook_values():
    # One left glove and two right ones, a pair is worth 1: 4/6, 1/6, 1/6.
    game = shapley_game(3)
    values = np.array([float(members[0] and members[1:].any()) for members in game.subsets])

    assert game.shapley(values) == pytest.approx([4 / 6, 1 / 6, 1 / 6])


def test_the_exact_value_is_the_mean_over_all_orders():
    game = shapley_game(4)
    values = np.random.default_rng(0).normal(size=15)
    orders = list(permutations(range(4)))
    total = np.zeros(4)
    for order in orders:
        before = 0.0
        for place, juror in enumerate(order):
            members = np.isin(np.arange(4), order[: place + 1])
            after = game.value(values, members)
            total[juror] += (after - before) / len(orders)
            before = after

    assert game.shapley(values) == pytest.approx(total)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("lost", [0.0, 0.15])
def test_every_value_is_the_icc_that_calibrate_gives(method, lost):
    scope = scope_of(simulate(n=120, jurors=4, lost=lost), 3, method=method)
    game = shapley_game(4)
    pool = mean_pool(scope, scope.grid.columns(scope.jurors), game.subsets)

    found = pool.icc(np.ones((1, 120)))[0]

    expected = [icc_of(scope, np.array(scope.jurors)[members]) for members in game.subsets]
    assert found == pytest.approx(np.array(expected))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("lost", [0.0, 0.1])
def test_shapley_values_sum_to_the_icc_of_the_whole_jury(method, lost):
    scope = scope_of(simulate(lost=lost), 3, method=method)

    rows = value_rows(scope)

    assert sum(row.shapley for row in rows) == pytest.approx(icc_of(scope, scope.jurors))
    for row in rows:
        others = [name for name in scope.jurors if name != row.juror]
        assert row.icc_alone == pytest.approx(icc_of(scope, [row.juror]))
        assert row.icc_without == pytest.approx(icc_of(scope, others))


def test_a_noisier_juror_is_worth_less_and_is_missed_less():
    rows = value_rows(scope_of(simulate(n=400), 3))

    assert rows[0].shapley > rows[1].shapley > rows[2].shapley
    assert rows[0].icc_without < rows[1].icc_without < rows[2].icc_without
    assert all(row.low < row.shapley < row.high for row in rows)


def test_equal_jurors_are_worth_the_same():
    table = simulate()
    table[:, 4] = table[:, 3]

    rows = value_rows(scope_of(table, 3))

    assert rows[0].shapley == pytest.approx(rows[1].shapley)


@pytest.mark.parametrize("method", METHODS)
def test_the_interval_computes_everything_anew_in_each_resample(method):
    table = simulate(n=40, lost=0.1)
    draws = np.random.default_rng(0).integers(0, 20, size=(3, 20))
    rows = [np.concatenate([[2 * c, 2 * c + 1] for c in draw]) for draw in draws]
    resampled = [value_rows(scope_of(table[one], 3, method=method, reps=0)) for one in rows]
    expected = np.quantile([[row.shapley for row in one] for one in resampled], [0.025, 0.975], 0)

    found = value_rows(scope_of(table, 3, per=2, method=method, reps=3))

    assert [row.low for row in found] == pytest.approx(expected[0])
    assert [row.high for row in found] == pytest.approx(expected[1])


def test_more_than_ten_jurors_are_sampled_with_the_seed_and_still_sum():
    table = simulate(n=50, jurors=11)

    first, again, other = (value_rows(scope_of(table, 3, reps=20, seed=seed)) for seed in (1, 1, 2))

    assert first == again
    assert first[0].shapley != other[0].shapley
    assert f"from {ORDERS} orders of the 11 jurors" in note_of(first[0])
    whole = icc_of(scope_of(table, 3), [f"j{i}" for i in range(11)])
    assert sum(row.shapley for row in first) == pytest.approx(whole)
    assert all(math.isfinite(row.icc_without) for row in first)


def test_a_sampled_value_is_near_the_exact_one(monkeypatch):
    table = simulate(n=50, jurors=6)
    exact = [row.shapley for row in value_rows(scope_of(table, 3, reps=0))]
    monkeypatch.setattr("calibration.juror_value.MOST_EXACT", 5)

    sampled = [row.shapley for row in value_rows(scope_of(table, 3, reps=0))]

    assert sampled == pytest.approx(exact, abs=0.02)


def test_a_jury_of_one_is_worth_its_icc():
    (row,) = value_rows(scope_of(simulate(jurors=1), 3))

    assert row.shapley == row.icc_alone
    assert math.isnan(row.icc_without)
    assert note_of(row) == "a jury of one"


def test_a_juror_without_variance_takes_no_part():
    table = simulate()
    table[:, 4] = 4.0

    rows = value_rows(scope_of(table, 3))

    pair = value_rows(scope_of(table[:, [0, 1, 2, 3, 5]], 3))
    assert [rows[0].shapley, rows[2].shapley] == pytest.approx([row.shapley for row in pair])
    assert math.isnan(rows[1].shapley)
    assert "do not vary" in note_of(rows[1])
    assert "left out, no variance: j1" in note_of(rows[0])


def test_a_set_without_an_icc_leaves_the_shapley_values_undefined():
    table = simulate()
    table[:30, 3], table[30:, 4] = NAN, NAN  # j0 and j1 never rated the same response

    rows = value_rows(scope_of(table, 3))

    assert all(math.isnan(row.shapley) and math.isnan(row.low) for row in rows)
    assert math.isfinite(rows[0].icc_alone)
    assert "undefined: 2 of 7 sets of jurors have no ICC" in note_of(rows[0])
    assert "sets of jurors rated 0 to 60 responses" in note_of(rows[0])


def test_where_too_many_sets_rated_different_responses_there_is_no_interval(monkeypatch):
    monkeypatch.setattr("calibration.juror_value.MOST_WORK", 20)

    row = value_rows(scope_of(simulate(lost=0.1), 3))[0]

    assert math.isfinite(row.shapley)
    assert math.isnan(row.low)
    assert "no interval: too many sets" in note_of(row)


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
        [(row.icc_alone, row.icc_without, row.shapley) for row in value_rows(scope)]
        for scope in (
            scope_of(simulate(), 3, method=method, reps=0),
            scope_of(change(simulate()), 3, method=method, reps=0),
        )
    )

    assert np.array(after) == pytest.approx(np.array(before))
