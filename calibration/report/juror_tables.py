"""The tables of a report that look at raters one by one."""

from calibration.report.tables import Shape, between, count, number, probability, text

SEVERITY = Shape(
    "rater",
    "Rater",
    {
        "Kind": text("kind"),
        "Leniency, points": number("severity"),
        "Bootstrap 95 %": between("low", "high"),
        "Shrunken": number("shrunken"),
        "Responses": count("n"),
    },
    words=("Kind",),
)
VALUE = Shape(
    "juror",
    "Juror",
    {
        "ICC alone": number("icc_alone", 3),
        "ICC of the jury without it": number("icc_without", 3),
        "Shapley value": number("shapley", 3),
        "Bootstrap 95 %": between("low", "high"),
    },
)
EFFECTIVE = Shape(
    "benchmark",
    "Benchmark",
    {
        "Jurors": count("k"),
        "Worth independent jurors": number("effective"),
        "Bootstrap 95 %": between("low", "high"),
        "Mean correlation of errors": number("mean_error_correlation"),
        "Responses": count("n"),
    },
)
PREFERENCE = Shape(
    "juror",
    "Juror",
    {
        "Own family": text("family"),
        "Own responses": count("n_own"),
        "Other responses": count("n_other"),
        "Points for its own": number("preference"),
        "95 %": between("low", "high"),
        "p, Holm": probability("p_holm"),
    },
    words=("Own family",),
)
LENGTH = Shape(
    "rater",
    "Rater",
    {
        "Kind": text("kind"),
        "Points per doubling": number("slope_per_doubling"),
        "95 %": between("low", "high"),
        "p": probability("p"),
        "Responses": count("n"),
    },
    words=("Kind",),
)
RETEST = Shape(
    "juror",
    "Juror",
    {
        "ICC(A,1)": number("icc_one", 3),
        "SD, points": number("sd_points"),
        "Same score again": number("exact_agreement"),
        "Replicates": count("n_replicates"),
        "Responses": count("n_responses"),
    },
)
BEYOND_CHANCE = Shape(
    "raters",
    "Raters",
    {
        "Criterion": text("criterion"),
        "Kappa, quadratic": number("kappa_quadratic"),
        "Alpha, ordinal": number("alpha_ordinal"),
        "Gwet's AC2": number("ac2"),
        "SE": number("ac2_se"),
        "Responses": count("n_responses"),
    },
    words=("Criterion",),
)
