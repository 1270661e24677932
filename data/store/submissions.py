"""What clinicians enter: drafts, and submissions with ratings, remarks and marked spans."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Engine, Select, and_, bindparam, exists
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, desc, select

from data.card import Reply
from data.database import shared_transaction
from data.errors import NotAllowed, Stale, Unexplained
from data.record import LOCKED, add_rows, log, refuse_locked_since
from data.rubric import Rubric, low_points
from data.schema import (
    IS_RATED_ON,
    Assignment,
    Benchmark,
    Instance,
    PointSet,
    Rating,
    Remark,
    Response,
    RubricText,
    Setting,
    Span,
    State,
    Submission,
    now,
)
from data.store.assignments import NOT_YOURS
from data.store.calls import rating_rows
from data.store.form_state import FormState, next_number
from data.store.rubrics import RatingForm, form_on

STUDY_TEXT = "study_text"
CHANGED = "this response was changed in another window"
GIVEN_BACK = "you gave this response back; another clinician rates it"
MARKED = ("criterion", "start", "end", "error", "note", "side", "severity", "linked")
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
# What a rater gave, not what their answers on points of a case come to.
IS_GIVEN = col(Rating.rubric_sha256).not_in(select(PointSet.benchmark_rubric))
_LAST_SCORES = (
    select(Rating.criterion, Rating.score)
    .join(
        _LAST_SHOWING,
        and_(
            col(Rating.response) == _LAST_SHOWING.c.response,
            col(Rating.pass_) == _LAST_SHOWING.c.pass_,
        ),
    )
    # Of points of a case only what they come to: an answer is no degree.
    .where(
        col(Rating.rater) == bindparam("rater"),
        col(Rating.rubric_sha256).not_in(select(PointSet.rubric_sha256)),
    )
    .order_by(col(Rating.id))
)
ENDED = (State.DONE, State.UNRATED)
# What a draft or a submission is checked against, in one query. It is sent after the study's lock is
# held, so what only those write who hold it alone is as it stands.
_LOCKED_SINCE = select(Setting.value).where(Setting.key == LOCKED).scalar_subquery()
_STUDY_TEXT = select(Setting.value).where(Setting.key == STUDY_TEXT).scalar_subquery()
_CHECKED: tuple[Any, ...] = (Assignment, RubricText.body, _LOCKED_SINCE, _STUDY_TEXT)
_MINE: Select[*tuple[Any, ...]] = (
    Select(*_CHECKED)
    .select_from(Assignment)
    .join(Response)
    .join(Instance)
    .join(Benchmark)
    .join(RubricText, IS_RATED_ON)
    .where(col(Assignment.code) == bindparam("code"), col(Assignment.rater) == bindparam("rater"))
    .with_for_update(of=Assignment)
)


def previous(session: Session, assignment: Assignment) -> float | None:
    """Return the mean score of what this clinician rated just before, None if nothing."""
    scores = dict(session.exec(_LAST_SCORES, params={"rater": assignment.rater}).all())
    return sum(scores.values()) / len(scores) if scores else None


def _latest(session: Session, showing: Assignment) -> dict[str, tuple[float, str]]:
    """Return what the rater's latest ratings for a showing say, without what they come to."""
    rows = session.exec(
        select(Rating)
        .where(Rating.response == showing.response, Rating.rater == showing.rater)
        .where(Rating.pass_ == showing.pass_, IS_GIVEN)
        .order_by(desc(Rating.id))
    )
    newest: dict[str, tuple[float, str]] = {}
    for row in rows:
        newest.setdefault(row.criterion, (row.score, row.comment))
    return newest


SubmittedContent = tuple[object, object, object, str]


def submitted_content(session: Session, assignment: Assignment) -> SubmittedContent:
    """Return all that the newest submission of an assignment said."""
    newest = assignment.revision - 1
    flags = session.exec(
        select(Remark.kind).where(
            Remark.assignment == assignment.id,
            Remark.revision == newest,
            col(Remark.about).is_(None),
        )
    )
    spans = session.exec(
        select(Span).where(Span.assignment == assignment.id, Span.revision == newest)
    )
    marked = {tuple(getattr(span, name) for name in MARKED) for span in spans}
    scores = _latest(session, assignment) if assignment.state == State.DONE else {}
    comment = session.exec(
        select(Submission.comment).where(
            Submission.assignment == assignment.id, Submission.revision == newest
        )
    ).first()
    return scores, set(flags), marked, comment or ""


