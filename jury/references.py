"""Asking every juror of a panel, once an instance, whether its reference says more than its source.

A loop of its own over `Provider.complete`: what is asked is an instance and not a response, and no
rubric is in it. Money, patience, forms of answer and hosts' limits are those of a jury run.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence

from sqlalchemy import Engine

from data import queries
from data.errors import BadInput, Unknown
from data.queries.references import ReferenceCard, answered_references, reference_cards
from data.schema import Status, now
from data.store.attempts import JurorRecord, add_jurors
from jury.alone import alone
from jury.call import Provider
from jury.cost import Budget, refuse_unpriced
from jury.lane import Lane, Patience
from jury.loop import first_cause, run_loop, stopped_by_interrupt
from jury.order import refuse_changed
from jury.panel import Juror, Panel, keys, refuse_ended
from jury.providers import open_provider
from jury.rates import gates
from jury.reference_question import SimulatedReader
from jury.reference_talk import ReferenceTalk
from jury.talk import Desk
from jury.tally import Progress, RunResult, Tally

Watch = Callable[[Progress], None]


def check_references(
    engine: Engine,
    panel: Panel,
    *,
    concurrency: int = 8,
    max_usd: float | None = None,
    benchmarks: Sequence[str] | None = None,
    progress: Watch | None = None,
    patience: Patience = Patience(),  # noqa: B008 - frozen
    waiting: Callable[[], None] = lambda: None,
) -> RunResult:
    """Ask every juror about every reference it has not answered about; see `run.run_panel`.

    Only instances with a reference and a context are asked about. In the result `responses`
    counts those instances, and `rated` the answers that stand.

    Raises
    ------
    BadPanel
        Before anything is sent: a key is missing, a model has ended, a cap without a price.
    BadInput
        If a number is out of range; Unknown if the study has no such benchmark.
    Conflict
        The study knows a juror of the same name with other settings.
    """
    _refuse(engine, panel, concurrency, max_usd, benchmarks)
    secrets = keys(panel)
    instances = sum(1 for _ in reference_cards(engine, benchmarks))
    tally = Tally(instances * len(panel.juror), progress)
    with alone(engine, waiting):
        lanes = _open(engine, panel, secrets)
        queues = [_left(engine, lane, benchmarks, tally) for lane in lanes]
        run_loop(_run(engine, lanes, queues, tally, (concurrency, max_usd, patience)))
    return tally.result(panel.name, instances, lanes)


def _refuse(
    engine: Engine,
    panel: Panel,
    concurrency: int,
    max_usd: float | None,
    benchmarks: Sequence[str] | None,
) -> None:
    """Raise before anything happens if this could not be done as asked."""
    if concurrency < 1:
        raise BadInput(f"concurrency = {concurrency}: must be at least 1")
    if max_usd is not None:
        if not max_usd >= 0:
            raise BadInput(f"max_usd = {max_usd}: must be an amount of US dollars, 0 or more")
        refuse_unpriced(panel, now())
    known = [one.name for one in queries.benchmarks(engine)]
    for name in benchmarks or ():
        if name not in known:
            raise Unknown(f"benchmark {name!r}: the study has {', '.join(known) or 'none'}")
    refuse_ended(panel, now().date())


def _open(engine: Engine, panel: Panel, secrets: Mapping[str, str]) -> list[Lane]:
    """Return the jurors with their lines open, each known to the study."""
    lines = {one.name: _line(one, secrets[one.name]) for one in panel.juror}
    records = [
        JurorRecord(one.name, one.family, one.profile(), one.simulated) for one in panel.juror
    ]
    refuse_changed(engine, panel)
    raters, doors = add_jurors(engine, records), gates(panel)
    return [Lane(one, raters[one.name], lines[one.name], doors[one.name]) for one in panel.juror]


def _line(juror: Juror, key: str) -> Provider:
    return SimulatedReader(juror) if juror.simulated else open_provider(juror, key)


def _left(
    engine: Engine, lane: Lane, benchmarks: Sequence[str] | None, tally: Tally
) -> Iterator[ReferenceCard]:
    """Yield what a juror has still to answer about; what it has is counted."""
    done = answered_references(engine, lane.rater)
    for card in reference_cards(engine, benchmarks):
        if card.instance in done:
            tally.ended(lane.juror.name, Status.OK)
        else:
            yield card


async def _run(
    engine: Engine,
    lanes: Sequence[Lane],
    queues: Sequence[Iterator[ReferenceCard]],
    tally: Tally,
    limits: tuple[int, float | None, Patience],
) -> None:
    """Let every juror's workers take that juror's references, all sharing the same places."""
    concurrency, max_usd, patience = limits
    stopping, places = asyncio.Event(), asyncio.Semaphore(concurrency)
    desk = Desk(Budget(max_usd), places, stopping, patience, tally.called)
    with stopped_by_interrupt(stopping):
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(concurrency):
                    for lane, queue in zip(lanes, queues, strict=True):
                        group.create_task(_work(desk, engine, lane, queue, tally))
        except* BaseException as failures:
            raise first_cause(failures) from None
        finally:
            for lane in lanes:
                await lane.provider.close()


async def _work(
    desk: Desk, engine: Engine, lane: Lane, cards: Iterator[ReferenceCard], tally: Tally
) -> None:
    """Take one juror's references, one after another, until none is left."""
    for card in cards:
        stopped = desk.stopping.is_set()
        status = None if stopped else await ReferenceTalk(engine, lane, card).hold(desk)
        tally.ended(lane.juror.name, status)
