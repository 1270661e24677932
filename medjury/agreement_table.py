"""The agreement table on the screen: a table a benchmark, and what was left out below it."""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medjury.output import counted, room, say, show, width

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Any]
WIDE = ("scorer", "ICC(C,2)", "bootstrap 95 %", "F 95 %", "scored", "rho")
NARROW = ("scorer", "ICC(C,2)", "bootstrap 95 %", "scored", "rho")
LABELLED = "An interval after F is the exact F interval, 95 %, and not the bootstrap's."
SIMULATED = "simulated raters: "
SCORED = "scored "
SCORED_OF = re.compile(r"scored (\d+ of \d+)\b")
SEVERAL = re.compile(r"(\d+) responses from (\d+) instances: (.+)")
NAMES = {
    "like_for_like": "like for like",
    "clinicians": "clinicians, by pairs",
    "intra_rater": "same clinician again",
}
CONSISTENCY = (
    "ICC(C,2) = ICC(3,2) is consistency: a rater who is always a point stricter still agrees. "
    "rho is Spearman's. like for like is a difference: the jury's ICC with the other clinicians "
    "minus a held-out clinician's."
)
AGAIN = (
    "same clinician again is ICC(A,1), absolute agreement of a reading with its hidden repeat: "
    "one reading, not a mean."
)


def print_table(table: "pd.DataFrame", method: str, json_to: Path | None = None) -> None:
    """Print the rows of each benchmark as a table, and under it each note once, for whom it holds."""
    rows: list[Row] = [
        {str(key): value for key, value in one.items()} for one in table.to_dict("records")
    ]
    narrow = not fits(rows, room(json_to))
    for benchmark, group in groupby(rows, key=lambda row: str(row["benchmark"])):
        found = list(group)
        simulated = ", simulated" if any(SIMULATED in row["note"] for row in found) else ""
        title = f"{benchmark}: agreement with clinicians (method {method}{simulated})"
        show(title, *laid_out(found, narrow=narrow), json_to)
        for line in told(found):
            say(f"  {line}", json_to)
        say("", json_to)
    say(f"{CONSISTENCY} {LABELLED}" if narrow else CONSISTENCY, json_to)
    if any(row["scorer"] == "intra_rater" for row in rows):
        say(AGAIN, json_to)


def fits(rows: list[Row], room: int) -> bool:
    """Tell whether a line of the screen holds a row with both its intervals."""
    return width(WIDE, [_cells(row) for row in rows]) <= room


def laid_out(rows: list[Row], *, narrow: bool) -> tuple[tuple[str, ...], list[list[str]]]:
    """Return headings and cells, a row in one line or, where it is narrow, in two."""
    cells = [_cells(row) for row in rows]
    return (NARROW, [_narrow(*row) for row in cells]) if narrow else (WIDE, cells)


def told(rows: Sequence[Row]) -> list[str]:
    """Return each note once, with the scorers it holds for; what the columns say is left out."""
    holds: dict[str, dict[str, None]] = {}
    simulated: dict[str, None] = {}
    everybody = {_scorer(row["scorer"]) for row in rows}
    for row in rows:
        for note in filter(None, row["note"].split("; ")):
            if note.startswith(SIMULATED):
                simulated |= dict.fromkeys(note.removeprefix(SIMULATED).split(", "))
            elif not note.startswith(SCORED) and not SEVERAL.fullmatch(note):
                holds.setdefault(note, {})[_scorer(row["scorer"])] = None
    lines = [
        note if who.keys() == everybody else f"{', '.join(who)}: {note}"
        for note, who in holds.items()
    ]
    return [*_several(rows), *lines, *([SIMULATED + ", ".join(simulated)] if simulated else [])]


def _several(rows: Sequence[Row]) -> list[str]:
    """Say once that instances have several responses, with the greatest of the rows' counts."""
    notes = [note for row in rows for note in row["note"].split("; ")]
    found = [match.groups() for match in map(SEVERAL.fullmatch, notes) if match]
    if not found:
        return []
    responses, instances, means = max(found, key=lambda one: (int(one[0]), int(one[1])))
    up_to = "up to " if len(set(found)) > 1 else ""
    return [f"{up_to}{responses} responses from {instances} instances: {means}"]


def _cells(row: Row) -> list[str]:
    return [
        _scorer(row["scorer"]) + (", fragile" if _fragile(row) else ""),
        "undefined" if _none(row["icc"]) else f"{row['icc']:z.3f}",
        _interval(row["boot_low"], row["boot_high"]),
        _interval(row["f_low"], row["f_high"]),
        _scored(row),
        "" if _none(row["spearman"]) else f"{row['spearman']:z.2f}",
    ]


def _fragile(row: Row) -> bool:
    """Tell whether a comparison like for like rests on a handful of responses."""
    return row["scorer"] == "like_for_like" and "fragile: " in row["note"]


def _narrow(scorer: str, icc: str, boot: str, exact: str, scored: str, rho: str) -> list[str]:
    """Return a row with F's interval, labelled, below the bootstrap's, and shared below pairs."""
    intervals = "\n".join([*([boot] if boot else []), *([f"F {exact}"] if exact else [])])
    return [scorer, icc, intervals, scored.replace(", ", ",\n"), rho]


def _scorer(name: str) -> str:
    """Return a scorer as a reader would name it."""
    return NAMES.get(name, name.removeprefix("juror:").removeprefix("metric:"))


def _scored(row: Row) -> str:
    """Return how many responses the number rests on, and of how many where that says something."""
    if row["scorer"] == "clinicians":
        return f"{counted(row['n_pairs'], 'pair')}, {row['n_responses']} shared"
    if row["scorer"] == "intra_rater":
        return counted(row["n_responses"], "repeat")
    if row["scorer"] == "like_for_like" and _none(row["icc"]):
        return ""
    if own := SCORED_OF.match(row["note"]):
        return own[1]
    total = row["n_responses"] + (0 if _none(row["n_missing"]) else row["n_missing"])
    return f"{row['n_responses']} of {total}"


def _none(value: Any) -> bool:
    """Tell whether a figure is absent: None, NaN or pandas' NA."""
    return value is None or str(value) in ("nan", "<NA>", "NaN")


def _interval(low: Any, high: Any) -> str:
    return "" if _none(low) or _none(high) else f"{low:z.2f} to {high:z.2f}"
