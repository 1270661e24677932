"""ICCs of a matrix under weights of its instances: `f(matrix, weights (B, m)) -> (B, ...)`.

Ones give the figure itself, 1 with one 0 the figure without an instance (the jackknife,
`intervals.left_out`), and counts of drawn instances a bootstrap. Under each weighting everything
is computed anew, every rater's mean and sd included: a weight of 2 counts a response twice, 0 is
as if it were not there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration.bootstrap import CELLS
from calibration.columns import PanelColumns
from calibration.rating_matrix import RatingMatrix, mean_of_given, without_variance
from calibration.scores import Array, Flags, Integers
from calibration.values import Method

ROUNDING = 1e-12  # a variance below this share of the second moment is cancellation


@dataclass(frozen=True, eq=False)
class Weighted:
    """A matrix of n responses under B weightings, z of rater r being factor (value - mean).

    Attributes
    ----------
    values : shape (n, raters)
        Composites less a constant, which keeps digits; 0 where missing.
    known : shape (n, raters), 1 where there is a composite, else 0
    weights : shape (B, n)
    mean, factor : shape (B, raters)
        0 and 1 with method "published", which takes composites as they are.
    counted : shape (B, raters), 0 where the weights leave a rater without z
    varied : shape (B, raters), whether composites differ
    """

    values: Array
    known: Array
    weights: Array
    mean: Array
    factor: Array
    counted: Array
    varied: Flags

    def lots(self) -> Iterator["Weighted"]:
        """Yield it under some of the weightings at a time: as many as a cache holds."""
        size = max(1, CELLS // max(len(self.values), 1))
        for start in range(0, len(self.weights), size):
            lot = slice(start, start + size)
            yield replace(
                self,
                weights=self.weights[lot],
                mean=self.mean[lot],
                factor=self.factor[lot],
                counted=self.counted[lot],
                varied=self.varied[lot],
            )

    def panel(self, raters: Integers) -> tuple[Array, Array]:
        """Return the sum of some raters' z (B, n), and how many it is of, (B, n) or (1, n)."""
        factor, counted, known = (
            self.factor[:, raters],
            self.counted[:, raters],
            self.known[:, raters],
        )
        total = factor @ self.values[:, raters].T - (factor * self.mean[:, raters]) @ known.T
        return total, known.sum(axis=1)[None] if counted.all() else counted @ known.T

    def mean_of(self, raters: Integers) -> tuple[Array, Flags]:
        """Return the mean of some raters' z, 0 where none has one, and where it is of any."""
        total, number = self.panel(raters)
        return total / np.maximum(number, 1.0), number > 0


def weighted(grid: RatingMatrix, weights: Array, method: Method) -> Weighted:
    """Return a matrix under weights (B, m) of its m instances."""
    known = (~np.isnan(grid.composites)).astype(np.float64)
    shift, spread = _own_scale(grid.composites)
    if method == "published":  # one constant a kind: raters of a panel stay comparable
        spread = np.ones_like(spread)
        for kind in ("clinician", "juror"):
            own = grid.of_kind(kind)
            shift[own] = np.nansum(grid.composites[:, own]) / max(known[:, own].sum(), 1.0)
    values = np.where(known > 0, (grid.composites - shift) / spread, 0.0)
    of_responses = weights[:, grid.clusters]
    sums = of_responses @ np.hstack([known, values, values**2])
    number, total, square = np.hsplit(sums, 3)
    mean = total / np.maximum(number, 1.0)
    about = square - total * mean
    varied: Flags = (number >= 2) & (about > ROUNDING * square)
    if method == "published":
        mean, factor = np.zeros_like(about), np.ones_like(about)
        return Weighted(values, known, of_responses, mean, factor, factor, varied)
    defined = varied & ~without_variance(grid.composites)
    factor = np.sqrt(np.where(defined, number - 1, 0.0) / np.where(defined, about, 1.0))
    mean = np.where(defined, mean, 0.0)
    return Weighted(values, known, of_responses, mean, factor, defined.astype(np.float64), varied)


def _own_scale(composites: Array) -> tuple[Array, Array]:
    """Return each rater's mean and sd (ddof 0); 0 and 1 where there is none."""
    number = np.maximum((~np.isnan(composites)).sum(axis=0), 1)
    mean: Array = np.nansum(composites, axis=0) / number
    sd = np.sqrt(np.nansum((composites - mean) ** 2, axis=0) / number)
    return mean, np.where(sd > 0, sd, 1.0)


