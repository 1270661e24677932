"""Data quality: scores over the scale, ceilings and floors, and which scores are missing."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from calibration import remarks
from calibration.columns import PanelColumns, column_icc, columns, why_no_icc
from calibration.notes import Figures, Note, Noted, filled, note, noted, quoted, undefined
from calibration.other_measures import juror_names, scorers_once
from calibration.rating_matrix import FLAT, required_criteria
from calibration.scope import Scope
from calibration.scores import Array, Flags, RubricShape, Scores
from calibration.shared_notes import DIFFERENT_SCALES, NOTHING_SCORED
from calibration.values import NAN

APART = 2.0  # points between a scorer and the clinicians' mean that count as far apart
CEILING = 0.8  # of the scores at one end: what is left to agree on is the rest


@dataclass(frozen=True)
class MissingRow(Noted):
    """What one scorer of a benchmark did not score.

    n_responses : the analysed set; n_scored : those with the scorer's composite; n_missing =
    n_no_rating + n_incomplete : the others. A missing response is incomplete if every juror without
    a composite gave some score on it, else without rating. icc : as in the agreement table; NaN
    with a note where it does not exist.
    """

    benchmark: str
    scorer: str
    n_responses: int
    n_scored: int
    n_missing: int
    n_no_rating: int
    n_incomplete: int
    icc: float


def missing_rows(scope: Scope, scores: Scores) -> list[MissingRow]:
    """Count what each scorer of a scope did not score."""
    grid = scope.grid
    scored = scores.ratings.dropna(subset=["score"])
    pairs = scored[["response_id", "rater"]].drop_duplicates()
    row = pd.Index(grid.responses).get_indexer(pd.Index(pairs["response_id"]))
    column = pd.Index(grid.raters).get_indexer(pd.Index(pairs["rater"]))
    in_grid = (row >= 0) & (column >= 0)
    is_seen = np.zeros(grid.composites.shape, dtype=np.bool_)
    is_seen[row[in_grid], column[in_grid]] = True
    return [
        _missing_row(scope, scorer, panel, is_seen) for scorer, panel in scorers_once(scope).items()
    ]


def _missing_row(scope: Scope, scorer: str, panel: PanelColumns, is_seen: Flags) -> MissingRow:
    grid, method = scope.grid, scope.options.method
    present, own = panel.present(grid), grid.columns(panel.members)
    lacking = np.isnan(grid.composites[:, own])
    incomplete = ~present & (is_seen[:, own] | ~lacking).all(axis=1)
    pair = columns(grid, panel, method)
    x, y = pair.clinicians[pair.both], pair.scorer[pair.both]
    return MissingRow(
        benchmark=scope.name,
        scorer=scorer,
        n_responses=len(present),
        n_scored=int(present.sum()),
        n_missing=int((~present).sum()),
        n_no_rating=int((~present & ~incomplete).sum()),
        n_incomplete=int(incomplete.sum()),
        icc=column_icc(x, y, method),
        notes=noted(
            remarks.coverage(int(present.sum()), len(present), 0, len(present)),
            why_no_icc(grid, panel, method, (x, y)),
            remarks.simulated(scope.simulated & {*panel.members, *scope.clinicians}),
        ),
    )


@dataclass(frozen=True)
class DistributionRow(Noted):
    """The scores of a kind of rater, or of one juror, on one criterion.

    `rater` is "clinicians", "jury" or "juror:NAME"; `counts` has a key for each point of the
    scale, and "between" for what lies on none; `apart` is the share of responses on which it is two
    points or more from the clinicians' mean, None for the clinicians.
    """

    benchmark: str
    rater: str
    criterion: str
    n: int
    mean: float = NAN
    sd: float = NAN
    counts: dict[str, int] | None = None
    at_top: float = NAN
    apart: float | None = NAN


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
        scale's upper end, 0 to 1; `apart` is of responses that both scored, a rater's readings of
        one averaged first. NaN where there is no score (sd: fewer than two), or the
        criterion's scale differs between benchmarks. The note says where 80 % or more are at
        one end, and names who gave one score only (twice or more).
    """
    table, required = scores.ratings, required_criteria(scores.rubrics, scope.options.criterion)
    in_scope = table["response_id"].isin(scope.grid.responses) & (
        (table["kind"] == "clinician") | table["rater"].isin(scope.jurors)
    )
    scored = table[in_scope].dropna(subset=["score"]).astype({"score": float})
    shapes_of: dict[str, set[RubricShape]] = {}
    for benchmark in scores.members(scope.name):
        for criterion in required.get(benchmark, ()):
            shapes_of.setdefault(criterion, set()).add(scores.rubrics[benchmark])
    rows = []
    for criterion, shapes in shapes_of.items():
        parts = dict(_raters(scope, scored[scored["criterion"] == criterion]))
        for rater, part in parts.items():
            row = _distribution_row(scope, criterion, shapes, rater, part)
            is_scorer, has_one_scale = rater != "clinicians", row.counts != {}
            apart = share_apart(part, parts["clinicians"]) if has_one_scale else NAN
            rows.append(replace(row, apart=apart if is_scorer else None))
    return rows


