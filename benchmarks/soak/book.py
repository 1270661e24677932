"""What happened in a soak, as those who took part were told."""

import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

LONGEST = 300


@dataclass(frozen=True, slots=True)
class Said:
    """One submission that a clinician was told is stored."""

    scores: dict[str, int]
    comment: str


@dataclass
class Book:
    """Everything that is told, timed and complained of; times are seconds from the beginning.

    Attributes
    ----------
    told
        Assignment code -> the submissions acknowledged, in their order.
    drafted
        Assignment code -> the scores of the newest draft acknowledged.
    submits
        When a submission was answered, and after how many milliseconds.
    acts
        How often something was done: drafts, changes, lines dropped, and so on.
    ran
        Every command: what, when, how long, its exit code.
    """

    began: float = field(default_factory=time.monotonic)
    told: dict[str, list[Said]] = field(default_factory=lambda: defaultdict(list))
    drafted: dict[str, dict[str, int]] = field(default_factory=dict)
    submits: list[tuple[float, float]] = field(default_factory=list)
    acts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    ran: list[dict[str, Any]] = field(default_factory=list)
    errors: list[dict[str, Any]] = field(default_factory=list)
    samples: list[dict[str, Any]] = field(default_factory=list)
    head: str = ""

    def now(self) -> float:
        """Return the seconds since the beginning."""
        return time.monotonic() - self.began

    def wrong(self, who: str, what: object) -> None:
        """Note something that should not have been."""
        self.errors.append({"at": round(self.now(), 1), "who": who, "what": f"{what}"[:LONGEST]})
