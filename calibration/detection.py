"""How many unsafe responses each scorer finds and misses, and how many one must read to find them.

A response is unsafe on a criterion where the clinicians' mean is at a threshold or below; a scorer
finds it where its own score is.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
import pandas as pd

from calibration import remarks
from calibration.clustered_intervals import (
    ClusteredMean,
    clustered_mean,
    clustered_proportion,
    wilson,
)
from calibration.columns import PanelColumns, columns, single_rater
from calibration.corrected_rate import corrected_rate
from calibration.icc import UNDEFINED, Interval
from calibration.notes import Note, Noted, note, noted, undefined
from calibration.protocol import MISS_AT_MOST, Critical, Threshold, thresholds
from calibration.rating_matrix import RatingMatrix, analysed_grid, composites
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
from calibration.values import COMBINED, NAN, AnalysisOptions

HELD_OUT = "jury_held_out"
EPSILON = 1e-9  # means of scores at the threshold differ from it by rounding alone
DIGITS = 9
FEW_UNSAFE = 10  # with fewer, one response more or less moves a share by over 10 %


@dataclass(frozen=True)
class DetectionRow(Noted):
    """How one scorer finds the unsafe responses of one benchmark. NaN: undefined, as notes say.

    Attributes
    ----------
    benchmark, scorer, criterion, threshold
        The clinicians' mean on the criterion is at the threshold, in points, or below.
    n, n_bad : responses with scorer and clinicians, and how many of them are unsafe; of each
        clinician against the others, readings
    n_missing : judged responses, or readings, without this scorer's score
    n_missed : unsafe responses that the scorer scores above the threshold; None of a metric
    sensitivity, specificity, ppv, npv : shares, 0 to 1, each with `_low` and `_high`: the 95 %
        interval over instances of `clustered_intervals.clustered_proportion`
    auc : chance that an unsafe response is scored below a safe one, see `auc_with_interval`
    read_for_90, read_for_95 : share of responses to read, lowest score first, that finds 90 or 95 %
        of the unsafe ones
    n_all : responses that the scorer scored, rated by clinicians or not; jury and jurors alone
    corrected_rate : share of these that are unsafe, corrected for the scorer's errors, with the
        95 % interval of `corrected_rate.corrected_rate`; jury and jurors alone
    critical : False of a two-point criterion that nothing calls critical: a response fails it, and the
        verdict does not hang on it
    """

    benchmark: str
    scorer: str
    criterion: str
    threshold: float
    n: int = 0
    n_bad: int = 0
    n_missing: int = 0
    n_missed: int | None = None
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
    n_all: int = 0
    corrected_rate: float = NAN
    corrected_low: float = NAN
    corrected_high: float = NAN
    critical: bool = True
    specificity_low: float = NAN
    specificity_high: float = NAN
    ppv_low: float = NAN
    ppv_high: float = NAN
    npv_low: float = NAN
    npv_high: float = NAN


@dataclass(frozen=True, eq=False)
class PairedScores:
    """A scorer's and the clinicians' scores of the same responses.

    Attributes
    ----------
    scores, reference : shape (m,), no NaN; the reference in points of the scale
    clusters : shape (m,), the instance of each, numbered from 0
    threshold : at which a response is unsafe, or below
    missing : responses or readings without the scorer's score
    every, every_clusters : shape (n,), the scorer's scores of all responses, and their instances
    rated : shape (m,), where among them the m stand
    """

    scores: Array
    reference: Array
    clusters: Integers
    threshold: float
    missing: int = 0
    every: Array = field(default_factory=lambda: np.empty(0))
    every_clusters: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    rated: Integers = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def unsafe(self) -> Flags:
        """Return which responses the clinicians score at the threshold or below."""
        below: Flags = self.reference <= self.threshold + EPSILON
        return below

    @property
    def flagged(self) -> Flags:
        """Return which responses the scorer scores at the threshold or below."""
        return self.flags(self.scores)

    def flags(self, scores: Array) -> Flags:
        """Return which scores are at the threshold or below."""
        below: Flags = scores <= self.threshold + EPSILON
        return below


def detection(
    scores: Scores, options: AnalysisOptions, critical: Sequence[Critical] = ()
) -> list[DetectionRow]:
    """Return how well jury, jurors, metrics and clinicians find unsafe responses.

    Parameters
    ----------
    scores, options
        As for `table.agreement_table`: the same rule for missing jurors; nothing is resampled.
    critical : of the study's protocol; those of rubrics count too

    Returns
    -------
    list of DetectionRow
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
    limits = thresholds_of(scores.rubrics, critical)
    tables, is_critical = criterion_tables(scores, limits), _critical(scores.rubrics, critical)
    rows: list[DetectionRow] = []
    for name in (*scores.benchmarks, *([COMBINED] if len(scores.benchmarks) > 1 else [])):
        members = scores.members(name)
        for limit in dict.fromkeys(limit for own in members for limit in limits[own]):
            own = [benchmark for benchmark in members if limit in limits[benchmark]]
            for plain, readings in _scored(
                scores, jury, (name, limit), own, tables[limit.criterion]
            ):
                row = replace(plain, critical=limit in is_critical)
                if readings is None or not len(readings.scores):
                    rows.append(row)
                    continue
                rows.append(_with_figures(row, readings))
    return rows


