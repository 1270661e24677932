import warnings
from functools import partial

import numpy as np
import pandas as pd
import pingouin
import pytest

from calibration.bootstrap import BootstrapPlan, draw_counts, replicates
from calibration.columns import (
    PanelColumns,
    column_icc,
    columns,
    single_rater,
    unscaled,
    why_undefined,
)
from calibration.rating_matrix import RatingMatrix
from calibration.weighted import scorer_iccs, weighted

METHODS = ["paper", "published"]
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
    kinds = [{"d": "clinician", "j": "juror", "r": "metric"}[name[0]] for name in raters]
    rows = tuple(f"response{i}" for i in range(len(table)))
    return RatingMatrix(
        np.asarray(table, float), rows, np.asarray(clusters), tuple(raters), tuple(kinds)
    )


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
    long = pair.reset_index(names="target").melt(id_vars="target", var_name="judge")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pingouin.intraclass_corr(long, "target", "judge", "value").set_index("Type")
    return float(found.loc["ICC(C,k)", "ICC"])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("per", "missing"), [(1, 0.0), (1, 0.15), (3, 0.1)])
def test_a_replicate_is_what_pingouin_finds_in_the_resample_written_out(method, per, missing):
    grid = make_grid(per=per, missing=missing, seed=per)
    resampled = next(draw_counts(grid.n_clusters, reps=6, seed=1))
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
    assert "2 responses" in str(why)


def test_a_mirrored_column_is_undefined_and_not_minus_infinity():
    x = np.array([1.0, 2, 4])

    assert "mirror" in str(why_undefined(x, -x))
    assert np.isnan(column_icc(x, -x, "paper"))
