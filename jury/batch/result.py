"""One result of a batch, as the study keeps it: read and priced like a live answer."""

from data.queries.batches import BatchView, RequestView
from data.schema import Status
from data.store.attempts import AttemptRecord
from data.store.batches import Collected
from jury.batch.post import Entry
from jury.call import Answer
from jury.cost import Price, batch_price, unbilled
from jury.panel import Juror
from jury.parse import Parsed, parse, storable


def result_of(juror: Juror, batch: BatchView, request: RequestView, entry: Entry) -> Collected:
    """Return a result as the study keeps it."""
    if entry.answer is None:
        return Collected(entry.custom_id, entry.outcome, request.rubric)
    answer = entry.answer
    parsed = Parsed(answer.status, answer.reason)
    if answer.status == Status.OK:
        parsed = parse(answer.text, request.rubric)
    record = _record(juror, batch, request, answer, parsed)
    return Collected(entry.custom_id, str(parsed.status), request.rubric, record, parsed.reply)


def _record(
    juror: Juror, batch: BatchView, request: RequestView, answer: Answer, parsed: Parsed
) -> AttemptRecord:
    """Return an answer as an attempt, priced by the day its batch was handed in."""
    cost = _cost(juror, batch, answer)
    ignored = f"ignored: {', '.join(parsed.extra)}" if parsed.extra else ""
    where = {"batch": batch.provider_id, "custom_id": request.custom_id, "turns": 1}
    return AttemptRecord(
        rater=batch.rater,
        response=request.response,
        status=parsed.status,
        request_sha256=request.request_sha256,
        replicate=request.replicate,
        sent={**batch.sent, **where},
        raw=storable(answer.text),
        reason=storable(parsed.reason or ignored),
        tokens_in=answer.usage.tokens_in,
        tokens_out=answer.usage.tokens_out,
        tokens_cached=answer.usage.tokens_cached,
        tokens_reasoning=answer.usage.tokens_reasoning,
        usd=cost.usd,
        price_source=cost.source,
        request_id=answer.request_id,
        returned_model=answer.returned_model,
    )


def _cost(juror: Juror, batch: BatchView, answer: Answer) -> Price:
    """Return what an answer cost; an error of a request in a batch is not billed."""
    at = batch.submitted or batch.prepared
    if answer.http is not None and answer.http != 200:
        return unbilled(juror, answer.http, at)
    return batch_price(juror, answer.usage, at)
