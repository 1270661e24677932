"""`medjury calibrate --details` on the screen: a small table for every section of statistics."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medjury.agreement_table import told
from medjury.output import say, show

Row = Mapping[str, Any]
Cell = Callable[[Row], str]
INFLUENTIAL = 5


@dataclass(frozen=True, slots=True)
class Section:
    """How a section is shown: its title, whom a row is about, headings and cells."""

    title: str
    about: str
    columns: Mapping[str, Cell]
    wanted: Callable[[Row], bool] = lambda _: True
    most: int | None = None


def number(name: str, digits: int = 2) -> Cell:
    """Return what shows a number, or a dash where there is none."""
    return lambda row: "-" if row[name] is None else f"{row[name]:.{digits}f}"


def between(low: str, high: str) -> Cell:
    """Return what shows an interval."""
    ends = number(low), number(high)
    return lambda row: "-" if row[low] is None else f"{ends[0](row)} to {ends[1](row)}"


def plain(name: str) -> Cell:
    """Return what shows a value as it is; a scorer without its kind."""
    return lambda row: "-" if row[name] is None else f"{row[name]}".split(":", 1)[-1]


def share(part: str, whole: str) -> Cell:
    """Return what shows M of N."""
    return lambda row: f"{row[part]} of {row[whole]}"


def points(row: Row) -> str:
    """Return how often each point was given."""
    counts = {one.replace("between", "other"): n for one, n in row["counts"].items() if n}
    return " ".join(f"{point}:{count}" for point, count in counts.items())


SECTIONS = {
    "differences": Section(
        "the jury's ICC minus another's, on the same resamples",
        "b",
        {
            "jury against": plain("b"),
            "difference": number("difference", 3),
            "95 %": between("low", "high"),
            "p": number("p", 3),
            "p Holm": number("p_holm", 3),
            "of tried": plain("n_tried"),
        },
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
        wanted=lambda row: row["scorer"] == "jury",
        most=INFLUENTIAL,
    ),
    "missing": Section(
        "what is missing, and the ICC if it had been the worst or the best",
        "scorer",
        {
            "scorer": plain("scorer"),
            "scored": share("n_scored", "n_responses"),
            "ICC": number("icc"),
            "worst to best": between("icc_lowest", "icc_highest"),
        },
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
    ),
    "chance_corrected": Section(
        "beyond chance, by criterion",
        "raters",
        {
            "raters": plain("raters"),
            "criterion": plain("criterion"),
            "kappa": number("kappa_quadratic"),
            "alpha": number("alpha_ordinal"),
            "AC2": number("ac2"),
        },
    ),
    "alt_test": Section(
        "may it stand in for a clinician? (alternative-annotator test)",
        "scorer",
        {
            "scorer": plain("scorer"),
            "winning rate": number("winning_rate"),
            "advantage": number("advantage_probability"),
            "clinicians": plain("n_clinicians"),
        },
    ),
    "severity": Section(
        "severity in points: above 0 more generous than the others",
        "rater",
        {
            "rater": plain("rater"),
            "severity": number("severity"),
            "95 %": between("low", "high"),
            "shrunken": number("shrunken"),
            "n": plain("n"),
        },
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
            "p Holm": number("p_holm", 3),
        },
    ),
    "length": Section(
        "points added for twice the words",
        "rater",
        {
            "rater": plain("rater"),
            "points": number("slope_per_doubling"),
            "95 %": between("low", "high"),
            "p": number("p", 3),
            "n": plain("n"),
        },
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
    ),
}


def print_details(found: Mapping[str, Sequence[Row]], json_to: Path | None = None) -> None:
    """Print every section that has rows: of all benchmarks combined, or of the only one."""
    for name, section in SECTIONS.items():
        rows = [row for row in found.get(name, ()) if section.wanted(row)]
        last = [row for row in rows if row["benchmark"] == rows[-1]["benchmark"]][: section.most]
        if not last:
            continue
        cells = [[cell(row) for cell in section.columns.values()] for row in last]
        show(f"{last[0]['benchmark']}: {section.title}", list(section.columns), cells, json_to)
        notes: list[Row] = [{"scorer": _about(row, section), "note": row["note"]} for row in last]
        for line in told(notes):
            say(f"  {line}", json_to)
        say("", json_to)


def _about(row: Row, section: Section) -> str:
    """Return whom a row is about, as its notes name them."""
    name = f"{row[section.about]}"
    return "the clinicians" if name == "clinicians" else name
