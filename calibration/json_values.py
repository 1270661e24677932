"""Values as JSON takes them: what `--json` writes, with the notes of a row also in words."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from calibration.decision import Decision
from calibration.notes import Note, Noted, told
from calibration.protocol import Protocol


def json_value(value: Any) -> Any:
    """Return a value as JSON takes it.

    A dataclass becomes a mapping, of a row with notes as `json_row` says; a number that is not
    finite becomes None, a tuple or a set a list (a set in order), a note its code, its words and its figures.
    """
    if isinstance(value, Noted):
        return json_row(value)
    if isinstance(value, Note):
        figures = {name: json_value(figure) for name, figure in value.figures}
        return {"code": value.code, "text": value.text} | figures
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: json_value(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {key: json_value(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(json_value(item) for item in value)
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    value = value.isoformat() if hasattr(value, "isoformat") else value
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_row(row: Noted) -> dict[str, Any]:
    """Return a row as JSON has it: its figures, then `note`, its notes in words, then `notes`."""
    names = [field.name for field in dataclasses.fields(row) if field.name != "notes"]
    figures = {name: json_value(getattr(row, name)) for name in names}
    return figures | {"note": told(row.notes), "notes": json_value(row.notes)}


def decision_json(decision: Decision) -> dict[str, Any]:
    """Return a decision as `--json` has it; each note with its words."""
    return {
        "kind": decision.kind.value,
        "headline": decision.headline,
        "estimate": json_value(decision.estimate),
        "low": json_value(decision.low),
        "high": json_value(decision.high),
        "p": json_value(decision.p),
        "margin": json_value(decision.margin),
        "scope": decision.scope or None,
        "hangs_on": list(decision.hangs_on),
        "without": list(decision.without),
        "reasons": [_note_with_words(reason) for reason in decision.reasons],
        "basis": [_note_with_words(basis) for basis in decision.basis],
        "next": _note_with_words(decision.next) if decision.next else None,
    }


def protocol_json(protocol: Protocol | None) -> dict[str, Any] | None:
    """Return a protocol as JSON values; None where there is none."""
    return None if protocol is None else json_value(dataclasses.asdict(protocol))


def _note_with_words(note: Note) -> dict[str, Any]:
    return dict(json_value(note)) | {"words": str(note)}
