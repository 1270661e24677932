"""The cells of `medjury calibrate --details`: what makes text of a row's figures."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
Cell = Callable[[Row], str]
LEAST_P = 0.001  # with three digits a smaller p would read as if it were 0


def number(name: str, digits: int = 2) -> Cell:
    """Return what shows a number, or a dash where there is none."""
    return lambda row: "-" if row[name] is None else f"{row[name]:z.{digits}f}"


def probability(name: str) -> Cell:
    """Return what shows a p value, which is never 0."""
    plain = number(name, 3)
    small = f"<{LEAST_P}"
    return lambda row: small if row[name] is not None and row[name] < LEAST_P else plain(row)


def between(low: str, high: str) -> Cell:
    """Return what shows an interval."""
    ends = number(low), number(high)
    return lambda row: "-" if row[low] is None else f"{ends[0](row)} to {ends[1](row)}"


def bounds(row: Row) -> str:
    """Return the bounds of an ICC, of which the lower need not exist."""
    if row["icc_highest"] is None:
        return "-"
    low = "no bound" if row["icc_lowest"] is None else f"{row['icc_lowest']:z.2f}"
    return f"{low} to {row['icc_highest']:z.2f}"


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


def nearness(rows: Sequence[Row]) -> str:
    """Return what the alternative-annotator test was asked: its margin, its pass mark, its ties."""
    return (
        f"epsilon {rows[0]['epsilon']:g}; a winning rate of 0.5 is the pass mark; a tie counts as "
        "nearer for both"
    )
