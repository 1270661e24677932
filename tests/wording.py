"""The words of a row's notes, for tests that look at what a reader is told."""

from calibration.messages import told
from calibration.values import Noted


def note_of(row: Noted) -> str:
    """Return the notes of a row as the key `note` has them."""
    return told(row.notes)
