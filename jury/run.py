"""Run a panel: ask every juror about every response that it has not rated yet.

A juror is asked about an instance's first response, then about all its others at once. A vendor
serves the beginning that an instance's prompts share from its cache only once a first answer to it
has begun; requests sent beside that one would be billed in full, and some vendors bill the cache's
writing besides. While the first request of a group is under way, those of other groups are sent.
Jurors at one address in the house are asked one after another: such a server may have to load the
model of the next.
Only one run at a time asks about a study: `run_lock`.
"""

import asyncio
import signal
import sqlite3
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.exc import SQLAlchemyError

from data.database import database_errors, shown
from data.errors import BadInput, Conflict
from data.schema import Status, now
from data.study.calls import add_jurors
from data.study.standing import BenchmarkView
from jury.admission import admit, api_keys
from jury.budget import Budget
from jury.call import Provider
from jury.conversation import SamePrompts, Writer, ask
from jury.cost import refuse_unpriced
from jury.panel import Panel, refuse_ended
from jury.providers.registry import open_provider
from jury.run_result import RunProgress, RunResult, RunTally, with_study_spending
from jury.session import JurorSession, RunContext, rate_limiters
from jury.task import Patience
from jury.worklist import (
    Job,
    Worklist,
    benchmarks_to_rate,
    juror_record,
    learned_by,
    pending_jobs,
    refuse_changed,
)

AT_ONCE = 8
OPENING_SECONDS = 0.2
SWITCH_SECONDS = 0.001
AHEAD = 8  # one call for this many places waits with its intent stored
T = TypeVar("T")
Watch = Callable[[RunProgress], None]


def run_panel(
    engine: Engine,
    panel: Panel,
    *,
    concurrency: int | None = None,
    budget: Budget | None = None,
    replicates: int = 1,
    benchmarks: Sequence[str] | None = None,
    tasks: Sequence[BenchmarkView] = (),
    only: frozenset[int] | None = None,
    progress: Watch | None = None,
    providers: Mapping[str, Provider] | None = None,
    patience: Patience = Patience(),  # noqa: B008 - frozen
    waiting: Callable[[], None] = lambda: None,
    interrupted: Callable[[], None] = lambda: None,
) -> RunResult:
    """Ask every juror of a panel about every response that it has not rated yet.

    It may be killed at any time and run again: what is rated is not asked again. Ctrl-C lets the
    requests in flight finish and stores them; a second one drops them.

    Parameters
    ----------
    concurrency
        Requests in flight at most, over all jurors. None: 8, and at an address in the house as many
        as its server has slots.
    budget
        What the command that this run is a phase of may spend; None: what the study's budget
        leaves. Each call is checked at its highest possible cost before it is sent.
    replicates
        Verdicts of each juror on each response; more than one measure a juror's own noise.
    benchmarks
        Names of the benchmarks to rate, None for all.
    tasks, only
        Instead of them: benchmarks with the rubric to rate them on, and the primary keys of the
        responses that are meant, None for all.
    progress
        Called after every verdict.
    providers
        Connections to use instead of the panel's, by juror.
    waiting
        Called once if another run on this study has to end first.
    interrupted
        Called at a first Ctrl-C, before what is in flight is waited for.

    Raises
    ------
    BadPanel
        Before anything is sent or stored: the server's owner does not allow a juror, a key is
        missing, a model has ended, a cap is asked for without a price that counts, or the panel is
        for another rubric.
    Conflict
        The study knows a juror of the same name with other settings.
    """
    panel = admit(panel)
    rated = tuple(tasks) or benchmarks_to_rate(engine, panel, benchmarks)
    worklist = Worklist(rated, replicates, only)
    learned = {juror.name: learned_by(engine, juror, worklist) for juror in panel.juror}
    tally = RunTally(worklist.verdicts(engine, list(learned.values())), progress)

    def queue(session: JurorSession) -> Iterator[Sequence[Job]]:
        name = session.juror.name
        counter = partial(tally.ended, name)
        return pending_jobs(engine, worklist, session.rater, counter, learned[name])

    same = SamePrompts(engine)
    return run_tasks(
        engine,
        panel,
        queue,
        lambda writer, *about: ask(writer, same, *about),
        tally,
        worklist.responses,
        limits=RunLimits(concurrency, budget or Budget(), patience, replicates, interrupted),
        providers=providers or {},
        waiting=waiting,
    )


