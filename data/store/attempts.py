"""Jurors and every call made to them, about responses and about references: never changed."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Engine
from sqlmodel import Session, select

from data.card import Reply
from data.database import reading, transaction
from data.errors import Conflict
from data.importers.rows import JurorRecord
from data.rubric import Rubric
from data.schema import Attempt, Kind, Rater, Rating, ReferenceCheck, Status, now
from data.store.audit import insertion, log, refuse_locked, write_rows
from data.store.rubrics import keep_rubric
from data.store.seals import last_key, seal_since, sealed

Made = (
    Attempt | Mapping[str, Any]
)  # a call or its columns; to make the object takes ten times as long
Entry = tuple[Made, Rubric, Reply | None]


def add_jurors(engine: Engine, jurors: Sequence[JurorRecord]) -> dict[str, int]:
    """Store jurors that are new; return each one's primary key.

    Raises
    ------
    Conflict
        If a juror of that name with another profile has rated here: its ratings would mix.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        return {one.handle: keep_juror(session, one) for one in jurors}


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


def record_attempts(engine: Engine, attempts: Iterable[Entry]) -> None:
    """Store calls, each with its rubric and, where it gave a whole valid reply, its ratings.

    One transaction: all of them with their ratings, or nothing.
    """
    entries = list(attempts)
    if not entries:
        return
    with transaction(engine) as session:
        refuse_locked(session)
        keep_attempts(session, entries)


def keep_attempts(session: Session, entries: Sequence[Entry]) -> None:
    """Store calls with their rubrics inside the caller's transaction."""
    for rubric in {rubric.sha256: rubric for _, rubric, _ in entries}.values():
        keep_rubric(session, rubric)
    write_attempts(session, entries)


def write_references(session: Session, checks: Sequence[ReferenceCheck]) -> None:
    """Store calls about references; a verdict stands only with the status OK."""
    rows = [_row(one) for one in checks]
    for row in rows:
        if row["status"] != Status.OK:
            row |= {"absent": None, "facts": []}
    if not rows:
        return
    last = last_key(session, ReferenceCheck)
    session.execute(insertion(ReferenceCheck), rows)
    seals = [seal_since(session, "reference_check", ReferenceCheck, last, rows)]
    log(session, "jury", "references checked", {"calls": len(rows)}, seals)


def write_attempts(session: Session, entries: Sequence[Entry]) -> None:
    """Store calls inside the caller's transaction, and the ratings they gave with their event."""
    if not entries:
        return
    rows = [_row(one) | {"rubric_sha256": rubric.sha256} for one, rubric, _ in entries]
    last = last_key(session, Attempt)
    session.execute(insertion(Attempt), rows)
    seals = [seal_since(session, "attempt", Attempt, last, rows)]
    told = zip(rows, entries, strict=True)
    scores = [row for one, (_, rubric, reply) in told for row in _ratings(one, rubric, reply)]
    [detail] = write_rows(session, Rating, scores) or [{}]
    log(session, "jury", "jurors rated" if scores else "jurors asked", detail, seals)


def _row(call: Made | ReferenceCheck) -> dict[str, Any]:
    """Return the columns of a call as it is stored now; those not given are as the table has them."""
    if isinstance(call, Mapping):
        return {**_unsaid(), **call, "at": now()}
    columns = type(call).model_fields.keys() - {"id"}
    return {name: getattr(call, name) for name in columns} | {"at": now()}


@cache
def _unsaid() -> Mapping[str, Any]:
    """Return what an `Attempt` has in each column that nothing is said of."""
    fields = Attempt.model_fields.items()
    optional = {name: field for name, field in fields if name != "id" and not field.is_required()}
    return {name: field.get_default(call_default_factory=True) for name, field in optional.items()}


def _ratings(
    attempt: Mapping[str, Any], rubric: Rubric, reply: Reply | None
) -> list[dict[str, Any]]:
    """Return the columns of the ratings that a call gave: none unless it is OK."""
    if reply is None or attempt["status"] != Status.OK:
        return []
    scores = {
        name: rubric.score(name, reply.scores[name], "juror", "response")
        for name in rubric.criteria
    }
    place = {name: attempt[name] for name in ("response", "rater", "replicate")}
    return rating_rows(place | {"pass_": 0}, rubric, scores, reply)


def rating_rows(
    place: Mapping[str, Any], rubric: Rubric, scores: Mapping[str, float], reply: Reply
) -> list[dict[str, Any]]:
    """Return the columns of a reply's ratings; `place` has response, rater, pass_ and replicate."""
    return [
        {
            **place,
            "criterion": name,
            "score": score,
            "rubric_sha256": rubric.sha256,
            "comment": reply.comments.get(name, ""),
            "at": now(),
        }
        for name, score in scores.items()
    ]


def keep_juror(session: Session, juror: JurorRecord) -> int:
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
    log(session, "researcher", "juror added", {"juror": juror.handle}, sealed(new))
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
