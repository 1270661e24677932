"""What scripted clinicians do all shift, whichever system they sit before.

A clinician reads for the think time, strikes three scores and submits. With the pace `item`
the strokes come together: the form joins them into one draft, and the submission follows.
With the pace `action` every score is thought about and saved by itself.
"""

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

DRAFTS = {"item": 1, "action": 3}


class Desk(Protocol):
    """One clinician's place at a system."""

    async def draft(self, upto: int) -> None:
        """Score the first so many criteria and wait until that is saved."""

    async def submit(self) -> bool:
        """Submit and wait for the next response; False if that was the last."""


@dataclass(frozen=True, slots=True)
class Shift:
    """How clinicians work: how long, thinking how many seconds before what."""

    seconds: float
    think: float
    pace: str = "item"


@dataclass
class Taken:
    """How long things took, in milliseconds."""

    submits: list[float] = field(default_factory=list)
    drafts: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, other: "Taken") -> None:
        """Take in what another shift took."""
        self.submits += other.submits
        self.drafts += other.drafts
        self.seconds += other.seconds

    @property
    def actions(self) -> int:
        """How many messages were answered."""
        return len(self.submits) + len(self.drafts)


async def work(desks: Sequence[Desk], shift: Shift, seed: int = 0) -> Taken:
    """Let all of them work at once and return what everything took."""
    taken = Taken()
    began = time.perf_counter()
    until = began + shift.seconds
    async with asyncio.TaskGroup() as group:
        for number, desk in enumerate(desks):
            draw = random.Random(f"{seed} {number}")
            group.create_task(_clinician(desk, shift, until, draw, taken))
    taken.seconds = time.perf_counter() - began
    return taken


async def _clinician(
    desk: Desk, shift: Shift, until: float, draw: random.Random, taken: Taken
) -> None:
    """Rate until the shift is over or nothing is left."""
    await asyncio.sleep(draw.uniform(0, shift.think))
    while time.perf_counter() < until:
        for done in range(1, DRAFTS[shift.pace] + 1):
            await asyncio.sleep(_pause(shift.think, draw))
            began = time.perf_counter()
            await desk.draft(done if shift.pace == "action" else 3)
            taken.drafts.append(1000 * (time.perf_counter() - began))
        if shift.pace == "action":
            await asyncio.sleep(_pause(shift.think, draw))
        began = time.perf_counter()
        more = await desk.submit()
        taken.submits.append(1000 * (time.perf_counter() - began))
        if not more:
            return


def _pause(think: float, draw: random.Random) -> float:
    return draw.uniform(0.5, 1.5) * think
