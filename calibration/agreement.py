"""How far a scorer (a jury, one juror or a metric) agrees with the clinicians' mean.

The ICC of two columns, why there may be none, and the same ICC in every bootstrap resample. Where
the raters are few, the resampled sums come from matrix products alone: a panel's mean on a
response is linear in what a resample decides, each rater's mean and sd, so that its sums of
squares and products are quadratic forms (`PairOfPanels`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration.bootstrap import Counts
from calibration.icc import icc_consistency
from calibration.notes import Figures, Note, filled, undefined
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
    RaterScales,
    ResampleBatch,
    ResponseBlock,
    icc_of_moments,
    joint_statistic,
    moments,
    moments_of_raters,
    prepare,
)
from calibration.scores import Array, Flags, Integers
from calibration.shared_notes import SAME_SCORE, TOO_FEW_RESPONSES
from calibration.values import Method

FEW = 5  # raters in both panels; the products grow by the square of them
LEAST_RESPONSES = 3  # two points lie on a line, whatever the raters think


@dataclass(frozen=True)
class PanelColumns:
    """Raters whose mean is one column: jurors, or one rater alone.

    `needed` is how many of them must have a composite for the mean to exist.
    """

    members: tuple[str, ...]
    needed: int

    def present(self, grid: RatingMatrix) -> Flags:
        """Return which responses have composites of enough members."""
        own = grid.composites[:, grid.columns(self.members)]
        enough: Flags = (~np.isnan(own)).sum(axis=1) >= self.needed
        return enough


def single_rater(rater: str) -> PanelColumns:
    """Return a panel of one rater."""
    return PanelColumns((rater,), 1)


@dataclass(frozen=True, eq=False)
class Columns:
    """The clinicians' column and a scorer's, over the responses of the analysed set.

    Attributes
    ----------
    clinicians, scorer : shape (n,), NaN where there is none
    both : shape (n,), which responses have both
    """

    clinicians: Array
    scorer: Array

    @property
    def both(self) -> Flags:
        """Return which responses have both columns."""
        return ~np.isnan(self.clinicians) & ~np.isnan(self.scorer)


def columns(grid: RatingMatrix, panel: PanelColumns, method: Method) -> Columns:
    """Return the clinicians' and the scorer's column, whose ICC is the agreement.

    Method "paper": z within every rater over all of the rater's composites in the grid,
    then means over clinicians and over the panel. Method "published": means of raw
    composites (`column_icc` z-scores the two columns afterwards).

    Parameters
    ----------
    grid : RatingMatrix
        Of the analysed set; n responses.
    panel : PanelColumns
        The scorer: a jury, or one juror or metric.
    method : "paper" or "published"

    Returns
    -------
    Columns
        Two columns of shape (n,). NaN where no clinician, or too few of the panel, has a value;
        under "paper" a rater without variance has no z and does not count.
    """
    values = z_within_raters(grid.composites) if method == "paper" else grid.composites
    scorer = mean_of_given(values[:, grid.columns(panel.members)])
    return Columns(
        clinicians=mean_of_given(values[:, grid.of_kind("clinician")]),
        scorer=np.where(panel.present(grid), scorer, np.nan),
    )


def column_icc(x: Array, y: Array, method: Method, least: int = LEAST_RESPONSES) -> float:
    """Return ICC(3,2), consistency, of two columns.

    Parameters
    ----------
    x, y : shape (n,), no NaN
    method : "paper" or "published"
        "published" z-scores both columns first, "paper" takes them as they are.
    least : int
        Responses below which there is no ICC.

    Returns
    -------
    float
        At most 1, without lower bound. NaN when `why_undefined` has a reason.

    References
    ----------
    Shrout & Fleiss (1979), Psychological Bulletin 86, 420.
    """
    if why_undefined(x, y, least):
        return float("nan")
    pair = np.column_stack([x, y])
    if method == "published":
        pair = z_within_raters(pair)
    icc = float(icc_consistency(pair))
    return icc if np.isfinite(icc) else float("nan")


def why_undefined(
    x: Array,
    y: Array,
    least: int = LEAST_RESPONSES,
    names: tuple[str, str] = ("the clinicians", "the scorer"),
) -> Note | None:
    """Return why two columns have no ICC, or None when they have one.

    Too few responses, a column without variance (the formula would answer 0 and mean
    nothing by it), or one column that mirrors the other (the formula divides by 0).
    """
    if len(x) < least:
        return undefined(*TOO_FEW_RESPONSES, responses=len(x), least=least)
    for name, column in zip(names, (x, y), strict=True):
        if _flat(column):
            return undefined(*SAME_SCORE, who=name)
    if np.ptp(x + y) <= FLAT * (np.ptp(x) + np.ptp(y)):
        return undefined("mirrored", "one column of scores is the exact mirror of the other")
    return None


def why_no_icc(
    grid: RatingMatrix,
    panel: PanelColumns,
    method: Method,
    pair: tuple[Array, Array],
    names: tuple[str, str] = ("the clinicians", "the scorer"),
) -> Note | None:
    """Return why the columns that `columns` made, where both exist, have no ICC, or None.

    Under "paper" a side whose raters all lack variance has no z, however much it scored.
    """
    if method == "paper" and len(pair[0]) < LEAST_RESPONSES:
        clinicians = tuple(grid.raters[own] for own in grid.of_kind("clinician"))
        for name, raters in zip(names, (clinicians, panel.members), strict=True):
            table = grid.composites[:, grid.columns(raters)]
            flat = unscaled(grid, raters)
            if flat and len(flat) == (~np.isnan(table)).any(axis=0).sum():
                return undefined("no_z", _no_z, who=name, several=raters is clinicians)
    return why_undefined(*pair, names=names)


def _flat(column: Array) -> bool:
    return bool(np.ptp(column) <= FLAT * np.abs(column).max())


@dataclass(frozen=True, eq=False)
class Linear:
    """A panel's column as U k: `basis` is U, shape (n, 2 raters), 0 where it has no column."""

    members: Integers
    basis: Array

    def weights(self, by: RaterScales) -> Array:
        """Return k for every resample, shape (B, 2 raters)."""
        factor = by.factor[:, self.members]
        return np.hstack([factor, -factor * by.mean[:, self.members]])


