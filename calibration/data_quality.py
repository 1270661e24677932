"""Data quality: scores over the scale, ceilings and floors, and what missing scores could change."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import optimize

from calibration import remarks
from calibration.agreement import PanelColumns, column_icc, columns, why_no_icc
from calibration.codes import NoteCode as Code
from calibration.icc import UNDEFINED, Interval
from calibration.rating_matrix import FLAT, required_criteria, without_variance
from calibration.scope import Scope
from calibration.scores import Array, Flags, RubricShape, Scores
from calibration.values import NAN, Method, Note, Noted, note, noted

STEPS, ENOUGH = 500, 1e-12  # of the climb: most steps, and the least gain worth another
CEILING = 0.8  # of the scores at one end: what is left to agree on is the rest
BETWEEN = "between"


@dataclass(frozen=True)
class MissingRow(Noted):
    """What is missing of one scorer. None in the bounds of a metric, which is on no scale."""

    benchmark: str
    scorer: str
    n_responses: int
    n_scored: int
    n_missing: int
    n_no_rating: int
    n_incomplete: int
    icc: float
    icc_lowest: float | None
    icc_highest: float | None


def missing_rows(scope: Scope, scores: Scores) -> list[MissingRow]:
    """Count what each scorer did not score, and bound its ICC over all that is missing.

    Parameters
    ----------
    scope : Scope
        One benchmark, or all combined.
    scores : Scores
        The study it is a scope of.

    Returns
    -------
    list of MissingRow
        A row a scorer. n_responses : the analysed set; n_scored : those with the scorer's
        composite; n_missing = n_no_rating + n_incomplete : the others. A missing response is
        incomplete if every juror without a composite gave some score on it, else without rating.
        icc : as in the agreement table. icc_lowest, icc_highest : the least and greatest ICC if
        each missing score were anything on the scale (`icc_bounds`), as if no
        juror had scored such a response; under "paper" in units of each juror's z, with mean
        and sd of the scores there are. Bounds, not estimates: nothing is filled in anywhere
        else. NaN with a note where the ICC, or the scale, or a lower bound does not exist.
    """
    seen = _seen(scope, scores)
    ends = _ends(scope, scores)
    return [_row(scope, scorer, panel, seen, ends) for scorer, panel in scope.scorers.items()]


def _seen(scope: Scope, scores: Scores) -> Flags:
    """Return which raters gave any score to which response, shape (n, raters) as in the grid."""
    grid = scope.grid
    scored = scores.ratings.dropna(subset=["score"])
    pairs = scored[["response_id", "rater"]].drop_duplicates()
    row = pairs["response_id"].map({name: i for i, name in enumerate(grid.responses)})
    column = pairs["rater"].map({name: i for i, name in enumerate(grid.raters)})
    in_grid = (row.notna() & column.notna()).to_numpy()
    seen = np.zeros(grid.composites.shape, dtype=np.bool_)
    seen[row[in_grid].to_numpy(dtype=np.int64), column[in_grid].to_numpy(dtype=np.int64)] = True
    return seen


def _ends(scope: Scope, scores: Scores) -> tuple[float, float] | None:
    """Return the ends of the scale, None where benchmarks in scope have different ones."""
    clinical = scope.composites[scope.composites["kind"] == "clinician"]
    shapes = [scores.rubrics[str(name)] for name in clinical["benchmark"].unique()]
    scales = {(float(shape.low), float(shape.high)) for shape in shapes}
    return scales.pop() if len(scales) == 1 else None


def _row(
    scope: Scope, scorer: str, panel: PanelColumns, seen: Flags, ends: tuple[float, float] | None
) -> MissingRow:
    grid, method = scope.grid, scope.options.method
    present, own = panel.present(grid), grid.columns(panel.members)
    lacking = np.isnan(grid.composites[:, own])
    incomplete = ~present & (seen[:, own] | ~lacking).all(axis=1)
    pair = columns(grid, panel, method)
    x, y = pair.clinicians[pair.both], pair.scorer[pair.both]
    open_x = pair.clinicians[~present & ~np.isnan(pair.clinicians)]
    reason, metric = why_no_icc(grid, panel, method, (x, y)), scorer.startswith("metric:")
    bounds = UNDEFINED
    if ends and not reason and not metric:
        bounds = icc_bounds((x, y), open_x, _column_ends(scope, panel, ends), method)
    return MissingRow(
        benchmark=scope.name,
        scorer=scorer,
        n_responses=len(present),
        n_scored=int(present.sum()),
        n_missing=int((~present).sum()),
        n_no_rating=int((~present & ~incomplete).sum()),
        n_incomplete=int(incomplete.sum()),
        icc=column_icc(x, y, method),
        icc_lowest=None if metric else _finite(bounds.low),
        icc_highest=None if metric else bounds.high,
        notes=noted(
            remarks.coverage(int(present.sum()), len(present), 0, len(present)),
            reason or (None if metric else _bounds_note(len(open_x), bounds, scaled=bool(ends))),
            remarks.simulated(scope.simulated & {*panel.members, *scope.clinicians}),
        ),
    )


def _column_ends(
    scope: Scope, panel: PanelColumns, ends: tuple[float, float]
) -> tuple[float, float]:
    """Return the panel's column if all its members gave the lowest, and the highest, point of the scale."""
    if scope.options.method == "published":
        return ends
    table = scope.grid.composites[:, scope.grid.columns(panel.members)]
    usable: Array = table[:, ~without_variance(table)]
    mean, sd = np.nanmean(usable, axis=0), np.nanstd(usable, axis=0, ddof=1)
    low, high = (float(((end - mean) / sd).mean()) for end in ends)
    return low, high


