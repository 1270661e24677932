"""The tables that compare the jury with clinicians, metrics and itself, each declared once."""

from collections.abc import Mapping
from typing import Any

from calibration.tables.numbers import Typeface, known, whole
from calibration.tables.spec import (
    Column,
    TableSpec,
    between,
    count,
    icc,
    icc_between,
    number,
    probability,
    share,
)

QUOTES: Mapping[str, str] = {
    "ICC(C,k)": "Quote first: how reliably the reference, the clinicians' mean, ranks responses",
    "ICC(C,1)": "how similarly two clinicians rank responses; the basis for planning more clinicians",
    "ICC(A,1)": "how far the points of one clinician can replace another's",
}
REPEATS = "intra_rater"
ICC_TO_THE_POINT = "How closely one score is met again, to the point: 1 is always the same score."
CONSISTENT = "How consistently two sides order and space the same responses: 1 perfect, 0 chance."
SPEARMAN = "Correlation of ranks: 1 where both put the responses in exactly the same order."
BIAS = "Mean of the scorer minus mean of the clinicians, in points."
LIMITS = "Between these points lie 95 % of single differences, where normal (Bland and Altman)."
DIFFERENCE = "The first figure minus the second: above 0 the first is greater."
THESE = "95 % interval of the difference if the same clinicians rated other instances."
LIKE_THESE = (
    "95 % interval of the difference if other clinicians of this kind rated other instances."
)
READS = "Agreement where the interval lies above 0, an opposite order where it lies below."
SEM = (
    "Standard error of measurement: how far a score typically lies from the rater's long-run mean."
)
SMALLEST = "Points by which two scores must differ to differ by more than error of measurement."
TRIED_SHORT = (
    "p is of one comparison alone; beside it stands how many were looked at on this study."
)
TRIED_WORDS = (
    "p is of one comparison alone and not corrected; of twenty without a difference, one has p below "
    "0.05 by chance. Comparisons: how many different ones were ever looked at on this study, whatever "
    "the benchmark, criterion or method. Two scorers beside each other count once, and so does a jury "
    "that was looked at by itself."
)
AGAIN = TableSpec(
    "The same clinician again: absolute agreement of a reading with its hidden repeat",
    "benchmark",
    "Benchmark",
    (
        number("ICC(A,1)", "icc", 3, help=ICC_TO_THE_POINT),
        icc_between("95 %", "low", "high"),
        count("Repeats", "n_responses"),
        count("Clinicians", "n_clinicians"),
    ),
)
DIFFERENCES = TableSpec(
    "The jury's ICC minus another's, on the same responses",
    "b",
    "Jury minus",
    (
        number("Jury", "icc_a", 3, wide=True),
        number("Other", "icc_b", 3, wide=True),
        number("Difference", "difference", 3, help=DIFFERENCE),
        icc_between("95 %", "low", "high"),
        probability("p", "p"),
        count("Comparisons", "n_tried"),
        count("Responses", "n_responses", wide=True),
    ),
    tells=("difference",),
)
OUTLIERS = TableSpec(
    "Responses on which jury and clinicians are farthest apart",
    "response",
    "Response",
    (
        number("Clinicians, points", "clinicians"),
        number("Jury, points", "jury"),
        number("Jury minus clinicians", "gap"),
    ),
)
POINTS = TableSpec(
    "Order, and points above the clinicians",
    "scorer",
    "Scorer",
    (
        number("Spearman", "spearman", help=SPEARMAN),
        number("Bias", "bias", help=BIAS),
        between("Bias 95 %", "bias_low", "bias_high"),
        between("Limits, 95 %", "limits_low", "limits_high", help=LIMITS),
    ),
    tells=("spearman", "bias"),
)


