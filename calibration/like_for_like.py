"""Leave-one-clinician-out comparison: the jury and each clinician against the other clinicians' mean.

Its rows are called "like for like": both are compared with the same reference.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import special

from calibration.agreement import LEAST_RESPONSES, PanelColumns
from calibration.bootstrap import Counts
from calibration.icc import UNDEFINED, Interval
from calibration.notes import Note, note, undefined
from calibration.rating_matrix import (
    FLAT,
    RatingMatrix,
    mean_of_given,
    without_variance,
    z_within_raters,
)
from calibration.resampled_moments import (
    ROUNDING,
    Moments,
    Prepared,
    ResampleBatch,
    ResponseBlock,
    joint_statistic,
    moments_of_two,
    prepare,
    varied,
)
from calibration.scores import Array, Integers
from calibration.shared_notes import SAME_SCORE, TOO_FEW_RESPONSES
from calibration.values import NAN, Method

NO_SQUARES = np.full((2, 3), NAN)
LEAST_CLINICIANS = 3  # of two, leaving one out leaves nobody to compare with


@dataclass(frozen=True, eq=False)
class HeldOutClinician:
    """One clinician left out: the rows that jury, clinician and others all scored, and their sums of squares.

    `squares` has shape (2, 3): for the jury, then for the clinician, its own sum of squares about
    the mean of these rows, that of the others, and the sum of products.
    """

    clinician: str
    rows: Integers
    squares: Array = field(default_factory=lambda: NO_SQUARES)
    reason: Note | None = None


@dataclass(frozen=True, eq=False)
class LikeForLike:
    """Every clinician left out in turn; `undefined` those without a comparison."""

    defined: tuple[HeldOutClinician, ...]
    undefined: tuple[HeldOutClinician, ...]
    method: Method

    @property
    def difference(self) -> float:
        """Return the jury's ICC minus a clinician's, NaN if no clinician could be compared."""
        jury, clinician = self.iccs
        return jury - clinician

    @property
    def iccs(self) -> tuple[float, float]:
        """Return the pooled ICC of the jury, and that of a clinician, with the others; else NaN."""
        if not self.defined:
            return NAN, NAN
        pooled = np.sum([held.squares for held in self.defined], axis=0)
        jury, clinician = pooled_icc(pooled.T, self.method).tolist()
        return jury, clinician

    @property
    def rows(self) -> Integers:
        """Return the rows of the grid that some comparison uses."""
        rows = [held.rows for held in self.defined]
        return np.unique(np.concatenate(rows)) if rows else np.array([], dtype=np.int64)


def pooled_icc(squares: Array, method: Method) -> Array:
    """Return ICC(C,2) of two columns from sums of squares that were pooled over several tables.

    The consistency of a single rater is r = 2 Sxy / (Sxx + Syy), or Sxy / sqrt(Sxx Syy) where the
    columns are restandardised; two raters have 2r / (1 + r), mirrored below 0 so that opposite
    orders count as much as like ones.

    Parameters
    ----------
    squares : shape (3, ...)
        Sxx, Syy and Sxy, each about its table's means, summed over the tables.
    method : "paper" or "published"
        "published" restandardises.

    Returns
    -------
    shape (...)
        From -1 to 1; ICC(C,2) itself wherever it is not negative. NaN where a column has no
        variance.

    References
    ----------
    McGraw & Wong (1996), Psychological Methods 1, 30. Krus & Helmstadter (1993), Educational and
    Psychological Measurement 53, 643: the problem of negative reliabilities.

    Examples
    --------
    >>> pooled_icc(np.array([[1.0, 1.0], [1.0, 1.0], [0.5, -0.5]]), "paper").round(4).tolist()
    [0.6667, -0.6667]
    """
    xx, yy, xy = squares
    with np.errstate(divide="ignore", invalid="ignore"):
        middle = np.sqrt(xx * yy) if method == "published" else (xx + yy) / 2
        single = np.where((xx > 0) & (yy > 0), xy / middle, np.nan)
        icc: Array = 2 * single / (1 + np.abs(single))
    return icc


def like_for_like(grid: RatingMatrix, jury: PanelColumns, method: Method) -> LikeForLike:
    """Leave each clinician out in turn: ICC(jury, others) minus ICC(clinician, others).

    "Others" is the mean of the remaining clinicians of a response. Both are over the same
    responses: those that the clinician, another clinician and the jury all scored. Sums of
    squares about each comparison's own means are pooled over the clinicians left out, so that one
    with few responses counts for little instead of deciding the mean, see `pooled_icc`. The
    difference is above 0 when the jury agrees with clinicians more than a clinician does; it is
    at least -2 and at most 2.
    """
    values = z_within_raters(grid.composites) if method == "paper" else grid.composites
    panel = mean_of_given(values[:, grid.columns(jury.members)])
    scored = np.where(jury.present(grid), panel, np.nan)
    clinicians, flat = grid.of_kind("clinician"), without_variance(grid.composites)
    others = _others(values[:, clinicians])
    held = [
        HeldOutClinician(grid.raters[own], _no_rows(), reason=undefined("flat", "no variance"))
        if flat[own] and (~np.isnan(grid.composites[:, own])).sum() > 1
        else _hold_out(grid.raters[own], values[:, own], scored, others[:, place])
        for place, own in enumerate(clinicians)
    ]
    defined = tuple(comparison for comparison in held if not comparison.reason)
    without = tuple(comparison for comparison in held if comparison.reason)
    if reason := _why_undefined(defined):
        without += tuple(
            HeldOutClinician(comparison.clinician, comparison.rows, reason=reason)
            for comparison in defined
        )
        defined = ()
    return LikeForLike(defined, without, method)


def _no_rows() -> Integers:
    return np.array([], dtype=np.int64)


def _others(values: Array) -> Array:
    """Return the mean of the others of a response beside each; NaN where there is no other."""
    is_known = ~np.isnan(values)
    some = np.where(is_known, values, 0.0)
    number = is_known.sum(axis=1, keepdims=True) - is_known
    total = some.sum(axis=1, keepdims=True) - some
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)


def _hold_out(name: str, own: Array, jury: Array, others: Array) -> HeldOutClinician:
    rows = np.flatnonzero(~(np.isnan(own) | np.isnan(jury) | np.isnan(others)))
    if len(rows) < 2:
        return HeldOutClinician(
            name, rows, reason=undefined(*TOO_FEW_RESPONSES, responses=len(rows), least=2)
        )
    rest = _centred(others[rows])
    return HeldOutClinician(
        name, rows, np.array([_squares(_centred(column[rows]), rest) for column in (jury, own)])
    )


def _centred(column: Array) -> Array:
    """Return a column about its mean, exactly 0 where it varies by no more than rounding."""
    flat = np.ptp(column) <= FLAT * np.abs(column).max()
    return np.zeros_like(column) if flat else column - column.mean()


def _squares(x: Array, y: Array) -> Array:
    return np.array([x @ x, y @ y, x @ y])


def _why_undefined(held: tuple[HeldOutClinician, ...]) -> Note | None:
    """Return why comparisons that are defined one by one have no pooled ICC, or None."""
    if not held:
        return None
    responses = len(np.unique(np.concatenate([comparison.rows for comparison in held])))
    if responses < LEAST_RESPONSES:
        return undefined(*TOO_FEW_RESPONSES, responses=responses, least=LEAST_RESPONSES)
    (jury, others, _), (own, _, _) = np.sum([comparison.squares for comparison in held], axis=0)
    for name, square in (("the jury", jury), ("the others", others), ("the clinicians", own)):
        if not square > 0:
            return undefined(*SAME_SCORE, who=name)
    return None


@dataclass(frozen=True, eq=False)
class HeldReplicates:
    """The pooled difference and its ICCs, resample by resample: counts (B, clusters) to shape (B,).

    A clinician whom a resample leaves without variance is left out of that resample's sums.
    """

    prepared: Prepared
    clinicians: Integers
    jury: Integers
    jury_present: Array
    held: tuple[tuple[int, Integers], ...]

    def __call__(self, counts: Counts) -> Array:
        """Return the pooled difference; NaN where a column of it has no variance."""
        jury, clinician = self.iccs(counts)[:, :2].T
        difference: Array = jury - clinician
        return difference

    def iccs(self, counts: Counts) -> Array:
        """Return what `value` does, from counts."""
        return joint_statistic(self.prepared, [self])(counts)

    def sums(self, part: ResponseBlock) -> Array:
        """Return both columns' sums with the others', (2, 6, B, clinicians)."""
        everyone, jury = part.column(self.clinicians), part.column(self.jury)
        weights = part.weights * self.jury_present[part.rows] * (jury.count > 0)
        count = np.broadcast_to(everyone.count, weights.shape)
        # Each clinician takes some of the responses: quick where a response is a row.
        laid = [everyone.total, count, jury.mean, weights]
        by_response = [np.ascontiguousarray(values.T) for values in laid]
        return np.stack([self._both(part, by_response, *held) for held in self.held], axis=-1)

    def _both(self, part: ResponseBlock, laid: list[Array], own: int, rows: Integers) -> Array:
        """Return one clinician's sums from (n, B): sum, count, the jury's mean, weights."""
        start, end = np.searchsorted(rows, [part.rows.start, part.rows.stop])
        rows, by = rows[start:end] - part.rows.start, part.by
        total, count, jurors, weights = (values.take(rows, axis=0) for values in laid)
        z = by.factor[:, own] * (part.prepared.values[rows, own][:, None] - by.mean[:, own])
        defined = by.defined[:, own]
        count -= defined
        rest = (total - z) / np.maximum(count, 1.0)
        shared = weights * ((count > 0) * defined)
        return np.stack([sums.stacked for sums in moments_of_two(shared, (jurors, z), rest)])

    def value(self, sums: Array, stack: ResampleBatch) -> Array:
        """Return the pooled ICC of the jury and of a clinician, then each clinician's own, (B, 2 + clinicians)."""
        own = [own for own, _ in self.held]
        usable = varied(stack.prepared, stack.counts)[:, own]
        jury, clinicians = (
            np.where(usable, _about_means(Moments(*sums_of_held)), 0.0) for sums_of_held in sums
        )
        method = stack.prepared.method
        pooled = [pooled_icc(squares.sum(axis=-1), method) for squares in (jury, clinicians)]
        return np.column_stack([*pooled, pooled_icc(clinicians, method)])


