"""Who rates what, and what clinicians enter: drafts, recusals, and ratings with all that was said."""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Engine, Float, bindparam, case, exists, func, update
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, desc, select

from data.card import NOT_ENOUGH_CONTEXT, Reply
from data.database import transaction
from data.errors import BadInput, Conflict, NotAllowed
from data.rubric import Rubric
from data.schema import Assignment, Rater, Rating, Remark, Response, Setting, Span, State, now
from data.store.attempts import rating_rows
from data.store.audit import log, refuse_locked, write_rows
from data.store.rubrics import rubric_of, whole_scores

Key = tuple[str, int, int]
PER_RESPONSE = "per_response"
_OF_CODE = select(Assignment).where(Assignment.code == bindparam("code")).with_for_update()
_EARLIER = aliased(Rating)
# A rating that no earlier one of its showing precedes, by the order of storing: a clock may be set
# back. One table is walked from its end, not each showing looked up: clinicians rate thousands.
_LAST_SHOWING = (
    select(Rating.response, Rating.rater, Rating.pass_)
    .where(
        col(Rating.rater) == bindparam("rater"),
        exists().where(
            col(Assignment.rater) == Rating.rater,
            col(Assignment.response) == Rating.response,
            col(Assignment.pass_) == Rating.pass_,
            col(Assignment.state) == State.DONE,
        ),
        ~exists().where(
            col(_EARLIER.rater) == Rating.rater,
            col(_EARLIER.response) == Rating.response,
            col(_EARLIER.pass_) == Rating.pass_,
            col(_EARLIER.id) + 0 < col(Rating.id),  # by the showing, not through all of the rater's
        ),
    )
    .order_by(desc(Rating.id))
    .limit(1)
)
ENDED = (State.DONE, State.UNRATED)
_SECONDS = bindparam("seconds", type_=Float)
_KEEP = (
    update(Assignment)
    .where(
        col(Assignment.code) == bindparam("code_is"),
        col(Assignment.rater) == bindparam("rater_is"),
        col(Assignment.state) != State.RECUSED,
        col(Assignment.draft_seq) < bindparam("draft_seq"),
    )
    .values(
        draft=bindparam("draft"),
        draft_seq=bindparam("draft_seq"),
        seconds_active=case(
            (col(Assignment.seconds_active) < _SECONDS, _SECONDS),
            else_=col(Assignment.seconds_active),
        ),
    )
    .execution_options(synchronize_session=False)
)


@dataclass(frozen=True, slots=True)
class Slot:
    """One showing of a response (primary key) to a clinician, at a place in their order."""

    rater: str
    response: int
    position: int
    pass_: int = 0


def assign(
    engine: Engine,
    slots: Iterable[Slot],
    seed: int,
    dropped: Iterable[Key] = (),
    per_response: int | None = None,
) -> int:
    """Store a design and return how many of its slots are new; those there already stay.

    Parameters
    ----------
    dropped
        Slots to take back, as (rater, response, pass); nobody may have begun them.
    per_response
        How many clinicians the design gives each response; places that become free are
        given away up to this number.

    Raises
    ------
    Conflict
        If a clinician has begun a slot that was to be taken back. Nothing is changed.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        raters = {one.handle: one.id or 0 for one in session.exec(select(Rater))}
        existing = {
            (one.rater, one.response, one.pass_): one for one in session.exec(select(Assignment))
        }
        for rater, response, pass_ in dropped:
            _take_back(session, existing.pop((raters[rater], response, pass_)))
        new = [
            _assignment(slot, raters[slot.rater])
            for slot in slots
            if (raters[slot.rater], slot.response, slot.pass_) not in existing
        ]
        session.add_all(new)
        if per_response is not None:
            session.merge(Setting(key=PER_RESPONSE, value=str(per_response)))
        session.flush()
        if new:
            log(session, "coordinator", "responses assigned", {"slots": len(new), "seed": seed})
        return len(new)


def claim(engine: Engine, rater: int) -> bool:
    """Give a clinician one place that has become free, at the end of their order, if there is one.

    A place is free where a response of the design has fewer readers than the design wants,
    those who recused themselves not counted. However many ask at once, no response ever
    gets more readers than wanted.
    """
    with transaction(engine) as session:
        wanted = session.exec(
            select(Setting).where(Setting.key == PER_RESPONSE).with_for_update()
        ).first()
        response = _free(session, rater, int(wanted.value)) if wanted else None
        if response is None:
            return False
        refuse_locked(session)
        last = select(func.max(col(Assignment.position))).where(Assignment.rater == rater)
        position = session.exec(last).one()
        new = Assignment(
            code=secrets.token_urlsafe(9),
            rater=rater,
            response=response,
            position=0 if position is None else position + 1,
        )
        session.add(new)
        session.flush()
        log(session, f"rater {rater}", "free place taken", {"assignment": new.id})
    return True


def recuse(engine: Engine, rater: int, code: str, reason: str) -> bool:
    """Give an open assignment back with a reason; the place is free for another clinician.

    Raises
    ------
    NotAllowed
        If the assignment is not this rater's, or is rated already.
    BadInput
        If no reason is given.
    """
    if not reason.strip():
        raise BadInput("say why you recuse yourself")
    with transaction(engine) as session:
        refuse_locked(session)
        one = own(session, rater, code)
        if one.state == State.RECUSED:
            return False
        if one.state != State.OPEN:
            raise NotAllowed("this response is rated already; change the rating instead")
        one.state, one.done_at = State.RECUSED, now()
        session.add(one)
        said = {"assignment": one.id, "kind": "recused", "text": reason.strip(), "at": now()}
        written = write_rows(session, Remark, [said | {"revision": one.revision}])
        detail = {"assignment": one.id, "written": written}
        log(session, f"rater {rater}", "recused", detail)
    return True


def opened(engine: Engine, rater: int, code: str, reference: bool = False) -> None:
    """Record when a clinician first saw a response, or its reference; later times are ignored."""
    with transaction(engine) as session:
        one = own(session, rater, code)
        if reference and one.reference_opened_at is None:
            one.reference_opened_at = now()
            log(session, f"rater {rater}", "reference opened", {"assignment": one.id})
        one.opened_at = one.opened_at or now()
        session.add(one)


def own(session: Session, rater: int, code: str) -> Assignment:
    """Return the rater's own assignment of that code, locked until the transaction ends."""
    one = session.exec(_OF_CODE, params={"code": code}).first()
    if one is None or one.rater != rater:
        raise NotAllowed("this response is not assigned to you")
    return one