def _bounds_note(missing: int, bounds: Interval, *, scaled: bool) -> Note | None:
    """Note the bounds, and that they are no estimate."""
    if not missing:
        return None
    if not scaled:
        return note(Code.NO_BOUNDS)
    low = bounds.low if np.isfinite(bounds.low) else None
    return note(Code.BOUNDS, missing=missing, low=low, high=bounds.high)


def _finite(value: float) -> float:
    return value if np.isfinite(value) else NAN


def icc_bounds(
    known: tuple[Array, Array], open_x: Array, ends: tuple[float, float], method: Method
) -> Interval:
    """Return the least and greatest ICC over all ways to fill the missing scores of one column.

    Parameters
    ----------
    known : two columns of shape (n,), n >= 3, no NaN, neither constant
        x (the clinicians) and y (the scorer) where both are there.
    open_x : shape (m,), the clinicians' column where the scorer is missing
    ends : the least and the greatest value that a missing score can have
    method : "paper" takes the ICC of the columns as they are, "published" of their z

    Returns
    -------
    Interval
        Each value is that of some fill, and no fill with every missing score between the ends
        goes beyond it. Minus infinity where a fill mirrors the clinicians. Bounds, not estimates.

    Notes
    -----
    ICC = 2g / (1 + g) rises with g = 2 cov / (var x + var y), or with g = r for z. Where g > 0
    it is quasiconcave in the missing y (linear over convex), so that every peak is the greatest,
    and there y is a straight line of x cut off at the ends. Where no fill has g > 0, the greatest
    is at a corner, and the greater of two missing scores is with the greater x: m + 1 corners.
    The least is the greatest against -x (Boyd & Vandenberghe 2004, section 3.4).
    """
    x, y = known
    mean = np.concatenate([x, open_x]).mean()
    x, free = x - mean, open_x - mean
    middle = float(y.mean())
    low, high = ends[0] - middle, ends[1] - middle
    y = y - middle
    most = _Fill(x, y, np.sort(free), low, high, method).greatest()
    least = -_Fill(-x, y, np.sort(-free), low, high, method).greatest()
    return Interval(_icc(least), _icc(most))


def _icc(ratio: float) -> float:
    return 2 * ratio / (1 + ratio) if 1 + ratio > ENOUGH else float("-inf")


