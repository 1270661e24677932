"""Data quality: scores over the scale, which are missing, and who gives one score to all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from calibration import remarks
from calibration.notes import Figures, Note, Noted, filled, note, noted, quoted, undefined
from calibration.other_measures import juror_names, scorers_once
from calibration.rating_matrix import FLAT, required_criteria
from calibration.scope import Scope
from calibration.scores import Array, RubricShape, Scores
from calibration.shared_notes import DIFFERENT_SCALES, NOTHING_SCORED
from calibration.values import COMBINED, NAN

APART = 2.0  # points between a scorer and the clinicians' mean that count as far apart
LEAST_ALIKE = 5  # responses: fewer may well deserve the same score


@dataclass(frozen=True)
class MissingRow(Noted):
    """What one scorer of a benchmark did not score.

    n_responses : the analysed set; n_scored : those with the scorer's composite; n_missing =
    n_no_rating + n_incomplete : the others. A missing response is incomplete if every juror without
    a composite gave some score on it, else without rating.
    """

    benchmark: str
    scorer: str
    n_responses: int
    n_scored: int
    n_missing: int
    n_no_rating: int
    n_incomplete: int


def missing_rows(scope: Scope, scores: Scores) -> list[MissingRow]:
    """Count what each scorer of a scope did not score."""
    grid, n = scope.grid, len(scope.grid.responses)
    scored = scores.ratings.dropna(subset=["score"])
    pairs = scored[["response_id", "rater"]].drop_duplicates()
    row = pd.Index(grid.responses).get_indexer(pd.Index(pairs["response_id"]))
    column = pd.Index(grid.raters).get_indexer(pd.Index(pairs["rater"]))
    in_grid = (row >= 0) & (column >= 0)
    is_seen = ~np.isnan(grid.composites)
    is_seen[row[in_grid], column[in_grid]] = True
    rows = []
    for scorer, panel in scorers_once(scope).items():
        present, own = panel.present(grid), grid.columns(panel.members)
        given, incomplete = int(present.sum()), int((~present & is_seen[:, own].all(axis=1)).sum())
        made_up = remarks.simulated(scope.simulated & {*panel.members, *scope.clinicians})
        counts = n, given, n - given, n - given - incomplete, incomplete
        notes = noted(remarks.coverage(given, n, 0, n), made_up)
        rows.append(MissingRow(scope.name, scorer, *counts, notes=notes))
    return rows


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
        criterion's scale differs between benchmarks.
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
    scales = {shape.ends(criterion) for shape in shapes}
    values = part["score"].to_numpy(dtype=np.float64)
    about = scope.name, rater, criterion, len(values)
    if len(scales) > 1 or not len(values):
        why = undefined(*(NOTHING_SCORED if len(scales) == 1 else DIFFERENT_SCALES))
        return DistributionRow(*about, counts={}, notes=(why,))
    low, high = scales.pop()
    counts = at_points(values, low, high)
    raters = set(scope.jurors) if rater == "jury" else set(part["rater"])
    return DistributionRow(
        *about,
        mean=float(values.mean()),
        sd=float(values.std(ddof=1)) if len(values) > 1 else NAN,
        counts=counts,
        at_top=counts[str(high)] / len(values),
        notes=noted(remarks.simulated(scope.simulated & raters)),
    )


def same_scores_given(
    scores: Scores, jurors: Sequence[str], criterion: str | None = None
) -> dict[str, tuple[Note, ...]]:
    """Return notes on who gave every response of a benchmark one and the same score.

    Parameters
    ----------
    scores : Scores
    jurors : who sits on the jury
    criterion : the only one that is analysed, or None

    Returns
    -------
    benchmark, or "combined" -> notes
        First the jurors who tell no response from another on any criterion, then for each
        criterion those who do not on it, "the clinicians" where all of them gave one score.
        Of at least `LEAST_ALIKE` responses that a clinician scored.
    """
    criteria = [*dict.fromkeys(c for shape in scores.rubrics.values() for c in shape.criteria)]
    known = [(name, one) for name, shape in scores.rubrics.items() for one in shape.criteria]
    table = scores.ratings[scores.ratings["score"].notna()]
    table = table[pd.MultiIndex.from_frame(table[["benchmark", "criterion"]]).isin(known)]
    clinical = table["kind"] == "clinician"
    of_jury = (table["kind"] == "juror") & table["rater"].isin([*jurors])
    is_rated = table["response_id"].isin(table.loc[clinical, "response_id"])
    read = table.assign(by=table["rater"].astype(object).mask(clinical, "the clinicians"))
    read = read[(clinical | of_jury) & is_rated]
    wanted = [name for name in criteria if criterion in (None, name)]
    found = {name: read[read["benchmark"] == name] for name in scores.benchmarks}
    found |= {COMBINED: read} if len(scores.benchmarks) > 1 else {}
    return {name: tuple(_alike(own, jurors, wanted)) for name, own in found.items()}


def _alike(read: pd.DataFrame, jurors: Sequence[str], criteria: Sequence[str]) -> Iterator[Note]:
    by = ["criterion", "by", "rater", "response_id"]
    means = read.groupby(by, observed=True)["score"].mean().reset_index()
    given = means.groupby(["criterion", "by"], observed=True)
    ends = given["score"].agg(["min", "max"])
    is_flat = ends["max"] - ends["min"] <= FLAT * ends.abs().max(axis=1)
    is_one = (given["response_id"].nunique() >= LEAST_ALIKE) & is_flat
    flat, scored = {*is_one[is_one].index}, {*is_one.index}
    criteria = [name for name in criteria if (name, "the clinicians") in scored]
    everywhere = [who for who in jurors if criteria and all((one, who) in flat for one in criteria)]
    if everywhere:
        yield note("same_everywhere", _same_everywhere, raters=everywhere)
    for name in criteria:
        left = [who for who in ("the clinicians", *jurors) if who not in everywhere]
        if raters := [who for who in left if (name, who) in flat]:
            yield note("same_on_criterion", _same_on_criterion, raters=raters, criterion=name)


def _same_everywhere(figures: Figures) -> str:
    which = "it tells" if len(figures["raters"]) == 1 else "they tell"
    return (
        f"{_givers(figures)} gave every response the same scores: {which} no response from another"
    )


def _same_on_criterion(figures: Figures) -> str:
    return (
        f"{_givers(figures)} {filled('gave every response the same score on {criterion}', figures)}"
    )


def _givers(figures: Figures) -> str:
    return " and ".join(
        name if name == "the clinicians" else f"juror {quoted(name)}" for name in figures["raters"]
    )