def _about_means(sums: Moments) -> Array:
    """Return Sxx, Syy and Sxy about the means, shape (3, ...); 0 where nothing varies."""
    n = np.maximum(sums.n, 1.0)
    xx, yy = sums.xx - sums.x**2 / n, sums.yy - sums.y**2 / n
    some_x, some_y = xx > ROUNDING * sums.xx, yy > ROUNDING * sums.yy
    xy = np.where(some_x & some_y, sums.xy - sums.x * sums.y / n, 0.0)
    return np.stack([np.where(some_x, xx, 0.0), np.where(some_y, yy, 0.0), xy])


def held_replicates(
    grid: RatingMatrix, jury: PanelColumns, compared: LikeForLike, method: Method
) -> HeldReplicates:
    """Return the resampled pooled difference over the clinicians that could be compared."""
    own = grid.columns(held.clinician for held in compared.defined)
    return HeldReplicates(
        prepared=prepare(grid, method),
        clinicians=grid.of_kind("clinician"),
        jury=grid.columns(jury.members),
        jury_present=jury.present(grid).astype(np.float64),
        held=tuple(zip(map(int, own), (held.rows for held in compared.defined), strict=True)),
    )


@dataclass(frozen=True)
class Population:
    """The interval over clinicians like these; undefined with the reason."""

    ends: Interval = UNDEFINED
    reason: Note | None = None


