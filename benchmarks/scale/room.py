"""Measure the rating room on PostgreSQL with milliseconds between app and database.

    PYTHONPATH=tests uv run python benchmarks/scale/room.py [--ms 3] [--clinicians 20] [--seconds 30]

First what each message of a clinician costs: statements, and how often the app waits for the
database. Then clinicians who think between their messages: how long they wait. Then as many
submissions as go, by one replica (a process) and by two. What the room's messages call is called
directly: no browser, no HTTP. To compare commits, put another work tree first in PYTHONPATH.
"""

import argparse
import multiprocessing
import os
import random
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from delayed import Way, delayed
from kit import postgres
from kit.rating_study import build, message, row, rubric
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
    options = parser.parse_args()
    here = postgres.new_study()
    names = [f"dr-{n}" for n in range(options.clinicians)]
    codes = build(open_study(here), [row(n, WORDS) for n in range(1, 401)], names, rubric(*SCORES))
    socket = f"{make_url(here).query['host']}/.s.PGSQL.5432"
    with delayed(socket, options.ms) as way:
        far = f"postgresql+psycopg://postgres@127.0.0.1:{way.port}/{make_url(here).database}"
        far += "?sslmode=disable&gssencmode=disable"
        _costs(open_study(far), way, codes[names[0]])
        waits = _replica(far, list(codes.values()), options.seconds, options.think)
        print(f"{len(names)} clinicians, {options.think} s think time, {options.ms} ms each way:")
        print(f"  {_spread(waits)}; load {os.getloadavg()[0]:.1f}")
        for replicas in (1, 2, 1, 2):
            rate = _throughput(far, list(codes.values()), replicas, options.seconds / 2)
            print(f"{replicas} replica(s): {rate:.1f} submissions/s; load {os.getloadavg()[0]:.1f}")
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


def _throughput(url: str, codes: Sequence[str], replicas: int, seconds: float) -> float:
    """Return how many submissions a second so many replicas store, clinicians never thinking."""
    context = multiprocessing.get_context("spawn")
    shares = [codes[n::replicas] for n in range(replicas)]
    with context.Pool(replicas) as pool:
        jobs = [pool.apply_async(_replica, (url, share, seconds, 0.0, 0)) for share in shares]
        return sum(len(job.get()) for job in jobs) / seconds


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


def _send(engine: Engine, person: Person, code: str, number: int, submit: bool) -> None:
    """Do what the server does for a message: whose it is, and what becomes of it."""
    queries.session_state(engine, person.access, 10**9)
    payload: dict[str, Any] = message(code, number, scores=SCORES, submit=submit)
    answer = requests._message(engine, person, payload)
    if b'"error":""' not in bytes(answer.body):
        raise SystemExit(bytes(answer.body[:500]))


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
