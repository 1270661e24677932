"""Reading a study as rows of files, what is to be rated in REDCap, and what a report must state."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any

from sqlalchemy import Engine, func
from sqlmodel import Session, col, select

from data.card import CONSENSUS, SETTLING, THIRD, Card, reading_of_pass
from data.database import reading
from data.importers.redcap import Reading
from data.queries.authors import number_of_authors
from data.queries.base import (
    BY_CLINICIAN,
    INDEPENDENT,
    NEWEST_SUBMISSION,
    Columns,
    card,
    columns_of,
    every_reading,
    shown,
)
from data.queries.study import benchmarks
from data.rubric import Rubric
from data.schema import (
    Assignment,
    Drill,
    Event,
    Expert,
    Instance,
    Kind,
    Rater,
    Rating,
    Remark,
    Response,
    Setting,
    Span,
    State,
    Submission,
)

PAGE = 2000
RATINGS = (
    *("response_id", "rater", "kind", "criterion", "score", "comment", "rated_at"),
    *("pass", "replicate", "reading"),
)
READINGS = (
    *("response_id", "rater", "pass", "position", "state", "opened_at", "done_at"),
    *("seconds_active", "reference_opened_at", "revision", "previous", "flags", "remark"),
    "reading",
)
SPANS = (
    *("response_id", "rater", "pass", "criterion", "start", "end", "text", "error", "note"),
    *("revision", "counts", "at", "side", "severity", "linked"),
)
SUBMISSIONS = (
    *("response_id", "rater", "pass", "revision", "comment", "seconds", "study_text"),
    *("appearance", "counts", "at"),
)
EVENTS = ("id", "at", "actor", "action", "detail", "previous", "sha256")
Cells = tuple[Any, ...]
# What clinicians have read by themselves.
_READ = (
    select(Rating.response, Rating.rater)
    .join(Rater)
    .where(Rater.kind == Kind.CLINICIAN, INDEPENDENT)
    .distinct()
)


@dataclass(frozen=True, slots=True)
class ToRate:
    """One reading that a clinician has not done yet."""

    rater: str
    rubric: Rubric
    card: Card


def rating_rows(engine: Engine) -> Iterator[Cells]:
    """Yield the ratings that count, those that settle a difference too; columns `RATINGS`."""
    given = (Rating.criterion, Rating.score, Rating.comment, Rating.at)
    query = every_reading(
        *(Response.response_id, Rater.handle, Rater.kind),
        *(*given, Rating.replicate, Rating.pass_),
    )
    for *cells, replicate, pass_ in _rows(engine, query):
        yield (*cells, pass_, replicate, reading_of_pass(pass_))


def reading_rows(engine: Engine) -> Iterator[Cells]:
    """Yield every assignment in each clinician's order; columns `READINGS`."""
    said = _remarks(engine)
    place = (Assignment.pass_, Assignment.position, Assignment.state)
    times = (Assignment.opened_at, Assignment.done_at, Assignment.seconds_active)
    opened = (Assignment.reference_opened_at, Assignment.revision, Assignment.previous)
    who = (Assignment.id, Response.response_id, Rater.handle)
    query = _assigned(*who, *place, *times, *opened, Assignment.pass_)
    order = (col(Assignment.rater), col(Assignment.position), col(Assignment.id))
    for key, *cells, pass_ in _rows(engine, query.order_by(*order)):
        flags, remark = said.get(key, ("", ""))
        yield (*cells, flags, remark, reading_of_pass(pass_))


def span_rows(engine: Engine) -> Iterator[Cells]:
    """Yield every marked stretch; those of the newest revision count. Columns `SPANS`."""
    newest = col(Span.revision) == NEWEST_SUBMISSION
    place = (Response.response_id, Rater.handle, Assignment.pass_, Span.criterion)
    marked = (Span.start, Span.end, Span.text, Span.error, Span.note, Span.revision)
    kind = (Span.side, Span.severity, Span.linked)
    query = _assigned(*place, *marked, newest, Span.at, *kind).join(Span).order_by(col(Span.id))
    yield from _rows(engine, query)


def submission_rows(engine: Engine) -> Iterator[Cells]:
    """Yield every submission with its comment on the whole; columns `SUBMISSIONS`."""
    newest = col(Submission.revision) == NEWEST_SUBMISSION
    place = (Response.response_id, Rater.handle, Assignment.pass_, Submission.revision)
    made = (Submission.comment, Submission.seconds, Submission.study_text, Submission.appearance)
    query = _assigned(*place, *made, newest, Submission.at).join(Submission)
    yield from _rows(engine, query.order_by(col(Submission.id)))


def event_rows(engine: Engine) -> Iterator[Cells]:
    """Yield the audit chain, oldest first; columns `EVENTS`."""
    query = columns_of(*(getattr(Event, name) for name in EVENTS)).order_by(col(Event.id))
    yield from _rows(engine, query)


def to_rate(engine: Engine) -> Iterator[ToRate]:
    """Yield every open assignment, each clinician's in their order; hidden repeats too.

    Consensus readings are left out: they need the others' scores and comments beside them.
    """
    rubrics = {one.name: one.rubric for one in benchmarks(engine)}
    query = (
        shown(Assignment.code, Rater.handle, Instance.benchmark)
        .join(Assignment)
        .join(Rater)
        .where(Assignment.state == State.OPEN, Assignment.pass_ != CONSENSUS)
        .order_by(col(Rater.handle), col(Assignment.position), col(Assignment.id))
    )
    with reading(engine) as session:
        for *texts, code, rater, benchmark in session.exec(query):
            rubric = rubrics[benchmark]
            yield ToRate(rater, rubric, card(code, texts, rubric))


