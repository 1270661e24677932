"""Run a panel in batches: collect what has come back, submit what is missing, wait.

A batch is stored before it is sent, so that a killed run never sends it twice.
"""

import asyncio
import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any

from sqlalchemy import Engine

from data.errors import BadPanel
from data.schema import Status, now
from data.schema.jury import BatchState, JuryBatch
from data.study.calls import (
    BatchRequest,
    add_jurors,
    finish,
    hashes_in_flight,
    move,
    open_batches,
    prepare,
    record_attempts,
    requests_in_flight,
)
from jury.admission import admit, api_keys
from jury.ask import SamePrompts, hashes_of, not_asked_record, request_sha256
from jury.asking import NO_TEXT
from jury.batch.client import (
    NO_SUCH_PATH,
    BatchClient,
    BatchError,
    BatchLimits,
    Request,
    open_client,
)
from jury.batch.collect import follow
from jury.batch.context import BatchContext, BatchProgress, BatchSession, Polling
from jury.budget import Budget
from jury.call import Call
from jury.conversation import worst_case_usd
from jury.cost import batch_price
from jury.panel import Juror, Panel, refuse_ended
from jury.providers.registry import PROVIDERS
from jury.run import refuse_numbers, run_lock
from jury.run_result import RunResult, with_study_spending
from jury.window import prompt_size
from jury.worklist import Job, Worklist, benchmarks_to_rate, juror_record, refuse_changed

COMMAS = 2  # bytes between two requests
LONGEST_ID = 64  # what both providers allow
AWAITED = (BatchState.PREPARED, BatchState.SUBMITTING, BatchState.SUBMITTED)


@dataclass(frozen=True, slots=True)
class _PricedRequest:
    """A job with its request, and the most that it can cost in US dollars."""

    job: Job
    call: Call
    usd_most: float | None


@dataclass
class _BatchDraft:
    """The requests of a batch to be, as they are sent and as they are stored."""

    marker: str = field(default_factory=lambda: secrets.token_hex(8))
    requests: list[Request] = field(default_factory=list)
    records: list[BatchRequest] = field(default_factory=list)
    sent: dict[str, Any] = field(default_factory=dict)
    bytes: int = COMMAS

    def takes(self, size: int, limits: BatchLimits) -> bool:
        """Return whether there is room for one more request; for the first there always is."""
        full = len(self.records) >= limits.requests or self.bytes + size > limits.bytes
        return not self.records or not full

    def add(
        self, session: BatchSession, priced: _PricedRequest, request: Request, size: int
    ) -> None:
        """Add a request, under an id that holds the marker and no text."""
        job = priced.job
        name = f"{self.marker}-{session.rater}-{job.response}-{job.replicate}"
        digest = request_sha256(session.juror, priced.call)
        self.requests.append(request | {"custom_id": name})
        self.records.append(
            BatchRequest(name, job.response, job.replicate, job.rubric, digest, priced.usd_most)
        )
        self.sent = session.client.endpoint.sent(priced.call)
        self.bytes += size


async def submit_missing(context: BatchContext, session: BatchSession) -> None:
    """Submit what a juror has neither rated nor in flight, as far as the cap goes."""
    if session.stopped or session.full:
        return
    for draft in _drafts(context, session):
        if not await _hand_in(context, session, draft):
            return


async def _hand_in(context: BatchContext, session: BatchSession, draft: _BatchDraft) -> bool:
    """Store a batch, then submit it; return whether the provider took it.

    After an error that is no clear refusal the provider may have taken it: the batch stays stored as
    submitting, and is looked for later.
    """
    batch = JuryBatch(
        marker=draft.marker,
        rater=session.rater,
        host=session.juror.host,
        state=BatchState.PREPARED,
        requests=len(draft.records),
        sent=draft.sent,
    )
    key = prepare(context.engine, batch, draft.records)
    submitting = False

    def note_submitting(input_file: str) -> None:
        nonlocal submitting
        move(context.engine, key, BatchState.SUBMITTING, input_file=input_file)
        submitting = True

    for record in draft.records:
        context.handed_in.add(session.key(record))
    try:
        name = await session.client.submit_batch(draft.marker, draft.requests, note_submitting)
    except BatchError as error:
        if submitting and not error.sure:
            context.tell(f"juror {session.juror.name}: {error} on handing a batch in")
            session.note_error(error)
        else:
            _refused(context, session, key, error)
        return False
    move(context.engine, key, BatchState.SUBMITTED, provider_id=name)
    context.calls += len(draft.records)
    size = "1 request" if len(draft.records) == 1 else f"{len(draft.records)} requests"
    context.tell(f"juror {session.juror.name}: batch {name} of {size} handed in")
    return True


