"""What is withdrawn with a reason, raters joined under one name, and work of those who left.

Nothing is deleted or changed: what is withdrawn stays stored and sealed, and `data.study.readings`
leaves it out.
"""

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import reading, transaction
from data.errors import BadInput, Conflict, Unknown
from data.person import Person, only
from data.record import WITHDRAWN, add_rows, log, refuse_locked
from data.schema import (
    Account,
    Assignment,
    Kind,
    Pair,
    Rater,
    Rating,
    Response,
    Role,
    State,
    Withdrawal,
    now,
)
from data.study.base import columns_of
from data.study.readings import NEWEST

STEER = (Role.RESEARCHER, Role.COORDINATOR)
LONGEST_REASON = 2_000
KEY = ("response", "criterion", "rubric_sha256", "pass_", "replicate")


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A response, a rater, or scores of a rater on a response that count no longer.

    `response` and `rater` are names, None where it is of all; `scores` counts the stored ratings.
    """

    response: str | None
    rater: str | None
    scores: int
    reason: str
    actor: str
    at: datetime

    @property
    def words(self) -> str:
        """What was withdrawn and why, in a line."""
        which = " of ".join(filter(None, (self.rater, self.response)))
        number = f"{self.scores} score" if self.scores == 1 else f"{self.scores} scores"
        return f"withdrawn on {self.at:%Y-%m-%d}: {which} ({number}): {self.reason}"


@only(*STEER)
def withdraw(
    by: Person,
    engine: Engine,
    *,
    response: str | None = None,
    rater: str | None = None,
    reason: str,
) -> int:
    """Withdraw a response with the pairs it is in, all that a rater rated, or one rating of a response.

    Returns how many scores that counted count no longer; 0 where it was withdrawn before.

    Raises
    ------
    BadInput
        Without a reason or anything to withdraw, or if all of a juror would be: it would be asked
        again, and an analysis leaves it out by `--jurors`.
    Unknown
        If the study has no such response, rater or rating.
    NotAllowed
        If the study is locked.
    """
    why = _reason(reason)
    if response is None and rater is None:
        raise BadInput("name the response or the rater to withdraw, or both for one rating")
    with transaction(engine) as session:
        refuse_locked(session)
        about = _response(session, response) if response is not None else None
        who = _rater(session, rater) if rater is not None else None
        if about is None and who is not None and who.kind == Kind.JUROR:
            raise BadInput(f"{rater} is a juror: leave it out of an analysis by its jurors")
        counting = [row.id or 0 for row in _rows(session, about, who)]
        if about is not None and who is not None:
            if not counting:
                raise Unknown(f"{rater} has no rating of {response} that counts")
            keep_withdrawn(session, counting, why, by.actor)
        else:
            column = Withdrawal.rater if about is None else Withdrawal.response
            key = about or (who and who.id)
            if session.exec(select(Withdrawal.id).where(column == key)).first() is not None:
                return 0
            whose = None if who is None else who.id
            session.add(Withdrawal(response=about, rater=whose, reason=why, actor=by.actor))
            compared = select(Pair.response).where((Pair.first == about) | (Pair.second == about))
            gone = select(Withdrawal.response)
            for pair in session.exec(compared.where(col(Pair.response).not_in(gone))):
                session.add(Withdrawal(response=pair, reason=why, actor=by.actor))
        detail = {"response": response, "rater": rater, "scores": len(counting), "reason": why}
        log(session, by.actor, WITHDRAWN, detail)
        return len(counting)


def keep_withdrawn(session: Session, scores: Collection[int], reason: str, actor: str) -> None:
    """Withdraw ratings (primary keys) inside the caller's transaction, whose event seals it."""
    at = now()
    rows = [{"score": key, "reason": reason, "actor": actor, "at": at} for key in scores]
    add_rows(session, Withdrawal, rows)


def withdrawals(engine: Engine) -> list[Withdrawn]:
    """Return all that was withdrawn, oldest first; scores of one rating in one line."""
    query = (
        columns_of(Withdrawal, Rating.response, Rating.rater)
        .select_from(Withdrawal)
        .outerjoin(Rating, col(Rating.id) == col(Withdrawal.score))
        .order_by(col(Withdrawal.id))
    )
    with reading(engine) as session:
        counts: Counter[tuple[Any, ...]] = Counter()
        for row, response, rater in session.exec(query):
            key = (row.response or response, row.rater or rater, row.reason, row.actor, row.at)
            its = Rating.response == row.response if row.response else Rating.rater == row.rater
            newest = select(Rating.id).where(its, NEWEST)
            counts[key] += row.score is not None or len(session.exec(newest).all())
        if not counts:
            return []
        responses = dict(session.exec(select(Response.id, Response.response_id)).all())
        raters = dict(session.exec(select(Rater.id, Rater.handle)).all())
    return [
        Withdrawn(responses.get(response), raters.get(rater), number, *rest)
        for (response, rater, *rest), number in counts.items()
    ]


