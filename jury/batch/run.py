"""Run a panel in batches: collect what has come back, submit what is missing, wait.

A batch is stored before it is sent, so that a killed run never sends it twice.
"""

import asyncio
import json
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from math import inf
from typing import Any

from sqlalchemy import Engine

from data.errors import BadPanel
from data.schema import UNANSWERED, Attempt, BatchState, JuryBatch, Status, now
from data.study.calls import (
    IN_FLIGHT,
    BatchRequest,
    Collected,
    Step,
    add_jurors,
    collect,
    finish,
    move,
    open_batches,
    open_requests,
    prepare,
    provider_ids,
    record_steps,
    requests_in_flight,
    response_cards,
)
from jury.admission import admit, api_keys
from jury.batch.client import (
    NO_SUCH_PATH,
    BatchClient,
    BatchError,
    BatchLimits,
    BatchResult,
    BatchStatus,
    Request,
    open_client,
)
from jury.budget import Budget
from jury.call import Answer, Call, Usage
from jury.conversation import (
    SamePrompts,
    answer_columns,
    hashes_of,
    not_asked_columns,
    request_sha256,
    verdict_task,
    whole,
    worst_case_usd,
)
from jury.cost import Price, above_worst, batch_price, unbilled
from jury.expected_score import read_for
from jury.panel import Juror, Panel, refuse_ended
from jury.parse import ParsedAnswer
from jury.providers.registry import PROVIDERS, forms_of
from jury.reading import storable
from jury.run import refuse_numbers, run_lock
from jury.run_result import RunResult, RunTally, with_study_spending
from jury.task import NO_TEXT
from jury.window import prompt_size
from jury.worklist import (
    Job,
    Worklist,
    benchmarks_to_rate,
    job_of,
    juror_record,
    learned_by,
    pending_jobs,
    refuse_changed,
)

FAILURES_IN_A_ROW = 10

Key = tuple[int, int, int, str]


@dataclass(frozen=True, slots=True)
class Polling:
    """How often a run asks for the state of its batches, in seconds.

    Attributes
    ----------
    first, longest
        Time until a batch is asked about again, growing by half each time up to the longest.
    grace
        How long a batch whose id never arrived is looked for before it counts as not taken.
    """

    first: float = 1.0
    longest: float = 60.0
    grace: float = 300.0

    def after(self, wait: float) -> float:
        """Return the wait that follows a wait."""
        return min(self.longest, max(self.first, wait * 1.5))


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """How far a run has come: verdicts that are rated, are with providers, and failed in this run.

    `answered` of those in flight have ended at their provider, as far as it reports.
    """

    total: int
    rated: int
    in_flight: int
    answered: int
    failed: int
    usd: float


@dataclass
class BatchSession:
    """One juror within a run in batches.

    Attributes
    ----------
    stopped
        Status and reason once nothing more can be done for this juror in this run.
    full
        The same once nothing more may be submitted, while what is in flight is still awaited.
    """

    juror: Juror
    rater: int
    client: BatchClient
    stopped: tuple[Status, str] | None = None
    full: tuple[Status, str] | None = None
    rated: int = 0
    failures: int = 0
    answered: dict[int, int] = field(default_factory=dict)

    def call(self, job: Job) -> Call:
        """Return the request for a job, in the strictest form the juror may be asked in."""
        task, juror = verdict_task(self.juror, job), self.juror
        question = replace(task.question, shared=0)  # nothing is cached for a batch
        return Call((question,), task.schema, forms_of(juror)[0], job.replicate, juror.expected)

    def key(self, request: Job | BatchRequest) -> Key:
        """Return the key of the verdict that a job or a stored request asks for."""
        return (self.rater, request.response, request.replicate, request.rubric.sha256)

    def note_error(self, error: BatchError) -> None:
        """Note a request that failed; stop the juror after a lasting failure, or too many in a row."""
        answer = error.answer
        self.failures += 1
        if not answer.transient or self.failures >= FAILURES_IN_A_ROW:
            self.stopped = self.stopped or (answer.status, answer.reason)


