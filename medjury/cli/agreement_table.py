"""The agreement table on the screen: a table a benchmark, and what was left out below it."""

import re
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medjury.cli.agreement_notes import SIMULATED, few_resamples, named
from medjury.cli.agreement_notes import told as told  # the table of models takes it from here
from medjury.cli.output import counted, room, say, show, width

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Any]
WIDE = ("scorer", "ICC(C,2)", "bootstrap 95 %", "F 95 %", "scored", "rho")
NARROW = ("scorer", "ICC(C,2)", "bootstrap 95 %", "scored", "rho")
LABELLED = "An interval after F is the exact F interval, 95 %, and not the bootstrap's."
SCORED_OF = re.compile(r"scored (\d+ of \d+)\b")
CONSISTENCY = (
    "ICC(C,2) = ICC(3,2) is consistency: a rater who is always a point stricter still agrees. "
    "rho is Spearman's. like for like is a difference: the jury's ICC with the other clinicians "
    "minus a held-out clinician's."
)
AGAIN = (
    "same clinician again is ICC(A,1), absolute agreement of a reading with its hidden repeat: "
    "one reading, not a mean."
)


def print_table(
    table: "pd.DataFrame", method: str, drawn: tuple[int, int], json_to: Path | None = None
) -> None:
    """Print the rows of each benchmark as a table, and under it each note once, for whom it holds.

    `drawn` are the resamples and their seed, which stand below every table.
    """
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
        say(f"  {_resampled(*drawn)}", json_to)
        say("", json_to)
    say(f"{CONSISTENCY} {LABELLED}" if narrow else CONSISTENCY, json_to)
    if any(row["scorer"] == "intra_rater" for row in rows):
        say(AGAIN, json_to)


def _resampled(reps: int, seed: int) -> str:
    few = few_resamples(reps)
    return f"{reps} resamples, seed {seed}" + (f": {few}" if few else "")


def fits(rows: list[Row], room: int) -> bool:
    """Tell whether a line of the screen holds a row with both its intervals."""
    return width(WIDE, [_cells(row) for row in rows]) <= room


def laid_out(rows: list[Row], *, narrow: bool) -> tuple[tuple[str, ...], list[list[str]]]:
    """Return headings and cells, a row in one line or, where it is narrow, in two."""
    cells = [_cells(row) for row in rows]
    return (NARROW, [_narrow(*row) for row in cells]) if narrow else (WIDE, cells)


def _cells(row: Row) -> list[str]:
    from calibration.report.tables import is_fragile

    return [
        named(row["scorer"]) + (", fragile" if is_fragile(row) else ""),
        "undefined" if _none(row["icc"]) else f"{row['icc']:z.3f}",
        _interval(row["boot_low"], row["boot_high"]),
        _interval(row["f_low"], row["f_high"]),
        _scored(row),
        "" if _none(row["spearman"]) else f"{row['spearman']:z.2f}",
    ]


def _narrow(scorer: str, icc: str, boot: str, exact: str, scored: str, rho: str) -> list[str]:
    """Return a row with F's interval, labelled, below the bootstrap's, and shared below pairs."""
    intervals = "\n".join([*([boot] if boot else []), *([f"F {exact}"] if exact else [])])
    return [scorer, icc, intervals, scored.replace(", ", ",\n"), rho]


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