def share_apart(own: pd.DataFrame, clinicians: pd.DataFrame) -> float:
    """Return the share of responses on which two groups' means differ by two points or more.

    Of scores with `response_id` and `rater` on one criterion; NaN where no response has both.
    """
    first, second = (
        part.groupby(["response_id", "rater"])["score"].mean().groupby("response_id").mean()
        for part in (own, clinicians)
    )
    gaps = (first - second).abs().dropna()
    return float((gaps >= APART - FLAT).mean()) if len(gaps) else NAN


def _raters(scope: Scope, own: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield each kind of rater with its scores; the jury's are means of its jurors."""
    yield "clinicians", own[own["kind"] == "clinician"]
    if scope.jury:
        part = own[own["rater"].isin(scope.jury.members)]
        by_juror = part.groupby(["response_id", "rater"])["score"].mean()
        means = by_juror.groupby("response_id").agg(["mean", "count"])
        enough = means.loc[means["count"] >= scope.jury.needed, ["mean"]]
        yield "jury", enough.rename(columns={"mean": "score"}).assign(rater="the jury")
    for name in juror_names(scope):
        yield f"juror:{name}", own[own["rater"] == name]


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
    return counts | {"between": len(scores) - sum(counts.values())}


def _distribution_row(
    scope: Scope, criterion: str, shapes: set[RubricShape], rater: str, part: pd.DataFrame
) -> DistributionRow:
    scales = {(shape.low, shape.high) for shape in shapes}
    values = part["score"].to_numpy(dtype=np.float64)
    about = scope.name, rater, criterion, len(values)
    if len(scales) > 1 or not len(values):
        why = undefined(*(NOTHING_SCORED if len(scales) == 1 else DIFFERENT_SCALES))
        return DistributionRow(*about, counts={}, notes=(why,))
    low, high = scales.pop()
    counts = at_points(values, low, high)
    at_top, at_bottom = (counts[str(end)] / len(values) for end in (high, low))
    raters = set(scope.jurors) if rater == "jury" else set(part["rater"])
    named = {"rater": rater, "criterion": criterion}
    return DistributionRow(
        *about,
        mean=float(values.mean()),
        sd=float(values.std(ddof=1)) if len(values) > 1 else NAN,
        counts=counts,
        at_top=at_top,
        notes=noted(
            note("ceiling", _ceiling, **named, share=at_top, end=high)
            if at_top >= CEILING
            else None,
            note("floor", _floor, **named, share=at_bottom, end=low)
            if at_bottom >= CEILING
            else None,
            _unvaried(part),
            remarks.simulated(scope.simulated & raters),
        ),
    )


def _at_end(figures: Figures) -> str:
    whose = {
        "clinicians": "the clinicians' {criterion} scores",
        "jury": "the jury's {criterion} means",
    }
    own = whose.get(figures["rater"], "{rater:scorer}'s {criterion} scores")
    return filled(f"{{share:.0%}} of {own} are exactly {{end}}", figures)


def _ceiling(figures: Figures) -> str:
    return f"{_at_end(figures)}: a ceiling"


def _floor(figures: Figures) -> str:
    return f"{_at_end(figures)}: a floor"


def _unvaried(part: pd.DataFrame) -> Note | None:
    """Note the raters who gave the same score every time, with the score and how often."""
    by_rater = part.groupby("rater")["score"].agg(["min", "max", "count"])
    is_flat = by_rater["max"] - by_rater["min"] <= FLAT * by_rater["max"].abs()
    always = by_rater[is_flat & (by_rater["count"] > 1)]
    raters = [(str(name), *own) for name, *own in always[["min", "count"]].itertuples()]
    return note("unvaried", _unvaried_words, raters=raters) if raters else None


def _unvaried_words(figures: Figures) -> str:
    raters = (
        f"{quoted(name)} (all {count} are {score:g})" for name, score, count in figures["raters"]
    )
    return f"no variance: {', '.join(raters)}"