@dataclass
class BatchContext:
    """One run in batches.

    Attributes
    ----------
    same
        Finds verdicts on the same prompt.
    waits_for_same
        Whether a response waits for the verdict of a batch on the same prompt.
    most_read
        Hash of a prompt -> the most tokens of it that a provider reported.
    """

    engine: Engine
    worklist: Worklist
    sessions: list[BatchSession]
    budget: Budget
    pace: Polling
    tell: Callable[[str], None]
    watch: Callable[[BatchProgress], None]
    ended: dict[Key, str] = field(default_factory=dict)
    handed_in: set[Key] = field(default_factory=set)
    same: SamePrompts | None = None
    waits_for_same: bool = False
    told_once: set[str] = field(default_factory=set)
    most_read: dict[int, int] = field(default_factory=dict)
    calls: int = 0
    usd_at_worst: float = 0.0

    def __post_init__(self) -> None:
        self.tally = RunTally(0, None)

    def tell_once(self, text: str) -> None:
        """Tell the user something once that would otherwise be repeated in every round."""
        if text not in self.told_once:
            self.told_once.add(text)
            self.tell(text)

    def paid(self, cost: Price, usage: Usage, most: float | None) -> None:
        """Count the cost of one answer; an unknown one counts at its highest against a cap."""
        self.tally.called(cost, usage)
        if cost.usd is None:
            self.usd_at_worst += inf if most is None else most

    def held(self) -> float:
        """Return what this run has spent, plus the most that all in flight can cost, in US dollars.

        Infinite if something is in flight that had no price when it was submitted.
        """
        most = sum(inf if usd is None else usd for usd in self._in_flight())
        return self.tally.usd + self.usd_at_worst + most

    def tick(self) -> None:
        """Report how far the run has come."""
        rated = sum(session.rated for session in self.sessions)
        open_ = len(self._in_flight())
        answered = sum(sum(session.answered.values()) for session in self.sessions)
        failed = sum(status != Status.OK for status in self.ended.values())
        total = self.worklist.questions * len(self.sessions)
        self.watch(BatchProgress(total, rated, open_, min(answered, open_), failed, self.tally.usd))

    def _in_flight(self) -> list[float | None]:
        """Return the most that each request in flight can cost, None where its price is not known."""
        return [
            most
            for session in self.sessions
            for _, most in requests_in_flight(self.engine, session.rater).values()
        ]

    def result(self, panel: str) -> RunResult:
        """Return the result of the run."""
        for session in self.sessions:
            open_ = requests_in_flight(self.engine, session.rater)
            stop = session.stopped or session.full
            for job in self.missing(session):
                key = session.key(job)
                otherwise = self.ended.get(key, str(stop[0]) if stop else None)
                self.tally.ended(session.juror.name, IN_FLIGHT if key[1:] in open_ else otherwise)
            for _ in range(session.rated):
                self.tally.ended(session.juror.name, Status.OK)
        ends = {one.juror.name: one.stopped or one.full for one in self.sessions}
        found = self.tally.result(panel, self.worklist.responses, ends)
        return replace(found, calls=self.calls)

    def missing(self, session: BatchSession) -> Iterator[Job]:
        """Yield the jobs that a juror has still to do, and count anew those that are done."""
        session.rated = 0

        def rated(_: Status) -> None:
            session.rated += 1

        learned = learned_by(self.engine, session.juror, self.worklist)
        for group in pending_jobs(self.engine, self.worklist, session.rater, rated, learned):
            yield from group

    def calls_of(self, session: BatchSession, requests: Sequence[BatchRequest]) -> list[Call]:
        """Return what a juror was asked by some requests, in their order."""
        read = learned_by(self.engine, session.juror, self.worklist).rubric
        rubrics = {request.response: request.rubric for request in requests}
        cards = response_cards(self.engine, rubrics)
        return [
            session.call(job_of(one.response, cards[one.response], one.rubric, one.replicate, read))
            for one in requests
        ]


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
    status = await _batch_status(session, batch)
    if status is None:
        return _unknown_there(context, session, batch)
    move(context.engine, batch.id, counts=dict(status.counts))
    session.answered[batch.id] = 0 if status.ended else status.done
    if not status.ended:
        return False
    if status.failed:
        return await _failed(context, session, batch, status)
    return await _collect(context, session, batch, status)


