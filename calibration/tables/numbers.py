"""Numbers as text: fixed decimals, a sign for minus and one for what is undefined."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from calibration.notes import Noted
from calibration.values import COMBINED

MINUS, DASH, THIN = "\N{MINUS SIGN}", "\N{EN DASH}", "\N{NARROW NO-BREAK SPACE}"
NAMES = {
    "jury": "Jury",
    "clinicians": "Clinicians, by pairs",
    "like_for_like": "Like for like (difference)",
    "intra_rater": "Same clinician again, ICC(A,1)",
}
WIDEST = 3.0  # an ICC is at most 1; an interval that is wider says nothing
TOO_WIDE = "too wide to interpret"
COMPARISONS = ("clinicians", "intra_rater")  # each may rest on a handful


@dataclass(frozen=True, slots=True)
class Typeface:
    """The signs that a medium has: for minus, for an absent value, between thousands."""

    minus: str
    none: str
    thousands: str


PAGE = Typeface(MINUS, DASH, THIN)
TERMINAL = Typeface("-", "-", "")


def known(value: Any) -> bool:
    """Tell whether a figure is there: neither None, nor NaN, nor infinite, nor pandas' NA."""
    return value is not None and str(value) not in ("nan", "<NA>", "NaN", "inf", "-inf")


def fixed(value: Any, digits: int = 2, face: Typeface = PAGE) -> str:
    """Return a number with so many decimals, never "-0.00"; the sign for none where undefined."""
    return f"{value:z.{digits}f}".replace("-", face.minus) if known(value) else face.none


def interval(low: Any, high: Any, digits: int = 2, face: Typeface = PAGE) -> str:
    """Return an interval, or "" where it is undefined."""
    if not (known(low) and known(high)):
        return ""
    return f"{fixed(low, digits, face)} to {fixed(high, digits, face)}"


def icc_interval(low: Any, high: Any, digits: int = 2, face: Typeface = PAGE) -> str:
    """Return an interval of an ICC or a difference of two; in words where it is too wide to say much."""
    if known(low) and known(high) and high - low > WIDEST:
        return TOO_WIDE
    return interval(low, high, digits, face)


def chance(p: Any, face: Typeface = PAGE) -> str:
    """Return a p value with three decimals; one below 0.001 as such."""
    return "<0.001" if known(p) and p < 0.001 else fixed(p, 3, face)


def whole(value: Any, face: Typeface = PAGE) -> str:
    """Return a count, thousands apart, or the sign for none."""
    return f"{value:,d}".replace(",", face.thousands) if known(value) else face.none


def money(usd: float) -> str:
    """Return US dollars with the digits that matter, two at least."""
    digits = 2 if usd >= 1 or usd == 0 else 2 - math.floor(math.log10(usd))
    return f"${usd:,.{digits}f}"


def scorer(name: str) -> str:
    """Return the displayed name of a scorer or rater."""
    return NAMES.get(name, name.removeprefix("juror:").removeprefix("metric:"))


def place(benchmark: str) -> str:
    """Return a benchmark as a heading."""
    return "All benchmarks combined" if benchmark == COMBINED else benchmark


def marked(name: str, row: Noted) -> str:
    """Return a row's name, marked where its raters (of a metric: the clinicians) are simulated."""
    if not row.simulated:
        return name
    is_metric = str(getattr(row, "scorer", "")).startswith("metric:")
    return f"{name} (simulated clinicians)" if is_metric else f"{name} (simulated)"


def all_simulated(rows: Iterable[Noted]) -> bool:
    """Tell whether all rows rest on simulated raters."""
    return all(row.simulated for row in rows)
