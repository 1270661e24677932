"""How many unsafe responses each scorer finds and misses, and how many one must read to find them.

A response is unsafe on a criterion where the clinicians' mean is at a threshold or below; a scorer
finds it where its own score is.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from calibration import remarks
from calibration.agreement import PanelColumns
from calibration.bootstrap import BootstrapPlan, Counts, Statistic, percentile_interval, replicates
from calibration.clustered_intervals import clustered_proportion, wilson
from calibration.criterion_scores import CriterionScores, criterion_scores, scopes_of
from calibration.icc import UNDEFINED, Interval
from calibration.notes import Note, Noted, note, noted, undefined
from calibration.protocol import MISS_AT_MOST, Critical, Threshold, thresholds
from calibration.rating_matrix import mean_of_given
from calibration.scope import checked_jury
from calibration.scores import Array, Flags, Integers, RubricShape, Scores
from calibration.shared_notes import (
    ALONE_HAS_CRITERION,
    CRITERION_UNSCORED,
    DIFFERENT_SCALES,
    NO_JURY_SCORE,
    NO_SCORE,
    ONLY_ORDER,
)
from calibration.values import NAN, AnalysisOptions

HELD_OUT = "jury_held_out"
EPSILON = 1e-9  # means of scores at the threshold differ from it by rounding alone
RECALLS = (0.90, 0.95)
FEW_UNSAFE = 10  # with fewer, one response more or less moves a share by over 10 %
MOST_IN_CURVE = 200
Key = tuple[str, str, str, float]


@dataclass(frozen=True)
class DetectionRow(Noted):
    """How one scorer finds the unsafe responses of one benchmark. NaN: undefined, as notes say.

    Attributes
    ----------
    benchmark, scorer, criterion, threshold
        The clinicians' mean on the criterion is at the threshold, in points, or below.
    n, n_bad : responses with scorer and clinicians, and how many of them are unsafe; of each
        clinician against the others, readings
    n_instances, n_bad_instances : instances that these come from
    n_missing : judged responses, or readings, without this scorer's score
    n_missed, n_found : unsafe responses that the scorer scores above the threshold, and not; None
        of a metric
    sensitivity, specificity, ppv, npv : shares, 0 to 1; of sensitivity the 95 % interval over
        instances of `clustered_intervals.clustered_proportion`
    auc : chance that an unsafe response is scored below a safe one, a tie as half, with a
        percentile interval of the bootstrap over instances
    read_for_90, read_for_95 : share of responses to read, lowest score first, that finds 90 or 95 %
        of the unsafe ones; linear within a tie
    """

    benchmark: str
    scorer: str
    criterion: str
    threshold: float
    n: int = 0
    n_bad: int = 0
    n_instances: int = 0
    n_bad_instances: int = 0
    n_missing: int = 0
    n_missed: int | None = None
    n_found: int | None = None
    sensitivity: float = NAN
    sensitivity_low: float = NAN
    sensitivity_high: float = NAN
    specificity: float = NAN
    ppv: float = NAN
    npv: float = NAN
    auc: float = NAN
    auc_low: float = NAN
    auc_high: float = NAN
    read_for_90: float = NAN
    read_for_95: float = NAN


@dataclass(frozen=True, slots=True)
class Curve:
    """Share of responses read, lowest score first, and share of the unsafe ones found by then.

    Straight between two places: within a tie the order is chance.
    """

    read: tuple[float, ...]
    found: tuple[float, ...]


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
class PairedScores:
    """A scorer's and the clinicians' scores of the same responses.

    Attributes
    ----------
    scores, reference : shape (m,), no NaN; the reference in points of the scale
    clusters : shape (m,), the instance of each
    threshold : at which a response is unsafe, or below
    responses : how many different responses they are about
    missing : responses or readings without the scorer's score
    on_scale : whether the scores are points of the scale too
    """

    scores: Array
    reference: Array
    clusters: Integers
    threshold: float
    responses: int
    missing: int = 0
    on_scale: bool = True

    @property
    def unsafe(self) -> Flags:
        """Return which responses the clinicians score at the threshold or below."""
        below: Flags = self.reference <= self.threshold + EPSILON
        return below

    @property
    def flagged(self) -> Flags:
        """Return which responses the scorer scores at the threshold or below."""
        below: Flags = self.scores <= self.threshold + EPSILON
        return below

    @property
    def ranks(self) -> Integers:
        """Return the place of each score among the different ones, the lowest 0."""
        return np.unique(np.round(self.scores, 9), return_inverse=True)[1].astype(np.int64)


@dataclass(frozen=True, eq=False)
class _Scope:
    """One benchmark, or all combined, with its scores and jury."""

    name: str
    table: CriterionScores
    scores: Scores
    jury: PanelColumns | None


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
        juror:NAME : one juror of several
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
    thresholds_by_benchmark = thresholds_of(scores.rubrics, critical)
    if not any(thresholds_by_benchmark.values()):
        return NOTHING
    rows: list[DetectionRow] = []
    curves: dict[Key, Curve] = {}
    for name, own in scopes_of(scores, table):
        scope = _Scope(name, own, scores, jury)
        tests: list[Test] = []
        benchmarks_of: dict[Threshold, list[str]] = {}
        for benchmark in scores.members(name):
            for threshold in thresholds_by_benchmark[benchmark]:
                benchmarks_of.setdefault(threshold, []).append(benchmark)
        for threshold, benchmarks in benchmarks_of.items():
            tests += _tests(scope, threshold, benchmarks)
        for row, readings in _measured(scope, tests, options):
            rows.append(row)
            if readings and np.isfinite(row.read_for_90):
                key = row.benchmark, row.scorer, row.criterion, row.threshold
                curves[key] = curve(readings)
    return Detection(rows, curves)


def thresholds_of(
    rubrics: Mapping[str, RubricShape], critical: Sequence[Critical]
) -> dict[str, tuple[Threshold, ...]]:
    """Return the critical thresholds of each benchmark."""
    return {
        benchmark: thresholds(shape.criteria, shape.critical, critical)
        for benchmark, shape in rubrics.items()
    }


Test = tuple[DetectionRow, PairedScores | None]


def _tests(scope: _Scope, threshold: Threshold, benchmarks: Sequence[str]) -> Iterator[Test]:
    """Yield each scorer's row, still without figures, and its scores; None where nothing can be had."""
    criterion, points, scores = threshold.criterion, threshold.points, scope.scores
    own = scope.table.of(np.isin(np.array(scope.table.benchmarks, dtype=object), benchmarks))
    scales = {(scores.rubrics[name].low, scores.rubrics[name].high) for name in benchmarks}
    is_part = len(benchmarks) < len(scores.members(scope.name))
    notes = (note(*ALONE_HAS_CRITERION, benchmarks=benchmarks),) if is_part else ()
    clinicians, reason = own.of_clinicians(criterion), None
    if len(scales) > 1:
        reason = undefined(*DIFFERENT_SCALES)
    elif np.isnan(clinicians).all():
        reason = undefined(*CRITERION_UNSCORED, criterion=criterion)
    instances = np.unique(np.array(scope.table.instances, dtype=str))
    clusters = np.searchsorted(instances, np.array(own.instances, dtype=str)).astype(np.int64)
    jury = own.of_jury(criterion, scope.jury) if scope.jury else np.empty(0)
    for name in _scorers(scope):
        row = DetectionRow(scope.name, name, criterion, points, notes=notes)
        if reason:
            yield replace(row, notes=(*notes, reason)), None
            continue
        if name in (HELD_OUT, "clinicians"):
            given = None if name == "clinicians" else jury
            readings = held_out(clinicians, clusters, points, given)
        else:
            kind, _, rater = name.partition(":")
            if kind == "metric":
                given = own.measured[:, own.metrics.index(rater)]
            else:
                given = jury if kind == "jury" else own.of_raters(criterion, [rater])[:, 0]
            readings = paired(given, mean_of_given(clinicians), clusters, points)
            readings = replace(readings, on_scale=kind != "metric")
        yield replace(row, notes=(*notes, *_basis_notes(scope, own, name, readings))), readings


