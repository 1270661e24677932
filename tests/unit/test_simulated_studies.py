"""What intervals cover and what verdicts say, in simulated studies whose truth is known: docs/evidence.md has a table."""

from functools import partial

import numpy as np
import pytest
from kit.composites import (
    JURY,
    MARGIN,
    Design,
    crossed,
    dice,
    difference_under,
    drawn,
    grid_of,
    loading,
    may_pass,
    scope_of,
    verdicts,
)

from calibration.bootstrap import BootstrapPlan, replicates
from calibration.clinicians import like_for_like, population_interval, without_each
from calibration.columns import PanelColumns
from calibration.crossed import crossed_model, reliability_intervals
from calibration.protocol import Protocol
from calibration.table import scope_rows
from calibration.verdict import JuryClaim, decide

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]
ONE_JUROR = PanelColumns(("j0",), 1)
EQUAL = 1.5  # error variance: ICC 0.4 with a clinician


def simulated(random, n, errors, jury, per=4):
    """Return a study of n responses: clinicians' error variances, and the jury's; `per` of them rate."""
    true = random.normal(size=(n, 1))
    table = true + random.normal(size=(n, len(errors))) * np.sqrt(errors)
    left = np.argsort(random.random(table.shape), axis=1)[:, per:]
    np.put_along_axis(table, left, np.nan, axis=1)
    table = np.hstack([table, true + random.normal(size=(n, 1)) * np.sqrt(jury)])
    return grid_of(table, jurors=1)


def loading_of(errors):
    """Return the correlation with the truth that an error variance leaves."""
    return 1 / np.sqrt(1 + np.asarray(errors))


def true_difference(errors, jury):
    """Return like for like without sampling error of studies, errors (studies, clinicians).

    With correlations l_i l_j the sums over the clinicians left out are of their loadings alone.
    """
    own, clinicians = loading_of(errors), errors.shape[1]
    rest = (own.sum(axis=1, keepdims=True) - own) / (clinicians - 1)
    squares = (own**2).sum(axis=1, keepdims=True) - own**2
    var = rest**2 + ((clinicians - 1) - squares) / (clinicians - 1) ** 2

    def stepped(xy):
        single = 2 * xy.sum(axis=1) / (clinicians + var.sum(axis=1))
        return 2 * single / (1 + np.abs(single))

    return stepped(loading_of(jury) * rest) - stepped(own * rest)


@pytest.mark.parametrize("n", [300, 1000])
def test_the_interval_over_clinicians_like_these_holds_the_truth_over_clinicians(n):
    random = np.random.default_rng(n)

    def reliabilities(studies):
        return 1.5 * np.exp(0.7 * random.normal(size=(studies, 4)))

    truth, held, fixed = true_difference(reliabilities(100_000), EQUAL).mean(), [], []
    for errors in reliabilities(250):
        grid = simulated(random, n, errors, EQUAL)
        found = like_for_like(grid, ONE_JUROR, "paper")
        statistic = partial(difference_under, grid, ONE_JUROR, "paper")
        resampled = replicates(statistic, BootstrapPlan(n, n, reps=100))
        without = [one.difference for one in without_each(grid, ONE_JUROR, found, "paper")]
        ends = population_interval(found, without, resampled.std(ddof=1))
        held.append(ends.low <= truth <= ends.high)
        fixed.append(np.abs(found.difference - truth) <= 1.96 * resampled.std())
    assert np.mean(held) >= 0.92
    assert np.mean(fixed) < 0.85


@pytest.mark.parametrize(
    ("n", "raters", "per", "variances"),
    [
        *((60, 4, 2, (1.0, 0.25, 1.0)), (60, 3, 2, (1.0, 0.5, 1.0))),
        *((100, 12, 2, (0.4, 0.25, 1.0)), (60, 4, 3, (4.0, 0.25, 1.0))),
    ],
)
def test_intervals_of_reliability_with_missing_cells_hold_the_truth(n, raters, per, variances):
    random = np.random.default_rng(3)
    response, _, residual = variances
    consistency, agreement = response / (response + residual), response / sum(variances)
    consistent, agreed = [], []
    for _ in range(600):
        table = crossed(random, n, raters, per, variances)
        model = crossed_model(table)
        if model.reason:
            continue
        of_one, among = reliability_intervals(model, table)
        consistent.append(of_one.low <= consistency <= of_one.high)
        agreed.append(among.low <= agreement <= among.high)
    assert len(agreed) > 590
    assert 0.93 <= np.mean(consistent) <= 0.975
    assert 0.92 <= np.mean(agreed) <= 0.98


ALL_READ = [
    Design(clinicians, 0.4, responses, ceiling)
    for responses in (100, 1000)
    for ceiling in (False, True)
    for clinicians in (2, 3, 4, 6)
]
DESIGNS = [*ALL_READ, *(Design(6, 0.4, n, top, 2) for n in (100, 1000) for top in (False, True))]


def named(design):
    readers = f"{design.readers or design.clinicians} of {design.clinicians}"
    return (
        f"{readers} clinicians, {design.responses} {'at the ceiling' * design.ceiling or 'normal'}"
    )


@pytest.mark.parametrize("single", [0.0, 0.1])
@pytest.mark.parametrize("design", DESIGNS, ids=named)
def test_dice_are_never_no_worse_than_clinicians_who_agree_on_nothing_and_next_to_never_else(
    design, single
):
    weak = Design(design.clinicians, single, design.responses, design.ceiling, design.readers)
    random = np.random.default_rng(design.responses + design.clinicians)
    found = verdicts(dice(weak, random) for _ in range(1000))
    assert found["non_inferior"] <= (0 if single == 0 else 10)


@pytest.mark.parametrize("design", DESIGNS, ids=named)
def test_a_jury_worse_by_exactly_the_margin_is_no_worse_in_at_most_35_of_1000_studies(design):
    jury, random = loading(design, -MARGIN), np.random.default_rng(design.clinicians)
    found = verdicts(drawn(design, jury, random) for _ in range(1000))
    assert found["non_inferior"] <= 46  # 3.5 %, and two standard errors of 1,000 studies


@pytest.mark.parametrize("design", [one for one in DESIGNS if one.responses == 1000], ids=named)
def test_a_jury_as_good_as_a_clinician_is_no_worse_in_three_of_four_studies_of_1000(design):
    jury, random = loading(design, 0.0), np.random.default_rng(design.clinicians)
    found = verdicts(drawn(design, jury, random) for _ in range(200))
    assert found["non_inferior"] >= 138  # 75 %, less two standard errors of 200 studies


def test_what_is_counted_as_far_by_its_estimates_is_never_no_worse():
    design, random = Design(3, 0.4, 60), np.random.default_rng(0)
    tables = [drawn(design, jury, random) for jury in (0.4, 0.6, 0.8, 0.95) for _ in range(8)]
    claim = JuryClaim(Protocol(MARGIN, jurors=JURY.members))
    kinds = [decide([*scope_rows(scope_of(table, reps=20))], claim).kind.value for table in tables]
    passing = [may_pass(table) for table in tables]
    assert "non_inferior" in kinds
    assert not all(passing)
    assert all(may for kind, may in zip(kinds, passing, strict=True) if kind == "non_inferior")
