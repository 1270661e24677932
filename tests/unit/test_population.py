import numpy as np
import pytest
from kit.composites import difference_under
from scipy import stats

from calibration.clinicians import like_for_like, population_interval, without_each
from calibration.columns import PanelColumns
from calibration.intervals import jackknife_error, left_out
from calibration.rating_matrix import RatingMatrix

JURY = PanelColumns(("jury",), 1)


def study(n=80, errors=(1.0, 1.0, 1.0, 1.0), per=None, seed=0):
    random = np.random.default_rng(seed)
    true = random.normal(size=(n, 1))
    table = true + random.normal(size=(n, len(errors))) * np.sqrt(errors)
    for row in table:
        row[random.permutation(len(errors))[per or len(errors) :]] = np.nan
    names = tuple(f"dr{place}" for place in range(len(errors)))
    column = true + random.normal(size=(n, 1))
    kinds = ("clinician",) * len(errors) + ("juror",)
    ids = tuple(map(str, range(n)))
    return RatingMatrix(np.hstack([table, column]), ids, np.arange(n), (*names, "jury"), kinds)


def compared(grid):
    found = like_for_like(grid, JURY, "paper")
    if not found.defined:
        return found, [], np.nan
    without = [one.difference for one in without_each(grid, JURY, found, "paper")]
    left = difference_under(grid, JURY, "paper", left_out(len(grid.responses)))
    return found, without, jackknife_error(left)


def test_it_is_the_jackknife_over_clinicians_and_over_instances():
    grid = study()
    found, differences, error = compared(grid)
    without = []
    for place in range(4):
        table = np.delete(grid.composites, place, axis=1)
        names = [name for name in grid.raters if name != f"dr{place}"]
        rest = RatingMatrix(table, grid.responses, grid.clusters, tuple(names), grid.kinds[1:])
        without.append(like_for_like(rest, JURY, "paper").difference)
    jackknife = 3 * np.var(without)  # (C - 1) / C times the sum of squares
    half = np.sqrt(stats.t.ppf(0.975, 3) ** 2 * jackknife + (1.959964 * error) ** 2)

    ends = population_interval(found, differences, error)

    assert (ends.low, ends.high) == pytest.approx(
        (found.difference - half, found.difference + half)
    )


def test_it_is_wider_than_that_of_these_clinicians_and_widest_where_they_differ():
    def widths(errors):
        grid = study(400, errors)
        found, differences, error = compared(grid)
        ends = population_interval(found, differences, error)
        return ends.high - ends.low, 2 * 1.96 * error

    alike, fixed = widths((1.0, 1.0, 1.0, 1.0))
    unlike, _ = widths((0.2, 0.5, 2.0, 6.0))
    assert fixed < alike < 4 * fixed
    assert unlike > 1.5 * alike


@pytest.mark.parametrize("clinicians", [1, 2])
def test_fewer_than_three_clinicians_have_none_and_the_reason(clinicians):
    grid = study(errors=(1.0,) * clinicians)

    found = population_interval(*compared(grid))

    assert found.code == "population_few"


def test_a_study_that_hangs_on_one_clinician_has_none_and_the_reason():
    grid = study(errors=(1.0,) * 3)
    grid.composites[:40, 1] = np.nan
    grid.composites[40:, 2] = np.nan  # dr1 and dr2 share nothing: all is with dr0

    found = population_interval(*compared(grid))

    assert found.code == "population_undefined"
