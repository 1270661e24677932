"""How severe each rater is: points above or below the others on the same responses."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibration import remarks
from calibration.bootstrap import Counts, percentile_interval
from calibration.notes import Figures, Note, Noted, filled, note, noted, undefined
from calibration.rating_matrix import RatingMatrix, mean_of_given
from calibration.scope import Scope
from calibration.scores import Array
from calibration.values import NAN


@dataclass(frozen=True)
class SeverityRow(Noted):
    """How severe one rater is on one benchmark.

    Attributes
    ----------
    severity, low, high : float
        Points above the mean of the other raters, and its 95 % bootstrap interval.
        Below 0 the rater is stricter than the others, above 0 more lenient.
    n : int
        Responses that the rater and another one rated.
    """

    benchmark: str
    rater: str
    kind: str
    severity: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, eq=False)
class SeverityReplicates:
    """Severities resample by resample: counts (B, clusters) to (B, raters); NaN of none.

    `sums` has shape (clusters, 2 raters): number and sum of the distances to the others.
    """

    sums: Array

    def __call__(self, counts: Counts) -> Array:
        """Return the mean distance of every rater in every resample."""
        number, total = np.hsplit(counts @ self.sums, 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean: Array = total / number
        return mean


def severity_rows(scope: Scope) -> list[SeverityRow]:
    """Return how severe every clinician and juror of a scope is, in points.

    Raw composites under both methods: z would remove what is asked for. `severity` is the
    mean over responses of the rater's composite minus the mean of all other clinicians and
    jurors on the same response, so that a rater who was given poor responses does not seem
    strict.
    """
    grid = without_metrics(scope.grid)
    away = distances(grid.composites)
    drawn = scope.resample(severity_replicates(away, grid))
    return [
        _row(scope, grid, place, away[:, place], drawn[:, place])
        for place in range(len(grid.raters))
    ]


def without_metrics(grid: RatingMatrix) -> RatingMatrix:
    """Return the grid without its metrics, which are on another scale."""
    return grid.of_columns(np.flatnonzero(np.array(grid.kinds, dtype=object) != "metric"))


def distances(composites: Array) -> Array:
    """Return each composite minus the mean of the other raters of its response.

    Parameters
    ----------
    composites : shape (n, raters), NaN where missing

    Returns
    -------
    shape (n, raters)
        NaN where the rater, or every other rater, has none.
    """
    number = (~np.isnan(composites)).sum(axis=1, keepdims=True)
    total = np.nansum(composites, axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        away: Array = composites - (total - composites) / (number - 1)
    return np.where(number > 1, away, np.nan)


def severity_replicates(away: Array, grid: RatingMatrix) -> SeverityReplicates:
    """Return the resampled means of distances (n, raters) over the grid's instances."""
    parts = np.hstack([~np.isnan(away), np.nan_to_num(away)])
    columns = [
        np.bincount(grid.clusters, weights=part, minlength=grid.n_clusters) for part in parts.T
    ]
    empty = np.empty((grid.n_clusters, 0))
    return SeverityReplicates(np.column_stack(columns) if columns else empty)


def _row(scope: Scope, grid: RatingMatrix, place: int, away: Array, drawn: Array) -> SeverityRow:
    rated = ~np.isnan(away)
    ends = percentile_interval(drawn)
    return SeverityRow(
        benchmark=scope.name,
        rater=grid.raters[place],
        kind=grid.kinds[place],
        severity=float(away[rated].mean()) if rated.any() else NAN,
        low=ends.low,
        high=ends.high,
        n=int(rated.sum()),
        notes=noted(*_notes(scope, grid, place, (rated, drawn))),
    )


def _notes(
    scope: Scope, grid: RatingMatrix, place: int, found: tuple[Array, Array]
) -> Iterator[Note | None]:
    rated, drawn = found
    if not rated.any():
        yield undefined("none_shared", "no response that this rater and another one rated")
        return
    yield _to_clinicians(grid, place)
    yield scope.analysed
    yield remarks.few_instances(grid.instances(rated.astype(np.bool_)))
    yield remarks.undefined_resamples(drawn)
    yield remarks.simulated(scope.simulated & {grid.raters[place]})


def _to_clinicians(grid: RatingMatrix, place: int) -> Note | None:
    others = [column for column in grid.of_kind("clinician") if column != place]
    away = grid.composites[:, place] - mean_of_given(grid.composites[:, others])
    shared = ~np.isnan(away)
    if not shared.any() or len(others) == len(grid.raters) - 1:
        return None
    return note(
        "from_clinicians",
        _from_clinicians,
        is_clinician=grid.kinds[place] == "clinician",
        points=away[shared].mean(),
        responses=shared.sum(),
    )


def _from_clinicians(figures: Figures) -> str:
    name = "the other clinicians" if figures["is_clinician"] else "the clinicians"
    return filled(f"compared with {name} alone {{points:+z.2f}} on {{responses:response}}", figures)
