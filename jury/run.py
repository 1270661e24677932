"""Running a panel: every response that has no verdict yet, before every juror."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Engine

from data.errors import BadInput
from data.schema import Status, now
from data.store.attempts import add_jurors, known_jurors
from jury.alone import alone
from jury.ask import Job, ask
from jury.call import Provider
from jury.cost import Budget, JurorEstimate, refuse_unpriced
from jury.lane import Lane, Patience
from jury.loop import first_cause, run_loop, stopped_by_interrupt
from jury.order import Order, jobs, record_of, refuse_changed, tasks_of
from jury.panel import Panel, keys, refuse_ended
from jury.providers import open_provider
from jury.rates import gates
from jury.talk import Desk
from jury.tally import Progress, RunResult, Tally
from jury.writer import Writer

OPENING_SECONDS = 0.2
Watch = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class _Limits:
    """How many requests at a time, how much money, how much patience."""

    concurrency: int
    max_usd: float | None
    patience: Patience


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
    checked at its worst before it is sent; `replicates` verdicts of each juror measure its own
    noise. `progress` is told after every verdict, `waiting` once if another run has to end before.
    `providers` are lines to use, by juror, instead of the panel's.

    Raises
    ------
    BadPanel
        Before anything is sent or stored: a key is missing, a model has ended, a cap is asked
        for without a price, or the panel is for another rubric.
    Conflict
        The study knows a juror of the same name with other settings.
    """
    lines = dict(providers or {})
    _refuse(panel, concurrency, replicates, max_usd, lines)
    order = Order(tuple(tasks_of(engine, panel, benchmarks)), replicates)
    tally = Tally(order.responses * len(panel.juror) * replicates, progress)
    secrets = {} if all(one.name in lines for one in panel.juror) else keys(panel)
    with alone(engine, waiting):
        lanes = _open(engine, panel, lines, secrets)
        run_loop(_run(engine, lanes, order, tally, _Limits(concurrency, max_usd, patience)))
    return tally.result(panel.name, order.responses, lanes)


def estimate(
    engine: Engine, panel: Panel, *, replicates: int = 1, benchmarks: Sequence[str] | None = None
) -> list[JurorEstimate]:
    """Return what a run would take, a row a juror; sends and stores nothing."""
    order = Order(tuple(tasks_of(engine, panel, benchmarks)), replicates)
    refuse_changed(engine, panel)
    raters = known_jurors(engine, [record_of(one) for one in panel.juror])
    rows = []
    for juror in panel.juror:
        row = JurorEstimate(juror.name)
        for job in jobs(engine, order, raters.get(juror.name, 0), lambda _: None):
            if job.card.response.strip():
                prompt = job.rubric.render(job.card)
                row = row.plus(juror, prompt, len(job.rubric.criteria), now())
        rows.append(row)
    return rows


def _open(
    engine: Engine, panel: Panel, lines: Mapping[str, Provider], secrets: Mapping[str, str]
) -> list[Lane]:
    """Return the jurors with their lines open, each known to the study."""
    opened = {
        one.name: lines.get(one.name) or open_provider(one, secrets[one.name])
        for one in panel.juror
    }
    refuse_changed(engine, panel)
    raters = add_jurors(engine, [record_of(one) for one in panel.juror])
    doors = gates(panel)
    return [Lane(one, raters[one.name], opened[one.name], doors[one.name]) for one in panel.juror]


async def _run(
    engine: Engine, lanes: list[Lane], order: Order, tally: Tally, limits: _Limits
) -> None:
    """Let every juror's workers take that juror's jobs, all sharing the same places."""
    stopping = asyncio.Event()
    places = asyncio.Semaphore(1)
    budget = Budget(limits.max_usd)
    desk = Desk(budget, places, stopping, limits.patience, tally.called)
    writer = Writer(engine)
    with stopped_by_interrupt(stopping):
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_open_up(places, limits.concurrency))
                queues = [jobs(engine, order, lane.rater, _count(tally, lane)) for lane in lanes]
                # In turn, so that all jurors are heard at once and none holds all the places.
                for _ in range(limits.concurrency):
                    for lane, queue in zip(lanes, queues, strict=True):
                        group.create_task(_work(desk, writer, lane, queue, tally))
        except* BaseException as failures:
            raise first_cause(failures) from None
        finally:
            for lane in lanes:
                await lane.provider.close()


async def _open_up(places: asyncio.Semaphore, concurrency: int) -> None:
    """Open the places one after another: requests sent at once come back at once, and queue."""
    for _ in range(concurrency - 1):
        await asyncio.sleep(OPENING_SECONDS / concurrency)
        places.release()


async def _work(desk: Desk, writer: Writer, lane: Lane, jobs: Iterator[Job], tally: Tally) -> None:
    """Take one juror's jobs, one after another, until none is left."""
    for job in jobs:
        status = None if desk.stopping.is_set() else await ask(desk, writer, lane, job)
        tally.ended(lane.juror.name, status)


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


def _count(tally: Tally, lane: Lane) -> Callable[[Status], None]:
    """Return what counts a lane's verdict that stands already."""
    return lambda status: tally.ended(lane.juror.name, status)
