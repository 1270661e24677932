"""What to expect of a jury on new responses: its ICC without the luck of choosing."""

from dataclasses import dataclass

import numpy as np

from calibration.icc_difference import fisher_z
from calibration.scores import Array, Flags, Integers

LEAST_DRAWN = 2  # resamples with an ICC: what a variance takes
MOST_DRAWN = 400  # resamples that tell how many juries' worth of chance there is
LEAST_FREEDOM = 0.5  # of what shrinks: two juries or three say hardly how unlike juries are


@dataclass(frozen=True, eq=False)
class Expected:
    """Expected ICC of every jury, shape (M,), with its 95 % interval; NaN where undefined."""

    icc: Array
    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class _Spread:
    """How far juries of one size lie from their mean, and how much of that is chance.

    Attributes
    ----------
    away, moved : shape (M,) and (B, M), distances from the mean, in the sample and resampled
    full : share of the distances that chance explains, at most 1
    taken : share that is taken off, which allows for how little some juries say of `full`
    true : variance between juries beyond chance
    doubt : variance of `taken`
    """

    away: Array
    moved: Array
    full: float
    taken: float
    true: float
    doubt: float


def expected(icc: Array, drawn: Array, sizes: Integers, instances: int, learnt: Array) -> Expected:
    """Return what to expect of juries of which the best will be chosen.

    Juries of one size are drawn towards their mean by the share of their differences that chance
    explains: the best of juries that differ by chance alone is expected to be like the others,
    and a jury that stands out by far stays where it is. The only jury of its size stays too.

    Parameters
    ----------
    icc : shape (M,), NaN where a jury has none
    drawn : shape (M, B), the ICCs in resamples of instances
    sizes : shape (M,), jurors of each jury
    instances : how many there are, at least 2
    learnt : shape (M,)
        By how much Fisher's z of each jury's ICC is too high because weights were learnt on the
        responses that it is judged by; 0 of means and medians.

    Returns
    -------
    Expected
        NaN for a jury without an ICC or with one of 1, or with an ICC in fewer than 2 resamples.

    Notes
    -----
    On Fisher's z of an ICC, z_j = mean + d_j. The variance of the d_j in the resamples, enlarged
    by m / (m - 1), is v; that of the d_j themselves S. chance = v / S, at most 1, is cut to
    (f - 2) / f of it, where f = tr(C)^2 / tr(C^2) is how many independent juries the resampled
    d_j, with covariance C, are worth: juries share jurors, and few say little of S. The expected
    z is mean + (1 - taken) d_j. Its variance adds that of mean and shrunken d_j over the
    resamples, taken^2 times the variance S - v that is not chance, and 2 taken^2 / (f - 2) d_j^2
    for not knowing the share; the interval is of t with m - 1 degrees of freedom, its lower end
    from the fully shrunken value where that is lower.

    References
    ----------
    Empirical Bayes: Efron & Morris (1975), JASA 70, 311; Morris (1983), JASA 78, 47, for
    (f - 2) / f and its variance. Effective number: Satterthwaite (1946), Biometrics Bulletin 2.
    """
    from scipy import stats  # as slow to load as all else that a table takes

    found = np.full((3, len(icc)), np.nan)
    reach = float(stats.t.ppf(0.975, instances - 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = fisher_z(icc) - learnt
    known = np.isfinite(z) & ((drawn < 1).sum(axis=1) >= LEAST_DRAWN)
    for size in np.unique(sizes):
        own = np.flatnonzero((sizes == size) & known)
        if len(own):
            found[:, own] = _of_size(z[own], drawn[own].T, instances, reach)
    ends = 1 - np.exp(-2 * found)
    alone = np.isin(sizes, [size for size in np.unique(sizes) if (sizes == size).sum() == 1])
    ends[0] = np.where(alone & (learnt == 0) & np.isfinite(ends[0]), icc, ends[0])
    return Expected(*ends)


def _of_size(z: Array, drawn: Array, instances: int, reach: float) -> Array:
    """Return the expected z and its two ends of juries of one size, (3, M), from ICCs (B, M)."""
    moved = _z_drawn(drawn)
    enlarged = instances / (instances - 1)
    centre = np.nanmean(moved, axis=1)
    moved -= centre[:, None]
    moved -= np.nanmean(moved, axis=0)
    spread = _spread(z - z.mean(), moved, enlarged)
    kept = 1 - spread.taken
    middle = z.mean() + kept * spread.away
    lowest = z.mean() + np.minimum(kept * spread.away, (1 - spread.full) * spread.away)
    shared = centre - centre.mean()
    variance = enlarged * np.nanvar(shared[:, None] + kept * moved, axis=0)
    variance += spread.taken**2 * spread.true + spread.doubt * spread.away**2
    error = np.sqrt(variance)
    return np.stack([middle, lowest - reach * error, middle + reach * error])


def _z_drawn(drawn: Array) -> Array:
    """Return Fisher's z of resampled ICCs where any jury has one; NaN where one has none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = fisher_z(drawn)
    z[~np.isfinite(z)] = np.nan
    known: Flags = (~np.isnan(z)).any(axis=1)
    return z if known.all() else z[known]


def _spread(away: Array, moved: Array, enlarged: float) -> _Spread:
    """Return how much of the distances `away` chance explains, from resampled ones (B, M)."""
    juries = len(away)
    if juries == 1:
        return _Spread(away, moved, 0.0, 0.0, 0.0, 0.0)
    chance = enlarged * float(np.nanvar(moved, axis=0).sum()) / (juries - 1)
    seen = float(away @ away) / (juries - 1)
    full = min(1.0, chance / seen) if seen > 0 else 1.0
    some = np.nan_to_num(moved[:MOST_DRAWN])
    products = some @ some.T
    worth = float(np.trace(products) ** 2 / max((products**2).sum(), np.finfo(float).tiny))
    beyond = max(worth - 2, LEAST_FREEDOM)
    taken = full * beyond / max(worth, beyond)
    return _Spread(away, moved, full, taken, max(0.0, seen - chance), 2 / beyond * taken**2)
