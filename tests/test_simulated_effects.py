"""What intervals cover and margins decide, in simulated studies of four crossed clinicians."""

import numpy as np
import pytest

from calibration.agreement import Panel
from calibration.bootstrap import Resampling, replicates
from calibration.grid import Grid
from calibration.like_for_like import held_replicates, like_for_like

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

JURY = Panel(("jury",), 1)
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
    return Grid(
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
        found = like_for_like(grid, JURY, "paper")
        statistic = held_replicates(grid, JURY, found, "paper")
        yield np.quantile(replicates(statistic, Resampling(n, n, reps=400)), 0.025)


def test_an_equal_jury_is_within_a_tenth_in_most_studies_and_one_that_much_worse_in_hardly_any():
    assert np.mean([low > -0.1 for low in low_ends(EQUAL, 300)]) >= 0.85
    assert np.mean([low > -0.1 for low in low_ends(WORSE, 600)]) <= 0.04
