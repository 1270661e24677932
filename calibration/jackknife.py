"""The jackknife: ICCs without each response or instance, their intervals, and differences of two.

Nothing is computed anew for each of n deletions. Leaving responses out turns a rater's z into a
straight line of the old z, z' = a z + b, with a and b known from the rater's number, sum and sum
of squares. Every sum that an ICC needs is then a quadratic form in the raters' a and b. On Fisher's
z of the correlation within responses the jackknife's error hardly depends on the ICC, and an
interval goes over to the ICC without leaving its range.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse, special

from calibration.agreement import LEAST_RESPONSES, PanelColumns, column_icc, columns
from calibration.icc import UNDEFINED, Interval
from calibration.rating_matrix import RatingMatrix, z_within_raters
from calibration.resampled_moments import Moments, icc_of_moments
from calibration.scores import Array, Flags, Integers
from calibration.values import NAN, Method

DOUBTFUL = 1e-6  # when less than this share of a variance is left, compute anew: digits are lost
HALVINGS = 50  # of the range of levels in which p is sought
ROUNDING = 1e-9  # ICCs that are closer are the same ICC, computed in another order
LEAST_INSTANCES = 3  # with two left-out values a variance is all there is
ANGLES = 720  # of the ellipse: its ends are told to 1 in 50,000 of its width


@dataclass(frozen=True, eq=False)
class Deletions:
    """The sums of a grid from which each group of responses can be left out in turn.

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

    grid: RatingMatrix
    method: Method
    groups: Integers
    z: Array
    heard: Array
    factor: Array
    shift: Array
    poor: Flags
    clinicians: "_ColumnLines"


@dataclass(frozen=True, eq=False)
class _ColumnLines:
    """One of the two columns as a sum over its raters' lines, and what each group takes of it.

    `features` (n, 2 raters) times `slopes` (groups, 2 raters) is the column without a group;
    `own` (n,) is each response's value without its own group; `has_value` says where there is one.
    """

    features: Array
    slopes: Array
    own: Array
    has_value: Flags


def deletions(grid: RatingMatrix, method: Method, groups: Integers) -> Deletions:
    """Return the sums of a grid from which groups of responses can be left out."""
    raw = z_within_raters(grid.composites) if method == "paper" else _centred(grid)
    z, has_score = np.nan_to_num(raw), (~np.isnan(raw)).astype(np.float64)
    shape = (int(groups.max()) + 1, z.shape[1])
    factor, shift, poor = np.ones(shape), np.zeros(shape), np.zeros(shape, dtype=np.bool_)
    if method == "paper":
        factor, shift, poor = _lines(z, has_score, groups, shape[0])
    everyone = np.ones(len(z), dtype=np.bool_)
    own = grid.of_kind("clinician")
    side = _column_lines(
        z[:, own], has_score[:, own], (factor[:, own], shift[:, own]), groups, everyone
    )
    return Deletions(grid, method, groups, z, has_score, factor, shift, poor, side)


def iccs_without(ready: Deletions, panel: PanelColumns) -> Array:
    """Return the ICC of a panel with the clinicians without each group in turn.

    Returns
    -------
    shape (groups,)
        NaN where fewer than three responses with both columns are left, or a column
        without variance. Equal, up to rounding, to removing the rows and starting again.
    """
    members = ready.grid.columns(panel.members)
    scorer = _column_lines(
        ready.z[:, members],
        ready.heard[:, members],
        (ready.factor[:, members], ready.shift[:, members]),
        ready.groups,
        panel.present(ready.grid),
    )
    sums, shrunk = _sums_without(ready, ready.clinicians, scorer)
    with np.errstate(invalid="ignore"):
        iccs = icc_of_moments(sums, restandardise=ready.method == "published")
    iccs = np.where(sums.n >= LEAST_RESPONSES, iccs, np.nan)
    raters = np.concatenate([ready.grid.of_kind("clinician"), members])
    for group in np.flatnonzero(ready.poor[:, raters].any(axis=1) | shrunk):
        iccs[group] = _recomputed(ready, panel, ready.groups != group)
    return iccs


