"""The ICC, its F interval and its replicates by published tables, pingouin and hand, and the agreement table."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from kit.composites import SHROUT_FLEISS, by_pingouin
from kit.scores import DOCTORS, JURORS, note_of, rescored, rescored_of, rows_of, study, without
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
from calibration.decision import DecisionKind
from calibration.icc import (
    agreement_interval,
    f_interval,
    icc_agreement,
    icc_consistency,
    mean_squares,
    spearman_brown,
)
from calibration.rating_matrix import RatingMatrix, analysed_grid, composites
from calibration.scope import without_instances
from calibration.table import COLUMNS, agreement, agreement_rows, agreement_table
from calibration.values import AnalysisOptions
from calibration.verdict import decide
from calibration.weighted import scorer_iccs, weighted
from data.errors import BadInput, TooFew

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


def test_spearman_brown_doubles_pearsons_r_into_the_icc_of_two_z_scores_and_undoes_itself():
    x, y = np.random.default_rng(1).normal(size=(2, 30))
    y += x
    z = np.column_stack([stats.zscore(x, ddof=1), stats.zscore(y, ddof=1)])
    doubled = spearman_brown(float(stats.pearsonr(x, y).statistic), 2)
    assert icc_consistency(z) == pytest.approx(doubled, abs=1e-14)
    assert spearman_brown(spearman_brown(0.3, 4), 1 / 4) == pytest.approx(0.3)


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
    pairs = [columns(grid, panel, method) for panel in PANELS]
    iccs = [column_icc(one.clinicians[one.both], one.scorer[one.both], method) for one in pairs]
    assert drawn[0] == pytest.approx(iccs, abs=1e-12)
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
        grid = grid_of(table, ["dr0", "j0"], groups)
        statistic = partial(scorer_iccs, grid, [single_rater("j0")], "paper")
        how = BootstrapPlan(int(groups.max()) + 1, 120, reps=800)
        spread.append(float(replicates(statistic, how).std()))
    assert spread[0] > 1.5 * spread[1]


def test_a_jury_has_a_score_only_where_all_jurors_gave_one_and_a_relaxed_one_the_mean_of_some():
    grid = make_grid(missing=0.3, seed=1)
    given = ~np.isnan(grid.composites[:, 5:8])
    assert (JURY.present(grid) == given.all(axis=1)).all()
    assert (PanelColumns(JURY.members, 2).present(grid) == (given.sum(axis=1) >= 2)).all()
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
    table = [[1, 3, 2], [4, 3, 3], [2, 5, 5], [5, np.nan, 4]]
    grid = grid_of(table, ["dr0", "dr1", "j0"], [0, 1, 2, 3])
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


def test_two_common_responses_are_too_few_and_a_mirrored_column_is_undefined():
    why = why_undefined(np.array([1.0, 2]), np.array([2.0, 1]))
    assert (why.code, why["responses"]) == ("too_few_responses", 2)
    x = np.array([1.0, 2, 4])
    assert "mirror" in str(why_undefined(x, -x))
    assert np.isnan(column_icc(x, -x, "paper"))


@pytest.mark.parametrize("method", METHODS)
def test_moving_one_rater_up_or_renaming_responses_changes_nothing_nor_a_stretched_z(method):
    grid = make_grid(seed=6)
    order = np.random.default_rng(0).permutation(24)
    moved = grid.composites[order].copy()
    moved[:, 5] += 0.7  # juror j0, everywhere
    moved[:, 0] *= 3 if method == "paper" else 1
    other = grid_of(moved, grid.raters, np.arange(24))
    pairs = [columns(each, JURY, method) for each in (grid, other)]
    before, after = (column_icc(pair.clinicians, pair.scorer, method) for pair in pairs)
    assert after == pytest.approx(before, abs=1e-12)


def test_a_worked_example_by_hand_and_no_lower_bound():
    # Rows (1, 2), (2, 2), (3, 5): row means 1.5, 2, 4; column means 2, 3; grand mean 2.5.
    # MS_rows = 2 (1 + .25 + 2.25) / 2 = 3.5. Residuals are 0, .5, -.5 and their negatives,
    # so MS_error = (0 + .25 + .25) 2 / 2 = 0.5. ICC(C,2) = 1 - .5 / 3.5 = 6/7.
    assert icc_consistency(np.array([[1, 2], [2, 2], [3, 5.0]])) == pytest.approx(6 / 7)
    nearly_mirrored = np.array([[1, 5], [2, 4], [3, 3], [4, 2.1]])
    assert icc_consistency(nearly_mirrored) < -100


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


def test_a_wider_confidence_is_a_wider_interval_around_the_same_icc():
    narrow, wide = f_interval(0.5, 40, confidence=0.8), f_interval(0.5, 40, confidence=0.99)
    assert wide.low < narrow.low < 0.5 < narrow.high < wide.high
    assert f_interval(-1.2, 18).low < -1.2  # not cut at 0


def tabled(scores, **options):
    return rows_of(agreement_table(scores, **{"reps": 60} | options))


def lost(scores, **of):
    """Return scores without the ratings whose columns are among these values."""
    return without(scores, scores.ratings[list(of)].isin(of).all(axis=1))


def test_the_table_has_the_contracts_columns_and_rows_in_order():
    table = agreement_table(study(("aci", "chw")), reps=50)
    assert tuple(table.columns) == COLUMNS
    assert ",".join(COLUMNS) == (
        "benchmark,scorer,icc,low,high,f_low,f_high,"
        "n_responses,n_instances,n_clinicians,n_pairs,n_missing,spearman,"
        "n_not_applicable,n_cannot_tell,note"
    )
    people = ["metric:rouge-l", "clinicians", "like_for_like"]
    assert table["scorer"].tolist() == ["jury", *(f"juror:{name}" for name in JURORS), *people] * 3
    assert table["benchmark"].unique().tolist() == ["aci", "chw", "combined"]
    without_jurors = agreement_table(study(), jurors=[], reps=9)  # nor combined
    assert without_jurors["scorer"].tolist() == people[:2]


@pytest.mark.parametrize(
    "option",
    [{"min_jurors": 4}, {"min_jurors": 0}, {"min_shared": 1}, {"reps": -1}, {"method": "z"}],
)
def test_an_option_out_of_range_is_refused(option):
    with pytest.raises(BadInput):
        agreement_table(study(), **option)


def test_a_study_without_clinicians_or_with_a_benchmark_called_combined_is_refused():
    with pytest.raises(TooFew, match="no clinician"):
        tabled(lost(study(), kind=["clinician"]))
    with pytest.raises(BadInput, match="combined"):
        study(("combined",))


@pytest.mark.parametrize("method", METHODS)
def test_the_jurys_row_is_its_parts_put_together(method):
    scores = study(n=40, seed=1)
    grid = analysed_grid(composites(scores).values, ["aci"], jurors=JURORS, metrics=["rouge-l"])
    pair = columns(grid, PanelColumns(JURORS, 3), method)
    icc = column_icc(pair.clinicians, pair.scorer, method)
    row = tabled(scores, method=method, reps=400)["aci", "jury"]
    assert row.icc == icc
    assert (row.f_low, row.f_high) == tuple(vars(f_interval(icc, 40)).values())
    assert row.low < icc < row.high
    assert (row.n_responses, row.n_instances, row.n_clinicians, row.n_missing) == (40, 40, 5, 0)
    ranked = (pd.Series(one.round(9)) for one in (pair.clinicians, pair.scorer))
    assert row.spearman == pytest.approx(next(ranked).corr(next(ranked), method="spearman"))
    assert row.note == "scored 40 of 40"


def test_combined_is_all_benchmarks_at_once_with_z_over_all_of_them():
    scores = study(("aci", "chw"), seed=3)
    frames = {
        name: getattr(scores, name).assign(benchmark="aci") for name in ("ratings", "responses")
    }
    combined, pooled = tabled(scores), tabled(replace(scores, **frames))
    for scorer in ("jury", "juror:gpt", "metric:rouge-l", "clinicians", "like_for_like"):
        both = combined["combined", scorer], pooled["aci", scorer]
        assert both[0].icc == pytest.approx(both[1].icc)
        assert both[0].low == pytest.approx(both[1].low)


def test_a_missing_score_is_missing_and_never_a_zero():
    seven = [f"aci-r{i}" for i in range(7)]
    fewer = lost(study(seed=4), rater=["gpt"], response_id=seven, criterion=["clarity"])
    rows, relaxed = tabled(fewer), tabled(fewer, min_jurors=2)
    for scorer in ("jury", "juror:gpt"):
        row = rows["aci", scorer]
        assert (row.n_missing, row.n_responses) == (7, 23)
        assert row.note.startswith("scored 23 of 30")
        assert "7 readings lack a criterion" in row.note
    assert rows["aci", "juror:claude"].n_missing == 0
    assert relaxed["aci", "jury"].n_missing == 0
    assert "at least 2 of 3 jurors" in relaxed["aci", "jury"].note


def test_the_jury_is_who_was_chosen():
    rows = tabled(study(), jurors=["gpt"])
    assert rows["aci", "jury"][2:10] == pytest.approx(rows["aci", "juror:gpt"][2:10])
    assert ("aci", "juror:claude") not in rows


def test_repeats_are_averaged_first_and_the_order_of_rows_changes_nothing():
    scores = study(seed=6)
    again = scores.ratings[scores.ratings["rater"].isin(["dr0", "gpt"])].assign(replicate=1)
    doubled = pd.concat([scores.ratings, again])
    for ratings in (doubled, scores.ratings.sample(frac=1, random_state=0)):
        found = agreement_table(replace(scores, ratings=ratings), reps=60)
        pd.testing.assert_frame_equal(found, agreement_table(scores, reps=60))


@pytest.mark.parametrize("benchmarks", [("aci",), ("aci", "chw")])
def test_a_benchmark_of_one_instance_has_iccs_and_says_that_it_has_no_interval(benchmarks):
    rows = tabled(study(benchmarks, n=8, per=8), reps=40)
    for scorer in ("jury", "juror:gpt", "metric:rouge-l", "clinicians"):
        row = rows["aci", scorer]
        assert np.isfinite(row.icc)
        assert np.isnan([row.low, row.high]).all()
        assert "1 instance: an interval over instances is undefined" in row.note
    assert "BCa" not in rows["aci", "jury"].note


def test_scores_on_one_of_several_instances_have_no_interval_either():
    scores = study(n=16, per=8)
    rows = tabled(lost(scores, rater=["gpt"], instance_id=["aci-i1"]), reps=40)
    assert np.isfinite(rows["aci", "jury"].icc)
    assert np.isnan(rows["aci", "jury"].low)
    assert np.isfinite(rows["aci", "juror:claude"].low)
    left = tabled(without_instances(scores, ["aci-i1"]), reps=40)["aci", "jury"]
    assert (left.n_instances, np.isfinite(left.icc), np.isnan(left.low)) == (1, True, True)


@pytest.mark.parametrize(
    ("n", "at_top", "is_shown"), [(60, 50, False), (200, 160, False), (200, 120, True)]
)
def test_where_nearly_all_scores_are_at_one_end_an_icc_has_no_interval_and_the_reason(
    n, at_top, is_shown
):
    spared = [f"aci-r{place}" for place in range(at_top)]
    crowded = rescored(
        study(n=n, seed=2),
        lambda t: t["score"].mask(t["response_id"].isin(spared) & t["kind"].eq("clinician"), 5),
    )
    rows = {row.scorer: row for row in agreement_rows(crowded, AnalysisOptions())}
    row = rows["jury"]
    assert math.isfinite(row.icc)
    assert math.isfinite(row.low) is math.isfinite(row.high) is is_shown
    told = row.told("at_one_end")
    assert (told is None) is is_shown
    assert told is None or told["share"] > 2 / 3
    assert math.isfinite(rows["like_for_like"].low)


def test_a_table_of_scores_alone_is_analysed_as_a_study_of_it_is():
    scores = study(n=40)
    plain = scores.ratings.drop(columns=["pass_", "replicate"])
    found = agreement(plain, scale=(1, 5), min_jurors=2)
    pd.testing.assert_frame_equal(found.table, agreement_table(scores, min_jurors=2))
    rows = agreement_rows(scores, AnalysisOptions(min_jurors=2))
    assert found.decision == decide([row for row in rows if row.benchmark == "aci"])
    assert found.notes == rows[0].notes


def test_a_table_of_scores_needs_only_who_gave_what_to_which_response():
    rows = [
        (f"r{i}", who, kind, 1 + (i + shift) % 5)
        for i in range(9)
        for who, kind, shift in (("a", "clinician", 0), ("b", "clinician", 1), ("j", "juror", 0))
    ]
    ratings = pd.DataFrame(rows, columns=["response_id", "rater", "kind", "score"])
    found = agreement(ratings)
    assert found.table["benchmark"].unique().tolist() == ["all"]
    assert found.decision.kind is DecisionKind.TOO_FEW
    with pytest.raises(BadInput, match="kind"):
        agreement(ratings.drop(columns="kind"))


def test_responses_no_clinician_rated_are_not_analysed_but_counted_in_the_note():
    five = [f"aci-r{i}" for i in range(5)]
    row = tabled(lost(study(seed=5), kind=["clinician"], response_id=five))["aci", "jury"]
    assert (row.n_responses, row.n_missing) == (25, 0)
    assert "scored 25 of 25 responses that clinicians rated, 30 of all 30" in row.note


TWO = ("aci", "chw")
UNRATED = lost(study(TWO), kind=["clinician"], benchmark=["chw"])


@pytest.mark.parametrize(
    ("scores", "criterion", "of", "reason"),
    [
        (UNRATED, None, "chw", "undefined: no clinician"),
        (study(TWO, criteria={"chw": ("accuracy",)}), "clarity", "chw", "no criterion clarity"),
        (study(TWO, scales={"chw": (1, 7)}), None, "combined", "different scales"),
    ],
)
def test_a_benchmark_that_is_undefined_says_why_and_the_others_are_not(
    scores, criterion, of, reason
):
    rows = tabled(scores, criterion=criterion)
    own = [row for (benchmark, _), row in rows.items() if benchmark == of]
    assert all(math.isnan(row.icc) for row in own)
    assert reason in rows[of, "jury"].note
    assert rows["aci", "jury"].icc > 0.5
    if of == "chw":
        assert rows["combined", "jury"].icc == rows["aci", "jury"].icc
        assert rows["combined", "jury"].n_responses == 30


def test_a_juror_without_variance_is_named_and_not_zero():
    flat = rescored_of(study(n=40), "gpt", 4.0)
    rows = tabled(flat)
    juror, jury = rows["aci", "juror:gpt"], rows["aci", "jury"]
    assert math.isnan(juror.icc)
    assert math.isnan(tabled(flat, method="published")["aci", "juror:gpt"].icc)
    assert (juror.n_responses, juror.n_missing) == (40, 0)
    assert juror.note == "scored 40 of 40; undefined: the scorer has no variance, hence no z"
    assert "no variance: gpt" in jury.note
    assert jury.icc == pytest.approx(tabled(flat, jurors=["claude", "llama"])["aci", "jury"].icc)


@pytest.mark.parametrize("method", METHODS)
def test_one_clinician_has_nobody_to_be_compared_with_and_is_counted(method):
    alone = tabled(lost(study(), rater=[*DOCTORS[1:]]), method=method)
    for scorer in ("clinicians", "like_for_like"):
        row = alone["aci", scorer]
        assert math.isnan(row.icc)
        assert row.note.startswith("undefined: only one clinician rated here, dr0")
        assert "mixed model" not in row.note
        assert (row.n_responses, row.n_clinicians) == (0, 1)
    assert alone["aci", "like_for_like"].n_missing == alone["aci", "jury"].n_responses


def test_what_no_comparison_uses_is_missing_from_like_for_like_and_clinicians_are_told():
    scores = study(n=40, seed=2)
    clinical = scores.ratings["kind"].eq("clinician")
    second = clinical & scores.ratings.duplicated(["response_id", "kind", "criterion"])
    two = scores.ratings["response_id"].isin(["aci-r0", "aci-r1"])
    some, none = (tabled(without(scores, second & rows)) for rows in (two, clinical))
    held = some["aci", "like_for_like"]
    assert (held.n_responses, held.n_missing) == (38, 2)
    assert "undefined: no two clinicians share 2 responses" in none["aci", "clinicians"].note
    assert "(no response has all the scores needed" in none["aci", "like_for_like"].note
    assert none["aci", "clinicians"].n_clinicians == 5


def test_a_scorer_that_ranks_against_the_clinicians_is_told_from_one_that_knows_nothing():
    scores = study(n=80, seed=1)
    metric = scores.ratings["rater"] == "rouge-l"
    noise = np.zeros(len(metric))
    noise[metric] = np.random.default_rng(0).normal(size=metric.sum())
    against = rescored(scores, lambda t: t["score"].mask(metric, -t["score"]))
    unrelated = rescored(scores, lambda t: t["score"].mask(metric, noise))
    opposite, neither = (tabled(one)["aci", "metric:rouge-l"] for one in (against, unrelated))
    assert opposite.high < 0
    assert opposite.spearman < 0
    assert "it ranks responses against the clinicians' order" in opposite.note
    assert neither.high > 0 > neither.icc
    assert "below 0: no agreement beyond chance" in neither.note


def test_a_simulated_rater_marks_every_row_it_enters_and_no_other():
    rows = agreement_rows(study(simulated=["gpt"]), AnalysisOptions(reps=60))
    marked = {row.scorer: row.simulated for row in rows if row.simulated}
    assert marked == dict.fromkeys(("jury", "juror:gpt", "like_for_like"), ("gpt",))
    assert marked.keys() == {row.scorer for row in rows if "simulated" in note_of(row)}
    everywhere = agreement_table(study(simulated=DOCTORS), reps=60)
    assert everywhere["note"].str.contains("simulated").all()
