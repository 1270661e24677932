"""Jurors, calls that are about to be sent to them, and calls with their answers.

A call is stored before it is sent, with what it can cost at most. Its answer is never changed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.card import Reply
from data.database import reading, transaction
from data.errors import Conflict
from data.importers.rows import JurorRecord
from data.points import case_score
from data.record import add_rows, log, refuse_locked
from data.rubric import Rubric
from data.schema import (
    Attempt,
    Intent,
    Kind,
    Proposal,
    Rater,
    Rating,
    ReferenceCheck,
    Status,
    now,
)
from data.store.rubrics import keep_rubric

CallRow = (
    Attempt | Mapping[str, Any]
)  # a call or its columns; to make the object takes ten times as long
Entry = tuple[CallRow, Rubric, Reply | None]


def add_jurors(engine: Engine, jurors: Sequence[JurorRecord]) -> dict[str, int]:
    """Store jurors that are new; return each one's primary key.

    Raises
    ------
    Conflict
        If a juror of that name with another profile has rated here: its ratings would mix.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        return {juror.handle: keep_juror(session, juror) for juror in jurors}


def known_jurors(engine: Engine, jurors: Sequence[JurorRecord]) -> dict[str, int]:
    """Return the primary keys of those jurors that the study has; stores nothing.

    Raises
    ------
    Conflict
        As `add_jurors`.
    """
    with reading(engine) as session:
        keys = {juror.handle: _stored_juror(session, juror) for juror in jurors}
    return {handle: key for handle, key in keys.items() if key is not None}


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
    rows = [_row(check) for check in checks]
    for row in rows:
        if row["status"] != Status.OK:
            row |= {"absent": None, "facts": []}
    if not rows:
        return
    add_rows(session, ReferenceCheck, rows)
    log(session, "jury", "references checked", {"calls": len(rows)})


def write_proposals(session: Session, proposals: Sequence[Proposal]) -> None:
    """Store calls that asked for a better rubric."""
    if not proposals:
        return
    add_rows(session, Proposal, [_row(proposal) for proposal in proposals])
    log(session, "jury", "rubrics proposed", {"calls": len(proposals)})


def write_attempts(session: Session, entries: Sequence[Entry]) -> None:
    """Store calls inside the caller's transaction, and the ratings they gave with their event."""
    if not entries:
        return
    rows = [_row(call) | {"rubric_sha256": rubric.sha256} for call, rubric, _ in entries]
    add_rows(session, Attempt, rows)
    calls = zip(rows, entries, strict=True)
    scores = [row for call, (_, rubric, reply) in calls for row in _ratings(call, rubric, reply)]
    add_rows(session, Rating, scores)
    log(session, "jury", "jurors rated" if scores else "jurors asked", {"calls": len(rows)})


def _row(call: CallRow | ReferenceCheck | Proposal) -> dict[str, Any]:
    """Return the columns of a call as it is stored now; those not given are as the table has them."""
    if isinstance(call, Mapping):
        return {**call, "at": now()}
    columns = type(call).model_fields.keys() - {"id"}
    return {name: getattr(call, name) for name in columns} | {"at": now()}


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
    verdict = {name: attempt[name] for name in ("response", "rater", "replicate")}
    return rating_rows(verdict | {"pass_": 0}, rubric, scores, reply)


def rating_rows(
    verdict: Mapping[str, Any], rubric: Rubric, scores: Mapping[str, float], reply: Reply
) -> list[dict[str, Any]]:
    """Return the columns of a reply's ratings; `verdict` has response, rater, pass_ and replicate.

    Answers on points of a case are followed by the score that they come to, on the benchmark's
    rubric, where they come to one.
    """
    rows = [
        {
            **verdict,
            "criterion": name,
            "score": score,
            "rubric_sha256": rubric.sha256,
            "comment": reply.comments.get(name, ""),
            "at": now(),
        }
        for name, score in scores.items()
    ]
    whole = case_score(rubric, scores)
    if rubric.case is not None and whole is not None:
        of_case = {"criterion": rubric.case.criterion, "score": whole, "comment": ""}
        rows.append({**verdict, **of_case, "rubric_sha256": rubric.case.rubric, "at": now()})
    return rows


