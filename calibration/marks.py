"""Evidence: what clinicians marked in responses and sources, and how the jury scored marked responses."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
import pandas as pd

from calibration import remarks
from calibration.agreement import PanelColumns, columns
from calibration.bootstrap import LEAST_CLUSTERS, Counts, percentile_interval
from calibration.icc import UNDEFINED, Interval
from calibration.notes import Note, Noted, note, noted
from calibration.scope import Scope
from calibration.scores import Array, Flags, Scores
from calibration.shared_notes import MARKS_WITHOUT_JURY
from calibration.values import NAN

MARKED_ALL = ("marked_all", "difference undefined: the jury scored no response without such a mark")
MARKED_NONE_SCORED = (
    "marked_none_scored",
    "difference undefined: the jury scored none of the marked responses",
)
MARKS_READ_ONCE = (
    "marks_read_once",
    "agreement of marks undefined: no response was read by two clinicians",
)
NONE_MARKED_TWICE_READ = (
    "none_marked_twice_read",
    "agreement of marks undefined: none is on a response that two clinicians read",
)

COLUMNS = ("response_id", "rater", "side", "start", "end", "criterion", "error", "severity")
GRAVE = "critical or major"
GRAVITIES = ("critical", "major")
BY_GRAVITY = ("critical", "major", "minor", "")


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


NOTHING = Marks()


@dataclass(frozen=True, slots=True)
class Stretch:
    """The characters that a clinician marked on one side: rater, side, start and end."""

    rater: str
    side: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SharedCharacters:
    """What the pairs of a response's readers marked, in characters.

    Attributes
    ----------
    twice_shared : twice the characters that both of a pair marked, summed over pairs
    marked : the characters that either of a pair marked, once for each, summed over pairs
    """

    twice_shared: int
    marked: int


def shared_characters(stretches: Iterable[Stretch], readers: int) -> SharedCharacters:
    """Return the two sums whose ratio is the F1 of characters between pairs of readers.

    Parameters
    ----------
    stretches : of one response
    readers : how many could have marked it, those without a mark among them

    Notes
    -----
    For two readers with the marked characters A and B, F1 is 2 |A and B| / (|A| + |B|). Summed over
    all pairs it is sum n (n - 1) / ((readers - 1) sum n), n being how many marked a character: the
    positive specific agreement of several raters. Sums over responses are taken before the ratio,
    so that a pair counts by how much it marked, and a pair that marked nothing adds nothing.

    References
    ----------
    Hripcsak & Rothschild (2005), J Am Med Inform Assoc 12, 296; Cicchetti & Feinstein (1990),
    J Clin Epidemiol 43, 551.
    """
    own: dict[str, set[tuple[str, int]]] = {}
    for mark in stretches:
        own.setdefault(mark.rater, set()).update(
            (mark.side, at) for at in range(mark.start, mark.end)
        )
    times = np.array([*Counter(at for marked in own.values() for at in marked).values()], np.int64)
    return SharedCharacters(int((times * (times - 1)).sum()), (readers - 1) * int(times.sum()))


def places(stretches: Sequence[Stretch]) -> list[int]:
    """Return, of each place of a response that was marked, how many readers marked it.

    A place is a run of stretches that overlap, one with the next; stretches that only touch are two.
    """
    readers_of_places: list[set[str]] = []
    side, reached = "", 0
    for mark in sorted(stretches, key=lambda own: (own.side, own.start, own.end)):
        if mark.side != side or mark.start >= reached:
            readers_of_places.append(set())
            side, reached = mark.side, mark.end
        readers_of_places[-1].add(mark.rater)
        reached = max(reached, mark.end)
    return [len(raters) for raters in readers_of_places]


@dataclass(frozen=True)
class MarkRow(Noted):
    """One kind of mark on one benchmark. NaN: undefined, as notes say.

    Attributes
    ----------
    criterion, error, severity : of the kind; None is any, and the severity "critical or major" is
        either of them, "" one that was not said
    n_marks, n_marked, n_clinicians : marks of the kind, the responses that have one, who made them
    n_read : responses that a clinician read where marks can be made
    n_read_twice : those of them that two or more read; agreement of marks is of these alone
    n_places, n_shared : marked places there, and those that two or more clinicians marked
    places : number of clinicians, as text -> places that so many marked
    f1, f1_low, f1_high : of the characters that two clinicians marked, over all pairs
    n_with, n_without : responses with and without such a mark that were read and the jury scored
    jury_with, jury_without : mean of the jury's composite on them, in points of the scale
    difference, low, high : jury_with minus jury_without, with its 95 % interval over instances
    clinicians_difference, clinicians_low, clinicians_high : the same of the clinicians' mean. Who
        marked has scored too, so this is what their own scores make of it and no yardstick
    """

    benchmark: str
    criterion: str | None
    error: str | None
    severity: str | None
    n_marks: int = 0
    n_marked: int = 0
    n_clinicians: int = 0
    n_read: int = 0
    n_read_twice: int = 0
    n_places: int = 0
    n_shared: int = 0
    places: Mapping[str, int] = field(default_factory=dict)
    f1: float = NAN
    f1_low: float = NAN
    f1_high: float = NAN
    n_with: int = 0
    n_without: int = 0
    jury_with: float = NAN
    jury_without: float = NAN
    difference: float = NAN
    low: float = NAN
    high: float = NAN
    clinicians_difference: float = NAN
    clinicians_low: float = NAN
    clinicians_high: float = NAN

    @property
    def label(self) -> str:
        """Return its name in a table, as "accuracy, wrong, critical"."""
        severity = self.severity if self.severity != "" else "severity not said"
        return ", ".join(filter(None, (self.criterion, self.error, severity))) or "any mark"


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of mark: criterion, error type and severity; None is any."""

    criterion: str | None = None
    error: str | None = None
    severity: str | None = None

    def of(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the marks of this kind."""
        marks = table
        for name, value in (("criterion", self.criterion), ("error", self.error)):
            marks = marks if value is None else marks[marks[name] == value]
        if self.severity is None:
            return marks
        severities = GRAVITIES if self.severity == GRAVE else (self.severity,)
        return marks[marks["severity"].isin(severities)]


@dataclass(frozen=True, eq=False)
class _MarkedScope:
    """A scope with what was read and scored in it, a value a response of the analysed set."""

    scope: Scope
    readers: Array
    jury: Array
    clinicians: Array
    raters: frozenset[str]


@dataclass(frozen=True, eq=False)
class _KindCounts:
    """One kind of mark on the analysed set, a value a response.

    `twice_shared` and `marked` are those of `SharedCharacters`, 0 where fewer than two read.
    """

    row: MarkRow
    is_marked: Flags
    twice_shared: Array
    marked: Array


def mark_rows(scope: Scope, scores: Scores, marks: Marks) -> list[MarkRow]:
    """Return what clinicians marked, how far they agree on it, and what the jury scored there.

    Only responses of the analysed set that a clinician read where marks can be made: who rated
    elsewhere marked nothing and saw nothing right either. Only first readings.

    Parameters
    ----------
    scope : its resamples
    scores : of the study, for the order of criteria and for responses outside the analysed set
    marks : of the study

    Returns
    -------
    list of MarkRow
        All marks; those that are critical or major; each criterion; then each criterion, error
        type and severity that was marked, the gravest first. None where nothing was marked.
        Nothing is adjusted for: marked responses may be those of harder instances.
    """
    own = _own(scope, marks)
    if own.empty:
        return []
    place = _marked_scope(scope, marks, own)
    rubrics = [scores.rubrics[benchmark].criteria for benchmark in scores.members(scope.name)]
    kinds = [_kind_counts(place, kind, own) for kind in _kinds(own, chain(*rubrics))]
    drawn = scope.resample(_Replicates.of(place, kinds))
    outside = _outside(scope, scores, marks)
    return [
        _row(place, counts, drawn[:, :, at], outside if at == 0 else None)
        for at, counts in enumerate(kinds)
    ]


def _own(scope: Scope, marks: Marks) -> pd.DataFrame:
    """Return the marks on the analysed set, with the row of their response in it."""
    at = {name: place for place, name in enumerate(scope.grid.responses)}
    own = marks.stretches[marks.stretches["response_id"].isin(at)]
    return own.assign(at=own["response_id"].map(at))


def _marked_scope(scope: Scope, marks: Marks, own: pd.DataFrame) -> _MarkedScope:
    readers = [len(marks.readers.get(name, ())) for name in scope.grid.responses]
    jury = scope.jury or PanelColumns((), 1)  # which has no composite of anything
    raw = columns(scope.grid, jury, "published")
    counts = np.array(readers, dtype=np.float64)
    return _MarkedScope(scope, counts, raw.scorer, raw.clinicians, frozenset(own["rater"]))


def _kinds(own: pd.DataFrame, criteria: Iterable[str]) -> Iterator[_Kind]:
    """Yield any mark, critical or major ones, each criterion, then each kind that was marked."""
    yield _Kind()
    if own["severity"].isin(GRAVITIES).any():
        yield _Kind(severity=GRAVE)
    every = [*dict.fromkeys([*criteria, *sorted(own["criterion"])])]
    combinations = set(own[["criterion", "error", "severity"]].itertuples(index=False, name=None))
    marked = [name for name in every if any(name == criterion for criterion, _, _ in combinations)]
    yield from (_Kind(name) for name in marked)
    order = {name: place for place, name in enumerate(BY_GRAVITY)}
    for name in marked:
        cells = sorted(
            (order[severity], error)
            for criterion, error, severity in combinations
            if criterion == name
        )
        yield from (_Kind(name, error, BY_GRAVITY[place]) for place, error in cells)


def _kind_counts(place: _MarkedScope, kind: _Kind, every: pd.DataFrame) -> _KindCounts:
    own, n = kind.of(every), len(place.readers)
    twice_shared, marked, shared = np.zeros(n), np.zeros(n), Counter[int]()
    for at, stretches in _by_response(own).items():
        if place.readers[at] > 1:
            pairs = shared_characters(stretches, int(place.readers[at]))
            twice_shared[at], marked[at] = pairs.twice_shared, pairs.marked
            shared.update(places(stretches))
    is_marked = np.zeros(n, dtype=np.bool_)
    is_marked[own["at"].to_numpy(dtype=np.int64)] = True
    row = MarkRow(
        place.scope.name,
        kind.criterion,
        kind.error,
        kind.severity,
        n_marks=len(own),
        n_marked=int(is_marked.sum()),
        n_clinicians=int(own["rater"].nunique()),
        n_read=int((place.readers > 0).sum()),
        n_read_twice=int((place.readers > 1).sum()),
        n_places=shared.total(),
        n_shared=sum(times for raters, times in shared.items() if raters > 1),
        places={str(raters): shared[raters] for raters in sorted(shared)},
    )
    return _KindCounts(row, is_marked, twice_shared, marked)


def _by_response(own: pd.DataFrame) -> dict[int, list[Stretch]]:
    """Return the marks of each response by its row in the analysed set."""
    marks_of: dict[int, list[Stretch]] = {}
    table = own[["at", "rater", "side", "start", "end"]]
    for at, *stretch in table.itertuples(index=False, name=None):
        marks_of.setdefault(at, []).append(Stretch(*stretch))
    return marks_of


@dataclass(frozen=True, eq=False)
class _Replicates:
    """F1 and both differences of every kind as ratios of sums over instances.

    Attributes
    ----------
    tops, bottoms : shape (clusters, 5, kinds)
        What is summed above and below the line: F1; then jury with and without the mark;
        then clinicians with and without it.
    """

    tops: Array
    bottoms: Array

    @classmethod
    def of(cls, place: _MarkedScope, kinds: Sequence[_KindCounts]) -> "_Replicates":
        """Return the sums of some kinds of mark."""
        parts = [_sums(place, counts) for counts in kinds]
        return cls(
            np.stack([top for top, _ in parts], axis=2),
            np.stack([bottom for _, bottom in parts], axis=2),
        )

    def __call__(self, counts: Counts) -> Array:
        """Return, for each resample, F1 and the two differences, shape (B, 3, kinds)."""
        shape = (len(counts), *self.tops.shape[1:])
        flat = (len(self.tops), -1)
        top = (counts @ self.tops.reshape(flat)).reshape(shape)
        bottom = (counts @ self.bottoms.reshape(flat)).reshape(shape)
        ratio = np.divide(top, bottom, out=np.full(shape, NAN), where=bottom > 0)
        return np.stack([ratio[:, 0], ratio[:, 1] - ratio[:, 2], ratio[:, 3] - ratio[:, 4]], axis=1)


def _sums(place: _MarkedScope, counts: _KindCounts) -> tuple[Array, Array]:
    """Return the sums of each instance above and below the line, both of shape (clusters, 5)."""
    sides = _sides(place, counts)
    scored = [np.where(own, of, 0.0) for of in (place.jury, place.clinicians) for own in sides]
    responses = [own.astype(np.float64) for own in (*sides, *sides)]
    tops, bottoms = [counts.twice_shared, *scored], [counts.marked, *responses]
    return _by_instance(place, tops), _by_instance(place, bottoms)


def _by_instance(place: _MarkedScope, values: Sequence[Array]) -> Array:
    """Return the sum over each instance's responses, shape (clusters, values)."""
    grid = place.scope.grid
    return np.stack([np.bincount(grid.clusters, own, grid.n_clusters) for own in values], axis=1)


def _sides(place: _MarkedScope, counts: _KindCounts) -> tuple[Flags, Flags]:
    """Return which responses with a jury score were read and marked so, and which read and not."""
    judged = (place.readers > 0) & ~np.isnan(place.jury)
    return judged & counts.is_marked, judged & ~counts.is_marked


def _row(place: _MarkedScope, counts: _KindCounts, drawn: Array, outside: Note | None) -> MarkRow:
    sides = _sides(place, counts)
    instances = [place.scope.grid.instances(side) for side in sides]
    shared = place.scope.grid.instances(counts.marked > 0)
    jury = [_mean(place.jury, side) for side in sides]
    clinicians = [_mean(place.clinicians, side) for side in sides]
    f1 = _ends(drawn[:, 0], shared)
    is_alike = len(drawn) > 0 and shared >= LEAST_CLUSTERS and np.isnan(f1.low)
    of_jury, of_clinicians = (_ends(drawn[:, at], min(instances)) for at in (1, 2))
    total = float(counts.marked.sum())
    return replace(
        counts.row,
        f1=float(counts.twice_shared.sum()) / total if total else NAN,
        f1_low=f1.low,
        f1_high=f1.high,
        n_with=int(sides[0].sum()),
        n_without=int(sides[1].sum()),
        jury_with=jury[0],
        jury_without=jury[1],
        difference=jury[0] - jury[1],
        low=of_jury.low,
        high=of_jury.high,
        clinicians_difference=clinicians[0] - clinicians[1],
        clinicians_low=of_clinicians.low,
        clinicians_high=of_clinicians.high,
        notes=noted(
            *_notes(place, counts, sides, instances),
            note("same_f1", "F1 has no interval: it is the same in every resample")
            if is_alike
            else None,
            _lost(drawn, (f1, of_jury)),
            outside,
            _simulated(place),
        ),
    )


def _mean(values: Array, rows: Flags) -> float:
    return float(values[rows].mean()) if rows.any() else NAN


def _ends(drawn: Array, instances: int) -> Interval:
    """Return the interval of a figure that rests on some instances; undefined where it has no width."""
    ends = percentile_interval(drawn) if instances >= LEAST_CLUSTERS else UNDEFINED
    return ends if ends.low < ends.high else UNDEFINED


def _notes(
    place: _MarkedScope, counts: _KindCounts, sides: tuple[Flags, Flags], instances: Sequence[int]
) -> Iterator[Note | None]:
    """Yield why a figure is undefined, or weak."""
    if not counts.marked.any():
        yield note(*(NONE_MARKED_TWICE_READ if counts.row.n_read_twice else MARKS_READ_ONCE))
    if not place.scope.jury:
        yield note(*MARKS_WITHOUT_JURY)
    elif not all(side.any() for side in sides):
        yield note(*(MARKED_NONE_SCORED if not sides[0].any() else MARKED_ALL))
    else:
        yield remarks.few_instances(min(instances))


def _lost(drawn: Array, ends: Sequence[Interval]) -> Note | None:
    """Note the undefined resamples of F1 or of the jury's difference, whichever are more."""
    with_ends = [drawn[:, at] for at, interval in enumerate(ends) if np.isfinite(interval.low)]
    notes = noted(*map(remarks.undefined_resamples, with_ends))
    return max(notes, key=lambda lost: int(lost["lost"]), default=None)


def _outside(scope: Scope, scores: Scores, marks: Marks) -> Note | None:
    """Count the responses with a mark that no clinician rated on all criteria."""
    table = scores.responses
    own = table.loc[table["benchmark"].isin(scores.members(scope.name)), "response_id"]
    marked = set(marks.stretches["response_id"]) & set(own)
    lost = len(marked - set(scope.grid.responses))
    return (
        note(
            "marked_outside",
            "left out: {responses:response} with a mark that no clinician rated on all criteria",
            responses=lost,
        )
        if lost
        else None
    )


def _simulated(place: _MarkedScope) -> Note | None:
    scope, jury = place.scope, place.scope.jury.members if place.scope.jury else ()
    return remarks.simulated(scope.simulated & {*jury, *place.raters, *scope.clinicians})