def _free(session: Session, rater: int, wanted: int) -> int | None:
    """Return the response with most places free that this clinician has never been given."""
    readers = func.count(col(Assignment.id)).filter(col(Assignment.state) != State.RECUSED)
    mine = select(Assignment.response).where(Assignment.rater == rater)
    query = (
        select(Assignment.response)
        .where(Assignment.pass_ == 0)
        .group_by(col(Assignment.response))
        .having(readers < wanted, col(Assignment.response).not_in(mine))
        .order_by(readers, col(Assignment.response))
        .limit(1)
    )
    return session.exec(query).first()


def _take_back(session: Session, one: Assignment) -> None:
    """Delete an assignment that nobody has begun."""
    if one.state != State.OPEN or one.draft_seq or one.opened_at:
        raise Conflict("a clinician began this work meanwhile; run `medjury assign` again")
    session.delete(one)
    session.flush()
    detail = {"rater": one.rater, "response": one.response, "pass": one.pass_}
    log(session, "coordinator", "assignment taken back", detail)


def _assignment(slot: Slot, rater: int) -> Assignment:
    return Assignment(
        code=secrets.token_urlsafe(9),
        rater=rater,
        response=slot.response,
        position=slot.position,
        pass_=slot.pass_,
    )


def previous(session: Session, one: Assignment) -> float | None:
    """Return the mean score of what this clinician rated just before, None if nothing."""
    before = session.execute(_LAST_SHOWING, {"rater": one.rater}).first()
    if before is None:
        return None
    scores = [score for score, _ in _latest(session, *before).values()]
    return sum(scores) / len(scores) if scores else None


def _latest(
    session: Session, response: int, rater: int, pass_: int
) -> dict[str, tuple[float, str]]:
    """Return what the rater's latest ratings for a showing say."""
    rows = session.exec(
        select(Rating)
        .where(Rating.response == response, Rating.rater == rater, Rating.pass_ == pass_)
        .order_by(desc(Rating.id))
    )
    newest: dict[str, tuple[float, str]] = {}
    for row in rows:
        newest.setdefault(row.criterion, (row.score, row.comment))
    return newest


def said(session: Session, one: Assignment) -> tuple[object, object, object]:
    """Return all that the newest submission of an assignment said."""
    newest = one.revision - 1
    flags = session.exec(
        select(Remark.kind).where(Remark.assignment == one.id, Remark.revision == newest)
    )
    spans = session.exec(select(Span).where(Span.assignment == one.id, Span.revision == newest))
    marked = {(s.criterion, s.start, s.end, s.error, s.note) for s in spans}
    scores = _latest(session, one.response, one.rater, one.pass_) if one.state == State.DONE else {}
    return scores, set(flags), marked


def says(reply: Reply, scores: Mapping[str, float]) -> tuple[object, object, object]:
    """Return what a reply says, in the form of `said`."""
    marked = {(s.criterion, s.start, s.end, s.error, s.note) for s in reply.spans}
    rated = {name: (score, reply.comment_on(name)) for name, score in scores.items()}
    return rated, set(reply.flags), marked


