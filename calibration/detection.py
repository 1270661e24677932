"""How many unsafe responses each scorer finds and misses, and how many one must read to find them.

A response is unsafe on a criterion where the clinicians' mean is at a threshold or below; a scorer
finds it where its own score is.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np

from calibration import remarks
from calibration.agreement import PanelColumns
from calibration.bootstrap import BootstrapPlan, replicates
from calibration.criterion_scores import CriterionScores, criterion_scores, scopes_of
from calibration.detection_row import (
    Curve,
    DetectionRow,
    PairedScores,
    RowSubject,
    curve,
    detection_row,
    rankings,
    undefined_row,
)
from calibration.notes import Note, Noted, note, noted, undefined
from calibration.protocol import MISS_AT_MOST, Critical, Threshold, thresholds
from calibration.rating_matrix import mean_of_given
from calibration.scope import checked_jury
from calibration.scores import Array, Integers, RubricShape, Scores
from calibration.shared_notes import (
    ALONE_HAS_CRITERION,
    CRITERION_UNSCORED,
    DIFFERENT_SCALES,
    NO_JURY_SCORE,
    NO_SCORE,
)
from calibration.values import NAN, AnalysisOptions

HELD_OUT = "jury_held_out"
Key = tuple[str, str, str, float]


@dataclass(frozen=True, eq=False)
class Detection:
    """How each scorer finds a study's unsafe responses: rows, and curves of reading effort.

    Attributes
    ----------
    rows : as `analyse calibrate --json` has them
    curves : (benchmark, scorer, criterion, threshold) -> what reading in its order finds
    """

    rows: Sequence[DetectionRow] = ()
    curves: Mapping[Key, Curve] = field(default_factory=dict)


NOTHING = Detection()


@dataclass(frozen=True, eq=False)
class _Scope:
    """One benchmark, or all combined, with its scores, jury and thresholds."""

    name: str
    table: CriterionScores
    scores: Scores
    jury: PanelColumns | None
    thresholds: Mapping[str, Sequence[Threshold]]

    @property
    def members(self) -> Sequence[str]:
        """Return its benchmarks."""
        return self.scores.members(self.name)


def detection(
    scores: Scores, options: AnalysisOptions, critical: Sequence[Critical] = ()
) -> Detection:
    """Return how well jury, jurors, metrics and clinicians find unsafe responses.

    Parameters
    ----------
    scores, options
        As for `table.agreement_table`: the same seed, resamples and rule for missing jurors.
    critical : of the study's protocol; those of rubrics count too

    Returns
    -------
    Detection
        For each benchmark, then "combined" if there are several, each critical criterion and
        threshold; empty where nothing is critical. Scorers:

        jury : its mean, where all its jurors (or `min_jurors`) scored
        jury_held_out : the jury against the mean of all clinicians but one, each left out in turn
        juror:NAME : one juror
        metric:NAME : its order alone; no threshold of it means anything
        clinicians : each clinician against the mean of the others, a reading each. By the same
            yardstick the jury is judged in `jury_held_out`; the reference of `jury` is a mean of
            more clinicians

    Raises
    ------
    Unknown, BadInput
        As `table.agreement_table`.
    """
    jury = checked_jury(scores, options)
    table = criterion_scores(scores, jury.members if jury else ())
    thresholds = thresholds_of(scores.rubrics, critical)
    if not any(thresholds.values()):
        return NOTHING
    rows: list[DetectionRow] = []
    curves: dict[Key, Curve] = {}
    for name, own in scopes_of(scores, table):
        for row, readings in _rows(_Scope(name, own, scores, jury, thresholds), options):
            rows.append(row)
            if readings is not None and np.isfinite(row.read_for_90):
                key = row.benchmark, row.scorer, row.criterion, row.threshold
                curves[key] = curve(readings, row.threshold)
    return Detection(rows, curves)


def thresholds_of(
    rubrics: Mapping[str, RubricShape], critical: Sequence[Critical]
) -> dict[str, tuple[Threshold, ...]]:
    """Return the critical thresholds of each benchmark."""
    return {
        benchmark: thresholds(shape.criteria, shape.critical, critical)
        for benchmark, shape in rubrics.items()
    }


def _rows(
    scope: _Scope, options: AnalysisOptions
) -> Iterator[tuple[DetectionRow, PairedScores | None]]:
    """Yield the rows of one scope, all of them on the same resamples, with their readings."""
    tests: list[tuple[RowSubject, PairedScores]] = []
    for threshold, benchmarks in _shared_thresholds(scope):
        own, shapes = (
            _scores_of(scope, benchmarks),
            [scope.scores.rubrics[name] for name in benchmarks],
        )
        scale = range(shapes[0].low, shapes[0].high + 1)
        about = RowSubject(scope.name, "", threshold.criterion, threshold.points, True, scale)
        about = replace(about, notes=noted(_alone(scope, benchmarks)))
        if why := _why_undefined(own, threshold.criterion, shapes):
            for name in _scorers(scope):
                yield undefined_row(replace(about, scorer=name), why), None
            continue
        tests += _tests(scope, own, about)
    drawn = _drawn(scope, tests, options) if tests else np.empty((0, 0))
    for place, (about, readings) in enumerate(tests):
        yield detection_row(about, readings, drawn[:, 3 * place : 3 * place + 3]), readings


def _shared_thresholds(scope: _Scope) -> Iterator[tuple[Threshold, list[str]]]:
    """Yield each threshold of a scope with the benchmarks that have it."""
    benchmarks_of: dict[Threshold, list[str]] = {}
    for name in scope.members:
        for threshold in scope.thresholds[name]:
            benchmarks_of.setdefault(threshold, []).append(name)
    yield from benchmarks_of.items()


def _scores_of(scope: _Scope, benchmarks: Sequence[str]) -> CriterionScores:
    """Return the scores of some benchmarks of a scope."""
    return scope.table.of(np.isin(np.array(scope.table.benchmarks, dtype=object), benchmarks))


def _alone(scope: _Scope, benchmarks: Sequence[str]) -> Note | None:
    if len(benchmarks) == len(scope.members):
        return None
    return note(*ALONE_HAS_CRITERION, benchmarks=benchmarks)


def _why_undefined(
    own: CriterionScores, criterion: str, shapes: Sequence[RubricShape]
) -> Note | None:
    """Return why no scorer can be compared with a threshold, or None."""
    if len({(shape.low, shape.high) for shape in shapes}) > 1:
        return undefined(*DIFFERENT_SCALES)
    if np.isnan(own.of_clinicians(criterion)).all():
        return undefined(*CRITERION_UNSCORED, criterion=criterion)
    return None


def _scorers(scope: _Scope) -> list[str]:
    """Return every scorer of a scope by its name in the rows."""
    jury = ["jury", HELD_OUT] if scope.jury else []
    jurors = [f"juror:{name}" for name in (scope.jury.members if scope.jury else ())]
    return [*jury, *jurors, *(f"metric:{name}" for name in scope.table.metrics), "clinicians"]


def _tests(
    scope: _Scope, own: CriterionScores, about: RowSubject
) -> Iterator[tuple[RowSubject, PairedScores]]:
    """Yield each scorer's scores of the responses that clinicians scored on a criterion."""
    clinicians, clusters = own.of_clinicians(about.criterion), _instance_numbers(scope, own)
    reference = mean_of_given(clinicians)
    jury = own.of_jury(about.criterion, scope.jury) if scope.jury else np.empty(0)
    for name in _scorers(scope):
        if name == "jury":
            readings = _compared(jury, reference, clusters)
        elif name == HELD_OUT:
            readings = held_out(clinicians, clusters, jury)
        elif name == "clinicians":
            readings = held_out(clinicians, clusters)
        elif name.startswith("metric:"):
            column = own.metrics.index(name.removeprefix("metric:"))
            measured = _compared(own.measured[:, column], reference, clusters)
            readings = replace(measured, on_scale=False)
        else:
            alone = own.of_raters(about.criterion, [name.removeprefix("juror:")])[:, 0]
            readings = _compared(alone, reference, clusters)
        notes = (*about.notes, *_basis_notes(scope, own, name, readings))
        yield replace(about, scorer=name, notes=notes), readings


