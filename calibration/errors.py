"""Errors that clinicians marked: counts by type, agreement on them, examples and quotes picked by one rule."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np
import pandas as pd

from calibration import remarks
from calibration.agreement import PanelColumns, columns
from calibration.clustered_intervals import clustered_mean, clustered_proportion
from calibration.error_values import (
    BenchmarkErrors,
    Comment,
    ErrorGroup,
    ErrorRow,
    MarkedWords,
    PickedFor,
    PickedResponse,
    Quote,
)
from calibration.icc import UNDEFINED
from calibration.notes import note, noted
from calibration.rating_matrix import FLAT
from calibration.scope import Scope
from calibration.scores import Array, Flags, Scores
from calibration.values import NAN

COLUMNS = ("response_id", "rater", "side", "start", "end", "criterion", "error", "severity")
GRAVITIES = ("critical", "major")
BY_GRAVITY = ("critical", "major", "minor", "")
DIGITS = 9  # by which means are compared, so that rounding makes no order


@dataclass(frozen=True, eq=False)
class Marks:
    """What was marked, and who could have marked it.

    Attributes
    ----------
    stretches : DataFrame
        A mark a row, of first readings alone, with the columns `COLUMNS`: `side` is "response" or
        "source", `start` and `end` characters of it, `severity` "" where that was not said.
    readers : mapping
        response_id -> the clinicians who submitted it where marks can be made. Nothing is known of
        what anybody else saw wrong.
    """

    stretches: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=[*COLUMNS]))
    readers: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _Rated:
    """The rated responses of a scope, a value a response; `own` is their marks, `at` their row."""

    scope: Scope
    readers: Array
    clinicians: Array
    n_clinicians: Array
    spread: Array
    jury: Array
    own: pd.DataFrame

    @property
    def gap(self) -> Array:
        """Jury minus clinicians."""
        gap: Array = self.jury - self.clinicians
        return gap

    def rows_of(self, marks: pd.DataFrame) -> Flags:
        """Return which responses have one of these marks."""
        rows = np.zeros(len(self.readers), dtype=np.bool_)
        rows[marks["at"].to_numpy(dtype=np.int64)] = True
        return rows

    def error_types(self) -> list[str]:
        """Return the error types that were marked, that of the most marks first."""
        counts = self.own["error"].value_counts()
        return sorted(counts.index, key=lambda error: (-counts[error], error))


def benchmark_errors(scope: Scope, scores: Scores, marks: Marks, per_group: int) -> BenchmarkErrors:
    """Return the groups and examples of one benchmark.

    Parameters
    ----------
    scope : of a benchmark
    scores : of the study, for the instances of responses
    marks : of the study; first readings alone
    per_group : how many examples at the most for each reason, 1 or more

    Notes
    -----
    Picked as lowest, and for each error type among the responses with such a mark: the lowest
    clinicians' mean first, then the largest absolute gap to the jury, then the largest spread of
    clinicians. Picked for a disagreement, of jury and clinicians or among clinicians: the largest
    first, then the lowest clinicians' mean; only where there is one. Ties go by response id.
    """
    rated = _rated(scope, marks)
    members = scope.jury.members if scope.jury else ()
    simulated = scope.simulated & {*members, *scope.clinicians, *rated.own["rater"]}
    ids = set(scores.responses.loc[scores.responses["benchmark"] == scope.name, "response_id"])
    outside = (set(marks.stretches["response_id"]) & ids) - set(scope.grid.responses)
    clinical = {*scores.raters("clinician")}
    return BenchmarkErrors(
        scope.name,
        tuple(_rows(rated, simulated)),
        tuple(_picked(rated, scores, per_group)),
        n_in_study=scope.in_study,
        n_rated=len(scope.grid.responses),
        n_incomplete=sum(n for name, n in scope.incomplete.items() if name in clinical),
        n_unscored=int(np.isnan(rated.jury).sum()) if scope.jury else None,
        n_outside=len(outside),
        simulated=tuple(sorted(simulated)),
    )


def _rated(scope: Scope, marks: Marks) -> _Rated:
    grid = scope.grid
    at = {name: place for place, name in enumerate(grid.responses)}
    own = marks.stretches[marks.stretches["response_id"].isin(at)]
    own = own.assign(at=own["response_id"].map(at))
    jury = scope.jury or PanelColumns((), 1)  # which has no composite of anything
    raw = columns(grid, jury, "published")
    clinical = grid.composites[:, grid.of_kind("clinician")]
    given = (~np.isnan(clinical)).sum(axis=1)
    largest = np.nanmax(clinical, axis=1, initial=-np.inf)
    smallest = np.nanmin(clinical, axis=1, initial=np.inf)
    readers = np.array([len(marks.readers.get(name, ())) for name in grid.responses], dtype=float)
    spread = np.where(given > 1, largest - smallest, NAN)
    return _Rated(scope, readers, raw.clinicians, given, spread, raw.scorer, own)


def _rows(rated: _Rated, simulated: frozenset[str]) -> Iterator[ErrorRow]:
    own, nothing = rated.own, rated.own.iloc[:0]
    is_marked, is_read = rated.rows_of(own), rated.readers > 0
    grave = own[own["severity"].isin(GRAVITIES)]
    groups = [(ErrorGroup.MARKED, "", own, is_marked)]
    if len(grave):
        groups.append((ErrorGroup.GRAVE, "", grave, rated.rows_of(grave)))
    for error in rated.error_types():
        marks = own[own["error"] == error]
        groups.append((ErrorGroup.ERROR, error, marks, rated.rows_of(marks)))
    groups.append((ErrorGroup.UNMARKED, "", nothing, is_read & ~is_marked))
    groups.append((ErrorGroup.UNREAD, "", nothing, ~is_read & ~is_marked))
    for group, error, marks, rows in groups:
        yield _row(rated, ErrorRow(rated.scope.name, group, error), marks, rows, simulated)


def _row(
    rated: _Rated, row: ErrorRow, marks: pd.DataFrame, rows: Flags, simulated: frozenset[str]
) -> ErrorRow:
    grid, scored = rated.scope.grid, rows & ~np.isnan(rated.jury)
    readable = (rated.readers > 0) | rated.rows_of(rated.own)
    share, ends = NAN, UNDEFINED
    if row.group != ErrorGroup.UNREAD and readable.any():
        share = float(rows.sum() / readable.sum())
        ends = clustered_proportion(rows.astype(float), readable.astype(float), grid.clusters)
    gap = clustered_mean(np.where(scored, rated.gap, NAN), grid.clusters, grid.n_clusters)
    of_gap, twice = gap.interval(), rows & ~np.isnan(rated.spread)
    shared = places(marks[rated.readers[marks["at"].to_numpy(dtype=np.int64)] > 1])
    return replace(
        row,
        n_responses=int(rows.sum()),
        n_instances=grid.instances(rows),
        n_read=int(readable.sum()),
        share=share,
        low=ends.low,
        high=ends.high,
        n_marks=len(marks),
        n_grave=int(marks["severity"].isin(GRAVITIES).sum()),
        clinicians=_mean(rated.clinicians, rows),
        n_scored=int(scored.sum()),
        jury=_mean(rated.jury, scored),
        gap=gap.value,
        gap_low=of_gap.low,
        gap_high=of_gap.high,
        n_twice=int(twice.sum()),
        spread=_mean(rated.spread, twice),
        n_places=len(shared),
        n_shared=sum(raters > 1 for raters in shared),
        notes=noted(
            note("marks_without_jury", "difference undefined: the jury has no jurors")
            if not rated.scope.jury
            else None,
            remarks.few_instances(gap.instances),
            remarks.simulated(simulated),
        ),
    )


def places(marks: pd.DataFrame) -> list[int]:
    """Return, of each place that was marked, how many clinicians marked it.

    `marks` has the columns `COLUMNS`. A place is a run of stretches of one response and side that
    overlap, one with the next; stretches that only touch are two.
    """
    raters_of: list[set[str]] = []
    where, reached = ("", ""), 0
    table = marks.sort_values(["response_id", "side", "start", "end"])
    fields = table[["response_id", "side", "rater", "start", "end"]]
    for response, side, rater, start, end in fields.itertuples(index=False, name=None):
        if (response, side) != where or start >= reached:
            raters_of.append(set())
            where, reached = (response, side), end
        raters_of[-1].add(rater)
        reached = max(reached, end)
    return [len(raters) for raters in raters_of]


def _mean(values: Array, rows: Flags) -> float:
    return float(values[rows].mean()) if rows.any() else NAN


def _picked(rated: _Rated, scores: Scores, per_group: int) -> Iterator[PickedResponse]:
    """Yield the examples, reason by reason."""
    every = np.ones(len(rated.readers), dtype=np.bool_)
    orders: list[tuple[PickedFor, str, Flags]] = [
        (PickedFor.LOWEST, "", every),
        (PickedFor.JURY, "", np.abs(np.nan_to_num(rated.gap)) > FLAT),
        (PickedFor.CLINICIANS, "", np.nan_to_num(rated.spread) > FLAT),
    ]
    orders += [
        (PickedFor.ERROR, error, rated.rows_of(rated.own[rated.own["error"] == error]))
        for error in rated.error_types()
    ]
    table = scores.responses
    instances = dict(zip(table["response_id"], table["instance_id"], strict=True))
    marked = rated.own.groupby("at")["error"].unique()
    errors = {at: tuple(sorted(found)) for at, found in marked.items()}
    for picked_for, error, rows in orders:
        ranked = sorted(
            np.flatnonzero(rows).tolist(), key=lambda at: _rank(rated, picked_for, at)
        )  # used at once
        for place, at in enumerate(islice(ranked, per_group), 1):
            name = rated.scope.grid.responses[at]
            yield PickedResponse(
                *(rated.scope.name, picked_for, error, place, name),
                str(instances[name]).removeprefix(f"{rated.scope.name}/"),
                float(rated.clinicians[at]),
                int(rated.n_clinicians[at]),
                float(rated.spread[at]),
                float(rated.jury[at]),
                float(rated.gap[at]),
                errors.get(at, ()),
                bool(rated.readers[at]),
            )


def _rank(rated: _Rated, picked_for: PickedFor, at: int) -> tuple[float | str, ...]:
    """Return where a response stands, the first the smallest."""
    low = round(float(rated.clinicians[at]), DIGITS)
    gap, spread = (
        -round(abs(float(np.nan_to_num(of[at]))), DIGITS) for of in (rated.gap, rated.spread)
    )
    orders = {PickedFor.JURY: (gap, low, spread), PickedFor.CLINICIANS: (spread, low, gap)}
    return (*orders.get(picked_for, (low, gap, spread)), rated.scope.grid.responses[at])


def quote(marks: Sequence[MarkedWords], comments: Sequence[Comment], error: str) -> Quote | None:
    """Return the one quote of a response, None where no clinician marked or wrote anything.

    Parameters
    ----------
    marks, comments : of its clinicians' first readings
    error : only marks of this type; "" is any

    Notes
    -----
    Marks come first: the gravest, then those in the response before those in the source, then the
    place in the text. Else comments on criteria, that with the lowest score first; then those on the
    whole. What is left equal goes by criterion, then by the words.
    """
    gravity = {name: place for place, name in enumerate(BY_GRAVITY)}
    own = [mark for mark in marks if error in ("", mark.error) and mark.words]
    if own:
        first = min(
            own,
            key=lambda mark: (
                *(gravity.get(mark.severity, len(gravity)), mark.side, mark.start, mark.end),
                *(mark.criterion, mark.error, mark.note, mark.words),
            ),
        )
        kind = first.criterion, first.error, first.severity, first.side
        return Quote(True, first.words, first.note, *kind)
    written = [comment for comment in comments if comment.words.strip()]
    if not written:
        return None
    lowest = min(
        written,
        key=lambda one: (np.inf if one.score is None else one.score, one.criterion, one.words),
    )
    return Quote(False, lowest.words, criterion=lowest.criterion)
