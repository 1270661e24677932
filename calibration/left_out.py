"""The ICC of a scorer without each response, or each instance, in closed form.

Nothing is computed anew for each of n deletions. Leaving responses out turns a rater's z into a
straight line of the old z, z' = a z + b, with a and b known from the rater's number, sum and sum
of squares. Every sum that an ICC needs is then a quadratic form in the raters' a and b.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from calibration.agreement import LEAST_RESPONSES, Panel, column_icc, columns
from calibration.grid import Grid
from calibration.resample import Moments, icc_of_moments
from calibration.scores import Array, Flags, Integers, Method
from calibration.zscore import z_within_raters

DOUBTFUL = 1e-6  # when less than this share of a variance is left, compute anew: digits are lost


@dataclass(frozen=True, eq=False)
class Deletions:
    """A grid made ready for leaving each of some groups of responses out in turn.

    Attributes
    ----------
    grid, method : what is asked of
    groups : shape (n,), the group of each response, numbered from 0
    z : shape (n, raters)
        z ("paper") or composites about a mean of their kind ("published"); 0 where none.
    heard : shape (n, raters), 1 where there is one, else 0
    factor, shift : shape (groups, raters), a and b of z' = a z + b without the group
    poor : shape (groups, raters), which raters keep too little variance for that line
    clinicians : the clinicians' column
    """

    grid: Grid
    method: Method
    groups: Integers
    z: Array
    heard: Array
    factor: Array
    shift: Array
    poor: Flags
    clinicians: "_Side"


@dataclass(frozen=True, eq=False)
class _Side:
    """One of the two columns as a sum over its raters' lines, and what each group takes of it.

    `features` (n, 2 raters) times `slopes` (groups, 2 raters) is the column without a group;
    `own` (n,) is each response's value without its own group; `given` says where there is one.
    """

    features: Array
    slopes: Array
    own: Array
    given: Flags


def deletions(grid: Grid, method: Method, groups: Integers) -> Deletions:
    """Return a grid of at least one response ready for leaving groups of responses out."""
    raw = z_within_raters(grid.composites) if method == "paper" else _centred(grid)
    z, heard = np.nan_to_num(raw), (~np.isnan(raw)).astype(np.float64)
    shape = (int(groups.max()) + 1, z.shape[1])
    factor, shift, poor = np.ones(shape), np.zeros(shape), np.zeros(shape, dtype=np.bool_)
    if method == "paper":
        factor, shift, poor = _lines(z, heard, groups, shape[0])
    everyone = np.ones(len(z), dtype=np.bool_)
    own = grid.of_kind("clinician")
    side = _side(z[:, own], heard[:, own], (factor[:, own], shift[:, own]), groups, everyone)
    return Deletions(grid, method, groups, z, heard, factor, shift, poor, side)


def iccs_without(ready: Deletions, panel: Panel) -> Array:
    """Return the ICC of a panel with the clinicians without each group in turn.

    Returns
    -------
    shape (groups,)
        NaN where fewer than three responses with both columns are left, or a column
        without variance. Equal, up to rounding, to removing the rows and starting again.
    """
    members = ready.grid.columns(panel.members)
    scorer = _side(
        ready.z[:, members],
        ready.heard[:, members],
        (ready.factor[:, members], ready.shift[:, members]),
        ready.groups,
        panel.present(ready.grid),
    )
    sums, shrunk = _sums_without(ready, ready.clinicians, scorer)
    with np.errstate(invalid="ignore"):
        found = icc_of_moments(sums, restandardise=ready.method == "published")
    found = np.where(sums.n >= LEAST_RESPONSES, found, np.nan)
    raters = np.concatenate([ready.grid.of_kind("clinician"), members])
    for group in np.flatnonzero(ready.poor[:, raters].any(axis=1) | shrunk):
        found[group] = _anew(ready, panel, ready.groups != group)
    return found


def _centred(grid: Grid) -> Array:
    """Take one constant from each kind of rater, from metrics one each: it only keeps digits."""
    table = grid.composites.copy()
    for kind in ("clinician", "juror"):
        own = grid.of_kind(kind)
        given = table[:, own][~np.isnan(table[:, own])]
        table[:, own] -= given.mean() if len(given) else 0.0
    for own in grid.of_kind("metric"):
        given = table[~np.isnan(table[:, own]), own]
        table[:, own] -= given.mean() if len(given) else 0.0
    return table


def _lines(z: Array, heard: Array, groups: Integers, many: int) -> tuple[Array, Array, Flags]:
    """Return a, b and what is too poor, each (groups, raters), from sums without the group."""
    rows = (np.ones(len(groups)), (groups, np.arange(len(groups))))
    member = sparse.csr_array(rows, shape=(many, len(groups)))
    parts = (heard, z, z**2)
    taken = [np.asarray(member @ part) for part in parts]
    number, total, square = (
        part.sum(axis=0) - lost for part, lost in zip(parts, taken, strict=True)
    )
    concerned = taken[0] > 0
    about = square - total**2 / np.maximum(number, 1)
    poor = concerned & ((number < 2) | (about <= DOUBTFUL * parts[2].sum(axis=0)))
    kept = concerned & ~poor
    factor = np.sqrt(np.where(kept, number - 1, 1) / np.where(kept, about, 1))
    return factor, np.where(kept, -factor * total / np.maximum(number, 1), 0.0), poor


def _side(
    z: Array, heard: Array, lines: tuple[Array, Array], groups: Integers, present: Flags
) -> _Side:
    number = heard.sum(axis=1, keepdims=True)
    weights = heard / np.maximum(number, 1)
    features, slopes = np.hstack([weights * z, weights]), np.hstack(lines)
    own = np.einsum("nr,nr->n", features, slopes[groups])
    return _Side(features, slopes, own, (number[:, 0] > 0) & present)


def _sums_without(ready: Deletions, x: _Side, y: _Side) -> tuple[Moments, Flags]:
    """Return the sums over what is left, and which groups take nearly all the variance along."""
    both = x.given & y.given
    of_row, many = ready.groups[both], len(x.slopes)
    own_x, own_y = x.own[both], y.own[both]
    of_x, of_y = x.features[both], y.features[both]

    def left(whole: Array, own: Array) -> Array:
        rest: Array = whole - np.bincount(of_row, weights=own, minlength=many)
        return rest

    all_xx = np.einsum("gr,gr->g", x.slopes @ (of_x.T @ of_x), x.slopes)
    all_yy = np.einsum("gr,gr->g", y.slopes @ (of_y.T @ of_y), y.slopes)
    all_xy = np.einsum("gr,gr->g", x.slopes @ (of_x.T @ of_y), y.slopes)
    sums = Moments(
        n=left(np.full(many, float(both.sum())), np.ones(len(of_row))),
        x=left(x.slopes @ of_x.sum(axis=0), own_x),
        y=left(y.slopes @ of_y.sum(axis=0), own_y),
        xx=left(all_xx, own_x**2),
        yy=left(all_yy, own_y**2),
        xy=left(all_xy, own_x * own_y),
    )
    return sums, _shrunk(sums, all_xx, all_yy)


def _shrunk(sums: Moments, all_xx: Array, all_yy: Array) -> Flags:
    n = np.maximum(sums.n, 1)
    xx, yy = sums.xx - sums.x**2 / n, sums.yy - sums.y**2 / n
    both = xx + yy + 2 * (sums.xy - sums.x * sums.y / n)
    little = (xx <= DOUBTFUL * all_xx) | (yy <= DOUBTFUL * all_yy)
    flags: Flags = little | (both <= DOUBTFUL * (xx + yy))
    return flags


def _anew(ready: Deletions, panel: Panel, rows: Flags) -> float:
    grid = ready.grid
    left = replace(grid, composites=grid.composites[rows], clusters=grid.clusters[rows])
    pair = columns(left, panel, ready.method)
    return column_icc(pair.clinicians[pair.both], pair.scorer[pair.both], ready.method)