def _refused(context: BatchContext, session: BatchSession, key: int, error: BatchError) -> None:
    """Release the requests of a batch that the provider refused."""
    reason = f"the batch was not taken: {error}"
    finish(context.engine, key, "not_sent", reason, BatchState.PREPARED)  # its upload is left to do
    session.full = (error.answer.status, f"{reason}; run the same command again later")


def _drafts(context: BatchContext, session: BatchSession) -> Iterator[_BatchDraft]:
    """Yield the requests to make, cut into batches within the provider's limits."""
    draft = _BatchDraft()
    for priced in _requests_to_make(context, session):
        request = session.client.request("-" * LONGEST_ID, priced.call)
        size = len(json.dumps(request)) + COMMAS  # in ASCII: never shorter than what is sent
        if not draft.takes(size, session.client.limits):
            yield draft
            draft = _BatchDraft()
        draft.add(session, priced, request, size)
    if draft.records:
        yield draft


def _requests_to_make(context: BatchContext, session: BatchSession) -> Iterator[_PricedRequest]:
    """Yield the requests that are missing and not in flight, as far as the cap goes."""
    waiting = requests_in_flight(context.engine, session.rater)
    held = context.held()
    open_hashes = hashes_in_flight(context.engine, session.rater)
    for job in context.missing(session):
        key = session.key(job)
        if key[1:] in waiting or key in context.ended or key in context.handed_in:
            continue
        if not job.has_text:
            _not_asked(context, session, job, Status.EMPTY_RESPONSE, NO_TEXT)
            continue
        call = session.call(job)
        size = prompt_size(session.juror, call.messages[0].text)
        if size.is_too_long:
            _not_asked(context, session, job, Status.TOO_LONG, size.reason)
            continue
        if _has_same_prompt(context, session, job, call, open_hashes):
            continue
        most = worst_case_usd(session.juror, call, batch_price)
        if not context.budget.fits(most, held):
            reason = "the request could pass the cap"
            _not_asked(context, session, job, Status.BUDGET_STOPPED, reason)
            continue
        held += most or 0.0  # a cap is refused beforehand where a price is not known
        open_hashes.add(request_sha256(session.juror, call))
        yield _PricedRequest(job, call, most)


def _has_same_prompt(
    context: BatchContext, session: BatchSession, job: Job, call: Call, open_hashes: set[str]
) -> bool:
    """Return whether a job needs no request, as its prompt is in flight or has a verdict."""
    if context.same is None or job.response not in context.same.responses:
        return False
    hash_of = partial(request_sha256, session.juror)
    if not open_hashes.isdisjoint(hashes_of(call, hash_of)):
        context.waits_for_same = True
        return True
    entry = context.same.stored(session.rater, job, call, hash_of)
    if entry is None:
        return False
    record_attempts(context.engine, [entry])
    session.rated += 1
    context.shared += 1
    return True


def _not_asked(
    context: BatchContext, session: BatchSession, job: Job, status: Status, reason: str
) -> None:
    """Store why a juror was not asked about a response."""
    context.ended[session.key(job)] = str(status)
    record = not_asked_record(session.rater, job, status, reason)
    record_attempts(context.engine, [(record, job.rubric, None)])


