"""What the sections of `medjury calibrate --details` show: titles, headings, cells, and words."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from medjury.cli.agreement_cells import (
    Cell,
    Row,
    between,
    bounds,
    nearness,
    number,
    plain,
    points,
    probability,
    share,
)

INFLUENTIAL = 5
LEGEND = (
    "Terms: advantage is how often a scorer is at least as near to the other clinicians as the one "
    "held out; leniency is points above the mean of all others, shrunken the same in the mixed model, "
    "drawn towards 0; kappa is quadratic weighted, alpha Krippendorff's for ordinal scores, AC2 "
    "Gwet's; worth is how many jurors with unrelated errors would do as well; Shapley is what a juror "
    "adds to the jury's ICC; exact is the share of scores given again the same; other counts means "
    "between the points of the scale."
)


@dataclass(frozen=True, slots=True)
class Section:
    """How a section is shown: its title, whom a row is about, headings and cells.

    Attributes
    ----------
    tells : fields of a row; a section whose rows have none of them is told in one line
    wanted, most : which rows are shown
    unwanted : what is said of the scorers of other rows, if anything
    unsaid : how notes begin that repeat a cell, or are about what is not shown
    said : makes the line below the table
    resampled : whether its intervals are bootstraps
    """

    title: str
    about: str
    columns: Mapping[str, Cell]
    tells: tuple[str, ...]
    wanted: Callable[[Row], bool] = lambda _: True
    most: int | None = None
    unwanted: str = ""
    unsaid: str = "(?!)"
    said: Callable[[Sequence[Row]], str] = lambda _: ""
    resampled: bool = False


SECTIONS = {
    "differences": Section(
        "the jury's ICC minus another's, on the same resamples",
        "b",
        {
            "jury against": plain("b"),
            "difference": number("difference", 3),
            "95 %": between("low", "high"),
            "p": probability("p"),
            "p Holm": probability("p_holm"),
            "of tried": plain("n_tried"),
        },
        tells=("difference",),
        resampled=True,
    ),
    "influence": Section(
        "what the jury's ICC hangs on",
        "left_out",
        {
            "left out": lambda row: f"{row['left_out'] or '-'}".replace(":", " ", 1),
            "ICC": number("icc_all", 3),
            "without": number("icc_without", 3),
            "change": number("change", 3),
        },
        tells=("icc_all",),
        wanted=lambda row: row["scorer"] == "jury",
        most=INFLUENTIAL,
    ),
    "missing": Section(
        "what is missing, and the ICC if it were the worst or the best: bounds, no estimate",
        "scorer",
        {
            "scorer": plain("scorer"),
            "scored": share("n_scored", "n_responses"),
            "ICC": number("icc"),
            "worst to best": bounds,
        },
        tells=("n_missing",),
        wanted=lambda row: row["n_missing"] > 0,
        unwanted="nothing missing",
        unsaid=r"if the ",
    ),
    "distributions": Section(
        "scores given",
        "rater",
        {
            "rater": plain("rater"),
            "criterion": plain("criterion"),
            "mean": number("mean"),
            "at top": number("at_top"),
            "points": points,
        },
        tells=("mean",),
    ),
    "other_measures": Section(
        "absolute agreement, order, and points of the scale (scorer minus clinicians)",
        "scorer",
        {
            "scorer": plain("scorer"),
            "ICC(A,2)": number("icc_absolute"),
            "tau": number("kendall"),
            "bias": number("bias"),
            "95 %": between("bias_low", "bias_high"),
            "limits": between("limits_low", "limits_high"),
        },
        tells=("icc_absolute", "kendall", "bias"),
        unsaid=r"ICC\(A,2\) has no interval",
    ),
    "chance_corrected": Section(
        "beyond chance, by criterion",
        "raters",
        {
            "raters": plain("raters"),
            "criterion": plain("criterion"),
            "kappa": number("kappa_quadratic"),
            "alpha, ordinal": number("alpha_ordinal"),
            "AC2": number("ac2"),
        },
        tells=("kappa_quadratic", "alpha_ordinal", "ac2"),
        unsaid=r".*standard error",
    ),
    "alt_test": Section(
        "nearness to the other clinicians (alternative-annotator test), no leave to replace one",
        "scorer",
        {
            "scorer": plain("scorer"),
            "winning rate": number("winning_rate"),
            "advantage": number("advantage_probability"),
            "clinicians": plain("n_clinicians"),
        },
        tells=("winning_rate",),
        said=nearness,
    ),
    "severity": Section(
        "leniency in points: above 0 more generous than the others",
        "rater",
        {
            "rater": plain("rater"),
            "leniency": number("severity"),
            "95 %": between("low", "high"),
            "shrunken": number("shrunken"),
            "n": plain("n"),
        },
        tells=("severity",),
        resampled=True,
    ),
    "self_preference": Section(
        "points for the own family beyond what others give",
        "juror",
        {
            "juror": plain("juror"),
            "family": plain("family"),
            "own": plain("n_own"),
            "points": number("preference"),
            "95 %": between("low", "high"),
            "p Holm": probability("p_holm"),
        },
        tells=("preference",),
    ),
    "length": Section(
        "points added for twice the words",
        "rater",
        {
            "rater": plain("rater"),
            "points": number("slope_per_doubling"),
            "95 %": between("low", "high"),
            "p": probability("p"),
            "n": plain("n"),
        },
        tells=("slope_per_doubling",),
    ),
    "effective_jurors": Section(
        "how many independent jurors the jury is worth",
        "benchmark",
        {
            "jurors": plain("k"),
            "worth": number("effective"),
            "95 %": between("low", "high"),
            "correlation of errors": number("mean_error_correlation"),
        },
        tells=("effective",),
        resampled=True,
    ),
    "juror_value": Section(
        "what each juror adds to the jury's ICC",
        "juror",
        {
            "juror": plain("juror"),
            "alone": number("icc_alone"),
            "jury without": number("icc_without"),
            "Shapley": number("shapley"),
            "95 %": between("low", "high"),
        },
        tells=("icc_alone", "icc_without", "shapley"),
        resampled=True,
    ),
    "test_retest": Section(
        "the same juror again",
        "juror",
        {
            "juror": plain("juror"),
            "ICC(A,1)": number("icc_one"),
            "SD, points": number("sd_points"),
            "exact": number("exact_agreement"),
            "n": plain("n_responses"),
        },
        tells=("icc_one", "sd_points", "exact_agreement"),
    ),
}
