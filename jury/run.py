"""Running a panel: every response that has no verdict yet, before every juror."""

import asyncio
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Engine

from data import queries
from data.errors import BadInput, BadPanel, Unknown
from data.rubric import Rubric
from data.schema import Status, now
from data.store.attempts import JurorRecord, add_jurors, known_jurors
from jury.alone import alone
from jury.ask import Desk, Job, ask
from jury.call import Provider
from jury.cost import Budget, JurorEstimate, refuse_unpriced
from jury.lane import Lane, Patience
from jury.panel import Juror, Panel, keys, refuse_ended
from jury.providers import open_provider
from jury.tally import Progress, RunResult, Tally
from jury.writer import Writer

Watch = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class _Task:
    """A benchmark to be rated: its name, its rubric and how many responses it has."""

    benchmark: str
    rubric: Rubric
    responses: int


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
    patience: Patience | None = None,
    waiting: Callable[[], None] = lambda: None,
) -> RunResult:
    """Put every response without a verdict before every juror of a panel.

    May be killed anywhere and run again: what is rated is not asked for again. Ctrl-C lets the
    requests in flight finish and stores them; a second Ctrl-C drops them.

    Parameters
    ----------
    concurrency
        Requests in flight at a time, over all jurors.
    max_usd
        Cap on what this run may cost, checked before each request at its worst case.
    replicates
        Verdicts wanted of each juror on each response; more than one measures its own noise.
    benchmarks
        Names of the benchmarks to rate; all of the study by default.
    progress
        Told after every verdict.
    providers
        Juror name -> a line to use instead of the one its provider names.
    patience
        How to bear with failures that may pass.
    waiting
        Called once if another run holds the study; this one starts when that has ended.

    Raises
    ------
    BadPanel
        Before anything is sent or stored: if a key is missing, a model has ended, a cap is asked
        for without a price, or the panel is for another rubric.
    Conflict
        If the study knows a juror of the same name with other settings.
    """
    lines = dict(providers or {})
    _refuse(panel, concurrency, replicates, max_usd, lines)
    tasks = _tasks(engine, panel, benchmarks)
    secrets = {} if all(one.name in lines for one in panel.juror) else keys(panel)
    with alone(engine, waiting):
        for one in panel.juror:
            if one.name not in lines:
                lines[one.name] = open_provider(one, secrets[one.name])
        raters = add_jurors(engine, [_record(one) for one in panel.juror])
        lanes = [Lane(one, raters[one.name], lines[one.name]) for one in panel.juror]
        total = sum(task.responses for task in tasks) * len(lanes) * replicates
        tally = Tally(total, progress)
        jobs = [_jobs(engine, tasks, lane.rater, replicates, _count(tally, lane)) for lane in lanes]
        budget = Budget(max_usd)
        asyncio.run(_run(engine, lanes, jobs, tally, budget, concurrency, patience or Patience()))
    stopped = {lane.juror.name: lane.stopped[1] for lane in lanes if lane.stopped}
    return tally.result(panel.name, sum(t.responses for t in tasks), len(lanes), stopped)


def estimate(
    engine: Engine, panel: Panel, *, replicates: int = 1, benchmarks: Sequence[str] | None = None
) -> list[JurorEstimate]:
    """Return what a run would take, a row a juror; sends and stores nothing."""
    tasks = _tasks(engine, panel, benchmarks)
    raters = known_jurors(engine, [_record(one) for one in panel.juror])
    rows = []
    for juror in panel.juror:
        row = JurorEstimate(juror.name)
        for job in _jobs(engine, tasks, raters.get(juror.name, 0), replicates, lambda _: None):
            if job.card.response.strip():
                prompt = job.rubric.render(job.card)
                row = row.plus(juror, prompt, len(job.rubric.criteria), now())
        rows.append(row)
    return rows


async def _run(
    engine: Engine,
    lanes: list[Lane],
    jobs: list[Iterator[Job]],
    tally: Tally,
    budget: Budget,
    concurrency: int,
    patience: Patience,
) -> None:
    """Let every juror's workers take that juror's jobs, all sharing the same places."""
    stopping = asyncio.Event()
    desk = Desk(
        budget=budget,
        writer=Writer(engine),
        places=asyncio.Semaphore(concurrency),
        stopping=stopping,
        patience=patience,
        called=tally.called,
    )
    with _stopped_by_interrupt(stopping):
        try:
            async with asyncio.TaskGroup() as group:
                for lane, queue in zip(lanes, jobs, strict=True):
                    for _ in range(concurrency):
                        group.create_task(_work(desk, lane, queue, tally))
        except* BaseException as failures:
            raise _first(failures) from None
        finally:
            for lane in lanes:
                await lane.provider.close()


async def _work(desk: Desk, lane: Lane, jobs: Iterator[Job], tally: Tally) -> None:
    """Take one juror's jobs, one after another, until none is left."""
    for job in jobs:
        status = None if desk.stopping.is_set() else await ask(desk, lane, job)
        tally.ended(lane.juror.name, status)


def _jobs(
    engine: Engine,
    tasks: list[_Task],
    rater: int,
    replicates: int,
    rated: Callable[[Status], None],
) -> Iterator[Job]:
    """Yield what a juror has still to rate, streamed; `rated` is called for what it has."""
    for task in tasks:
        done = queries.complete_ratings(engine, rater, task.rubric)
        for shown in queries.juror_cards(engine, task.benchmark, task.rubric):
            for replicate in range(replicates):
                if (shown.response, replicate) in done:
                    rated(Status.OK)
                else:
                    yield Job(shown.response, shown.card, task.rubric, replicate)


def _tasks(engine: Engine, panel: Panel, names: Sequence[str] | None) -> list[_Task]:
    """Return the benchmarks to rate; refuse unknown ones and a panel made for another rubric."""
    known = {one.name: one for one in queries.benchmarks(engine)}
    for name in names or ():
        if name not in known:
            raise Unknown(f"benchmark {name!r}: the study has {', '.join(known) or 'none'}")
    chosen = [one for one in known.values() if names is None or one.name in names]
    for one in chosen:
        if panel.rubric not in (None, one.rubric.name):
            raise BadPanel(
                f"panel {panel.name}, rubric {panel.rubric!r}: the benchmark {one.name} is rated "
                f"on {one.rubric.name!r}; jurors and clinicians must rate on one rubric"
            )
    return [_Task(one.name, one.rubric, one.responses) for one in chosen]


def _refuse(
    panel: Panel,
    concurrency: int,
    replicates: int,
    max_usd: float | None,
    lines: Mapping[str, Provider],
) -> None:
    """Raise before anything happens if this run could not be done as asked."""
    for name, value in (("concurrency", concurrency), ("replicates", replicates)):
        if value < 1:
            raise BadInput(f"{name} = {value}: must be at least 1")
    if max_usd is not None:
        if not max_usd >= 0:
            raise BadInput(f"max_usd = {max_usd}: must be an amount of US dollars, 0 or more")
        refuse_unpriced(panel, now())
    if not all(one.name in lines for one in panel.juror):
        refuse_ended(panel, now().date())


def _record(juror: Juror) -> JurorRecord:
    """Return a juror as a study keeps it."""
    return JurorRecord(juror.name, juror.family, juror.profile(), juror.simulated)


def _count(tally: Tally, lane: Lane) -> Callable[[Status], None]:
    """Return what counts a lane's verdict that stands already."""
    return lambda status: tally.ended(lane.juror.name, status)


def _first(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first cause in a group of failures."""
    first = failures.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


@contextmanager
def _stopped_by_interrupt(stopping: asyncio.Event) -> Iterator[None]:
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
