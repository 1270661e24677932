"""Ratings and responses as pandas tables for the statistics; pandas is imported only when asked."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine, func
from sqlmodel import col

from data.database import reading
from data.schema import (
    Assignment,
    Benchmark,
    Instance,
    Kind,
    Rater,
    Rating,
    Response,
    Span,
    State,
    Subgroup,
)
from data.study.base import BY_ITSELF, FOR_STUDY, NEWEST_SUBMISSION, Columns, columns_of
from data.study.readings import INDEPENDENT, IS_WITHDRAWN, counting_ratings, every_reading, rated

if TYPE_CHECKING:
    import pandas as pd

INSTANCE = (col(Benchmark.name) + "/" + col(Instance.instance_id)).label("instance_id")
RESPONSE: tuple[Any, ...] = (Response.response_id, INSTANCE, col(Benchmark.name).label("benchmark"))
RATER: Any = col(Rater.handle).label("rater")
READING: tuple[Any, ...] = (
    *(*RESPONSE, RATER, Rater.kind, Rating.criterion),
    *(Rating.score, Rating.answer, Rating.pass_, Rating.replicate),
)


def ratings_frame(engine: Engine) -> "pd.DataFrame":
    """Return the independent ratings that count, a row a score, in the order of storing.

    Returns
    -------
    Columns response_id, instance_id (benchmark/instance, unique in the study), benchmark,
    rater, kind, criterion, each categorical with its names in alphabetical order; score, NaN where
    answer, of `data.card.ANSWERS`, stands in its place; pass_ (1 for a hidden repeat), replicate. Only the newest of several scores by one rater for one thing;
    clinicians' and jurors' only where they were made on the benchmark's present rubric. No author,
    and nothing of training responses or pairs.
    """
    return _rating_table(engine, counting_ratings(*READING).where(BY_ITSELF))


def preferences_frame(engine: Engine) -> "pd.DataFrame":
    """Return the ratings of pairs that count, as `ratings_frame` has its own, and `shown_first`."""
    query = counting_ratings(*READING, Rating.shown_first).where(~BY_ITSELF)
    return _scores_of(_rating_table(engine, query))


def adjudicated_frame(engine: Engine) -> "pd.DataFrame":
    """Return the ratings by which clinicians settled differences, as `ratings_frame` has its own.

    `pass_` is `data.card.THIRD` or `CONSENSUS`.
    """
    settling = every_reading(*READING).where(~INDEPENDENT, Rater.kind == Kind.CLINICIAN, BY_ITSELF)
    return _scores_of(_rating_table(engine, settling))


def _scores_of(table: "pd.DataFrame") -> "pd.DataFrame":
    """Return the rows that are scores."""
    return table[table["answer"] == ""].drop(columns="answer").reset_index(drop=True)


def _rating_table(engine: Engine, query: Columns) -> "pd.DataFrame":
    table = _frame(engine, query.where(FOR_STUDY))
    names = ("response_id", "instance_id", "benchmark", "rater", "kind", "criterion")
    table = table.astype(dict.fromkeys(names, "str")).astype(dict.fromkeys(names, "category"))
    return table.astype({"score": "float64", "pass_": "int64", "replicate": "int64"})


def responses_frame(engine: Engine) -> "pd.DataFrame":
    """Return all but training responses and pairs: response_id, instance_id, benchmark. No author."""
    query = columns_of(*RESPONSE).select_from(Response).join(Instance).join(Benchmark)
    return _frame(engine, query.where(FOR_STUDY, BY_ITSELF).order_by(col(Response.id)))


def assigned_benchmarks(engine: Engine) -> frozenset[str]:
    """Return the benchmarks of which a clinician is to rate a response, or was."""
    query = columns_of(Instance.benchmark).select_from(Assignment).join(Response).join(Instance)
    with reading(engine) as session:
        return frozenset(name for (name,) in session.exec(query.distinct()))


def subgroups(engine: Engine) -> dict[str, dict[str, str]]:
    """Return name -> response_id -> value of the groups that responses are in."""
    query = (
        columns_of(Response.response_id, Subgroup.name, Subgroup.value)
        .select_from(Subgroup)
        .join(Response)
        .where(FOR_STUDY)
        .order_by(col(Subgroup.id))
    )
    groups: dict[str, dict[str, str]] = {}
    with reading(engine) as session:
        for response, name, value in session.exec(query):
            groups.setdefault(name, {})[response] = value
    return groups


def specialties(engine: Engine) -> dict[str, str]:
    """Return clinician -> specialty, of those who have said one."""
    query = (
        columns_of(Rater.handle, Rater.specialty)
        .where(Rater.kind == Kind.CLINICIAN, Rater.specialty != "")
        .order_by(col(Rater.handle))
    )
    with reading(engine) as session:
        return dict(map(tuple, session.exec(query)))


def marks_frame(engine: Engine) -> "pd.DataFrame":
    """Return what clinicians marked in the newest submissions of first readings, a row a mark.

    Returns
    -------
    Columns response_id, rater, side, start, end, criterion, error, severity; training left out.
    """
    kind = (Span.side, Span.start, Span.end, Span.criterion, Span.error, Span.severity)
    query = first_readings(Response.response_id, RATER, *kind).join(Span)
    newest = col(Span.revision) == NEWEST_SUBMISSION
    return _frame(engine, query.where(newest).order_by(col(Span.id)))


def readers(engine: Engine) -> dict[str, frozenset[str]]:
    """Return response_id -> the clinicians who submitted a first reading where marks can be made."""
    raters_of: dict[str, set[str]] = {}
    with reading(engine) as session:
        for response, rater in session.exec(first_readings(Response.response_id, RATER)):
            raters_of.setdefault(response, set()).add(rater)
    return {response: frozenset(raters) for response, raters in raters_of.items()}


def first_readings(*columns: Any) -> Columns:
    """Select from the assignments, hidden repeats left out, that were submitted and stand."""
    query = columns_of(*columns).select_from(Assignment).join(Response).join(Rater)
    ended = col(Assignment.state).in_((State.DONE, State.UNRATED))
    return query.where(FOR_STUDY, Assignment.pass_ == 0, ended, NEWEST_SUBMISSION >= 0)


def juror_ratings(engine: Engine) -> "pd.DataFrame":
    """Return the jurors' ratings that count, as `ratings_frame` has them, and `at` (UTC)."""
    import pandas as pd

    query = counting_ratings(*READING, Rating.at).where(Rater.kind == Kind.JUROR, BY_ITSELF)
    table = _scores_of(_rating_table(engine, query))
    at = pd.Series(pd.to_datetime(table["at"].tolist(), utc=True), index=table.index)
    return table.drop(columns="kind").assign(at=at)


