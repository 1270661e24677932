"""Batches of requests to jurors: what is meant to be sent is stored before it is sent."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Engine, insert
from sqlmodel import Session, col, select, update

from data.card import Reply
from data.database import transaction
from data.rubric import Rubric
from data.schema import Attempt, Rating, now
from data.schema.jury import BatchState, JuryBatch, JuryRequest

# The columns of attempts and ratings are made in one place only.
from data.store.attempts import AttemptRecord, attempt_row, rating_rows
from data.store.audit import Batch, log, refuse_locked
from data.store.rubrics import keep_rubric

TIMES = {
    BatchState.SUBMITTING: "asked",
    BatchState.SUBMITTED: "submitted",
    BatchState.CLOSED: "closed",
}


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request of a batch; `response` is a primary key, `usd_most` None where unpriced."""

    custom_id: str
    response: int
    replicate: int
    rubric: Rubric
    request_sha256: str
    usd_most: float | None = None


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """A batch before it is handed in; `rater` is a primary key, `sent` holds no text."""

    marker: str
    rater: int
    host: str
    sent: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Collected:
    """How one request ended: with an attempt, and a reply if it is OK, or with neither."""

    custom_id: str
    outcome: str
    rubric: Rubric
    attempt: AttemptRecord | None = None
    reply: Reply | None = None


def prepare(engine: Engine, batch: BatchRecord, requests: Sequence[RequestRecord]) -> int:
    """Store a batch with its requests before anything of it is sent; return its primary key.

    Raises
    ------
    NotAllowed
        If the study is locked.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        for rubric in {one.rubric.sha256: one.rubric for one in requests}.values():
            keep_rubric(session, rubric)
        row = JuryBatch(
            marker=batch.marker,
            rater=batch.rater,
            host=batch.host,
            state=BatchState.PREPARED,
            requests=len(requests),
            sent=dict(batch.sent),
        )
        session.add(row)
        session.flush()
        key = row.id or 0
        session.execute(insert(JuryRequest), [_request(key, one) for one in requests])
    return key


def move(engine: Engine, key: int, state: BatchState, **fields: str) -> None:
    """Put a batch into a state, with the fields that are known from then on.

    Parameters
    ----------
    **fields
        Any of `provider_id`, `input_file` and `reason`.
    """
    values: dict[str, Any] = {"state": state, **fields}
    if state in TIMES:
        values[TIMES[state]] = now()
    _update(engine, key, values)


def count(engine: Engine, key: int, counts: Mapping[str, int]) -> None:
    """Store how many requests the provider says have ended, by how they ended."""
    _update(engine, key, {"counts": dict(counts)})


def collect(engine: Engine, key: int, results: Iterable[Collected]) -> list[str]:
    """Store how requests of a batch ended, in one transaction; return the custom ids it was new of.

    A request whose end is stored already is left as it is, so that collecting twice stores once.

    Raises
    ------
    NotAllowed
        If the study is locked.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        given = {one.custom_id: one for one in results}
        fresh = [given[name] for name in _open(session, key, list(given))]
        _write(session, fresh)
        for one in fresh:
            session.get_one(JuryRequest, one.custom_id).outcome = one.outcome
    return [one.custom_id for one in fresh]


def finish(
    engine: Engine, key: int, outcome: str, reason: str = "", state: BatchState = BatchState.CLOSED
) -> None:
    """Give every request of a batch that has no end yet the same one, and move the batch on."""
    ends = (
        update(JuryRequest)
        .where(col(JuryRequest.batch) == key, col(JuryRequest.outcome) == "")
        .values(outcome=outcome)
    )
    values: dict[str, Any] = {"state": state, "reason": reason}
    with transaction(engine) as session:
        session.execute(ends)
        if state in TIMES:
            values[TIMES[state]] = now()
        session.execute(update(JuryBatch).where(col(JuryBatch.id) == key).values(**values))


def _write(session: Session, fresh: Sequence[Collected]) -> None:
    """Store the attempts of results and the ratings they gave, with their event."""
    whole = [(one.attempt, one.rubric, one.reply) for one in fresh if one.attempt is not None]
    if not whole:
        return
    session.execute(insert(Attempt), [attempt_row(record, rubric) for record, rubric, _ in whole])
    written = Batch("rating")
    scores = [row | {"batch": written.token} for entry in whole for row in rating_rows(*entry)]
    if scores:
        session.execute(insert(Rating), scores)
        written.add(scores)
        log(session, "jury", "jurors rated", written.detail())


def _open(session: Session, key: int, names: list[str]) -> list[str]:
    """Return which of these requests have no end yet."""
    query = select(JuryRequest.custom_id).where(
        JuryRequest.batch == key, JuryRequest.outcome == "", col(JuryRequest.custom_id).in_(names)
    )
    return list(session.exec(query))


def _update(engine: Engine, key: int, values: Mapping[str, Any]) -> None:
    """Change columns of one batch."""
    with transaction(engine) as session:
        session.execute(update(JuryBatch).where(col(JuryBatch.id) == key).values(**values))


def _request(key: int, one: RequestRecord) -> dict[str, Any]:
    """Return the columns of a request."""
    return {
        "custom_id": one.custom_id,
        "batch": key,
        "response": one.response,
        "replicate": one.replicate,
        "rubric_sha256": one.rubric.sha256,
        "request_sha256": one.request_sha256,
        "usd_most": one.usd_most,
        "outcome": "",
    }
