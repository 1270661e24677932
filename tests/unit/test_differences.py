"""Paired differences, and Holm's correction over the rows of one table."""

import numpy as np
import pytest
from kit.composites import JURY, RATERS, kind, scope_of, scores
from kit.scores import note_of
from statsmodels.stats.multitest import multipletests

from calibration.columns import PanelColumns
from calibration.differences import compared, difference_rows, holm
from calibration.intervals import icc_difference

METHODS = ["paper", "published"]


def by_definition(table, members, method):
    """ICC(C,2) of the clinicians' and a panel's columns, step by step."""
    values = (table - table.mean()) / table.std(ddof=1) if method == "paper" else table
    x = values[[name for name in table if kind(name) == "clinician"]].mean(axis=1)
    y = values[list(members)].mean(axis=1)
    if method == "published":
        x, y = ((one - one.mean()) / one.std(ddof=1) for one in (x, y))
    (vx, cov), (_, vy) = np.cov(x, y)
    return 4 * cov / (vx + vy + 2 * cov)


def row_of(rows, name):
    return next(row for row in rows if row.b == name)


@pytest.mark.parametrize("method", METHODS)
def test_a_difference_is_that_of_two_iccs_by_their_definition(method):
    table = scores()
    rows = difference_rows(scope_of(table, method=method), {"other": PanelColumns(("j1", "j3"), 2)})
    assert [row.b for row in rows] == ["metric:m", "juror:j0", "juror:j1", "juror:j2", "jury:other"]
    jury = by_definition(table, JURY.members, method)
    for row, members in zip(rows, (["m"], ["j0"], ["j1"], ["j2"], ["j1", "j3"]), strict=True):
        assert row.difference == pytest.approx(jury - by_definition(table, members, method))
        assert row.a == "jury"
        assert row.n_responses == 60


def left_out_by_definition(table, members, method, per):
    """Return a panel's ICC without each instance in turn, by leaving its rows out."""
    instance = np.arange(len(table)) // per
    every = [
        by_definition(table[instance != own], members, method) for own in range(instance[-1] + 1)
    ]
    return np.array(every)


@pytest.mark.parametrize("method", METHODS)
def test_interval_and_p_are_those_of_each_instance_left_out_by_definition(method):
    table = scores(40, seed=1)
    row = row_of(difference_rows(scope_of(table, per=2, method=method)), "metric:m")
    panels = JURY.members, ["m"]
    iccs = tuple(by_definition(table, one, method) for one in panels)
    without = tuple(left_out_by_definition(table, one, method, 2) for one in panels)
    found = icc_difference(
        *(np.array([icc, *left]) for icc, left in zip(iccs, without, strict=True))
    )
    assert (row.low, row.high, row.p) == pytest.approx((found.low, found.high, found.p))


def test_neither_resamples_nor_seed_change_a_difference():
    rows, other = (
        difference_rows(scope_of(scores(), reps=reps, seed=seed))
        for reps, seed in ((400, 0), (0, 7))
    )
    assert rows == other


@pytest.mark.parametrize("method", METHODS)
def test_identical_scorers_differ_by_exactly_nothing_with_p_1(method):
    table = scores()
    table["j1"] = table["j2"] = table["m"] = table["j0"]
    others = {
        "same": JURY,
        "turned round": PanelColumns(("j2", "j1", "j0"), 3),
        "one": PanelColumns(("j0",), 1),
    }
    for row in difference_rows(scope_of(table, per=3, method=method), others):
        assert (row.difference, row.low, row.high, row.p) == (0, 0, 0, 1)


@pytest.mark.parametrize("method", METHODS)
def test_scorers_with_different_responses_are_compared_on_the_common_ones_alone(method):
    table = scores(50, seed=2)
    table.loc[30:, "m"] = np.nan
    table.loc[:4, "j1"] = np.nan
    rows = difference_rows(scope_of(table, method=method, reps=99))
    common = scope_of(table.loc[5:29], method=method, reps=99)
    alone = row_of(difference_rows(common), "metric:m")
    row = row_of(rows, "metric:m")
    assert row.difference == pytest.approx(alone.difference)
    assert row.n_responses == alone.n_responses == 25
    assert "only responses that both scored: jury has 45, m 30" in note_of(row)
    assert row_of(rows, "juror:j0").n_responses == 45
    assert (row.low, row.high, row.p) == pytest.approx((alone.low, alone.high, alone.p))


