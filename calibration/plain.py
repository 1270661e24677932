"""Values as JSON takes them: what `--json` writes, with the notes of a row also in words."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from calibration.messages import told
from calibration.values import Note, Noted


def plain(value: Any) -> Any:
    """Return a value as JSON takes it.

    A dataclass becomes a mapping, of a row with notes as `plain_row` says; what is not finite
    becomes None, a tuple or a set a list (a set in order), a note its code and figures.
    """
    if isinstance(value, Noted):
        return plain_row(value)
    if isinstance(value, Note):
        return {"code": value.code.value} | {name: plain(one) for name, one in value.figures}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(plain(one) for one in value)
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    value = value.isoformat() if hasattr(value, "isoformat") else value
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def plain_row(row: Noted) -> dict[str, Any]:
    """Return a row as JSON has it: its figures, then `note`, its notes in words, then `notes`."""
    own = [one.name for one in dataclasses.fields(row) if one.name != "notes"]
    figures = {name: plain(getattr(row, name)) for name in own}
    return figures | {"note": told(row.notes), "notes": plain(row.notes)}
