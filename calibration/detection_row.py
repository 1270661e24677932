"""One row on unsafe responses: its figures from a scorer's readings, with intervals and notes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration import remarks
from calibration.bootstrap import percentile_interval
from calibration.codes import NoteCode as Code
from calibration.detection_cells import RECALLS, Readings, rankings
from calibration.f_interval import UNDEFINED, Interval
from calibration.proportion import clustered_proportion, wilson
from calibration.scores import Array, Flags, Integers
from calibration.values import NAN, Note, Noted, note, noted

FEW_UNSAFE = 10  # with fewer, one response more or less moves a share by over 10 %
MOST_IN_CURVE = 200


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
        `proportion.clustered_proportion`
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
class Judged:
    """Whose row it is, at which threshold, and what is told beside its figures."""

    benchmark: str
    scorer: str
    criterion: str
    threshold: float
    critical: bool
    points: range
    notes: tuple[Note, ...] = ()


def undefined_row(about: Judged, why: Note) -> DetectionRow:
    """Return the row of a scorer of whom nothing can be said."""
    return DetectionRow(**_names(about), notes=(*about.notes, why))


def detection_row(about: Judged, own: Readings, drawn: Array) -> DetectionRow:
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
        **(_found(about, own, unsafe) if own.on_scale and len(unsafe) else {}),
        **_ranked(about, own, unsafe, drawn),
        notes=noted(*about.notes, *_notes(about, own, unsafe, drawn)),
    )


def _names(about: Judged) -> dict[str, Any]:
    names = ("benchmark", "scorer", "criterion", "threshold", "critical")
    return {name: getattr(about, name) for name in names}


def _found(about: Judged, own: Readings, unsafe: Flags) -> dict[str, Any]:
    """Return what is found and missed at the threshold, as shares with their intervals."""
    found = own.found(about.threshold)
    shares = {
        "sensitivity": (found & unsafe, unsafe),
        "specificity": (~found & ~unsafe, ~unsafe),
        "ppv": (found & unsafe, found),
        "npv": (~found & ~unsafe, ~found),
    }
    figures: dict[str, Any] = {
        "n_missed": int((unsafe & ~found).sum()),
        "n_found": int((unsafe & found).sum()),
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


def _ranked(about: Judged, own: Readings, unsafe: Flags, drawn: Array) -> dict[str, Any]:
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
            ends = _separated(float(values[0]), own, unsafe)
        figures |= _with_ends(name, float(values[place]), ends)
    return figures


def _separated(auc: float, own: Readings, unsafe: Flags) -> Interval:
    """Return the interval of an AUC of 0 or 1, at which every resample says the same.

    Wilson's, of as many trials as the rarer kind has instances: what is known of the rarer
    bounds what is known of the order.
    """
    return wilson(auc, min(len(np.unique(own.clusters[one])) for one in (unsafe, ~unsafe)))


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
        np.floor(np.round(one, 9) + 0.5).astype(np.int64) - points[0] for one in (reference, scores)
    )
    counts = np.bincount(rows * len(points) + columns, minlength=len(points) ** 2)
    return tuple(tuple(row) for row in counts.reshape(len(points), len(points)).tolist())


def curve(own: Readings, threshold: float) -> Curve:
    """Return what reading from the lowest score on finds; many scores are thinned out."""
    ranks, unsafe = own.ranks, own.unsafe(threshold)
    read = np.cumsum(np.bincount(ranks)) / len(ranks)
    found = np.cumsum(np.bincount(ranks, weights=unsafe)) / unsafe.sum()
    kept = np.unique(np.linspace(0, len(read) - 1, min(len(read), MOST_IN_CURVE)).astype(int))
    return Curve((0.0, *read[kept].tolist()), (0.0, *found[kept].tolist()))


def _notes(about: Judged, own: Readings, unsafe: Flags, drawn: Array) -> Iterator[Note | None]:
    if not own.on_scale:
        yield note(Code.ONLY_ORDER)
    if not len(unsafe):
        return
    if not unsafe.any():
        yield note(Code.NO_UNSAFE, criterion=about.criterion, threshold=about.threshold)
        return
    if unsafe.all():
        yield note(Code.ALL_UNSAFE, criterion=about.criterion, threshold=about.threshold)
    if unsafe.sum() < FEW_UNSAFE:
        yield note(Code.FEW_UNSAFE, unsafe=int(unsafe.sum()))
    if own.on_scale and not own.found(about.threshold).any():
        yield note(Code.NEVER_LOW, threshold=about.threshold)
    yield remarks.few_instances(len(np.unique(own.clusters)))
    if np.isfinite(drawn[:, 0]).any():
        yield remarks.undefined_resamples(drawn[:, 0])
