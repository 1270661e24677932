"""The tables of points of the case: agreement on single points, and critical points missed."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from calibration.tables.numbers import NAMES, PAGE, Typeface, fixed, interval, scorer
from calibration.tables.spec import Group, Table, TableNote

KINDS = {"": "All points", "must": "Must", "must_not": "Must not", "nice": "Nice to have"}
AGREEMENT = (
    *("scorer", "agreement", "kappa", "kappa, 95 %", "AC1", "AC1, 95 %"),
    *("pairs", "instances", "cannot tell"),
)
DETECTION = (
    *("scorer", "caught", "sensitivity", "sensitivity, 95 %"),
    *("alarms", "false alarms", "false alarms, 95 %", "undecided"),
)
POINTS = (
    *("instance", "point", "kind", "clinicians", "jury", "agreement", "kappa", "AC1"),
    *("pairs", "responses"),
)
ABOUT_PAIRS = (
    "A pair is one clinician's answer and the jury's, or another clinician's, to one point of one "
    "response; the jury's answer is that of more than half of its jurors. Pairs in which somebody cannot "
    "tell are left out and counted. Intervals resample instances."
)
ABOUT_DETECTION = (
    "caught: critical points that more than half of the clinicians say a response fails, and the scorer "
    "says so too; alarms: of those that they say it keeps, the ones that the scorer says it fails; "
    "undecided: clinicians or jurors split, or no answer."
)
ABOUT_POINTS = (
    "clinicians, jury: share of answers that say the response does what the point describes, over the "
    "responses to its instance. kappa needs both answers among the pairs."
)


def agreement_table(rows: Iterable[Any], caption: str, face: Typeface = PAGE) -> Table:
    """Return `calibration.points.PointAgreement`s as a table, a group for each kind of point."""
    groups = [
        Group(KINDS[kind], tuple(tuple(_agreement(row, face)) for row in own))
        for kind, own in groupby(rows, key=lambda row: str(row.kind))
    ]
    return Table(caption, AGREEMENT, tuple(groups), (TableNote(ABOUT_PAIRS),))


def detection_table(rows: Iterable[Any], caption: str, face: Typeface = PAGE) -> Table:
    """Return `calibration.points.CriticalDetection`s as a table."""
    cells = tuple(tuple(_detection(row, face)) for row in rows)
    return Table(caption, DETECTION, (Group("", cells),), (TableNote(ABOUT_DETECTION),))


def point_table(rows: Iterable[Any], caption: str, face: Typeface = PAGE) -> Table:
    """Return `calibration.points.OnePoint`s as a table."""
    cells = tuple(tuple(_point(row, face)) for row in rows)
    words = frozenset(("point", "kind"))
    return Table(caption, POINTS, (Group("", cells),), (TableNote(ABOUT_POINTS),), words)


def _agreement(row: Any, face: Typeface) -> list[str]:
    return [
        NAMES.get(row.scorer, scorer(row.scorer)),
        fixed(row.agreement, 2, face),
        fixed(row.kappa, 2, face),
        interval(row.kappa_interval.low, row.kappa_interval.high, 2, face),
        fixed(row.ac1, 2, face),
        interval(row.ac1_interval.low, row.ac1_interval.high, 2, face),
        *(f"{row.n_pairs}", f"{row.n_instances}", f"{row.cannot_tell}"),
    ]


def _detection(row: Any, face: Typeface) -> list[str]:
    return [
        NAMES.get(row.scorer, scorer(row.scorer)),
        f"{row.caught} of {row.failed}",
        fixed(row.sensitivity, 2, face),
        interval(row.sensitivity_interval.low, row.sensitivity_interval.high, 2, face),
        f"{row.alarmed} of {row.kept}",
        fixed(row.false_alarms, 2, face),
        interval(row.false_alarms_interval.low, row.false_alarms_interval.high, 2, face),
        f"{row.open}",
    ]


def _point(row: Any, face: Typeface) -> list[str]:
    point = row.point
    figures = (row.clinicians_met, row.jury_met, row.agreement, row.kappa, row.ac1)
    return [
        *(
            point.instance_id,
            point.text,
            KINDS[point.kind] + (", critical" if point.critical else ""),
        ),
        *(fixed(figure, 2, face) for figure in figures),
        *(f"{row.n_pairs}", f"{row.n_responses}"),
    ]
