"""Measure the rating room on PostgreSQL with milliseconds between app and database.

    PYTHONPATH=tests uv run python benchmarks/scale/room.py [--ms 3] [--clinicians 20] [--seconds 30]

First what each message of a clinician costs: statements, and how often the app waits for the
database. Then clinicians who think between their messages: how long they wait. Then as many
submissions as go, by one replica (a process) and by two, with the processor time that a submission
takes of replicas, database and the way there, and how much of the time the record was locked. With
--share 0.25 each replica has a quarter of a processor, so that what they share is not this machine.
What the room's messages call is called directly: no browser, no HTTP. To compare commits, put
another work tree first in PYTHONPATH.
"""

import argparse
import json
import multiprocessing
import os
import random
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from delayed import Way, delayed
from kit import postgres
from kit.rating_study import build, message, row, rubric
from processors import held_to, locks_watched, used_by, used_by_server
from sqlalchemy import Engine, event, make_url

from annotate.rating import requests
from data import queries
from data.database import open_study
from data.queries import Person, check_code
from data.queries.record import verify

SCORES = {"accuracy": 4, "completeness": 3, "clarity": 5}
DRAFTS = 2  # of a response before it is submitted


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ms", type=float, default=3)
    parser.add_argument("--clinicians", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--think", type=float, default=2)
    parser.add_argument("--share", type=float, default=0, help="of a processor, for each replica")
    parser.add_argument("--rounds", type=int, default=2, help="of one replica and two")
    options = parser.parse_args()
    here = postgres.new_study()
    names = [f"dr-{n}" for n in range(options.clinicians)]
    codes = build(open_study(here), [row(n, WORDS) for n in range(1, 801)], names, rubric(*SCORES))
    socket = f"{make_url(here).query['host']}/.s.PGSQL.5432"
    with delayed(socket, options.ms) as way:
        far = f"postgresql+psycopg://postgres@127.0.0.1:{way.port}/{make_url(here).database}"
        far += "?sslmode=disable&gssencmode=disable"
        _costs(open_study(far), way, codes[names[0]])
        waits = _replica(far, list(codes.values()), options.seconds, options.think)
        print(f"{len(names)} clinicians, {options.think} s think time, {options.ms} ms each way:")
        print(f"  {_spread(waits)}; load {os.getloadavg()[0]:.1f}")
        place = Place(far, make_url(here).query["host"], way.process)
        for replicas in (1, 2) * options.rounds:
            _throughput(place, list(codes.values()), replicas, options)
    print("findings:", verify(open_study(here)).findings)


WORDS = " ".join(random.Random(0).choices(["patient", "reports", "no", "pain", "since"], k=300))


def _costs(engine: Engine, way: Way, code: str) -> None:
    """Print what each message costs once connections stand and statements are known."""
    statements: list[str] = []
    person = _person(engine, code)
    for _ in range(8):
        _rate(engine, person, drafts=1)
    event.listen(engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    acts: dict[str, Callable[[str], object]] = {
        "arrival": lambda _: requests._arrive(engine, person, {}),
        "draft": lambda shown: _send(engine, person, shown, 1, submit=False),
        "submission": lambda shown: _send(engine, person, shown, 2, submit=True),
    }
    print("message | statements | round trips | ms")
    for name, act in acts.items():
        shown = _next(engine, person)
        before, asked, begun = way.round_trips(), len(statements), time.perf_counter()
        act(shown)
        took = (time.perf_counter() - begun) * 1000
        print(name, len(statements) - asked, way.round_trips() - before, f"{took:.0f}", sep=" | ")


@dataclass(frozen=True)
class Place:
    """Where the database is, for replicas; its folder, and the process that is the way to it."""

    url: str
    folder: Any
    way: int

    def used(self) -> tuple[float, float]:
        """Return the processor seconds of database and way."""
        return used_by_server(self.folder), used_by(self.way)


def _throughput(
    place: Place, codes: Sequence[str], replicas: int, options: argparse.Namespace
) -> None:
    """Print how many submissions a second so many replicas store, clinicians never thinking."""
    context = multiprocessing.get_context("spawn")
    gate = context.Barrier(replicas + 1)
    with (
        context.Pool(replicas, _enter, (gate,)) as pool,
        locks_watched(place.folder, make_url(place.url).database or "") as looks,
    ):
        about = (options.seconds / 2, options.share)
        shares = [codes[n::replicas] for n in range(replicas)]
        jobs = [pool.apply_async(_full_speed, (place.url, share, *about)) for share in shares]
        gate.wait()
        before = place.used()
        looks.all = looks.held = looks.waiting = 0
        stored, used = map(sum, zip(*(job.get() for job in jobs), strict=True))
        server, way = (now - then for now, then in zip(place.used(), before, strict=True))
    each = " + ".join(f"{1000 * seconds / stored:.1f}" for seconds in (used, server, way))
    print(
        f"{replicas} replica(s): {2 * stored / options.seconds:.1f} submissions/s; processor ms each, "
        f"of replicas, database and way: {each}; record locked {looks.held / looks.all:.0%} of the "
        f"time, awaited {looks.waiting / looks.all:.0%}; load {os.getloadavg()[0]:.1f}",
        flush=True,
    )


def _enter(gate: Any) -> None:
    """Keep the gate at which all replicas wait for each other."""
    globals()["_gate"] = gate


def _full_speed(url: str, codes: Sequence[str], seconds: float, share: float) -> tuple[int, float]:
    """Submit as fast as goes; return how many submissions, and the processor seconds they took."""
    engine = open_study(url)
    people = [_person(engine, code) for code in codes]
    with ThreadPoolExecutor(len(people)) as pool:
        list(pool.map(lambda person: _rate(engine, person, 0), people))
        with held_to(share):
            globals()["_gate"].wait()
            used, until = time.process_time(), time.monotonic() + seconds
            stored = sum(pool.map(partial(_submit, engine, until), people))
            used = time.process_time() - used
    engine.dispose()
    return stored, used


def _submit(engine: Engine, until: float, person: Person) -> int:
    """Submit what is next, as the page does: each answer says what that is."""
    shown, stored = _next(engine, person), 0
    while time.monotonic() < until:
        shown = _send(engine, person, shown, 1, submit=True)
        stored += 1
    return stored


def _replica(
    url: str, codes: Sequence[str], seconds: float, think: float, drafts: int = DRAFTS
) -> list[float]:
    """Rate as so many clinicians for a while; return how many seconds each message took."""
    engine = open_study(url)
    work = partial(_clinician, engine, seconds, think, drafts)
    with ThreadPoolExecutor(len(codes)) as pool:
        waits = [wait for some in pool.map(work, codes) for wait in some]
    engine.dispose()
    return waits


def _clinician(engine: Engine, seconds: float, think: float, drafts: int, code: str) -> list[float]:
    person, waits = _person(engine, code), list[float]()
    _next(engine, person)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        waits += _rate(engine, person, drafts, think, until)
    return waits


def _rate(
    engine: Engine, person: Person, drafts: int, think: float = 0, until: float = float("inf")
) -> list[float]:
    """Rate the next response; return how many seconds each message took."""
    waits, shown = list[float](), _next(engine, person)
    for number in range(1, drafts + 2):
        time.sleep(random.uniform(0.5, 1.5) * think)
        if time.monotonic() > until:
            break
        begun = time.perf_counter()
        _send(engine, person, shown, number, submit=number > drafts)
        waits.append(time.perf_counter() - begun)
    return waits


def _send(engine: Engine, person: Person, code: str, number: int, submit: bool) -> str:
    """Do what the server does for a message: whose it is, and what becomes of it.

    Return the code of what is shown next, "" where it is the same.
    """
    queries.session_state(engine, person.access, 10**9)
    payload: dict[str, Any] = message(code, number, scores=SCORES, submit=submit)
    answer = requests._message(engine, person, payload)
    if b'"error":""' not in bytes(answer.body):
        raise SystemExit(bytes(answer.body[:500]))
    return str(json.loads(answer.body).get("shown", {}).get("code", ""))


def _next(engine: Engine, person: Person) -> str:
    task = queries.next_task(engine, person.rater or 0).task
    if task is None:
        raise SystemExit("all is rated: give more responses, or fewer seconds")
    return task.card.code


def _person(engine: Engine, code: str) -> Person:
    person = check_code(engine, code).person
    if person is None:
        raise SystemExit("no such code")
    return person


def _spread(waits: Sequence[float]) -> str:
    cuts = statistics.quantiles(waits, n=20)
    return f"{len(waits)} messages, p50 {cuts[9] * 1000:.0f} ms, p95 {cuts[18] * 1000:.0f} ms"


if __name__ == "__main__":
    main()