async def _collect(
    context: BatchContext, session: BatchSession, batch: JuryBatch, status: BatchStatus
) -> bool:
    waiting = open_requests(context.engine, batch.id)
    ends: Counter[str] = Counter()
    chunk: list[tuple[BatchRequest, BatchResult]] = []
    gone = status.gone
    try:
        async for entry in session.client.results(status):
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
    name = f"juror {session.juror.name}: batch {batch.provider_id}"
    context.tell(f"{name} has ended: {counts}")
    for request in waiting.values():
        _ended(context, session.key(request), status.leftover)
    if waiting and status.leftover == UNANSWERED:
        why = GONE if gone else "its results do not name all of its requests"
        _lose(context, batch, why)
        context.tell(f"{name}: {len(waiting)} lost: {why}; what is there was not deleted")
    else:
        finish(context.engine, batch.id, status.leftover, state=BatchState.COLLECTED)
        await _delete_texts(context, session, batch, status)
    return any(name not in (*Status,) for name in ends)


async def _failed(
    context: BatchContext, session: BatchSession, batch: JuryBatch, status: BatchStatus
) -> bool:
    reason = f"batch {batch.provider_id} was refused as a whole: {status.failed}"
    for request in open_requests(context.engine, batch.id).values():
        context.ended[session.key(request)] = str(Status.REQUEST_FAILED)
    finish(context.engine, batch.id, "not_sent", reason, BatchState.COLLECTED)
    session.full = (Status.REQUEST_FAILED, reason)
    await _delete_texts(context, session, batch, status)
    return False


async def _delete_texts(
    context: BatchContext, session: BatchSession, batch: JuryBatch, status: BatchStatus
) -> None:
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
    for request in open_requests(context.engine, batch.id).values():
        context.paid(Price(None, GONE), Usage(), request.usd_most)
    finish(context.engine, batch.id, UNANSWERED, why)


def _store(
    context: BatchContext,
    session: BatchSession,
    batch: JuryBatch,
    chunk: list[tuple[BatchRequest, BatchResult]],
) -> Counter[str]:
    """Store results in one transaction, and return how many of the new ones ended in which way."""
    calls = context.calls_of(session, [request for request, _ in chunk])
    stored, read = [], {}
    for (request, entry), call in zip(chunk, calls, strict=True):
        result = Collected(entry.custom_id, entry.outcome, request.rubric)
        if entry.answer is not None:
            answer = entry.answer
            result, cost, parsed = _collected(context, session.juror, batch, request, answer, call)
            read[entry.custom_id] = (answer, cost, parsed)
        stored.append((request, result))
    fresh = {*collect(context.engine, batch.id, [result for _, result in stored])}
    new = [(request, result) for request, result in stored if result.custom_id in fresh]
    for request, result in new:
        _ended(context, session.key(request), result.outcome)
        if result.custom_id in read:
            answer, cost, parsed = read[result.custom_id]
            session.rated += result.outcome == Status.OK
            context.paid(cost, answer.usage, request.usd_most)
            context.tally.answered(session.juror, answer, parsed)
            if result.outcome == Status.OFF_CONTRACT:
                session.full = session.full or (Status.OFF_CONTRACT, parsed.reason)
    return Counter(result.outcome for _, result in new)


def _collected(
    context: BatchContext,
    juror: Juror,
    batch: JuryBatch,
    request: BatchRequest,
    answer: Answer,
    call: Call,
) -> tuple[Collected, Price, ParsedAnswer]:
    """Return a result as the study stores it: read as a single answer is, at its day's batch price."""
    parsed = whole(context.most_read, call, answer, read_for(juror, answer, request.rubric))
    at = batch.submitted or batch.prepared
    if answer.http in (None, 200):
        cost = batch_price(juror, answer.usage, at)
    else:  # a request that failed in its batch is not billed
        cost = unbilled(juror, answer.http, at)
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
    outcome, rubric = str(parsed.status), request.rubric
    return Collected(request.custom_id, outcome, rubric, record, parsed.reply), cost, parsed


def _ended(context: BatchContext, key: Key, outcome: str) -> None:
    """Note how a verdict ended, unless it is free to be asked again in this run."""
    if outcome in (*Status,) or key in context.handed_in:
        context.ended[key] = outcome


def _age(batch: JuryBatch) -> float:
    return (now() - (batch.asked or batch.prepared)).total_seconds()


COMMAS = 2  # bytes between two requests
LONGEST_ID = 64  # what both providers allow
AWAITED = (BatchState.PREPARED, BatchState.SUBMITTING, BatchState.SUBMITTED)