def save_draft(
    engine: Engine, rater: int, code: str, seq: int, draft: Mapping[str, Any], seconds: float
) -> bool:
    """Keep a draft; one that is older than what is stored is ignored and gives False.

    The draft of a response that is rated already changes nothing about the rating.
    """
    kept = {"rater_is": rater, "code_is": code, "draft": dict(draft), "draft_seq": seq}
    with transaction(engine) as session:
        refuse_locked(session)
        if session.execute(_KEEP, kept | {"seconds": seconds}).rowcount:  # type: ignore[attr-defined] # of an update
            return True
        own(session, rater, code)
    return False


def submit(
    engine: Engine,
    rater: int,
    code: str,
    reply: Reply,
    seconds: float,
    *,
    seq: int | None = None,
    draft: Mapping[str, Any] | None = None,
) -> bool:
    """Turn a reply into ratings, remarks and spans.

    The same reply again, or one whose `seq` is not newer than the last submission's, changes
    nothing and gives False. A later one that differs is a revision: it is added, and counts.

    Parameters
    ----------
    seq, draft
        The page's number of this state and the state itself, kept for whoever returns to it.

    Raises
    ------
    NotAllowed
        If the assignment is not this rater's, was given back, or the study is locked.
    BadInput
        If a criterion is missing, unknown, or off the scale, or a span is not of the text.
    """
    with transaction(engine) as session:
        one = own(session, rater, code)
        rubric = rubric_of(session, one.response)
        scores = _complete(rubric, reply)
        if _replayed(one, seq):
            return False
        same = one.state in ENDED and said(session, one) == says(reply, scores)
        if same and (seq is None or seq <= one.draft_seq):
            return False
        refuse_locked(session)
        if same:
            _keep_state(one, seq, draft, seconds)
            return False
        if one.state == State.RECUSED:
            raise NotAllowed("you gave this response back; another clinician rates it")
        if one.revision == 0:
            one.done_at, one.previous = now(), previous(session, one)
        written = [*_rate(session, one, rubric, scores, reply), *_remark(session, one, reply)]
        one.state = State.DONE if scores else State.UNRATED
        one.revision += 1
        _keep_state(one, seq, draft, seconds)
        session.add(one)
        detail = {"assignment": one.id, "revision": one.revision, "scores": scores}
        log(session, f"rater {rater}", "rated", detail | {"written": written})
    return True


def _replayed(one: Assignment, seq: int | None) -> bool:
    """Tell whether a submission is not newer than the state that is stored."""
    return seq is not None and bool(one.revision) and seq <= one.submitted_seq


def _keep_state(
    one: Assignment, seq: int | None, draft: Mapping[str, Any] | None, seconds: float
) -> None:
    """Keep the state of the page that was submitted, and its number."""
    one.submitted_seq = max(one.draft_seq, seq or 0)
    one.draft_seq = one.submitted_seq
    one.draft = dict(draft) if draft is not None else one.draft
    one.seconds_active = max(one.seconds_active, seconds)


def _rate(
    session: Session, one: Assignment, rubric: Rubric, scores: dict[str, float], reply: Reply
) -> list[dict[str, Any]]:
    """Add the ratings; return what the event says of them."""
    place = {"response": one.response, "rater": one.rater, "pass_": one.pass_, "replicate": 0}
    return write_rows(session, Rating, rating_rows(place, rubric, scores, reply))


def _remark(session: Session, one: Assignment, reply: Reply) -> list[dict[str, Any]]:
    """Add flags and spans; return what the event says of them."""
    text = _shown_text(session, one.response)
    same = {"assignment": one.id, "revision": one.revision, "at": now()}
    flags = [same | {"kind": kind, "text": reply.comment} for kind in reply.flags]
    spans = [
        same | asdict(span) | {"text": _stretch(text, span.start, span.end)} for span in reply.spans
    ]
    return [*write_rows(session, Remark, flags), *write_rows(session, Span, spans)]


def _stretch(text: str, start: int, end: int) -> str:
    """Return a stretch of a text, or refuse one that is not in it."""
    if not 0 <= start < end <= len(text):
        raise BadInput("a marked stretch is not part of the response; mark it again")
    return text[start:end]


def _shown_text(session: Session, response: int) -> str:
    """Return a response's text as raters see it."""
    one = session.get_one(Response, response)
    return one.text if one.shown is None else one.shown


def _complete(rubric: Rubric, reply: Reply) -> dict[str, float]:
    """Return a score for every criterion, none where it cannot be rated, or say what is wrong."""
    for span in reply.spans:
        if span.criterion not in rubric.criteria:
            raise BadInput("a marked stretch belongs to no criterion; mark it again")
    if NOT_ENOUGH_CONTEXT in reply.flags and not reply.scores:
        return {}
    return whole_scores(rubric, reply, "not rated yet: ")