def _centred(grid: RatingMatrix) -> Array:
    """Subtract a constant from each kind of rater, and from each metric, to keep digits."""
    table = grid.composites.copy()
    for kind in ("clinician", "juror"):
        own = grid.of_kind(kind)
        values = table[:, own][~np.isnan(table[:, own])]
        table[:, own] -= values.mean() if len(values) else 0.0
    for own in grid.of_kind("metric"):
        values = table[~np.isnan(table[:, own]), own]
        table[:, own] -= values.mean() if len(values) else 0.0
    return table


def _lines(z: Array, has_score: Array, groups: Integers, many: int) -> tuple[Array, Array, Flags]:
    """Return a, b and where too little variance is left, each (groups, raters), without each group."""
    rows = (np.ones(len(groups)), (groups, np.arange(len(groups))))
    member = sparse.csr_array(rows, shape=(many, len(groups)))
    parts = (has_score, z, z**2)
    taken = [np.asarray(member @ part) for part in parts]
    number, total, square = (
        part.sum(axis=0) - lost for part, lost in zip(parts, taken, strict=True)
    )
    concerned = taken[0] > 0
    about = square - total**2 / np.maximum(number, 1)
    poor = concerned & ((number < 2) | (about <= DOUBTFUL * parts[2].sum(axis=0)))
    in_closed_form = concerned & ~poor
    factor = np.sqrt(np.where(in_closed_form, number - 1, 1) / np.where(in_closed_form, about, 1))
    return factor, np.where(in_closed_form, -factor * total / np.maximum(number, 1), 0.0), poor


def _column_lines(
    z: Array, has_score: Array, lines: tuple[Array, Array], groups: Integers, present: Flags
) -> _ColumnLines:
    number = has_score.sum(axis=1, keepdims=True)
    weights = has_score / np.maximum(number, 1)
    features, slopes = np.hstack([weights * z, weights]), np.hstack(lines)
    own = np.einsum("nr,nr->n", features, slopes[groups])
    return _ColumnLines(features, slopes, own, (number[:, 0] > 0) & present)


def _sums_without(ready: Deletions, x: _ColumnLines, y: _ColumnLines) -> tuple[Moments, Flags]:
    """Return the sums without each group, and which groups hold nearly all the variance."""
    both = x.has_value & y.has_value
    of_row, many = ready.groups[both], len(x.slopes)
    own_x, own_y = x.own[both], y.own[both]
    of_x, of_y = x.features[both], y.features[both]

    def without_group(whole: Array, own: Array) -> Array:
        rest: Array = whole - np.bincount(of_row, weights=own, minlength=many)
        return rest

    all_xx = np.einsum("gr,gr->g", x.slopes @ (of_x.T @ of_x), x.slopes)
    all_yy = np.einsum("gr,gr->g", y.slopes @ (of_y.T @ of_y), y.slopes)
    all_xy = np.einsum("gr,gr->g", x.slopes @ (of_x.T @ of_y), y.slopes)
    sums = Moments(
        n=without_group(np.full(many, float(both.sum())), np.ones(len(of_row))),
        x=without_group(x.slopes @ of_x.sum(axis=0), own_x),
        y=without_group(y.slopes @ of_y.sum(axis=0), own_y),
        xx=without_group(all_xx, own_x**2),
        yy=without_group(all_yy, own_y**2),
        xy=without_group(all_xy, own_x * own_y),
    )
    return sums, _shrunk(sums, all_xx, all_yy)


def _shrunk(sums: Moments, all_xx: Array, all_yy: Array) -> Flags:
    n = np.maximum(sums.n, 1)
    xx, yy = sums.xx - sums.x**2 / n, sums.yy - sums.y**2 / n
    both = xx + yy + 2 * (sums.xy - sums.x * sums.y / n)
    little = (xx <= DOUBTFUL * all_xx) | (yy <= DOUBTFUL * all_yy)
    flags: Flags = little | (both <= DOUBTFUL * (xx + yy))
    return flags


def _recomputed(ready: Deletions, panel: PanelColumns, rows: Flags) -> float:
    grid = ready.grid
    rest = replace(grid, composites=grid.composites[rows], clusters=grid.clusters[rows])
    pair = columns(rest, panel, ready.method)
    return column_icc(pair.clinicians[pair.both], pair.scorer[pair.both], ready.method)


