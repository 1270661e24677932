"""Responses whose own text holds a verdict on the rubric of their benchmark. No author is read."""

from collections.abc import Iterator

from sqlalchemy import Engine, func
from sqlmodel import col

from data.database import reading
from data.queries.base import FOR_STUDY, columns_of
from data.queries.study import BenchmarkView, benchmarks
from data.rubrics.planted import holds_verdict
from data.schema import Instance, Response

PAGE = 500


def verdicts_in_responses(engine: Engine) -> list[tuple[str, str]]:
    """Return (benchmark, response id) of each response that holds a verdict; none of training."""
    return [
        (one.name, response)
        for one in benchmarks(engine)
        for response, text in _texts(engine, one)
        if holds_verdict(text, one.rubric.criteria)
    ]


def _texts(engine: Engine, benchmark: BenchmarkView) -> Iterator[tuple[str, str]]:
    """Yield the responses of a benchmark with their texts, page by page."""
    text = func.coalesce(Response.shown, Response.text)
    query = columns_of(Response.id, Response.response_id, text).select_from(Response)
    query = query.join(Instance).where(Instance.benchmark == benchmark.name, FOR_STUDY)
    last = 0
    with reading(engine) as session:
        while page := list(
            session.exec(
                query.where(col(Response.id) > last).order_by(col(Response.id)).limit(PAGE)
            )
        ):
            yield from ((response, text) for _, response, text in page)
            last = page[-1][0]
