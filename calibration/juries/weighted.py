"""The ICC in resamples of juries whose members have weights, learnt anew in each resample."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibration.bootstrap import Counts
from calibration.effective_jurors import JointSums, joint_sums
from calibration.jackknife import fisher_z
from calibration.juries.pools import JurorColumns, ResampledIccs, juror_columns
from calibration.resampled_moments import ROUNDING, Prepared, panel_column, prepare, scale
from calibration.scope import Scope
from calibration.scores import Array, Flags, Integers

RIDGE = 1e-10  # of the largest variance: two jurors who say the same share their weight


@dataclass(frozen=True, eq=False)
class WeightedPool:
    """Juries whose score is a weighted mean, by non-negative least squares on the clinicians' mean.

    The weights of a jury minimise the squared distance to the clinicians' mean scores, both
    about their means; none is below 0, and they are divided by their sum. They are learnt in
    each resample anew. All responses must have been rated by all jurors, and with a jury all its
    subsets must be among `subsets` (M, k), smaller ones first. A jury of one has weight 1; a
    larger one whose members all disagree with the clinicians has no weights and no ICC.

    Notes
    -----
    The best non-negative weights of a jury are the ordinary least squares weights of that of its
    subsets which explains most among those with only positive weights (Lawson & Hanson 1974,
    chapter 23: the conditions of Kuhn and Tucker). The optimism of their ICC is that of Efron
    (1983, JASA 78, 316): what weights learnt in a resample gain there over those learnt in the
    sample, plus what they lose in the sample.
    """

    columns: JurorColumns
    subsets: Flags
    prepared: Prepared
    clinicians: Integers
    jurors: Integers

    def resample(self, counts: Counts) -> ResampledIccs:
        """Return the ICC of every jury in every resample, with the weights learnt there."""
        resampled, sample = self._centred(counts), self._centred(self._sample_counts)
        weights, icc = self._solve(*resampled)
        sample_weights, sample_icc = self._solve(*sample)
        with np.errstate(divide="ignore", invalid="ignore"):
            gained = fisher_z(icc) - fisher_z(self._icc_of_weights(sample_weights, *resampled))
            lost = fisher_z(sample_icc) - fisher_z(self._icc_of_weights(weights, *sample))
        return ResampledIccs(icc, gained + lost)

    @property
    def _sample_counts(self) -> Counts:
        return np.ones((1, self.prepared.sums.shape[0]))

    def _icc_of_weights(self, weights: Array, vv: Array, vc: Array, yy: Array) -> Array:
        """Return the ICCs of weights (B, M, k) on the products of other resamples."""
        xx = ((weights @ np.nan_to_num(vv)) * weights).sum(axis=2)
        return self._of_products(xx, (weights @ np.nan_to_num(vc)[:, :, None])[:, :, 0], yy)

    def weights(self) -> Array:
        """Return the weights learnt in the sample itself, (M, k); NaN where there are none."""
        weights, icc = self._solve(*self._centred(self._sample_counts))
        return np.where(np.isnan(icc)[0][:, None], np.nan, weights[0])

    def _centred(self, counts: Counts) -> tuple[Array, Array, Array]:
        """Return sums of products about the means.

        Of two jurors (B, k, k), of jurors and clinicians (B, k), of clinicians alone (B,).
        """
        data = self.prepared
        scales = scale(data, counts)
        column = panel_column(data, scales, self.clinicians)
        response_counts = counts[:, data.clusters] * (column.count > 0)
        sums: JointSums = joint_sums(response_counts, column.mean, data.values[:, self.jurors])
        factor = scales.factor[:, self.jurors]
        n = np.maximum(sums.n, 1.0)
        vv = sums.vv - sums.v[:, :, None] * sums.v[:, None, :] / n[:, None, None]
        vc = sums.vc - sums.v * (sums.c / n)[:, None]
        yy = sums.cc - sums.c**2 / n
        yy = np.where(yy > ROUNDING * sums.cc, yy, np.nan)
        varies = np.einsum("bjj->bj", vv) > ROUNDING * np.einsum("bjj->bj", sums.vv)
        factor = np.where(varies & (scales.defined[:, self.jurors] > 0), factor, np.nan)
        return vv * factor[:, :, None] * factor[:, None, :], vc * factor, yy

    def _solve(self, vv: Array, vc: Array, yy: Array) -> tuple[Array, Array]:
        """Return the weights (B, M, k) and the ICC (B, M) of every jury."""
        resamples, juries = len(yy), len(self.subsets)
        weights = np.zeros((resamples, juries, self.subsets.shape[1]))
        explained = np.full((resamples, juries), -np.inf)
        icc = np.full((resamples, juries), np.nan)
        resample = np.arange(resamples)[:, None]
        for rows, members, smaller in self._by_size():
            square = vv[:, members[:, :, None], members[:, None, :]]
            product = vc[:, members]
            solution = _least_squares(square, product)
            is_interior = np.all(np.isfinite(solution) & (solution > 0), axis=2)
            explained[:, rows] = np.where(is_interior, (solution * product).sum(axis=2), -np.inf)
            if members.shape[1] == 1:
                solution = np.ones_like(solution)
            solution = solution / np.where(is_interior, solution.sum(axis=2), 1.0)[:, :, None]
            icc[:, rows] = self._icc(solution, square, product, yy)
            weights[resample[:, :, None], rows[None, :, None], members[None]] = solution
            if members.shape[1] > 1:
                best_subset = smaller[np.arange(len(rows)), explained[:, smaller].argmax(axis=2)]
                has_subset = np.isfinite(explained[resample, best_subset])
                best_icc = np.where(has_subset, icc[resample, best_subset], np.nan)
                undefined = np.isnan(square).any(axis=(2, 3))
                icc[:, rows] = np.where(
                    undefined, np.nan, np.where(is_interior, icc[:, rows], best_icc)
                )
                weights[:, rows] = np.where(
                    is_interior[:, :, None], weights[:, rows], weights[resample, best_subset]
                )
                explained[:, rows] = np.where(
                    is_interior, explained[:, rows], explained[resample, best_subset]
                )
        return weights, icc

    def _icc(self, weights: Array, square: Array, product: Array, yy: Array) -> Array:
        xx = np.einsum("bmi,bmij,bmj->bm", weights, square, weights, optimize=True)
        return self._of_products(xx, (weights * product).sum(axis=2), yy)

    def _of_products(self, xx: Array, xy: Array, yy: Array) -> Array:
        """Return ICCs from products about the means, of juries (B, M) and clinicians (B,)."""
        clinicians = yy[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.prepared.method == "published":
                r = xy / np.sqrt(xx * clinicians)
                return np.where(1 + r > ROUNDING, 2 * r / (1 + r), np.nan)
            denominator = xx + clinicians + 2 * xy
            return np.where(
                denominator > ROUNDING * (xx + clinicians), 4 * xy / denominator, np.nan
            )

    def _by_size(self) -> Iterator[tuple[Integers, Integers, Integers]]:
        """Yield the juries of each size, their members (m, s), and subsets of one less (m, s)."""
        sizes = self.subsets.sum(axis=1)
        number_of = {row.tobytes(): number for number, row in enumerate(self.subsets)}
        for size in range(1, int(sizes.max()) + 1):
            rows = np.flatnonzero(sizes == size)
            members = np.nonzero(self.subsets[rows])[1].reshape(len(rows), size)
            smaller = np.zeros_like(members)
            for dropped in range(size if size > 1 else 0):
                reduced = self.subsets[rows].copy()
                reduced[np.arange(len(rows)), members[:, dropped]] = False
                smaller[:, dropped] = [number_of[row.tobytes()] for row in reduced]
            yield rows, members, smaller


def weighted_pool(scope: Scope, jurors: Integers, subsets: Flags) -> WeightedPool:
    """Return the pool of weighted means of subsets (M, k) of jurors, columns of the grid (k,)."""
    grid, method = scope.grid, scope.options.method
    columns, prepared = juror_columns(grid, jurors, method), prepare(grid, method)
    return WeightedPool(columns, subsets, prepared, grid.of_kind("clinician"), jurors)


def _least_squares(square: Array, product: Array) -> Array:
    """Return ordinary least squares weights (B, m, s); NaN where a juror has no z."""
    has_z = np.all(np.isfinite(square), axis=(2, 3))
    identity = np.eye(square.shape[2])
    largest = np.where(has_z, np.einsum("bmii->bmi", square).max(axis=2), 1.0)
    regular = np.where(has_z[:, :, None, None], square, identity)
    regular = regular + (RIDGE * np.maximum(largest, 1e-300))[:, :, None, None] * identity
    products = np.where(has_z[:, :, None], product, 0.0)
    solution: Array = np.linalg.solve(regular, products[..., None])[..., 0]
    return np.where(has_z[:, :, None], solution, np.nan)
