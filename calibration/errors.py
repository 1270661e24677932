"""Errors that clinicians marked: counts by type, agreement on them, and examples picked by one rule."""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from calibration import remarks
from calibration.clustered_intervals import clustered_mean, clustered_proportion
from calibration.columns import PanelColumns, columns
from calibration.icc import UNDEFINED
from calibration.notes import note, noted
from calibration.rating_matrix import FLAT
from calibration.scope import Scope
from calibration.scores import Flags, Scores
from calibration.tables.errors import BenchmarkErrors, ErrorRow, PickedResponse
from calibration.values import NAN

GRAVITIES = ("critical", "major")
DIGITS = 9  # by which means are compared, so that rounding makes no order


def benchmark_errors(
    scope: Scope,
    scores: Scores,
    marks: pd.DataFrame,
    readers: Mapping[str, frozenset[str]],
    per_group: int,
) -> BenchmarkErrors:
    """Return the groups and examples of one benchmark.

    Parameters
    ----------
    scope : of a benchmark
    scores : of the study, for the instances of responses
    marks : a mark a row, of first readings alone: response_id, rater, side ("response" or "source"),
        start and end (characters of it), criterion, error, severity ("" where that was not said)
    readers : response_id -> the clinicians who submitted it where marks can be made; nothing is
        known of what anybody else saw wrong
    per_group : how many examples at the most for each reason, 1 or more

    Notes
    -----
    Picked as lowest, and for each error type among the responses with such a mark: the lowest
    clinicians' mean first, then the largest absolute gap to the jury, then the largest spread of
    clinicians. Picked for a disagreement, of jury and clinicians or among clinicians: the largest
    first, then the lowest clinicians' mean; only where there is one. Ties go by response id.
    """
    rated = _rated(scope, scores, readers)
    own = marks[marks["response_id"].isin(rated.index)]
    counts = own["error"].value_counts()
    types = sorted(counts.index, key=lambda error: (-counts[error], error))
    members = scope.jury.members if scope.jury else ()
    simulated = scope.simulated & {*members, *scope.clinicians, *own["rater"]}
    in_benchmark = scores.responses["benchmark"] == scope.name
    ids = set(scores.responses.loc[in_benchmark, "response_id"])
    clinical = {*scores.raters("clinician")}
    return BenchmarkErrors(
        scope.name,
        tuple(_rows(scope, rated, own, types, simulated)),
        tuple(_picked(scope.name, rated, own, types, per_group)),
        n_in_study=scope.in_study,
        n_rated=len(rated),
        n_incomplete=sum(n for name, n in scope.incomplete.items() if name in clinical),
        n_unscored=int(rated["jury"].isna().sum()) if scope.jury else None,
        n_outside=len(set(marks["response_id"]) & ids - set(rated.index)),
        simulated=tuple(sorted(simulated)),
    )


def _rated(scope: Scope, scores: Scores, readers: Mapping[str, frozenset[str]]) -> pd.DataFrame:
    """Return the rated responses of a scope, a row each by response id."""
    grid = scope.grid
    raw = columns(grid, scope.jury or PanelColumns((), 1), "published")
    clinical = pd.DataFrame(grid.composites[:, grid.of_kind("clinician")], index=grid.responses)
    number = clinical.notna().sum(axis=1)
    instances = scores.responses.set_index("response_id")["instance_id"].reindex(grid.responses)
    return pd.DataFrame(
        {
            "response_id": grid.responses,
            "instance_id": instances.str.removeprefix(f"{scope.name}/"),
            "clinicians": raw.clinicians,
            "n_clinicians": number,
            "spread": (clinical.max(axis=1) - clinical.min(axis=1)).where(number > 1),
            "jury": raw.scorer,
            "gap": raw.scorer - raw.clinicians,
            "readers": [len(readers.get(name, ())) for name in grid.responses],
        },
        index=pd.Index(grid.responses),
    )


def _rows(
    scope: Scope,
    rated: pd.DataFrame,
    marks: pd.DataFrame,
    types: list[str],
    simulated: frozenset[str],
) -> Iterator[ErrorRow]:
    is_read = (rated["readers"] > 0).to_numpy()
    is_marked = rated.index.isin(marks["response_id"])
    grave = marks[marks["severity"].isin(GRAVITIES)]
    groups = [("marked", "", marks)]
    groups += [("grave", "", grave)] if len(grave) else []
    groups += [("error", error, marks[marks["error"] == error]) for error in types]
    for group, error, own in groups:
        row = ErrorRow(scope.name, group, error)
        rows = rated.index.isin(own["response_id"])
        yield _row(row, scope, rated, own, rows, is_read | is_marked, simulated)
    for group, rows in (("unmarked", is_read & ~is_marked), ("unread", ~is_read & ~is_marked)):
        row = ErrorRow(scope.name, group)
        yield _row(row, scope, rated, marks.iloc[:0], rows, is_read | is_marked, simulated)


