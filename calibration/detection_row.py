"""One row on unsafe responses: sensitivity, specificity, AUC and shares to read, with intervals."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from calibration import remarks
from calibration.bootstrap import Counts, percentile_interval
from calibration.clustered_intervals import clustered_proportion, wilson
from calibration.icc import UNDEFINED, Interval
from calibration.notes import Note, Noted, note, noted
from calibration.scores import Array, Flags, Integers
from calibration.shared_notes import ONLY_ORDER
from calibration.values import NAN

EPSILON = 1e-9  # means of scores at the threshold differ from it by rounding alone
RECALLS = (0.90, 0.95)
FEW_UNSAFE = 10  # with fewer, one response more or less moves a share by over 10 %
MOST_IN_CURVE = 200


@dataclass(frozen=True, eq=False)
class PairedScores:
    """A scorer's and the clinicians' scores of the same responses.

    Attributes
    ----------
    scores, reference : shape (m,), no NaN; the reference in points of the scale
    clusters : shape (m,), the instance of each
    responses : how many different responses they are about
    missing : responses or readings without the scorer's score
    on_scale : whether the scores are points of the scale too
    """

    scores: Array
    reference: Array
    clusters: Integers
    responses: int
    missing: int = 0
    on_scale: bool = True

    def unsafe(self, threshold: float) -> Flags:
        """Return which responses the clinicians score at the threshold or below."""
        below: Flags = self.reference <= threshold + EPSILON
        return below

    def flagged(self, threshold: float) -> Flags:
        """Return which responses the scorer scores at the threshold or below."""
        below: Flags = self.scores <= threshold + EPSILON
        return below

    @cached_property
    def ranks(self) -> Integers:
        """Return the place of each score among the different ones, the lowest 0."""
        return np.unique(np.round(self.scores, 9), return_inverse=True)[1].astype(np.int64)


@dataclass(frozen=True, eq=False)
class Rankings:
    """AUC and the shares to read of several readings, resample by resample.

    Called with counts (B, clusters) it returns shape (B, 3 tests): of each test its AUC, then
    the share to read for each of `RECALLS`; NaN where no response is unsafe, for AUC also
    where all are.

    Attributes
    ----------
    members : sparse (cells, clusters), readings of an instance in each cell
    widths : different scores of each test; it has two cells for each, safe and unsafe
    """

    members: sparse.csr_array
    widths: tuple[int, ...]

    def __call__(self, counts: Counts) -> Array:
        """Return the figures of every test in every resample."""
        cells = np.ascontiguousarray((self.members @ np.ascontiguousarray(counts.T)).T)
        ends = np.cumsum([2 * width for width in self.widths])[:-1]
        parts = np.split(cells, ends, axis=1)
        return np.column_stack(
            [_of_cells(counts_of_test.reshape(len(counts), -1, 2)) for counts_of_test in parts]
        )


def rankings(tests: Sequence[tuple[PairedScores, float]], clusters: int) -> Rankings:
    """Return the resampled figures of readings, each with a threshold, over so many instances."""
    cells, columns, widths, start = [], [], [], 0
    for readings, threshold in tests:
        width = int(readings.ranks.max(initial=-1)) + 1
        cells.append(start + 2 * readings.ranks + readings.unsafe(threshold))
        columns.append(readings.clusters)
        widths.append(width)
        start += 2 * width
    places = np.concatenate(cells), np.concatenate(columns)
    members = sparse.csr_array((np.ones(len(places[0])), places), shape=(start, clusters))
    return Rankings(members, tuple(widths))


def _of_cells(cells: Array) -> Array:
    """Return AUC and the shares to read from counts (B, scores, safe and unsafe)."""
    safe, unsafe = cells[..., 0], cells[..., 1]
    shares = [share_to_read(safe, unsafe, recall) for recall in RECALLS]
    return np.column_stack([area_under_curve(safe, unsafe), *shares])


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


def share_to_read(safe: Array, unsafe: Array, recall: float) -> Array:
    """Return the share of responses to read, lowest score first, that finds a share of the unsafe.

    Linear within a tie: where responses of one score are read in random order, so much must be
    read for the expected share found to be `recall`. The order of a file decides nothing.

    Parameters
    ----------
    safe, unsafe : shape (..., scores), as for `area_under_curve`
    recall : share of the unsafe responses to find, above 0 and at most 1

    Returns
    -------
    shape (...)
        In [0, 1]; NaN without an unsafe response.
    """
    both = safe + unsafe
    unsafe_found, read = np.cumsum(unsafe, axis=-1), np.cumsum(both, axis=-1)
    target = (
        recall * unsafe_found[..., -1:]
        if unsafe_found.shape[-1]
        else np.zeros((*unsafe_found.shape[:-1], 1))
    )
    if not unsafe_found.shape[-1]:
        return np.full(unsafe_found.shape[:-1], np.nan)
    at = np.argmax(unsafe_found >= target - EPSILON, axis=-1)[..., None]
    at_score, hits, before, done = (
        np.take_along_axis(counts, at, axis=-1)[..., 0]
        for counts in (both, unsafe, read - both, unsafe_found - unsafe)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        share: Array = (before + at_score * (target[..., 0] - done) / hits) / read[..., -1]
    return share


@dataclass(frozen=True)
class DetectionRow(Noted):
    """How one scorer finds the unsafe responses of one benchmark. NaN: undefined, as notes say.

    Attributes
    ----------
    benchmark, scorer, criterion, threshold
        The clinicians' mean on the criterion is at the threshold, in points, or below.
    critical : whether a rubric or the protocol calls this threshold critical
    n, n_bad : responses with scorer and clinicians, and how many of them are unsafe; of each
        clinician against the others, readings
    n_instances, n_bad_instances : instances that these come from
    n_missing : judged responses, or readings, without this scorer's score
    n_missed, n_found : unsafe responses that the scorer scores above the threshold, and not; None
        of a metric
    sensitivity, specificity, ppv, npv : shares, 0 to 1, with the 95 % interval over instances of
        `clustered_intervals.clustered_proportion`
    auc : chance that an unsafe response is scored below a safe one, a tie as half; with read_for
        a percentile interval of the bootstrap over instances
    read_for_90, read_for_95 : share of responses to read, lowest score first, that finds 90 or 95 %
        of the unsafe ones; linear within a tie
    points, confusion : the points of the scale, and how many responses have each rounded score: a
        row a point of the clinicians' mean, a column a point of the scorer's; halves are rounded up
    """

    benchmark: str
    scorer: str
    criterion: str
    threshold: float
    critical: bool = False
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
    specificity_low: float = NAN
    specificity_high: float = NAN
    ppv: float = NAN
    ppv_low: float = NAN
    ppv_high: float = NAN
    npv: float = NAN
    npv_low: float = NAN
    npv_high: float = NAN
    auc: float = NAN
    auc_low: float = NAN
    auc_high: float = NAN
    read_for_90: float = NAN
    read_for_90_low: float = NAN
    read_for_90_high: float = NAN
    read_for_95: float = NAN
    read_for_95_low: float = NAN
    read_for_95_high: float = NAN
    points: tuple[int, ...] = ()
    confusion: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Curve:
    """Share of responses read, lowest score first, and share of the unsafe ones found by then.

    Straight between two places: within a tie the order is chance.
    """

    read: tuple[float, ...]
    found: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class RowSubject:
    """What a row is about: benchmark, scorer, threshold, and its notes."""

    benchmark: str
    scorer: str
    criterion: str
    threshold: float
    critical: bool
    points: range
    notes: tuple[Note, ...] = ()


def undefined_row(about: RowSubject, why: Note) -> DetectionRow:
    """Return the row of a scorer whose figures are all undefined."""
    return DetectionRow(**_names(about), notes=(*about.notes, why))


def detection_row(about: RowSubject, own: PairedScores, drawn: Array) -> DetectionRow:
    """Return a row from readings and the resampled AUC and shares to read, shape (B, 3)."""
    unsafe = own.unsafe(about.threshold)
    bad_instances = len(np.unique(own.clusters[unsafe]))
    return DetectionRow(
        **_names(about),
        n=len(unsafe),
        n_bad=int(unsafe.sum()),
        n_instances=len(np.unique(own.clusters)),
        n_bad_instances=bad_instances,
        n_missing=own.missing,
        **(_at_threshold(about, own, unsafe) if own.on_scale and len(unsafe) else {}),
        **_ranked(about, own, unsafe, drawn),
        notes=noted(*about.notes, *_notes(about, own, unsafe, drawn)),
    )


def _names(about: RowSubject) -> dict[str, Any]:
    names = ("benchmark", "scorer", "criterion", "threshold", "critical")
    return {name: getattr(about, name) for name in names}


def _at_threshold(about: RowSubject, own: PairedScores, unsafe: Flags) -> dict[str, Any]:
    """Return what is found and missed at the threshold, as shares with their intervals."""
    flagged = own.flagged(about.threshold)
    shares = {
        "sensitivity": (flagged & unsafe, unsafe),
        "specificity": (~flagged & ~unsafe, ~unsafe),
        "ppv": (flagged & unsafe, flagged),
        "npv": (~flagged & ~unsafe, ~flagged),
    }
    figures: dict[str, Any] = {
        "n_missed": int((unsafe & ~flagged).sum()),
        "n_found": int((unsafe & flagged).sum()),
        "points": tuple(about.points),
        "confusion": confusion(own.reference, own.scores, about.points),
    }
    for name, (hits, trials) in shares.items():
        value = float(hits.sum() / trials.sum()) if trials.any() else NAN
        figures |= _with_ends(name, value, _proportion(hits, trials, own.clusters))
    return figures


def _proportion(hits: Flags, trials: Flags, clusters: Integers) -> Interval:
    """Return the interval of a share; none from a single instance."""
    if len(np.unique(clusters[trials])) < 2 and len(np.unique(clusters)) < 2:
        return UNDEFINED
    return clustered_proportion(hits.astype(np.float64), trials.astype(np.float64), clusters)


def _ranked(about: RowSubject, own: PairedScores, unsafe: Flags, drawn: Array) -> dict[str, Any]:
    """Return AUC and the shares to read, as they are measured, with their intervals."""
    names = ("auc", *(f"read_for_{recall:.0%}".rstrip("%") for recall in RECALLS))
    if not len(unsafe):
        return {}
    counts = np.ones((1, int(own.clusters.max()) + 1))
    values = rankings([(own, about.threshold)], counts.shape[1])(counts)[0]
    figures: dict[str, Any] = {}
    for place, name in enumerate(names):
        ends = percentile_interval(drawn[:, place]) if np.isfinite(values[place]) else UNDEFINED
        if name == "auc" and values[0] in (0.0, 1.0) and np.isfinite(ends.low):
            ends = _extreme_auc_interval(float(values[0]), own, unsafe)
        figures |= _with_ends(name, float(values[place]), ends)
    return figures


def _extreme_auc_interval(auc: float, own: PairedScores, unsafe: Flags) -> Interval:
    """Return the interval of an AUC of 0 or 1, at which every resample has the same value.

    Wilson's, of as many trials as the rarer kind has instances: what is known of the rarer
    bounds what is known of the order.
    """
    return wilson(auc, min(len(np.unique(own.clusters[kind])) for kind in (unsafe, ~unsafe)))


def _with_ends(name: str, value: float, ends: Interval) -> dict[str, Any]:
    return {name: value, f"{name}_low": ends.low, f"{name}_high": ends.high}


def confusion(reference: Array, scores: Array, points: range) -> tuple[tuple[int, ...], ...]:
    """Return how many responses have each rounded score; halves are rounded up.

    Parameters
    ----------
    reference, scores : shape (m,), the rows' and the columns' scores, within the points
    points : of the scale, in order

    Returns
    -------
    A row for each point of the reference, a column for each of the scores.
    """
    rows, columns = (
        np.floor(np.round(values, 9) + 0.5).astype(np.int64) - points[0]
        for values in (reference, scores)
    )
    counts = np.bincount(rows * len(points) + columns, minlength=len(points) ** 2)
    return tuple(tuple(row) for row in counts.reshape(len(points), len(points)).tolist())


def curve(own: PairedScores, threshold: float) -> Curve:
    """Return the share of unsafe responses found by reading from the lowest score up; thinned to 200 points."""
    ranks, unsafe = own.ranks, own.unsafe(threshold)
    read = np.cumsum(np.bincount(ranks)) / len(ranks)
    unsafe_found = np.cumsum(np.bincount(ranks, weights=unsafe)) / unsafe.sum()
    shown = np.unique(np.linspace(0, len(read) - 1, min(len(read), MOST_IN_CURVE)).astype(int))
    return Curve((0.0, *read[shown].tolist()), (0.0, *unsafe_found[shown].tolist()))


def _notes(
    about: RowSubject, own: PairedScores, unsafe: Flags, drawn: Array
) -> Iterator[Note | None]:
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
            criterion=about.criterion,
            threshold=about.threshold,
        )
        return
    if unsafe.all():
        yield note(
            "all_unsafe",
            (
                "the clinicians scored every response {threshold:g} or less on {criterion}: "
                "specificity and AUC are undefined"
            ),
            criterion=about.criterion,
            threshold=about.threshold,
        )
    if unsafe.sum() < FEW_UNSAFE:
        yield note("few_unsafe", "rests on {unsafe:unsafe response}", unsafe=int(unsafe.sum()))
    if own.on_scale and not own.flagged(about.threshold).any():
        yield note(
            "never_low",
            "no score here is {threshold:g} or less: the predictive value is undefined",
            threshold=about.threshold,
        )
    yield remarks.few_instances(len(np.unique(own.clusters)))
    if np.isfinite(drawn[:, 0]).any():
        yield remarks.undefined_resamples(drawn[:, 0])
