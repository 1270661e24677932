"""The ICC, its F interval and its replicates: published tables, pingouin, by hand, and what is undefined."""

import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from kit.composites import SHROUT_FLEISS, by_pingouin
from scipy import stats

from calibration.bootstrap import BootstrapPlan, draw_counts, replicates
from calibration.columns import (
    PanelColumns,
    column_icc,
    columns,
    single_rater,
    unscaled,
    why_undefined,
)
from calibration.icc import (
    agreement_interval,
    f_interval,
    icc_agreement,
    icc_consistency,
    mean_squares,
    spearman_brown,
)
from calibration.rating_matrix import RatingMatrix
from calibration.weighted import scorer_iccs, weighted
from data.errors import TooFew

NAN, METHODS = math.nan, ["paper", "published"]
TABLES = arrays(
    np.float64, st.tuples(st.integers(3, 9), st.integers(2, 4)), elements=st.integers(1, 5)
)


def test_the_iccs_of_shrout_and_fleiss_and_the_interval_of_agreement():
    assert round(icc_agreement(SHROUT_FLEISS), 4) == 0.2898
    assert round(float(icc_consistency(SHROUT_FLEISS)), 4) == 0.9093
    ms = mean_squares(SHROUT_FLEISS)
    squares = float(ms.rows), float(ms.columns), float(ms.error)
    ends = agreement_interval(squares, (5, 3, 15), (4, 6))
    assert (ends.low, ends.high) == pytest.approx((0.0188, 0.7611), abs=5e-5)


@pytest.mark.parametrize("seed", range(12))
def test_pingouin_finds_the_same(seed):
    random = np.random.default_rng(seed)
    n, k = random.integers(5, 40), random.integers(2, 6)
    scores = random.normal(size=(n, 1)) + random.normal(size=(1, k)) + random.normal(size=(n, k))
    theirs = by_pingouin(scores)
    assert icc_agreement(scores) == pytest.approx(theirs["ICC(A,1)"], abs=1e-12)
    assert icc_consistency(scores) == pytest.approx(theirs["ICC(C,k)"], abs=1e-12)


def test_a_stack_of_tables_is_each_table_alone():
    stack = np.random.default_rng(0).normal(size=(3, 4, 10, 2))
    iccs = icc_consistency(stack)
    assert iccs.shape == (3, 4)
    assert iccs[2, 1] == icc_consistency(stack[2, 1])


def test_it_has_no_lower_bound():
    nearly_mirrored = np.array([[1, 5], [2, 4], [3, 3], [4, 2.1]])
    assert icc_consistency(nearly_mirrored) < -100


@pytest.mark.parametrize("score", [3.0, 13 / 3, 0.1])
def test_a_constant_table_is_undefined_and_not_zero(score):
    assert np.isnan(icc_consistency(np.full((7, 3), score)))
    assert np.isnan(icc_agreement(np.full((7, 3), score)))


@pytest.mark.parametrize("shape", [(1, 2), (5, 1)])
def test_one_response_or_one_rater_is_too_few(shape):
    with pytest.raises(TooFew, match="2 responses and 2 raters"):
        icc_consistency(np.ones(shape))


@pytest.mark.parametrize(
    ("icc", "n", "low", "high", "within"),
    [
        *((0.474, 56, 0.103, 0.692, 6e-4), (0.361, 56, -0.090, 0.625, 6e-4)),  # the paper's table
        *((0.305, 31, -0.441, 0.665, 6e-4), (0.625, 25, 0.149, 0.835, 6e-4)),
        (0.668, 25, 0.247, 0.854, 6e-4),
        *((0.60, 56, 0.32, 0.77, 5e-3), (0.60, 400, 0.51, 0.67, 5e-3)),  # the planner's
        *((NAN, 30, NAN, NAN, 0), (0.5, 1, NAN, NAN, 0), (-math.inf, 9, NAN, NAN, 0)),
    ],
)
def test_intervals_are_those_of_the_papers_table_and_of_the_planner(icc, n, low, high, within):
    ends = f_interval(icc, n)
    assert (ends.low, ends.high) == pytest.approx((low, high), abs=within, nan_ok=True)


