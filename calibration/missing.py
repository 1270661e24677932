"""What a scorer did not score, and how far its agreement could hang on that."""

from dataclasses import dataclass

import numpy as np

from calibration import remarks
from calibration.agreement import Panel, column_icc, columns, why_no_icc
from calibration.codes import NoteCode as Code
from calibration.f_interval import UNDEFINED, Interval
from calibration.missing_bounds import icc_bounds
from calibration.scope import Scope
from calibration.scores import Array, Flags, Scores
from calibration.values import NAN, Note, Noted, note, noted
from calibration.zscore import without_variance


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
        each missing score were anything on the scale (`missing_bounds.icc_bounds`), as if no
        juror had scored such a response; under "paper" in units of each juror's z, with mean
        and sd of the scores there are. Bounds, not estimates: nothing is filled in anywhere
        else. NaN with a note where the ICC, or the scale, or a lower bound does not exist.
    """
    seen = _seen(scope, scores)
    ends = _ends(scope, scores)
    return [_row(scope, scorer, panel, seen, ends) for scorer, panel in scope.scorers.items()]


def _seen(scope: Scope, scores: Scores) -> Flags:
    """Return who gave any score on what, shape (n, raters) as in the grid."""
    grid = scope.grid
    given = scores.ratings.dropna(subset=["score"])
    pairs = given[["response_id", "rater"]].drop_duplicates()
    row = pairs["response_id"].map({name: i for i, name in enumerate(grid.responses)})
    column = pairs["rater"].map({name: i for i, name in enumerate(grid.raters)})
    here = (row.notna() & column.notna()).to_numpy()
    seen = np.zeros(grid.composites.shape, dtype=np.bool_)
    seen[row[here].to_numpy(dtype=np.int64), column[here].to_numpy(dtype=np.int64)] = True
    return seen


def _ends(scope: Scope, scores: Scores) -> tuple[float, float] | None:
    """Return the ends of the scale, None where benchmarks in scope have different ones."""
    clinical = scope.given[scope.given["kind"] == "clinician"]
    shapes = [scores.rubrics[str(name)] for name in clinical["benchmark"].unique()]
    scales = {(float(shape.low), float(shape.high)) for shape in shapes}
    return scales.pop() if len(scales) == 1 else None


def _row(
    scope: Scope, scorer: str, panel: Panel, seen: Flags, ends: tuple[float, float] | None
) -> MissingRow:
    grid, method = scope.grid, scope.asked.method
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
            reason or (None if metric else _meaning(len(open_x), bounds, scaled=bool(ends))),
            remarks.simulated(scope.simulated & {*panel.members, *scope.clinicians}),
        ),
    )


def _column_ends(scope: Scope, panel: Panel, ends: tuple[float, float]) -> tuple[float, float]:
    """Return where a panel's column stands when all its members give one end of the scale."""
    if scope.asked.method == "published":
        return ends
    table = scope.grid.composites[:, scope.grid.columns(panel.members)]
    usable: Array = table[:, ~without_variance(table)]
    mean, sd = np.nanmean(usable, axis=0), np.nanstd(usable, axis=0, ddof=1)
    low, high = (float(((end - mean) / sd).mean()) for end in ends)
    return low, high


def _meaning(missing: int, bounds: Interval, *, scaled: bool) -> Note | None:
    """Say what the bounds are, and that they are no estimate."""
    if not missing:
        return None
    if not scaled:
        return note(Code.NO_BOUNDS)
    low = bounds.low if np.isfinite(bounds.low) else None
    return note(Code.BOUNDS, missing=missing, low=low, high=bounds.high)


def _finite(value: float) -> float:
    return value if np.isfinite(value) else NAN