def run_tasks(
    engine: Engine,
    panel: Panel,
    queue: Callable[[JurorSession], Iterator[Sequence[T]]],
    ask: Callable[[Writer, RunContext, JurorSession, T], Awaitable[Status | None]],
    tally: RunTally,
    subjects: int,
    *,
    limits: "RunLimits",
    providers: Mapping[str, Provider] = {},
    waiting: Callable[[], None] = lambda: None,
) -> RunResult:
    """Ask every juror of a panel all that its queue holds, whatever the question is.

    Parameters
    ----------
    queue
        Returns a juror's jobs in groups whose prompts share their beginning; read as it is needed,
        once the run has the study to itself.
    ask
        Asks about one job.
    subjects
        How many responses or instances there are, as the result tells it.

    Raises
    ------
    BadPanel, BadInput, Conflict
        As `run_panel`, before anything is sent or stored.
    """
    panel, budget = admit(panel), limits.budget
    refuse_numbers(panel, budget, concurrency=limits.at_once, replicates=limits.replicates)
    all_given = {juror.name for juror in panel.juror} <= providers.keys()
    if not all_given:
        refuse_ended(panel, now().date())
    secrets = {} if all_given else api_keys(panel)
    with run_lock(engine, waiting):
        lines = {
            juror.name: providers.get(juror.name) or open_provider(juror, secrets[juror.name])
            for juror in panel.juror
        }
        sessions = known_sessions(engine, panel, lines)
        queues = [queue(session) for session in sessions]
        budget.begin(engine, panel)
        run_loop(run_all(sessions, queues, partial(ask, Writer(engine)), tally, limits))
        ends = {session.juror.name: session.stopped for session in sessions}
        result = tally.result(panel.name, subjects, ends)
        return with_study_spending(result, engine, budget)


@dataclass(frozen=True, slots=True)
class RunLimits:
    """How many requests are in flight at once, what they may cost, and how failures are retried."""

    concurrency: int | None
    budget: Budget
    patience: Patience
    replicates: int = 1
    interrupted: Callable[[], None] = lambda: None

    @property
    def at_once(self) -> int:
        """Requests in flight at most, over all jurors."""
        return AT_ONCE if self.concurrency is None else self.concurrency


def refuse_numbers(panel: Panel, budget: Budget, **counts: int) -> None:
    """Raise if a number is out of range, or there is a cap while a price is not known."""
    for name, value in counts.items():
        if value < 1:
            raise BadInput(f"{name} = {value}: must be at least 1")
    if budget.max_usd is not None:
        refuse_unpriced(panel, now())


def known_sessions(
    engine: Engine, panel: Panel, connections: Mapping[str, Provider]
) -> list[JurorSession]:
    """Return the jurors' sessions, each juror stored in the study if it is new."""
    refuse_changed(engine, panel)
    raters = add_jurors(engine, [juror_record(juror) for juror in panel.juror])
    limiters = rate_limiters(panel)
    return [
        JurorSession(juror, raters[juror.name], connections[juror.name], limiters[juror.name])
        for juror in panel.juror
    ]


async def run_all(
    sessions: Sequence[JurorSession],
    queues: Sequence[Iterator[Sequence[T]]],
    ask: Callable[[RunContext, JurorSession, T], Awaitable[Status | None]],
    tally: RunTally,
    limits: RunLimits,
) -> None:
    """Work off the jurors' queues within the same limits: all at once, at one address in the house in turn.

    A queue yields groups of jobs whose prompts share their beginning; `ask` asks about one job.
    """
    stopping, places = asyncio.Event(), asyncio.Semaphore(1)
    workers = limits.at_once + limits.at_once // AHEAD
    ready = asyncio.Semaphore(workers)
    context = RunContext(limits.budget, ready, places, stopping, limits.patience, tally)
    lines: dict[str, list[tuple[JurorSession, _JobQueue[T]]]] = {}
    for session, queue in zip(sessions, queues, strict=True):
        line = session.juror.address if session.juror.in_house else session.juror.name
        lines.setdefault(line, []).append((session, _JobQueue(queue)))

    async def work_off(line: list[tuple[JurorSession, _JobQueue[T]]]) -> None:
        if limits.concurrency is None and line[0][0].juror.in_house:
            await line[0][0].keep_to_slots()
        for session, job_queue in line:
            async with asyncio.TaskGroup() as group:
                for _ in range(workers):
                    group.create_task(work(session, job_queue))
                    await asyncio.sleep(0)  # so that no juror takes all places from the start

    async def work(session: JurorSession, job_queue: _JobQueue[T]) -> None:
        while (job := await job_queue.take()) is not None:
            status = None if stopping.is_set() else await ask(context, session, job)
            job_queue.ended(job)
            tally.ended(session.juror.name, status)

    with stopped_by_interrupt(stopping, limits.interrupted):
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_open_places(places, limits.at_once))
                for jurors_there in lines.values():
                    group.create_task(work_off(jurors_there))
        except* BaseException as failures:
            raise first_cause(failures) from None
        finally:
            for session in sessions:
                await session.provider.close()


