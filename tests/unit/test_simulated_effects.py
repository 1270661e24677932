"""What intervals cover and margins decide, in simulated studies of four crossed clinicians."""

from functools import partial

import numpy as np
import pytest
from kit.composites import difference_under

from calibration.bootstrap import BootstrapPlan, replicates
from calibration.clinicians import like_for_like, population_interval, without_each
from calibration.columns import PanelColumns
from calibration.crossed import crossed_model, reliability_intervals
from calibration.rating_matrix import RatingMatrix

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

JURY = PanelColumns(("jury",), 1)
EQUAL, WORSE = 1.5, 3.205  # error variance: ICC 0.4 with a clinician, and a like for like of -0.1


def drawn(random, n, errors, jury, per=4):
    """Return a study of n responses: clinicians' error variances, and the jury's; `per` of them rate."""
    true = random.normal(size=(n, 1))
    table = true + random.normal(size=(n, len(errors))) * np.sqrt(errors)
    left = np.argsort(random.random(table.shape), axis=1)[:, per:]
    np.put_along_axis(table, left, np.nan, axis=1)
    column = true + random.normal(size=(n, 1)) * np.sqrt(jury)
    names = tuple(f"dr{place}" for place in range(len(errors)))
    kinds = ("clinician",) * len(errors) + ("juror",)
    return RatingMatrix(
        np.hstack([table, column]),
        tuple(map(str, range(n))),
        np.arange(n),
        (*names, "jury"),
        kinds,
    )


def low_ends(jury, studies, n=1000):
    random = np.random.default_rng(11)
    for _ in range(studies):
        grid = drawn(random, n, np.full(4, 1.5), jury, per=2)
        statistic = partial(difference_under, grid, JURY, "paper")
        yield np.quantile(replicates(statistic, BootstrapPlan(n, n, reps=400)), 0.025)


def test_an_equal_jury_is_within_a_tenth_in_most_studies_and_one_that_much_worse_in_hardly_any():
    assert np.mean([low > -0.1 for low in low_ends(EQUAL, 300)]) >= 0.85
    assert np.mean([low > -0.1 for low in low_ends(WORSE, 600)]) <= 0.04


def loading(errors):
    """Return the correlation with the truth that an error variance leaves."""
    return 1 / np.sqrt(1 + np.asarray(errors))


def true_difference(errors, jury):
    """Return like for like without sampling error of studies, errors (studies, clinicians).

    With correlations l_i l_j the sums over the clinicians left out are of their loadings alone.
    """
    own, clinicians = loading(errors), errors.shape[1]
    rest = (own.sum(axis=1, keepdims=True) - own) / (clinicians - 1)
    squares = (own**2).sum(axis=1, keepdims=True) - own**2
    var = rest**2 + ((clinicians - 1) - squares) / (clinicians - 1) ** 2

    def stepped(xy):
        single = 2 * xy.sum(axis=1) / (clinicians + var.sum(axis=1))
        return 2 * single / (1 + np.abs(single))

    return stepped(loading(jury) * rest) - stepped(own * rest)


@pytest.mark.parametrize("n", [300, 1000])
def test_the_interval_over_clinicians_like_these_holds_the_truth_over_clinicians(n):
    random = np.random.default_rng(n)

    def reliabilities(studies):
        return 1.5 * np.exp(0.7 * random.normal(size=(studies, 4)))

    truth, held, fixed = true_difference(reliabilities(100_000), EQUAL).mean(), [], []
    for errors in reliabilities(250):
        grid = drawn(random, n, errors, EQUAL)
        found = like_for_like(grid, JURY, "paper")
        statistic = partial(difference_under, grid, JURY, "paper")
        resampled = replicates(statistic, BootstrapPlan(n, n, reps=100))
        without = [one.difference for one in without_each(grid, JURY, found, "paper")]
        ends = population_interval(found, without, resampled.std(ddof=1))
        held.append(ends.low <= truth <= ends.high)
        fixed.append(np.abs(found.difference - truth) <= 1.96 * resampled.std())
    assert np.mean(held) >= 0.92
    assert np.mean(fixed) < 0.85


def scored_by_some(random, n, raters, per, variances):
    response, rater, residual = np.sqrt(variances)
    table = response * random.normal(size=(n, 1)) + rater * random.normal(size=(1, raters))
    table = table + residual * random.normal(size=(n, raters))
    table[np.argsort(random.random(table.shape), axis=1).argsort(axis=1) >= per] = np.nan
    return table


@pytest.mark.parametrize(
    ("n", "raters", "per", "variances"),
    [
        (60, 4, 2, (1.0, 0.25, 1.0)),
        (60, 3, 2, (1.0, 0.5, 1.0)),
        (100, 12, 2, (0.4, 0.25, 1.0)),
        (60, 4, 3, (4.0, 0.25, 1.0)),
    ],
)
def test_intervals_of_reliability_with_missing_cells_hold_the_truth(n, raters, per, variances):
    random = np.random.default_rng(3)
    response, _, residual = variances
    consistency, agreement = response / (response + residual), response / sum(variances)
    consistent, agreed = [], []
    for _ in range(600):
        table = scored_by_some(random, n, raters, per, variances)
        model = crossed_model(table)
        if model.reason:
            continue
        of_one, among = reliability_intervals(model, table)
        consistent.append(of_one.low <= consistency <= of_one.high)
        agreed.append(among.low <= agreement <= among.high)
    assert len(agreed) > 590
    assert 0.93 <= np.mean(consistent) <= 0.975
    assert 0.92 <= np.mean(agreed) <= 0.98
