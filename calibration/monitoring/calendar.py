"""Weeks, months and quarters: which one a day belongs to, and joining those with too little."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

import numpy as np

from calibration.scores import Flags, Integers

Every = Literal["week", "month", "quarter"]
EVERY: tuple[Every, ...] = ("week", "month", "quarter")
MONTHS = {"month": 1, "quarter": 3}


@dataclass(frozen=True, eq=False)
class Period:
    """One calendar period, or several that follow one another, and what was rated in it.

    Attributes
    ----------
    label : "2026-W09" (ISO 8601), "2026-03", "2026-Q1", or "2026-03 to 2026-05"
    start, end : first day, and the first day after it
    joined : how many calendar periods it is made of
    rows : shape (n,), which responses belong to it
    n_instances : of those responses
    """

    label: str
    start: date
    end: date
    joined: int
    rows: Flags
    n_instances: int


def start_of(day: date, every: Every) -> date:
    """Return the first day of the week (Monday), month or quarter that a day belongs to."""
    if every == "week":
        return day - timedelta(days=day.weekday())
    months = MONTHS[every]
    return date(day.year, (day.month - 1) // months * months + 1, 1)


def next_start(start: date, every: Every) -> date:
    """Return the first day of the period after the one that starts on a day."""
    if every == "week":
        return start + timedelta(days=7)
    months = start.month - 1 + MONTHS[every]
    return date(start.year + months // 12, months % 12 + 1, 1)


def label_of(start: date, every: Every) -> str:
    """Return what people call the period that starts on a day."""
    if every == "week":
        year, week, _ = start.isocalendar()
        return f"{year}-W{week:02d}"
    if every == "quarter":
        return f"{start.year}-Q{(start.month + 2) // 3}"
    return f"{start.year}-{start.month:02d}"


def periods(days: Sequence[date], clusters: Integers, every: Every, least: int) -> list[Period]:
    """Return the periods from the first day to the last, in order; each response is in one.

    Parameters
    ----------
    days : n days, in any order
    clusters : shape (n,), the instance of each response
    every : "week", "month" or "quarter"
    least : int
        A period with fewer instances is joined with those after it until there are as many.
        What is left at the end stays a period of its own, with fewer.
    """
    if not days:
        return []
    begun = np.array([start_of(day, every) for day in days], dtype="datetime64[D]")
    found: list[Period] = []
    start, last = min(days), max(days)
    first = at = start_of(start, every)
    while at <= last:
        after = next_start(at, every)
        rows = (begun >= np.datetime64(first)) & (begun <= np.datetime64(at))
        instances = len(np.unique(clusters[rows]))
        if instances >= least or after > last:
            found.append(_period(first, at, every, rows, instances))
            first = after
        at = after
    return found


def _period(first: date, at: date, every: Every, rows: Flags, instances: int) -> Period:
    joined, one = 1, first
    while one < at:
        one, joined = next_start(one, every), joined + 1
    label = label_of(first, every)
    if joined > 1:
        label = f"{label} to {label_of(at, every)}"
    return Period(label, first, next_start(at, every), joined, rows, instances)