def clinician_dates(engine: Engine) -> dict[str, datetime]:
    """Return, for each response clinicians rated on its present rubric, when the last of them did (UTC).

    Of each clinician the first score of the response counts: neither a hidden repeat nor a
    score that was changed later moves a response to another time. Training is left out.
    """
    first_ratings: Any = (
        rated(Response.response_id, func.min(Rating.id).label("first"))
        .where(FOR_STUDY, INDEPENDENT, Rater.kind == Kind.CLINICIAN, ~IS_WITHDRAWN)
        .where(col(Rating.rubric_sha256) == col(Benchmark.rubric_sha256))
        .group_by(col(Response.response_id), col(Rating.rater))
        .subquery()
    )
    query = (
        columns_of(first_ratings.c.response_id, func.max(Rating.at))
        .join(Rating, col(Rating.id) == first_ratings.c.first)
        .group_by(first_ratings.c.response_id)
    )
    with reading(engine) as session:
        return dict(map(tuple, session.exec(query)))


def _frame(engine: Engine, query: Columns) -> "pd.DataFrame":
    """Run one query and return its rows as a table."""
    import pandas as pd

    with reading(engine) as session:
        rows = session.connection().execute(query)
        return pd.DataFrame(rows.fetchall(), columns=list(rows.keys()))
