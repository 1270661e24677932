"""Paired differences: the jury against metrics, its own jurors and other juries."""

import numpy as np
import pandas as pd
import pytest
from wording import note_of

from calibration.agreement import Panel, scorer_replicates
from calibration.bootstrap import draw_counts
from calibration.codes import NoteCode
from calibration.differences import _doubts, compared, difference_rows, shifted_p
from calibration.grid import analysed_grid
from calibration.messages import words
from calibration.plain import plain
from calibration.repeats import Repeats
from calibration.scope import Asked, Scope

METHODS = ["paper", "published"]
JURY = Panel(("j0", "j1", "j2"), 3)
RATERS = ["dr0", "dr1", "dr2", "j0", "j1", "j2", "j3", "m"]
NO_REPEATS = Repeats(pd.DataFrame(), pd.DataFrame(), pd.DataFrame())


def kind(name):
    return {"d": "clinician", "j": "juror", "m": "metric"}[name[0]]


def scores(n=60, seed=0, noise=1.0):
    """Three clinicians, the jurors j0 to j3 and a metric, as a table of composites."""
    random = np.random.default_rng(seed)
    quality = random.normal(size=(n, 1))
    spread = np.array([0.8] * 3 + [noise] * 4 + [1.5])
    return pd.DataFrame(quality + spread * random.normal(size=(n, 8)), columns=RATERS)


