"""Follow batches at their provider: find those whose id was lost, and store the results."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

from data.calls import TokenCosts, token_costs
from data.schema import Attempt, Status, now
from data.schema.jury import UNANSWERED, BatchState, JuryBatch
from data.study.calls import (
    BatchRequest,
    Collected,
    collect,
    count,
    finish,
    move,
    open_requests,
    provider_ids,
)
from jury.batch.client import BatchError, BatchResult, BatchStatus
from jury.batch.context import BatchContext, BatchSession, Key
from jury.call import Answer, Call
from jury.conversation import answer_columns, whole
from jury.cost import Price, above_worst, batch_price, unbilled
from jury.expected_score import read_for
from jury.panel import Juror
from jury.parse import ParsedAnswer, storable

CHUNK = 500  # results in one transaction
KEPT = timedelta(days=30)  # neither provider keeps results for longer
GONE = "its answers are gone at the provider"
ASK_ANEW = "to ask anew all the same, run without --batch"


async def follow(context: BatchContext, session: BatchSession, batch: JuryBatch) -> bool:
    """Advance a batch by one step; return whether requests became free that were never answered."""
    if batch.state == BatchState.PREPARED:
        await session.client.withdraw(batch)
        reason = batch.reason or "killed before it was handed in"
        finish(context.engine, batch.id, "not_sent", reason)
        return True
    if batch.state == BatchState.SUBMITTING:
        return await _find_submitted(context, session, batch)
    if batch.state == BatchState.COLLECTED:
        status = await _batch_status(session, batch)
        await _delete_texts(context, session, batch, status or BatchStatus(ended=True))
        return False
    return await _check(context, session, batch)


async def _find_submitted(context: BatchContext, session: BatchSession, batch: JuryBatch) -> bool:
    """Find out whether the provider took a batch; the requests of one not taken become free."""
    name = session.juror.name
    if _age(batch) > KEPT.total_seconds():
        _lose(context, batch)
        return True
    search = await session.client.find_lost(batch, provider_ids(context.engine))
    if not search.provider_id and not search.doubt and _age(batch) >= context.pace.grace:
        await session.client.withdraw(batch)  # what has not begun by now cannot begin any more
        search = await session.client.find_lost(batch, provider_ids(context.engine))
        if not search.provider_id and not search.doubt:
            finish(context.engine, batch.id, "not_sent", "the provider never took it")
            context.tell(f"juror {name}: a batch of {batch.requests} was never taken; free again")
            return True
    if not search.provider_id:
        where = f"{search.doubt}, which is waited for" if search.doubt else "it is being looked for"
        doubt = f"unknown whether a batch of {batch.requests} was taken: {where}"
        context.tell_once(f"juror {name}: {doubt}. Nothing is sent twice; {ASK_ANEW}")
        return False
    move(context.engine, batch.id, BatchState.SUBMITTED, provider_id=search.provider_id)
    context.tell(f"juror {name}: batch {search.provider_id} found at the provider")
    batch.provider_id, batch.submitted = search.provider_id, now()
    return await _check(context, session, batch)


async def _check(context: BatchContext, session: BatchSession, batch: JuryBatch) -> bool:
    """Ask for the state of a batch, and collect it if it has ended."""
    status = await _batch_status(session, batch)
    if status is None:
        return _unknown_there(context, session, batch)
    count(context.engine, batch.id, status.counts)
    session.answered[batch.id] = 0 if status.ended else status.done
    if not status.ended:
        return False
    if status.failed:
        return await _failed(context, session, batch, status)
    return await _collect(context, session, batch, status)


async def _collect(
    context: BatchContext, session: BatchSession, batch: JuryBatch, status: BatchStatus
) -> bool:
    """Store all results of a batch that has ended, then have its texts deleted there."""
    waiting = open_requests(context.engine, batch.id)
    ends: Counter[str] = Counter()
    chunk: list[tuple[BatchRequest, BatchResult]] = []
    gone = status.gone
    try:
        async for entry in session.client.results(batch.provider_id, status):
            request = waiting.pop(entry.custom_id, None)
            if request is not None:
                chunk.append((request, entry))
            if len(chunk) >= CHUNK:
                ends += _store(context, session, batch, chunk)
                chunk = []
    except BatchError as error:
        if error.answer.http != 404:
            raise
        gone = True
    ends += _store(context, session, batch, chunk)
    session.failures = 0
    ends[status.leftover] += len(waiting)
    counts = ", ".join(f"{number} {name}" for name, number in sorted(ends.items()) if number)
    context.tell(f"juror {session.juror.name}: batch {batch.provider_id} has ended: {counts}")
    await _settle_unnamed(context, session, batch, replace(status, gone=gone), waiting)
    return any(name not in (*Status,) for name in ends)


async def _settle_unnamed(
    context: BatchContext,
    session: BatchSession,
    batch: JuryBatch,
    status: BatchStatus,
    unnamed: dict[str, BatchRequest],
) -> None:
    """Give what the results do not name its outcome, and let the provider delete_texts the rest."""
    for request in unnamed.values():
        _ended(context, session.key(request), status.leftover)
    if not unnamed or status.leftover != UNANSWERED:
        finish(context.engine, batch.id, status.leftover, state=BatchState.COLLECTED)
        await _delete_texts(context, session, batch, status)
        return
    why = GONE if status.gone else "its results do not name all of its requests"
    _lose(context, batch, why)
    name = f"juror {session.juror.name}: batch {batch.provider_id}"
    context.tell(f"{name}: {len(unnamed)} lost: {why}; what is there was not deleted")


async def _failed(
    context: BatchContext, session: BatchSession, batch: JuryBatch, status: BatchStatus
) -> bool:
    """Record that the provider refused a batch as a whole."""
    reason = f"batch {batch.provider_id} was refused as a whole: {status.failed}"
    for request in open_requests(context.engine, batch.id).values():
        key = session.key(request)
        context.ended[key] = str(Status.REQUEST_FAILED)
    finish(context.engine, batch.id, "not_sent", reason, BatchState.COLLECTED)
    session.full = (Status.REQUEST_FAILED, reason)
    await _delete_texts(context, session, batch, status)
    return False


async def _delete_texts(
    context: BatchContext, session: BatchSession, batch: JuryBatch, status: BatchStatus
) -> None:
    """Delete a batch's texts at the provider, or tell the user that they are still there."""
    try:
        await session.client.delete_texts(batch, status)
    except BatchError as error:
        context.tell_once(
            f"juror {session.juror.name}: batch {batch.provider_id} is stored, but its texts at "
            f"{batch.host} could not be deleted ({error}); the next run with --batch tries again"
        )
        return
    move(context.engine, batch.id, BatchState.CLOSED)


