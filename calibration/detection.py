"""Unsafe responses: how many the jury finds and misses, and how many one must read to find them.

A response is unsafe on a criterion where the clinicians' mean is at a threshold or below; a scorer
finds it where its own score is.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from calibration import remarks
from calibration.agreement import Panel
from calibration.bootstrap import Resampling, replicates
from calibration.codes import NoteCode as Code
from calibration.criterion_scores import CriterionScores, criterion_scores, scopes_of
from calibration.detection_row import (
    Curve,
    DetectionRow,
    Judged,
    Readings,
    curve,
    detection_row,
    rankings,
    undefined_row,
)
from calibration.protocol import Critical
from calibration.rating_matrix import mean_of_given
from calibration.scope import Asked, Sitting, checked
from calibration.scores import COMBINED, Array, Integers, RubricShape, Scores
from calibration.values import Note, note, noted

HELD_OUT = "jury_held_out"
Key = tuple[str, str, str, float]


@dataclass(frozen=True, eq=False)
class Detection:
    """What a study says of unsafe responses.

    Attributes
    ----------
    rows : as `calibrate --json` has them
    curves : (benchmark, scorer, criterion, threshold) -> what reading in its order finds
    """

    rows: Sequence[DetectionRow] = ()
    curves: Mapping[Key, Curve] = field(default_factory=dict)


NOTHING = Detection()


@dataclass(frozen=True, slots=True)
class Threshold:
    """A criterion, the highest score that is unsafe, and whether somebody called it critical."""

    criterion: str
    points: float
    critical: bool


@dataclass(frozen=True, eq=False)
class _Scope:
    """One benchmark, or all of them, and what is asked of it."""

    name: str
    table: CriterionScores
    scores: Scores
    jury: Panel | None
    thresholds: Mapping[str, Sequence[Threshold]]

    @property
    def members(self) -> Sequence[str]:
        """Return its benchmarks."""
        return self.scores.benchmarks if self.name == COMBINED else (self.name,)


def detection(
    scores: Scores, sitting: Sitting, asked: Asked, critical: Sequence[Critical] = ()
) -> Detection:
    """Return how well jury, jurors, metrics and clinicians find unsafe responses.

    Parameters
    ----------
    scores, sitting, asked
        As for `table.agreement_table`: the same seed, resamples and rule for missing jurors.
    critical : of the study's protocol; those of rubrics count too

    Returns
    -------
    Detection
        For each benchmark, then "combined" if there are several, and each critical criterion
        and threshold; on a benchmark without any, each criterion (or the one asked for) at the
        second point of its scale. Scorers:

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
    jury = checked(scores, sitting, asked)
    table = criterion_scores(scores, jury.members if jury else ())
    thresholds = thresholds_of(scores.rubrics, critical, asked.criterion)
    rows: list[DetectionRow] = []
    curves: dict[Key, Curve] = {}
    for name, own in scopes_of(scores, table):
        for row, readings in _rows(_Scope(name, own, scores, jury, thresholds), asked):
            rows.append(row)
            if readings is not None and np.isfinite(row.read_for_90):
                key = row.benchmark, row.scorer, row.criterion, row.threshold
                curves[key] = curve(readings, row.threshold)
    return Detection(rows, curves)


def thresholds_of(
    rubrics: Mapping[str, RubricShape], critical: Sequence[Critical], criterion: str | None = None
) -> dict[str, tuple[Threshold, ...]]:
    """Return the thresholds of each benchmark: the critical ones, or one for each criterion."""
    found = {}
    for name, shape in rubrics.items():
        fixed = [(one.criterion, one.threshold) for one in critical]
        pairs = dict.fromkeys([*shape.critical, *fixed])
        own = [Threshold(one, points, True) for one, points in pairs if one in shape.criteria]
        wanted = [one for one in shape.criteria if criterion in (None, one)]
        found[name] = tuple(own or (Threshold(one, shape.low + 1.0, False) for one in wanted))
    return found


def _rows(scope: _Scope, asked: Asked) -> Iterator[tuple[DetectionRow, Readings | None]]:
    """Yield the rows of one scope, all of them on the same resamples, with their readings."""
    tests: list[tuple[Judged, Readings]] = []
    for one, benchmarks in _asked(scope):
        own, shapes = _of(scope, benchmarks), [scope.scores.rubrics[name] for name in benchmarks]
        scale = range(shapes[0].low, shapes[0].high + 1)
        about = Judged(scope.name, "", one.criterion, one.points, one.critical, scale)
        about = replace(about, notes=noted(_alone(scope, benchmarks)))
        if why := _why_undefined(own, one.criterion, shapes):
            for name in _scorers(scope):
                yield undefined_row(replace(about, scorer=name), why), None
            continue
        tests += _tests(scope, own, about)
    drawn = _drawn(scope, tests, asked) if tests else np.empty((0, 0))
    for place, (about, readings) in enumerate(tests):
        yield detection_row(about, readings, drawn[:, 3 * place : 3 * place + 3]), readings


def _asked(scope: _Scope) -> Iterator[tuple[Threshold, list[str]]]:
    """Yield each threshold of a scope with the benchmarks that have it; critical ones alone if any."""
    by: dict[tuple[str, float], list[str]] = {}
    every = [(name, one) for name in scope.members for one in scope.thresholds[name]]
    fixed = {(one.criterion, one.points) for _, one in every if one.critical}
    for name, one in every:
        by.setdefault((one.criterion, one.points), []).append(name)
    for (criterion, points), benchmarks in by.items():
        is_critical = (criterion, points) in fixed
        if is_critical or not fixed:
            yield Threshold(criterion, points, is_critical), benchmarks


