"""Biases of jurors that a study cannot estimate: a sentence instead of an empty table."""

from typing import Any

from calibration.codes import NoteCode as Code
from calibration.messages import REASONS, reason
from calibration.report.content import Content
from calibration.report.definitions import Fact
from calibration.tables.numbers import known

UNTESTED = (
    "Bias towards single models is not tested, because {}. The jury may favour responses by its own "
    "models without any sign of it on this page."
)


def defined(content: Content, section: str, figure: str) -> list[Any]:
    """Return a section's rows of the benchmarks shown; none where all figures are undefined."""
    rows = content.of(section, *content.shown)
    return rows if any(known(getattr(row, figure)) for row in rows) else []


def not_tested(content: Content) -> list[Fact]:
    """Return a fact for each bias of which no figure is defined, with the reasons."""
    facts: list[Fact] = []
    for name, section, figure in (
        ("Self-preference", "self_preference", "preference"),
        ("Length", "length", "slope_per_doubling"),
    ):
        rows = content.of(section, *content.shown)
        if rows and not defined(content, section, figure):
            facts.append((name, _why(section, rows)))
    return facts


def _why(section: str, rows: list[Any]) -> str:
    notes = (note for row in rows for note in row.notes if note.code in REASONS)
    why = "; ".join(dict.fromkeys(map(reason, notes))) or "no figure is defined"
    if section != "self_preference":
        return f"Not estimated: {why}."
    if all(row.told(Code.NO_FAMILY) for row in rows):
        why = "the jurors' model families are not given (`--panel` names them)"
    if any(row.told(Code.AFTER_UNBLINDING) for row in rows):
        why = "it is known only after unblinding who wrote what"
    return UNTESTED.format(why)
