"""Following batches: finding those whose id was lost, and storing what has come back."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

from data.queries.jury import BatchRequest, open_requests, provider_ids
from data.schema import Attempt, Status, now
from data.schema.jury import BatchState, JuryBatch
from data.store.batches import Collected, collect, count, finish, move
from data.token_costs import TokenCosts, token_costs
from jury.batch.client import BatchError, BatchResult, BatchStatus
from jury.batch.context import BatchContext, BatchSession
from jury.call import Answer
from jury.conversation import answer_columns
from jury.cost import Price, above_worst, batch_price, unbilled
from jury.expected_score import read_for
from jury.panel import Juror

CHUNK = 500  # results in one transaction
KEPT = timedelta(days=30)  # neither provider keeps results for longer
GONE = "its answers are gone at the provider"
ASK_ANEW = "to ask anew all the same, run without --batch"


async def follow(context: BatchContext, session: BatchSession, batch: JuryBatch) -> bool:
    """Take a batch one step on; return whether requests came free that were never answered."""
    if batch.state == BatchState.PREPARED:
        await session.client.withdraw(batch)
        reason = batch.reason or "killed before it was handed in"
        finish(context.engine, batch.id, "not_sent", reason)
        return True
    if batch.state == BatchState.SUBMITTING:
        return await _settle(context, session, batch)
    if batch.state == BatchState.COLLECTED:
        standing = await _standing(session, batch)
        await _forget(context, session, batch, standing or BatchStatus(ended=True))
        return False
    return await _look(context, session, batch)


async def _settle(context: BatchContext, session: BatchSession, batch: JuryBatch) -> bool:
    """Find out whether the provider took a batch; what it did not take comes free."""
    name = session.juror.name
    if _age(batch) > KEPT.total_seconds():
        finish(context.engine, batch.id, "unanswered", GONE)
        return True
    search = await session.client.find(batch, provider_ids(context.engine))
    if not search.provider_id and not search.doubt and _age(batch) >= context.pace.grace:
        await session.client.withdraw(batch)  # what has not begun by now cannot begin any more
        search = await session.client.find(batch, provider_ids(context.engine))
        if not search.provider_id and not search.doubt:
            finish(context.engine, batch.id, "not_sent", "the provider never took it")
            context.tell(f"juror {name}: a batch of {batch.requests} was never taken; free again")
            return True
    if not search.provider_id:
        where = f"{search.doubt}, which is waited for" if search.doubt else "it is being looked for"
        doubt = f"unknown whether a batch of {batch.requests} was taken: {where}"
        context.say_once(f"juror {name}: {doubt}. Nothing is sent twice; {ASK_ANEW}")
        return False
    move(context.engine, batch.id, BatchState.SUBMITTED, provider_id=search.provider_id)
    context.tell(f"juror {name}: batch {search.provider_id} found at the provider")
    batch.provider_id, batch.submitted = search.provider_id, now()
    return await _look(context, session, batch)


async def _look(context: BatchContext, session: BatchSession, batch: JuryBatch) -> bool:
    """Ask how far a batch is, and collect it if it has ended."""
    standing = await _standing(session, batch)
    if standing is None:
        return _unknown_there(context, session, batch)
    count(context.engine, batch.id, standing.counts)
    session.answered[batch.id] = 0 if standing.ended else standing.done
    if not standing.ended:
        return False
    if standing.failed:
        return await _failed(context, session, batch, standing)
    return await _collect(context, session, batch, standing)


async def _collect(
    context: BatchContext, session: BatchSession, batch: JuryBatch, standing: BatchStatus
) -> bool:
    """Store every result of a batch that has ended, then have its texts deleted."""
    waiting = open_requests(context.engine, batch.id)
    ends: Counter[str] = Counter()
    chunk: list[tuple[BatchRequest, Collected]] = []
    gone = standing.gone
    try:
        async for entry in session.client.results(batch.provider_id, standing):
            request = waiting.pop(entry.custom_id, None)
            if request is not None:
                chunk.append((request, _collected(session.juror, batch, request, entry)))
            if len(chunk) >= CHUNK:
                ends += _store(context, session, batch, chunk)
                chunk = []
    except BatchError as trouble:
        if trouble.answer.http != 404:
            raise
        gone = True
    ends += _store(context, session, batch, chunk)
    session.failures = 0
    ends[standing.leftover] += len(waiting)
    counts = ", ".join(f"{number} {name}" for name, number in sorted(ends.items()) if number)
    context.tell(f"juror {session.juror.name}: batch {batch.provider_id} has ended: {counts}")
    await _rest(context, session, batch, replace(standing, gone=gone), waiting)
    return any(name not in (*Status,) for name in ends)


async def _rest(
    context: BatchContext,
    session: BatchSession,
    batch: JuryBatch,
    standing: BatchStatus,
    unnamed: dict[str, BatchRequest],
) -> None:
    """Give what the results do not name its outcome, and let the provider forget the rest."""
    for request in unnamed.values():
        _ended(
            context,
            session.key(request.response, request.replicate, request.rubric),
            standing.leftover,
        )
    if not unnamed or standing.leftover != "unanswered":
        finish(context.engine, batch.id, standing.leftover, state=BatchState.COLLECTED)
        await _forget(context, session, batch, standing)
        return
    why = GONE if standing.gone else "its results do not name all of its requests"
    finish(context.engine, batch.id, standing.leftover, why)
    name = f"juror {session.juror.name}: batch {batch.provider_id}"
    context.tell(f"{name}: {len(unnamed)} lost: {why}; what is there was not deleted")


async def _failed(
    context: BatchContext, session: BatchSession, batch: JuryBatch, standing: BatchStatus
) -> bool:
    """Note that the provider refused a batch as a whole."""
    reason = f"batch {batch.provider_id} was refused as a whole: {standing.failed}"
    for request in open_requests(context.engine, batch.id).values():
        key = session.key(request.response, request.replicate, request.rubric)
        context.ended[key] = str(Status.REQUEST_FAILED)
    finish(context.engine, batch.id, "not_sent", reason, BatchState.COLLECTED)
    session.full = (Status.REQUEST_FAILED, reason)
    await _forget(context, session, batch, standing)
    return False


async def _forget(
    context: BatchContext, session: BatchSession, batch: JuryBatch, standing: BatchStatus
) -> None:
    """Delete a batch's texts at the provider, or say that they are still there."""
    try:
        await session.client.forget(batch, standing)
    except BatchError as trouble:
        context.say_once(
            f"juror {session.juror.name}: batch {batch.provider_id} is stored, but its texts at "
            f"{batch.host} could not be deleted ({trouble}); the next run with --batch tries again"
        )
        return
    move(context.engine, batch.id, BatchState.CLOSED)


