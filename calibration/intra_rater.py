"""The same clinician again: ICC(A,1) of first and repeated composites."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibration import remarks
from calibration.bootstrap import Counts, percentile_interval
from calibration.codes import NoteCode as Code
from calibration.f_interval import UNDEFINED, Interval, absolute_interval, spearman_brown
from calibration.icc import mean_squares
from calibration.ranks import spearman
from calibration.scope import AgreementRow, Scope
from calibration.scores import Array, Integers
from calibration.values import NAN, Note, note, noted
from calibration.zscore import FLAT

LEAST_REPEATS = 3


def intra_rater_row(scope: Scope) -> AgreementRow:
    """Return how far clinicians agree with themselves, pooled over all hidden repeats."""
    found = scope.repeats.composites
    pairs = found[["first", "again"]].to_numpy(dtype=np.float64)
    icc, exact = intra_rater_icc(pairs)
    drawn = np.empty(0) if why_no_icc(pairs) else scope.resample(_replicates(scope, pairs))
    boot = percentile_interval(drawn)
    varied = not why_no_icc(pairs) and (np.ptp(pairs, axis=0) > 0).all()
    return AgreementRow(
        benchmark=scope.name,
        scorer="intra_rater",
        icc=icc,
        f_low=exact.low,
        f_high=exact.high,
        boot_low=boot.low,
        boot_high=boot.high,
        n_responses=len(pairs),
        n_instances=found["instance_id"].nunique(),
        n_clinicians=found["rater"].nunique(),
        n_missing=len(scope.repeats.unpaired),
        spearman=spearman(*pairs.T) if varied else NAN,
        notes=noted(*_notes(scope, pairs), remarks.undefined_resamples(drawn)),
    )


def _notes(scope: Scope, pairs: Array) -> Iterator[Note | None]:
    found, scores = scope.repeats.composites, scope.repeats.scores
    yield why_no_icc(pairs)
    if not why_no_icc(pairs):
        yield remarks.few_repeats(len(pairs))
        yield None if float(mean_squares(pairs).rows) else note(Code.NO_F)
    yield from remarks.same_again(scores)
    if found["rater"].nunique() > 1:
        yield remarks.own_means(intra_rater_icc(pairs - _own_means(scope)[:, None])[0])
    yield remarks.unpaired(len(scope.repeats.unpaired))
    instances = found["instance_id"].nunique()
    yield remarks.few_instances(instances)
    yield remarks.shared_instances(found["response_id"].nunique(), instances)
    yield remarks.simulated(scope.simulated & set(found["rater"]))


def _own_means(scope: Scope) -> Array:
    """Return, for each repeat, the mean of all that its clinician's composites are in scope."""
    clinical = scope.given[scope.given["kind"] == "clinician"]
    means = clinical.groupby("rater")["composite"].mean()
    return scope.repeats.composites["rater"].map(means).to_numpy(dtype=np.float64)


def _replicates(scope: Scope, pairs: Array) -> "RepeatReplicates":
    grid = scope.grid
    place = dict(zip(grid.responses, grid.clusters, strict=True))
    clusters = np.array([place[name] for name in scope.repeats.composites["response_id"]])
    return repeat_replicates(pairs, clusters, grid.n_clusters)


def intra_rater_icc(pairs: Array) -> tuple[float, Interval]:
    """Return ICC(A,1) of first and repeated composites, with its F interval.

    Parameters
    ----------
    pairs : shape (n, 2)
        First and repeated composite; rows of all clinicians, pooled.

    Returns
    -------
    float, Interval
        (MS_rows - MS_error) / (MS_rows + MS_error + 2 (MS_columns - MS_error) / n).
        Absolute agreement: a clinician who is stricter the second time loses by it. NaN
        with fewer than 3 repeats or where all composites are the same; no interval where
        every repeat is identical, or where all pairs have the same mean.

    References
    ----------
    McGraw & Wong (1996), ICC(A,1), table 7; recommended for one rater's test and retest by
    Koo & Li (2016), Journal of Chiropractic Medicine 15, 155.
    """
    if why_no_icc(pairs):
        return float("nan"), UNDEFINED
    ms, n = mean_squares(pairs), len(pairs)
    rows, columns, error = float(ms.rows), float(ms.columns), float(ms.error)
    below = rows + error + 2 * (columns - error) / n
    of_mean = absolute_interval((rows, columns, error), n, 2)
    ends = Interval(spearman_brown(of_mean.low, 0.5), spearman_brown(of_mean.high, 0.5))
    return (rows - error) / below, ends


def why_no_icc(pairs: Array) -> Note | None:
    """Return why repeats have no ICC, or None when they have one."""
    if len(pairs) < LEAST_REPEATS:
        return note(Code.FEW_REPEATS, repeats=len(pairs), least=LEAST_REPEATS)
    if np.ptp(pairs) <= FLAT * np.abs(pairs).max():
        return note(Code.REPEATS_ALIKE)
    return None


@dataclass(frozen=True, eq=False)
class RepeatReplicates:
    """ICC(A,1) of the pooled repeats, resample by resample: counts (B, clusters) to (B,).

    `sums` has shape (clusters, 5): number of repeats, sum and sum of squares of their
    means, sum and sum of squares of their differences.
    """

    sums: Array

    def __call__(self, counts: Counts) -> Array:
        """Return the ICCs; NaN where a resample holds fewer than 3 repeats or no variance."""
        n, mean, mean2, gap, gap2 = (counts @ self.sums).T
        with np.errstate(divide="ignore", invalid="ignore"):
            rows = 2 * (mean2 - mean**2 / n) / (n - 1)
            error = (gap2 - gap**2 / n) / 2 / (n - 1)
            columns = gap**2 / n / 2
            below = rows + error + 2 * (columns - error) / n
            varied = (n >= LEAST_REPEATS) & (below > FLAT * (mean2 + gap2) / n)
            return np.where(varied, (rows - error) / below, np.nan)


def repeat_replicates(pairs: Array, clusters: Integers, n_clusters: int) -> RepeatReplicates:
    """Return the resampled ICC of repeats (n, 2) whose instances are numbered."""
    middle = pairs.mean(axis=1)
    middle = middle - (middle.mean() if len(middle) else 0.0)
    gap = pairs[:, 0] - pairs[:, 1]
    columns = (np.ones_like(gap), middle, middle**2, gap, gap**2)
    sums = [np.bincount(clusters, weights=one, minlength=n_clusters) for one in columns]
    return RepeatReplicates(np.column_stack(sums))