def population_interval(
    held: LikeForLike, without: Sequence[float], error: float, confidence: float = 0.95
) -> Population:
    """Return the interval of like for like over random clinicians and random instances.

    The clinicians' part is the delete-one-clinician jackknife with t quantiles of one degree of
    freedom fewer than there are clinicians; the instances' part is the standard error of the
    jackknife over instances with normal quantiles. The half width is the root of the sum of both
    squares. The jackknife over clinicians holds some of the instances' variance too, so that the
    interval is too wide where all clinicians are alike: about twice that over these clinicians.

    Parameters
    ----------
    held : the answer of `like_for_like`
    without : its difference as if each clinician that is compared had not been in the study
    error : its standard error over instances
    confidence : of the interval

    Returns
    -------
    Population
        Undefined with fewer than 3 clinicians that can be held out, where leaving one out leaves
        nothing to compare, or where `error` is NaN.

    References
    ----------
    Arvesen (1969), Annals of Mathematical Statistics 40, 2076: the jackknife of U-statistics.
    Zou & Donner (2008), Statistics in Medicine 27, 1693: adding squared half widths.
    """
    clinicians = len(held.defined)
    if clinicians < LEAST_CLINICIANS:
        few = {"clinicians": clinicians, "least": LEAST_CLINICIANS}
        return Population(
            reason=note(
                "population_few",
                (
                    "no interval over clinicians like these: {clinicians:clinician} can be held out, and "
                    "{least} are needed"
                ),
                **few,
            )
        )
    left_out = np.array(without)
    if not (np.isfinite(left_out).all() and math.isfinite(error)):
        return Population(
            reason=note(
                "population_undefined",
                (
                    "no interval over clinicians like these: without one of them there is nothing to "
                    "compare"
                ),
            )
        )
    spread = (clinicians - 1) / clinicians * ((left_out - left_out.mean()) ** 2).sum()
    upper = (1 + confidence) / 2
    of_clinicians = special.stdtrit(clinicians - 1, upper) ** 2 * spread
    of_instances = (special.ndtri(upper) * error) ** 2
    half = math.sqrt(of_clinicians + of_instances)
    return Population(Interval(held.difference - half, held.difference + half))
