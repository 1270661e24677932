"""Running a panel: every response that has no verdict yet, before every juror."""

import asyncio
import signal
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from sqlalchemy import Engine

from data.errors import BadInput
from data.schema import Status, now
from data.store.attempts import add_jurors, known_jurors
from jury.admission import admit, api_keys
from jury.ask import SamePrompts, ask
from jury.call import Provider
from jury.conversation import Writer
from jury.cost import Budget, JurorEstimate, refuse_unpriced
from jury.panel import Panel, refuse_ended
from jury.providers.registry import open_provider
from jury.rates import rate_limiters
from jury.run_lock import run_lock
from jury.run_result import RunProgress, RunResult, RunTally, run_cap, with_study_spending
from jury.session import JurorSession, Patience, RunContext
from jury.worklist import Worklist, benchmarks_to_rate, juror_record, pending_jobs, refuse_changed

Watch = Callable[[RunProgress], None]


def run_panel(
    engine: Engine,
    panel: Panel,
    *,
    concurrency: int = 8,
    max_usd: float | None = None,
    replicates: int = 1,
    benchmarks: Sequence[str] | None = None,
    progress: Watch | None = None,
    providers: Mapping[str, Provider] | None = None,
    patience: Patience = Patience(),  # noqa: B008 - frozen
    waiting: Callable[[], None] = lambda: None,
) -> RunResult:
    """Put every response without a verdict before every juror of a panel.

    May be killed anywhere and run again: what is rated is not asked for again. Ctrl-C lets the
    requests in flight finish and stores them; a second one drops them. At most `concurrency`
    requests are in flight over all jurors; what they cost together stays within `max_usd`, each
    checked at its worst before it is sent, calls in flight when a run before it was killed
    included, and within what the study's budget leaves; `replicates` verdicts of each juror measure its own
    noise. `progress` is told after every verdict, `waiting` once if another run has to end before.
    `providers` are lines to use, by juror, instead of the panel's.

    Raises
    ------
    BadPanel
        Before anything is sent or stored: the server's owner does not allow a juror, a key is
        missing, a model has ended, a cap is asked for without a price that counts, or the panel is
        for another rubric.
    Conflict
        The study knows a juror of the same name with other settings.
    """
    panel, connections = admit(panel), dict(providers or {})
    refuse_numbers(panel, max_usd, concurrency=concurrency, replicates=replicates)
    all_given = all(juror.name in connections for juror in panel.juror)
    if not all_given:
        refuse_ended(panel, now().date())
    worklist = Worklist(benchmarks_to_rate(engine, panel, benchmarks), replicates)
    tally = RunTally(worklist.responses * len(panel.juror) * replicates, progress)
    secrets = {} if all_given else api_keys(panel)
    with run_lock(engine, waiting):
        for juror in panel.juror:
            connections[juror.name] = connections.get(juror.name) or open_provider(
                juror, secrets[juror.name]
            )
        sessions = known_sessions(engine, panel, connections)
        queues = [
            pending_jobs(engine, worklist, session.rater, tally.stands(session.juror.name))
            for session in sessions
        ]
        asking = partial(ask, Writer(engine), SamePrompts(engine))
        cap = run_cap(engine, panel, max_usd)
        limits = RunLimits(concurrency, cap.usd, patience)
        run_loop(run_all(sessions, queues, asking, tally, limits))
        return with_study_spending(
            tally.result(panel.name, worklist.responses, sessions), engine, cap
        )


def estimate(
    engine: Engine, panel: Panel, *, replicates: int = 1, benchmarks: Sequence[str] | None = None
) -> list[JurorEstimate]:
    """Return what a run would take, a row a juror; sends and stores nothing."""
    worklist = Worklist(benchmarks_to_rate(engine, panel, benchmarks), replicates)
    refuse_changed(engine, panel)
    raters = known_jurors(engine, [juror_record(juror) for juror in panel.juror])
    rows = []
    for juror in panel.juror:
        row = JurorEstimate(juror.name)
        for group in pending_jobs(engine, worklist, raters.get(juror.name, 0), lambda _: None):
            for place, job in enumerate(job for job in group if job.has_text):
                prompt = job.rubric.parts(job.card, juror.explanation)
                row = row.plus(juror, prompt.text, len(job.rubric.criteria), now())
                row = row.repeating(prompt.shared) if place else row
        rows.append(row)
    return rows


