"""Paired differences of ICCs: by hand, by Steiger's test, each instance left out, and Holm's correction."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.composites import JURY, RATERS, grid_of, kind, scope_of, scores
from kit.scores import note_of
from scipy import stats
from statsmodels.stats.multitest import multipletests

from calibration.columns import PanelColumns, column_icc, columns, single_rater
from calibration.differences import compared, difference_rows, holm
from calibration.intervals import Difference, icc_difference, left_out
from calibration.weighted import scorer_iccs

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


def row_of(table, name, others=None, **asked):
    """Return the row of a difference to one scorer."""
    rows = difference_rows(scope_of(table, **asked), others or {})
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
    row = row_of(table, "metric:m", per=2, method=method)
    panels = JURY.members, ["m"]
    iccs = [
        [by_definition(table, one, method), *left_out_by_definition(table, one, method, 2)]
        for one in panels
    ]
    found = icc_difference(*np.array(iccs))
    assert (row.low, row.high, row.p) == pytest.approx((found.low, found.high, found.p))


def test_neither_resamples_nor_seed_change_a_difference():
    scopes = [scope_of(scores(), reps=reps, seed=seed) for reps, seed in ((400, 0), (0, 7))]
    assert difference_rows(scopes[0]) == difference_rows(scopes[1])


@pytest.mark.parametrize("method", METHODS)
def test_identical_scorers_differ_by_exactly_nothing_with_p_1(method):
    table = scores()
    table["j1"] = table["j2"] = table["m"] = table["j0"]
    turned, one = PanelColumns(("j2", "j1", "j0"), 3), PanelColumns(("j0",), 1)
    others = {"same": JURY, "turned round": turned, "one": one}
    for row in difference_rows(scope_of(table, per=3, method=method), others):
        assert (row.difference, row.low, row.high, row.p) == (0, 0, 0, 1)


@pytest.mark.parametrize("method", METHODS)
def test_scorers_with_different_responses_are_compared_on_the_common_ones_alone(method):
    table = scores(50, seed=2)
    table.loc[30:, "m"] = np.nan
    table.loc[:4, "j1"] = np.nan
    alone = row_of(table.loc[5:29], "metric:m", method=method, reps=99)
    row = row_of(table, "metric:m", method=method, reps=99)
    assert row.difference == pytest.approx(alone.difference)
    assert row.n_responses == alone.n_responses == 25
    assert "only responses that both scored: jury has 45, m 30" in note_of(row)
    assert row_of(table, "juror:j0", method=method, reps=99).n_responses == 45
    assert (row.low, row.high, row.p) == pytest.approx((alone.low, alone.high, alone.p))


def test_a_difference_that_hangs_on_one_instance_has_no_interval_and_says_why():
    table = scores(25).round()
    table["m"] = [5.0] + [3.0] * 24  # without the first response it does not vary
    row = row_of(table, "metric:m")
    assert np.isfinite(row.difference)
    assert np.isnan([row.low, row.high, row.p]).all()
    assert "no interval and no p" in note_of(row)


def test_an_undefined_icc_leaves_no_difference_and_no_p():
    table = scores()
    table["m"] = np.nan
    table["j1"] = 3.0
    rows = {row.b: row for row in difference_rows(scope_of(table), tried=2)}
    metric, flat = rows["metric:m"], rows["juror:j1"]
    for row in (metric, flat):
        assert np.isnan([row.difference, row.low, row.high, row.p]).all()
        assert row.n_tried == 4 + 2
    assert "undefined: no response has all the scores needed" in note_of(metric)
    assert flat.told("no_z")["who"] == "juror:j1"
    assert note_of(flat).startswith("undefined: j1 has no variance, hence no z")
    assert "left out" not in note_of(flat)


def test_a_juror_who_never_rated_here_and_no_clinician_at_all_are_undefined_and_no_error():
    row = row_of(scores(), "jury:new", {"new": PanelColumns(("j0", "nobody"), 2)})
    assert "undefined" in note_of(row)
    assert np.isnan(row.p)
    rows = difference_rows(scope_of(scores()[["j0", "j1", "j2", "m"]]))
    assert [row.n_responses for row in rows] == [0] * 4
    assert all("undefined" in note_of(row) for row in rows)


def test_without_a_jury_there_is_nothing_to_compare_and_a_jury_of_one_is_not_its_juror():
    assert difference_rows(scope_of(scores(), jury=None)) == []
    alone = scope_of(scores(), jury=PanelColumns(("j0",), 1))
    assert [name for name, _ in compared(alone)] == ["metric:m"]


def test_holm_is_the_step_down_of_his_paper_and_statsmodels_and_leaves_out_what_has_no_p():
    p = np.array([0.01, 0.04, 0.03, 0.005])
    assert holm(p) == pytest.approx([0.03, 0.06, 0.06, 0.02])  # 3p, carried on, 2p, 4p
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])
    for tied in ([0.02] * 5, [0.3, 0.001, 0.3, 1.0, 0.0], np.random.default_rng(0).random(40) ** 4):
        assert holm(np.array(tied)).tolist() == multipletests(tied, method="holm")[1].tolist()
    assert holm(np.array([np.nan, 0.02, 0.5])) == pytest.approx([np.nan, 0.04, 0.5], nan_ok=True)
    assert np.isnan(holm(np.array([np.nan]))).all()
    assert len(holm(np.array([]))) == 0


NAN = math.nan


def grid(composites, per=1, clinicians=2):
    """Return clinicians, then jurors, as a grid of `per` responses an instance."""
    clusters = np.arange(len(composites)) // per
    return grid_of(composites, clusters, composites.shape[1] - clinicians)


def difference(composites, juries, *, per=1, method="paper") -> Difference:
    of, panels = grid(composites, per), [PanelColumns(names, len(names)) for names in juries]
    return icc_difference(*scorer_iccs(of, panels, method, left_out(of.n_clusters)).T)


def study(n, seed, *, per=1, noise=(1.2, 1.2), jurors=1, ceiling=False):
    """Two clinicians and two juries whose jurors have these standard deviations of error."""
    random = np.random.default_rng([seed, n, per])
    shared = random.normal(size=-(-n // per))[np.arange(n) // per]
    share = 0.5 if per > 1 else 0.0
    quality = math.sqrt(share) * shared + math.sqrt(1 - share) * random.normal(size=n)
    spread = np.array([1.0, 1.0, *[noise[0]] * jurors, *[noise[1]] * jurors])
    scores = quality[:, None] + spread * random.normal(size=(n, len(spread)))
    return np.clip(np.rint(4.2 + 0.9 * scores), 1, 5) if ceiling else scores


def juries(jurors):
    names = [f"j{i}" for i in range(2 * jurors)]
    return tuple(names[:jurors]), tuple(names[jurors:])


def test_four_left_out_values_give_the_interval_and_p_computed_by_hand():
    # z = -log(1 - ICC) / 2: ICC 0.75 is log 2, ICC 0 is 0, so z1 - z2 = log 2. Without each of
    # four instances z1 - z2 is log 2 + (0.1, -0.1, 0.1, -0.1), z1 + z2 never changes: the
    # jackknife's variance is 3/4 of the sum of squares 0.04, SE = sqrt(0.03), and, all moves being
    # of one size, t has 3 degrees of freedom. The ends are those of z1 - z2 at z1 + z2 = log 2.
    moved = np.array([0.05, -0.05, 0.05, -0.05])
    first = 1 - np.exp(-2 * (math.log(2) + np.array([0, *moved])))
    second = 1 - np.exp(2 * np.array([0, *moved]))
    found = icc_difference(first, second)
    error, reach = math.sqrt(0.03), 3.182446
    ends = [math.sinh(math.log(2) + sign * reach * error) for sign in (-1, 1)]
    assert found.value == 0.75
    assert (found.low, found.high) == pytest.approx(ends, rel=1e-5)
    t = math.log(2) / error / math.sqrt(3)  # of 3 degrees of freedom the tail has a closed form
    tail = 0.5 - (t / (1 + t**2) + math.atan(t)) / math.pi
    assert found.p == pytest.approx(2 * tail)


def test_the_error_is_that_of_steigers_test_of_two_dependent_correlations():
    # 2r / (1 + r) of z-scores, so z is atanh r, and n - 3 times the variance of the difference of
    # two atanh r with one variable in common is 2 - 2 s (Dunn & Clark 1969; Steiger 1980, 14, 15).
    n, composites = 4000, study(4000, 1)[:, 1:]
    x, y, w = (composites[:, [i]].ravel() for i in range(3))
    r = np.corrcoef([x, y, w])
    mean = (r[0, 1] + r[0, 2]) / 2
    s = (r[1, 2] * (1 - 2 * mean**2) - mean**2 * (1 - 2 * mean**2 - r[1, 2] ** 2) / 2) / (
        1 - mean**2
    ) ** 2
    z = (math.atanh(r[0, 1]) - math.atanh(r[0, 2])) / math.sqrt((2 - 2 * s) / (n - 3))
    of = grid(composites, clinicians=1)
    panels = [single_rater(name) for name in ("j0", "j1")]
    found = icc_difference(*scorer_iccs(of, panels, "published", 1 - np.eye(n + 1, n, -1)).T)
    assert stats.norm.isf(found.p / 2) == pytest.approx(abs(z), rel=0.04)


@settings(max_examples=150, deadline=None)
@given(
    *(st.integers(0, 10**6), st.integers(8, 80), st.sampled_from([1, 2, 4]), st.booleans()),
    *(st.sampled_from(METHODS), st.floats(0.3, 3)),
)
def test_p_is_at_most_5_percent_exactly_where_the_interval_excludes_0(
    seed, n, per, ceiling, method, noise
):
    composites = study(n, seed, per=per, noise=(0.8, noise), ceiling=ceiling)
    found = difference(composites, juries(1), per=per, method=method)
    if np.isfinite(found.p):
        assert (found.p <= 0.05) == (found.low > 0 or found.high < 0)
        assert found.low <= found.value <= found.high
    else:
        assert np.isnan([found.low, found.high]).all()


def test_scorers_who_say_the_same_differ_by_nothing():
    left = np.array([0.4, 0.3, 0.4, 0.5])
    assert icc_difference(left, left + 1e-12) == Difference(0.0, 0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("icc", "first"),
    [
        *((1.0, [1.0, 1.0, 1.0]), (0.8, [0.8, NAN, 0.7]), (0.8, [0.8, 0.7])),
        *((0.8, [0.8, 0.8, 0.8]), (NAN, [1, 1])),
    ],
    ids=["an ICC of 1", "undefined without one", "two instances", "nothing changes it", "no ICC"],
)
def test_without_a_jackknife_there_is_a_difference_and_nothing_else(icc, first):
    second = np.full(1 + len(first), 0.5)
    found = icc_difference(np.array([icc, *first]), second)
    assert found.value == pytest.approx(icc - 0.5, abs=0, nan_ok=True)
    assert np.isnan([found.low, found.high, found.p]).all()


def true_iccs(jurors, noise, *, ceiling):
    composites = study(300_000, 0, noise=noise, jurors=jurors, ceiling=ceiling)
    pairs = [
        columns(grid(composites), PanelColumns(names, jurors), "paper") for names in juries(jurors)
    ]
    return [column_icc(pair.clinicians, pair.scorer, "paper") for pair in pairs]


@pytest.mark.slow
@pytest.mark.parametrize("ceiling", [False, True], ids=["continuous", "1 to 5, at the top"])
@pytest.mark.parametrize(("n", "per"), [(25, 1), (56, 1), (56, 4), (112, 1), (300, 1), (300, 5)])
@pytest.mark.parametrize(
    ("jurors", "noise"), [(1, (1.2, 1.2)), (3, (1.2, 1.2)), (1, (0.7, 1.6)), (3, (3.0, 3.0))]
)
def test_intervals_hold_the_difference_in_95_percent_of_studies(n, per, jurors, noise, ceiling):
    true = 0.0
    if noise[0] != noise[1]:
        true = -float(np.diff(true_iccs(jurors, noise, ceiling=ceiling))[0])
    how = {"per": per, "noise": noise, "jurors": jurors, "ceiling": ceiling}
    drawn = (study(n, seed, **how) for seed in range(800))
    found = [difference(one, juries(jurors), per=per) for one in drawn]
    held = np.mean([difference.low <= true <= difference.high for difference in found])
    chance = 2.5 * math.sqrt(0.95 * 0.05 / len(found))
    assert 0.93 - chance <= held <= 0.97 + chance


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
            before, after = ((one.difference, one.low, one.high, one.p) for one in (row, same))
            assert after == pytest.approx(before)


def test_the_other_way_round_everything_has_the_other_sign():
    composites = study(40, 3, noise=(0.7, 1.6))
    first, second = juries(1)
    here, there = difference(composites, (first, second)), difference(composites, (second, first))
    turned = -there.value, -there.high, -there.low, there.p
    assert dataclasses.astuple(here) == pytest.approx(turned)