@dataclass(frozen=True, eq=False)
class PairOfPanels:
    """Two columns over the responses that have both, summed by cluster: see `pair_of_panels`."""

    x: Linear
    y: Linear
    features: Array

    @property
    def members(self) -> Integers:
        """Return every rater whose variance the columns need."""
        return np.concatenate([self.x.members, self.y.members])

    def moments(self, counts: Array, by: RaterScales) -> Moments:
        """Return the weighted sums of both columns, shape (B,), from counts (B, clusters).

        Right only for resamples that leave every member some variance.
        """
        sums = counts @ self.features
        of_x, of_y = self.x.weights(by), self.y.weights(by)
        cut, width = of_x.shape[1], of_x.shape[1] + of_y.shape[1]
        square = sums[:, 1 + width :].reshape(len(sums), width, width)
        on_x = np.einsum("ba,bac->bc", of_x, square[:, :cut])
        on_y = np.einsum("ba,bac->bc", of_y, square[:, cut:, cut:])
        size = np.sqrt(np.einsum("baa->ba", square))
        x = np.einsum("ba,ba->b", of_x, sums[:, 1 : 1 + cut])
        y = np.einsum("ba,ba->b", of_y, sums[:, 1 + cut : 1 + width])
        xx = np.einsum("ba,ba->b", on_x[:, :cut], of_x)
        yy = np.einsum("ba,ba->b", on_y, of_y)
        return Moments(
            n=sums[:, 0],
            x=x,
            y=y,
            xx=_without_noise(xx, x, sums[:, 0], of_x, size[:, :cut]),
            yy=_without_noise(yy, y, sums[:, 0], of_y, size[:, cut:]),
            xy=np.einsum("ba,ba->b", on_x[:, cut:], of_y),
        )


def _without_noise(square: Array, total: Array, n: Array, weights: Array, size: Array) -> Array:
    """Return a sum of squares; where the variance is cancellation error, that of no variance."""
    even = total**2 / np.maximum(n, 1.0)
    terms = np.einsum("ba,ba->b", np.abs(weights), size)
    return np.where(square - even > ROUNDING * terms**2, square, even)


def pair_of_panels(
    prepared: Prepared, x: Integers, y: Integers, rows: Flags
) -> PairOfPanels | None:
    """Return two panels' columns ready for resampling; None if their raters are too many.

    Parameters
    ----------
    prepared : of the grid
    x, y : columns of the two panels' raters; those who take no part are left out
    rows : shape (n,), the responses that may count; those without either column do not
    """
    x, y = x[prepared.usable[x]], y[prepared.usable[y]]
    if not len(x) or not len(y) or len(x) + len(y) > FEW:
        return None
    both = rows & (prepared.has_value[:, x].any(axis=1)) & (prepared.has_value[:, y].any(axis=1))
    first, second = _linear(prepared, x, both), _linear(prepared, y, both)
    basis = np.hstack([both[:, None].astype(np.float64), first.basis, second.basis])
    products = (basis[:, 1:, None] * basis[:, None, 1:]).reshape(len(basis), -1)
    by_response = np.hstack([basis, products])
    features = np.zeros((int(prepared.clusters.max()) + 1, by_response.shape[1]))
    np.add.at(features, prepared.clusters, by_response)
    return PairOfPanels(first, second, features)


