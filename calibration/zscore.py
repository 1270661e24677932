"""z within rater: what is left of a score when the rater's severity and spread are removed."""

import warnings

import numpy as np

from calibration.scores import Array, Flags

FLAT = 1e-9  # a spread below this share of the largest score is rounding, not judgement


def z_within_raters(composites: Array) -> Array:
    """Return (c - mean) / sd of each column over its own composites, with ddof 1.

    Parameters
    ----------
    composites : shape (n, raters), NaN where missing

    Returns
    -------
    shape (n, raters)
        NaN where missing, and throughout for a rater without variance (all composites
        equal, or fewer than two): such a rater has no z.
    """
    flat = without_variance(composites)
    z = np.full_like(composites, np.nan)
    usable = composites[:, ~flat]
    if usable.size:
        mean = np.nanmean(usable, axis=0)
        z[:, ~flat] = (usable - mean) / np.nanstd(usable, axis=0, ddof=1)
    return z


def without_variance(composites: Array) -> Flags:
    """Return which columns hold fewer than two composites or only equal ones."""
    low = np.nanmin(composites, axis=0, initial=np.inf)
    high = np.nanmax(composites, axis=0, initial=-np.inf)
    largest = np.nanmax(np.abs(composites), axis=0, initial=0.0)
    few = (~np.isnan(composites)).sum(axis=0) < 2
    flat: Flags = few | (high - low <= FLAT * largest)
    return flat


def mean_of_given(values: Array) -> Array:
    """Return the mean of each row over what is not NaN; NaN for an empty row."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Mean of empty slice", RuntimeWarning)
        mean: Array = np.nanmean(values, axis=1) if values.shape[1] else _empty(len(values))
    return mean


def _empty(rows: int) -> Array:
    return np.full(rows, np.nan)
