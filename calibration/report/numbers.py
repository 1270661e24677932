"""Numbers as a page prints them: fixed decimals, a true minus sign, a dash for what is undefined."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

SIMULATED = "simulated raters: "
MINUS, DASH = "\N{MINUS SIGN}", "\N{EN DASH}"
NAMES = {
    "jury": "Jury",
    "clinicians": "Clinicians, by pairs",
    "like_for_like": "Like for like",
    "intra_rater": "Same clinician again",
}


def known(value: Any) -> bool:
    """Tell whether a figure is there: neither None, nor NaN, nor pandas' NA."""
    return value is not None and str(value) not in ("nan", "<NA>", "NaN", "inf", "-inf")


def fixed(value: Any, digits: int = 2) -> str:
    """Return a number with so many decimals, never "-0.00"; a dash where it is undefined."""
    return f"{value:z.{digits}f}".replace("-", MINUS) if known(value) else DASH


def interval(low: Any, high: Any, digits: int = 2) -> str:
    """Return an interval, or "" where it is undefined."""
    if not (known(low) and known(high)):
        return ""
    return f"{fixed(low, digits)} to {fixed(high, digits)}"


def chance(p: Any) -> str:
    """Return a p value with three decimals; one below 0.001 as such."""
    return "<0.001" if known(p) and p < 0.001 else fixed(p, 3)


def whole(value: Any) -> str:
    """Return a count with thin thousands, or a dash."""
    return f"{value:,d}".replace(",", "\N{NARROW NO-BREAK SPACE}") if known(value) else DASH


def money(usd: float) -> str:
    """Return US dollars with the digits that matter, two at least."""
    digits = 2 if usd >= 1 or usd == 0 else 2 - math.floor(math.log10(usd))
    return f"${usd:,.{digits}f}"


def scorer(name: str) -> str:
    """Return a scorer or rater as a reader would name it."""
    return NAMES.get(name, name.removeprefix("juror:").removeprefix("metric:"))


def is_simulated(row: Mapping[str, Any]) -> bool:
    """Tell whether a row rests on raters that are not real."""
    return any(part.startswith(SIMULATED) for part in row["note"].split("; "))


def marked(name: str, row: Mapping[str, Any]) -> str:
    """Return a row's name with what of it is simulated; of a metric, only whom it is held against."""
    if not is_simulated(row):
        return name
    is_metric = str(row.get("scorer", "")).startswith("metric:")
    return f"{name} (simulated clinicians)" if is_metric else f"{name} (simulated)"


def simulated_raters(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return all raters that the rows' notes name as simulated, in alphabetical order."""
    parts = [part for row in rows for part in row["note"].split("; ")]
    told = [one.removeprefix(SIMULATED) for one in parts if one.startswith(SIMULATED)]
    return sorted({name for names in told for name in names.split(", ")})
