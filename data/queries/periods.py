"""Ratings with their dates: when clinicians rated, and what jurors said again later."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine, Select, func, select
from sqlmodel import col

from data.database import reading
from data.schema import Benchmark, Expert, Instance, Kind, Rater, Rating, Response

if TYPE_CHECKING:
    import pandas as pd

JUROR_RATINGS = (
    *("response_id", "instance_id", "benchmark", "rater", "criterion"),
    *("pass_", "replicate", "score", "at"),
)


@dataclass(frozen=True, slots=True)
class ClinicianDates:
    """When the clinicians of a response rated it, in UTC: the first and the last of them."""

    first: datetime
    last: datetime


def clinician_dates(engine: Engine) -> dict[str, ClinicianDates]:
    """Return, for each response clinicians rated on its present rubric, when they did.

    Of each clinician the first score of the response counts: neither a hidden repeat nor a
    score that was changed later moves a response to another time. Training is left out.
    """
    columns: Any = (col(Response.response_id), func.min(col(Rating.id)).label("first"))
    each: Any = (
        _counting(select(*columns))
        .where(col(Rater.kind) == Kind.CLINICIAN)
        .group_by(col(Response.response_id), col(Rating.rater))
        .subquery()
    )
    query = (
        select(each.c.response_id, func.min(col(Rating.at)), func.max(col(Rating.at)))
        .join(Rating, col(Rating.id) == each.c.first)
        .group_by(each.c.response_id)
    )
    with reading(engine) as session:
        return {name: ClinicianDates(*ends) for name, *ends in session.execute(query)}


def juror_ratings(engine: Engine) -> "pd.DataFrame":
    """Return the jurors' ratings that count, with their dates.

    Returns
    -------
    Columns response_id, instance_id (benchmark/instance), benchmark, rater, criterion, pass_,
    replicate, score, at (UTC); which ratings count is as in `frames.ratings_frame`.
    """
    import pandas as pd

    key = (Rating.response, Rating.rater, Rating.criterion, Rating.rubric_sha256)
    newest = select(func.max(col(Rating.id))).group_by(
        *map(col, key), col(Rating.pass_), col(Rating.replicate)
    )
    columns: Any = (
        col(Response.response_id),
        col(Benchmark.name) + "/" + col(Instance.instance_id),
        col(Benchmark.name),
        col(Rater.handle),
        *(col(one) for one in (Rating.criterion, Rating.pass_, Rating.replicate)),
        *(col(one) for one in (Rating.score, Rating.at)),
    )
    query = _counting(select(*columns)).where(
        col(Rater.kind) == Kind.JUROR, col(Rating.id).in_(newest)
    )
    with reading(engine) as session:
        rows = [tuple(row) for row in session.execute(query.order_by(col(Rating.id)))]
    found = pd.DataFrame(rows, columns=list(JUROR_RATINGS))
    return found.assign(at=pd.to_datetime(found["at"], utc=True))


def _counting(query: Select[Any]) -> Select[Any]:
    """Join ratings on their benchmark's present rubric, training responses left out."""
    return (
        query.select_from(Rating)
        .join(Response, col(Response.id) == col(Rating.response))
        .join(Instance, col(Instance.id) == col(Response.instance))
        .join(Benchmark, col(Benchmark.name) == col(Instance.benchmark))
        .join(Rater, col(Rater.id) == col(Rating.rater))
        .where(
            col(Rating.rubric_sha256) == col(Benchmark.rubric_sha256),
            col(Response.id).not_in(select(col(Expert.response))),
        )
    )
