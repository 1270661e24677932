"""Following batches: finding those whose id was lost, and storing what has come back."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

from data.queries.batches import BatchView, RequestView, open_requests, provider_ids
from data.schema import Status, now
from data.schema.jury import BatchState
from data.store.attempts import AttemptRecord
from data.store.batches import Collected, collect, count, finish, move
from jury.batch.client import Entry, Standing, Trouble
from jury.batch.room import Clerk, Room
from jury.call import Answer
from jury.conversation import answered
from jury.cost import Price, batch_price, unbilled
from jury.panel import Juror
from jury.parse import read_answer

CHUNK = 500  # results in one transaction
KEPT = timedelta(days=30)  # neither provider keeps results for longer
GONE = "its answers are gone at the provider"
ASK_ANEW = "to ask anew all the same, run without --batch"


async def follow(room: Room, clerk: Clerk, batch: BatchView) -> bool:
    """Take a batch one step on; return whether requests came free that were never answered."""
    if batch.state == BatchState.PREPARED:
        await clerk.client.withdraw(batch)
        reason = batch.reason or "killed before it was handed in"
        finish(room.engine, batch.id, "not_sent", reason)
        return True
    if batch.state == BatchState.SUBMITTING:
        return await _settle(room, clerk, batch)
    if batch.state == BatchState.COLLECTED:
        standing = await _standing(clerk, batch)
        await _forget(room, clerk, batch, standing or Standing(ended=True))
        return False
    return await _look(room, clerk, batch)


async def _settle(room: Room, clerk: Clerk, batch: BatchView) -> bool:
    """Find out whether the provider took a batch; what it did not take comes free."""
    name = clerk.juror.name
    if _age(batch) > KEPT.total_seconds():
        finish(room.engine, batch.id, "unanswered", GONE)
        return True
    found = await clerk.client.find(batch, provider_ids(room.engine))
    if not found.provider_id and not found.doubt and _age(batch) >= room.pace.grace:
        await clerk.client.withdraw(batch)  # what has not begun by now cannot begin any more
        found = await clerk.client.find(batch, provider_ids(room.engine))
        if not found.provider_id and not found.doubt:
            finish(room.engine, batch.id, "not_sent", "the provider never took it")
            room.tell(f"juror {name}: a batch of {batch.requests} was never taken; free again")
            return True
    if not found.provider_id:
        where = f"{found.doubt}, which is waited for" if found.doubt else "it is being looked for"
        doubt = f"unknown whether a batch of {batch.requests} was taken: {where}"
        room.say_once(f"juror {name}: {doubt}. Nothing is sent twice; {ASK_ANEW}")
        return False
    move(room.engine, batch.id, BatchState.SUBMITTED, provider_id=found.provider_id)
    room.tell(f"juror {name}: batch {found.provider_id} found at the provider")
    return await _look(room, clerk, replace(batch, provider_id=found.provider_id, submitted=now()))


async def _look(room: Room, clerk: Clerk, batch: BatchView) -> bool:
    """Ask how far a batch is, and collect it if it has ended."""
    standing = await _standing(clerk, batch)
    if standing is None:
        return _unknown_there(room, clerk, batch)
    count(room.engine, batch.id, standing.counts)
    clerk.answered[batch.id] = 0 if standing.ended else standing.done
    if not standing.ended:
        return False
    if standing.failed:
        return await _failed(room, clerk, batch, standing)
    return await _collect(room, clerk, batch, standing)


async def _collect(room: Room, clerk: Clerk, batch: BatchView, standing: Standing) -> bool:
    """Store every result of a batch that has ended, then have its texts deleted."""
    waiting = open_requests(room.engine, batch.id)
    ends: Counter[str] = Counter()
    chunk: list[tuple[RequestView, Collected]] = []
    gone = standing.gone
    try:
        async for entry in clerk.client.results(batch.provider_id, standing):
            request = waiting.pop(entry.custom_id, None)
            if request is not None:
                chunk.append((request, _collected(clerk.juror, batch, request, entry)))
            if len(chunk) >= CHUNK:
                ends += _store(room, clerk, batch, chunk)
                chunk = []
    except Trouble as trouble:
        if trouble.answer.http != 404:
            raise
        gone = True
    ends += _store(room, clerk, batch, chunk)
    clerk.failures = 0
    ends[standing.leftover] += len(waiting)
    said = ", ".join(f"{number} {name}" for name, number in sorted(ends.items()) if number)
    room.tell(f"juror {clerk.juror.name}: batch {batch.provider_id} has ended: {said}")
    await _rest(room, clerk, batch, replace(standing, gone=gone), waiting)
    return any(name not in (*Status,) for name in ends)


async def _rest(
    room: Room, clerk: Clerk, batch: BatchView, standing: Standing, left: dict[str, RequestView]
) -> None:
    """Give what the results do not name its outcome, and let the provider forget the rest."""
    for one in left.values():
        _ended(room, clerk.key(one.response, one.replicate, one.rubric), standing.leftover)
    if not left or standing.leftover != "unanswered":
        finish(room.engine, batch.id, standing.leftover, state=BatchState.COLLECTED)
        await _forget(room, clerk, batch, standing)
        return
    why = GONE if standing.gone else "its results do not name all of its requests"
    finish(room.engine, batch.id, standing.leftover, why)
    name = f"juror {clerk.juror.name}: batch {batch.provider_id}"
    room.tell(f"{name}: {len(left)} lost: {why}; what is there was not deleted")


async def _failed(room: Room, clerk: Clerk, batch: BatchView, standing: Standing) -> bool:
    """Note that the provider refused a batch as a whole."""
    reason = f"batch {batch.provider_id} was refused as a whole: {standing.failed}"
    for one in open_requests(room.engine, batch.id).values():
        key = clerk.key(one.response, one.replicate, one.rubric)
        room.ended[key] = str(Status.REQUEST_FAILED)
    finish(room.engine, batch.id, "not_sent", reason, BatchState.COLLECTED)
    clerk.full = (Status.REQUEST_FAILED, reason)
    await _forget(room, clerk, batch, standing)
    return False


async def _forget(room: Room, clerk: Clerk, batch: BatchView, standing: Standing) -> None:
    """Delete a batch's texts at the provider, or say that they are still there."""
    try:
        await clerk.client.forget(batch, standing)
    except Trouble as trouble:
        room.say_once(
            f"juror {clerk.juror.name}: batch {batch.provider_id} is stored, but its texts at "
            f"{batch.host} could not be deleted ({trouble}); the next run with --batch tries again"
        )
        return
    move(room.engine, batch.id, BatchState.CLOSED)


