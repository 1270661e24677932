"""The agreement table on the screen: a table a benchmark, and what was left out below it."""

from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medjury.output import say, show

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Any]
COLUMNS = ("scorer", "ICC(C,2)", "F 95 %", "bootstrap 95 %", "rho", "scored")
SIMULATED = "simulated raters: "
SCORED = "scored "
NAMES = {"like_for_like": "like for like", "clinicians": "clinicians, by pairs"}
CONSISTENCY = (
    "ICC(C,2) = ICC(3,2) is consistency: a rater who is always a point stricter still agrees. "
    "rho is Spearman's. like for like is a difference: the jury's ICC with the other clinicians "
    "minus a held-out clinician's."
)


def print_table(table: "pd.DataFrame", method: str, json_to: Path | None = None) -> None:
    """Print the rows of each benchmark as a table, and under it each note once, for whom it holds."""
    rows: list[Row] = [
        {str(key): value for key, value in one.items()} for one in table.to_dict("records")
    ]
    for benchmark, group in groupby(rows, key=lambda row: str(row["benchmark"])):
        found = list(group)
        simulated = ", simulated" if any(SIMULATED in row["note"] for row in found) else ""
        title = f"{benchmark}: agreement with clinicians (method {method}{simulated})"
        show(title, COLUMNS, [_cells(row) for row in found], json_to)
        for line in _notes(found):
            say(f"  {line}", json_to)
        say("", json_to)
    say(CONSISTENCY, json_to)


def _cells(row: Row) -> list[str]:
    return [
        _scorer(row["scorer"]),
        "undefined" if _none(row["icc"]) else f"{row['icc']:.3f}",
        _interval(row["f_low"], row["f_high"]),
        _interval(row["boot_low"], row["boot_high"]),
        "" if _none(row["spearman"]) else f"{row['spearman']:.2f}",
        _scored(row),
    ]


def _scorer(name: str) -> str:
    """Return a scorer as a reader would name it."""
    return NAMES.get(name, name.removeprefix("juror:").removeprefix("metric:"))


def _scored(row: Row) -> str:
    """Return how many responses the number rests on, of how many."""
    if row["scorer"] == "clinicians":
        return f"{row['n_pairs']} pairs"
    total = row["n_responses"] + (0 if _none(row["n_missing"]) else row["n_missing"])
    return f"{row['n_responses']} of {total}"


def _notes(rows: list[Row]) -> list[str]:
    """Return each note once, with the scorers it holds for; what the columns say is left out."""
    holds: dict[str, list[str]] = {}
    simulated: dict[str, None] = {}
    for row in rows:
        for note in filter(None, row["note"].split("; ")):
            if note.startswith(SIMULATED):
                simulated |= dict.fromkeys(note.removeprefix(SIMULATED).split(", "))
            elif not note.startswith(SCORED):
                holds.setdefault(note, []).append(_scorer(row["scorer"]))
    lines = [
        note if len(who) == len(rows) else f"{', '.join(who)}: {note}"
        for note, who in holds.items()
    ]
    return lines + ([SIMULATED + ", ".join(simulated)] if simulated else [])


def _none(value: Any) -> bool:
    """Tell whether a figure is absent: None, NaN or pandas' NA."""
    return value is None or str(value) in ("nan", "<NA>", "NaN")


def _interval(low: Any, high: Any) -> str:
    return "" if _none(low) or _none(high) else f"{low:.2f} to {high:.2f}"
