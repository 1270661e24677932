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

LENIENCY = "Points above the average rater on the same responses; below 0 is stricter."
OWN = "Points that a juror gives its own family's responses beyond what others give them."
LENGTHS = "Points added for a response of twice the words."
ADDS = "ICC of the jury minus that of the jury without this juror."
SPREAD = "How far scores of the same rater on the same response spread."
IDENTICAL = "Share of repeats that got the same score again."
KAPPA = "Agreement beyond chance on whole scores; missing by two points counts four times one."
ALPHA = "Krippendorff's agreement beyond chance on ordered scores, with ratings missing."
DISTANCE = "Mean distance of the jury's from the clinicians' mean; on a response they agree on it weighs more."
APART = "Mean distance from the other clinicians' mean on what was scored, as a share of the scale."
AC2 = "Gwet's agreement beyond chance, stable where nearly all scores are the same."
SEVERITY = TableSpec(
    "Leniency: above 0 more generous than the others",
    "rater",
    "Rater",
    (
        text("Kind", "kind", wide=True),
        number("Leniency, points", "severity", help=LENIENCY),
        between("95 %", "low", "high"),
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
        number("Points for its own", "preference", help=OWN),
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
        number("Points per doubling", "slope_per_doubling", help=LENGTHS),
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
        number("ICC alone", "icc_alone", 3, help="What this juror reaches without the others."),
        number("Jury without it", "icc_without", 3),
        number("Adds", "adds", 3, help=ADDS),
        icc_between("95 %", "low", "high"),
    ),
    tells=("icc_alone", "icc_without", "adds"),
)
RETEST = TableSpec(
    "The same juror again (test-retest)",
    "juror",
    "Juror",
    (
        number("ICC(A,1)", "icc_one", 3, help=agreement.ICC_TO_THE_POINT),
        number("SD, points", "sd_points", help=SPREAD),
        number("Identical scores", "exact_agreement", help=IDENTICAL),
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
        number("At top", "at_top", help="Share of scores at the highest point of the scale."),
        number(
            "2 points apart",
            "apart",
            help="Share of responses two points or more from the clinicians' mean on this criterion.",
        ),
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
        number("Kappa", "kappa_quadratic", help=KAPPA),
        number("Alpha", "alpha_ordinal", help=ALPHA),
        number("AC2", "ac2", help=AC2),
    ),
    tells=("kappa_quadratic", "alpha_ordinal", "ac2"),
    named=_rater,
    within="criterion",
)
DISPUTED = TableSpec(
    "How far the jury is, where clinicians agree and where they do not",
    "clinicians",
    "Clinicians",
    (
        text("Criterion", "criterion"),
        number("Distance, points", "distance", help=DISTANCE),
        between("95 %", "low", "high"),
        count("Responses", "n"),
    ),
    tells=("distance",),
    named=str,
    within="criterion",
)
APPLICABILITY = TableSpec(
    "Agreement on whether a criterion applies",
    "raters",
    "Raters",
    (
        text("Criterion", "criterion"),
        number("Not applicable", "not_applicable", help="Share of answers that say so."),
        number("Kappa", "kappa", help="Agreement of pairs beyond chance."),
        number("AC1", "ac1", help=AC2),
        count("Responses", "n_responses"),
    ),
    tells=("kappa", "ac1", "not_applicable"),
    named=_rater,
    within="criterion",
)
ABSTENTION = TableSpec(
    "How much each rater answers",
    "rater",
    "Rater",
    (
        text("Kind", "kind", wide=True),
        number("Answered", "answered", help="Share of what was asked that was not 'cannot tell'."),
        count("Scores", "n_scored"),
        count("Not applicable", "n_not_applicable"),
        count("Cannot tell", "n_cannot_tell"),
        number("Apart", "apart", help=APART),
    ),
    tells=("answered",),
)
# Sections that report and app show about the jurors -> the figure without which none is shown.
REPORTED = {
    "juror_value": "",
    "severity": "",
    "self_preference": "preference",
    "length": "slope_per_doubling",
    "test_retest": "icc_one",
    "chance_corrected": "",
    "abstention": "",
}
# Every section of `analyse calibrate --details`, by its key in the JSON, in the order of a reader.
SECTIONS = {
    "differences": agreement.DIFFERENCES,
    "reliability": RELIABILITY,
    "missing": agreement.MISSING,
    "distributions": DISTRIBUTIONS,
    "other_measures": agreement.POINTS,
    "chance_corrected": BEYOND_CHANCE,
    "disputed": DISPUTED,
    "applicability": APPLICABILITY,
    "abstention": ABSTENTION,
    "severity": SEVERITY,
    "self_preference": PREFERENCE,
    "length": LENGTH,
    "juror_value": VALUE,
    "test_retest": RETEST,
}