OPENING_SECONDS = 0.2
AHEAD = 8  # for so many places one call waits with its intent stored
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunLimits:
    """How many requests at a time, how much money, how much patience."""

    concurrency: int
    max_usd: float | None
    patience: Patience


def refuse_numbers(panel: Panel, max_usd: float | None, **counts: int) -> None:
    """Raise before anything happens if a number is out of range, or a cap cannot be kept."""
    for name, value in counts.items():
        if value < 1:
            raise BadInput(f"{name} = {value}: must be at least 1")
    if max_usd is not None:
        if not max_usd >= 0:
            raise BadInput(f"max_usd = {max_usd}: must be an amount of US dollars, 0 or more")
        refuse_unpriced(panel, now())


def known_sessions(
    engine: Engine, panel: Panel, connections: Mapping[str, Provider]
) -> list[JurorSession]:
    """Return the jurors with their lines, each known to the study from here on."""
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
    """Let every juror's workers take what is in that juror's queue, all sharing the same places.

    A queue yields groups: what shares the beginning of its prompts, see `Lineup`.
    """
    stopping, places = asyncio.Event(), asyncio.Semaphore(1)
    ahead = limits.concurrency // AHEAD
    ready = asyncio.Semaphore(limits.concurrency + ahead)
    context = RunContext(
        Budget(limits.max_usd), ready, places, stopping, limits.patience, tally.called, tally.shared
    )
    lineups = [Lineup(queue) for queue in queues]

    async def work(session: JurorSession, lineup: Lineup[T]) -> None:
        while (job := await lineup.take()) is not None:
            status = None if stopping.is_set() else await ask(context, session, job)
            lineup.ended(job)
            tally.ended(session.juror.name, status)

    with stopped_by_interrupt(stopping):
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_open_up(places, limits.concurrency))
                # In turn, so that all jurors are heard at once and none holds all the places.
                for _ in range(limits.concurrency + ahead):
                    for session, lineup in zip(sessions, lineups, strict=True):
                        group.create_task(work(session, lineup))
        except* BaseException as failures:
            raise first_cause(failures) from None
        finally:
            for session in sessions:
                await session.provider.close()


async def _open_up(places: asyncio.Semaphore, concurrency: int) -> None:
    """Open the places one after another: requests sent at once come back at once, and queue."""
    for _ in range(concurrency - 1):
        await asyncio.sleep(OPENING_SECONDS / concurrency)
        places.release()


def run_loop(work: Coroutine[Any, Any, None]) -> None:
    """Run it on uvloop where there is one: Windows has none."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(work)
        return
    uvloop.run(work)


@contextmanager
def stopped_by_interrupt(stopping: asyncio.Event) -> Iterator[None]:
    """Let the first Ctrl-C set the event; a second one interrupts as usual."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        stopping.set()
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
    """Return the first cause in a group of failures."""
    first = failures.exceptions[0]
    return first_cause(first) if isinstance(first, BaseExceptionGroup) else first


class Lineup(Generic[T]):
    """What one juror is still to be asked, given out to its workers."""

    def __init__(self, groups: Iterator[Sequence[T]]) -> None:
        self._groups = groups
        self._ready: deque[T] = deque()
        self._behind: dict[int, Sequence[T]] = {}
        self._moved = asyncio.Event()

    async def take(self) -> T | None:
        """Return what to ask next, None where all has been given out."""
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
        """Let those behind one that was taken follow, however it ended."""
        others = self._behind.pop(id(item), None)
        if others is not None:
            self._ready.extend(others)
            self._moved.set()
