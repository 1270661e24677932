"""Running jurors side by side, and what that comes to: counted while it goes, told when it ends."""

import asyncio
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy import Engine

from data.errors import BadInput
from data.schema import Status, now
from data.store.attempts import add_jurors
from data.token_costs import TokenCosts
from jury.call import Provider, Usage
from jury.cost import Budget, Price, refuse_unpriced
from jury.lineup import Lineup
from jury.panel import Panel
from jury.rates import gates
from jury.session import JurorSession, Patience, RunContext
from jury.worklist import record_of, refuse_changed

INTERRUPTED = "interrupted"
OPENING_SECONDS = 0.2
AHEAD = 8  # for so many places one call waits with its intent stored
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run has come to.

    Attributes
    ----------
    rated, missing
        Verdicts that stand in the study, from this run or an earlier one, and those that do not;
        together responses x jurors x replicates.
    by_status
        Status -> verdicts that ended so; "ok" is `rated`. Verdicts that a stopped run never came
        to are "interrupted".
    by_juror
        The same for each juror.
    calls
        Requests sent in this run, those repeated included.
    usd, usd_unknown
        What they cost together, and for how many of them no cost is known.
    stopped
        Juror -> why it was asked no more.
    usd_in_flight, calls_in_flight
        Calls of the study, of this run and all before it, whose cost nobody knows: in flight when
        a run was killed, never answered, or in a batch; and what they can cost at most.
    usd_study, budget
        What the study has spent over all runs, those calls at their worst included, and what it
        may spend at most; None where it sets no bound.
    usd_carried, calls_carried
        Of the calls in flight, those of killed runs that count against the cap of this run.
    tokens
        What this run's calls took, by kind of token, and what each kind cost.
    shared_prompts
        Verdicts of this run that took no call: the juror had rated the very same prompt.
    """

    panel: str
    responses: int
    jurors: int
    rated: int
    missing: int
    by_status: Mapping[str, int]
    by_juror: Mapping[str, Mapping[str, int]]
    calls: int
    usd: float
    usd_unknown: int
    stopped: Mapping[str, str] = field(default_factory=dict)
    usd_in_flight: float = 0.0
    calls_in_flight: int = 0
    usd_study: float = 0.0
    budget: float | None = None
    usd_carried: float = 0.0
    calls_carried: int = 0
    tokens: TokenCosts = field(default_factory=TokenCosts)
    shared_prompts: int = 0

    @property
    def interrupted(self) -> bool:
        """Whether the run was stopped before it came to its end."""
        return INTERRUPTED in self.by_status

    def to_json(self) -> dict[str, Any]:
        """Return what `medjury jury run --json` writes."""
        names = ("panel", "responses", "jurors", "rated", "missing")
        body = {name: getattr(self, name) for name in names}
        body["by_status"] = dict(self.by_status)
        money = ("calls", "usd", "usd_unknown", "usd_in_flight", "usd_study")
        body |= {name: getattr(self, name) for name in money}
        cached = {"cached_tokens": self.tokens.cached, "tokens": self.tokens.to_json()}
        return body | cached | {"shared_prompts": self.shared_prompts}


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is: of `total` verdicts `done` have ended, as counted in `by_status`."""

    total: int
    done: int
    by_status: Mapping[str, int]
    calls: int
    usd: float
    usd_unknown: int


class Tally:
    """Counts a run; `tick` is told after every verdict."""

    def __init__(self, total: int, tick: Callable[[Progress], None] | None) -> None:
        self._total = total
        self._tick = tick
        self._done: dict[str, Counter[str]] = {}
        self._status: Counter[str] = Counter()
        self._tokens = TokenCosts()
        self._shared = 0
        self.calls = 0
        self.usd = 0.0
        self.usd_unknown = 0

    def called(self, cost: Price, usage: Usage) -> None:
        """Count one request, its cost and its tokens."""
        self.calls += 1
        self.usd += cost.usd or 0.0
        self.usd_unknown += cost.usd is None
        self._tokens = self._tokens.plus(cost.of(usage))

    def shared(self) -> None:
        """Count one verdict that was given to the same prompt before."""
        self._shared += 1

    def ended(self, juror: str, status: Status | None) -> None:
        """Count one verdict; None is one that the run was stopped before."""
        name = INTERRUPTED if status is None else str(status)
        self._status[name] += 1
        self._done.setdefault(juror, Counter())[name] += 1
        if self._tick is not None:
            self._tick(self.progress())

    def stands(self, juror: str) -> Callable[[Status], None]:
        """Return what counts a juror's verdict that stands already."""
        return lambda status: self.ended(juror, status)

    def progress(self) -> Progress:
        """Return how far the run is."""
        done = self._status.total()
        counts = dict(self._status)
        return Progress(self._total, done, counts, self.calls, self.usd, self.usd_unknown)

    def result(self, panel: str, responses: int, sessions: Sequence[JurorSession]) -> RunResult:
        """Return what the run has come to."""
        rated = self._status[str(Status.OK)]
        return RunResult(
            panel=panel,
            responses=responses,
            jurors=len(sessions),
            rated=rated,
            missing=self._total - rated,
            by_status={name: self._status[name] for name in sorted(self._status)},
            by_juror={name: dict(counts) for name, counts in self._done.items()},
            calls=self.calls,
            usd=round(self.usd, 9),
            usd_unknown=self.usd_unknown,
            stopped={one.juror.name: one.stopped[1] for one in sessions if one.stopped},
            tokens=self._tokens,
            shared_prompts=self._shared,
        )


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
    engine: Engine, panel: Panel, lines: Mapping[str, Provider]
) -> list[JurorSession]:
    """Return the jurors with their lines, each known to the study from here on."""
    refuse_changed(engine, panel)
    raters = add_jurors(engine, [record_of(one) for one in panel.juror])
    doors = gates(panel)
    return [
        JurorSession(one, raters[one.name], lines[one.name], doors[one.name]) for one in panel.juror
    ]


async def run_all(
    sessions: Sequence[JurorSession],
    queues: Sequence[Iterator[Sequence[T]]],
    ask: Callable[[RunContext, JurorSession, T], Awaitable[Status | None]],
    tally: Tally,
    limits: RunLimits,
) -> None:
    """Let every juror's workers take what is in that juror's queue, all sharing the same places.

    A queue yields groups: what shares the beginning of its prompts, see `jury/lineup.py`.
    """
    stopping, places = asyncio.Event(), asyncio.Semaphore(1)
    ahead = limits.concurrency // AHEAD
    ready = asyncio.Semaphore(limits.concurrency + ahead)
    context = RunContext(
        Budget(limits.max_usd), ready, places, stopping, limits.patience, tally.called, tally.shared
    )
    lineups = [Lineup(queue) for queue in queues]

    async def work(session: JurorSession, lineup: Lineup[T]) -> None:
        while (one := await lineup.take()) is not None:
            status = None if stopping.is_set() else await ask(context, session, one)
            lineup.ended(one)
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