def readings(engine: Engine) -> dict[str, Reading]:
    """Return, for every assignment's code, whose reading of what it is."""
    query = _assigned(Assignment.code, Response.response_id, Rater.handle, Assignment.pass_)
    return {code: Reading(*rest) for code, *rest in _rows(engine, query)}


def _assigned(*columns: Any) -> Columns:
    """Select from assignments with their response and their rater."""
    return columns_of(*columns).select_from(Assignment).join(Response).join(Rater)


def _remarks(engine: Engine) -> dict[int, tuple[str, str]]:
    """Return the flags and the remark of each assignment's newest revision."""
    query = (
        columns_of(Remark.assignment, Remark.kind, Remark.text)
        .join(Assignment)
        .where(col(Remark.revision) >= NEWEST_SUBMISSION, BY_CLINICIAN)
        .order_by(col(Remark.id))
    )
    found: dict[int, list[tuple[str, str]]] = {}
    for assignment, kind, text in _rows(engine, query):
        found.setdefault(assignment, []).append((kind, text))
    return {
        key: (" ".join(dict.fromkeys(kind for kind, _ in said)), said[-1][1])
        for key, said in found.items()
    }


def _rows(engine: Engine, query: Columns) -> Iterator[Cells]:
    paged = query.execution_options(yield_per=PAGE)
    with reading(engine) as session, session.execute(paged) as found:
        yield from map(tuple, found)


@dataclass(frozen=True, slots=True)
class Raters:
    """Raters of one kind who gave ratings: handles, those simulated, and where known specialties."""

    names: tuple[str, ...]
    simulated: tuple[str, ...]
    specialties: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Facts:
    """What a study can say of itself in numbers; no author and no text.

    Attributes
    ----------
    raters
        "clinician", "juror", "metric" -> those who gave ratings.
    models
        Number of authors of responses; who they are is not read.
    states
        State of an assignment -> number of first readings; `repeats` are hidden second ones done.
    adjudicated
        "third", "consensus" -> responses that such a reading settled; none of it in the others.
    per_response
        Clinicians wanted for each response, "" where nothing was assigned here.
    elsewhere
        Clinicians' first readings that were not made in the rating room.
    median_seconds
        At work on a reading that is done, None where none is.
    """

    raters: Mapping[str, Raters]
    models: int
    states: Mapping[str, int]
    repeats: int
    adjudicated: Mapping[str, int]
    per_response: str
    elsewhere: int
    median_seconds: float | None
    first: datetime | None
    last: datetime | None
    masked: int
    training: int
    trained: int
    seeds: tuple[int, ...]


def facts(engine: Engine) -> Facts:
    """Return the counts of a study as it stands."""
    with reading(engine) as session:
        first, last = session.exec(
            select(func.min(Rating.at), func.max(Rating.at))
            .join(Rater)
            .where(Rater.kind == Kind.CLINICIAN, INDEPENDENT)
        ).one()
        wanted = session.get(Setting, "per_response")
        return Facts(
            raters={str(kind): _raters(session, kind) for kind in Kind},
            models=number_of_authors(session),
            states=_states(session),
            repeats=len(session.exec(_READ.where(col(Rating.pass_) > 0)).all()),
            adjudicated=_adjudicated(session),
            per_response=wanted.value if wanted else "",
            elsewhere=_elsewhere(session),
            median_seconds=_seconds(session),
            first=first,
            last=last,
            masked=_count(session, func.count(col(Response.shown))),
            training=_count(session, func.count(func.distinct(col(Expert.response)))),
            trained=_count(session, func.count(func.distinct(col(Drill.rater)))),
            seeds=_seeds(session),
        )


def _count(session: Session, what: Any) -> int:
    return int(session.scalar(select(what)) or 0)


def _raters(session: Session, kind: Kind) -> Raters:
    query = (
        select(Rater.handle, Rater.simulated, Rater.specialty)
        .where(Rater.kind == kind, col(Rater.id).in_(select(Rating.rater).where(INDEPENDENT)))
        .order_by(Rater.handle)
    )
    found = session.exec(query).all()
    specialties = Counter(specialty for _, _, specialty in found if specialty)
    names = tuple(name for name, _, _ in found)
    return Raters(names, tuple(name for name, made_up, _ in found if made_up), specialties)


def _states(session: Session) -> dict[str, int]:
    query = (
        select(Assignment.state, func.count())
        .where(Assignment.pass_ == 0)
        .group_by(Assignment.state)
    )
    return {str(state): number for state, number in session.exec(query)}


def _elsewhere(session: Session) -> int:
    """Count clinicians' first readings without an assignment that is done."""
    done = select(Assignment.response, Assignment.rater).where(
        Assignment.pass_ == 0, Assignment.state == State.DONE
    )
    here = {(response, rater) for response, rater in session.exec(done)}
    rated = session.exec(_READ.where(Rating.pass_ == 0))
    return sum((response, rater) not in here for response, rater in rated)


def _seconds(session: Session) -> float | None:
    done = (Assignment.state == State.DONE, Assignment.pass_ < THIRD)
    query = select(Assignment.seconds_active).where(*done)
    found = list(session.exec(query))
    return median(found) if found else None


def _adjudicated(session: Session) -> dict[str, int]:
    query = (
        select(Rating.pass_, func.count(func.distinct(Rating.response)))
        .where(~INDEPENDENT)
        .group_by(col(Rating.pass_))
    )
    found = {reading_of_pass(pass_): number for pass_, number in session.exec(query)}
    return {name: found.get(name, 0) for name in SETTLING}


def _seeds(session: Session) -> tuple[int, ...]:
    query = select(Event.detail).where(Event.action == "responses assigned")
    found = dict.fromkeys(one.get("seed") for one in session.exec(query.order_by(col(Event.id))))
    return tuple(one for one in found if isinstance(one, int))
