"""What a soak comes to: its promises, kept or broken, and its figures."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from book import Book
from material import Plan
from stored import Compared

WINDOW_MINUTES = 10
JUDGED_FROM_MINUTES = 30  # a shorter run is still warming up
GROWTH = 1.10
LATENCY_MINUTES = 5
HELD = ("server", "worker", "figures", "jury")


def judged(
    book: Book, plan: Plan, compared: Mapping[str, Compared], verified: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return every promise with what was found of it; `kept` is None where it is not judged."""
    findings = verified.get("findings", ["medjury study verify said nothing"])
    rows = [("no error in any process", not book.errors, f"{len(book.errors)} errors")]
    for who, one in compared.items():
        found = f"{one.told} told, {one.stored} stored, {len(one.differences)} differences"
        rows.append((f"nothing lost: {who}", not one.differences and one.told > 0, found))
    events = f"{verified.get('events')} events, {len(findings)} findings"
    rows.append(("the audit chain whole", not findings, events))
    kept = [_growth(book, plan, kind) for kind in ("server", "worker")]
    rows += [one for one in kept if one is not None]
    return [{"promise": what, "kept": kept, "found": found} for what, kept, found in rows]


def latency(book: Book) -> list[dict[str, Any]]:
    """Return the milliseconds of a submit, five minutes a row."""
    rows: dict[int, list[float]] = {}
    for at, milliseconds in book.submits:
        rows.setdefault(int(at // (60 * LATENCY_MINUTES)), []).append(milliseconds)
    return [
        {
            "from_minute": LATENCY_MINUTES * number,
            "submits": len(rows[number]),
            "p50": round(float(np.percentile(rows[number], 50)), 1),
            "p95": round(float(np.percentile(rows[number], 95)), 1),
            "max": round(max(rows[number]), 1),
        }
        for number in sorted(rows)
    ]


def memory(book: Book, plan: Plan) -> list[dict[str, Any]]:
    """Return what each kind of process held after warming up, in the end, and at most, in MB."""
    rows = []
    for kind in HELD:
        early, late = windows(plan)
        row: dict[str, Any] = {"process": kind}
        for name in ("rss", "pss", "uss", *(("files", "threads") if kind == "server" else ())):
            row[name] = {
                "early": _median(book, kind, name, early),
                "late": _median(book, kind, name, late),
                "most": max((one[kind][name] for one in book.samples if kind in one), default=None),
            }
        rows.append(row)
    return rows


def windows(plan: Plan) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the seconds from and to which memory is compared: minutes 10 to 20 and the last 10.

    A run of less than half an hour is cut in the same proportions, for a first look.
    """
    one = 60 * min(WINDOW_MINUTES, plan.minutes / 6)
    return (one, 2 * one), (plan.seconds - one, plan.seconds + one)


def commands(book: Book) -> list[dict[str, Any]]:
    """Return how often each command and screen was asked for, and how many seconds it took."""
    names = dict.fromkeys(one["what"] for one in book.ran)
    taken = {name: [one["seconds"] for one in book.ran if one["what"] == name] for name in names}
    return [
        {
            "what": name,
            "times": len(some),
            "first": some[0],
            "median": round(float(np.median(some)), 1),
            "last": some[-1],
        }
        for name, some in taken.items()
    ]


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows of the same keys as a table."""
    lines = [list(rows[0]), ["---"] * len(rows[0]), *([*row.values()] for row in rows)]
    return "\n".join("| " + " | ".join(_cell(one) for one in line) + " |" for line in lines)


def flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of memory as a line: early, late and most of RSS and USS."""
    shown = {"process": row["process"]}
    for name in ("rss", "uss"):
        shown |= {f"{name} {when}": value for when, value in row[name].items()}
    return shown


def _growth(book: Book, plan: Plan, kind: str) -> tuple[str, bool | None, str] | None:
    """Return whether the median of the last minutes is within a tenth of that after warm-up."""
    early, late = (_median(book, kind, "rss", window) for window in windows(plan))
    if early is None or late is None:
        return None
    kept = late <= GROWTH * early if plan.minutes >= JUDGED_FROM_MINUTES else None
    return f"memory: {kind}", kept, f"{early:.0f} MB, then {late:.0f} ({late / early - 1:+.1%})"


def _median(book: Book, kind: str, name: str, window: tuple[float, float]) -> float | None:
    start, end = window
    some = [one[kind][name] for one in book.samples if kind in one and start <= one["at"] < end]
    return round(float(np.median(some)), 1) if some else None


def _cell(value: object) -> str:
    """Return a value as a table has it; None is what was not judged or not there."""
    if value is None:
        return ""
    return {"True": "yes", "False": "BROKEN"}.get(f"{value}", f"{value}")
