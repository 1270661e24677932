"""Handing in what is missing: stored first, then sent, so that a kill never sends it twice."""

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any

from data.queries.jury import BatchRequest, in_flight
from data.schema import Status
from data.schema.jury import BatchState, JuryBatch
from data.store.attempts import record_attempts
from data.store.batches import finish, move, prepare
from jury.ask import NO_TEXT, Job, not_asked_record, request_sha256
from jury.batch.client import Limits, Request, Trouble
from jury.batch.context import BatchContext, BatchSession
from jury.call import Call
from jury.conversation import worst_of
from jury.cost import batch_price

COMMAS = 2  # bytes between two requests
LONGEST_ID = 64  # what both providers allow


@dataclass(frozen=True, slots=True)
class _Asking:
    """A job with the request for it, and what that can cost at most."""

    job: Job
    call: Call
    usd_most: float | None


@dataclass
class _Parcel:
    """The requests of one batch, as they travel and as they are stored."""

    marker: str = field(default_factory=lambda: secrets.token_hex(8))
    requests: list[Request] = field(default_factory=list)
    records: list[BatchRequest] = field(default_factory=list)
    sent: dict[str, Any] = field(default_factory=dict)
    bytes: int = COMMAS

    def takes(self, size: int, limits: Limits) -> bool:
        """Return whether one request more goes in; the first one always does."""
        full = len(self.records) >= limits.requests or self.bytes + size > limits.bytes
        return not self.records or not full

    def add(self, session: BatchSession, one: _Asking, request: Request, size: int) -> None:
        """Put in one request more, under an id that holds the marker and no text."""
        job = one.job
        name = f"{self.marker}-{session.rater}-{job.response}-{job.replicate}"
        digest = request_sha256(session.juror, one.call)
        self.requests.append(request | {"custom_id": name})
        self.records.append(
            BatchRequest(name, job.response, job.replicate, job.rubric, digest, one.usd_most)
        )
        self.sent = session.client.endpoint.sent(one.call)
        self.bytes += size


async def submit(context: BatchContext, session: BatchSession) -> None:
    """Hand in all that a juror has not rated, is not being asked, and may be paid for."""
    if session.stopped or session.full:
        return
    for parcel in _parcels(context, session):
        if not await _hand_in(context, session, parcel):
            return


async def _hand_in(context: BatchContext, session: BatchSession, parcel: _Parcel) -> bool:
    """Store a batch, then ask the provider to take it; return whether it did.

    Where no clear no came back the provider may have taken it: the batch stays as it is, and is
    looked for.
    """
    batch = JuryBatch(
        marker=parcel.marker,
        rater=session.rater,
        host=session.juror.host,
        state=BatchState.PREPARED,
        requests=len(parcel.records),
        sent=parcel.sent,
    )
    key = prepare(context.engine, batch, parcel.records)
    asked = False

    def asking(input_file: str) -> None:
        nonlocal asked
        move(context.engine, key, BatchState.SUBMITTING, input_file=input_file)
        asked = True

    for one in parcel.records:
        context.handed_in.add(session.key(one.response, one.replicate, one.rubric))
    try:
        name = await session.client.hand_in(parcel.marker, parcel.requests, asking)
    except Trouble as trouble:
        if asked and not trouble.sure:
            context.tell(f"juror {session.juror.name}: {trouble} on handing a batch in")
            session.troubled(trouble)
        else:
            _refused(context, session, key, trouble)
        return False
    move(context.engine, key, BatchState.SUBMITTED, provider_id=name)
    context.calls += len(parcel.records)
    size = "1 request" if len(parcel.records) == 1 else f"{len(parcel.records)} requests"
    context.tell(f"juror {session.juror.name}: batch {name} of {size} handed in")
    return True


def _refused(context: BatchContext, session: BatchSession, key: int, trouble: Trouble) -> None:
    """Give the requests of a batch that was not taken free again."""
    reason = f"the batch was not taken: {trouble}"
    finish(context.engine, key, "not_sent", reason, BatchState.PREPARED)  # its upload is left to do
    session.full = (trouble.answer.status, f"{reason}; run the same command again later")


def _parcels(context: BatchContext, session: BatchSession) -> Iterator[_Parcel]:
    """Yield what is to be asked, cut into batches within the provider's limits."""
    parcel = _Parcel()
    for one in _askings(context, session):
        request = session.client.request("-" * LONGEST_ID, one.call)
        size = len(json.dumps(request)) + COMMAS  # in ASCII: never shorter than what is sent
        if not parcel.takes(size, session.client.limits):
            yield parcel
            parcel = _Parcel()
        parcel.add(session, one, request, size)
    if parcel.records:
        yield parcel


def _askings(context: BatchContext, session: BatchSession) -> Iterator[_Asking]:
    """Yield what is missing and not in flight, as far as the cap goes."""
    waiting = in_flight(context.engine, session.rater)
    money = inf if context.max_usd is None else context.max_usd - context.held()
    for job in context.missing(session):
        key = session.key(job.response, job.replicate, job.rubric)
        if key[1:] in waiting or key in context.ended or key in context.handed_in:
            continue
        if not job.has_text:
            _not_asked(context, session, job, Status.EMPTY_RESPONSE, NO_TEXT)
            continue
        call = session.call(job)
        most = worst_of(session.juror, call, batch_price)
        if most is not None and most > money:
            reason = "the request could pass the cap"
            _not_asked(context, session, job, Status.BUDGET_STOPPED, reason)
            continue
        money -= most or 0.0  # a cap is refused beforehand where a price is not known
        yield _Asking(job, call, most)


def _not_asked(
    context: BatchContext, session: BatchSession, job: Job, status: Status, reason: str
) -> None:
    """Store why a response was not put to a juror at all."""
    context.ended[session.key(job.response, job.replicate, job.rubric)] = str(status)
    record = not_asked_record(session.rater, job, status, reason)
    record_attempts(context.engine, [(record, job.rubric, None)])