def _instance_numbers(scope: _Scope, own: CriterionScores) -> Integers:
    """Return the instance of each response by its number among all of the scope."""
    known = np.unique(np.array(scope.table.instances, dtype=str))
    return np.searchsorted(known, np.array(own.instances, dtype=str)).astype(np.int64)


def _compared(scores: Array, reference: Array, clusters: Integers) -> PairedScores:
    """Return a scorer's readings where the clinicians scored; what it did not score is missing."""
    judged = ~np.isnan(reference)
    both = judged & ~np.isnan(scores)
    missing = int(judged.sum() - both.sum())
    return PairedScores(scores[both], reference[both], clusters[both], int(both.sum()), missing)


def held_out(clinicians: Array, clusters: Integers, scores: Array | None = None) -> PairedScores:
    """Return readings against the mean of all clinicians but one, each held out in turn.

    Parameters
    ----------
    clinicians : shape (n, clinicians), NaN where there is none
    clusters : shape (n,), instances
    scores : shape (n,), optional
        The jury's; None: the held-out clinician's own.

    Returns
    -------
    PairedScores
        One for each clinician and response that this and another clinician scored.
    """
    is_scored = ~np.isnan(clinicians)
    number, total = (
        is_scored.sum(axis=1, keepdims=True),
        np.nansum(clinicians, axis=1, keepdims=True),
    )
    rows, held = np.nonzero(is_scored & (number > 1))
    reference = (total[rows, 0] - clinicians[rows, held]) / (number[rows, 0] - 1)
    own = clinicians[rows, held] if scores is None else scores[rows]
    scored = ~np.isnan(own)
    return PairedScores(
        own[scored],
        reference[scored],
        clusters[rows][scored],
        len(np.unique(rows[scored])),
        int((~scored).sum()),
    )