@dataclass(frozen=True, eq=False)
class JackknifedIcc:
    """A panel's ICC(C,2) with the clinicians on a grid, and what each instance does to it.

    Attributes
    ----------
    icc : as in the agreement table; NaN where undefined
    moves : shape (clusters,)
        What leaving each instance out does to Fisher's z, scaled so that the sum of squares is its
        variance; 0 for instances without a response here.
    instances : how many have one
    """

    icc: float
    moves: Array
    instances: int

    @property
    def error(self) -> float:
        """Return the standard error of Fisher's z, NaN where undefined."""
        return math.sqrt(float(self.moves @ self.moves)) if self.instances > 1 else NAN

    def interval(self, confidence: float = 0.95) -> Interval:
        """Return the interval of the ICC by t on Fisher's z with instances - 1 degrees of freedom."""
        if not (np.isfinite(self.icc) and self.icc < 1 and self.error > 0):
            return UNDEFINED
        middle = float(fisher_z(np.array(self.icc)))
        half = float(special.stdtrit(self.instances - 1, 0.5 + confidence / 2)) * self.error
        low, high = (1 - math.exp(-2 * end) for end in (middle - half, middle + half))
        return Interval(low, high)


def jackknifed_icc(grid: RatingMatrix, panel: PanelColumns, method: Method) -> JackknifedIcc:
    """Return a panel's ICC with the clinicians of a grid, and what each instance does to it.

    Parameters
    ----------
    grid : RatingMatrix
        Of at least one response; what is NaN in it is not there.
    panel : jurors
    method : "paper" or "published"; every z is taken anew without the instance

    References
    ----------
    Efron & Tibshirani (1993), An Introduction to the Bootstrap, chapter 11.
    """
    pair = columns(grid, panel, method)
    both, n_clusters = pair.both, grid.n_clusters
    icc = column_icc(pair.clinicians[both], pair.scorer[both], method)
    own = np.unique(grid.clusters[both])
    moves = np.zeros(n_clusters)
    if np.isfinite(icc) and len(own) > 1:
        without = iccs_without(deletions(grid, method, grid.clusters), panel)[own]
        with np.errstate(invalid="ignore", divide="ignore"):
            z = fisher_z(without)
        moves[own] = math.sqrt((len(own) - 1) / len(own)) * (z - z.mean())
    return JackknifedIcc(icc, moves, len(own))


@dataclass(frozen=True, slots=True)
class TestedDifference:
    """A difference with its 95 % interval and two-sided p, all by one method; NaN where undefined."""

    value: float = NAN
    low: float = NAN
    high: float = NAN
    p: float = NAN


def jackknifed_difference(first: JackknifedIcc, second: JackknifedIcc) -> TestedDifference:
    """Return the difference of two ICCs, first minus second, that may share instances.

    The interval is put together from those of the two ICCs, which need not be symmetric, and
    from the correlation of what the instances do to them. p is the level at which it reaches 0.

    References
    ----------
    Zou (2007), Psychological Methods 12, 399: intervals of a difference of correlations.
    """
    gap = first.icc - second.icc
    ends = _ends(first, second, 0.95)
    if not np.isfinite(ends.low):
        return TestedDifference(gap)
    low, high = 0.0, 1.0  # levels of confidence: at the first 0 is outside, at the second within
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        tried = _ends(first, second, middle)
        if tried.low <= 0 <= tried.high:
            high = middle
        else:
            low = middle
    return TestedDifference(gap, ends.low, ends.high, 1 - high)


def _ends(first: JackknifedIcc, second: JackknifedIcc, confidence: float) -> Interval:
    of_first, of_second = first.interval(confidence), second.interval(confidence)
    if not (np.isfinite(of_first.low) and np.isfinite(of_second.low)):
        return UNDEFINED
    gap = first.icc - second.icc
    shared = float(first.moves @ second.moves) / (first.error * second.error)
    below = _combined(first.icc - of_first.low, of_second.high - second.icc, shared)
    above = _combined(of_first.high - first.icc, second.icc - of_second.low, shared)
    return Interval(gap - below, gap + above)


def _combined(first: float, second: float, correlation: float) -> float:
    return math.sqrt(max(0.0, first * first + second * second - 2 * correlation * first * second))