def _row(
    row: ErrorRow,
    scope: Scope,
    rated: pd.DataFrame,
    marks: pd.DataFrame,
    rows: Flags,
    readable: Flags,
    simulated: frozenset[str],
) -> ErrorRow:
    grid, own = scope.grid, rated[rows]
    share, ends = NAN, UNDEFINED
    if row.group != "unread" and readable.any():
        share = float(rows.sum() / readable.sum())
        ends = clustered_proportion(rows.astype(float), readable.astype(float), grid.clusters)
    gaps = np.where(rows, rated["gap"].to_numpy(), np.nan)
    gap = clustered_mean(gaps, grid.clusters, grid.n_clusters)
    shared = places(marks[marks["response_id"].map(rated["readers"]) > 1])
    return ErrorRow(
        row.benchmark,
        row.group,
        row.error,
        n_responses=len(own),
        n_read=int(readable.sum()),
        share=share,
        low=ends.low,
        high=ends.high,
        n_marks=len(marks),
        n_grave=int(marks["severity"].isin(GRAVITIES).sum()),
        clinicians=float(own["clinicians"].mean()),
        jury=float(own["jury"].mean()),
        gap=gap.value,
        gap_low=gap.interval().low,
        gap_high=gap.interval().high,
        spread=float(own["spread"].mean()),
        n_places=len(shared),
        n_shared=sum(raters > 1 for raters in shared),
        notes=noted(
            note("marks_without_jury", "difference undefined: the jury has no jurors")
            if not scope.jury
            else None,
            remarks.few_instances(gap.instances),
            remarks.simulated(simulated),
        ),
    )


def places(marks: pd.DataFrame) -> list[int]:
    """Return, of each place that was marked, how many clinicians marked it.

    `marks` are as of `benchmark_errors`. A place is a run of stretches of one response and side that
    overlap, one with the next; stretches that only touch are two.
    """
    raters_of: list[set[str]] = []
    where, reached = ("", ""), 0
    fields = marks[["response_id", "side", "start", "end", "rater"]].sort_values(
        ["response_id", "side", "start", "end"]
    )
    for response, side, start, end, rater in fields.itertuples(index=False, name=None):
        if (response, side) != where or start >= reached:
            raters_of.append(set())
            where, reached = (response, side), end
        raters_of[-1].add(rater)
        reached = max(reached, end)
    return [len(raters) for raters in raters_of]


def _picked(
    benchmark: str, rated: pd.DataFrame, marks: pd.DataFrame, types: list[str], per_group: int
) -> Iterator[PickedResponse]:
    """Yield the examples, reason by reason."""
    marked = {name: (*sorted({*own}),) for name, own in marks.groupby("response_id")["error"]}
    shown = rated.drop(columns="readers").assign(is_read=rated["readers"] > 0)
    low = rated["clinicians"].round(DIGITS)
    apart, spread = (-rated[name].abs().fillna(0).round(DIGITS) for name in ("gap", "spread"))
    every = pd.Series(data=True, index=rated.index)
    orders = [
        ("lowest", "", every, (low, apart, spread)),
        ("jury_apart", "", rated["gap"].abs() > FLAT, (apart, low, spread)),
        ("clinicians_apart", "", rated["spread"] > FLAT, (spread, low, apart)),
    ]
    for error in types:
        rows = rated["response_id"].isin(marks.loc[marks["error"] == error, "response_id"])
        orders.append(("error", error, rows, (low, apart, spread)))
    for picked_for, error_type, rows, order in orders:
        ranked = np.lexsort((rated.index.astype(str), *reversed(order)))
        first = shown.iloc[ranked][rows.iloc[ranked]].head(per_group)
        for place, one in enumerate(first.to_dict("records"), 1):
            figures = {str(name): value for name, value in one.items()}
            errors = marked.get(figures["response_id"], ())
            yield PickedResponse(benchmark, picked_for, error_type, place, **figures, errors=errors)
