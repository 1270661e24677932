"""What clinicians enter: drafts, and ratings with all that was said."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Engine, Float, and_, bindparam, case, exists, update
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, desc, select

from data.card import ERRORS, NOT_ENOUGH_CONTEXT, SEVERITIES, SIDES, Marked, Reply
from data.database import transaction
from data.errors import BadInput, NotAllowed, Stale, Unexplained
from data.rubric import Rubric, low_points
from data.schema import (
    Assignment,
    Instance,
    Rating,
    Remark,
    Response,
    Setting,
    Span,
    State,
    Submission,
    now,
)
from data.settings import ERROR_TYPES, read_error_types
from data.store.assignments import own
from data.store.attempts import rating_rows
from data.store.audit import log, refuse_locked, write_rows
from data.store.rubrics import rubric_of, whole_scores

STUDY_TEXT = "study_text"
CHANGED = "this response was changed in another window"
GIVEN_BACK = "you gave this response back; another clinician rates it"
MARKED = ("criterion", "start", "end", "error", "note", "side", "severity", "linked")
_DECIDED = select(Setting.key, Setting.value).where(col(Setting.key).in_((STUDY_TEXT, ERROR_TYPES)))
_EARLIER = aliased(Rating)
# A rating that no earlier one of its showing precedes, by the order of storing: a clock may be set
# back. One table is walked from its end, not each showing looked up: clinicians rate thousands.
_LAST_SHOWING = (
    select(Rating.response, Rating.pass_)
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
    .subquery()
)
_LAST_SCORES = (
    select(Rating.criterion, Rating.score)
    .join(
        _LAST_SHOWING,
        and_(
            col(Rating.response) == _LAST_SHOWING.c.response,
            col(Rating.pass_) == _LAST_SHOWING.c.pass_,
        ),
    )
    .where(col(Rating.rater) == bindparam("rater"))
    .order_by(col(Rating.id))
)
ENDED = (State.DONE, State.UNRATED)
_SECONDS = bindparam("seconds", type_=Float)
_KEEP = (
    update(Assignment)
    .where(
        col(Assignment.code) == bindparam("code_is"),
        col(Assignment.rater) == bindparam("rater_is"),
        col(Assignment.state) != State.RECUSED,
        col(Assignment.draft_seq) == bindparam("base"),
    )
    .values(
        draft=bindparam("draft"),
        draft_seq=bindparam("base") + 1,
        seconds_active=case(
            (col(Assignment.seconds_active) < _SECONDS, _SECONDS),
            else_=col(Assignment.seconds_active),
        ),
    )
    .execution_options(synchronize_session=False)
)


@dataclass(frozen=True, slots=True)
class FormState:
    """A state of the form, as a page sends it.

    Attributes
    ----------
    draft
        All that is entered; `by` is the page it was entered in and `seq` that page's own count.
    base
        Number of the stored state that the page last knew, which it means to replace; None
        replaces whatever is stored.
    appearance
        Whether the page is light or dark.
    """

    draft: Mapping[str, Any]
    seconds: float
    base: int | None = None
    appearance: str = "light"

    def follows(self, one: Assignment) -> bool:
        """Tell whether nobody else has changed what is stored since this page knew it."""
        return self.base in (None, one.draft_seq) or self._is_of_same_page(one)

    def known(self, one: Assignment) -> bool:
        """Tell whether this state, or a newer one of this page, is stored already."""
        return self._is_of_same_page(one) and self.draft["seq"] <= one.draft.get("seq", 0)

    def submitted(self, one: Assignment) -> bool:
        """Tell whether this very submission, or a newer state after one, is stored already."""
        is_last = self.draft["seq"] == one.draft.get("seq", 0)
        return (
            bool(one.revision)
            and self.known(one)
            and (one.submitted_seq == one.draft_seq or not is_last)
        )

    def _is_of_same_page(self, one: Assignment) -> bool:
        return bool(self.draft["by"]) and one.draft.get("by") == self.draft["by"]


def previous(session: Session, one: Assignment) -> float | None:
    """Return the mean score of what this clinician rated just before, None if nothing."""
    scores = dict(session.execute(_LAST_SCORES, {"rater": one.rater}).tuples().all())
    return sum(scores.values()) / len(scores) if scores else None


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


Said = tuple[object, object, object, str]


def said(session: Session, one: Assignment) -> Said:
    """Return all that the newest submission of an assignment said."""
    newest = one.revision - 1
    flags = session.exec(
        select(Remark.kind).where(
            Remark.assignment == one.id, Remark.revision == newest, col(Remark.about).is_(None)
        )
    )
    spans = session.exec(select(Span).where(Span.assignment == one.id, Span.revision == newest))
    marked = {tuple(getattr(span, name) for name in MARKED) for span in spans}
    scores = _latest(session, one.response, one.rater, one.pass_) if one.state == State.DONE else {}
    comment = session.exec(
        select(Submission.comment).where(
            Submission.assignment == one.id, Submission.revision == newest
        )
    ).first()
    return scores, set(flags), marked, comment or ""


def says(reply: Reply, scores: Mapping[str, float]) -> Said:
    """Return what a reply says, in the form of `said`."""
    marked = {tuple(getattr(span, name) for name in MARKED) for span in reply.spans}
    rated = {name: (score, reply.comments.get(name, "")) for name, score in scores.items()}
    return rated, set(reply.flags), marked, reply.comment


def save_draft(engine: Engine, rater: int, code: str, entered: FormState) -> int:
    """Keep a draft; return the number of the state that is stored now.

    One that is stored already, or is older than what its own page sent since, changes nothing.
    The draft of a response that is rated already changes nothing about the rating.

    Raises
    ------
    Stale
        If another page has changed what is stored since this page knew it.
    NotAllowed
        If the assignment is not this rater's, was given back, or the study is locked.
    """
    kept = {"rater_is": rater, "code_is": code, "draft": dict(entered.draft)}
    with transaction(engine) as session:
        refuse_locked(session)
        given = kept | {"base": entered.base, "seconds": entered.seconds}
        if entered.base is not None and session.execute(_KEEP, given).rowcount:  # type: ignore[attr-defined] # of an update
            return entered.base + 1
        one = own(session, rater, code)
        if one.state == State.RECUSED:
            raise NotAllowed(GIVEN_BACK)
        if entered.known(one):
            return one.draft_seq
        if not entered.follows(one):
            raise Stale(CHANGED)
        _keep_state(one, entered)
        session.add(one)
        return one.draft_seq


def submit(
    engine: Engine,
    rater: int,
    code: str,
    reply: Reply,
    seconds: float = 0.0,
    entered: FormState | None = None,
    *,
    ask_why: bool = False,
) -> bool:
    """Turn a reply into ratings, remarks, marked stretches and a submission.

    The same reply again changes nothing and gives False. A later one that differs is a revision:
    it is added, and counts.

    Parameters
    ----------
    entered
        The state of the page that submits, kept for whoever returns to it.
    ask_why
        Whether a low score on the first criterion needs a line of comment or a marked stretch.

    Raises
    ------
    Unexplained
        If such a reason is missing.
    Stale
        If another page has changed what is stored since this page knew it.
    NotAllowed
        If the assignment is not this rater's, was given back, or the study is locked.
    BadInput
        If a criterion is missing, unknown, or off the scale, or a stretch is not of its text, has
        no error type of the study, or no severity that there is.
    """
    with transaction(engine) as session:
        one = own(session, rater, code)
        rubric = rubric_of(session, one.response)
        scores = _complete(rubric, reply)
        if entered is not None and _is_stored(session, one, entered, says(reply, scores)):
            return False
        refuse_unexplained(rubric, reply, ask_why)
        refuse_locked(session)
        if one.state in ENDED and said(session, one) == says(reply, scores):
            _keep_submitted(one, entered, seconds)
            return False
        if one.state == State.RECUSED:
            raise NotAllowed(GIVEN_BACK)
        if one.revision == 0:
            one.done_at, one.previous = now(), previous(session, one)
        made = entered or FormState({}, seconds, one.draft_seq)
        written = _write(session, one, rubric, scores, reply, made)
        one.state = State.DONE if scores else State.UNRATED
        one.revision += 1
        _keep_submitted(one, entered, seconds)
        session.add(one)
        detail = {"assignment": one.id, "revision": one.revision, "scores": scores}
        log(session, f"rater {rater}", "rated", detail | {"written": written})
    return True


def _is_stored(session: Session, one: Assignment, entered: FormState, says_now: Said) -> bool:
    """Tell whether this page, or another of the same clinician, has submitted this; refuse what is stale.

    Raises
    ------
    Stale
        If another page has changed what is stored since this page knew it, to something else.
    """
    if entered.submitted(one):
        return True
    if entered.follows(one):
        return False
    is_submitted = one.state in ENDED and one.submitted_seq == one.draft_seq
    if is_submitted and said(session, one) == says_now:
        return True
    raise Stale(CHANGED)


def refuse_unexplained(rubric: Rubric, reply: Reply, asked: bool) -> None:
    """Raise Unexplained if a low score on the first criterion has neither a line nor a mark."""
    first = rubric.criteria[0]
    given = reply.comment.strip() or reply.comments.get(first, "").strip() or reply.spans
    if asked and not given and reply.scores.get(first) in low_points(rubric):
        raise Unexplained(first)


def _keep_state(one: Assignment, entered: FormState) -> None:
    """Keep a state of the form; its number is the next."""
    one.draft_seq += 1
    one.draft = dict(entered.draft)
    one.seconds_active = max(one.seconds_active, entered.seconds)


def _keep_submitted(one: Assignment, entered: FormState | None, seconds: float) -> None:
    """Keep the state that was submitted, and its number."""
    if entered is None:
        one.draft_seq += 1
        one.seconds_active = max(one.seconds_active, seconds)
    else:
        _keep_state(one, entered)
    one.submitted_seq = one.draft_seq


def _write(
    session: Session,
    one: Assignment,
    rubric: Rubric,
    scores: dict[str, float],
    reply: Reply,
    made: FormState,
) -> list[dict[str, Any]]:
    """Add all that a submission says; return what its event says of the rows."""
    decided = dict(session.exec(_DECIDED).all())
    errors = read_error_types(decided[ERROR_TYPES]) if ERROR_TYPES in decided else ERRORS
    said_of_all = {
        "assignment": one.id,
        "revision": one.revision,
        "comment": reply.comment,
        "seconds": float(made.seconds),  # as it is read back, or its digest would differ
        "study_text": decided.get(STUDY_TEXT),
        "appearance": made.appearance,
        "at": now(),
    }
    return [
        *_rate(session, one, rubric, scores, reply),
        *_remark(session, one, reply, errors),
        *write_rows(session, Submission, [said_of_all]),
    ]


def _rate(
    session: Session, one: Assignment, rubric: Rubric, scores: dict[str, float], reply: Reply
) -> list[dict[str, Any]]:
    """Add the ratings; return what the event says of them."""
    place = {"response": one.response, "rater": one.rater, "pass_": one.pass_, "replicate": 0}
    return write_rows(session, Rating, rating_rows(place, rubric, scores, reply))


def _remark(
    session: Session, one: Assignment, reply: Reply, errors: Sequence[str]
) -> list[dict[str, Any]]:
    """Add flags and stretches; return what the event says of them."""
    same = {"assignment": one.id, "revision": one.revision, "at": now()}
    flags = [same | {"kind": kind, "text": reply.comment, "about": None} for kind in reply.flags]
    spans = []
    if reply.spans:
        texts = _shown_texts(session, one.response)
        for span in reply.spans:
            _refuse_odd(reply, span, errors)
            stretch = _stretch(texts[span.side], span.start, span.end)
            spans.append(same | asdict(span) | {"text": stretch})
    return [*write_rows(session, Remark, flags), *write_rows(session, Span, spans)]


def _refuse_odd(reply: Reply, span: Marked, errors: Sequence[str]) -> None:
    """Refuse a stretch of an unknown kind, or one that is linked to none on the other side."""
    if span.error not in errors or span.severity not in SEVERITIES or span.side not in SIDES:
        raise BadInput(
            f"this study's marks are {', '.join(errors)}, each minor, major or critical, in the response "
            "or the source; mark it again"
        )
    if span.linked is None:
        return
    if not 0 <= span.linked < len(reply.spans) or reply.spans[span.linked].side == span.side:
        raise BadInput("a marked stretch is linked to none on the other side; mark it again")


def _stretch(text: str, start: int, end: int) -> str:
    """Return a stretch of a text, or refuse one that is not in it."""
    if not 0 <= start < end <= len(text):
        raise BadInput("a marked stretch is not part of its text; mark it again")
    return text[start:end]


def _shown_texts(session: Session, response: int) -> dict[str, str]:
    """Return a response's text and its source as raters see them; a bare task is its own source."""
    one = session.get_one(Response, response)
    asked = session.get_one(Instance, one.instance)
    text = one.text if one.shown is None else one.shown
    return {"response": text, "source": asked.context or asked.prompt}


def _complete(rubric: Rubric, reply: Reply) -> dict[str, float]:
    """Return a score for every criterion, none where it cannot be rated, or say what is wrong."""
    for span in reply.spans:
        if span.criterion not in rubric.criteria:
            raise BadInput("a marked stretch belongs to no criterion; mark it again")
    if NOT_ENOUGH_CONTEXT in reply.flags and not reply.scores:
        return {}
    return whole_scores(rubric, reply, "not rated yet: ")
