"""The commands that are run beside the server: juries, calibrations, backups, and the last look."""

import asyncio
import json
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from book import Book
from material import Plan

MEDJURY = str(Path(sys.executable).with_name("medjury"))
AT_ONCE = 8
JURORS = 2
CALIBRATES_EVERY = 60.0
BACKS_UP_EVERY = 600.0
FEWEST_BACKUPS = 3
STOPPED = (0, 1, 130, -signal.SIGINT)  # of a jury run asked to stop; the last if it was over
CRASH = "Traceback"


@dataclass(frozen=True, slots=True)
class Site:
    """Where everything is: the folder of the run, and the stub's port."""

    folder: Path
    port: int


async def run(
    book: Book, *words: str, until: float | None = None, ends: tuple[int, ...] = (0,)
) -> dict[str, Any]:
    """Run a command with `--json -`, stopped by Ctrl-C at `until`; return its figures."""
    at, began = book.now(), time.perf_counter()
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        MEDJURY, *words, "--json", "-", stdout=pipe, stderr=pipe
    )
    telling = asyncio.create_task(process.communicate())
    if until is not None:
        await asyncio.wait([telling], timeout=max(0.0, until - book.now()))
        if not telling.done():
            process.send_signal(signal.SIGINT)
            ends = STOPPED
    out, err = (text.decode("utf-8", "replace") for text in await telling)
    what = " ".join(words[:2] if words[0] == "jury" else words[:1])
    ran = {"what": what, "at": round(at, 1), "code": process.returncode}
    book.ran.append(ran | {"seconds": round(time.perf_counter() - began, 2)})
    if process.returncode not in ends or CRASH in err:
        book.wrong(what, f"exit {process.returncode}: {err.strip()[-250:]}")
    return json.loads(out) if out.strip() else {}


async def juries(book: Book, site: Site, plan: Plan) -> None:
    """Put benchmark after benchmark before two jurors, then before the next two."""
    number = 0
    while book.now() < plan.seconds:
        cycle, place = divmod(number, len(plan.benchmarks))
        panel = _panel(site, cycle)
        words = ("--benchmark", plan.benchmarks[place], "--concurrency", f"{AT_ONCE}")
        await run(book, "jury", "run", f"{panel}", *words, until=plan.seconds)
        number += 1


async def calibrations(book: Book, plan: Plan) -> None:
    """Calibrate every minute, from the first full one on."""
    at = CALIBRATES_EVERY
    while at < plan.seconds:
        await asyncio.sleep(max(0.0, at - book.now()))
        found = await run(book, "analyse", "calibrate")
        if not any(row["scorer"] == "jury" for row in found.get("rows", [])):
            book.wrong("calibrate", "no row of the jury")
        at = max(at + CALIBRATES_EVERY, book.now())


async def backups(book: Book, site: Site, plan: Plan) -> None:
    """Back the study up every ten minutes, and keep the newest head."""
    every = min(BACKS_UP_EVERY, plan.seconds / (FEWEST_BACKUPS + 1))
    at = every
    while at < plan.seconds:
        await asyncio.sleep(max(0.0, at - book.now()))
        file = site.folder / f"backup-{at:.0f}.db"
        found = await run(book, "study", "backup", f"{file}")
        book.head = found.get("head", "")
        file.unlink(missing_ok=True)
        at += every


async def verified(book: Book) -> dict[str, Any]:
    """Return what `medjury study verify` says in the end, of the record since the last backup too."""
    since = ("--head", book.head) if book.head else ()
    return await run(book, "study", "verify", *since)


def _panel(site: Site, cycle: int) -> Path:
    """Write a panel of two jurors whom nobody has heard yet."""
    lines = [f'name = "soak-{cycle}"']
    for letter in "ab"[:JURORS]:
        name = f"juror-{cycle}{letter}"
        lines += [
            "[[juror]]",
            f'name = "{name}"',
            'provider = "openai"',
            f'model = "{name}"',
            'family = "stub"',
            f'base_url = "http://127.0.0.1:{site.port}/v1"',
            'schema = "json_schema"',
            "usd_per_million_in = 0.0",
            "usd_per_million_out = 0.0",
        ]
    path = site.folder / f"panel-{cycle}.toml"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path
