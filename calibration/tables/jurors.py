"""The tables that look at raters one by one, each declared once."""

from typing import Any

from calibration.tables import agreement
from calibration.tables.agreement import RELIABILITY
from calibration.tables.numbers import Typeface, scorer
from calibration.tables.spec import (
    Column,
    TableSpec,
    between,
    count,
    icc_between,
    number,
    probability,
    text,
)

SEVERITY = TableSpec(
    "Leniency: above 0 more generous than the others",
    "rater",
    "Rater",
    (
        text("Kind", "kind", wide=True),
        number("Leniency, points", "severity"),
        between("Bootstrap 95 %", "low", "high"),
        count("Responses", "n"),
    ),
    tells=("severity",),
)
PREFERENCE = TableSpec(
    "Self-preference: points for the juror's own model family",
    "juror",
    "Juror",
    (
        text("Own family", "family"),
        count("Own responses", "n_own"),
        count("Other responses", "n_other", wide=True),
        number("Points for its own", "preference"),
        between("95 %", "low", "high"),
        probability("p", "p"),
    ),
    tells=("preference",),
)
LENGTH = TableSpec(
    "Points added for twice as many words",
    "rater",
    "Rater",
    (
        text("Kind", "kind", wide=True),
        number("Points per doubling", "slope_per_doubling"),
        between("95 %", "low", "high"),
        probability("p", "p"),
        count("Responses", "n"),
    ),
    tells=("slope_per_doubling",),
    wanted=lambda row: row.kind != "clinician",
)
VALUE = TableSpec(
    "What each juror adds to the jury's ICC",
    "juror",
    "Juror",
    (
        number("ICC alone", "icc_alone", 3),
        number("Jury without it", "icc_without", 3),
        number("Adds", "adds", 3),
        icc_between("95 %", "low", "high"),
    ),
    tells=("icc_alone", "icc_without", "adds"),
)
RETEST = TableSpec(
    "The same juror again (test-retest)",
    "juror",
    "Juror",
    (
        number("ICC(A,1)", "icc_one", 3),
        number("SD, points", "sd_points"),
        number("Identical scores", "exact_agreement"),
        count("Replicates", "n_replicates", wide=True),
        count("Responses", "n_responses"),
    ),
    tells=("icc_one", "sd_points", "exact_agreement"),
)


def _rater(name: str) -> str:
    """Return the displayed name of a rater; the clinicians are not paired here."""
    return "Clinicians" if name == "clinicians" else scorer(name)


def _counts(row: Any, face: Typeface) -> str:
    """Return how often each point was given."""
    counts = {name.replace("between", "other"): n for name, n in row.counts.items() if n}
    return " ".join(f"{point}:{n}" for point, n in counts.items()) or face.none


DISTRIBUTIONS = TableSpec(
    "Scores given",
    "rater",
    "Rater",
    (
        text("Criterion", "criterion"),
        number("Mean", "mean"),
        number("At top", "at_top"),
        number("2 points apart", "apart"),
        Column("Points", _counts),
    ),
    tells=("mean",),
    wanted=lambda row: not row.rater.startswith("juror:"),
    named=_rater,
    within="criterion",
)
BEYOND_CHANCE = TableSpec(
    "Agreement beyond chance",
    "raters",
    "Raters",
    (
        text("Criterion", "criterion"),
        number("Kappa", "kappa_quadratic"),
        number("Alpha", "alpha_ordinal"),
        number("AC2", "ac2"),
    ),
    tells=("kappa_quadratic", "alpha_ordinal", "ac2"),
    named=_rater,
    within="criterion",
)
# Sections that report and app show about the jurors -> the figure without which none is shown.
REPORTED = {
    "juror_value": "",
    "severity": "",
    "self_preference": "preference",
    "length": "slope_per_doubling",
    "test_retest": "icc_one",
    "chance_corrected": "",
}
# Every section of `analyse calibrate --details`, by its key in the JSON, in the order of a reader.
SECTIONS = {
    "differences": agreement.DIFFERENCES,
    "reliability": RELIABILITY,
    "missing": agreement.MISSING,
    "distributions": DISTRIBUTIONS,
    "other_measures": agreement.POINTS,
    "chance_corrected": BEYOND_CHANCE,
    "severity": SEVERITY,
    "self_preference": PREFERENCE,
    "length": LENGTH,
    "juror_value": VALUE,
    "test_retest": RETEST,
}
