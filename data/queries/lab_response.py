"""One response with all that clinicians and jurors said of it; its author is not read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, select
from sqlmodel import Session, col

from data.card import Card
from data.database import reading
from data.person import Person, only
from data.queries.cards import card, shown
from data.rubric import Rubric
from data.schema import (
    Assignment,
    Attempt,
    Benchmark,
    Expert,
    Instance,
    Kind,
    Rater,
    Rating,
    Remark,
    Response,
    Role,
    RubricText,
    Span,
)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of the response as shown, in characters, that a clinician marked."""

    criterion: str
    start: int
    end: int
    error: str
    note: str


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one rater said of a response in one reading.

    Attributes
    ----------
    who
        A juror's name; a clinician's handle for coordinators, for researchers their pseudonym.
    repeat, replicate
        1 for a clinician's hidden repeat; a juror's further verdict.
    scores, comments
        By criterion; a criterion left out is missing.
    flags
        What a clinician said apart from scores: kind -> text.
    """

    rater: int
    who: str
    kind: Kind
    simulated: bool
    repeat: int
    replicate: int
    scores: Mapping[str, float]
    comments: Mapping[str, str]
    flags: tuple[tuple[str, str], ...] = ()
    stretches: tuple[Stretch, ...] = ()


@dataclass(frozen=True, slots=True)
class CallView:
    """One call to a juror, as it was stored; `profile` is what the juror is asked with."""

    id: int
    rater: int
    juror: str
    profile: Mapping[str, Any]
    rubric: Rubric
    card: Card
    replicate: int
    number: int
    request_sha256: str
    sent: Mapping[str, Any]
    raw: str
    status: str
    reason: str
    tokens_in: int | None
    tokens_out: int | None
    usd: float | None
    latency_seconds: float
    returned_model: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Opened:
    """A response as raters see it, with its rubric, all opinions and all calls, oldest first."""

    response_id: str
    benchmark: str
    instance_id: str
    card: Card
    rubric: Rubric
    opinions: tuple[Opinion, ...]
    calls: tuple[CallView, ...]


@dataclass
class _Said:
    """What is gathered of one reading."""

    scores: dict[str, float] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)
    flags: list[tuple[str, str]] = field(default_factory=list)
    stretches: list[Stretch] = field(default_factory=list)


Key = tuple[int, int, int]  # rater, pass, replicate


@only(Role.RESEARCHER, Role.COORDINATOR)
def opened_response(person: Person, engine: Engine, response: int) -> Opened | None:
    """Return a response by its primary key, None if there is none or it is for training."""
    query = (
        shown(Response.response_id, Instance.benchmark, Instance.instance_id, RubricText.body)
        .join(Benchmark, col(Benchmark.name) == col(Instance.benchmark))
        .join(RubricText, col(RubricText.sha256) == col(Benchmark.rubric_sha256))
        .where(col(Response.id) == response, col(Response.id).not_in(select(col(Expert.response))))
    )
    with reading(engine) as session:
        row = session.execute(query).first()
        if row is None:
            return None
        texts, (name, benchmark, instance, body) = list(row[:5]), row[5:]
        rubric = Rubric.from_json(body)
        raters = _raters(session, person)
        return Opened(
            name,
            benchmark,
            instance,
            card(name, texts, rubric),
            rubric,
            tuple(_opinions(session, response, rubric, raters)),
            tuple(_calls(session, response, texts, raters)),
        )


def _raters(session: Session, person: Person) -> dict[int, tuple[Rater, str]]:
    """Return each rater with the name it has for whoever asks."""
    found = {}
    for one in session.scalars(select(Rater)):
        name = one.handle
        if one.kind == Kind.CLINICIAN and person.role != Role.COORDINATOR:
            name = one.pseudonym or f"clinician {one.id}"
        found[one.id or 0] = (one, name)
    return found


def _opinions(
    session: Session, response: int, rubric: Rubric, raters: Mapping[int, tuple[Rater, str]]
) -> list[Opinion]:
    """Return who said what on the present rubric: clinicians first, then jurors, by name."""
    said: dict[Key, _Said] = {}
    ratings = (
        select(Rating)
        .where(col(Rating.response) == response, col(Rating.rubric_sha256) == rubric.sha256)
        .order_by(col(Rating.id))
    )
    for one in session.scalars(ratings):
        own = said.setdefault((one.rater, one.pass_, one.replicate), _Said())
        own.scores[one.criterion], own.comments[one.criterion] = one.score, one.comment
    _gather_remarks(session, response, said)
    found = [_opinion(key, own, *raters[key[0]]) for key, own in said.items()]
    wanted = [one for one in found if one.kind != Kind.METRIC]
    order = [Kind.CLINICIAN, Kind.JUROR]
    return sorted(
        wanted, key=lambda one: (order.index(one.kind), one.who, one.repeat, one.replicate)
    )


def _opinion(key: Key, own: _Said, rater: Rater, name: str) -> Opinion:
    return Opinion(
        key[0],
        name,
        Kind(rater.kind),
        rater.simulated,
        key[1],
        key[2],
        own.scores,
        own.comments,
        tuple(own.flags),
        tuple(own.stretches),
    )


def _gather_remarks(session: Session, response: int, said: dict[Key, _Said]) -> None:
    """Add flags and marked stretches of the newest submissions."""
    remarks = (
        select(col(Assignment.rater), col(Assignment.pass_), col(Remark.kind), col(Remark.text))
        .join(Assignment, col(Assignment.id) == col(Remark.assignment))
        .where(
            col(Assignment.response) == response,
            col(Remark.revision) >= col(Assignment.revision) - 1,
        )
    )
    for rater, repeat, kind, words in session.execute(remarks):
        said.setdefault((rater, repeat, 0), _Said()).flags.append((kind, words))
    columns = (Span.criterion, Span.start, Span.end, Span.error, Span.note)
    spans = (
        select(col(Assignment.rater), col(Assignment.pass_), *(col(one) for one in columns))
        .join(Assignment, col(Assignment.id) == col(Span.assignment))
        .where(
            col(Assignment.response) == response,
            col(Span.revision) == col(Assignment.revision) - 1,
        )
        .order_by(col(Span.start))
    )
    for rater, repeat, *stretch in session.execute(spans):
        said.setdefault((rater, repeat, 0), _Said()).stretches.append(Stretch(*stretch))


def _calls(
    session: Session, response: int, texts: list[Any], raters: Mapping[int, tuple[Rater, str]]
) -> list[CallView]:
    """Return every call about a response, oldest first."""
    query = (
        select(Attempt, col(RubricText.body))
        .join(RubricText, col(RubricText.sha256) == col(Attempt.rubric_sha256))
        .where(col(Attempt.response) == response)
        .order_by(col(Attempt.id))
    )
    copied = [
        one for one in CallView.__slots__ if one not in ("juror", "profile", "rubric", "card")
    ]
    found = []
    for one, body in session.execute(query):
        rubric, (rater, name) = Rubric.from_json(body), raters[one.rater]
        values = {name: getattr(one, name) for name in copied}
        values["status"] = str(one.status)
        made = card(str(response), texts, rubric)
        found.append(
            CallView(juror=name, profile=rater.profile, rubric=rubric, card=made, **values)
        )
    return found
