"""Running a panel in batches: collect what has come back, hand in what is missing, wait."""

import asyncio
from collections.abc import Callable, Sequence

from sqlalchemy import Engine

from data.errors import BadPanel
from data.queries.jury import open_batches
from data.schema import now
from data.schema.jury import BatchState, JuryBatch
from data.store.attempts import add_jurors
from jury.batch.client import NO_SUCH, BatchClient, Trouble, open_client
from jury.batch.collect import follow
from jury.batch.context import BatchContext, BatchProgress, BatchSession, Pace
from jury.batch.submit import submit
from jury.loop import refuse_numbers
from jury.panel import Juror, Panel, keys, refuse_ended
from jury.run_lock import run_lock
from jury.tally import RunResult
from jury.worklist import Worklist, record_of, refuse_changed, tasks_of

AWAITED = (BatchState.PREPARED, BatchState.SUBMITTING, BatchState.SUBMITTED)


def run_batches(
    engine: Engine,
    panel: Panel,
    *,
    max_usd: float | None = None,
    replicates: int = 1,
    benchmarks: Sequence[str] | None = None,
    progress: Callable[[BatchProgress], None] = lambda _: None,
    tell: Callable[[str], None] = lambda _: None,
    pace: Pace = Pace(),  # noqa: B008 - frozen
    waiting: Callable[[], None] = lambda: None,
) -> RunResult:
    """Put every response without a verdict before every juror of a panel, in batches.

    May be killed anywhere and run again: what was handed in is collected, not handed in again.
    Ctrl-C leaves what is in flight with the providers. A verdict is asked for at most once in a
    run. `max_usd` bounds what is collected together with the worst case of what is in flight. In
    the result, `calls` were handed in by this run and `usd` is the cost of what it collected.

    Raises
    ------
    BadPanel
        Before anything is stored: no batches there, no key, no price under a cap, an ended model.
    Conflict, NotAllowed
        The study knows a juror of that name with other settings, or is locked.
    """
    _refuse(panel, replicates, max_usd)
    secrets = keys(panel)
    worklist = Worklist(tasks_of(engine, panel, benchmarks), replicates)
    sessions: list[BatchSession] = []
    context = BatchContext(engine, worklist, sessions, max_usd, pace, tell, progress)
    with run_lock(engine, waiting):
        try:
            asyncio.run(_run(context, panel, secrets))
        except KeyboardInterrupt:
            if not sessions:  # nothing was handed in, and nothing is known to count
                raise
            tell("stopped; what is in flight stays with the providers")
        return context.result(panel.name)


async def _run(context: BatchContext, panel: Panel, secrets: dict[str, str]) -> None:
    """Open the jurors' batches, and let go of connections whatever happens."""
    clients = {one.name: open_client(one, secrets[one.name]) for one in panel.juror}
    try:
        troubles = {one.name: await _checked(panel, one, clients[one.name]) for one in panel.juror}
        refuse_changed(context.engine, panel)
        raters = add_jurors(context.engine, [record_of(one) for one in panel.juror])
        for one in panel.juror:
            session = BatchSession(one, raters[one.name], clients[one.name])
            trouble = troubles[one.name]
            session.stopped = (trouble.answer.status, str(trouble)) if trouble else None
            context.sessions.append(session)
        await _rounds(context)
    finally:
        for client in clients.values():
            await client.endpoint.close()


async def _rounds(context: BatchContext) -> None:
    """Follow what is in flight and hand in what is free, until nothing is in flight."""
    free, wait = True, 0.0
    while True:
        for session in context.sessions:
            for batch in _of(context, session):
                free = await _step(context, session, batch) or free
        for session in context.sessions if free else ():
            await submit(context, session)
        free = False
        context.tick()
        if not any(
            one.state in AWAITED for session in context.sessions for one in _of(context, session)
        ):
            return
        wait = context.pace.after(wait)
        await asyncio.sleep(wait)


async def _step(context: BatchContext, session: BatchSession, batch: JuryBatch) -> bool:
    """Take one batch a step on; what fails in passing is tried again at the next look."""
    if session.stopped:
        return False
    try:
        return await follow(context, session, batch)
    except Trouble as trouble:
        session.troubled(trouble)
        return False


def _of(context: BatchContext, session: BatchSession) -> list[JuryBatch]:
    """Return the batches of a juror that can still be followed in this run."""
    return [] if session.stopped else open_batches(context.engine, session.rater)


async def _checked(panel: Panel, juror: Juror, client: BatchClient) -> Trouble | None:
    """Return why batches cannot be had; raise BadPanel where there are none at all."""
    try:
        await client.check()
    except Trouble as trouble:
        if trouble.answer.http in NO_SUCH:
            raise BadPanel(
                f"panel {panel.name}, juror {juror.name}: this endpoint ({juror.host}) has no "
                "batches; run without --batch"
            ) from trouble
        return trouble
    return None


def _refuse(panel: Panel, replicates: int, max_usd: float | None) -> None:
    """Raise before anything happens if this run could not be done as asked."""
    simulated = [one.name for one in panel.juror if one.simulated]
    if simulated:
        raise BadPanel(
            f"panel {panel.name}, juror {simulated[0]}: a simulated juror has no batches and "
            "costs nothing; run without --batch"
        )
    refuse_numbers(panel, max_usd, replicates=replicates)
    refuse_ended(panel, now().date())