@dataclass(frozen=True)
class IccDifference:
    """The first ICC minus the second, with its interval and two-sided p; NaN where undefined.

    `low` and `high` exclude 0 exactly where p is at most 1 - confidence.
    """

    difference: float
    low: float = NAN
    high: float = NAN
    p: float = NAN


def icc_difference(
    iccs: tuple[float, float], without: tuple[Array, Array], confidence: float = 0.95
) -> IccDifference:
    """Return the difference of two ICCs, from both without each instance in turn.

    Parameters
    ----------
    iccs : two ICC(C,2), or (C,k), with one judge on the same responses, each below 1
    without : two of shape (instances,)
        The ICCs without each instance in turn (`jackknife.iccs_without`), z anew.
    confidence : in (0, 1)

    Returns
    -------
    IccDifference
        All 0 with p 1 for scorers who say the same. Without interval and p with fewer than 3
        instances, where an ICC is 1, or without some instance undefined or 1, and where no
        instance changes the difference.

    Notes
    -----
    z = -log(1 - ICC) / 2 is Fisher's z of the correlation behind an ICC of two columns, and
    half the logarithm of the F behind it: its variance hardly depends on the ICC. The
    delete-one-instance jackknife gives the covariance matrix of (z1, z2). p is that of
    t = (z1 - z2) / SE with instances - 1 degrees of freedom. The interval is of all differences
    (1 - exp(-2 z1)) - (1 - exp(-2 z2)) on the ellipse of the z within that quantile of t: it
    touches z1 = z2, where the difference is 0, exactly where p reaches 1 - confidence.

    References
    ----------
    Fisher (1925), Statistical Methods for Research Workers, section 35. Jackknife: Tukey (1958),
    Annals of Mathematical Statistics 29, 614; leaving out whole clusters: Lipsitz, Dear & Zhao
    (1994), Biometrics 50, 842. The interval is a profile of the delta method's ellipse.
    """
    gap = iccs[0] - iccs[1]
    first, second = without
    if not np.isfinite(gap):
        return IccDifference(NAN)
    if abs(gap) < ROUNDING and np.all(np.abs(first - second) < ROUNDING):
        return IccDifference(0.0, 0.0, 0.0, 1.0)
    if abs(gap) < ROUNDING:
        gap = 0.0
    m = len(first)
    with np.errstate(divide="ignore", invalid="ignore"):
        z, left_out = fisher_z(np.array(iccs)), fisher_z(np.stack(without))
    if m < LEAST_INSTANCES or not (np.isfinite(z).all() and np.isfinite(left_out).all()):
        return IccDifference(gap)
    apart, both = (z[0] - z[1]) * (gap != 0), z[0] + z[1]
    covariance = (m - 1) * np.cov(
        np.stack([left_out[0] - left_out[1], left_out[0] + left_out[1]]), ddof=0
    )
    error = float(np.sqrt(covariance[0, 0]))
    if error <= ROUNDING:
        return IccDifference(gap)
    return _tested(gap, (apart, both), covariance, m - 1, confidence)


def fisher_z(icc: Array) -> Array:
    """Return -log(1 - ICC) / 2; infinite for an ICC of 1."""
    z: Array = -0.5 * np.log1p(-icc)
    return z


def _tested(
    gap: float, centre: tuple[float, float], covariance: Array, freedom: int, confidence: float
) -> IccDifference:
    """Return the interval over the ellipse about (z1 - z2, z1 + z2), and p."""
    from scipy import stats  # as slow to load as all else that a table takes

    error = float(np.sqrt(covariance[0, 0]))
    along = covariance[0, 1] / error
    across = np.sqrt(max(covariance[1, 1] - along**2, 0.0))
    reach = float(stats.t.ppf((1 + confidence) / 2, freedom))
    angle = np.linspace(0, 2 * np.pi, ANGLES + 1)  # 0 and half of it are the ends of z1 - z2
    apart = centre[0] + reach * error * np.cos(angle)
    both = centre[1] + reach * (along * np.cos(angle) + across * np.sin(angle))
    differences = 2 * np.exp(-both) * np.sinh(apart)
    return IccDifference(
        difference=gap,
        low=float(differences.min()),
        high=float(differences.max()),
        p=2 * float(stats.t.sf(abs(centre[0]) / error, freedom)),
    )