async def _standing(session: BatchSession, batch: JuryBatch) -> BatchStatus | None:
    """Return how far a batch is, None where the provider knows none of that id."""
    try:
        standing = await session.client.standing(batch.provider_id)
    except BatchError as trouble:
        if trouble.answer.http == 404:
            return None
        raise
    session.failures = 0
    return standing


def _unknown_there(context: BatchContext, session: BatchSession, batch: JuryBatch) -> bool:
    """Give up a batch that is too old to be had; else say that another key may know it."""
    since = batch.submitted or batch.prepared
    if now() - since > KEPT:
        finish(context.engine, batch.id, "unanswered", GONE)
        context.tell(f"juror {session.juror.name}: batch {batch.provider_id} is lost: {GONE}")
        return True
    reason = (
        f"batch {batch.provider_id} is not known at {batch.host} with this key; use the key of "
        f"the account and project that handed it in ({ASK_ANEW})"
    )
    session.stopped = session.stopped or (Status.REQUEST_FAILED, reason)
    return False


def _store(
    context: BatchContext,
    session: BatchSession,
    batch: JuryBatch,
    chunk: list[tuple[BatchRequest, Collected]],
) -> Counter[str]:
    """Store results in one transaction; count those that were new, and return how they ended."""
    fresh = set(collect(context.engine, batch.id, [result for _, result in chunk]))
    new = [(request, result) for request, result in chunk if result.custom_id in fresh]
    for request, result in new:
        key = session.key(request.response, request.replicate, request.rubric)
        _ended(context, key, result.outcome)
        if result.attempt is not None:
            session.rated += result.outcome == Status.OK
            context.paid(result.attempt.usd, request.usd_most)
            context.tokens = context.tokens.plus(_tokens(result.attempt))
            if result.outcome == Status.OFF_CONTRACT:
                session.full = session.full or (Status.OFF_CONTRACT, result.attempt.reason)
    return Counter(result.outcome for _, result in new)


def _tokens(call: Attempt) -> TokenCosts:
    """Return a call's tokens by kind, and what each kind cost."""
    tokens = (call.tokens_in, call.tokens_cached, call.tokens_cache_write)
    amounts = (call.usd, call.usd_cached, call.usd_cache_write, call.usd_out, 0.0)
    return token_costs((*tokens, call.tokens_out, call.tokens_reasoning), amounts)


def _collected(
    juror: Juror, batch: JuryBatch, request: BatchRequest, entry: BatchResult
) -> Collected:
    """Return a result as the study keeps it: read like a live answer, at the price of its day."""
    answer = entry.answer
    if answer is None:
        return Collected(entry.custom_id, entry.outcome, request.rubric)
    parsed, cost = read_for(juror, answer, request.rubric), _cost(juror, batch, answer)
    if why := above_worst(juror, answer.usage, cost.usd, request.usd_most):
        parsed = replace(parsed, status=Status.OFF_CONTRACT, reason=why, reply=None)
    where = {"batch": batch.provider_id, "custom_id": request.custom_id, "turns": 1}
    record = Attempt(
        rater=batch.rater,
        response=request.response,
        replicate=request.replicate,
        status=parsed.status,
        request_sha256=request.request_sha256,
        reason=parsed.remark,
        sent={**batch.sent, **where},
        distribution=parsed.distribution,
        **answer_columns(answer, cost),
    )
    return Collected(entry.custom_id, str(parsed.status), request.rubric, record, parsed.reply)


def _cost(juror: Juror, batch: JuryBatch, answer: Answer) -> Price:
    """Return what an answer cost; an error of a request in a batch is not billed."""
    at = batch.submitted or batch.prepared
    if answer.http is not None and answer.http != 200:
        return unbilled(juror, answer.http, at)
    return batch_price(juror, answer.usage, at)


def _ended(context: BatchContext, key: tuple[int, int, int, str], outcome: str) -> None:
    """Note how a verdict ended; one that an earlier run asked for in vain may be asked for now."""
    if outcome in (*Status,) or key in context.handed_in:
        context.ended[key] = outcome


def _age(batch: JuryBatch) -> float:
    """Return the seconds since the provider was asked to take a batch."""
    return (now() - (batch.asked or batch.prepared)).total_seconds()