async def _batch_status(session: BatchSession, batch: JuryBatch) -> BatchStatus | None:
    """Return the state of a batch, None if the provider knows no batch of that id."""
    try:
        status = await session.client.status_of(batch.provider_id)
    except BatchError as error:
        if error.answer.http == 404:
            return None
        raise
    session.failures = 0
    return status


def _unknown_there(context: BatchContext, session: BatchSession, batch: JuryBatch) -> bool:
    """Give up a batch that is too old; stop the juror if its key cannot see a newer one."""
    since = batch.submitted or batch.prepared
    if now() - since > KEPT:
        _lose(context, batch)
        context.tell(f"juror {session.juror.name}: batch {batch.provider_id} is lost: {GONE}")
        return True
    reason = (
        f"batch {batch.provider_id} is not known at {batch.host} with this key; use the key of "
        f"the account and project that handed it in ({ASK_ANEW})"
    )
    session.stopped = session.stopped or (Status.REQUEST_FAILED, reason)
    return False


def _lose(context: BatchContext, batch: JuryBatch, why: str = GONE) -> None:
    """Give up the requests of a batch that are left: they may have been billed, and count as such."""
    context.lost(open_requests(context.engine, batch.id).values())
    finish(context.engine, batch.id, UNANSWERED, why)


def _store(
    context: BatchContext,
    session: BatchSession,
    batch: JuryBatch,
    chunk: list[tuple[BatchRequest, BatchResult]],
) -> Counter[str]:
    """Store results in one transaction, and return how many of the new ones ended in which way."""
    calls = context.calls_of(session, [request for request, _ in chunk])
    results = [
        (*of_chunk, _collected(context, session.juror, batch, *of_chunk, call))
        for of_chunk, call in zip(chunk, calls, strict=True)
    ]
    fresh = set(collect(context.engine, batch.id, [result for _, _, result in results]))
    new = [one for one in results if one[2].custom_id in fresh]
    for request, entry, result in new:
        key = session.key(request)
        _ended(context, key, result.outcome)
        if result.attempt is not None and entry.answer is not None:
            reading = ParsedAnswer(result.attempt.status, reply=result.reply)
            context.tally.answered(session.juror, entry.answer, reading)
            session.rated += result.outcome == Status.OK
            context.paid(result.attempt.usd, request.usd_most)
            context.tokens = context.tokens.plus(_tokens(result.attempt))
            if result.outcome == Status.OFF_CONTRACT:
                session.full = session.full or (Status.OFF_CONTRACT, result.attempt.reason)
    return Counter(result.outcome for _, _, result in new)