def _of(scope: _Scope, benchmarks: Sequence[str]) -> CriterionScores:
    """Return the scores of some benchmarks of a scope."""
    return scope.table.of(np.isin(np.array(scope.table.benchmarks, dtype=object), benchmarks))


def _alone(scope: _Scope, benchmarks: Sequence[str]) -> Note | None:
    if len(benchmarks) == len(scope.members):
        return None
    return note(Code.ALONE_HAS_CRITERION, benchmarks=benchmarks)


def _why_undefined(
    own: CriterionScores, criterion: str, shapes: Sequence[RubricShape]
) -> Note | None:
    """Return why nobody can be held against a threshold, or None."""
    if len({(one.low, one.high) for one in shapes}) > 1:
        return note(Code.DIFFERENT_SCALES)
    if np.isnan(own.of_clinicians(criterion)).all():
        return note(Code.CRITERION_UNSCORED, criterion=criterion)
    return None


def _scorers(scope: _Scope) -> list[str]:
    """Return every scorer of a scope by its name in the rows."""
    jury = ["jury", HELD_OUT] if scope.jury else []
    jurors = [f"juror:{name}" for name in (scope.jury.members if scope.jury else ())]
    return [*jury, *jurors, *(f"metric:{name}" for name in scope.table.metrics), "clinicians"]


def _tests(scope: _Scope, own: CriterionScores, about: Judged) -> Iterator[tuple[Judged, Readings]]:
    """Yield what each scorer says of the responses that clinicians scored on a criterion."""
    clinicians, clusters = own.of_clinicians(about.criterion), _numbers(scope, own)
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
        notes = (*about.notes, *_about(scope, own, name, readings))
        yield replace(about, scorer=name, notes=notes), readings


def _numbers(scope: _Scope, own: CriterionScores) -> Integers:
    """Return the instance of each response by its number among all of the scope."""
    known = np.unique(np.array(scope.table.instances, dtype=str))
    return np.searchsorted(known, np.array(own.instances, dtype=str)).astype(np.int64)


def _compared(scores: Array, reference: Array, clusters: Integers) -> Readings:
    """Return a scorer's readings where the clinicians scored; what it did not score is missing."""
    judged = ~np.isnan(reference)
    both = judged & ~np.isnan(scores)
    missing = int(judged.sum() - both.sum())
    return Readings(scores[both], reference[both], clusters[both], int(both.sum()), missing)


def held_out(clinicians: Array, clusters: Integers, scores: Array | None = None) -> Readings:
    """Return readings against the mean of all clinicians but one, each held out in turn.

    Parameters
    ----------
    clinicians : shape (n, clinicians), NaN where there is none
    clusters : shape (n,), instances
    scores : shape (n,), optional
        The jury's; None: the held-out clinician's own.

    Returns
    -------
    Readings
        One for each clinician and response that this and another clinician scored.
    """
    given = ~np.isnan(clinicians)
    number, total = given.sum(axis=1, keepdims=True), np.nansum(clinicians, axis=1, keepdims=True)
    rows, held = np.nonzero(given & (number > 1))
    reference = (total[rows, 0] - clinicians[rows, held]) / (number[rows, 0] - 1)
    own = clinicians[rows, held] if scores is None else scores[rows]
    scored = ~np.isnan(own)
    return Readings(
        own[scored],
        reference[scored],
        clusters[rows][scored],
        len(np.unique(rows[scored])),
        int((~scored).sum()),
    )


def _about(scope: _Scope, own: CriterionScores, scorer: str, readings: Readings) -> Iterator[Note]:
    """Yield what a scorer's row rests on."""
    clinicians = own.raters[: own.n_clinicians]
    kind, _, name = scorer.partition(":")
    members = scope.jury.members if scope.jury and kind in ("jury", HELD_OUT) else (name,)
    if not len(readings.scores):
        yield _unscored(scope, scorer, clinicians)
    elif scorer in (HELD_OUT, "clinicians"):
        yield note(Code.HELD_OUT, readings=len(readings.scores), responses=readings.responses)
    if scope.jury and kind in ("jury", HELD_OUT):
        yield from noted(remarks.fewer_jurors(scope.jury.needed, len(members)))
    yield from noted(remarks.simulated(scope.scores.simulated & {*members, *clinicians}))


def _unscored(scope: _Scope, scorer: str, clinicians: Sequence[str]) -> Note:
    kind, _, name = scorer.partition(":")
    if name:
        return note(Code.NO_SCORE, kind=kind, name=name)
    if scorer == "jury" and scope.jury:
        return note(Code.NO_JURY_SCORE, needed=scope.jury.needed)
    return note(Code.NO_OTHERS)


def _drawn(scope: _Scope, tests: Sequence[tuple[Judged, Readings]], asked: Asked) -> Array:
    """Return the resampled AUC and shares to read of every test, shape (B, 3 tests)."""
    clusters = len(np.unique(np.array(scope.table.instances, dtype=str)))
    statistic = rankings([(own, about.threshold) for about, own in tests], clusters)
    rows = max(len(scope.table.responses), sum(statistic.widths))
    how = Resampling(clusters, rows, asked.reps, asked.seed, asked.executor)
    return replicates(statistic, how)