@dataclass
class _BatchDraft:
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
        self, session: BatchSession, job: Job, call: Call, most: float | None, size: int
    ) -> None:
        """Add a request of so many bytes, under an id that holds the marker and no text."""
        name = f"{self.marker}-{session.rater}-{job.response}-{job.replicate}"
        digest = request_sha256(session.juror, call)
        self.requests.append(session.client.request(name, call))
        self.records.append(
            BatchRequest(name, job.response, job.replicate, job.rubric, digest, most)
        )
        self.sent = session.client.endpoint.sent(call)
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
            reason = f"the batch was not taken: {error}"  # and its upload is left to delete
            finish(context.engine, key, "not_sent", reason, BatchState.PREPARED)
            session.full = (error.answer.status, f"{reason}; run the same command again later")
        return False
    move(context.engine, key, BatchState.SUBMITTED, provider_id=name)
    context.calls += len(draft.records)
    size = "1 request" if len(draft.records) == 1 else f"{len(draft.records)} requests"
    context.tell(f"juror {session.juror.name}: batch {name} of {size} handed in")
    return True


def _drafts(context: BatchContext, session: BatchSession) -> Iterator[_BatchDraft]:
    draft = _BatchDraft()
    for job, call, most in _requests_to_make(context, session):
        request = session.client.request("-" * LONGEST_ID, call)
        size = len(json.dumps(request)) + COMMAS  # in ASCII: never shorter than what is sent
        if not draft.takes(size, session.client.limits):
            yield draft
            draft = _BatchDraft()
        draft.add(session, job, call, most, size)
    if draft.records:
        yield draft


def _requests_to_make(
    context: BatchContext, session: BatchSession
) -> Iterator[tuple[Job, Call, float | None]]:
    """Yield the requests that are missing and not in flight, as far as the cap goes."""
    waiting = requests_in_flight(context.engine, session.rater)
    held = context.held()
    open_hashes = {sha256 for sha256, _ in waiting.values()}
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
        yield job, call, most


def _has_same_prompt(
    context: BatchContext, session: BatchSession, job: Job, call: Call, open_hashes: set[str]
) -> bool:
    """Return whether a job needs no request, as its prompt is in flight or has a verdict."""
    if context.same is None or job.response not in context.same.responses:
        return False
    if not open_hashes.isdisjoint(hashes_of(session.juror, call)):
        context.waits_for_same = True
        return True
    entry = context.same.stored(session.juror, session.rater, job, call)
    if entry is None:
        return False
    record_steps(context.engine, [Step(attempt=entry)])
    session.rated += 1
    context.tally.shared()
    return True


def _not_asked(
    context: BatchContext, session: BatchSession, job: Job, status: Status, reason: str
) -> None:
    context.ended[session.key(job)] = str(status)
    task = verdict_task(session.juror, job)
    call = Call((task.question,), task.schema, replicate=job.replicate)
    columns = not_asked_columns(session.juror, session.rater, call, reason) | {"status": status}
    entry = task.columns | columns, job.rubric, None
    record_steps(context.engine, [Step(attempt=entry)])


def run_batches(
    engine: Engine,
    panel: Panel,
    *,
    budget: Budget | None = None,
    replicates: int = 1,
    benchmarks: Sequence[str] | None = None,
    progress: Callable[[BatchProgress], None] = lambda _: None,
    tell: Callable[[str], None] = lambda _: None,
    pace: Polling = Polling(),
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
    free, wait = True, 0.0
    while True:
        for session, batch in _open_batches(context):
            try:  # what fails now is tried again in the next round
                free = (not session.stopped and await follow(context, session, batch)) or free
            except BatchError as error:
                session.note_error(error)
        if free or context.waits_for_same:
            context.waits_for_same = False
            for session in context.sessions:
                await submit_missing(context, session)
        free = False
        context.tick()
        if not any(batch.state in AWAITED for _, batch in _open_batches(context)):
            return
        wait = context.pace.after(wait)
        await asyncio.sleep(wait)


def _open_batches(context: BatchContext) -> list[tuple[BatchSession, JuryBatch]]:
    return [
        (session, batch)
        for session in context.sessions
        if not session.stopped
        for batch in open_batches(context.engine, session.rater)
    ]


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