def test_rows_without_variance_have_no_interval_of_absolute_agreement():
    ends = agreement_interval((0.0, 0.3, 0.5), (2, 1, 2), (2, 3))
    assert np.isnan([ends.low, ends.high]).all()


def test_it_covers_what_it_says():
    # Two raters with equal error: true ICC(C,2) = 2 r / (1 + r) with r = .5, so 2/3.
    random = np.random.default_rng(0)
    truth, n, trials = 2 / 3, 25, 2000
    item = random.normal(size=(trials, n))
    x, y = (item + random.normal(size=(trials, n)) for _ in "xy")
    cov = ((x - x.mean(1, keepdims=True)) * (y - y.mean(1, keepdims=True))).sum(1) / (n - 1)
    iccs = 4 * cov / (x.var(1, ddof=1) + y.var(1, ddof=1) + 2 * cov)
    ends = [f_interval(float(icc), n) for icc in iccs[:500]]
    covered = np.mean([end.low < truth < end.high for end in ends])
    assert 0.92 < covered < 0.98


def test_spearman_brown_doubles_pearsons_r_into_the_icc_of_two_z_scores():
    x, y = np.random.default_rng(1).normal(size=(2, 30))
    y += x
    z = np.column_stack([stats.zscore(x, ddof=1), stats.zscore(y, ddof=1)])
    doubled = spearman_brown(float(stats.pearsonr(x, y).statistic), 2)
    assert icc_consistency(z) == pytest.approx(doubled, abs=1e-14)


JURY = PanelColumns(("j0", "j1", "j2"), 3)
SINGLES = ["j0", "j1", "j2", "rouge-l"]
PANELS = [JURY, *map(single_rater, SINGLES)]


