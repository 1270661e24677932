"""Start everything, let it run, look at what is left, and say what was found."""

import argparse
import asyncio
import json
import os
import platform
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import promises
import stored
from book import Book
from clinicians import Clinician
from commands import CRASH, MEDJURY, Site, backups, calibrations, juries, verified
from gauges import watch
from material import RESEARCHER, Plan, build
from researcher import research
from serving import Serving, free_port, machine, serving

LATENCY_SECONDS = 1.5  # of a juror: at eight in flight about five verdicts a second
AT_THE_DOOR = 4
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
LONGEST_CRASH = 10_000
VARIABLE = "MEDJURY_DB"
HERE = Path(__file__).parent


def main() -> int:
    """Run a soak; return 1 if a promise is broken."""
    options = _options()
    plan = Plan(options.minutes, options.clinicians)
    with tempfile.TemporaryDirectory(prefix="medjury-soak-") as name:
        folder = Path(name)
        url = options.db or f"sqlite:///{folder / 'study.db'}"
        os.environ[VARIABLE] = url  # for all commands: no `ps` shows a password
        codes = build(url, plan)
        print(f"{plan.responses} responses, {plan.clinicians} clinicians, {machine()}", flush=True)
        result = _soaked(folder, url, plan, codes)
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    _show(result)
    return int(any(one["kept"] is False for one in result["promises"]))


def _soaked(folder: Path, url: str, plan: Plan, codes: Mapping[str, str]) -> dict[str, Any]:
    """Let everybody work, then compare, verify and judge."""
    log, port = folder / "verdicts.jsonl", free_port()
    before = machine()
    command = [MEDJURY, "serve", "--port", f"{port}"]
    with _stub(log, folder) as stub, serving(command, port, "/_stcore/health", folder) as server:
        book = Book()
        asyncio.run(_worked(book, server, Site(folder, stub), plan, codes))
        checked = asyncio.run(verified(book))
    crashes = {name: _crash(folder / name) for name in ("server.log", "stub.log")}
    for name, text in crashes.items():
        if text:
            book.wrong(name, "a traceback; the result file has it under crashes")
    compared = {
        "ratings": stored.clinicians(url, book.told),
        "verdicts": stored.jurors(url, log),
    }
    return {
        "minutes": plan.minutes,
        "clinicians": plan.clinicians,
        "responses": plan.responses,
        "database": url.partition(":")[0],
        "machine": {"before": before, "after": machine(), "python": platform.python_version()},
        "promises": promises.judged(book, plan, compared, checked),
        "memory": promises.memory(book, plan),
        "memory_windows_seconds": promises.windows(plan),
        "submits": promises.latency(book),
        "commands": promises.commands(book),
        "acts": dict(book.acts),
        "compared": {who: one.to_json() for who, one in compared.items()},
        "errors": book.errors,
        "crashes": crashes,
        "ran": book.ran,
        "samples": book.samples,
    }


async def _worked(
    book: Book, server: Serving, site: Site, plan: Plan, codes: Mapping[str, str]
) -> None:
    """Let everybody do their part at once until the time is over."""
    url = os.environ[VARIABLE]
    door = asyncio.Semaphore(AT_THE_DOOR)
    async with asyncio.TaskGroup() as group:
        for name in plan.names:
            draw = random.Random(name)
            who = Clinician(name, server.address, codes[name], book, draw, door)
            group.create_task(who.work(plan.seconds))
        group.create_task(juries(book, site, plan))
        group.create_task(calibrations(book, plan))
        group.create_task(backups(book, site, plan))
        group.create_task(research(server.address, codes[RESEARCHER], book, plan.seconds))
        group.create_task(watch(book, url, server.pid, plan.seconds))


@contextmanager
def _stub(log: Path, folder: Path) -> Iterator[int]:
    """Run the jury's endpoint until the block ends; yield its port."""
    command = [sys.executable, str(HERE / "jurors.py"), str(log), f"{LATENCY_SECONDS}"]
    with (folder / "stub.log").open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            process.kill()
            process.wait(10)


def _crash(log: Path) -> str:
    """Return a log from its first traceback on, as far as that may be of use; "" without one."""
    text = COLOURS.sub("", log.read_text("utf-8", "replace"))
    return text[text.index(CRASH) :][:LONGEST_CRASH] if CRASH in text else ""


def _show(result: Mapping[str, Any]) -> None:
    """Print the tables."""
    sizes = [result["samples"][n] for n in (0, -1)] if result["samples"] else []
    print(promises.markdown(result["promises"]))
    print()
    print(promises.markdown([promises.flat(row) for row in result["memory"]]))
    for part in ("submits", "commands"):
        print()
        print(promises.markdown(result[part]))
    print(f"\n{result['acts']}; {result['machine']}")
    for one in sizes:
        print(f"at {one['at']} s: study {one['study']} MB, wal {one['wal']} MB, {one['server']}")
    for one in result["errors"]:
        print(one)


def _options() -> argparse.Namespace:
    asked = argparse.ArgumentParser()
    asked.add_argument("--minutes", default=60.0, type=float)
    asked.add_argument("--clinicians", default=20, type=int)
    asked.add_argument("--db", default="", metavar="URL", help="an empty PostgreSQL database")
    asked.add_argument("--out", type=Path, help="where all figures go, as JSON")
    return asked.parse_args()