def scope_of(table, per=1, jury=JURY, simulated=(), **asked):
    """Return a table of composites as one benchmark, `per` responses an instance."""
    long = table.melt(ignore_index=False, var_name="rater", value_name="composite").dropna()
    long = long.reset_index(names="row")
    rated = pd.DataFrame(
        {
            "response_id": long["row"].map("r{:05}".format),
            "instance_id": (long["row"] // per).map("i{:05}".format),
            "benchmark": "b",
            "rater": long["rater"],
            "kind": long["rater"].map(kind),
            "composite": long["composite"],
        }
    )
    members = jury.members if jury else ()
    metrics = tuple(name for name in table if kind(name) == "metric")
    return Scope(
        name="b",
        grid=analysed_grid(rated, ["b"], jurors=members, metrics=metrics),
        given=rated,
        in_study=len(table),
        incomplete={},
        repeats=NO_REPEATS,
        jury=jury,
        jurors=members,
        metrics=metrics,
        simulated=frozenset(simulated),
        asked=Asked(**{"reps": 400, **asked}),
        tick=lambda _: None,
    )


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
    rows = difference_rows(scope_of(table, method=method), {"other": Panel(("j1", "j3"), 2)})
    assert [row.b for row in rows] == ["metric:m", "juror:j0", "juror:j1", "juror:j2", "jury:other"]
    jury = by_definition(table, JURY.members, method)
    for row, members in zip(rows, (["m"], ["j0"], ["j1"], ["j2"], ["j1", "j3"]), strict=True):
        assert row.difference == pytest.approx(jury - by_definition(table, members, method))
        assert row.a == "jury"
        assert row.n_responses == 60


@pytest.mark.parametrize("method", METHODS)
def test_interval_and_p_are_those_of_resamples_written_out(method):
    table = scores(40, seed=1)
    row = row_of(difference_rows(scope_of(table, per=2, method=method, reps=60)), "metric:m")
    gaps = []
    for counts in np.concatenate(list(draw_counts(20, reps=60, seed=0))).astype(int):
        drawn = table.iloc[np.repeat(np.arange(40), np.repeat(counts, 2))]
        jury, metric = (by_definition(drawn, one, method) for one in (JURY.members, ["m"]))
        gaps.append(jury - metric)
    assert (row.low, row.high) == pytest.approx(tuple(np.quantile(gaps, [0.025, 0.975])))
    away = np.abs(np.array(gaps) - row.difference) >= abs(row.difference)
    assert row.p == pytest.approx((1 + away.sum()) / 61)


def test_the_resamples_are_those_of_the_agreement_table():
    scope = scope_of(scores(), per=2)
    drawn = scope.resample(scorer_replicates(scope.grid, JURY, ("j0", "m"), "paper"))
    gaps = drawn[:, 0] - drawn[:, 2]
    row = row_of(difference_rows(scope), "metric:m")
    assert (row.low, row.high) == pytest.approx(tuple(np.quantile(gaps, [0.025, 0.975])))


@pytest.mark.parametrize("method", METHODS)
def test_identical_scorers_differ_by_exactly_nothing_with_p_1(method):
    table = scores()
    table["j1"] = table["j2"] = table["m"] = table["j0"]
    others = {"same": JURY, "turned round": Panel(("j2", "j1", "j0"), 3), "one": Panel(("j0",), 1)}
    for row in difference_rows(scope_of(table, per=3, method=method), others):
        assert (row.difference, row.low, row.high, row.p, row.p_holm) == (0, 0, 0, 1, 1)
        assert "80 %" not in note_of(row)


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
    assert "only the responses of both: jury has 45, m 30" in note_of(row)
    assert row_of(rows, "juror:j0").n_responses == 45
    gaps = []
    for counts in next(draw_counts(50, reps=99, seed=0)).astype(int):
        drawn = table.iloc[np.repeat(np.arange(50), counts)].loc[lambda own: own.index >= 5]
        drawn = drawn.loc[drawn.index < 30]
        jury, metric = (by_definition(drawn, one, method) for one in (JURY.members, ["m"]))
        gaps.append(jury - metric)
    assert (row.low, row.high) == pytest.approx(tuple(np.quantile(gaps, [0.025, 0.975])))


def test_a_real_difference_is_found_and_none_is_not():
    table = scores(300, noise=0.6)
    table["m"] = np.random.default_rng(5).normal(size=300)
    rows = difference_rows(scope_of(table, reps=2000))
    metric = row_of(rows, "metric:m")
    assert metric.low > 0.5
    assert metric.p == pytest.approx(1 / 2001)
    assert metric.p_holm == pytest.approx(4 / 2001)
    assert "80 %" not in note_of(metric)


@pytest.mark.slow
def test_p_is_below_5_percent_in_some_5_percent_of_studies_without_a_difference():
    jury, found = Panel(("j0",), 1), []
    for seed in range(400):
        table = scores(60, seed=seed)[["dr0", "dr1", "dr2", "j0", "j3"]]
        scope = scope_of(table, jury=jury, reps=199)
        found.append(difference_rows(scope, {"other": Panel(("j3",), 1)})[0].p)
    assert 0.02 <= np.mean(np.array(found) <= 0.05) <= 0.085


def test_a_difference_too_small_for_the_study_says_what_could_be_found():
    scope = scope_of(scores(30, seed=6))
    row = row_of(difference_rows(scope), "juror:j0")
    drawn = scope.resample(scorer_replicates(scope.grid, JURY, ("j0",), "paper"))
    least = 2.8 * np.std(drawn[:, 0] - drawn[:, 1], ddof=1)
    assert abs(row.difference) < least
    assert f"smaller than what 80 % power would find here, {least:.2f}" in note_of(row)


@pytest.mark.parametrize(("instances", "said"), [(19, True), (20, False)])
def test_fewer_than_20_instances_are_too_few(instances, said):
    rows = difference_rows(scope_of(scores(instances * 3), per=3))
    assert all(("too few: 19 instances" in note_of(row)) is said for row in rows)


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


def test_interval_and_p_that_disagree_are_called_two_methods_and_power_is_for_what_is_not_found():
    drawn = np.concatenate([np.full(90, 0.2), np.full(10, 0.45), np.full(100, 0.03)])
    (said,) = _doubts(0.2, drawn)  # from 0.03 up, yet 5 % and more stray 0.2 and more from it
    assert words(said).startswith("interval and p are two methods")
    assert shifted_p(0.2, drawn) > 0.05
    assert list(_doubts(0.2, np.random.default_rng(0).normal(0.2, 0.02, 500))) == []
    (small,) = _doubts(0.02, np.random.default_rng(0).normal(0.02, 0.05, 500))
    assert 0.1 < small["least"] < 0.2
    assert words(small).startswith("smaller than what 80 % power would find here, 0.1")
    assert list(_doubts(float("nan"), np.empty(0))) == []


def test_an_undefined_icc_leaves_no_difference_no_p_and_no_comparison():
    table = scores()
    table["m"] = np.nan
    table["j1"] = 3.0
    rows = difference_rows(scope_of(table.drop(columns="m").assign(m=table["m"])), tried=2)
    metric, flat = row_of(rows, "metric:m"), row_of(rows, "juror:j1")
    for row in (metric, flat):
        assert np.isnan([row.difference, row.low, row.high, row.p, row.p_holm]).all()
        assert row.n_tried == 2 + 2
    assert "undefined: no response has the scores it takes" in note_of(metric)
    assert flat.told(NoteCode.NO_Z)["who"] == "juror:j1"
    assert note_of(flat).startswith("undefined: j1 has no variance, hence no z")
    assert "left out" not in note_of(flat)


def test_a_juror_of_another_composition_who_never_rated_here_is_undefined_and_not_an_error():
    row = row_of(
        difference_rows(scope_of(scores()), {"new": Panel(("j0", "nobody"), 2)}), "jury:new"
    )
    assert "undefined" in note_of(row)
    assert np.isnan(row.p)


def test_without_a_jury_there_is_nothing_to_compare_and_a_jury_of_one_is_not_its_juror():
    assert difference_rows(scope_of(scores(), jury=None)) == []
    alone = scope_of(scores(), jury=Panel(("j0",), 1))
    assert [name for name, _ in compared(alone)] == ["metric:m"]


def test_no_clinician_at_all_is_no_crash():
    rows = difference_rows(scope_of(scores()[["j0", "j1", "j2", "m"]]))
    assert [row.n_responses for row in rows] == [0] * 4
    assert all("undefined" in note_of(row) for row in rows)


def test_no_resamples_give_a_difference_without_interval_and_p():
    row = difference_rows(scope_of(scores(), reps=0))[0]
    assert np.isfinite(row.difference)
    assert np.isnan([row.low, row.high, row.p, row.p_holm]).all()


def test_simulated_raters_are_named():
    scope = scope_of(scores(), simulated={"j1", "j3"})
    rows = difference_rows(scope, {"other": Panel(("j0", "j3"), 2)})
    assert all("simulated raters: j1" in note_of(row) for row in rows)
    assert "simulated raters: j1, j3" in note_of(row_of(rows, "jury:other"))


def test_fields_are_plain_and_in_the_order_of_the_contract():
    row = difference_rows(scope_of(scores()))[0]
    assert list(plain(row)) == [
        *("benchmark", "a", "b", "difference", "low", "high", "p", "p_holm"),
        *("n_tried", "n_responses", "icc_a", "icc_b", "detectable", "note", "notes"),
    ]
    figures = {name: value for name, value in vars(row).items() if name != "notes"}
    assert {type(value) for value in figures.values()} == {str, float, int}


def test_every_comparison_ever_tried_makes_p_larger():
    scope = scope_of(scores(200, noise=0.6), reps=999)
    now, later = difference_rows(scope), difference_rows(scope, tried=10)
    assert [row.n_tried for row in now] == [4] * 4
    assert [row.n_tried for row in later] == [14] * 4
    assert row_of(now, "metric:m").p_holm == pytest.approx(4 * row_of(now, "metric:m").p)
    assert row_of(later, "metric:m").p_holm == pytest.approx(14 * row_of(later, "metric:m").p)


def test_p_counts_resamples_as_far_from_the_difference_as_it_is_from_0():
    # d = 1: |d* - 1| is 0, 1, 2 and 1.5: three of four are at least 1
    assert shifted_p(1.0, np.array([1.0, 0.0, 3.0, -0.5])) == (1 + 3) / 5
    assert shifted_p(1.0, np.array([1.0, np.nan])) == 1 / 2
    assert np.isnan(shifted_p(np.nan, np.ones(3)))
    assert np.isnan(shifted_p(1.0, np.full(3, np.nan)))