def make_grid(n=24, per=1, missing=0.0, seed=0):
    """Five clinicians, two or three a response, three jurors and a metric."""
    random = np.random.default_rng(seed)
    quality = np.repeat(random.normal(size=n // per), per) + 0.5 * random.normal(size=n)
    raters = [*(f"dr{i}" for i in range(5)), *SINGLES]
    table = 3 + quality[:, None] * random.uniform(0.3, 1, 9) + 0.7 * random.normal(size=(n, 9))
    table = np.round(table * 3) / 3 + np.linspace(-0.5, 0.5, 9)
    table[:, 8] = 0.85 + 0.01 * table[:, 8]
    for row in table:
        row[random.permutation(5)[: random.integers(2, 4)]] = np.nan
    table[:, 5:][random.random((n, 4)) < missing] = np.nan
    return grid_of(table, raters, np.repeat(np.arange(n // per), per))


def grid_of(table, raters, clusters):
    kinds = tuple({"d": "clinician", "j": "juror", "r": "metric"}[name[0]] for name in raters)
    rows, table = tuple(f"response{i}" for i in range(len(table))), np.asarray(table, float)
    return RatingMatrix(table, rows, np.asarray(clusters), tuple(raters), kinds)


def expand(grid, counts):
    """Write a resample out: a response drawn twice is two rows, named apart."""
    drawn = np.repeat(np.arange(grid.n_clusters), counts.astype(int))
    rows = np.concatenate([np.flatnonzero(grid.clusters == cluster) for cluster in drawn])
    return pd.DataFrame(grid.composites[rows], columns=list(grid.raters))


def by_definition(table, members, method):
    """Section 4 of the design, step by step in pandas, then pingouin."""
    doctors = [name for name in table if name.startswith("dr")]
    values = (table - table.mean()) / table.std(ddof=1) if method == "paper" else table
    pair = pd.DataFrame(
        {
            "clinicians": values[doctors].mean(axis=1),
            "scorer": values[members].mean(axis=1).where(table[members].notna().all(axis=1)),
        }
    ).dropna()
    if method == "published":
        pair = (pair - pair.mean()) / pair.std(ddof=1)
    return by_pingouin(pair)["ICC(C,k)"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("per", "missing"), [(1, 0.0), (1, 0.15), (3, 0.1)])
def test_a_replicate_is_what_pingouin_finds_in_the_resample_written_out(method, per, missing):
    grid = make_grid(per=per, missing=missing, seed=per)
    resampled = next(draw_counts(grid.n_clusters, reps=2, seed=1))
    counts = np.vstack([np.ones(grid.n_clusters), resampled])
    drawn = scorer_iccs(grid, PANELS, method, counts)
    for resample, ours in zip(counts, drawn, strict=True):
        table = expand(grid, resample)
        members = [list(JURY.members), *([name] for name in SINGLES)]
        theirs = [by_definition(table, panel, method) for panel in members]
        assert ours == pytest.approx(theirs, abs=1e-10)


def test_instances_with_several_responses_widen_the_interval():
    random = np.random.default_rng(0)
    quality = np.repeat(random.normal(size=20), 6)
    lucky = np.repeat(random.normal(size=20), 6)
    table = np.column_stack([quality + lucky, quality])
    table += 0.1 * random.normal(size=table.shape)
    clusters = np.repeat(np.arange(20), 6)
    spread = []
    for groups in (clusters, np.arange(120)):
        statistic = partial(
            scorer_iccs, grid_of(table, ["dr0", "j0"], groups), [single_rater("j0")], "paper"
        )
        how = BootstrapPlan(int(groups.max()) + 1, 120, reps=800)
        spread.append(float(replicates(statistic, how).std()))
    assert spread[0] > 1.5 * spread[1]


def test_a_jury_has_a_score_only_where_all_jurors_gave_one():
    grid = make_grid(missing=0.3, seed=1)
    given = ~np.isnan(grid.composites[:, 5:8])
    assert (JURY.present(grid) == given.all(axis=1)).all()
    assert (PanelColumns(JURY.members, 2).present(grid) == (given.sum(axis=1) >= 2)).all()


def test_a_relaxed_jury_is_the_mean_of_the_jurors_who_answered():
    grid = grid_of([[1, 2, np.nan], [2, 4, 6], [3, np.nan, np.nan]], ["dr0", "j0", "j1"], [0, 1, 2])
    scorer = columns(grid, PanelColumns(("j0", "j1"), 1), "published").scorer
    assert scorer == pytest.approx([2, 5, np.nan], nan_ok=True)


def test_a_rater_without_variance_is_named_and_has_no_z():
    table = make_grid().composites
    table[~np.isnan(table[:, 0]), 0] = 13 / 3
    grid = grid_of(table, make_grid().raters, np.arange(24))
    without = grid_of(table[:, 1:], make_grid().raters[1:], np.arange(24))
    assert unscaled(grid, grid.raters) == ("dr0",)
    both = columns(grid, JURY, "paper").clinicians
    assert both == pytest.approx(columns(without, JURY, "paper").clinicians, nan_ok=True)


def test_a_resample_that_leaves_a_rater_no_variance_leaves_the_rater_out():
    grid = grid_of(
        [[1, 3, 2], [4, 3, 3], [2, 5, 5], [5, np.nan, 4]], ["dr0", "dr1", "j0"], [0, 1, 2, 3]
    )
    counts = np.array([[2.0, 1, 0, 1]])  # dr1 is left with 3, 3, 3
    ours = scorer_iccs(grid, [single_rater("j0")], "paper", counts)[0, 0]
    # dr0 and j0 alone are two columns of z: 2r / (1 + r).
    table = expand(grid, counts[0])
    r = table["dr0"].corr(table["j0"])
    assert weighted(grid, counts, "paper").counted.tolist() == [[1, 0, 1]]
    assert ours == pytest.approx(2 * r / (1 + r))


@pytest.mark.parametrize("method", METHODS)
def test_a_juror_whose_scores_are_all_equal_is_undefined_and_not_zero(method):
    grid = grid_of([[i, 4.0] for i in range(9)], ["dr0", "j0"], range(9))
    pair = columns(grid, single_rater("j0"), method)
    x, y = pair.clinicians[pair.both], pair.scorer[pair.both]
    assert np.isnan(column_icc(x, y, method))
    assert str(why_undefined(x, y)).startswith("undefined")
    assert np.isnan(scorer_iccs(grid, [single_rater("j0")], method, np.ones((1, 9)))).all()


def test_two_common_responses_are_too_few():
    why = why_undefined(np.array([1.0, 2]), np.array([2.0, 1]))
    assert (why.code, why["responses"]) == ("too_few_responses", 2)


def test_a_mirrored_column_is_undefined_and_not_minus_infinity():
    x = np.array([1.0, 2, 4])
    assert "mirror" in str(why_undefined(x, -x))
    assert np.isnan(column_icc(x, -x, "paper"))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_drawing_everything_once_gives_the_number_itself(method, missing):
    grid = make_grid(missing=missing, seed=4)
    drawn = scorer_iccs(grid, PANELS, method, np.ones((1, grid.n_clusters)))[0]
    for ours, panel in zip(drawn, PANELS, strict=True):
        pair = columns(grid, panel, method)
        x, y = pair.clinicians[pair.both], pair.scorer[pair.both]
        assert ours == pytest.approx(column_icc(x, y, method), abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_moving_one_rater_up_or_renaming_responses_changes_nothing(method):
    grid = make_grid(seed=6)
    order = np.random.default_rng(0).permutation(24)
    moved = grid.composites[order].copy()
    moved[:, 5] += 0.7  # juror j0, everywhere
    other = grid_of(moved, grid.raters, np.arange(24))
    pairs = [columns(each, JURY, method) for each in (grid, other)]
    before, after = (column_icc(pair.clinicians, pair.scorer, method) for pair in pairs)
    assert after == pytest.approx(before, abs=1e-12)


def test_stretching_one_raters_scale_changes_nothing_in_the_papers_method():
    grid = make_grid(seed=7)
    stretched = grid_of(grid.composites * [3, *[1] * 8], grid.raters, np.arange(24))
    one_way, another = (columns(each, JURY, "paper") for each in (grid, stretched))
    assert another.clinicians == pytest.approx(one_way.clinicians)


def test_a_worked_example_by_hand():
    # Rows (1, 2), (2, 2), (3, 5): row means 1.5, 2, 4; column means 2, 3; grand mean 2.5.
    # MS_rows = 2 (1 + .25 + 2.25) / 2 = 3.5. Residuals are 0, .5, -.5 and their negatives,
    # so MS_error = (0 + .25 + .25) 2 / 2 = 0.5. ICC(C,2) = 1 - .5 / 3.5 = 6/7.
    assert icc_consistency(np.array([[1, 2], [2, 2], [3, 5.0]])) == pytest.approx(6 / 7)


@given(TABLES, st.floats(-3, 3), st.floats(0.1, 10))
@settings(deadline=None)
def test_it_never_exceeds_1_and_shift_scale_and_order_change_nothing(scores, shift, factor):
    if np.ptp(scores.mean(axis=1)) == 0:
        return
    icc = float(icc_consistency(scores))
    assert icc <= 1
    moved = scores * factor
    moved[:, 0] += shift
    assert icc_consistency(moved) == pytest.approx(icc, rel=1e-6, abs=1e-9)
    assert icc_consistency(scores[::-1, ::-1]) == pytest.approx(icc, rel=1e-9, abs=1e-9)


@given(arrays(np.float64, (7, 2), elements=st.floats(-5, 5, width=16)))
@settings(deadline=None)
def test_two_columns_obey_the_covariance_identity(scores):
    (vx, cov), (_, vy) = np.cov(scores.T)
    if vx + vy + 2 * cov < 1e-3:
        return
    assert icc_consistency(scores) == pytest.approx(4 * cov / (vx + vy + 2 * cov), abs=1e-8)


def test_a_wider_confidence_is_a_wider_interval_around_the_same_icc():
    narrow, wide = f_interval(0.5, 40, confidence=0.8), f_interval(0.5, 40, confidence=0.99)
    assert wide.low < narrow.low < 0.5 < narrow.high < wide.high
    assert f_interval(-1.2, 18).low < -1.2  # not cut at 0


def test_spearman_brown_undoes_itself():
    assert spearman_brown(spearman_brown(0.3, 4), 1 / 4) == pytest.approx(0.3)
