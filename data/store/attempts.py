"""Jurors and every call made to them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Engine, insert
from sqlmodel import Session, select

from data.card import Reply
from data.database import reading, transaction
from data.errors import Conflict
from data.rubric import Rubric
from data.schema import Attempt, Kind, Rater, Rating, Status, now
from data.store.audit import Batch, log, refuse_locked
from data.store.rubrics import keep_rubric


@dataclass(frozen=True, slots=True)
class JurorRecord:
    """A juror as the study keeps it; `profile` holds all that decides what it answers."""

    handle: str
    family: str
    profile: Mapping[str, Any]
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One call, as `Attempt` stores it: `rater` and `response` are primary keys.

    Unknown token counts and prices are None, never 0.
    """

    rater: int
    response: int
    status: Status
    request_sha256: str
    replicate: int = 0
    number: int = 1
    sent: Mapping[str, Any] = field(default_factory=dict)
    raw: str = ""
    reason: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_cached: int | None = None
    tokens_reasoning: int | None = None
    usd: float | None = None
    price_source: str = ""
    latency_seconds: float = 0.0
    request_id: str = ""
    returned_model: str = ""


def add_jurors(engine: Engine, jurors: Sequence[JurorRecord]) -> dict[str, int]:
    """Store jurors that are new; return each one's primary key.

    Raises
    ------
    Conflict
        If a juror of that name with another profile has rated here: its ratings would mix.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        return {one.handle: _keep(session, one) for one in jurors}


def known_jurors(engine: Engine, jurors: Sequence[JurorRecord]) -> dict[str, int]:
    """Return the primary keys of those jurors that the study has; stores nothing.

    Raises
    ------
    Conflict
        As `add_jurors`.
    """
    with reading(engine) as session:
        found = {one.handle: _known(session, one) for one in jurors}
    return {handle: key for handle, key in found.items() if key is not None}


def record_attempt(
    engine: Engine, record: AttemptRecord, rubric: Rubric, reply: Reply | None = None
) -> None:
    """Store one call and, where it gave a whole valid reply, its ratings: both or neither."""
    record_attempts(engine, [(record, rubric, reply)])


def record_attempts(
    engine: Engine, attempts: Iterable[tuple[AttemptRecord, Rubric, Reply | None]]
) -> None:
    """Store several calls, each with its rubric and its reply if any, in one transaction."""
    entries = list(attempts)
    if not entries:
        return
    calls = [attempt_row(record, rubric) for record, rubric, _ in entries]
    written = Batch("rating")
    scores = [row | {"batch": written.token} for entry in entries for row in rating_rows(*entry)]
    with transaction(engine) as session:
        refuse_locked(session)
        for rubric in {rubric.sha256: rubric for _, rubric, _ in entries}.values():
            keep_rubric(session, rubric)
        session.execute(insert(Attempt), calls)
        if scores:
            session.execute(insert(Rating), scores)
            written.add(scores)
            log(session, "jury", "jurors rated", written.detail())


def attempt_row(record: AttemptRecord, rubric: Rubric) -> dict[str, Any]:
    """Return the columns of an attempt."""
    fields = {name: getattr(record, name) for name in AttemptRecord.__slots__}
    return fields | {"sent": dict(record.sent), "rubric_sha256": rubric.sha256, "at": now()}


def rating_rows(record: AttemptRecord, rubric: Rubric, reply: Reply | None) -> list[dict[str, Any]]:
    """Return the columns of the ratings that a call gave: none unless it is OK."""
    if reply is None or record.status != Status.OK:
        return []
    return [
        {
            "response": record.response,
            "rater": record.rater,
            "criterion": name,
            "score": rubric.score(name, reply.scores[name], "juror", "response"),
            "rubric_sha256": rubric.sha256,
            "pass_": 0,
            "replicate": record.replicate,
            "comment": reply.comment_on(name),
            "at": now(),
        }
        for name in rubric.criteria
    ]


def _keep(session: Session, juror: JurorRecord) -> int:
    """Store a juror if it is new and return its primary key."""
    known = _known(session, juror)
    if known is not None:
        return known
    new = Rater(
        kind=Kind.JUROR,
        handle=juror.handle,
        family=juror.family,
        simulated=juror.simulated,
        profile=dict(juror.profile),
    )
    session.add(new)
    session.flush()
    log(session, "researcher", "juror added", {"juror": juror.handle})
    return new.id or 0


def _known(session: Session, juror: JurorRecord) -> int | None:
    """Return a juror's primary key, None if it is new; refuse another one of the same name."""
    known = session.exec(select(Rater).where(Rater.handle == juror.handle)).first()
    if known is None:
        return None
    if known.kind != Kind.JUROR or known.profile != dict(juror.profile):
        raise Conflict(
            f"juror {juror.handle!r}: a {known.kind} of this name with another profile is in the "
            "study, and their ratings must not mix; give the juror another name in the panel"
        )
    return known.id
