"""Batches of requests to jurors: what was handed in, and what has not come back."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, func
from sqlmodel import col, select

from data.database import reading
from data.rubric import Rubric
from data.schema import Rater, RubricText
from data.schema.jury import BatchState, JuryBatch, JuryRequest


@dataclass(frozen=True, slots=True)
class BatchView:
    """A batch that is not closed yet, as `JuryBatch` stores it."""

    id: int
    marker: str
    rater: int
    host: str
    state: BatchState
    provider_id: str
    input_file: str
    requests: int
    sent: Mapping[str, Any]
    reason: str
    prepared: datetime
    asked: datetime | None
    submitted: datetime | None


@dataclass(frozen=True, slots=True)
class RequestView:
    """A request whose end is not known, with the rubric it was made on."""

    custom_id: str
    response: int
    replicate: int
    rubric: Rubric
    request_sha256: str
    usd_most: float | None


def open_batches(engine: Engine, rater: int) -> list[BatchView]:
    """Return a juror's batches that are not closed, the oldest first."""
    query = (
        select(JuryBatch)
        .where(JuryBatch.rater == rater, JuryBatch.state != BatchState.CLOSED)
        .order_by(col(JuryBatch.id))
    )
    with reading(engine) as session:
        return [_view(row) for row in session.exec(query)]


def open_requests(engine: Engine, batch: int) -> dict[str, RequestView]:
    """Return the requests of a batch whose end is not known, by custom id."""
    query = (
        select(JuryRequest, RubricText.body)
        .join(RubricText, col(RubricText.sha256) == col(JuryRequest.rubric_sha256))
        .where(JuryRequest.batch == batch, JuryRequest.outcome == "")
    )
    with reading(engine) as session:
        return {
            row.custom_id: RequestView(
                row.custom_id,
                row.response,
                row.replicate,
                Rubric.from_json(body),
                row.request_sha256,
                row.usd_most,
            )
            for row, body in session.exec(query)
        }


def in_flight(engine: Engine, rater: int) -> dict[tuple[int, int, str], float | None]:
    """Return what a juror has been asked in batches and has not answered as far as is known.

    Returns
    -------
    dict
        (response, replicate, SHA-256 of the rubric) -> what the request can cost at most in US
        dollars, None where no price was known.
    """
    query = (
        select(
            JuryRequest.response,
            JuryRequest.replicate,
            JuryRequest.rubric_sha256,
            JuryRequest.usd_most,
        )
        .join(JuryBatch, col(JuryBatch.id) == col(JuryRequest.batch))
        .where(JuryBatch.rater == rater, JuryRequest.outcome == "")
    )
    with reading(engine) as session:
        return {(one, two, sha): most for one, two, sha, most in session.exec(query)}


def waiting_in_batches(engine: Engine, handles: Iterable[str]) -> dict[str, int]:
    """Return how many answers of each of these jurors are still in batches, none left out."""
    query = (
        select(Rater.handle, func.count())
        .join(JuryBatch, col(JuryBatch.rater) == col(Rater.id))
        .join(JuryRequest, col(JuryRequest.batch) == col(JuryBatch.id))
        .where(JuryRequest.outcome == "", col(Rater.handle).in_(list(handles)))
        .group_by(col(Rater.handle))
    )
    with reading(engine) as session:
        return {str(handle): int(number) for handle, number in session.exec(query)}


def provider_ids(engine: Engine) -> frozenset[str]:
    """Return the providers' ids of all batches that this study knows to be its own."""
    with reading(engine) as session:
        return frozenset(session.exec(select(JuryBatch.provider_id)))


def _view(row: JuryBatch) -> BatchView:
    """Return a row as a value."""
    fields = {name: getattr(row, name) for name in BatchView.__slots__}
    return BatchView(**fields | {"state": BatchState(row.state)})