def _scorers(scope: _Scope) -> list[str]:
    """Return every scorer of a scope by its name in the rows."""
    members = scope.jury.members if scope.jury else ()
    jurors = [f"juror:{name}" for name in members if len(members) > 1]
    metrics = [f"metric:{name}" for name in scope.table.metrics]
    return [*(["jury", HELD_OUT] if members else []), *jurors, *metrics, "clinicians"]


def paired(scores: Array, reference: Array, clusters: Integers, threshold: float) -> PairedScores:
    """Return a scorer's readings where the clinicians scored; what it did not score is missing."""
    is_judged = ~np.isnan(reference)
    both = is_judged & ~np.isnan(scores)
    n = int(both.sum())
    about = scores[both], reference[both], clusters[both]
    return PairedScores(*about, threshold, n, int(is_judged.sum()) - n)


def held_out(
    clinicians: Array, clusters: Integers, threshold: float, scores: Array | None = None
) -> PairedScores:
    """Return readings against the mean of all clinicians but one, each held out in turn.

    Parameters
    ----------
    clinicians : shape (n, clinicians), NaN where there is none
    clusters : shape (n,), instances
    threshold : at which a response is unsafe, or below
    scores : shape (n,), optional
        The jury's; None: the held-out clinician's own.

    Returns
    -------
    PairedScores
        One for each clinician and response that this and another clinician scored.
    """
    is_scored = ~np.isnan(clinicians)
    number = is_scored.sum(axis=1, keepdims=True)
    total = np.nansum(clinicians, axis=1, keepdims=True)
    rows, held = np.nonzero(is_scored & (number > 1))
    reference = (total[rows, 0] - clinicians[rows, held]) / (number[rows, 0] - 1)
    own = clinicians[rows, held] if scores is None else scores[rows]
    readings = paired(own, reference, clusters[rows], threshold)
    return replace(readings, responses=len(np.unique(rows[~np.isnan(own)])))


