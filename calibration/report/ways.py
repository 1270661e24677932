"""Counts of juries tried: a jury is its jurors; a way is a benchmark, criterion, method and so on."""

from collections.abc import Sequence
from typing import Protocol

from calibration.codes import NoteCode as Code
from calibration.messages import words
from calibration.values import note


class Looked(Protocol):
    """An entry of the ledger: one jury, looked at in one way."""

    @property
    def jurors(self) -> Sequence[str]:
        """The names of its jurors."""

    @property
    def simulated(self) -> bool:
        """Whether any of them is."""


def different(entries: Sequence[Looked]) -> int:
    """Return how many different juries entries of the ledger are of, by their jurors alone."""
    return len({tuple(sorted(one.jurors)) for one in entries})


def ever_tried(entries: Sequence[Looked]) -> str:
    """Return how many juries of real jurors were ever tried, and how many with simulated ones."""
    real = [one for one in entries if not one.simulated]
    made_up = [one for one in entries if one.simulated]
    return words(
        note(
            Code.EVER_TRIED,
            juries=different(real),
            ways=len(real),
            simulated_juries=different(made_up),
            simulated_ways=len(made_up),
        )
    )
