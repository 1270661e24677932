"""`medjury calibrate --details` on the screen: a small table for every section of statistics."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from medjury.cli.agreement_cells import Row
from medjury.cli.agreement_notes import few_resamples, told
from medjury.cli.agreement_sections import LEGEND, SECTIONS, Section
from medjury.cli.output import say, show


def print_details(
    found: Mapping[str, Sequence[Row]], json_to: Path | None = None, reps: int = 2000
) -> None:
    """Print every section that has rows: of all benchmarks combined, or of the only one."""
    for name, section in SECTIONS.items():
        rows = found.get(name, ())
        last = [row for row in rows if row["benchmark"] == rows[-1]["benchmark"]]
        if last:
            _print_section(section, last, json_to, few_resamples(reps) if section.resampled else "")
            say("", json_to)
    if any(found.values()):
        say(LEGEND, json_to)


def _print_section(section: Section, every: Sequence[Row], json_to: Path | None, few: str) -> None:
    """Print one section: a table, or a line where there is nothing to tabulate."""
    rows = [row for row in every if section.wanted(row)][: section.most]
    others = [_about(row, section) for row in every if not section.wanted(row)]
    rest = f"{section.unwanted}: {', '.join(others)}" if section.unwanted and others else ""
    title, notes = f"{every[0]['benchmark']}: {section.title}", _notes(section, rows)
    if not any(row[field] is not None for row in rows for field in section.tells):
        said = f"{title}: {'; '.join(notes) or 'nothing to tell'}"
        say(f"{every[0]['benchmark']}: {rest}" if rest else said, json_to)
        return
    cells = [[cell(row) for cell in section.columns.values()] for row in rows]
    show(title, list(section.columns), cells, json_to)
    for line in filter(None, [section.said(rows), *notes, rest, few]):
        say(f"  {line}", json_to)


def _notes(section: Section, rows: Sequence[Row]) -> list[str]:
    """Return what the rows' notes say, but for what repeats a cell."""
    kept = [
        {
            "scorer": _about(row, section),
            "on": row["criterion"] if "criterion" in section.columns else "",
            "note": "; ".join(
                one for one in row["note"].split("; ") if not re.match(section.unsaid, one)
            ),
        }
        for row in rows
    ]
    return told(kept)


def _about(row: Row, section: Section) -> str:
    """Return whom a row is about, as its notes name them."""
    name = f"{row[section.about]}".removeprefix("juror:").removeprefix("metric:")
    return "the clinicians" if name == "clinicians" else name