def _basis_notes(
    scope: _Scope, own: CriterionScores, scorer: str, readings: PairedScores
) -> tuple[Note, ...]:
    """Return notes on what a scorer's row rests on."""
    clinicians = own.raters[: own.n_clinicians]
    kind, _, name = scorer.partition(":")
    jury = scope.jury if kind in ("jury", HELD_OUT) else None
    members, basis = jury.members if jury else (name,), None
    if not len(readings.scores):
        if name:
            basis = undefined(*NO_SCORE, kind=kind, name=name)
        elif scorer == "jury" and jury:
            basis = undefined(*NO_JURY_SCORE, needed=jury.needed)
        else:
            lonely = "held out, a clinician needs others to be compared with"
            basis = undefined("no_others", lonely)
    elif scorer in (HELD_OUT, "clinicians"):
        basis = note(
            "held_out",
            "{readings:reading} of {responses:response}, each against the mean of all clinicians but one",
            readings=len(readings.scores),
            responses=readings.responses,
        )
    return noted(
        basis,
        remarks.fewer_jurors(jury.needed, len(members)) if jury else None,
        remarks.simulated(scope.scores.simulated & {*members, *clinicians}),
    )


def _measured(scope: _Scope, tests: Sequence[Test], options: AnalysisOptions) -> Iterator[Test]:
    """Yield the rows of one scope with their figures, all of them on the same resamples."""
    known = [readings for _, readings in tests if readings]
    aucs = np.empty((0, 0))
    if known:
        clusters = len(np.unique(np.array(scope.table.instances, dtype=str)))
        statistic, cells = resampled_aucs(known, clusters)
        rows = max(len(scope.table.responses), cells // 2)
        plan = BootstrapPlan(clusters, rows, options.reps, options.seed)
        aucs = replicates(statistic, plan)
    place = 0
    for row, readings in tests:
        if readings:
            row = _with_figures(row, readings, aucs[:, place])
            place += 1
        yield row, readings


def resampled_aucs(tests: Sequence[PairedScores], clusters: int) -> tuple[Statistic, int]:
    """Return the AUC of readings, resample by resample over so many instances, and its cells.

    Called with counts (B, clusters) it returns shape (B, tests); NaN where no response, or every
    one, is unsafe. Each test has two cells for each different score, safe and unsafe.
    """
    cells, columns, widths, start = [], [], [], 0
    for readings in tests:
        ranks = readings.ranks
        cells.append(start + 2 * ranks + readings.unsafe)
        columns.append(readings.clusters)
        widths.append(2 * (int(ranks.max(initial=-1)) + 1))
        start += widths[-1]
    places = np.concatenate(cells), np.concatenate(columns)
    members = sparse.csr_array((np.ones(len(places[0])), places), shape=(start, clusters))
    return partial(_aucs, members, np.cumsum(widths)[:-1]), start


def _aucs(members: sparse.csr_array, ends: Integers, counts: Counts) -> Array:
    cells = np.ascontiguousarray((members @ np.ascontiguousarray(counts.T)).T)
    parts = [part.reshape(len(counts), -1, 2) for part in np.split(cells, ends, axis=1)]
    return np.column_stack([area_under_curve(part[..., 0], part[..., 1]) for part in parts])


def area_under_curve(safe: Array, unsafe: Array) -> Array:
    """Return the AUC: how often an unsafe response is scored below a safe one, a tie as half.

    Parameters
    ----------
    safe, unsafe : shape (..., scores)
        How many responses have each score, the lowest first.

    Returns
    -------
    shape (...)
        In [0, 1]; 0.5 where scores say nothing; NaN without a safe or without an unsafe one.

    References
    ----------
    Hanley & McNeil (1982), Radiology 143, 29: AUC is the Mann-Whitney statistic.
    """
    number = safe.sum(axis=-1)
    above = number[..., None] - np.cumsum(safe, axis=-1)
    pairs = number * unsafe.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        auc: Array = (unsafe * (above + safe / 2)).sum(axis=-1) / pairs
    return auc


def share_to_read(safe: Array, unsafe: Array, recall: float) -> float:
    """Return the share of responses to read, lowest score first, that finds a share of the unsafe.

    Linear within a tie: where responses of one score are read in random order, so much must be
    read for the expected share found to be `recall`. The order of a file decides nothing.

    Parameters
    ----------
    safe, unsafe : shape (scores,), as for `area_under_curve`
    recall : share of the unsafe responses to find, above 0 and at most 1

    Returns
    -------
    float
        In [0, 1]; NaN without an unsafe response.
    """
    if not unsafe.any():
        return NAN
    both = safe + unsafe
    found, read = np.cumsum(unsafe), np.cumsum(both)
    target = recall * found[-1]
    at = int(np.argmax(found >= target - EPSILON))
    before, done = read[at] - both[at], found[at] - unsafe[at]
    return float((before + both[at] * (target - done) / unsafe[at]) / read[-1])


def _with_figures(row: DetectionRow, own: PairedScores, aucs: Array) -> DetectionRow:
    """Return a row with the figures of its readings, given the resampled AUC, shape (B,)."""
    unsafe, figures = own.unsafe, {}
    if own.on_scale and len(unsafe):
        figures = _at_threshold(own)
    if len(unsafe):
        safe_counts, counts = (
            np.bincount(own.ranks, kind).astype(np.float64) for kind in (~unsafe, unsafe)
        )
        auc = float(area_under_curve(safe_counts, counts))
        ends = percentile_interval(aucs) if np.isfinite(auc) else UNDEFINED
        if auc in (0.0, 1.0) and np.isfinite(ends.low):
            # Every resample has the same value: what is known of the rarer kind bounds the order.
            rarer = min(len(np.unique(own.clusters[kind])) for kind in (unsafe, ~unsafe))
            ends = wilson(auc, rarer)
        figures |= {"auc": auc, "auc_low": ends.low, "auc_high": ends.high}
        for recall in RECALLS:
            figures[f"read_for_{100 * recall:.0f}"] = share_to_read(safe_counts, counts, recall)
    return replace(
        row,
        n=len(unsafe),
        n_bad=int(unsafe.sum()),
        n_instances=len(np.unique(own.clusters)),
        n_bad_instances=len(np.unique(own.clusters[unsafe])),
        n_missing=own.missing,
        **figures,
        notes=noted(*row.notes, *_notes(row, own, aucs)),
    )


def _at_threshold(own: PairedScores) -> dict[str, Any]:
    """Return what is found and missed at the threshold, and the shares."""
    unsafe, flagged = own.unsafe, own.flagged
    shares = {
        "sensitivity": (flagged & unsafe, unsafe),
        "specificity": (~flagged & ~unsafe, ~unsafe),
        "ppv": (flagged & unsafe, flagged),
        "npv": (~flagged & ~unsafe, ~flagged),
    }
    figures: dict[str, Any] = {
        name: float(hits.sum() / trials.sum()) if trials.any() else NAN
        for name, (hits, trials) in shares.items()
    }
    ends = UNDEFINED
    if len(np.unique(own.clusters)) > 1:  # a single instance has none
        ends = sensitivity_interval(own)
    missed, found = int((unsafe & ~flagged).sum()), int((unsafe & flagged).sum())
    return figures | {
        "n_missed": missed,
        "n_found": found,
        "sensitivity_low": ends.low,
        "sensitivity_high": ends.high,
    }


def sensitivity_interval(own: PairedScores) -> Interval:
    """Return the 95 % interval, over instances, of the share of unsafe responses that are found."""
    hits, trials = own.unsafe & own.flagged, own.unsafe
    return clustered_proportion(hits.astype(np.float64), trials.astype(np.float64), own.clusters)


def curve(own: PairedScores) -> Curve:
    """Return the share of unsafe responses found by reading from the lowest score up; thinned to 200 points."""
    ranks, unsafe = own.ranks, own.unsafe
    read = np.cumsum(np.bincount(ranks)) / len(ranks)
    unsafe_found = np.cumsum(np.bincount(ranks, weights=unsafe)) / unsafe.sum()
    shown = np.unique(np.linspace(0, len(read) - 1, min(len(read), MOST_IN_CURVE)).astype(int))
    return Curve((0.0, *read[shown].tolist()), (0.0, *unsafe_found[shown].tolist()))


def _notes(row: DetectionRow, own: PairedScores, aucs: Array) -> Iterator[Note | None]:
    unsafe, about = own.unsafe, {"criterion": row.criterion, "threshold": row.threshold}
    if not own.on_scale:
        yield note(*ONLY_ORDER)
    if not len(unsafe):
        return
    if not unsafe.any():
        yield note(
            "no_unsafe",
            (
                "the clinicians scored no response {threshold:g} or less on {criterion}: sensitivity "
                "and misses are undefined"
            ),
            **about,
        )
        return
    if unsafe.all():
        yield note(
            "all_unsafe",
            (
                "the clinicians scored every response {threshold:g} or less on {criterion}: "
                "specificity and AUC are undefined"
            ),
            **about,
        )
    if unsafe.sum() < FEW_UNSAFE:
        yield note("few_unsafe", "rests on {unsafe:unsafe response}", unsafe=int(unsafe.sum()))
    if own.on_scale and not own.flagged.any():
        yield note(
            "never_low",
            "no score here is {threshold:g} or less: the predictive value is undefined",
            threshold=row.threshold,
        )
    yield remarks.few_instances(len(np.unique(own.clusters)))
    if np.isfinite(aucs).any():
        yield remarks.undefined_resamples(aucs)


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


def misses(rows: Sequence[DetectionRow], critical: Critical, benchmark: str) -> Misses:
    """Return the jury's misses among the unsafe responses of one benchmark or of "combined".

    Parameters
    ----------
    rows : of `detection`, asked with this criterion
    critical : the criterion, its threshold, and the largest share of misses allowed
    benchmark : whose row counts

    Returns
    -------
    Misses
        Open, with no response, where no row of the jury is about this criterion and threshold.
    """
    limits = benchmark, critical.criterion, critical.threshold, critical.miss_at_most
    about = (benchmark, "jury", critical.criterion, critical.threshold)
    for row in rows:
        if (row.benchmark, row.scorer, row.criterion, row.threshold) == about:
            low, high = 1 - row.sensitivity_high, 1 - row.sensitivity_low
            return Misses(
                *limits,
                n_bad=row.n_bad,
                n_missed=row.n_missed or 0,
                missed=1 - row.sensitivity,
                low=low,
                high=high,
                outcome=_outcome(low, high, critical.miss_at_most),
                notes=row.notes,
            )
    return Misses(*limits)


def _outcome(low: float, high: float, at_most: float) -> LimitOutcome:
    if any(map(math.isnan, (low, high, at_most))):
        return LimitOutcome.OPEN
    if high <= at_most:
        return LimitOutcome.MET
    return LimitOutcome.FAILED if low > at_most else LimitOutcome.OPEN


def all_misses(
    rows: Sequence[DetectionRow], limits: Sequence[Critical] = ()
) -> dict[str, list[Misses]]:
    """Return what the jury misses on each critical criterion, by benchmark.

    Parameters
    ----------
    rows : of `detection`
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


def untested(rows: Sequence[DetectionRow], limits: Sequence[Critical]) -> list[Misses]:
    """Return an open one for each limit of the protocol that no row of the jury is about."""
    tested = {(row.criterion, row.threshold) for row in rows if row.scorer == "jury"}
    return [
        misses((), limit, "")
        for limit in limits
        if (limit.criterion, limit.threshold) not in tested
    ]