def keep_juror(session: Session, juror: JurorRecord) -> int:
    """Store a juror if it is new and return its primary key."""
    key = _stored_juror(session, juror)
    if key is not None:
        return key
    rater = Rater(
        kind=Kind.JUROR,
        handle=juror.handle,
        family=juror.family,
        simulated=juror.simulated,
        profile=dict(juror.profile),
    )
    session.add(rater)
    session.flush()
    log(session, "researcher", "juror added", {"juror": juror.handle})
    return rater.id or 0


def _stored_juror(session: Session, juror: JurorRecord) -> int | None:
    """Return a juror's primary key, None if it is new; refuse another one of the same name."""
    rater = session.exec(select(Rater).where(Rater.handle == juror.handle)).first()
    if rater is None:
        return None
    if rater.kind != Kind.JUROR or rater.profile != dict(juror.profile):
        raise Conflict(
            f"juror {juror.handle!r}: a {rater.kind} of this name with another profile is in the "
            "study, and their ratings must not mix; give the juror another name in the panel"
        )
    return rater.id


class Intended(NamedTuple):
    """A call that is about to be made, as an `Intent` keeps it."""

    key: str
    rater: int
    response: int | None = None
    instance: int | None = None
    replicate: int = 0
    usd_most: float | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One step of one call: it is about to be made, or has ended.

    Attributes
    ----------
    intent
        The call that is about to be made.
    attempt, check, proposal
        What came of a call about a response, a reference, or a better rubric.
    rubrics
        Those that a proposal names.
    settles
        Key of the intent that this ends, empty if none.
    unknown
        Whether the vendor may have billed the call and nobody knows how much: then the intent
        stays, as counted against the cap of its own run.
    """

    intent: Intended | None = None
    attempt: Entry | None = None
    check: ReferenceCheck | None = None
    proposal: Proposal | None = None
    rubrics: tuple[Rubric, ...] = ()
    settles: str = ""
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class CarriedOver:
    """Calls in flight when earlier runs were killed, which no cap has counted yet.

    `usd` is what those of known price can cost at most.
    """

    calls: int = 0
    usd: float = 0.0


def record_steps(engine: Engine, steps: Sequence[Step]) -> None:
    """Store what calls have come to, in one transaction: all of it or nothing.

    Raises
    ------
    NotAllowed
        If the study is locked.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        keep_intents(session, [step.intent for step in steps if step.intent is not None])
        keep_attempts(session, [step.attempt for step in steps if step.attempt is not None])
        write_references(session, [step.check for step in steps if step.check is not None])
        for rubric in {one.sha256: one for step in steps for one in step.rubrics}.values():
            keep_rubric(session, rubric)
        write_proposals(session, [step.proposal for step in steps if step.proposal is not None])
        settled = {step.settles: step.unknown for step in steps if step.settles}
        for intent in session.exec(select(Intent).where(col(Intent.key).in_(settled))).all():
            if settled[intent.key]:
                intent.counted = now()
            else:
                session.delete(intent)
        if settled or any(step.intent for step in steps):
            log(session, "jury", "calls in flight", {})


def carry_over(engine: Engine) -> CarriedOver:
    """Return what killed runs have left to be counted against a cap, and note that it is counted.

    Call it only where no other run can be on: what is in flight then is a killed run's.
    """
    with transaction(engine) as session:
        intents = session.exec(select(Intent).where(col(Intent.counted).is_(None))).all()
        carried = CarriedOver(len(intents), sum(intent.usd_most or 0.0 for intent in intents))
        for intent in intents:
            intent.counted = now()
        if intents:
            log(session, "jury", "calls carried over", {"calls": len(intents)})
    return carried


def keep_intents(
    session: Session, intents: Sequence[Intended], counted: datetime | None = None
) -> None:
    """Store calls whose cost is not known, as those about to be made."""
    add_rows(session, Intent, [{**intent._asdict(), "counted": counted} for intent in intents])