def reply_content(reply: Reply, scores: Mapping[str, float]) -> SubmittedContent:
    """Return what a reply says, in the form of `submitted_content`."""
    marked = {tuple(getattr(span, name) for name in MARKED) for span in reply.spans}
    rated = {name: (score, reply.comments.get(name, "")) for name, score in scores.items()}
    return rated, set(reply.flags), marked, whole_comment(reply, scores)


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
    BadInput
        If a score, a comment or a mark cannot be: drafts are checked like submissions.
    """
    with shared_transaction(engine) as session:
        showing = _showing(session, rater, code)
        assignment, reply = showing.assignment, entered.reply()
        refuse_locked_since(showing.locked_since)
        showing.form(session, reply).refuse_impossible(reply)
        if assignment.state == State.RECUSED:
            raise NotAllowed(GIVEN_BACK)
        if entered.known(assignment):
            return assignment.draft_seq
        if not entered.follows(assignment):
            raise Stale(CHANGED)
        _keep_state(assignment, entered)
        return assignment.draft_seq


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
    with shared_transaction(engine) as session:
        showing = _showing(session, rater, code)
        assignment, form = showing.assignment, showing.form(session, reply)
        scores = form.scores(reply)
        content = reply_content(reply, scores)
        if entered is not None and _is_stored(session, assignment, entered, content):
            return False
        refuse_unexplained(form.rubric, reply, ask_why)
        refuse_locked_since(showing.locked_since)
        is_same = assignment.state in ENDED and submitted_content(session, assignment) == content
        if is_same:
            _keep_submitted(assignment, entered, seconds)
            return False
        if assignment.state == State.RECUSED:
            raise NotAllowed(GIVEN_BACK)
        if assignment.revision == 0:
            assignment.done_at, assignment.previous = now(), previous(session, assignment)
        state = entered or FormState({}, seconds, assignment.draft_seq)
        _write(session, showing, form, scores, reply, state)
        assignment.state = State.DONE if scores else State.UNRATED
        assignment.revision += 1
        _keep_submitted(assignment, entered, seconds)
        detail = {"assignment": assignment.id, "revision": assignment.revision, "scores": scores}
        log(session, f"rater {rater}", "rated", detail)
    return True


@dataclass(frozen=True, slots=True)
class _Showing:
    """A clinician's own assignment, its row locked, and what an entry for it is checked against."""

    assignment: Assignment
    rubric: Rubric
    locked_since: str | None
    study_text: str | None

    def form(self, session: Session, reply: Reply) -> RatingForm:
        return form_on(session, self.rubric, self.assignment.response, reply)


def _showing(session: Session, rater: int, code: str) -> _Showing:
    """Return the rater's own assignment of that code, locked until the transaction ends."""
    row = session.execute(_MINE, {"rater": rater, "code": code}).first()
    if row is None:
        raise NotAllowed(NOT_YOURS)
    assignment, rubric, locked_since, study_text = row
    return _Showing(assignment, Rubric.from_json(rubric), locked_since, study_text)


def _is_stored(
    session: Session, assignment: Assignment, entered: FormState, content: SubmittedContent
) -> bool:
    """Tell whether this page, or another of the same clinician, has submitted this; refuse what is stale.

    Raises
    ------
    Stale
        If another page has changed what is stored since this page knew it, to something else.
    """
    if entered.submitted(assignment):
        return True
    if entered.follows(assignment):
        return False
    is_submitted = assignment.state in ENDED and assignment.submitted_seq == assignment.draft_seq
    if is_submitted and submitted_content(session, assignment) == content:
        return True
    raise Stale(CHANGED)


def whole_comment(reply: Reply, scores: Mapping[str, float]) -> str:
    """Return what is said of the whole, and of criteria that have no score to stand with."""
    comments = ((name, text) for name, text in reply.comments.items() if text)
    without = (f"{name}: {text}" for name, text in comments if name not in scores)
    return "\n".join(filter(None, [reply.comment, *without]))


def refuse_unexplained(rubric: Rubric, reply: Reply, ask_why: bool) -> None:
    """Raise Unexplained if a low score on the first criterion has neither a line nor a mark."""
    first = rubric.criteria[0]
    reason = reply.comment.strip() or reply.comments.get(first, "").strip() or reply.spans
    if ask_why and not reason and reply.scores.get(first) in low_points(rubric):
        raise Unexplained(first)


def _keep_state(assignment: Assignment, entered: FormState) -> None:
    """Keep a state of the form; its number is the next."""
    _advance(assignment)
    assignment.draft = dict(entered.draft)
    assignment.seconds_active = max(assignment.seconds_active, entered.seconds)


def _advance(assignment: Assignment) -> None:
    """Give the next state its number; what was submitted stays before it."""
    assignment.draft_seq = next_number(assignment.draft_seq)
    assignment.submitted_seq = min(assignment.submitted_seq, assignment.draft_seq - 1)


def _keep_submitted(assignment: Assignment, entered: FormState | None, seconds: float) -> None:
    """Keep the state that was submitted, and its number."""
    if entered is None:
        _advance(assignment)
        assignment.seconds_active = max(assignment.seconds_active, seconds)
    else:
        _keep_state(assignment, entered)
    assignment.submitted_seq = assignment.draft_seq


def _write(
    session: Session,
    showing: _Showing,
    form: RatingForm,
    scores: dict[str, float],
    reply: Reply,
    state: FormState,
) -> None:
    """Add all that a submission says."""
    assignment = showing.assignment
    about: dict[str, Any] = {"assignment": assignment.id, "revision": assignment.revision}
    submission = Submission(
        comment=whole_comment(reply, scores),
        seconds=state.seconds,
        study_text=showing.study_text,
        appearance=state.appearance,
        **about,
    )
    rated = {
        "response": assignment.response,
        "rater": assignment.rater,
        "pass_": assignment.pass_,
        "replicate": 0,
    }
    add_rows(session, Rating, rating_rows(rated, form.rubric, scores, reply))
    session.add_all(Remark(kind=kind, text=reply.comment, **about) for kind in reply.flags)
    session.add_all(Span(text=form.stretch(span), **about, **asdict(span)) for span in reply.spans)
    session.add(submission)
