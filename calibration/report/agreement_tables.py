"""The tables of a report that compare the jury with clinicians, metrics and itself."""

from calibration.report.tables import Shape, between, count, number, probability, scored
from calibration.tables.numbers import whole

AGREEMENT = Shape(
    "scorer",
    "Scorer",
    {
        "ICC(C,2)": number("icc", 3),
        "Bootstrap 95 %": between("boot_low", "boot_high"),
        "F 95 %": between("f_low", "f_high"),
        "Spearman": number("spearman"),
        "Scored": scored,
        "Instances": count("n_instances"),
    },
)
CRITERIA = Shape(
    "criterion",
    "Jury on",
    {
        "ICC(C,2)": number("icc", 3),
        "Bootstrap 95 %": between("boot_low", "boot_high"),
        "F 95 %": between("f_low", "f_high"),
        "Spearman": number("spearman"),
        "Bias, points": number("bias"),
        "Bias 95 %": between("bias_low", "bias_high"),
        "Limits of agreement": between("limits_low", "limits_high"),
        "Scored": scored,
    },
    in_columns=("BCa bootstrap",),
)
HELD = Shape(
    "benchmark",
    "Benchmark",
    {
        "Jury": number("jury", 3),
        "A clinician": number("clinician", 3),
        "Difference": number("icc", 3),
        "Bootstrap 95 %": between("boot_low", "boot_high"),
        "Responses": scored,
        "Instances": count("n_instances"),
        "Clinicians": count("n_clinicians"),
    },
    in_columns=("with the other clinicians",),
)
AGAIN = Shape(
    "benchmark",
    "Benchmark",
    {
        "ICC(A,1)": number("icc", 3),
        "Bootstrap 95 %": between("boot_low", "boot_high"),
        "F 95 %": between("f_low", "f_high"),
        "Repeats": count("n_responses"),
        "Clinicians": count("n_clinicians"),
    },
)
ALT_TEST = Shape(
    "scorer",
    "Scorer",
    {
        "Winning rate": number("winning_rate"),
        "Advantage probability": number("advantage_probability"),
        "Clinicians": count("n_clinicians"),
        "Responses": count("n_responses"),
    },
)
DIFFERENCES = Shape(
    "b",
    "Jury minus",
    {
        "Jury": number("first", 3),
        "Other": number("second", 3),
        "Difference": number("difference", 3),
        "Bootstrap 95 %": between("low", "high"),
        "p": probability("p"),
        "p, Holm": probability("p_holm"),
        "80 % power finds": number("detectable"),
        "Responses": count("n_responses"),
    },
    in_columns=("jury ", "smaller than what 80 % power"),
)
INFLUENCE = Shape(
    "left_out",
    "Left out",
    {
        "ICC with it": number("icc_all", 3),
        "ICC without": number("icc_without", 3),
        "Change": number("change", 3),
    },
)
OUTLIERS = Shape(
    "response",
    "Response",
    {
        "Clinicians, points": number("clinicians"),
        "Jury, points": number("jury"),
        "Jury minus clinicians": number("gap"),
    },
)
MISSING = Shape(
    "scorer",
    "Scorer",
    {
        "Scored": lambda row: f"{whole(row['n_scored'])} of {whole(row['n_responses'])}",
        "No rating": count("n_no_rating"),
        "Incomplete": count("n_incomplete"),
        "ICC(C,2)": number("icc", 3),
        "ICC if the missing were anything": between("icc_lowest", "icc_highest"),
    },
)