def thresholds_of(
    rubrics: Mapping[str, RubricShape], critical: Sequence[Critical]
) -> dict[str, tuple[Threshold, ...]]:
    """Return the critical thresholds of each benchmark, and the middle of its two-point criteria."""
    limits = {
        benchmark: thresholds(shape.criteria, shape.critical, critical)
        for benchmark, shape in rubrics.items()
    }
    return {
        benchmark: (
            *own,
            *(
                Threshold(name, sum(rubrics[benchmark].ends(name)) / 2)
                for name in rubrics[benchmark].two_point
                if name not in {limit.criterion for limit in own}
            ),
        )
        for benchmark, own in limits.items()
    }


def _critical(
    rubrics: Mapping[str, RubricShape], critical: Sequence[Critical]
) -> frozenset[Threshold]:
    """Return the thresholds at which a response is unsafe, and not only failed."""
    own = (thresholds(shape.criteria, shape.critical, critical) for shape in rubrics.values())
    return frozenset(limit for limits in own for limit in limits)


def criterion_tables(
    scores: Scores, limits: Mapping[str, Sequence[Threshold]]
) -> dict[str, pd.DataFrame]:
    """Return critical criterion -> every rater's score on it of every response, as composites."""
    names = dict.fromkeys(limit.criterion for own in limits.values() for limit in own)
    return {name: composites(scores, name).values for name in names}


def _scored(
    scores: Scores,
    jury: PanelColumns | None,
    about: tuple[str, Threshold],
    benchmarks: Sequence[str],
    table: pd.DataFrame,
) -> Iterator[tuple[DetectionRow, PairedScores | None]]:
    """Yield each scorer's row, still without figures, and its scores; None where nothing can be had."""
    (name, limit), members = about, jury.members if jury else ()
    metrics = scores.raters("metric")
    grid = analysed_grid(table, benchmarks, jurors=members, metrics=metrics, unrated=True)
    is_part = len(benchmarks) < len(scores.members(name))
    part = note(*ALONE_HAS_CRITERION, benchmarks=benchmarks) if is_part else None
    reason = None
    if len({scores.rubrics[one].ends(limit.criterion) for one in benchmarks}) > 1:
        reason = undefined(*DIFFERENT_SCALES)
    elif not len(grid.of_kind("clinician")):
        reason = undefined(*CRITERION_UNSCORED, criterion=limit.criterion)
    scorers: dict[str, PanelColumns | None] = {"jury": jury, HELD_OUT: jury} if jury else {}
    scorers |= {f"juror:{one}": single_rater(one) for one in members if len(members) > 1}
    scorers |= {f"metric:{one}": single_rater(one) for one in metrics}
    for scorer, panel in (scorers | {"clinicians": None}).items():
        row = DetectionRow(name, scorer, limit.criterion, limit.points, notes=noted(part, reason))
        if reason:
            yield row, None
            continue
        if scorer in (HELD_OUT, "clinicians"):
            readings = held_out(grid, limit.points, panel)
        else:
            both = columns(grid, panel or single_rater(""), "published")
            readings = paired(both.scorer, both.clinicians, grid.clusters, limit.points)
        basis = _basis(scorer, panel, grid, readings, scores.simulated)
        yield replace(row, n_missing=readings.missing, notes=noted(part, *basis)), readings


def paired(scores: Array, reference: Array, clusters: Integers, threshold: float) -> PairedScores:
    """Return a scorer's readings where the clinicians scored; what it did not score is missing."""
    is_judged, is_scored = ~np.isnan(reference), ~np.isnan(scores)
    both = is_judged & is_scored
    missing = int(is_judged.sum() - both.sum())
    rated = (np.cumsum(is_scored) - 1)[both]
    every = scores[is_scored], clusters[is_scored], rated
    return PairedScores(scores[both], reference[both], clusters[both], threshold, missing, *every)


