"""The ICC in resamples of juries whose members are weighted, the weights being learnt in each resample."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibration.bootstrap import Counts
from calibration.effective_jurors import Joint, joint
from calibration.jackknife import fisher_z
from calibration.juries.pools import Bench, Learnt, bench_of
from calibration.resampled_moments import ROUNDING, Prepared, panel_column, prepare, scale
from calibration.scope import Scope
from calibration.scores import Array, Flags, Integers

RIDGE = 1e-10  # of the largest variance: two jurors who say the same share their weight


@dataclass(frozen=True, eq=False)
class WeightedPool:
    """Juries whose score is a weighted mean: non-negative least squares on the clinicians' column.

    Weights of a jury minimise the squared distance to the clinicians' column about the means,
    none below 0, and are then divided by their sum. They are learnt in each resample anew.
    All responses must have been rated by all jurors, and with a jury all its subsets must be
    among `subsets` (M, k), smaller ones first. The best non-negative weights of a jury are
    the ordinary least squares weights of that of its subsets which, having only positive
    ones, explains most (Lawson & Hanson 1974, chapter 23: the conditions of Kuhn and Tucker).
    How much too high their ICC is, is the optimism of Efron (1983, JASA 78, 316): what weights
    learnt in a resample gain there over those of the whole sample, and lose on the whole sample.
    A jury of one has weight 1; a larger one in which nobody agrees with the clinicians at all
    has no weights and no ICC.
    """

    bench: Bench
    subsets: Flags
    prepared: Prepared
    clinicians: Integers
    jurors: Integers

    def learn(self, counts: Counts) -> Learnt:
        """Return the ICC of every jury in every resample, with the weights learnt there."""
        here, whole = self._centred(counts), self._centred(self._once)
        weights, icc = self._solved(*here)
        own, own_icc = self._solved(*whole)
        with np.errstate(divide="ignore", invalid="ignore"):
            gained = fisher_z(icc) - fisher_z(self._judged(own, *here))
            lost = fisher_z(own_icc) - fisher_z(self._judged(weights, *whole))
        return Learnt(icc, gained + lost)

    @property
    def _once(self) -> Counts:
        return np.ones((1, self.prepared.sums.shape[0]))

    def _judged(self, weights: Array, vv: Array, vc: Array, yy: Array) -> Array:
        """Return the ICCs that weights (B, M, k) have in other resamples; B of one may be 1."""
        xx = ((weights @ np.nan_to_num(vv)) * weights).sum(axis=2)
        return self._of_products(xx, (weights @ np.nan_to_num(vc)[:, :, None])[:, :, 0], yy)

    def weights(self) -> Array:
        """Return the weights that the whole sample teaches, (M, k); NaN where there are none."""
        found, icc = self._solved(*self._centred(self._once))
        return np.where(np.isnan(icc)[0][:, None], np.nan, found[0])

    def _centred(self, counts: Counts) -> tuple[Array, Array, Array]:
        """Return jurors' products (B, k, k), those with clinicians (B, k), clinicians' (B,)."""
        data = self.prepared
        by = scale(data, counts)
        column = panel_column(data, by, self.clinicians)
        drawn = counts[:, data.clusters] * (column.count > 0)
        sums: Joint = joint(drawn, column.mean, data.values[:, self.jurors])
        factor = by.factor[:, self.jurors]
        n = np.maximum(sums.n, 1.0)
        vv = sums.vv - sums.v[:, :, None] * sums.v[:, None, :] / n[:, None, None]
        vc = sums.vc - sums.v * (sums.c / n)[:, None]
        yy = sums.cc - sums.c**2 / n
        yy = np.where(yy > ROUNDING * sums.cc, yy, np.nan)
        own = np.einsum("bjj->bj", vv) > ROUNDING * np.einsum("bjj->bj", sums.vv)
        factor = np.where(own & (by.defined[:, self.jurors] > 0), factor, np.nan)
        return vv * factor[:, :, None] * factor[:, None, :], vc * factor, yy

    def _solved(self, vv: Array, vc: Array, yy: Array) -> tuple[Array, Array]:
        """Return the weights (B, M, k) and the ICC (B, M) of every jury."""
        resamples, juries = len(yy), len(self.subsets)
        weights = np.zeros((resamples, juries, self.subsets.shape[1]))
        explained = np.full((resamples, juries), -np.inf)
        icc = np.full((resamples, juries), np.nan)
        b = np.arange(resamples)[:, None]
        for rows, members, smaller in self._by_size():
            square = vv[:, members[:, :, None], members[:, None, :]]
            product = vc[:, members]
            found = _least_squares(square, product)
            inner = np.all(np.isfinite(found) & (found > 0), axis=2)
            explained[:, rows] = np.where(inner, (found * product).sum(axis=2), -np.inf)
            if members.shape[1] == 1:
                found = np.ones_like(found)
            found = found / np.where(inner, found.sum(axis=2), 1.0)[:, :, None]
            icc[:, rows] = self._icc(found, square, product, yy)
            weights[b[:, :, None], rows[None, :, None], members[None]] = found
            if members.shape[1] > 1:
                best = smaller[np.arange(len(rows)), explained[:, smaller].argmax(axis=2)]
                some = np.isfinite(explained[b, best])
                instead = np.where(some, icc[b, best], np.nan)
                lost = np.isnan(square).any(axis=(2, 3))
                icc[:, rows] = np.where(lost, np.nan, np.where(inner, icc[:, rows], instead))
                weights[:, rows] = np.where(inner[:, :, None], weights[:, rows], weights[b, best])
                explained[:, rows] = np.where(inner, explained[:, rows], explained[b, best])
        return weights, icc

    def _icc(self, weights: Array, square: Array, product: Array, yy: Array) -> Array:
        xx = np.einsum("bmi,bmij,bmj->bm", weights, square, weights, optimize=True)
        return self._of_products(xx, (weights * product).sum(axis=2), yy)

    def _of_products(self, xx: Array, xy: Array, yy: Array) -> Array:
        """Return ICCs from products about the means, of juries (B, M) and clinicians (B,)."""
        both = yy[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.prepared.method == "published":
                r = xy / np.sqrt(xx * both)
                return np.where(1 + r > ROUNDING, 2 * r / (1 + r), np.nan)
            below = xx + both + 2 * xy
            return np.where(below > ROUNDING * (xx + both), 4 * xy / below, np.nan)

    def _by_size(self) -> Iterator[tuple[Integers, Integers, Integers]]:
        """Yield the juries of each size, their members (m, s), and the juries of one less (m, s)."""
        size = self.subsets.sum(axis=1)
        place = {row.tobytes(): number for number, row in enumerate(self.subsets)}
        for one in range(1, int(size.max()) + 1):
            rows = np.flatnonzero(size == one)
            members = np.nonzero(self.subsets[rows])[1].reshape(len(rows), one)
            smaller = np.zeros_like(members)
            for left in range(one if one > 1 else 0):
                without = self.subsets[rows].copy()
                without[np.arange(len(rows)), members[:, left]] = False
                smaller[:, left] = [place[row.tobytes()] for row in without]
            yield rows, members, smaller


def weighted_pool(scope: Scope, jurors: Integers, subsets: Flags) -> WeightedPool:
    """Return the pool of weighted means of subsets (M, k) of jurors, columns of the grid (k,)."""
    grid, method = scope.grid, scope.asked.method
    bench, prepared = bench_of(grid, jurors, method), prepare(grid, method)
    return WeightedPool(bench, subsets, prepared, grid.of_kind("clinician"), jurors)


def _least_squares(square: Array, product: Array) -> Array:
    """Return ordinary least squares weights (B, m, s); NaN where a juror has no z."""
    known = np.all(np.isfinite(square), axis=(2, 3))
    identity = np.eye(square.shape[2])
    most = np.where(known, np.einsum("bmii->bmi", square).max(axis=2), 1.0)
    safe = np.where(known[:, :, None, None], square, identity)
    safe = safe + (RIDGE * np.maximum(most, 1e-300))[:, :, None, None] * identity
    given = np.where(known[:, :, None], product, 0.0)
    found: Array = np.linalg.solve(safe, given[..., None])[..., 0]
    return np.where(known[:, :, None], found, np.nan)