def _scored(row: Any, face: Typeface) -> str:
    """Return how many responses a figure rests on, and of how many where that says something."""
    if row.scorer == "clinicians":
        pairs = "1 pair" if row.n_pairs == 1 else f"{whole(row.n_pairs, face)} pairs"
        return f"{pairs}, {whole(row.n_responses, face)} shared"
    if row.scorer == REPEATS:
        return "1 repeat" if row.n_responses == 1 else f"{whole(row.n_responses, face)} repeats"
    if not known(row.icc) and row.scorer == "like_for_like":
        return ""
    coverage = row.told("coverage")
    scored = coverage["scored"] if coverage else row.n_responses
    total = coverage["analysed"] if coverage else row.n_responses + row.n_missing
    return f"{whole(scored, face)} of {whole(total, face)}"


def _reading(row: Any, face: Typeface) -> str:
    """Return what a clinician's agreement with the others comes to, in words."""
    if row.constant:
        return "the same score always"
    if not known(row.low):
        return "not known"
    if row.against_others:
        return "ranks against the others"
    return "agrees with the others" if row.low > 0 else "agreement not shown"


SCORED = Column("Scored", _scored)
AGREEMENT = TableSpec(
    "Agreement with the clinicians. Like for like is a difference of two ICCs",
    "scorer",
    "Scorer",
    (
        icc(),
        icc_between("95 %", "low", "high"),
        number("Spearman", "spearman", wide=True, help=SPEARMAN),
        SCORED,
        count("Instances", "n_instances", wide=True),
    ),
)
EACH = TableSpec(
    "Each clinician against the mean of the others",
    "rater",
    "Clinician",
    (
        number("ICC", "icc", 3, help=CONSISTENT),
        icc_between("95 %", "low", "high"),
        Column("Reads as", _reading, is_words=True, help=READS),
        count("Responses", "n_responses"),
    ),
    in_columns=frozenset(["clinician_unclear", "clinician_against"]),
    named=str,
)
CRITERIA = TableSpec(
    "The jury and the clinicians' mean",
    "criterion",
    "Jury on",
    (
        icc(),
        icc_between("95 %", "low", "high"),
        number("Spearman", "spearman", wide=True, help=SPEARMAN),
        number("Bias, points", "bias", help=BIAS),
        between("Bias 95 %", "bias_low", "bias_high"),
        between("Limits, 95 %", "limits_low", "limits_high", wide=True, help=LIMITS),
        SCORED,
    ),
)
HELD = TableSpec(
    "ICC with the mean of the other clinicians: the jury's minus a held-out clinician's",
    "benchmark",
    "Benchmark",
    (
        number("Jury", "jury_icc", 3),
        number("A clinician", "clinician_icc", 3),
        number("Difference", "icc", 3, help=DIFFERENCE),
        icc_between("These clinicians, 95 %", "low", "high", help=THESE),
        icc_between(
            "Clinicians like these, 95 %", "population_low", "population_high", help=LIKE_THESE
        ),
        SCORED,
        count("Instances", "n_instances"),
        count("Clinicians", "n_clinicians"),
    ),
    in_columns=frozenset(["held_iccs"]),
)
MISSING = TableSpec(
    "Missing scores",
    "scorer",
    "Scorer",
    (
        share("Scored", "n_scored", "n_responses"),
        count("No rating", "n_no_rating", wide=True),
        count("Incomplete", "n_incomplete", wide=True),
    ),
    tells=("n_missing",),
    wanted=lambda row: row.n_missing > 0,
    unwanted="nothing missing",
)
RELIABILITY = TableSpec(
    "The clinicians' own reliability",
    "form",
    "Form",
    (
        number("ICC", "icc", 3, help=CONSISTENT),
        icc_between("95 %", "low", "high"),
        number("k", "n_raters"),
        number("SEM, points", "sem", help=SEM),
        number("Smallest change", "smallest_change", wide=True, help=SMALLEST),
        count("Responses", "n_responses", wide=True),
        count("Clinicians", "n_clinicians", wide=True),
        Column("What to quote it for", lambda row, _: QUOTES[row.form], is_words=True, wide=True),
    ),
    tells=("icc",),
    named=str,
)