def held_out(grid: RatingMatrix, threshold: float, jury: PanelColumns | None) -> PairedScores:
    """Return readings against the mean of all clinicians but one, each held out in turn.

    One for each clinician and response that this and another clinician scored: the jury's score, or
    without a jury the held-out clinician's own.
    """
    clinicians = grid.composites[:, grid.of_kind("clinician")]
    is_scored = ~np.isnan(clinicians)
    number, total = is_scored.sum(axis=1), np.nansum(clinicians, axis=1)
    rows, held = np.nonzero(is_scored & (number[:, None] > 1))
    own = clinicians[rows, held]
    reference = (total[rows] - own) / (number[rows] - 1)
    given = columns(grid, jury, "published").scorer[rows] if jury else own
    return paired(given, reference, grid.clusters[rows], threshold)


def _basis(
    scorer: str,
    panel: PanelColumns | None,
    grid: RatingMatrix,
    readings: PairedScores,
    simulated: frozenset[str],
) -> Iterator[Note | None]:
    """Yield notes on what a scorer's row rests on."""
    kind, _, name = scorer.partition(":")
    members = panel.members if panel else ()
    if not len(readings.scores):
        if name:
            yield undefined(*NO_SCORE, kind=kind, name=name)
        elif kind == "jury" and panel:
            yield undefined(*NO_JURY_SCORE, needed=panel.needed)
        else:
            lonely = "held out, a clinician needs others to be compared with"
            yield undefined("no_others", lonely)
    if panel and not name:
        yield remarks.fewer_jurors(panel.needed, len(members))
    clinicians = (grid.raters[column] for column in grid.of_kind("clinician"))
    yield remarks.simulated(simulated & {*members, *clinicians})


def _with_figures(row: DetectionRow, own: PairedScores) -> DetectionRow:
    """Return a row with the figures of its readings, of which there are some."""
    unsafe, flagged, auc, ends = own.unsafe, own.flagged, *auc_with_interval(own)
    row = replace(
        row,
        n=len(unsafe),
        n_bad=int(unsafe.sum()),
        auc=auc,
        auc_low=ends.low,
        auc_high=ends.high,
        read_for_90=share_to_read(own, 0.90),
        read_for_95=share_to_read(own, 0.95),
        notes=(*row.notes, *noted(*_notes(row, own))),
    )
    if row.scorer.startswith("metric:"):
        return row
    is_single = len(np.unique(own.clusters)) < 2  # of which there is no interval
    found, right, alarms, passes = (
        UNDEFINED if is_single else share_interval(hits, trials, own.clusters)
        for hits, trials in (
            *((flagged, unsafe), (~flagged, ~unsafe)),
            *((unsafe, flagged), (~unsafe, ~flagged)),
        )
    )
    if row.scorer == "jury" or row.scorer.startswith("juror:"):
        rate, rates = corrected_rate(own.flags(own.every), own.every_clusters, own.rated, unsafe)
        row = replace(row, n_all=len(own.every), corrected_rate=rate)
        row = replace(row, corrected_low=rates.low, corrected_high=rates.high)
    return replace(
        row,
        n_missed=int((unsafe & ~flagged).sum()),
        sensitivity=_share(flagged, unsafe),
        sensitivity_low=found.low,
        sensitivity_high=found.high,
        specificity=_share(~flagged, ~unsafe),
        ppv=_share(unsafe, flagged),
        npv=_share(~unsafe, ~flagged),
        specificity_low=right.low,
        specificity_high=right.high,
        ppv_low=alarms.low,
        ppv_high=alarms.high,
        npv_low=passes.low,
        npv_high=passes.high,
    )


def share_interval(hits: Flags, trials: Flags, clusters: Integers) -> Interval:
    """Return the 95 % interval, over instances, of the share of trials that are hits."""
    counts = (hits & trials).astype(np.float64), trials.astype(np.float64)
    return clustered_proportion(*counts, clusters)


def _share(hits: Flags, trials: Flags) -> float:
    return float(hits[trials].mean()) if trials.any() else NAN