@only(*STEER)
def join_raters(by: Person, engine: Engine, other: str, name: str, reason: str) -> int:
    """Let what counts of a rater's other spelling count under a name; return how many scores.

    They are stored once more under `name`, and those under `other` are withdrawn.

    Raises
    ------
    Conflict
        If both scored the same thing, or `other` has work in the rating room.
    Unknown, BadInput, NotAllowed
        If one is no rater here; without a reason, or if their kinds differ; if the study is locked.
    """
    why = _reason(reason)
    with transaction(engine) as session:
        refuse_locked(session)
        old, new = _rater(session, other), _rater(session, name)
        if old.id == new.id or old.kind != Kind.CLINICIAN or new.kind != Kind.CLINICIAN:
            raise BadInput(f"{other} and {name}: give two names of clinicians")
        has_work = select(Assignment.id).where(Assignment.rater == old.id).limit(1)
        if session.exec(has_work).first() is not None:
            raise Conflict(f"{other} was given work here: join the other name to this one")
        rows = _rows(session, None, old)
        taken = {_key(row) for row in _rows(session, None, new)}
        if both := [row for row in rows if _key(row) in taken]:
            answer = session.get_one(Response, both[0].response).response_id
            raise Conflict(
                f"{other} and {name} both scored {both[0].criterion} of {answer}: "
                "withdraw one of these ratings first"
            )
        values = (row.model_dump(exclude={"id"}) for row in rows)
        add_rows(session, Rating, [one | {"rater": new.id} for one in values])
        keep_withdrawn(session, [row.id or 0 for row in rows], f"joined to {name}: {why}", by.actor)
        if rows:
            detail = {"rater": other, "to": name, "scores": len(rows), "reason": why}
            log(session, by.actor, "raters joined", detail)
        return len(rows)


def spellings(names: Iterable[str], known: Iterable[str]) -> list[tuple[str, str]]:
    """Return pairs of names, one among `names`, that differ only in case, signs and accents."""
    by_letters: dict[str, list[str]] = {}
    new = {*names}
    for name in sorted({*known} | new):
        plain = unicodedata.normalize("NFKD", name).casefold()
        letters = "".join(sign for sign in plain if sign.isalnum())
        by_letters.setdefault(letters, []).append(name)
    return [
        (first, other)
        for letters, group in by_letters.items()
        if letters
        for place, first in enumerate(group)
        for other in group[place + 1 :]
        if {first, other} & new
    ]


@only(Role.COORDINATOR)
def give_back(by: Person, engine: Engine, name: str) -> int:
    """Free the open work of somebody whose access has ended for others; return how many readings.

    What was entered in it stays stored.

    Raises
    ------
    Unknown
        If nobody of that name has ended.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        account = session.exec(select(Account).where(Account.name == name)).first()
        if account is None or account.ended is None:
            raise Unknown(f"{name}: is nobody whose access has ended")
        mine = (Assignment.rater == account.rater, Assignment.state == State.OPEN)
        rows = session.exec(select(Assignment).where(*mine).with_for_update()).all()
        for row in rows:
            row.state, row.done_at = State.RECUSED, now()
        if rows:
            log(session, by.actor, "open work given back", {"rater": name, "readings": len(rows)})
        return len(rows)


def ended_work(engine: Engine) -> dict[str, int]:
    """Return the clinicians whose access has ended -> their readings that are still open."""
    query = (
        columns_of(Account.name, Assignment.state)
        .select_from(Account)
        .outerjoin(Assignment, col(Assignment.rater) == col(Account.rater))
        .where(col(Account.ended).is_not(None), Account.role == Role.CLINICIAN)
        .order_by(col(Account.name))
    )
    work: Counter[str] = Counter()
    with reading(engine) as session:
        for name, state in session.exec(query):
            work[name] += state == State.OPEN
    return dict(work)


def ended_words(work: dict[str, int]) -> list[str]:
    """Return a sentence for each clinician whose access has ended, with what they left open."""
    return [
        f"{name}'s access has ended"
        + (f", and {number} of their readings are open for nobody" if number else "")
        for name, number in work.items()
    ]


def _reason(reason: str) -> str:
    why = " ".join(reason.split())
    if not 0 < len(why) <= LONGEST_REASON:
        raise BadInput(f"say why in 1 to {LONGEST_REASON:,} characters; every report states it")
    return why


def _response(session: Session, name: str) -> int:
    key = session.exec(select(Response.id).where(Response.response_id == name)).first()
    if key is None:
        raise Unknown(f"response {name}: the study has none of this name")
    return key


def _rater(session: Session, name: str) -> Rater:
    rater = session.exec(select(Rater).where(Rater.handle == name)).first()
    if rater is None:
        raise Unknown(f"rater {name}: the study has none of this name")
    return rater


def _rows(session: Session, response: int | None, rater: Rater | None) -> Sequence[Rating]:
    query = select(Rating).where(NEWEST).order_by(col(Rating.id))
    if response is not None:
        query = query.where(Rating.response == response)
    return session.exec(query if rater is None else query.where(Rating.rater == rater.id)).all()


def _key(row: Rating) -> tuple[Any, ...]:
    return tuple(getattr(row, name) for name in KEY)