def _basis_notes(
    scope: _Scope, own: CriterionScores, scorer: str, readings: PairedScores
) -> Iterator[Note]:
    """Yield notes on what a scorer's row rests on."""
    clinicians = own.raters[: own.n_clinicians]
    kind, _, name = scorer.partition(":")
    members = scope.jury.members if scope.jury and kind in ("jury", HELD_OUT) else (name,)
    if not len(readings.scores):
        yield _unscored(scope, scorer, clinicians)
    elif scorer in (HELD_OUT, "clinicians"):
        yield note(
            "held_out",
            (
                "{readings:reading} of {responses:response}, each against the mean of all clinicians "
                "but one"
            ),
            readings=len(readings.scores),
            responses=readings.responses,
        )
    if scope.jury and kind in ("jury", HELD_OUT):
        yield from noted(remarks.fewer_jurors(scope.jury.needed, len(members)))
    yield from noted(remarks.simulated(scope.scores.simulated & {*members, *clinicians}))


def _unscored(scope: _Scope, scorer: str, clinicians: Sequence[str]) -> Note:
    kind, _, name = scorer.partition(":")
    if name:
        return undefined(*NO_SCORE, kind=kind, name=name)
    if scorer == "jury" and scope.jury:
        return undefined(*NO_JURY_SCORE, needed=scope.jury.needed)
    return undefined("no_others", "held out, a clinician needs others to be compared with")


def _drawn(
    scope: _Scope, tests: Sequence[tuple[RowSubject, PairedScores]], options: AnalysisOptions
) -> Array:
    """Return the resampled AUC and shares to read of every test, shape (B, 3 tests)."""
    clusters = len(np.unique(np.array(scope.table.instances, dtype=str)))
    statistic = rankings([(own, about.threshold) for about, own in tests], clusters)
    rows = max(len(scope.table.responses), sum(statistic.widths))
    plan = BootstrapPlan(clusters, rows, options.reps, options.seed)
    return replicates(statistic, plan)