def run_batches(
    engine: Engine,
    panel: Panel,
    *,
    budget: Budget | None = None,
    replicates: int = 1,
    benchmarks: Sequence[str] | None = None,
    progress: Callable[[BatchProgress], None] = lambda _: None,
    tell: Callable[[str], None] = lambda _: None,
    pace: Polling = Polling(),  # noqa: B008 - frozen
    waiting: Callable[[], None] = lambda: None,
) -> RunResult:
    """Ask every juror of a panel, in batches, about every response that it has not rated yet.

    It may be killed at any time and run again: what was submitted is collected, not submitted again.
    Ctrl-C leaves what is in flight with the providers. A verdict is asked for at most once in a run.
    `budget` bounds what is collected plus the highest cost of what is in flight. Of the result,
    `calls` were submitted by this run and `usd` is the cost of what it collected.

    Raises
    ------
    BadPanel
        Before anything is stored: no batches, no key, no price under a cap, or an ended model.
    Conflict, NotAllowed
        The study knows a juror of that name with other settings, or is locked.
    """
    budget = budget or Budget()
    _refuse(panel, replicates, budget)
    panel = admit(panel)
    secrets = api_keys(panel)
    worklist = Worklist(benchmarks_to_rate(engine, panel, benchmarks), replicates)
    sessions: list[BatchSession] = []
    context = BatchContext(engine, worklist, sessions, budget, pace, tell, progress)
    with run_lock(engine, waiting):
        context.same = SamePrompts(engine)
        try:
            asyncio.run(_run(context, panel, secrets))
        except KeyboardInterrupt:
            if not sessions:  # nothing was handed in, and nothing is known to count
                raise
            tell("stopped; what is in flight stays with the providers")
        return with_study_spending(context.result(panel.name), engine, budget)


async def _run(context: BatchContext, panel: Panel, secrets: dict[str, str]) -> None:
    """Run all jurors' batches, and close the connections whatever happens."""
    clients = {juror.name: open_client(juror, secrets[juror.name]) for juror in panel.juror}
    try:
        errors = {
            juror.name: await _checked(panel, juror, clients[juror.name]) for juror in panel.juror
        }
        refuse_changed(context.engine, panel)
        raters = add_jurors(context.engine, [juror_record(juror) for juror in panel.juror])
        for juror in panel.juror:
            session = BatchSession(juror, raters[juror.name], clients[juror.name])
            error = errors[juror.name]
            session.stopped = (error.answer.status, str(error)) if error else None
            context.sessions.append(session)
        reserved = context.held()  # what the panel's jurors have in flight
        context.budget.begin(context.engine, panel, reserved if reserved < inf else 0.0)
        await _rounds(context)
    finally:
        for client in clients.values():
            await client.endpoint.close()


async def _rounds(context: BatchContext) -> None:
    """Follow the batches in flight and submit what is missing, until nothing is in flight."""
    free, wait = True, 0.0
    while True:
        for session in context.sessions:
            for batch in _open_batches(context, session):
                free = await _advance(context, session, batch) or free
        if free or context.waits_for_same:
            context.waits_for_same = False
            for session in context.sessions:
                await submit_missing(context, session)
        free = False
        context.tick()
        if not any(
            batch.state in AWAITED
            for session in context.sessions
            for batch in _open_batches(context, session)
        ):
            return
        wait = context.pace.after(wait)
        await asyncio.sleep(wait)


async def _advance(context: BatchContext, session: BatchSession, batch: JuryBatch) -> bool:
    """Advance one batch by a step; a passing failure is retried in the next round."""
    if session.stopped:
        return False
    try:
        return await follow(context, session, batch)
    except BatchError as error:
        session.note_error(error)
        return False


def _open_batches(context: BatchContext, session: BatchSession) -> list[JuryBatch]:
    """Return the batches of a juror that can be followed in this run."""
    return [] if session.stopped else open_batches(context.engine, session.rater)


async def _checked(panel: Panel, juror: Juror, client: BatchClient) -> BatchError | None:
    """Return why the provider's batches cannot be listed now; raise BadPanel if it has none."""
    try:
        await client.check()
    except BatchError as error:
        if error.answer.http in NO_SUCH_PATH:
            raise BadPanel(
                f"panel {panel.name}, juror {juror.name}: this endpoint ({juror.host}) has no "
                "batches; run without --batch"
            ) from error
        return error
    return None


def _refuse(panel: Panel, replicates: int, budget: Budget) -> None:
    """Raise before anything is sent or stored if a panel cannot be run in batches."""
    simulated = [juror.name for juror in panel.juror if juror.simulated]
    if simulated:
        raise BadPanel(
            f"panel {panel.name}, juror {simulated[0]}: a simulated juror has no batches and "
            "costs nothing; run without --batch"
        )
    for juror in panel.juror:
        if not PROVIDERS[juror.provider].batches:
            raise BadPanel(
                f'panel {panel.name}, juror {juror.name}: provider "{juror.provider}" has no batches '
                "here; run without --batch"
            )
    refuse_numbers(panel, budget, replicates=replicates)
    refuse_ended(panel, now().date())
