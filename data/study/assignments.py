"""Who rates what: design, free places, recusals, flags with answers, work that is left, and habits."""

import random
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import groupby
from statistics import median
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import ColumnElement, Engine, bindparam, case, func, update
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, select

from data.card import PASS_OF, THIRD, Settling
from data.database import reading, shared_transaction, transaction
from data.errors import BadInput, Conflict, NotAllowed, Unknown
from data.pace import Pace, Timed, Work, measured, stated
from data.person import Person, asking, name_for, only
from data.record import PAST_RECORD, log, refuse_locked
from data.rubric import Rubric
from data.schema import (
    ANSWER,
    SEEN,
    Account,
    Assignment,
    Benchmark,
    Instance,
    Kind,
    Mask,
    Pair,
    Rater,
    Rating,
    Remark,
    Response,
    Role,
    RubricText,
    Setting,
    State,
    now,
)
from data.study.access import PSEUDONYM_KEY
from data.study.authors import authors_unless_blind
from data.study.base import (
    BY_CLINICIAN,
    FOR_STUDY,
    NEWEST_SUBMISSION,
    WITHDRAWN_RESPONSES,
    columns_of,
)
from data.study.readings import readings

Key = tuple[str, int, int]
PER_RESPONSE = "per_response"
SIGN, OTHER = {"first": 1, "second": -1}, {"first": "second", "second": "first"}
NOT_YOURS = "this response is not assigned to you"
ADJUDICATION_ASSIGNED = "adjudication assigned"
_OF_CODE = select(Assignment).where(Assignment.code == bindparam("code")).with_for_update()
# Made once: each response that is shown asks it.
_OPEN = (
    update(Assignment)
    .where(
        col(Assignment.code) == bindparam("code_is"),
        col(Assignment.rater) == bindparam("rater_is"),
        col(Assignment.opened_at).is_(None),
    )
    .values(opened_at=bindparam("now"))  # which no event seals
    .execution_options(synchronize_session=False, **{PAST_RECORD: True})
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

    Who was given a response to settle a difference does not rate it by themselves afterwards:
    such a slot is left out, and its place is free for another clinician.

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
        raters = {rater.handle: rater.id or 0 for rater in session.exec(select(Rater))}
        existing = {
            (slot.rater, slot.response, slot.pass_): slot
            for slot in session.exec(select(Assignment))
        }
        for rater, response, pass_ in dropped:
            _take_back(session, existing.pop((raters[rater], response, pass_)))
        settling = {(rater, response) for rater, response, pass_ in existing if pass_ >= THIRD}
        new = [
            Assignment(code=secrets.token_urlsafe(9), rater=rater, **at)
            for at in map(asdict, slots)
            for rater in [raters[at.pop("rater")]]
            if (rater, at["response"], at["pass_"]) not in existing
            and (rater, at["response"]) not in settling
        ]
        balance_sides(session, new, seed)
        session.add_all(new)
        stored, wanted = session.get(Setting, PER_RESPONSE), str(per_response)
        is_changed = per_response is not None and (stored is None or stored.value != wanted)
        if is_changed:
            session.merge(Setting(key=PER_RESPONSE, value=wanted))
        if new or is_changed:
            detail = {"slots": len(new), "seed": seed}
            log(session, "coordinator", "responses assigned", detail)
        return len(new)


@dataclass(frozen=True, slots=True)
class Item:
    """A response to be rated (primary key), the instance it answers, and its hidden author.

    `model` is "" while the study is blind. `words` are those of source and response, `criteria` the scores
    that it asks for.
    """

    response: int
    instance: int
    model: str
    benchmark: str = ""
    words: int = 0
    criteria: int = 0
    response_id: str = ""


@dataclass(frozen=True, slots=True)
class Assigned:
    """A slot that is stored already; `done` means that it must stay with this rater."""

    rater: str
    response: int
    pass_: int = 0
    done: bool = False
    position: int = 0


def design_items(engine: Engine) -> list[Item]:
    """Return every response that is not for training, with its instance, and its model to balance.

    While the study is blind no model is told, so that no design tells who wrote what.
    """
    names = (Response.id, Response.instance, Instance.benchmark, _words(), Response.response_id)
    query = columns_of(*names, Benchmark.rubric_sha256).select_from(Response).join(Instance)
    query = query.join(Benchmark).where(FOR_STUDY).order_by(col(Response.id))
    with reading(engine) as session:
        models = authors_unless_blind(session) or {}
        rows = session.exec(query).all()
        criteria = _criteria(session, {sha256 for *_, sha256 in rows})
    return [
        Item(key, instance, models.get(key, ""), benchmark, int(words), criteria[sha256], name)
        for key, instance, benchmark, words, name, sha256 in rows
    ]


def assigned(engine: Engine) -> list[Assigned]:
    """Return every independent assignment of the study but those given back; what is begun is done."""
    query = (
        select(Rater.handle, Assignment)
        .join(Rater)
        .where(
            Assignment.state != State.RECUSED,
            col(Assignment.pass_) < THIRD,
            col(Assignment.response).not_in(WITHDRAWN_RESPONSES),
        )
        .order_by(col(Assignment.id))
    )
    with reading(engine) as session:
        return [
            Assigned(handle, one.response, one.pass_, _is_begun(one), one.position)
            for handle, one in session.exec(query)
        ]


def _is_begun(assignment: Assignment) -> bool:
    return bool(
        assignment.state != State.OPEN or assignment.draft_seq or assignment.opened_at is not None
    )


def claim(engine: Engine, rater: int) -> bool:
    """Give a clinician one place that has become free, at the end of their order, if there is one.

    A place is free where a response of the design has fewer readers than the design wants,
    those who recused themselves not counted. However many ask at once, no response ever
    gets more readers than wanted.
    """
    with transaction(engine) as session:
        per_response = session.exec(
            select(Setting).where(Setting.key == PER_RESPONSE).with_for_update()
        ).first()
        response = _free(session, rater, int(per_response.value)) if per_response else None
        if response is None:
            return False
        refuse_locked(session)
        new = add_last(session, rater, response)
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
        assignment = own(session, rater, code)
        if assignment.state == State.RECUSED:
            return False
        if assignment.state != State.OPEN:
            raise NotAllowed("this response is rated already; change the rating instead")
        assignment.state, assignment.done_at = State.RECUSED, now()
        about: dict[str, Any] = {"assignment": assignment.id, "revision": assignment.revision}
        session.add(Remark(kind="recused", text=reason.strip(), **about))
        log(session, f"rater {rater}", "recused", {"assignment": assignment.id})
    return True


def opened(engine: Engine, rater: int, code: str, reference: bool = False) -> None:
    """Record when a clinician first saw a response, or its reference; later times are ignored."""
    with shared_transaction(engine) as session:
        if not reference:
            values = {"code_is": code, "rater_is": rater, "now": now()}
            if session.execute(_OPEN, values).rowcount:  # type: ignore[attr-defined] # of an update
                return
        assignment = own(session, rater, code)
        if reference and assignment.reference_opened_at is None:
            assignment.reference_opened_at = now()
            detail = {"assignment": assignment.id}
            log(session, f"rater {rater}", "reference opened", detail)
        assignment.opened_at = assignment.opened_at or now()


def assign_adjudication(
    engine: Engine, actor: str, reading: Settling, clinicians: Mapping[int, str]
) -> int:
    """Give each response (primary key) to the clinician who is to settle it; return how many.

    Each comes after all the other work of its clinician, in the order of `places`.

    Raises
    ------
    NotAllowed
        If somebody would give a third reading of what they rated or were ever given, or is
        given what they gave back; or the study is locked.
    Conflict
        If one of the responses is settled, or given out, already, or somebody has still to rate
        it by themselves.
    Unknown
        If a name is no clinician's.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        is_first = reading == "consensus" and session.get(Setting, PSEUDONYM_KEY) is None
        if is_first:
            session.add(Setting(key=PSEUDONYM_KEY, value=secrets.token_urlsafe(32)))
        new = [
            _adjudication(session, reading, response, handle)
            for response, handle in clinicians.items()
        ]
        if new or is_first:
            detail = {"reading": reading, "assignments": [assignment.id for assignment in new]}
            log(session, actor, ADJUDICATION_ASSIGNED, detail)
        return len(new)


# Give out readings that settle differences, in a coordinator's name.
give_adjudication = asking(assign_adjudication, Role.COORDINATOR)


def own(session: Session, rater: int, code: str) -> Assignment:
    """Return the rater's own assignment of that code, locked until the transaction ends."""
    assignment = session.exec(_OF_CODE, params={"code": code}).first()
    if assignment is None or assignment.rater != rater:
        raise NotAllowed(NOT_YOURS)
    return assignment


def add_last(session: Session, rater: int, response: int, pass_: int = 0) -> Assignment:
    """Add a showing of a response at the end of a clinician's order (both as primary keys)."""
    last = select(func.max(col(Assignment.position))).where(Assignment.rater == rater)
    position = session.exec(last).one()
    new = Assignment(
        code=secrets.token_urlsafe(9),
        rater=rater,
        response=response,
        position=0 if position is None else position + 1,
        pass_=pass_,
    )
    balance_sides(session, [new])
    session.add(new)
    session.flush()
    return new


def balance_sides(session: Session, new: Sequence[Assignment], seed: int | None = None) -> None:
    """Say of each new showing of a pair which response is first, without looking at who wrote what.

    Each pair is shown either way equally often, and to each clinician half of theirs either way, as far
    as numbers and what is stored allow; the rest is chance, from the seed.
    """
    compared = set(session.exec(select(Pair.response)))
    own = [one for one in new if one.response in compared]
    if not own:
        return
    with session.no_autoflush:
        known = session.exec(select(Assignment).where(Assignment.shown_first != "")).all()
    of_pair, of_rater = Counter[int](), Counter[int]()

    def note(one: Assignment, times: int = 1) -> None:
        sign = SIGN[one.shown_first] * times
        of_pair[one.response] += sign
        of_rater[one.rater] += sign

    for one in known:
        note(one)
    chance = random.Random(seed)  # noqa: S311 - a design, no secret
    by_pair: dict[int, list[Assignment]] = {}
    for one in chance.sample(own, len(own)):
        lean = of_pair[one.response] or of_rater[one.rater] or chance.choice((-1, 1))
        one.shown_first = "second" if lean > 0 else "first"
        note(one)
        by_pair.setdefault(one.response, []).append(one)
    moved = True
    while moved:  # all showings of a pair the other way, as long as clinicians' halves come nearer
        moved = False
        for showings in by_pair.values():
            signs = {one.rater: SIGN[one.shown_first] for one in showings}
            gain = sum(of_rater[rater] * sign - 1 for rater, sign in signs.items())
            if gain > 0 and sum(SIGN[one.shown_first] for one in showings) == 0:
                for one in showings:
                    note(one, -1)
                    one.shown_first = OTHER[one.shown_first]
                    note(one)
                moved = True


def _free(session: Session, rater: int, per_response: int) -> int | None:
    """Return the response with most places free that this clinician has never been given."""
    readers = func.count(col(Assignment.id)).filter(col(Assignment.state) != State.RECUSED)
    own_responses = select(Assignment.response).where(Assignment.rater == rater)
    query = (
        select(Assignment.response)
        .where(Assignment.pass_ == 0, col(Assignment.response).not_in(WITHDRAWN_RESPONSES))
        .group_by(col(Assignment.response))
        .having(readers < per_response, col(Assignment.response).not_in(own_responses))
        .order_by(readers, col(Assignment.response))
        .limit(1)
    )
    return session.exec(query).first()


def _take_back(session: Session, assignment: Assignment) -> None:
    """Delete an assignment that nobody has begun."""
    if _is_begun(assignment):
        raise Conflict("a clinician began this work meanwhile; assign the work again")
    detail = {"rater": assignment.rater, "response": assignment.response, "pass": assignment.pass_}
    session.delete(assignment)
    log(session, "coordinator", "assignment taken back", detail)


def _adjudication(session: Session, reading: Settling, response: int, handle: str) -> Assignment:
    rater = session.exec(select(Rater).where(Rater.handle == handle)).first()
    if rater is None or rater.kind != Kind.CLINICIAN or rater.simulated:
        raise Unknown(f"clinician {handle!r}: nobody of that name can be given work in this study")
    account = session.exec(select(Account).where(Account.rater == rater.id)).first()
    if account is not None and account.ended is not None:
        raise NotAllowed(f"{handle}: access has ended; give a new code first, or name another")
    given = select(Assignment).where(Assignment.response == response)
    rated = select(Rating).where(Rating.response == response).limit(1)
    if session.exec(given.where(Assignment.state == State.OPEN).limit(1)).first() is not None:
        raise Conflict("a response is still to be rated, or its difference is given out already")
    if session.exec(rated.where(Rating.pass_ >= THIRD)).first() is not None:
        raise Conflict("the difference on a response is settled already")
    own_work = session.exec(given.where(Assignment.rater == rater.id)).all()
    has_rated = session.exec(rated.where(Rating.rater == rater.id)).first() is not None
    if reading == "third" and (own_work or has_rated):
        raise NotAllowed(f"{handle} knows this response: a third reading is another's")
    if any(one.state == State.RECUSED or one.pass_ >= THIRD for one in own_work):
        raise NotAllowed(f"{handle} gave this response back, or was given it before")
    return add_last(session, rater.id or 0, response, PASS_OF[reading])


RECUSED = "recused"
LONGEST = 2000


def answer_flag(engine: Engine, actor: str, remark: int, text: str) -> int:
    """Answer a flag (primary key of its remark); return the answer's own key.

    Another answer to the same flag is added. `medjury.services.adjudication.answer` first looks whether the
    text names a model of the study, which no clinician may read.

    Raises
    ------
    Unknown
        If there is no such flag.
    BadInput
        If the text is empty or over 2,000 characters.
    """
    answer = text.strip()
    if not 0 < len(answer) <= LONGEST:
        raise BadInput(f"an answer has 1 to {LONGEST:,} characters")
    with transaction(engine) as session:
        refuse_locked(session)
        flag = session.get(Remark, remark)
        if flag is None or flag.about is not None or flag.kind == RECUSED:
            raise Unknown(
                f"flag {remark}: there is none of this number (`medjury rate flags` lists them)"
            )
        return _write(session, actor, "flag answered", flag, ANSWER, answer)


# Answer a flag in a coordinator's name.
answer_flag_as = asking(answer_flag, Role.COORDINATOR)


def answer_seen(engine: Engine, rater: int, answer: int) -> bool:
    """Record that a clinician has seen an answer (its own key); False if that was so already.

    Raises
    ------
    NotAllowed
        If it is no answer to this clinician.
    """
    with transaction(engine) as session:
        remark = session.get(Remark, answer)
        own = session.get(Assignment, remark.assignment) if remark else None
        if remark is None or own is None or remark.kind != ANSWER or own.rater != rater:
            raise NotAllowed("this is no answer to you")
        seen_remarks = select(Remark.id).where(Remark.about == answer, Remark.kind == SEEN)
        if session.exec(seen_remarks.limit(1)).first() is not None:
            return False
        _write(session, f"rater {rater}", "answer seen", remark, SEEN, "")
    return True


def _write(session: Session, actor: str, act: str, about: Remark, kind: str, text: str) -> int:
    """Add a remark about a remark with its event; return its key."""
    new = Remark(
        assignment=about.assignment,
        kind=kind,
        text=text,
        revision=about.revision,
        about=about.id,
    )
    session.add(new)
    log(session, actor, act, {"remark": about.id})
    return new.id or 0


_FLAG, _ANSWER, _SEEN = aliased(Remark), aliased(Remark), aliased(Remark)
_ANSWERS = (
    columns_of(
        *(Assignment.code, _FLAG.kind, _FLAG.text, _ANSWER.text, _ANSWER.at, _SEEN.at, _ANSWER.id)
    )
    .select_from(Assignment)
    .join(_ANSWER, col(_ANSWER.assignment) == col(Assignment.id))
    .join(_FLAG, col(_FLAG.id) == col(_ANSWER.about))
    .outerjoin(
        _SEEN,
        (col(_SEEN.assignment) == col(Assignment.id))
        & (col(_SEEN.about) == col(_ANSWER.id))
        & (col(_SEEN.kind) == SEEN),
    )
    .where(col(Assignment.rater) == bindparam("rater"), col(_ANSWER.kind) == ANSWER)
    .order_by(col(_ANSWER.id))
)


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer to a clinician's flag.

    Attributes
    ----------
    code
        Of the assignment.
    flag, text
        What was flagged, and the clinician's words with it.
    seen
        When the clinician saw the answer, None if not yet.
    answer_id
        The answer's key, for `store.answer_seen`.
    """

    code: str
    flag: str
    text: str
    answer: str
    at: datetime
    seen: datetime | None
    answer_id: int


@dataclass(frozen=True, slots=True)
class Flagged:
    """A flag of a newest submission, for those who steer the study; never the author.

    Attributes
    ----------
    id
        The remark's key, for `store.answer_flag`.
    rater
        The clinician's handle for coordinators, for researchers a pseudonym.
    answers
        What was answered, the oldest first; `seen` whether the clinician saw the last.
    """

    id: int
    response_id: str
    benchmark: str
    rater: str
    flag: str
    text: str
    at: datetime
    answers: tuple[str, ...] = ()
    seen: bool = False


def answers_for(engine: Engine, rater: int) -> tuple[Answered, ...]:
    """Return the answers to what a clinician flagged, the oldest first."""
    with reading(engine) as session:
        return tuple(Answered(*row) for row in session.execute(_ANSWERS, {"rater": rater}))


@only(Role.RESEARCHER, Role.COORDINATOR)
def flags(person: Person, engine: Engine) -> list[Flagged]:
    """Return every flag of a newest submission: those without an answer first, then the newest."""
    query = (
        columns_of(Remark, Response.response_id, Instance.benchmark, Rater)
        .select_from(Remark)
        .join(Assignment, col(Remark.assignment) == col(Assignment.id))
        .join(Response, col(Assignment.response) == col(Response.id))
        .join(Instance)
        .join(Rater, col(Assignment.rater) == col(Rater.id))
        .where(Remark.kind != RECUSED, Remark.revision == NEWEST_SUBMISSION, BY_CLINICIAN)
    )
    replies = select(Remark).where(col(Remark.about).is_not(None)).order_by(col(Remark.id))
    with reading(engine) as session:
        later = list(session.exec(replies))
        flagged = [_flagged(person, row, later) for row in session.exec(query)]
    return sorted(flagged, key=lambda flag: (bool(flag.answers), -flag.at.timestamp(), flag.id))


def _flagged(person: Person, row: Any, replies: list[Remark]) -> Flagged:
    remark, response, benchmark, rater = row
    answers = [reply for reply in replies if reply.about == remark.id]
    seen_answers = {reply.about for reply in replies if reply.kind == SEEN}
    name = name_for(person, rater)
    texts = tuple(answer.text for answer in answers)
    is_seen = bool(answers) and answers[-1].id in seen_answers
    flag_fields = response, benchmark, name, remark.kind, remark.text, remark.at
    return Flagged(remark.id, *flag_fields, texts, is_seen)


# A response by its primary key, and how many places of it are masked. No text ever changes; what is
# shown of it changes only where places are masked, and masks are only ever added.
Text = tuple[int, int]
AT_ONCE = 1000
_MASKS = (
    select(func.count(col(Mask.id)))
    .where(Mask.response == Response.id)
    .correlate(Response)
    .scalar_subquery()
)
# A text's words, counted once: a clinician arrives often, and 500 long ones take tenths of a second.
# All there is to read of it, and the response alone.
_COUNTED: WeakKeyDictionary[Engine, dict[Text, tuple[int, int]]] = WeakKeyDictionary()


def words_left(engine: Engine, rater: int) -> Work:
    """Return what a rater (primary key) still has to read and score.

    Words are those of source, task and response as shown, once for each showing.
    """
    query = (
        columns_of(Response.id, _MASKS, Benchmark.rubric_sha256)
        .select_from(Assignment)
        .join(Response)
        .join(Instance)
        .join(Benchmark)
        .where(Assignment.rater == rater, Assignment.state == State.OPEN)
    )
    with reading(engine) as session:
        rows = session.exec(query).all()
        words = _words_of(engine, session, {(key, masks) for key, masks, _ in rows})
        criteria = _criteria(session, {sha256 for *_, sha256 in rows})
    return Work(
        len(rows),
        sum(words[key, masks][0] for key, masks, _ in rows),
        sum(criteria[sha256] for *_, sha256 in rows),
    )


@only(Role.RESEARCHER, Role.COORDINATOR)
def words_left_of(_: Person, engine: Engine, handle: str) -> tuple[Work, list[Timed]]:
    """Return what a clinician still has to read, and their timed showings: see `timed_showings`."""
    with reading(engine) as session:
        rater = session.exec(select(Rater.id).where(Rater.handle == handle)).first() or 0
    return words_left(engine, rater), timed_showings(engine, rater)


def work_of_names(engine: Engine) -> dict[str, Work]:
    """Return what one showing of each response (its id in the study) is; training left out."""
    return {one.response_id: Work(1, one.words, one.criteria) for one in design_items(engine)}


def timed_showings(engine: Engine, rater: int | None = None) -> list[Timed]:
    """Return every showing submitted with its time; simulated raters left out.

    Of one rater (primary key), or of all.
    """
    return [one for own in showings_by_rater(engine, rater).values() for one in own]


def showings_by_rater(engine: Engine, rater: int | None = None) -> dict[str, list[Timed]]:
    """Return the handle of every clinician with timed showings -> them; see `timed_showings`."""
    query = (
        columns_of(Rater.handle, Assignment.seconds_active, Response.id, _MASKS)
        .select_from(Assignment)
        .join(Rater)
        .join(Response)
        .where(
            Assignment.state == State.DONE,
            Rater.kind == Kind.CLINICIAN,
            col(Rater.simulated).is_(False),
            Assignment.seconds_active > 0,
        )
    )
    if rater is not None:
        query = query.where(Assignment.rater == rater)
    with reading(engine) as session:
        rows = session.exec(query).all()
        words = _words_of(engine, session, {(key, masks) for *_, key, masks in rows})
    found: dict[str, list[Timed]] = {}
    for handle, seconds, key, masks in rows:
        found.setdefault(handle, []).append(Timed(float(seconds), *words[key, masks]))
    return found


def _words_of(engine: Engine, session: Session, texts: Set[Text]) -> Mapping[Text, tuple[int, int]]:
    """Return the words of some responses with their source and task, and alone; counted once."""
    counted = _COUNTED.setdefault(engine, {})
    missing = dict(sorted(texts - counted.keys()))
    own = _words_in(func.coalesce(Response.shown, Response.text))
    query = columns_of(Response.id, _words(), own).select_from(Response).join(Instance)
    for start in range(0, len(missing), AT_ONCE):
        some = query.where(col(Response.id).in_([*missing][start : start + AT_ONCE]))
        counted |= {
            (key, missing[key]): (int(words), int(alone))
            for key, words, alone in session.exec(some)
        }
    return counted


def _criteria(session: Session, rubrics: Set[str]) -> dict[str, int]:
    """Return how many criteria each rubric (SHA-256) has."""
    query = select(RubricText.sha256, RubricText.body).where(col(RubricText.sha256).in_(rubrics))
    return {sha256: len(Rubric.from_json(body).criteria) for sha256, body in session.exec(query)}


def _words() -> ColumnElement[Any]:
    """Count the words of a source, its task and a response as shown: by the white space between."""
    shown = func.coalesce(Response.shown, Response.text)
    return _words_in(Instance.context) + _words_in(Instance.prompt) + _words_in(shown)


def _words_in(text: Any) -> ColumnElement[Any]:
    """Count words as one more than there are blanks and line ends; none of an empty text.

    The text is spaced only once: a database does so again for each time that it is named.
    """
    without_blanks = func.replace(func.replace(func.replace(text, "\r", ""), "\n", ""), " ", "")
    spaced = func.trim(func.replace(func.replace(text, "\r", ""), "\n", " "))
    for _ in range(3):  # of up to eight blanks in a row one is left
        spaced = func.replace(spaced, "  ", " ")
    has_words = case((func.trim(text, " \r\n") != "", 1), else_=0)
    return func.length(spaced) - func.length(without_blanks) + has_words


def pace_of(engine: Engine, minutes: float | None = None) -> Pace:
    """Return the pace for estimates: of so many minutes a showing, as somebody says, or as measured."""
    return measured(timed_showings(engine)) if minutes is None else stated(minutes)


LONG_RUN = 10  # responses; a convention: five-point scores in three criteria seldom repeat so often


@dataclass(frozen=True, slots=True)
class RatingHabits:
    """How one clinician rated; nothing of it leaves a rating out.

    Attributes
    ----------
    n_timed, n_hasty
        Showings with a time, and those in which not even the response can have been scanned.
    median_seconds
        Of the timed ones; None without any.
    longest_run
        The most readings in a row with the same scores on all criteria.
    """

    rater: str
    n_timed: int = 0
    n_hasty: int = 0
    median_seconds: float | None = None
    longest_run: int = 0

    @property
    def is_fast(self) -> bool | None:
        """Whether half of the showings or more were hasty; None where none was timed."""
        return 2 * self.n_hasty >= self.n_timed if self.n_timed else None

    @property
    def is_straight(self) -> bool:
        """Whether so many responses in a row got the same scores that somebody should ask why."""
        return self.longest_run >= LONG_RUN


def rating_habits(engine: Engine) -> dict[str, RatingHabits]:
    """Return the habits of every clinician who has rated in the room, by handle.

    Of ratings made elsewhere neither times nor the order is known; simulated raters are left out.
    """
    timed = showings_by_rater(engine)
    given: dict[str, list[tuple[tuple[str, float], ...]]] = {}
    with reading(engine) as session:
        for one in readings(session, kinds=[Kind.CLINICIAN], raters=timed.keys()) if timed else ():
            if one.scores:
                given.setdefault(one.handle, []).append(tuple(sorted(one.scores.items())))
    return {
        handle: RatingHabits(
            handle,
            n_timed=len(showings),
            n_hasty=sum(one.is_hasty for one in showings),
            median_seconds=median(one.seconds for one in showings) if showings else None,
            longest_run=max((len([*run]) for _, run in groupby(given.get(handle, ()))), default=0),
        )
        for handle, showings in sorted(timed.items())
    }


@only(Role.COORDINATOR)
def odd_habits(_: Person, engine: Engine) -> list[RatingHabits]:
    """Return the habits of those who were fast or gave the same scores over and over."""
    return [one for one in rating_habits(engine).values() if one.is_fast or one.is_straight]