def test_a_real_difference_is_found_and_none_is_not():
    table = scores(300, noise=0.6)
    table["m"] = np.random.default_rng(5).normal(size=300)
    metric = row_of(difference_rows(scope_of(table)), "metric:m")
    assert metric.low > 0.5
    assert 0 < metric.p < 1e-6


@pytest.mark.parametrize("method", METHODS)
def test_shift_and_order_change_nothing(method):
    table = scores()
    moved = table + np.arange(8)
    moved = moved * np.where([kind(name) == "metric" for name in table], 7.0, 1.0)
    shuffled = table[[*RATERS[2::-1], *RATERS[3:]]]
    rows, *others = (
        difference_rows(scope_of(one, method=method)) for one in (table, moved, shuffled)
    )
    for other in others:
        for row, same in zip(rows, other, strict=True):
            numbers = ("difference", "low", "high", "p")
            assert [getattr(same, name) for name in numbers] == pytest.approx(
                [getattr(row, name) for name in numbers]
            )


def test_a_difference_that_hangs_on_one_instance_has_no_interval_and_says_why():
    table = scores(25).round()
    table["m"] = [5.0] + [3.0] * 24  # without the first response it does not vary
    row = row_of(difference_rows(scope_of(table)), "metric:m")
    assert np.isfinite(row.difference)
    assert np.isnan([row.low, row.high, row.p]).all()
    assert "no interval and no p" in note_of(row)


def test_an_undefined_icc_leaves_no_difference_and_no_p():
    table = scores()
    table["m"] = np.nan
    table["j1"] = 3.0
    rows = difference_rows(scope_of(table.drop(columns="m").assign(m=table["m"])), tried=2)
    metric, flat = row_of(rows, "metric:m"), row_of(rows, "juror:j1")
    for row in (metric, flat):
        assert np.isnan([row.difference, row.low, row.high, row.p]).all()
        assert row.n_tried == 4 + 2
    assert "undefined: no response has all the scores needed" in note_of(metric)
    assert flat.told("no_z")["who"] == "juror:j1"
    assert note_of(flat).startswith("undefined: j1 has no variance, hence no z")
    assert "left out" not in note_of(flat)


def test_a_juror_of_another_composition_who_never_rated_here_is_undefined_and_not_an_error():
    row = row_of(
        difference_rows(scope_of(scores()), {"new": PanelColumns(("j0", "nobody"), 2)}), "jury:new"
    )
    assert "undefined" in note_of(row)
    assert np.isnan(row.p)


def test_without_a_jury_there_is_nothing_to_compare_and_a_jury_of_one_is_not_its_juror():
    assert difference_rows(scope_of(scores(), jury=None)) == []
    alone = scope_of(scores(), jury=PanelColumns(("j0",), 1))
    assert [name for name, _ in compared(alone)] == ["metric:m"]


def test_no_clinician_at_all_is_no_crash():
    rows = difference_rows(scope_of(scores()[["j0", "j1", "j2", "m"]]))
    assert [row.n_responses for row in rows] == [0] * 4
    assert all("undefined" in note_of(row) for row in rows)


def test_holm_is_the_step_down_of_his_paper_and_statsmodels():
    p = np.array([0.01, 0.04, 0.03, 0.005])
    assert holm(p) == pytest.approx([0.03, 0.06, 0.06, 0.02])  # 3p, carried on, 2p, 4p
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])
    for tied in ([0.02] * 5, [0.3, 0.001, 0.3, 1.0, 0.0], np.random.default_rng(0).random(40) ** 4):
        assert holm(np.array(tied)).tolist() == multipletests(tied, method="holm")[1].tolist()


def test_holm_leaves_out_what_has_no_p():
    assert holm(np.array([np.nan, 0.02, 0.5])) == pytest.approx([np.nan, 0.04, 0.5], nan_ok=True)
    assert np.isnan(holm(np.array([np.nan]))).all()
    assert len(holm(np.array([]))) == 0
