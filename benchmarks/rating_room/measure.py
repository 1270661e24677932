"""Serve the rating room, let clinicians work in it, and print what was measured."""

import argparse
import asyncio
import statistics
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import room
from browser import painted
from serving import Serving, free_port, machine, serving
from shifts import Desk, Shift, Taken, work
from study import build
from table import Row, markdown
from texts import texts

TEXTS = 160
MOST = 150
LOOPERS = 10
BROWSED = 30
HEAVY = ("/pandas/", "/scipy/", "/pyarrow/", "/numpy/")


@dataclass
class System:
    """The room, served, and how clinicians take their places in it."""

    server: Serving
    seat: Callable[[str, int], Awaitable[Sequence[Desk]]]


def main() -> None:
    """Measure and print."""
    options = _options()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        system = _room(stack, Path(folder), options)
        print(f"medjury rating room, {machine()} at the start, pace: one {options.pace} a think")
        print(markdown(asyncio.run(_measured(system, options))), flush=True)
        loaded = ", ".join(system.server.loads(*HEAVY)) or "none of them"
        print(f"{', '.join(HEAVY)} loaded: {loaded}")
    _startups(options.startups)


async def _measured(system: System, options: argparse.Namespace) -> list[Row]:
    """Return a row for each number of clinicians, then the closed loop."""
    shift = Shift(options.seconds, options.think, options.pace)
    rows = [await _worked(system, count, shift, options.rounds) for count in options.clinicians]
    loop = Shift(options.loop_seconds, 0.0, "action")
    return [*rows, await _worked(system, LOOPERS, loop, options.rounds)]


async def _worked(system: System, count: int, shift: Shift, rounds: int) -> Row:
    """Let clinicians work for some rounds, after a short one that warms the server up."""
    desks = await system.seat(f"{'loop' if not shift.think else 'shift'}{count}", count)
    await work(desks, Shift(3, min(shift.think, 1), shift.pace), seed=-1)
    took, before = Taken(), system.server.cpu_seconds()
    for number in range(rounds):
        took.add(await work(desks, shift, seed=number))
    spent, rss = system.server.cpu_seconds() - before, system.server.rss_mb()
    return Row(count, shift.think, took, spent, rss, machine())


def _room(stack: ExitStack, folder: Path, options: argparse.Namespace) -> System:
    """Serve a study, and say how its clinicians sign in."""
    load = {
        f"{kind}-{n}": min(MOST, _each(options) if kind != f"loop{LOOPERS}" else MOST)
        for kind, count in _kinds(options.clinicians)
        for n in range(count)
    }
    codes = build(folder / "study.db", texts(TEXTS), load | {"browser": BROWSED})
    port = free_port()
    command = room.command(folder / "study.db", port)
    server = stack.enter_context(serving(command, port, "/_stcore/health", folder))
    print(f"medjury ready in {server.ready_seconds:.2f} s, {server.rss_mb():.0f} MB, {machine()}")
    if options.browse:
        print(painted(server.address, codes["browser"], BROWSED - 1), machine(), flush=True)

    async def seat(kind: str, count: int) -> Sequence[Desk]:
        return await room.seat(server.address, [codes[f"{kind}-{n}"] for n in range(count)])

    return System(server, seat)


def _startups(times: int) -> None:
    """Start a study's server from nothing several times and print how soon it answers."""
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder) / "study.db", texts(4), {"one": 4})
        found = []
        for _ in range(times):
            port = free_port()
            command = room.command(Path(folder) / "study.db", port)
            with serving(command, port, "/_stcore/health", Path(folder)) as server:
                found.append((server.ready_seconds, server.cpu_seconds(), server.rss_mb()))
    if found:
        wall, cpu, rss = (statistics.median(one) for one in zip(*found, strict=True))
        print(
            f"medjury serve, median of {times} starts: ready in {wall:.2f} s "
            f"({cpu:.2f} s of CPU), {rss:.0f} MB, {machine()}"
        )


def _kinds(clinicians: Sequence[int]) -> list[tuple[str, int]]:
    """Return who works: each size of shift has clinicians of its own."""
    return [(f"shift{count}", count) for count in clinicians] + [(f"loop{LOOPERS}", LOOPERS)]


def _each(options: argparse.Namespace) -> int:
    """Return how many responses a clinician needs so as not to run out."""
    return int(options.rounds * options.seconds / max(options.think, 0.1) * 1.5) + 20


def _options() -> argparse.Namespace:
    asked = argparse.ArgumentParser()
    asked.add_argument("--clinicians", default=[20, 50], type=_numbers, help="as 20,50")
    asked.add_argument("--think", default=2.0, type=float, help="seconds, varied by half")
    asked.add_argument("--pace", default="item", choices=("item", "action"))
    asked.add_argument("--seconds", default=20.0, type=float, help="of a shift")
    asked.add_argument("--loop-seconds", default=8.0, type=float, help="of a closed loop")
    asked.add_argument("--rounds", default=3, type=int)
    asked.add_argument("--startups", default=5, type=int)
    asked.add_argument("--browse", action="store_true", help="also measure Chromium's painting")
    return asked.parse_args()


def _numbers(text: str) -> list[int]:
    return [int(one) for one in text.split(",")]
