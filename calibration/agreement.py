"""How far a scorer (a jury, one juror or a metric) agrees with the clinicians' mean."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration.bootstrap import Counts
from calibration.codes import NoteCode as Code
from calibration.icc import icc_consistency
from calibration.rating_matrix import FLAT, Grid, mean_of_given, without_variance, z_within_raters
from calibration.resampled_moments import (
    ROUNDING,
    Moments,
    Part,
    Prepared,
    Scale,
    Stack,
    icc_of_moments,
    moments,
    moments_of_raters,
    prepare,
    together,
)
from calibration.scores import Array, Flags, Integers, Method
from calibration.values import Note, note

FEW = 5  # raters in both panels; the products grow by the square of them


@dataclass(frozen=True, eq=False)
class Linear:
    """A panel's column as U k: `basis` is U, shape (n, 2 raters), 0 where it has no column."""

    members: Integers
    basis: Array

    def weights(self, by: Scale) -> Array:
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

    def moments(self, counts: Array, by: Scale) -> Moments:
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
    """Return a sum of squares; that of no variance at all where what is left is cancellation."""
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
    both = rows & (prepared.given[:, x].any(axis=1)) & (prepared.given[:, y].any(axis=1))
    one, other = _linear(prepared, x, both), _linear(prepared, y, both)
    basis = np.hstack([both[:, None].astype(np.float64), one.basis, other.basis])
    products = (basis[:, 1:, None] * basis[:, None, 1:]).reshape(len(basis), -1)
    by_response = np.hstack([basis, products])
    features = np.zeros((int(prepared.clusters.max()) + 1, by_response.shape[1]))
    np.add.at(features, prepared.clusters, by_response)
    return PairOfPanels(one, other, features)


def _linear(prepared: Prepared, members: Integers, rows: Flags) -> Linear:
    given = prepared.given[:, members]
    share = given * (rows / np.maximum(given.sum(axis=1), 1.0))[:, None]
    return Linear(members, np.hstack([prepared.values[:, members] * share, share]))


LEAST_RESPONSES = 3  # two points lie on a line, whatever the raters think


@dataclass(frozen=True)
class Panel:
    """Raters whose mean is one column: jurors, or one rater alone.

    `needed` is how many of them must have a composite for the mean to exist.
    """

    members: tuple[str, ...]
    needed: int

    def present(self, grid: Grid) -> Flags:
        """Return which responses have composites of enough members."""
        own = grid.composites[:, grid.columns(self.members)]
        enough: Flags = (~np.isnan(own)).sum(axis=1) >= self.needed
        return enough


def one(rater: str) -> Panel:
    """Return a panel of one rater."""
    return Panel((rater,), 1)


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


def columns(grid: Grid, panel: Panel, method: Method) -> Columns:
    """Return the two columns whose ICC is asked for.

    Method "paper": z within every rater over all of the rater's composites in the grid,
    then means over clinicians and over the panel. Method "published": means of raw
    composites (`column_icc` z-scores the two columns afterwards).
    """
    values = z_within_raters(grid.composites) if method == "paper" else grid.composites
    scorer = mean_of_given(values[:, grid.columns(panel.members)])
    return Columns(
        clinicians=mean_of_given(values[:, grid.of_kind("clinician")]),
        scorer=np.where(panel.present(grid), scorer, np.nan),
    )


def column_icc(x: Array, y: Array, method: Method, least: int = LEAST_RESPONSES) -> float:
    """Return ICC(3,2) of two columns without NaN; NaN when `why_undefined` has a reason."""
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
        return note(Code.TOO_FEW_RESPONSES, responses=len(x), least=least)
    for name, column in zip(names, (x, y), strict=True):
        if _flat(column):
            return note(Code.SAME_SCORE, who=name)
    if np.ptp(x + y) <= FLAT * (np.ptp(x) + np.ptp(y)):
        return note(Code.MIRRORED)
    return None


def why_no_icc(
    grid: Grid,
    panel: Panel,
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
                return note(Code.NO_Z, who=name, several=raters is clinicians)
    return why_undefined(*pair, names=names)


def _flat(column: Array) -> bool:
    return bool(np.ptp(column) <= FLAT * np.abs(column).max())


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
        return together(self.prepared, [self])(counts)

    @property
    def few(self) -> list[PairOfPanels]:
        """Return how the columns are summed where the raters are few; none where they are many."""
        few = [one for one in self.pairs if one is not None]
        return few if len(few) == len(self.pairs) else []

    def sums(self, part: Part) -> Array:
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

    def value(self, sums: Array, stack: Stack) -> Array:
        """Return the ICCs from the sums over all responses."""
        few = self.few
        if not few:
            return self._icc(sums, stack.by)
        members = np.unique(np.concatenate([one.members for one in few]))
        whole: Flags = np.all(stack.by.defined[:, members] > 0, axis=1)
        found = np.empty((len(stack.counts), len(few)))
        found[whole] = self._by_products(stack.counts[whole], stack.by.of(whole), few)
        if not whole.all():
            found[~whole] = replace(self, pairs=(None,))(stack.counts[~whole])
        return found

    def _by_products(self, counts: Counts, by: Scale, few: list[PairOfPanels]) -> Array:
        """Return the ICCs where every rater has some variance, and the raters are few."""
        again = self.prepared.method == "published"
        return np.column_stack(
            [icc_of_moments(one.moments(counts, by), restandardise=again) for one in few]
        )

    def _icc(self, sums: Array, by: Scale) -> Array:
        # A rater without variance in a resample has factor 0, and so no ICC.
        alone = np.where(by.defined[:, self.singles] > 0, by.factor[:, self.singles], np.nan)
        scaled = np.ones((len(alone), int(len(self.jury) > 0)))  # the jury's column is z already
        factor = np.hstack([scaled, alone])
        again = self.prepared.method == "published"
        return icc_of_moments(Moments(*sums), factor, restandardise=again)


def scorer_replicates(
    grid: Grid, jury: Panel | None, singles: Sequence[str], method: Method
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


def unscaled(grid: Grid, raters: Sequence[str]) -> tuple[str, ...]:
    """Return which of the raters have composites here but no variance, hence no z; each once."""
    own = grid.columns(dict.fromkeys(raters))
    table = grid.composites[:, own]
    named = without_variance(table) & (~np.isnan(table)).any(axis=0)
    return tuple(grid.raters[column] for column in own[named])
