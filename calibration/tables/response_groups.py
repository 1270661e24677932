"""The tables of groups of responses: unsafe ones, subgroups, and those that clinicians marked."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from calibration.tables.agreement import BIAS, CONSISTENT, DIFFERENCE
from calibration.tables.numbers import NAMES, PAGE, TERMINAL, Typeface, fixed, known, scorer, whole
from calibration.tables.spec import (
    Column,
    TableSpec,
    between,
    count,
    icc_between,
    number,
    probability,
)

MISSED = "Of the responses that clinicians call unsafe, how many the jury does not."
FOUND = "Of the responses that clinicians call {0}, the share the jury calls so too."
RIGHT = "Of the responses that the jury calls {0}, the share clinicians call so too."
TO_READ = "Share of responses to read, lowest score first, that finds {} % of the unsafe ones."
CORRECTED = "Share of all scored responses that are unsafe, corrected for the scorer's errors on the rated ones."
AUC = "Chance that the jury scores an unsafe response lower than a safe one; 0.5 is a coin's toss."
OWN_NAMES = {
    "clinicians": "One clinician, against the others",
    "jury_held_out": "Jury, against the same others",
}
WORDS = {
    "shown": "shown",
    "lower": "lower",
    "not_shown": "not shown",
    "too_few": "too few",
}


def named(name: str) -> str:
    """Return the displayed name of a scorer."""
    return OWN_NAMES.get(name, NAMES.get(name, scorer(name)))


def _n_missed(row: Any, face: Typeface) -> str:
    """Return "M of N" unsafe responses missed."""
    if row.n_missed is None or not row.n_bad:
        return face.none
    return f"{whole(row.n_missed, face)} of {whole(row.n_bad, face)}"


def threshold(row: Any, face: Typeface = PAGE) -> str:
    """Return which scores are unsafe, as "safety <= 2"."""
    sign = "<=" if face is TERMINAL else "\N{LESS-THAN OR EQUAL TO}"
    return f"{row.criterion} {sign} {row.threshold:g}"


def by_threshold(rows: Sequence[Any]) -> dict[tuple[str, float], list[Any]]:
    """Return rows by criterion and threshold, one table for each."""
    groups: dict[tuple[str, float], list[Any]] = {}
    for row in rows:
        groups.setdefault((row.criterion, row.threshold), []).append(row)
    return groups


def _how_to_read_detection(rows: Sequence[Any]) -> str:
    """Return how the columns are to be read."""
    reading = (
        "missed: unsafe for the clinicians, whose mean is at the threshold or below, and scored above "
        "it; to read: share of responses to read, lowest score first, to find so much of the unsafe ones"
    )
    if any(row.scorer == "clinicians" and known(row.sensitivity) for row in rows):
        reading += "; compare jury and clinician by the two rows with the same reference, the other clinicians"
    of_jury = next(
        (row for row in rows if row.scorer == "jury" and known(row.corrected_rate)), None
    )
    if of_jury:
        rate, low, high = (
            f"{100 * share:.1f}"
            for share in (of_jury.corrected_rate, of_jury.corrected_low, of_jury.corrected_high)
        )
        reading += (
            f"; rate: of the {whole(of_jury.n_all, PAGE)} responses that the jury scored {rate} % are unsafe "
            f"({low} to {high}), corrected for what it misses and what it calls unsafe wrongly (specificity "
            f"{of_jury.specificity:.2f}), if the rated ones are a random sample"
        )
    return reading


DETECTION = TableSpec(
    "Unsafe responses",
    "scorer",
    "Scorer",
    (
        Column("Missed", _n_missed, help=MISSED),
        number("Sensitivity", "sensitivity", help=FOUND.format("unsafe")),
        between("95 %", "sensitivity_low", "sensitivity_high"),
        number("To read, 90 %", "read_for_90", help=TO_READ.format(90)),
        number("Specificity", "specificity", wide=True, help=FOUND.format("safe")),
        number("Rate", "corrected_rate", wide=True, help=CORRECTED),
        between("95 %, rate", "corrected_low", "corrected_high", wide=True),
        number("To read, 95 %", "read_for_95", wide=True, help=TO_READ.format(95)),
        number("AUC", "auc", wide=True, help=AUC),
        between("95 %, AUC", "auc_low", "auc_high", wide=True),
        number("PPV", "ppv", wide=True, help=RIGHT.format("unsafe")),
        number("NPV", "npv", wide=True, help=RIGHT.format("safe")),
    ),
    tells=("sensitivity", "auc"),
    named=named,
    reading=_how_to_read_detection,
)


def detection_spec(rows: Sequence[Any]) -> TableSpec:
    """Return the table of rows: unsafe responses, or those that fail a two-point criterion."""
    return DETECTION if rows[0].critical else replace(DETECTION, caption="Failed responses")


def _finding(row: Any, _face: Typeface) -> str:
    return WORDS[row.finding]


def _missed_by_criterion(row: Any, face: Typeface) -> str:
    """Return "criterion: M of N" for each critical criterion with an unsafe response."""
    counts = [
        f"{unsafe.criterion}: {whole(unsafe.n_missed, face)} of {whole(unsafe.n_bad, face)}"
        for unsafe in row.unsafe
        if unsafe.n_bad
    ]
    return ", ".join(counts)


def _bias(row: Any, face: Typeface) -> str:
    sign = "+" if known(row.bias) and row.bias > 0 else ""
    return f"{sign}{fixed(row.bias, 2, face)}" if known(row.bias) else ""


def _how_to_read_subgroups(rows: Sequence[Any]) -> str:
    """Return how the columns are to be read."""
    reading = (
        "ICC(C,2) of the subgroup alone, and its difference to the rest of its group; p is corrected by "
        "Holm for all subgroups; shown: the interval lies above 0 and no difference to the rest was "
        "found, which does not prove that there is none"
    )
    if any(row.group == "specialty" for row in rows):
        reading += "; specialty groups clinicians: the jury is compared with those of it alone"
    return reading


SUBGROUPS = TableSpec(
    "Subgroups: whether the jury's agreement holds in each",
    "label",
    "Subgroup",
    (
        number("ICC", "icc", help=CONSISTENT),
        icc_between("95 %", "low", "high"),
        number("Difference", "difference", help=DIFFERENCE),
        icc_between("95 %, difference", "difference_low", "difference_high", wide=True),
        probability("p, Holm", "p_holm"),
        Column("Bias, points", _bias, wide=True, help=BIAS),
        between("95 %, bias", "bias_low", "bias_high", wide=True),
        probability("p, Holm, bias", "bias_p_holm", wide=True),
        Column("Unsafe missed", _missed_by_criterion, is_words=True, wide=True, help=MISSED),
        count("Responses", "n", wide=True),
        Column("Agreement", _finding, is_words=True),
    ),
    tells=("icc",),
    named=str,
    reading=_how_to_read_subgroups,
)
