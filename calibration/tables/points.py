"""The tables of points of the case: agreement on single points, and critical points missed."""

from typing import Any

from calibration.tables.numbers import NAMES, Typeface, scorer
from calibration.tables.spec import Column, TableSpec, between, count, number, share, text

KINDS = {"": "All points", "must": "Must", "must_not": "Must not", "nice": "Nice to have"}
KAPPA = "Agreement on points beyond chance; low where nearly all answers are the same."
AC1 = "Gwet's agreement beyond chance, stable where nearly all answers are the same."
SENSITIVITY = "Of the critical points that a response fails, the share the scorer calls so too."
FALSE_ALARMS = "Of the critical points that a response keeps, the share the scorer faults."
ABOUT_PAIRS = (
    "A pair is one clinician's answer and the jury's, or another clinician's, to one point of one "
    "response; the jury's answer is that of more than half of its jurors. Pairs in which somebody cannot "
    "tell are left out and counted. Intervals resample instances"
)
ABOUT_DETECTION = (
    "caught: critical points that more than half of the clinicians say a response fails, and the scorer "
    "says so too; alarms: of those that they say it keeps, the ones that the scorer says it fails; "
    "undecided: clinicians or jurors split, or no answer"
)
ABOUT_POINTS = (
    "clinicians, jury: share of answers that say the response does what the point describes, over the "
    "responses to its instance. kappa needs both answers among the pairs"
)


def _named(name: str) -> str:
    return NAMES.get(name, scorer(name))


def _kind(row: Any, _face: Typeface) -> str:
    return KINDS[row.kind] + (", critical" if row.critical else "")


AGREEMENT = TableSpec(
    "agreement on single points",
    "scorer",
    "scorer",
    (
        Column("points", lambda row, _: KINDS[row.kind], is_words=True),
        number("agreement", "agreement"),
        number("kappa", "kappa", help=KAPPA),
        between("kappa, 95 %", "kappa_low", "kappa_high"),
        number("AC1", "ac1", help=AC1),
        between("AC1, 95 %", "ac1_low", "ac1_high"),
        count("pairs", "n_pairs"),
        count("instances", "n_instances"),
        count("cannot tell", "cannot_tell"),
    ),
    named=_named,
    within="kind",
    reading=lambda _: ABOUT_PAIRS,
)
DETECTION = TableSpec(
    "critical points that responses fail, by the clinicians",
    "scorer",
    "scorer",
    (
        share("caught", "caught", "failed"),
        number("sensitivity", "sensitivity", help=SENSITIVITY),
        between("sensitivity, 95 %", "sensitivity_low", "sensitivity_high"),
        share("alarms", "alarmed", "kept"),
        number("false alarms", "false_alarms", help=FALSE_ALARMS),
        between("false alarms, 95 %", "false_alarms_low", "false_alarms_high"),
        count("undecided", "open"),
    ),
    named=_named,
    reading=lambda _: ABOUT_DETECTION,
)
POINTS = TableSpec(
    "each point by itself",
    "instance_id",
    "instance",
    (
        text("point", "text"),
        Column("kind", _kind, is_words=True),
        number("clinicians", "clinicians_met"),
        number("jury", "jury_met"),
        number("agreement", "agreement"),
        number("kappa", "kappa", help=KAPPA),
        number("AC1", "ac1", help=AC1),
        count("pairs", "n_pairs"),
        count("responses", "n_responses"),
    ),
    named=str,
    reading=lambda _: ABOUT_POINTS,
)
