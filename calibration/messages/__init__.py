"""The text of every note and headline, made only where somebody reads it.

No code reads a fact back from these texts: decisions take a note's code and figures.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from calibration.codes import AnyCode
from calibration.messages import (
    agreement,
    decisions,
    details,
    juries,
    models,
    monitoring,
    planning,
    response_groups,
    steps,
)
from calibration.messages.form import Message, Words, filled
from calibration.values import Note

PARTS = (
    *(agreement, details, response_groups, decisions, juries, models, monitoring, planning),
    steps,
)
REASONS: Mapping[AnyCode, Message] = {
    code: message for part in PARTS for code, message in part.REASONS.items()
}
MESSAGES: Mapping[AnyCode, Message] = {
    code: message for part in PARTS for code, message in part.MESSAGES.items()
}
GENERAL: Mapping[AnyCode, Message] = {
    code: message for part in PARTS for code, message in getattr(part, "GENERAL", {}).items()
}


def words(note: Note) -> str:
    """Return one note as a sentence without its full stop."""
    return f"undefined: {reason(note)}" if note.code in REASONS else reason(note)


def reason(note: Note) -> str:
    """Return a note as it stands within another sentence: why something is undefined, alone."""
    return _filled(REASONS.get(note.code) or MESSAGES[note.code], note)


def general(note: Note) -> str:
    """Return a note as a table tells it: of several rows at once, below what their names say."""
    return _filled(GENERAL[note.code], note) if note.code in GENERAL else words(note)


def sentence(note: Note) -> str:
    """Return one note as a sentence that stands by itself."""
    text = words(note)
    return f"{text[:1].upper()}{text[1:]}."


def told(notes: Iterable[Note]) -> str:
    """Return notes as the text of the key `note` and of a cell: sentences joined by "; "."""
    return "; ".join(map(words, notes))


def _filled(message: Message, note: Note) -> str:
    return filled(message, {name: _worded(figure) for name, figure in note.figures})


def _worded(value: Any) -> Any:
    """Return a figure with the notes in it as words."""
    if isinstance(value, Note):
        return Words(reason(value))
    return tuple(map(_worded, value)) if isinstance(value, tuple) else value