async def _open_places(places: asyncio.Semaphore, concurrency: int) -> None:
    """Open the places one after another: answers to requests sent at once arrive at once."""
    for _ in range(concurrency - 1):
        await asyncio.sleep(OPENING_SECONDS / concurrency)
        places.release()


def run_loop(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine on uvloop, or on asyncio's own loop where there is none, as on Windows.

    The thread that stores waits for the interpreter after each statement, and a place of the run with
    it: not for 5 ms each time.
    """
    run: Callable[[Coroutine[Any, Any, None]], None] = asyncio.run
    with suppress(ImportError):
        import uvloop

        run = uvloop.run
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        run(work)
    finally:
        sys.setswitchinterval(usual)


@contextmanager
def stopped_by_interrupt(
    stopping: asyncio.Event, told: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Let a first Ctrl-C set an event and say so; a second one interrupts as usual."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        stopping.set()
        told()
        loop.remove_signal_handler(signal.SIGINT)

    try:
        loop.add_signal_handler(signal.SIGINT, stop)
    except (NotImplementedError, RuntimeError, ValueError):  # not in the main thread, or Windows
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def first_cause(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first exception of a group, out of nested groups."""
    first = failures.exceptions[0]
    return first_cause(first) if isinstance(first, BaseExceptionGroup) else first


class _JobQueue(Generic[T]):
    """One juror's jobs, given out to its workers: of each group the first one goes ahead."""

    def __init__(self, groups: Iterator[Sequence[T]]) -> None:
        self._groups = groups
        self._ready: deque[T] = deque()
        self._behind: dict[int, Sequence[T]] = {}
        self._moved = asyncio.Event()

    async def take(self) -> T | None:
        """Return the next job, None once all are given out."""
        while not self._ready:
            group = next(self._groups, None)
            if group:
                first, *others = group
                if others:
                    self._behind[id(first)] = others
                return first
            if not self._behind:
                return None
            self._moved.clear()
            await self._moved.wait()
        return self._ready.popleft()

    def ended(self, item: T) -> None:
        """Give out the rest of a group whose first job has ended, however it did."""
        others = self._behind.pop(id(item), None)
        if others is not None:
            self._ready.extend(others)
            self._moved.set()


WAIT_SECONDS = 0.2
KEY = {"key": 0x6D65646A}


@contextmanager
def run_lock(engine: Engine, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the study's jury lock; `waiting` is called once if another run holds it.

    The lock is the operating system's or the server's and ends with its process, however that
    dies, so a killed run never blocks the next one.
    """
    path = engine.url.database
    if engine.dialect.name == "postgresql":
        with _advisory(engine, waiting):
            yield
    elif path and path != ":memory:":
        with _beside(f"{path}-jury", waiting):
            yield
    else:
        yield


@contextmanager
def _beside(path: str, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold an exclusive lock on an empty database beside the study's.

    Raises
    ------
    NoStudy
        If it can be neither taken nor waited for, as on a full disk.
    """
    with database_errors(f"sqlite:///{path}"):
        connection = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        with database_errors(f"sqlite:///{path}"):
            if not _taken(connection):
                waiting()
                while not _taken(connection):
                    time.sleep(WAIT_SECONDS)
        yield
    finally:
        connection.close()


def _taken(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise
        return False
    return True


@contextmanager
def _advisory(engine: Engine, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold a lock that the PostgreSQL server keeps for one connection, and forgets when that ends.

    So each transaction that writes looks, once it has begun, whether the lock is still held.

    Raises
    ------
    Conflict
        At the next writing after the server has ended the connection.
    """
    lasting = engine.execution_options(isolation_level="AUTOCOMMIT")
    with database_errors(engine.url), lasting.connect() as lock:
        if not lock.scalar(text("SELECT pg_try_advisory_lock(:key)"), KEY):
            waiting()
            lock.execute(text("SELECT pg_advisory_lock(:key)"), KEY)

        def check(connection: Connection) -> None:
            if connection.get_execution_options().get("writes", False):
                try:
                    lock.execute(text("SELECT 1"))
                except SQLAlchemyError as error:
                    raise Conflict(
                        f"study {shown(engine.url)}: its server restarted, and another jury run may "
                        "have begun, so this one has stopped; what was stored stays. Start it again: "
                        "only what is missing is asked for"
                    ) from error

        event.listen(engine, "begin", check)
        try:
            yield
        finally:
            event.remove(engine, "begin", check)
            with suppress(SQLAlchemyError):  # a lost connection holds no lock
                lock.execute(text("SELECT pg_advisory_unlock(:key)"), KEY)