def scorer_iccs(
    grid: RatingMatrix,
    panels: Sequence[PanelColumns],
    method: Method,
    weights: Array,
    rows: Flags | None = None,
) -> Array:
    """Return ICC(C,2) of some scorers with the clinicians under weights.

    Parameters
    ----------
    grid : RatingMatrix
        Of n responses to m instances.
    panels : the scorers: a jury, jurors or metrics
    method : "paper" or "published", as in `columns.columns`
    weights : shape (B, m)
    rows : shape (n,), optional
        Responses that the ICCs are of; z is over all.

    Returns
    -------
    shape (B, scorers)
        NaN where undefined. Under ones that of `columns.column_icc` on `columns.columns`.

    References
    ----------
    McGraw & Wong (1996), Psychological Methods 1, 30.
    """
    clinicians, published = grid.of_kind("clinician"), method == "published"
    shown = np.ones(len(grid.responses), dtype=np.bool_) if rows is None else rows
    alone = [place for place, panel in enumerate(panels) if len(panel.members) == 1]
    singles = grid.columns(panels[place].members[0] for place in alone)
    several = [
        (place, grid.columns(panel.members), panel.present(grid))
        for place, panel in enumerate(panels)
        if len(panel.members) != 1
    ]

    def of_lot(lot: Weighted) -> Array:
        judge, judged = lot.mean_of(clinicians)
        given = lot.weights * (judged & shown)
        found = np.empty((len(given), len(panels)))
        found[:, alone] = _icc_of_raters(lot, singles, judge, given, restandardise=published)
        for place, members, present in several:
            score, scored = lot.mean_of(members)
            both = given * (scored & present)
            found[:, place] = weighted_icc(score, judge, both, restandardise=published)
        return found

    return np.concatenate([of_lot(lot) for lot in weighted(grid, weights, method).lots()])


def _icc_of_raters(
    lot: Weighted, raters: Integers, judge: Array, weights: Array, *, restandardise: bool
) -> Array:
    """Return the ICC of each of some raters with a column (B, n), shape (B, raters).

    A rater's z is a line of the values, whatever the weights: these are summed and scaled after.
    """
    values, known, of_judge = lot.values[:, raters], lot.known[:, raters], weights * judge
    return icc_of_sums(
        weights @ known,
        weights @ values,
        of_judge @ known,
        weights @ values**2,
        (of_judge * judge) @ known,
        of_judge @ values,
        restandardise=restandardise,
        scales=(np.where(lot.counted[:, raters] > 0, lot.factor[:, raters], np.nan), 1.0),
    )


def pair_icc(
    grid: RatingMatrix, pairs: Sequence[tuple[str, str, Integers]], weights: Array
) -> Array:
    """Return the mean ICC(C,2) of pairs of raters under weights (B, m), shape (B,).

    `pairs` are two raters and the responses that they share, z being over all that each rated; one
    that a weighting leaves undefined is left out of its mean. NaN where none is defined.
    """
    columns = [grid.columns(pair[:2]) for pair in pairs]
    shares = [shared for _, _, shared in pairs]

    def of_lot(lot: Weighted) -> Array:
        found = np.full((len(lot.weights), len(pairs)), np.nan)
        for place, ((a, b), shared) in enumerate(zip(columns, shares, strict=True)):
            x, y, own = lot.values[shared, a], lot.values[shared, b], lot.weights[:, shared]
            factors = np.where(lot.factor[:, [a, b]] > 0, lot.factor[:, [a, b]], np.nan)
            # A rater's z is a line of the values: these are summed, and scaled after.
            products = np.column_stack([np.ones_like(x), x, y, x * x, y * y, x * y])
            scales = factors[:, 0], factors[:, 1]
            sums = (own @ products).T
            found[:, place] = icc_of_sums(*sums, restandardise=False, scales=scales)
        return mean_of_given(found)

    return np.concatenate([of_lot(lot) for lot in weighted(grid, weights, "paper").lots()])


def weighted_icc(x: Array, y: Array, weights: Array, *, restandardise: bool = False) -> Array:
    """Return ICC(C,2) of two columns under weights.

    Parameters
    ----------
    x, y : shape (n,) or (B, n)
    weights : shape (B, n), 0 where a response does not count
    restandardise : z-score both columns first, which makes it 2r / (1 + r)

    Returns
    -------
    shape (B,)
        At most 1. NaN with fewer than two responses, where a column has no variance, or one
        mirrors the other.
    """
    wx, wy = weights * x, weights * y
    x, y = np.broadcast_to(x, wx.shape), np.broadcast_to(y, wy.shape)
    xx, yy, xy = (np.einsum("bn,bn->b", *pair) for pair in ((wx, x), (wy, y), (wx, y)))
    sums = (weights.sum(axis=1), wx.sum(axis=1), wy.sum(axis=1), xx, yy, xy)
    return icc_of_sums(*sums, restandardise=restandardise)