async def _standing(clerk: Clerk, batch: BatchView) -> Standing | None:
    """Return how far a batch is, None where the provider knows none of that id."""
    try:
        standing = await clerk.client.standing(batch.provider_id)
    except Trouble as trouble:
        if trouble.answer.http == 404:
            return None
        raise
    clerk.failures = 0
    return standing


def _unknown_there(room: Room, clerk: Clerk, batch: BatchView) -> bool:
    """Give up a batch that is too old to be had; else say that another key may know it."""
    since = batch.submitted or batch.prepared
    if now() - since > KEPT:
        finish(room.engine, batch.id, "unanswered", GONE)
        room.tell(f"juror {clerk.juror.name}: batch {batch.provider_id} is lost: {GONE}")
        return True
    reason = (
        f"batch {batch.provider_id} is not known at {batch.host} with this key; use the key of "
        f"the account and project that handed it in ({ASK_ANEW})"
    )
    clerk.stopped = clerk.stopped or (Status.REQUEST_FAILED, reason)
    return False


def _store(
    room: Room, clerk: Clerk, batch: BatchView, chunk: list[tuple[RequestView, Collected]]
) -> Counter[str]:
    """Store results in one transaction; count those that were new, and return how they ended."""
    fresh = set(collect(room.engine, batch.id, [result for _, result in chunk]))
    new = [(request, result) for request, result in chunk if result.custom_id in fresh]
    for request, result in new:
        key = clerk.key(request.response, request.replicate, request.rubric)
        _ended(room, key, result.outcome)
        if result.attempt is not None:
            clerk.rated += result.outcome == Status.OK
            room.paid(result.attempt.usd, request.usd_most)
    return Counter(result.outcome for _, result in new)


def _collected(juror: Juror, batch: BatchView, request: RequestView, entry: Entry) -> Collected:
    """Return a result as the study keeps it: read like a live answer, at the price of its day."""
    answer = entry.answer
    if answer is None:
        return Collected(entry.custom_id, entry.outcome, request.rubric)
    parsed = read_answer(answer, request.rubric)
    where = {"batch": batch.provider_id, "custom_id": request.custom_id, "turns": 1}
    record = AttemptRecord(
        rater=batch.rater,
        response=request.response,
        replicate=request.replicate,
        status=parsed.status,
        request_sha256=request.request_sha256,
        reason=parsed.remark,
        sent={**batch.sent, **where},
        **answered(answer, _cost(juror, batch, answer)),
    )
    return Collected(entry.custom_id, str(parsed.status), request.rubric, record, parsed.reply)


def _cost(juror: Juror, batch: BatchView, answer: Answer) -> Price:
    """Return what an answer cost; an error of a request in a batch is not billed."""
    at = batch.submitted or batch.prepared
    if answer.http is not None and answer.http != 200:
        return unbilled(juror, answer.http, at)
    return batch_price(juror, answer.usage, at)


def _ended(room: Room, key: tuple[int, int, int, str], outcome: str) -> None:
    """Note how a verdict ended; one that an earlier run asked for in vain may be asked for now."""
    if outcome in (*Status,) or key in room.handed_in:
        room.ended[key] = outcome


def _age(batch: BatchView) -> float:
    """Return the seconds since the provider was asked to take a batch."""
    return (now() - (batch.asked or batch.prepared)).total_seconds()
