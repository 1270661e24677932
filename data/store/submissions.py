"""What a clinician enters: the draft so far, and the submitted rating with all that was said."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Engine, Float, bindparam, case, insert, update
from sqlmodel import Session, col, select

from data.card import NOT_ENOUGH_CONTEXT, Reply
from data.database import transaction
from data.errors import BadInput, NotAllowed
from data.rubric import Rubric
from data.schema import (
    Assignment,
    Benchmark,
    Instance,
    Rating,
    Remark,
    Response,
    RubricText,
    Span,
    State,
    now,
)
from data.store.assignments import own
from data.store.audit import Batch, log, refuse_locked
from data.store.said import previous, said, says

ENDED = (State.DONE, State.UNRATED)
_RUBRIC = (
    select(RubricText.body)
    .join(Benchmark, col(Benchmark.rubric_sha256) == col(RubricText.sha256))
    .join(Instance, col(Instance.benchmark) == col(Benchmark.name))
    .join(Response, col(Response.instance) == col(Instance.id))
    .where(Response.id == bindparam("response"))
)
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
        rubric = _rubric(session, one.response)
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
        details = [_rate(session, one, rubric, scores, reply), *_remark(session, one, reply)]
        one.state = State.DONE if scores else State.UNRATED
        one.revision += 1
        _keep_state(one, seq, draft, seconds)
        session.add(one)
        detail = {"assignment": one.id, "revision": one.revision, "scores": scores}
        log(session, f"rater {rater}", "rated", detail | {"written": [d for d in details if d]})
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
) -> dict[str, Any] | None:
    """Add the ratings; return what the event says of them."""
    written = Batch("rating")
    rows = [
        {
            "response": one.response,
            "rater": one.rater,
            "criterion": name,
            "score": score,
            "rubric_sha256": rubric.sha256,
            "pass_": one.pass_,
            "replicate": 0,
            "comment": reply.comment_on(name),
            "at": now(),
            "batch": written.token,
        }
        for name, score in scores.items()
    ]
    if not rows:
        return None
    session.execute(insert(Rating), rows)
    written.add(rows)
    return written.detail()


def _remark(session: Session, one: Assignment, reply: Reply) -> list[dict[str, Any]]:
    """Add flags and spans; return what the event says of them."""
    text = _shown_text(session, one.response)
    flags = [
        {
            "assignment": one.id,
            "kind": kind,
            "text": reply.comment,
            "revision": one.revision,
            "at": now(),
        }
        for kind in reply.flags
    ]
    spans = [
        {
            "assignment": one.id,
            "criterion": span.criterion,
            "start": span.start,
            "end": span.end,
            "text": _stretch(text, span.start, span.end),
            "error": span.error,
            "note": span.note,
            "revision": one.revision,
            "at": now(),
        }
        for span in reply.spans
    ]
    details = []
    for table, model, rows in (("remark", Remark, flags), ("span", Span, spans)):
        if rows:
            written = Batch(table)
            session.execute(insert(model), [row | {"batch": written.token} for row in rows])
            written.add(rows)
            details.append(written.detail())
    return details


def _stretch(text: str, start: int, end: int) -> str:
    """Return a stretch of a text, or refuse one that is not in it."""
    if not 0 <= start < end <= len(text):
        raise BadInput("a marked stretch is not part of the response; mark it again")
    return text[start:end]


def _shown_text(session: Session, response: int) -> str:
    """Return a response's text as raters see it."""
    one = session.get_one(Response, response)
    return one.text if one.shown is None else one.shown


def _rubric(session: Session, response: int) -> Rubric:
    """Return the rubric a response is rated on."""
    body = session.exec(_RUBRIC, params={"response": response}).one()
    return Rubric.from_json(body)


def _complete(rubric: Rubric, reply: Reply) -> dict[str, float]:
    """Return a score for every criterion, none where it cannot be rated, or say what is wrong."""
    for span in reply.spans:
        if span.criterion not in rubric.criteria:
            raise BadInput("a marked stretch belongs to no criterion; mark it again")
    if NOT_ENOUGH_CONTEXT in reply.flags and not reply.scores:
        return {}
    missing = [name for name in rubric.criteria if name not in reply.scores]
    if missing:
        raise BadInput("not rated yet: " + ", ".join(missing))
    return {
        name: rubric.score(name, value, "you", "this response")
        for name, value in reply.scores.items()
    }