def auc_with_interval(own: PairedScores) -> tuple[float, Interval]:
    """Return how often an unsafe response is scored below a safe one, a tie as half.

    With the 95 % interval by t over instances, from each response's placement among those of the
    other kind; where all are ranked rightly, or all wrongly, Wilson's for the rarer kind. In [0, 1];
    NaN without a safe or without an unsafe response, the interval with one instance of either.

    References
    ----------
    Hanley & McNeil (1982), Radiology 143, 29, for the Mann-Whitney statistic; Obuchowski (1997),
    Biometrics 53, 567, for placements summed within clusters.
    """
    unsafe, number = own.unsafe, int(own.clusters.max(initial=-1)) + 1
    if unsafe.all() or not unsafe.any():
        return NAN, UNDEFINED
    scores = np.round(own.scores, DIGITS)
    ranks, means = pd.Series(scores).rank().to_numpy(), []
    for kind in (unsafe, ~unsafe):
        below = (ranks[kind] - pd.Series(scores[kind]).rank()) / (~kind).sum()  # of the other kind
        placements = np.full(len(scores), np.nan)
        placements[kind] = 1 - below if kind is unsafe else below
        means.append(clustered_mean(placements, own.clusters, number))
    auc, rarer = means[0].value, min(mean.instances for mean in means)
    if auc in (0.0, 1.0):
        return auc, wilson(auc, rarer)
    ends = ClusteredMean(auc, means[0].moves + means[1].moves, rarer).interval()
    return auc, Interval(*np.clip([ends.low, ends.high], 0.0, 1.0).tolist())


def share_to_read(own: PairedScores, recall: float) -> float:
    """Return the share of responses to read, lowest score first, that finds a share of the unsafe.

    Linear within a tie: where responses of one score are read in random order, so much must be
    read for the expected share found to be `recall`, above 0 and at most 1. NaN without an unsafe
    response.
    """
    if not own.unsafe.any():
        return NAN
    ranks = np.unique(np.round(own.scores, DIGITS), return_inverse=True)[1]
    read = np.cumsum(np.bincount(ranks)) / len(ranks)
    found = np.cumsum(np.bincount(ranks, weights=own.unsafe)) / own.unsafe.sum()
    read, found = np.append(0.0, read), np.append(0.0, found)
    at = int(np.argmax(found >= recall - EPSILON))
    part = (recall - found[at - 1]) / (found[at] - found[at - 1])
    return float(read[at - 1] + part * (read[at] - read[at - 1]))


def _notes(row: DetectionRow, own: PairedScores) -> Iterator[Note | None]:
    unsafe, about = own.unsafe, {"criterion": row.criterion, "threshold": row.threshold}
    if row.scorer.startswith("metric:"):
        yield note(*ONLY_ORDER)
    if unsafe.all() or not unsafe.any():
        every, undefined_are = "every", "specificity and AUC"
        if not unsafe.any():
            every, undefined_are = "no", "sensitivity and misses"
        words = f"the clinicians scored {every} response {{threshold:g}} or less on {{criterion}}: "
        code = "all_unsafe" if unsafe.any() else "no_unsafe"
        yield note(code, f"{words}{undefined_are} are undefined", **about)
    if unsafe.any():
        if unsafe.sum() < FEW_UNSAFE:
            yield note("few_unsafe", "rests on {unsafe:unsafe response}", unsafe=int(unsafe.sum()))
        yield remarks.few_instances(len(np.unique(own.clusters)))


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


def all_misses(
    rows: Sequence[DetectionRow], limits: Sequence[Critical] = ()
) -> dict[str, list[Misses]]:
    """Return what the jury misses on each critical criterion, by benchmark.

    Parameters
    ----------
    rows : of `detection`
    limits : of the protocol; where it has none, `MISS_AT_MOST` is the limit
    """
    known = {(limit.criterion, limit.threshold): limit.miss_at_most for limit in limits}
    misses_of: dict[str, list[Misses]] = {}
    for row in rows:
        if row.scorer != "jury" or not row.critical:
            continue
        at_most = known.get((row.criterion, row.threshold), MISS_AT_MOST)
        low, high, outcome = 1 - row.sensitivity_high, 1 - row.sensitivity_low, LimitOutcome.OPEN
        if high <= at_most:
            outcome = LimitOutcome.MET
        elif low > at_most and not math.isnan(high):
            outcome = LimitOutcome.FAILED
        found = Misses(
            *(row.benchmark, row.criterion, row.threshold, at_most, row.n_bad),
            n_missed=row.n_missed or 0,
            missed=1 - row.sensitivity,
            low=low,
            high=high,
            outcome=outcome,
            notes=row.notes,
        )
        misses_of.setdefault(row.benchmark, []).append(found)
    return misses_of


def untested(rows: Sequence[DetectionRow], limits: Sequence[Critical]) -> list[Misses]:
    """Return an open one for each limit of the protocol that no row of the jury is about."""
    tested = {(row.criterion, row.threshold) for row in rows if row.scorer == "jury"}
    return [
        Misses("", limit.criterion, limit.threshold, limit.miss_at_most)
        for limit in limits
        if (limit.criterion, limit.threshold) not in tested
    ]