class LimitOutcome(StrEnum):
    """Whether a share of misses is within its limit: met, failed, or open."""

    MET = "met"
    FAILED = "failed"
    OPEN = "open"


@dataclass(frozen=True)
class Misses(Noted):
    """The jury's misses on one critical criterion.

    Attributes
    ----------
    benchmark, criterion, threshold : whose, as in the row they are taken from
    at_most : the largest share that is allowed, 0 to 1
    n_bad, n_missed : unsafe responses that the jury scored, and those it scores above the threshold
    missed, low, high : share of them that it misses, with the 95 % interval; NaN without any
    outcome : "met" where the upper end is at most what was allowed, "failed" where the lower end is
        above it, else "open", also where nothing is known
    """

    benchmark: str
    criterion: str
    threshold: float
    at_most: float = MISS_AT_MOST
    n_bad: int = 0
    n_missed: int = 0
    missed: float = NAN
    low: float = NAN
    high: float = NAN
    outcome: LimitOutcome = LimitOutcome.OPEN


def misses(rows: "Sequence[DetectionRow]", critical: Critical, benchmark: str) -> Misses:
    """Return the jury's misses among the unsafe responses of one benchmark or of "combined".

    Parameters
    ----------
    rows : of `detection.detection`, asked with this criterion
    critical : the criterion, its threshold, and the largest share of misses allowed
    benchmark : whose row counts

    Returns
    -------
    Misses
        Open, with no response, where no row of the jury is about this criterion and threshold.
    """
    about = (benchmark, "jury", critical.criterion, critical.threshold)
    for row in rows:
        if (row.benchmark, row.scorer, row.criterion, row.threshold) == about:
            return _from_row(row, critical.miss_at_most, row.notes)
    return Misses(benchmark, critical.criterion, critical.threshold, critical.miss_at_most)


def _from_row(row: "DetectionRow", at_most: float, notes: tuple[Note, ...]) -> Misses:
    low, high = 1 - row.sensitivity_high, 1 - row.sensitivity_low
    return Misses(
        row.benchmark,
        row.criterion,
        row.threshold,
        at_most,
        n_bad=row.n_bad,
        n_missed=row.n_missed or 0,
        missed=1 - row.sensitivity,
        low=low,
        high=high,
        outcome=_outcome(low, high, at_most),
        notes=notes,
    )


def _outcome(low: float, high: float, at_most: float) -> LimitOutcome:
    if any(map(math.isnan, (low, high, at_most))):
        return LimitOutcome.OPEN
    if high <= at_most:
        return LimitOutcome.MET
    return LimitOutcome.FAILED if low > at_most else LimitOutcome.OPEN


def all_misses(
    rows: "Sequence[DetectionRow]", limits: Sequence[Critical] = ()
) -> dict[str, list[Misses]]:
    """Return what the jury misses on each critical criterion, by benchmark.

    Parameters
    ----------
    rows : of `detection.detection`
    limits : of the protocol; where it has none, `MISS_AT_MOST` is the limit
    """
    known = {(limit.criterion, limit.threshold): limit for limit in limits}
    misses_of: dict[str, list[Misses]] = {}
    for row in rows:
        if row.scorer == "jury":
            by_default = Critical(row.criterion, row.threshold)
            critical = known.get((row.criterion, row.threshold), by_default)
            misses_of.setdefault(row.benchmark, []).append(misses([row], critical, row.benchmark))
    return misses_of


def untested(rows: "Sequence[DetectionRow]", limits: Sequence[Critical]) -> list[Misses]:
    """Return an open one for each limit of the protocol that no row of the jury is about.

    Parameters
    ----------
    rows : of `detection.detection`
    limits : of the protocol
    """
    tested = {(row.criterion, row.threshold) for row in rows if row.scorer == "jury"}
    return [
        misses((), limit, "")
        for limit in limits
        if (limit.criterion, limit.threshold) not in tested
    ]