@dataclass(frozen=True, eq=False)
class _Fill:
    """Two columns, and the x (sorted; all x sum to 0) of responses whose y is free in a range."""

    x: Array
    y: Array
    free: Array
    low: float
    high: float
    method: Method

    def greatest(self) -> float:
        """Return the greatest g over all fills."""
        corners = self._corners()
        best = int(np.argmax(corners))
        if not len(self.free) or corners[best] <= 0:
            return float(corners[best])
        upper = np.arange(len(self.free)) >= len(self.free) - best
        return self._climb(np.where(upper, self.high, self.low))

    def _corners(self) -> Array:
        """Return g with the k greatest x at the upper end and the others at the lower, by k."""
        k = np.arange(len(self.free) + 1)
        tail = np.concatenate([[0.0], np.cumsum(self.free[::-1])])
        return self._ratio(
            self.x @ self.y + self.low * (tail[-1] - tail) + self.high * tail,
            self.y.sum() + self.low * (k[-1] - k) + self.high * k,
            self.y @ self.y + self.low**2 * (k[-1] - k) + self.high**2 * k,
        )

    def _climb(self, fill: Array) -> float:
        """Return the g at which no better straight line is found, from a fill with g > 0."""
        ratio = self._of(fill)
        for _ in range(STEPS):
            fill = self._cut_line(self._slope(fill, ratio))
            before, ratio = ratio, max(ratio, self._of(fill))
            if ratio - before <= ENOUGH:
                break
        return ratio

    def _slope(self, fill: Array, ratio: float) -> float:
        """Return the slope at which the linear part of g and `ratio` times the convex part meet."""
        if self.method == "paper":
            return 1 / ratio
        whole = np.concatenate([self.y, fill])
        return float(whole.std() / np.sqrt(self._xx / len(whole)) / ratio)

    def _cut_line(self, slope: float) -> Array:
        """Return the fill on the line of this slope through the means, cut off at the ends."""
        mean_y = self.y.mean()
        number = len(self.y) + len(self.free)

        def fill(mean: float) -> Array:
            cut: Array = np.clip(mean + slope * self.free, self.low, self.high)
            return cut

        def excess(mean: float) -> float:
            return float(self.y.sum() + fill(mean).sum() - number * mean)

        lower, upper = min(mean_y, self.low), max(mean_y, self.high)
        return fill(optimize.brentq(excess, lower - 1, upper + 1, xtol=1e-14))

    def _of(self, fill: Array) -> float:
        whole = np.concatenate([self.y, fill])
        product = self.x @ self.y + self.free @ fill
        return float(self._ratio(product, whole.sum(), whole @ whole))

    def _ratio(self, xy: Array, total: Array, square: Array) -> Array:
        yy = square - total**2 / (len(self.y) + len(self.free))
        whole = self._xx + yy if self.method == "paper" else 2 * np.sqrt(self._xx * yy)
        ratio: Array = 2 * xy / whole
        return ratio

    @property
    def _xx(self) -> float:
        return float(self.x @ self.x + self.free @ self.free)


@dataclass(frozen=True)
class DistributionRow(Noted):
    """The scores of a kind of rater, or of one juror, on one criterion.

    `rater` is "clinicians", "jury" or "juror:NAME"; `counts` has a key for each point of the
    scale, and "between" for what lies on none.
    """

    benchmark: str
    rater: str
    criterion: str
    n: int
    mean: float
    sd: float
    counts: dict[str, int]
    at_top: float


def distribution_rows(scope: Scope, scores: Scores) -> list[DistributionRow]:
    """Count the scores of clinicians, of the jury and of each juror on every criterion.

    Parameters
    ----------
    scope : Scope
        Its analysed responses are those counted; its criterion, if one was asked, alone.
    scores : Scores
        The study it is a scope of.

    Returns
    -------
    list of DistributionRow
        A row a rater and criterion. Clinicians and jurors: every score given, hidden repeats
        and replicates each as given, incomplete readings too. Jury: the mean of its jurors on
        the criterion (a juror's replicates averaged first), on responses where enough of them
        scored it. `mean` and `sd` (n - 1) in points; `at_top` is the share that is exactly the
        scale's upper end, 0 to 1. NaN where there is no score (sd: fewer than two), or the
        criterion's scale differs between benchmarks. The note says where 80 % or more are at
        one end, and names who gave one score only (twice or more).
    """
    scored = _scores_in_scope(scope, scores)
    rows: list[DistributionRow] = []
    for criterion, shapes in _criteria(scope, scores).items():
        own = scored[scored["criterion"] == criterion]
        rows += [
            _distribution_row(scope, criterion, shapes, rater, part)
            for rater, part in _raters(scope, own)
        ]
    return rows


def at_points(scores: Array, low: int, high: int) -> dict[str, int]:
    """Count how many scores are exactly each point of a scale, and how many lie between points.

    Parameters
    ----------
    scores : shape (n,), no NaN, within the scale
    low, high : the lowest and the highest point of the scale

    Returns
    -------
    dict
        Each point as text -> scores on it; "between" -> scores on no point.
    """
    nearest = np.round(scores)
    on_point = np.abs(scores - nearest) <= FLAT * np.maximum(np.abs(scores), 1)
    counts = {
        str(point): int((on_point & (nearest == point)).sum()) for point in range(low, high + 1)
    }
    return counts | {BETWEEN: len(scores) - sum(counts.values())}