def _tokens(call: Attempt) -> TokenCosts:
    """Return a call's tokens by kind, and what each kind cost."""
    tokens = (call.tokens_in, call.tokens_cached, call.tokens_cache_write)
    amounts = (call.usd, call.usd_cached, call.usd_cache_write, call.usd_out)
    return token_costs((*tokens, call.tokens_out, call.tokens_reasoning), amounts)


def _collected(
    context: BatchContext,
    juror: Juror,
    batch: JuryBatch,
    request: BatchRequest,
    entry: BatchResult,
    call: Call,
) -> Collected:
    """Return a result as the study stores it: read as a single answer is, at its day's batch price."""
    answer = entry.answer
    if answer is None:
        return Collected(entry.custom_id, entry.outcome, request.rubric)
    parsed = whole(context.most_read, call, answer, read_for(juror, answer, request.rubric))
    cost = _cost(juror, batch, answer)
    if why := above_worst(juror, answer.usage, cost.usd, request.usd_most):
        parsed = replace(parsed, status=Status.OFF_CONTRACT, reason=why, reply=None)
    where = {"batch": batch.provider_id, "custom_id": request.custom_id, "turns": 1}
    record = Attempt(
        rater=batch.rater,
        response=request.response,
        replicate=request.replicate,
        status=parsed.status,
        request_sha256=request.request_sha256,
        reason=storable(parsed.reason),
        sent={**batch.sent, **where},
        answer=dict(parsed.answer) if parsed.answer else None,
        **answer_columns(answer, cost),
    )
    return Collected(entry.custom_id, str(parsed.status), request.rubric, record, parsed.reply)


def _cost(juror: Juror, batch: JuryBatch, answer: Answer) -> Price:
    """Return the cost of an answer; a request in a batch that failed is not billed."""
    at = batch.submitted or batch.prepared
    if answer.http is not None and answer.http != 200:
        return unbilled(juror, answer.http, at)
    return batch_price(juror, answer.usage, at)


def _ended(context: BatchContext, key: Key, outcome: str) -> None:
    """Note how a verdict ended, unless it is free to be asked again in this run."""
    if outcome in (*Status,) or key in context.handed_in:
        context.ended[key] = outcome


def _age(batch: JuryBatch) -> float:
    """Return the seconds since the provider was asked to take a batch."""
    return (now() - (batch.asked or batch.prepared)).total_seconds()