def icc_of_sums(
    n: Array,
    x: Array,
    y: Array,
    xx: Array,
    yy: Array,
    xy: Array,
    *,
    restandardise: bool,
    scales: tuple[Array | float, Array | float] = (1.0, 1.0),
) -> Array:
    """Return ICC(C,2) = 4 cov / (var x + var y + 2 cov) from weighted sums of x, y and products.

    `scales` are what x and y are multiplied by. Shapes are broadcast; NaN as `weighted_icc`.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        about_x, about_y = xx - x**2 / n, yy - y**2 / n
        varied = (about_x > ROUNDING * xx) & (about_y > ROUNDING * yy) & (n >= 2)
        shared = (xy - x * y / n) * scales[0] * scales[1]
        about_x, about_y = about_x * np.square(scales[0]), about_y * np.square(scales[1])
        if restandardise:
            shared = shared / np.sqrt(about_x * about_y)
            about_x = about_y = np.ones_like(shared)
        both = about_x + about_y + 2 * shared
        return np.where(varied & (both > ROUNDING * (about_x + about_y)), 4 * shared / both, np.nan)


def held_iccs(
    grid: RatingMatrix,
    jury: PanelColumns,
    method: Method,
    held: Sequence[tuple[str, Integers]],
    weights: Array,
) -> Array:
    """Return the ICCs of like for like under weights.

    Parameters
    ----------
    grid, jury, method : as for `clinicians.like_for_like`
    held : each clinician that is left out, and the responses of the comparison
    weights : shape (B, m)

    Returns
    -------
    shape (B, 2 + clinicians)
        Of the jury, and of a clinician, with the others, pooled over the clinicians left out; then
        of each clinician alone. From -1 to 1, NaN without variance. A clinician whom a weighting
        leaves without variance is left out of its sums.
    """
    clinicians, members = grid.of_kind("clinician"), grid.columns(jury.members)
    own_columns, present = grid.columns(name for name, _ in held), jury.present(grid)

    def of_lot(lot: Weighted) -> Array:
        everyone, number = lot.panel(clinicians)
        jurors, scored = lot.mean_of(members)
        counts = lot.weights * (scored & present)
        # A clinician takes some of the responses: quick where a response is a row.
        wide = (everyone, np.broadcast_to(number, everyone.shape), jurors, counts)
        by_response = [np.ascontiguousarray(part.T) for part in wide]
        squares = np.zeros((2, 3, len(counts), len(held)))
        for place, (own, (_, rows)) in enumerate(zip(own_columns, held, strict=True)):
            total, given, jury_mean, weight = (part.take(rows, axis=0) for part in by_response)
            z = lot.factor[:, own] * (lot.values[rows, own][:, None] - lot.mean[:, own])
            given -= lot.counted[:, own]
            others = (total - z) / np.maximum(given, 1.0)
            weight *= (given > 0) * lot.counted[:, own]
            about = _about_means((jury_mean, z), others, weight)
            squares[..., place] = np.where(lot.varied[:, own], about, 0.0)
        pooled = [pooled_icc(side.sum(axis=-1), method) for side in squares]
        return np.column_stack([*pooled, pooled_icc(squares[1], method)])

    return np.concatenate([of_lot(lot) for lot in weighted(grid, weights, method).lots()])


def _about_means(both: tuple[Array, Array], y: Array, weights: Array) -> Array:
    """Return Sxx, Syy and Sxy of two x with one y, all (n, B), about the means, shape (2, 3, B).

    0 where nothing varies.
    """
    n, wy = np.maximum(weights.sum(axis=0), 1.0), weights * y
    of_y, yy = wy.sum(axis=0), np.einsum("nb,nb->b", wy, y)
    about_y, found = yy - of_y**2 / n, []
    for x in both:
        of_x, xx = np.einsum("nb,nb->b", weights, x), np.einsum("nb,nb,nb->b", weights, x, x)
        about_x, shared = xx - of_x**2 / n, np.einsum("nb,nb->b", wy, x) - of_x * of_y / n
        some_x, some_y = about_x > ROUNDING * xx, about_y > ROUNDING * yy
        about = (about_x, some_x), (about_y, some_y), (shared, some_x & some_y)
        found.append([np.where(varies, sums, 0.0) for sums, varies in about])
    return np.array(found)


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