def _scores_in_scope(scope: Scope, scores: Scores) -> pd.DataFrame:
    """Return every score of clinicians and of the scope's jurors on its responses."""
    table = scores.ratings
    in_scope = table["response_id"].isin(scope.grid.responses) & (
        (table["kind"] == "clinician") | table["rater"].isin(scope.jurors)
    )
    scored = table[in_scope].dropna(subset=["score"])
    names = dict.fromkeys(["response_id", "rater", "criterion", "kind"], "category")
    return scored.astype({"score": float, **names})  # names are compared many times over


def _criteria(scope: Scope, scores: Scores) -> dict[str, set[RubricShape]]:
    """Return the rubrics that have each criterion, in the order of the rubrics."""
    shapes_of: dict[str, set[RubricShape]] = {}
    required = required_criteria(scores.rubrics, scope.options.criterion)
    for benchmark in scores.members(scope.name):
        for criterion in required.get(benchmark, ()):
            shapes_of.setdefault(criterion, set()).add(scores.rubrics[benchmark])
    return shapes_of


def _raters(scope: Scope, own: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    yield "clinicians", own[own["kind"] == "clinician"]
    if scope.jury:
        yield "jury", _jury_means(scope.jury, own)
    for name in scope.jurors:
        yield f"juror:{name}", own[own["rater"] == name]


def _jury_means(jury: PanelColumns, own: pd.DataFrame) -> pd.DataFrame:
    part = own[own["rater"].isin(jury.members)]
    by_juror = part.groupby(["response_id", "rater"], observed=True)["score"].mean()
    means = by_juror.groupby("response_id", observed=True).agg(["mean", "count"])
    enough = means.loc[means["count"] >= jury.needed, ["mean"]].rename(columns={"mean": "score"})
    return enough.assign(rater="the jury")


def _distribution_row(
    scope: Scope, criterion: str, shapes: set[RubricShape], rater: str, part: pd.DataFrame
) -> DistributionRow:
    scales = {(shape.low, shape.high) for shape in shapes}
    values = part["score"].to_numpy(dtype=np.float64)
    if len(scales) > 1 or not len(values):
        why = note(Code.NOTHING_SCORED if len(scales) == 1 else Code.DIFFERENT_SCALES)
        about = scope.name, rater, criterion
        return DistributionRow(*about, len(values), NAN, NAN, {}, NAN, notes=(why,))
    low, high = scales.pop()
    counts = at_points(values, low, high)
    return DistributionRow(
        benchmark=scope.name,
        rater=rater,
        criterion=criterion,
        n=len(values),
        mean=float(values.mean()),
        sd=float(values.std(ddof=1)) if len(values) > 1 else NAN,
        counts=counts,
        at_top=counts[str(high)] / len(values),
        notes=noted(
            _end(Code.CEILING, (rater, criterion), counts[str(high)] / len(values), high),
            _end(Code.FLOOR, (rater, criterion), counts[str(low)] / len(values), low),
            _unvaried(part),
            remarks.simulated(scope.simulated & _raters_behind(scope, rater, part)),
        ),
    )


def _end(code: Code, about: tuple[str, str], share: float, end: int) -> Note | None:
    if share < CEILING:
        return None
    rater, criterion = about
    return note(code, rater=rater, criterion=criterion, share=share, end=end)


def _unvaried(part: pd.DataFrame) -> Note | None:
    """Note the raters who gave the same score every time, with the score and how often."""
    by_rater = part.groupby("rater", observed=True)["score"].agg(["min", "max", "count"])
    flat = by_rater["max"] - by_rater["min"] <= FLAT * by_rater["max"].abs()
    always = by_rater[flat & (by_rater["count"] > 1)]
    raters = [(str(name), *own) for name, *own in always[["min", "count"]].itertuples()]
    return note(Code.UNVARIED, raters=raters) if raters else None


def _raters_behind(scope: Scope, rater: str, part: pd.DataFrame) -> set[str]:
    return set(scope.jurors) if rater == "jury" else set(part["rater"])
