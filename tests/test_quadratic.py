"""The replicates of few raters, by matrix products, are those computed response by response."""

from dataclasses import replace

import numpy as np
import pytest

from calibration.agreement import FEW, PanelColumns, scorer_replicates
from calibration.bootstrap import draw_counts
from calibration.rating_matrix import RatingMatrix
from calibration.resampled_moments import scale
from calibration.values import Method


def grid(seed: int, *, clinicians: int, jurors: int, flat: bool = False) -> RatingMatrix:
    """Return scores with gaps, several responses an instance; `flat`: a clinician nearly is."""
    random = np.random.default_rng(seed)
    values = random.normal(3, 1, (30, clinicians + jurors)).round(2)
    if flat:
        values[2:, 0] = 3.0
    values[random.random(values.shape) < 0.25] = np.nan
    values = values[(~np.isnan(values[:, :clinicians])).any(axis=1)]
    _, clusters = np.unique(random.integers(0, 12, len(values)), return_inverse=True)
    who = [f"c{n}" for n in range(clinicians)] + [f"j{n}" for n in range(jurors)]
    kinds = ("clinician",) * clinicians + ("juror",) * jurors
    return RatingMatrix(values, tuple(map(str, range(len(values)))), clusters, tuple(who), kinds)


@pytest.mark.parametrize("method", ["paper", "published"])
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("clinicians", [1, 2, 3])
@pytest.mark.parametrize("needed", [1, 2])
def test_both_ways_give_the_same_replicates(
    method: Method, flat: bool, clinicians: int, needed: int
) -> None:
    for seed in range(10):
        data = grid(seed, clinicians=clinicians, jurors=2, flat=flat)
        jury = PanelColumns(("j0", "j1"), needed)
        statistic = scorer_replicates(data, jury, ("j0", "j1"), method)
        assert None not in statistic.pairs
        counts = next(draw_counts(data.n_clusters, reps=200, seed=seed))
        found = statistic(counts)
        one_by_one = replace(statistic, pairs=(None,))(counts)
        np.testing.assert_allclose(found, one_by_one, rtol=1e-9, atol=1e-9)


def test_a_resample_without_variance_is_taken_response_by_response() -> None:
    data = grid(0, clinicians=2, jurors=1, flat=True)
    statistic = scorer_replicates(data, None, ("j0",), "paper")
    counts = next(draw_counts(data.n_clusters, reps=200, seed=0))
    defined = scale(statistic.prepared, counts).defined[:, 0] > 0
    assert 0 < defined.sum() < len(defined)
    assert np.isfinite(statistic(counts)).all()


def test_many_raters_are_not_multiplied_out() -> None:
    data = grid(0, clinicians=FEW, jurors=1)
    assert scorer_replicates(data, None, ("j0",), "paper").pairs == (None,)
