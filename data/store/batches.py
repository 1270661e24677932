"""Batches of requests to jurors: what is meant to be sent is stored before it is sent."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.card import Reply
from data.database import transaction
from data.queries.jury import BatchRequest
from data.record import add_rows, log, refuse_locked, update_unsealed
from data.rubric import Rubric
from data.schema import Attempt, now
from data.schema.jury import BatchState, JuryBatch, JuryRequest
from data.store.calls import Intended, keep_intents, write_attempts
from data.store.rubrics import keep_rubric

TIMES = {
    BatchState.SUBMITTING: "asked",
    BatchState.SUBMITTED: "submitted",
    BatchState.CLOSED: "closed",
}


@dataclass(frozen=True, slots=True)
class Collected:
    """How one request ended: with an attempt, and a reply if it is OK, or with neither."""

    custom_id: str
    outcome: str
    rubric: Rubric
    attempt: Attempt | None = None
    reply: Reply | None = None


def prepare(engine: Engine, batch: JuryBatch, requests: Sequence[BatchRequest]) -> int:
    """Store a batch with its requests before anything of it is sent; return its primary key.

    Raises
    ------
    NotAllowed
        If the study is locked.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        for rubric in {request.rubric.sha256: request.rubric for request in requests}.values():
            keep_rubric(session, rubric)
        session.add(batch)
        session.flush()
        key = batch.id
        ordered = sorted(requests, key=lambda request: request.custom_id)
        rows = [_request(key, request) for request in ordered]
        add_rows(session, JuryRequest, rows)
        log(session, "jury", "batch prepared", {"batch": key, "rows": len(rows)})
    return key


def move(engine: Engine, key: int, state: BatchState, **fields: str) -> None:
    """Put a batch into a state, with the fields that are known from then on.

    Parameters
    ----------
    **fields
        Any of `provider_id`, `input_file` and `reason`.
    """
    _update(engine, key, _state_columns(state) | fields)


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
        by_id = {result.custom_id: result for result in results}
        new_results = [by_id[name] for name in _open_requests(session, key, list(by_id))]
        write_attempts(
            session, [(new.attempt, new.rubric, new.reply) for new in new_results if new.attempt]
        )
        unknown = []
        for result in new_results:
            request = session.get_one(JuryRequest, result.custom_id)
            request.outcome = result.outcome
            if result.attempt and result.attempt.usd is None and request.usd_most is not None:
                unknown.append(_cost_unknown(request, result.attempt))
        if unknown:
            keep_intents(session, unknown, now())
            log(session, "jury", "calls in flight", {})
    return [result.custom_id for result in new_results]


def finish(
    engine: Engine, key: int, outcome: str, reason: str = "", state: BatchState = BatchState.CLOSED
) -> None:
    """Give every request of a batch that has no end yet the same one, and move the batch on."""
    is_open = col(JuryRequest.batch) == key, col(JuryRequest.outcome) == ""
    values = _state_columns(state) | {"reason": reason}
    with transaction(engine) as session:
        update_unsealed(session, JuryRequest, *is_open, outcome=outcome)
        update_unsealed(session, JuryBatch, col(JuryBatch.id) == key, **values)


def _cost_unknown(request: JuryRequest, answer: Attempt) -> Intended:
    """Return what keeps the most that a request may have cost whose answer does not say what it did."""
    key = f"batch-{sha256(request.custom_id.encode()).hexdigest()[:32]}"
    about = (answer.rater, answer.response, None, answer.replicate)
    return Intended(key, *about, request.usd_most)


def _state_columns(state: BatchState) -> dict[str, Any]:
    """Return the columns of a batch that is now in a state."""
    return {"state": state} | ({TIMES[state]: now()} if state in TIMES else {})


def _open_requests(session: Session, key: int, names: list[str]) -> list[str]:
    """Return which of these requests have no end yet."""
    query = select(JuryRequest.custom_id).where(
        JuryRequest.batch == key, JuryRequest.outcome == "", col(JuryRequest.custom_id).in_(names)
    )
    return list(session.exec(query))


def _update(engine: Engine, key: int, values: Mapping[str, Any]) -> None:
    """Change columns of one batch."""
    with transaction(engine) as session:
        update_unsealed(session, JuryBatch, col(JuryBatch.id) == key, **values)


def _request(key: int, request: BatchRequest) -> dict[str, Any]:
    """Return the columns of a request."""
    columns = {name: getattr(request, name) for name in BatchRequest.__slots__ if name != "rubric"}
    return columns | {"rubric_sha256": request.rubric.sha256, "batch": key, "outcome": ""}
