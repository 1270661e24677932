"""The tables of blinded pairs: who agrees with the clinicians, and which model is preferred."""

from typing import Any

from calibration.tables.numbers import PAGE, Typeface, fixed, interval, known, scorer
from calibration.tables.spec import (
    Column,
    Table,
    TableSpec,
    between,
    count,
    laid_out,
    number,
    text,
)

HOW_TO_READ = (
    "Agreement is the share of the pairs, on which the clinicians prefer one, where the scorer prefers "
    "the same; 0.5 is chance. Like for like holds out each clinician in turn. Jurors were asked in "
    "both orders."
)
MOST_JURIES = 5  # of all that the jurors can form
OWN_NAMES = {"clinicians": "One clinician, against the others", "like_for_like": "Like for like"}
AGREEMENT = (
    "Share of the pairs on which the clinicians prefer one response where the scorer prefers the "
    "same, a scorer's tie half; 0.5 is a coin's toss."
)
KAPPA = "Agreement beyond chance on first, tie and second."
AC1 = "Gwet's agreement beyond chance, stable where nearly all answers are the same."
CONSISTENCY = "Of the pairs judged in both orders, the share where the verdict is not reversed."
SHOWN_FIRST = "Share of judgements for the response that was shown first; 0.5 has no preference."
DIFFERENCE = (
    "Each clinician held out in turn: the jury's agreement with the others minus the clinician's."
)
EXPECTED = "Agreement on new pairs, less what choosing the best of many adds."
WIN_RATE = "Share of its pairs that the model wins, a tie half; it depends on whom it met."
STRENGTH = "Log odds of being preferred to an average model (Bradley-Terry); 0 is average."


def _named(name: str) -> str:
    return OWN_NAMES.get(name, scorer(name))


def _with_ends(value: float, low: float, high: float, face: Typeface) -> str:
    ends = interval(low, high, 2, face)
    return fixed(value, 2, face) + (f" ({ends})" if ends else "")


def _difference(row: Any, face: Typeface) -> str:
    if not known(getattr(row, "difference", None)):
        return ""
    return _with_ends(row.difference, row.low, row.high, face)


def _first(row: Any, face: Typeface) -> str:
    ends = row.shown_first_low, row.shown_first_high
    return _with_ends(row.shown_first_preferred, *ends, face)


def _how_to_read(rows: Any) -> str:
    held = next((row for row in rows if known(getattr(row, "difference", None))), None)
    if held is None:
        return ""
    jury, clinician = fixed(held.jury, 2, PAGE), fixed(held.clinician, 2, PAGE)
    return (
        f"like for like: with the same other clinicians the jury agrees on {jury} of the pairs, a "
        f"clinician on {clinician}"
    )


PAIRS = TableSpec(
    "Pairs: agreement with the clinicians on which response is better",
    "scorer",
    "Scorer",
    (
        number("Agreement", "agreement", help=AGREEMENT),
        between("95 %", "agreement_low", "agreement_high"),
        Column("Difference, 95 %", _difference, help=DIFFERENCE),
        number("Kappa", "kappa", wide=True, help=KAPPA),
        number("AC1", "ac1", wide=True, help=AC1),
        number("Consistency", "consistency", wide=True, help=CONSISTENCY),
        Column("Shown first, 95 %", _first, wide=True, help=SHOWN_FIRST),
        count("Pairs", "n", wide=True),
        count("Ties", "n_tied", wide=True),
        count("Missing", "n_missing", wide=True),
    ),
    tells=("agreement",),
    named=_named,
    reading=_how_to_read,
)
JURIES = TableSpec(
    "Juries of these jurors, the best first",
    "jury",
    "Jury",
    (
        number("Agreement", "agreement", help=AGREEMENT),
        between("95 %", "low", "high"),
        number("To expect", "agreement_honest", help=EXPECTED),
        between("95 %, to expect", "honest_low", "honest_high", wide=True),
        count("Pairs", "n", wide=True),
    ),
    tells=("agreement",),
    named=str,
)
WINS = TableSpec(
    "Models in pairs",
    "model",
    "Model",
    (
        text("By", "by"),
        number("Win rate", "win_rate", help=WIN_RATE),
        between("95 %", "low", "high"),
        number("Strength", "strength", help=STRENGTH),
        between("95 %, strength", "strength_low", "strength_high", wide=True),
        count("Pairs", "n"),
    ),
    tells=("win_rate",),
    named=str,
    within="by",
)


def tables_of(found: Any) -> list[Table]:
    """Return of a `pair_results.PairResult` the table of scorers, of the best juries, and of the models where they are known."""
    grouped = len({row.benchmark for row in found.rows}) > 1
    made = [laid_out(PAIRS, found.rows, grouped=grouped)]
    if found.juries:
        made.append(laid_out(JURIES, found.juries[:MOST_JURIES]))
    return [*made, *([laid_out(WINS, found.models)] if found.models else [])]
