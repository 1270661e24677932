"""Where the truth is known, the intervals hold it as often as they say, or as seldom as is warned."""

from functools import partial

import numpy as np
import pytest

from calibration.bootstrap import BootstrapPlan, percentile_interval, replicates
from calibration.columns import PanelColumns, column_icc, columns
from calibration.icc import f_interval
from calibration.rating_matrix import RatingMatrix
from calibration.weighted import scorer_iccs

STUDIES = 400
REPS = 400
# Of each column: half is truth (between instances and within), half the rater's own, as much of
# it between instances as within. Two such columns correlate by 1/2: ICC(3,2) = 2r / (1 + r).
TRUTH = 2 / 3


def study(random: np.random.Generator, instances: int, each: int) -> RatingMatrix:
    """Return a clinician and a juror who share half their variance."""
    clusters = np.repeat(np.arange(instances), each)
    n = len(clusters)

    def part() -> np.ndarray:
        return random.normal(size=instances)[clusters] + random.normal(size=n)

    truth = part()
    values = np.column_stack([truth + part(), truth + part()])
    names = tuple(map(str, range(n)))
    return RatingMatrix(values, names, clusters, ("dr-a", "juror"), ("clinician", "juror"))


def covered(instances: int, each: int) -> tuple[float, float]:
    """Return how often the bootstrap over instances, and F, hold the truth."""
    random, panel = np.random.default_rng(instances), PanelColumns(("juror",), 1)
    boot = exact = 0
    for number in range(STUDIES):
        grid = study(random, instances, each)
        how = BootstrapPlan(instances, len(grid.responses), REPS, number)
        drawn = replicates(partial(scorer_iccs, grid, [panel], "paper"), how)[:, 0]
        ends = percentile_interval(drawn)
        pair = columns(grid, panel, "paper")
        icc = column_icc(pair.clinicians, pair.scorer, "paper")
        taken = f_interval(icc, len(grid.responses))
        boot += ends.low <= TRUTH <= ends.high
        exact += taken.low <= TRUTH <= taken.high
    return boot / STUDIES, exact / STUDIES


@pytest.mark.slow
def test_with_one_response_an_instance_both_intervals_hold_the_truth() -> None:
    boot, exact = covered(56, 1)
    assert 0.90 <= boot <= 0.98
    assert 0.92 <= exact <= 0.98


@pytest.mark.slow
def test_with_nine_responses_an_instance_only_the_bootstrap_over_instances_does() -> None:
    boot, exact = covered(56, 9)
    assert 0.90 <= boot <= 0.98
    assert exact < 0.88


@pytest.mark.slow
def test_with_twelve_instances_the_bootstrap_is_too_narrow_as_the_note_says() -> None:
    boot, _ = covered(12, 5)
    assert 0.80 <= boot <= 0.94
