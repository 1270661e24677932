import numpy as np
import pytest
from kit.scores import note_of, study

from calibration.agreement import PanelColumns, column_icc, columns, scorer_replicates
from calibration.influence import influence_rows
from calibration.jackknife import deletions, iccs_without
from calibration.rating_matrix import RatingMatrix
from calibration.scope import scopes, without_instances
from calibration.table import agreement_table
from calibration.values import AnalysisOptions

METHODS = ["paper", "published"]
JURY = PanelColumns(("j0", "j1", "j2"), 3)
ANY_TWO = PanelColumns(("j0", "j1", "j2"), 2)
METRIC = PanelColumns(("m0",), 1)


def make_grid(n=30, per=1, doctors=5, seed=0, steps=3):
    """Two or three clinicians a response, jurors with gaps, a metric far from the scale."""
    random = np.random.default_rng(seed)
    quality = np.repeat(random.normal(size=-(-n // per)), per)[:n]
    table = 3 + quality[:, None] + random.normal(size=(n, doctors + 4))
    table = np.round(table * steps) / steps + np.linspace(-1, 1, doctors + 4)
    table[:, -1] = 0.85 + 0.01 * table[:, -1]
    for row in table:
        row[random.permutation(doctors)[random.integers(2, 4) :]] = np.nan
    table[:, doctors:][random.random((n, 4)) < 0.08] = np.nan
    return grid_of(table, doctors, np.arange(n) // per)


def grid_of(table, doctors, clusters=None):
    names = [*(f"dr{i}" for i in range(doctors)), "j0", "j1", "j2", "m0"][: table.shape[1]]
    kinds = [{"d": "clinician", "j": "juror", "m": "metric"}[name[0]] for name in names]
    where = np.arange(len(table)) if clusters is None else clusters
    rows = tuple(f"r{i}" for i in range(len(table)))
    return RatingMatrix(np.asarray(table, float), rows, where, tuple(names), tuple(kinds))


def left_out_iccs(grid, panel, method, groups):
    return iccs_without(deletions(grid, method, groups), panel)


def by_force(grid, panel, method, groups):
    found = []
    for group in range(int(groups.max()) + 1):
        rows = groups != group
        left = grid_of(grid.composites[rows], len(grid.of_kind("clinician")))
        pair = columns(left, panel, method)
        found.append(column_icc(pair.clinicians[pair.both], pair.scorer[pair.both], method))
    return np.array(found)


def scope_of(scores, **options):
    return next(scopes(scores, AnalysisOptions(**{"reps": 0} | options)))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("panel", [JURY, ANY_TWO, PanelColumns(("j1",), 1), METRIC])
@pytest.mark.parametrize("per", [1, 3])
def test_each_deletion_is_what_starting_again_without_it_gives(method, panel, per):
    for seed in range(4):
        grid = make_grid(per=per, seed=seed)
        for groups in (np.arange(30), grid.clusters):
            ours = left_out_iccs(grid, panel, method, groups)
            np.testing.assert_allclose(ours, by_force(grid, panel, method, groups), atol=1e-11)


@pytest.mark.parametrize("method", METHODS)
def test_leaving_instances_out_is_the_bootstraps_jackknife(method):
    grid = make_grid(n=36, per=3, seed=7)
    counts = 1.0 - np.eye(12)

    jackknife = scorer_replicates(grid, JURY, ["m0"], method)(counts)

    np.testing.assert_allclose(left_out_iccs(grid, JURY, method, grid.clusters), jackknife[:, 0])
    np.testing.assert_allclose(left_out_iccs(grid, METRIC, method, grid.clusters), jackknife[:, 1])


@pytest.mark.parametrize("method", METHODS)
def test_few_and_coarse_ratings_that_leave_raters_flat_are_still_exact(method):
    seen_undefined = 0
    for seed in range(60):
        random = np.random.default_rng(seed)
        table = random.integers(4, 6, size=(7, 7)).astype(float)
        table[random.random(table.shape) < 0.3] = np.nan
        table = table[~np.isnan(table[:, :3]).all(axis=1)]
        grid = grid_of(table, 3)
        groups = np.arange(len(table))
        for panel in (ANY_TWO, PanelColumns(("j0",), 1)):
            ours, truth = (way(grid, panel, method, groups) for way in (left_out_iccs, by_force))
            np.testing.assert_allclose(ours, truth, atol=1e-9)
            seen_undefined += int(np.isnan(truth).sum())
    assert seen_undefined


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "change",
    ["a shift of one rater, or of all clinicians", "one scale for all", "permuted responses"],
)
def test_what_leaves_the_icc_alone_leaves_the_deletions_alone(method, change):
    grid = make_grid(seed=2)
    table, order = grid.composites.copy(), np.arange(30)
    if "shift" in change:
        table[:, : 1 if method == "paper" else 5] += 7
    elif "scale" in change:
        table *= 3
    else:
        order = np.random.default_rng(0).permutation(30)
    changed = left_out_iccs(grid_of(table[order], 5), JURY, method, np.arange(30))

    np.testing.assert_allclose(changed, left_out_iccs(grid, JURY, method, np.arange(30))[order])


def test_a_response_planted_far_out_decides_and_is_named():
    x = np.array([1.0, 2, 1, 2, 1, 2, 1, 2, 9])
    y = np.array([1.0, 1, 2, 2, 1, 1, 2, 2, 9])
    grid = grid_of(np.column_stack([x, y]), 1)
    grid = RatingMatrix(grid.composites, grid.responses, grid.clusters, ("dr0", "j0"), grid.kinds)

    # Without the last, cov(x, y) = 0 exactly; any other z is of one straight line, so r = 0.
    without = left_out_iccs(grid, PanelColumns(("j0",), 1), "published", np.arange(9))

    assert without[8] == pytest.approx(0, abs=1e-12)
    assert without[:8].min() > 0.9


@pytest.mark.parametrize("method", METHODS)
def test_the_rows_are_those_of_a_study_without_the_instance(method):
    scores = study(n=24, per=3, seed=3)
    rows = influence_rows(scope_of(scores, method=method), most=3)
    jury = [row for row in rows if row.scorer == "jury"]

    assert {row.left_out.split(":")[0] for row in jury} == {"response", "instance"}
    for row in jury:
        assert row.change == row.icc_without - row.icc_all
        kind, name = row.left_out.split(":", 1)
        if kind == "instance":
            less = agreement_table(without_instances(scores, [name]), method=method, reps=0)
            assert row.icc_without == pytest.approx(less.set_index("scorer")["icc"]["jury"])


def test_rows_come_largest_first_scorer_by_scorer_and_no_more_than_asked():
    rows = influence_rows(scope_of(study(n=24, per=3)), most=2)
    by_scorer = [row.scorer for row in rows]

    assert list(dict.fromkeys(by_scorer)) == [
        "jury",
        *("juror:claude", "juror:gpt", "juror:llama", "metric:rouge-l"),
    ]
    assert all(by_scorer.count(name) == 4 for name in by_scorer)
    sizes = [abs(row.change) for row in rows if row.scorer == "jury"]
    assert sizes == sorted(sizes, reverse=True)


def test_what_leaves_no_icc_comes_first_and_says_so():
    scores = study(n=12, seed=1)
    table = scores.ratings.copy()
    table.loc[(table["kind"] == "juror") & (table["response_id"] != "aci-r3"), "score"] = 4.0
    table.loc[(table["kind"] == "juror") & (table["response_id"] == "aci-r3"), "score"] = 1.0
    flat = type(scores)(table, scores.responses, scores.rubrics)

    for method in METHODS:
        first = influence_rows(scope_of(flat, method=method))[0]
        assert first.left_out == "response:aci-r3"
        assert np.isnan(first.icc_without)
        assert np.isnan(first.change)
        assert note_of(first) == "without this response the ICC is undefined"


def test_a_scorer_without_an_icc_has_one_row_with_the_reason():
    scores = study(n=12)
    silent = type(scores)(
        scores.ratings[scores.ratings["kind"] != "metric"], scores.responses, scores.rubrics
    )
    table = silent.ratings.copy()
    table.loc[table["rater"] == "gpt", "score"] = 5.0
    flat = type(scores)(table, scores.responses, scores.rubrics)

    (row,) = [row for row in influence_rows(scope_of(flat)) if row.scorer == "juror:gpt"]

    assert row.left_out is None
    assert np.isnan([row.icc_all, row.icc_without, row.change]).all()
    assert note_of(row).startswith("undefined:")
