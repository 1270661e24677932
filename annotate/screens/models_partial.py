"""Figures of models that rest on fewer benchmarks than the columns beside them say so."""

from collections.abc import Mapping, Sequence
from typing import Any

from annotate import tables

Row = Mapping[str, Any]
LESS = (
    "not comparable with models"  # of the notes, what says which benchmarks are left out, and why
)


def marked(text: str, row: Row | None, every: int) -> str:
    """Return a cell with the number of benchmarks below it where it is not all of them."""
    if row is None or not 0 < row["n_benchmarks"] < every:
        return text
    on = f"{row['n_benchmarks']} of {every} benchmarks"
    return tables.Markup(f'{tables.escaped(text)}<small class="mj-on">{on}</small>')


def notes(rows: Sequence[Row], every: int, ways: Mapping[str, str]) -> list[str]:
    """Return why figures rest on fewer benchmarks, each reason once, with whom it holds for."""
    holds: dict[str, list[str]] = {}
    for row in rows:
        if 0 < row["n_benchmarks"] < every:
            for part in row["note"].split("; "):
                if LESS in part:
                    holds.setdefault(f"By {ways[row['by']]}: {part}", []).append(row["model"])
    models = len({row["model"] for row in rows})
    return [
        f"{told} ({'all models' if len(who) == models else ', '.join(who)})"
        for told, who in holds.items()
    ]


def without(row: Row) -> str:
    """Return of a category's mean which benchmarks it lacks, or how many responses it has."""
    lost = [part for part in row["note"].split("; ") if part.startswith("without ")]
    return lost[0] if lost else "all benchmarks"
