"""Reading a study as rows of files, one at a time; no author."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Engine, Select, func, select
from sqlmodel import col

from data.database import reading
from data.schema import (
    Assignment,
    Benchmark,
    Event,
    Instance,
    Kind,
    Rater,
    Rating,
    Remark,
    Response,
    Span,
)

PAGE = 2000
RATINGS = (
    *("response_id", "rater", "kind", "criterion", "score", "comment", "rated_at"),
    *("pass", "replicate"),
)
READINGS = (
    *("response_id", "rater", "pass", "position", "state", "opened_at", "done_at"),
    *("seconds_active", "reference_opened_at", "revision", "previous", "flags", "remark"),
)
SPANS = (
    *("response_id", "rater", "pass", "criterion", "start", "end", "text", "error", "note"),
    *("revision", "counts", "at"),
)
EVENTS = ("id", "at", "actor", "action", "detail", "previous", "sha256")
Cells = tuple[Any, ...]


def rating_rows(engine: Engine) -> Iterator[Cells]:
    """Yield the ratings that count, as `calibrate` reads them; columns `RATINGS`."""
    key: tuple[Any, ...] = (Rating.response, Rating.rater, Rating.criterion)
    key += (Rating.rubric_sha256, Rating.pass_, Rating.replicate)
    newest = select(func.max(col(Rating.id))).group_by(*map(col, key))
    query = (
        _columns(
            Response.response_id,
            Rater.handle,
            Rater.kind,
            Rating.criterion,
            Rating.score,
            Rating.comment,
            Rating.at,
            Rating.pass_,
            Rating.replicate,
        )
        .select_from(Rating)
        .join(Response, col(Response.id) == col(Rating.response))
        .join(Instance, col(Instance.id) == col(Response.instance))
        .join(Benchmark, col(Benchmark.name) == col(Instance.benchmark))
        .join(Rater, col(Rater.id) == col(Rating.rater))
        .where(
            (col(Rater.kind) == Kind.METRIC)
            | (col(Rating.rubric_sha256) == col(Benchmark.rubric_sha256)),
            col(Rating.id).in_(newest),
        )
        .order_by(col(Rating.id))
    )
    yield from _rows(engine, query)


def reading_rows(engine: Engine) -> Iterator[Cells]:
    """Yield every assignment in each clinician's order; columns `READINGS`."""
    said = _remarks(engine)
    query = (
        _columns(
            Assignment.id,
            Response.response_id,
            Rater.handle,
            Assignment.pass_,
            Assignment.position,
            Assignment.state,
            Assignment.opened_at,
            Assignment.done_at,
            Assignment.seconds_active,
            Assignment.reference_opened_at,
            Assignment.revision,
            Assignment.previous,
        )
        .select_from(Assignment)
        .join(Response, col(Response.id) == col(Assignment.response))
        .join(Rater, col(Rater.id) == col(Assignment.rater))
        .order_by(col(Assignment.rater), col(Assignment.position), col(Assignment.id))
    )
    for key, *cells in _rows(engine, query):
        flags, remark = said.get(key, ("", ""))
        yield (*cells, flags, remark)


def span_rows(engine: Engine) -> Iterator[Cells]:
    """Yield every marked stretch; those of the newest revision count. Columns `SPANS`."""
    query = (
        _columns(
            Response.response_id,
            Rater.handle,
            Assignment.pass_,
            Span.criterion,
            Span.start,
            Span.end,
            Span.text,
            Span.error,
            Span.note,
            Span.revision,
            (col(Span.revision) == col(Assignment.revision) - 1),
            Span.at,
        )
        .select_from(Span)
        .join(Assignment, col(Assignment.id) == col(Span.assignment))
        .join(Response, col(Response.id) == col(Assignment.response))
        .join(Rater, col(Rater.id) == col(Assignment.rater))
        .order_by(col(Span.id))
    )
    yield from _rows(engine, query)


def event_rows(engine: Engine) -> Iterator[Cells]:
    """Yield the audit chain, oldest first; columns `EVENTS`."""
    query = _columns(*(getattr(Event, name) for name in EVENTS)).order_by(col(Event.id))
    yield from _rows(engine, query)


def _remarks(engine: Engine) -> dict[int, tuple[str, str]]:
    """Return the flags and the remark of each assignment's newest revision."""
    query = (
        _columns(Remark.assignment, Remark.kind, Remark.text)
        .join(Assignment, col(Assignment.id) == col(Remark.assignment))
        .where(col(Remark.revision) >= col(Assignment.revision) - 1)
        .order_by(col(Remark.id))
    )
    found: dict[int, list[tuple[str, str]]] = {}
    for assignment, kind, text in _rows(engine, query):
        found.setdefault(assignment, []).append((kind, text))
    return {
        key: (" ".join(dict.fromkeys(kind for kind, _ in said)), said[-1][1])
        for key, said in found.items()
    }


def _rows(engine: Engine, query: Select[Any]) -> Iterator[Cells]:
    paged = query.execution_options(yield_per=PAGE)
    with reading(engine) as session, session.execute(paged) as found:
        yield from map(tuple, found)


def _columns(*columns: Any) -> Select[Any]:
    """Select columns of several tables; more than sqlmodel's `select` has types for."""
    return select(*columns)