def _linear(prepared: Prepared, members: Integers, rows: Flags) -> Linear:
    has_score = prepared.has_value[:, members]
    share = has_score * (rows / np.maximum(has_score.sum(axis=1), 1.0))[:, None]
    return Linear(members, np.hstack([prepared.values[:, members] * share, share]))


@dataclass(frozen=True, eq=False)
class ScorerReplicates:
    """ICCs of a jury and of single scorers with the clinicians, resample by resample.

    Called with counts (B, clusters) it returns shape (B, [jury] + singles). Both methods
    start again from the composites: "paper" recomputes every rater's mean and sd over the
    resampled responses, "published" the mean and sd of the two columns.
    """

    prepared: Prepared
    clinicians: Integers
    jury: Integers
    jury_present: Array
    singles: Integers
    pairs: tuple[PairOfPanels | None, ...]

    def __call__(self, counts: Counts) -> Array:
        """Return the ICC of every scorer in every resample; NaN where undefined."""
        return joint_statistic(self.prepared, [self])(counts)

    @property
    def few(self) -> list[PairOfPanels]:
        """Return the columns' matrix products; empty where a column has too many raters for them."""
        few = [pair for pair in self.pairs if pair is not None]
        return few if len(few) == len(self.pairs) else []

    def sums(self, part: ResponseBlock) -> Array:
        """Return the sums of every scorer's column with the clinicians', (6, B, scorers)."""
        if self.few:
            return np.zeros(())
        data, clinical = part.prepared, part.column(self.clinicians)
        weights = part.weights * (clinical.count > 0)
        alone = moments_of_raters(weights, clinical.mean, data, self.singles).stacked
        if not len(self.jury):
            return alone
        jury = part.column(self.jury)
        shared = weights * self.jury_present[part.rows] * (jury.count > 0)
        whole = moments(shared, jury.mean, clinical.mean).stacked
        return np.concatenate([whole[:, :, None], alone], axis=2)

    def value(self, sums: Array, stack: ResampleBatch) -> Array:
        """Return the ICCs from the sums over all responses."""
        few = self.few
        if not few:
            return self._icc(sums, stack.by)
        members = np.unique(np.concatenate([pair.members for pair in few]))
        whole: Flags = np.all(stack.by.defined[:, members] > 0, axis=1)
        iccs = np.empty((len(stack.counts), len(few)))
        iccs[whole] = self._by_products(stack.counts[whole], stack.by.of(whole), few)
        if not whole.all():
            iccs[~whole] = replace(self, pairs=(None,))(stack.counts[~whole])
        return iccs

    def _by_products(self, counts: Counts, by: RaterScales, few: list[PairOfPanels]) -> Array:
        """Return the ICCs where every rater has some variance, and the raters are few."""
        restandardise = self.prepared.method == "published"
        return np.column_stack(
            [icc_of_moments(pair.moments(counts, by), restandardise=restandardise) for pair in few]
        )

    def _icc(self, sums: Array, by: RaterScales) -> Array:
        # A rater without variance in a resample has factor 0, and so no ICC.
        alone = np.where(by.defined[:, self.singles] > 0, by.factor[:, self.singles], np.nan)
        scaled = np.ones((len(alone), int(len(self.jury) > 0)))  # the jury's column is z already
        factor = np.hstack([scaled, alone])
        restandardise = self.prepared.method == "published"
        return icc_of_moments(Moments(*sums), factor, restandardise=restandardise)


def scorer_replicates(
    grid: RatingMatrix, jury: PanelColumns | None, singles: Sequence[str], method: Method
) -> ScorerReplicates:
    """Return the resampled ICCs of a jury, if there is one, and of single jurors and metrics."""
    members = jury.members if jury else ()
    present = jury.present(grid) if jury else np.zeros(len(grid.responses), dtype=np.bool_)
    data, clinicians = prepare(grid, method), grid.of_kind("clinician")
    every = np.ones(len(grid.responses), dtype=np.bool_)
    panels = [(grid.columns(members), present)] if members else []
    panels += [(np.array([single]), every) for single in grid.columns(singles)]
    return ScorerReplicates(
        prepared=data,
        clinicians=clinicians,
        jury=grid.columns(members),
        jury_present=present.astype(np.float64),
        singles=grid.columns(singles),
        pairs=tuple(pair_of_panels(data, own, clinicians, rows) for own, rows in panels),
    )


def unscaled(grid: RatingMatrix, raters: Sequence[str]) -> tuple[str, ...]:
    """Return which raters have composites in the grid but no variance, hence no z; each once."""
    own = grid.columns(dict.fromkeys(raters))
    table = grid.composites[:, own]
    without_z = without_variance(table) & (~np.isnan(table)).any(axis=0)
    return tuple(grid.raters[column] for column in own[without_z])


def _no_z(figures: Figures) -> str:
    have = "have" if figures["several"] else "has"
    return filled(f"{{who:scorer}} {have} no variance, hence no z", figures)
