"""People of a study: added, given codes, addresses and specialties, signed in, shut out.

A code is shown once; only its hash is stored.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any

from argon2 import PasswordHasher
from argon2.exceptions import VerificationError
from sqlalchemy import Engine, bindparam, func, true
from sqlalchemy import select as select_columns
from sqlmodel import Session, col, select

from data.database import glance, reading, transaction
from data.errors import BadInput, Conflict, Unknown
from data.person import OPERATOR, Person, only
from data.record import log, new_salt, refuse_locked
from data.schema import (
    Access,
    Account,
    Assignment,
    Event,
    Kind,
    Rater,
    Rating,
    Remark,
    Role,
    State,
    now,
)
from data.study.access import EMAIL_ACT, NO_HASH, PERSONAL_CODE, SIGNED_OUT, Way, new_code, revoke
from data.study.base import BY_CLINICIAN, NEWEST_SUBMISSION, columns_of
from data.study.settings import Consent, consents

EMAIL = re.compile(r"(?!.{255})[^@\s]+@[^@\s]+\.[^@\s]+")
LONGEST_NAME, LONGEST_SPECIALTY = 80, 60
REMINDED = "reminder sent"


@dataclass(frozen=True, slots=True)
class Invitation:
    """A person and the code that signs them in, in clear: hand it over, it is not kept."""

    handle: str
    code: str


def invite(engine: Engine, handles: Sequence[str]) -> list[Invitation]:
    """Add clinicians and return a code for each that has none yet.

    A clinician who already has a way in keeps it and gets no second code; one who was shut
    out gets none.
    """
    _refuse_repeats(handles)
    with transaction(engine) as session:
        refuse_locked(session)
        raters = [_rater(session, OPERATOR, handle) for handle in handles]
        accounts = [(_account(session, OPERATOR, rater), rater.handle) for rater in raters]
        valid = set(session.exec(select(Access.account).where(col(Access.revoked).is_(None))))
        return [
            Invitation(handle, new_code(session, OPERATOR.actor, account))
            for account, handle in accounts
            if not account.ended and account.id not in valid
        ]


@only(Role.COORDINATOR)
def add_people(
    by: Person,
    engine: Engine,
    names: Sequence[str],
    role: Role = Role.CLINICIAN,
    email: str | None = None,
    way: Way = PERSONAL_CODE,
) -> list[Invitation]:
    """Add people who may sign in, and return a code for each.

    Parameters
    ----------
    email
        Lets a hospital account with this address in; for one person only.

    Raises
    ------
    NotAllowed
        Unless `by` is a coordinator.
    BadInput
        If a name or the address cannot be used, or the name is a juror's.
    Conflict
        If a name is in the study already, or somebody who may sign in has the address.
        Nobody is added then.
    """
    _refuse_repeats(names)
    if email and len(names) != 1:
        raise BadInput(f"e-mail {email}: belongs to one person, but {len(names)} were named")
    with transaction(engine) as session:
        accounts = [_newcomer(session, by, name, role) for name in names]
        if email and email.strip():
            _give_email(session, by, accounts[0], email)
        return [
            Invitation(account.name, new_code(session, by.actor, account, way))
            for account in accounts
        ]


@only(Role.COORDINATOR)
def renew_access(by: Person, engine: Engine, name: str, way: Way = PERSONAL_CODE) -> Invitation:
    """Give a person a new code and end the old ones with their sessions; lets back in who was out.

    Raises
    ------
    NotAllowed
        Unless `by` is a coordinator.
    Unknown
        If nobody of that name can sign in to the study.
    """
    with transaction(engine) as session:
        account = _account_of(session, by, name)
        revoke(session, by.actor, account)
        if account.ended is not None:
            account.ended = None
            session.add(account)
            log(session, by.actor, "person let back in", {"account": account.id})
        return Invitation(account.name, new_code(session, by.actor, account, way))


@only(Role.COORDINATOR)
def end_access(by: Person, engine: Engine, name: str) -> bool:
    """Shut a person out at once, with all sessions; ratings stay. False if they were out already.

    Raises
    ------
    NotAllowed
        Unless `by` is a coordinator.
    BadInput
        If people mean to shut themselves out.
    Unknown
        If nobody of that name can sign in to the study.
    """
    with transaction(engine) as session:
        account = _account_of(session, by, name)
        if account.id == by.id:
            raise BadInput("you cannot shut yourself out; another coordinator can")
        if account.ended is not None:
            return False
        revoke(session, by.actor, account)
        account.ended = now()
        session.add(account)
        log(session, by.actor, "person shut out", {"account": account.id})
    return True


@only(Role.COORDINATOR)
def set_email(by: Person, engine: Engine, name: str, email: str | None) -> bool:
    """Give a person another e-mail address, or none; False if that is so already.

    Sessions that the old address opened end. An address of somebody shut out leaves them.

    Raises
    ------
    NotAllowed, Unknown
        Unless `by` is a coordinator; if nobody of that name can sign in to the study.
    BadInput, Conflict
        If it is not an address; if it is that of somebody else who may sign in.
    """
    with transaction(engine) as session:
        return _give_email(session, by, _account_of(session, by, name), email)


@only(Role.COORDINATOR)
def reminded(by: Person, engine: Engine, account: int) -> None:
    """Record that a person (their account) was sent a reminder."""
    with transaction(engine) as session:
        log(session, by.actor, REMINDED, {"account": account})


@only(Role.COORDINATOR)
def set_specialty(by: Person, engine: Engine, name: str, specialty: str) -> bool:
    """Say what a clinician's specialty is, "" for none; False if that is so already.

    Clinicians who rated elsewhere, and never sign in, can have one too.

    Raises
    ------
    NotAllowed, Unknown
        Unless `by` is a coordinator; if the study has no such clinician, or is locked.
    BadInput
        If it is no short name.
    """
    shortened = specialty.strip()
    if len(shortened) > LONGEST_SPECIALTY or not shortened.isprintable():
        raise BadInput(f"specialty of {name}: takes at most {LONGEST_SPECIALTY} visible characters")
    with transaction(engine) as session:
        refuse_locked(session)
        query = select(Rater).where(Rater.handle == name, col(Rater.kind) == Kind.CLINICIAN)
        rater = session.exec(query).first()
        if rater is None:
            raise Unknown(f"this study has no clinician {name}")
        if rater.specialty == shortened:
            return False
        rater.specialty = shortened
        session.add(rater)
        detail = {"rater": name, "specialty": shortened}
        log(session, by.actor, "specialty said", detail)
        return True


def _refuse_repeats(names: Sequence[str]) -> None:
    """Raise BadInput for a name that stands twice or cannot be one."""
    for name in names:
        if list(names).count(name) > 1:
            raise BadInput(f"name {name!r}: stands twice")
        if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
            raise BadInput(f"name {name!r}: must be 1 to {LONGEST_NAME} visible characters")


def _newcomer(session: Session, by: Person, name: str, role: Role) -> Account:
    """Return a new account; a clinician's is that of a rater."""
    if session.exec(select(Account).where(Account.name == name)).first() is not None:
        raise Conflict(
            f"{name} is in this study already; give them a new code (`medjury rate people change NAME "
            "--renew`; in the app: Home, People)"
        )
    rater = None
    if role == Role.CLINICIAN:
        refuse_locked(session)
        rater = _rater(session, by, name)
        if rater.simulated:
            raise Conflict(f"{name} is a simulated clinician in this study; use another name")
    return _new_account(session, by, name, role, rater.id if rater else None)


def _give_email(session: Session, by: Person, account: Account, email: str | None) -> bool:
    """Store an address in small letters, or none, and end the sessions that the old one opened."""
    address = email if email is None else email.strip().lower()
    if address == account.email:
        return False
    if address is not None and not EMAIL.fullmatch(address):
        raise BadInput(f"e-mail {email!r}: is not an address such as name@hospital.example")
    holder = session.exec(select(Account).where(col(Account.email) == address)).first()
    if address is not None and holder is not None:
        if holder.ended is None:
            raise Conflict(f"e-mail {address}: belongs to {holder.name} in this study already")
        _give_email(session, by, holder, None)
    by_hospital = select(Access).where(
        Access.account == account.id, col(Access.secret_hash).startswith(NO_HASH)
    )
    for access in session.exec(by_hospital.where(col(Access.revoked).is_(None))).all():
        access.revoked = now()
    act = "removed" if address is None else "changed" if account.email else "given"
    account.email = address
    session.add(account)
    log(session, by.actor, f"{EMAIL_ACT} {act}", {"account": account.id})
    return True


def _account_of(session: Session, by: Person, name: str) -> Account:
    """Return the account of that name; a clinician without one so far is given one."""
    account = session.exec(select(Account).where(Account.name == name)).first()
    if account is not None:
        return account
    rater = session.exec(select(Rater).where(Rater.handle == name)).first()
    if rater is None or rater.kind != Kind.CLINICIAN or rater.simulated:
        raise Unknown(
            f"person {name!r}: nobody of that name can sign in to this study "
            "(`medjury rate people list` names those who can)"
        )
    return _account(session, by, rater)


def _rater(session: Session, by: Person, handle: str) -> Rater:
    """Return the clinician of that name, made if new."""
    rater = session.exec(select(Rater).where(Rater.handle == handle)).first()
    if rater is None:
        rater = Rater(kind=Kind.CLINICIAN, handle=handle)
        session.add(rater)
        session.flush()
        log(session, by.actor, "clinician added", {"rater": rater.id})
    if rater.kind != Kind.CLINICIAN:
        raise BadInput(f"rater {handle!r} is a {rater.kind} in this study; use another name")
    return rater


def _account(session: Session, by: Person, rater: Rater) -> Account:
    """Return a clinician's account, made if new."""
    account = session.exec(select(Account).where(Account.rater == rater.id)).first()
    if account is None:
        other = session.exec(select(Account).where(Account.name == rater.handle)).first()
        if other is not None:
            raise BadInput(
                f"{other.name} is a {other.role} in this study; name the clinician otherwise"
            )
        account = _new_account(session, by, rater.handle, Role.CLINICIAN, rater.id)
    return account


def _new_account(session: Session, by: Person, name: str, role: Role, rater: int | None) -> Account:
    account = Account(name=name, role=role, rater=rater, salt=new_salt())
    session.add(account)
    session.flush()
    detail = {"account": account.id, "role": role}
    log(session, by.actor, "person added", detail)
    return account


DONE = (State.DONE, State.UNRATED)
RECUSED = "recused"
LOOKUP = 4  # signs of a code that find it; the rest prove it
# What must hold for a session: its way in not revoked, the account not ended.
_VALID = (col(Access.revoked).is_(None), col(Account.ended).is_(None))
_BY_ACCESS = (
    select(Account.id, Account.name, Account.role, Account.rater)
    .join(Access)
    .where(Access.lookup == bindparam("lookup"), *_VALID)
)
_NEWEST = select(func.max(Event.id))
_SIGNED_OUT = select(Event.detail).where(
    col(Event.id) > bindparam("after"), Event.action == SIGNED_OUT
)
_HERE, _LEFT = _BY_ACCESS.subquery(), _SIGNED_OUT.subquery()
_NOW = select(_NEWEST.scalar_subquery().label("newest")).subquery()
# All in one: the newest event and whose session it is, in a row for each who was signed out.
_SESSION = (
    select_columns(_NOW.c.newest, *_HERE.c, _LEFT.c.detail)
    .select_from(_NOW)
    .outerjoin(_HERE, true())
    .outerjoin(_LEFT, true())
)


class CodeOutcome(StrEnum):
    """What a code turned out to be. All but WRONG is told only to whoever has the whole code."""

    GOOD = "good"
    WRONG = "wrong"
    USED = "used"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class CodeCheck:
    """A code that was checked: whose it is, or why it does not sign in."""

    person: Person | None
    outcome: CodeOutcome


@dataclass(frozen=True, slots=True)
class PersonView:
    """A person as a coordinator sees them.

    Attributes
    ----------
    done, total
        Responses rated, of those assigned; 0 of 0 for those who do not rate.
    last
        When they last signed in, opened or rated something; None if never.
    way
        "code", "link" (not used so far), "none" or "ended".
    consent
        None for those who are not asked for it.
    specialty
        A clinician's, "" where none is said.
    """

    id: int
    name: str
    role: Role
    email: str | None
    done: int
    total: int
    last: datetime | None
    way: str
    consent: Consent | None = None
    specialty: str = ""


@dataclass(frozen=True, slots=True)
class Workload:
    """A clinician's work. Repeats count as work; work given back does not.

    Attributes
    ----------
    done, total
        Showings ended and assigned; `unrated` of those ended could not be rated.
    recused, flagged
        Showings given back; showings whose newest submission has a flag.
    elsewhere
        Responses rated by an import, without an assignment.
    seconds
        Median active seconds of what is done; None where nothing is.
    open_since
        When the oldest of what is still to be rated was given; None where nothing is, or not known.
    ended
        Whether they were shut out.
    """

    handle: str
    simulated: bool
    ended: bool
    done: int
    total: int
    unrated: int
    recused: int
    flagged: int
    elsewhere: int
    last: datetime | None
    seconds: float | None
    open_since: datetime | None = None

    @property
    def open(self) -> int:
        """Showings still to be rated."""
        return self.total - self.done


def opening_of(code: str) -> str:
    """Return the signs of a code that find it, however it was typed."""
    return _letters_and_digits(code)[:LOOKUP]


def _letters_and_digits(code: str) -> str:
    return "".join(sign for sign in code.upper() if sign.isalnum())


def is_opening(engine: Engine, opening: str) -> bool:
    """Return whether a valid code begins so: all that can be told without its costly check."""
    query = select(Access.lookup).join(Account).where(Access.lookup == opening, *_VALID)
    with reading(engine) as session:
        return session.exec(query).first() is not None


def check_code(engine: Engine, code: str) -> CodeCheck:
    """Return whom a sign-in code belongs to; a wrong one takes as long as a right one."""
    lookup, secret = opening_of(code), _letters_and_digits(code)[LOOKUP:]
    query = select(Access, Account).join(Account).where(Access.lookup == lookup, *_VALID)
    with reading(engine) as session:
        row = session.exec(query).first()
        session.expunge_all()
    if not _is_secret(row[0].secret_hash if row else _unused_hash(), secret) or row is None:
        return CodeCheck(None, CodeOutcome.WRONG)
    way, account = row
    if way.once and way.used is not None:
        return CodeCheck(None, CodeOutcome.USED)
    if way.expires is not None and way.expires <= now():
        return CodeCheck(None, CodeOutcome.EXPIRED)
    who = account.id, account.name, account.role, account.rater
    return CodeCheck(_holder(who, lookup), CodeOutcome.GOOD)


def person_by_access(engine: Engine, lookup: str) -> Person | None:
    """Return whose session it is that began by this way in, unless that was revoked."""
    with reading(engine) as session:
        row = session.execute(_BY_ACCESS, {"lookup": lookup}).first()
    return None if row is None else _holder(row, lookup)


@dataclass(frozen=True, slots=True)
class SessionState:
    """What the study knows of a session: whose it is, and which sessions were signed out since.

    `person` is None where its way in was revoked or the account ended; `newest` is the number of
    the newest event.
    """

    person: Person | None
    newest: int
    left: tuple[str, ...]


def session_state(engine: Engine, lookup: str, after: int) -> SessionState:
    """Return whose session it is that began by this way in, and who was signed out after an event.

    One reading, since every request asks it.
    """
    with glance(engine) as session:
        rows = session.execute(_SESSION, {"lookup": lookup, "after": after}).all()
    newest, *holder = rows[0][:-1]
    return SessionState(
        _holder(holder, lookup) if holder[0] else None,
        newest or 0,
        tuple(str(detail["session"]) for *_, detail in rows if detail and "session" in detail),
    )


def _holder(row: Sequence[Any], lookup: str = "") -> Person:
    key, name, role, rater = row
    return Person(key or 0, name, Role(role), rater, access=lookup)


def person_by_email(engine: Engine, email: str) -> Person | None:
    """Return whose e-mail address this is, in small letters or large; None if nobody's."""
    columns = Account.id, Account.name, Account.role, Account.rater
    own = Account.email == email.strip().lower(), col(Account.ended).is_(None)
    with reading(engine) as session:
        row = session.execute(columns_of(*columns).where(*own)).first()
    return None if row is None else _holder(row)


def has_coordinator(engine: Engine) -> bool:
    """Return whether anybody can steer the study in the app."""
    query = select(Account.id).where(Account.role == Role.COORDINATOR, col(Account.ended).is_(None))
    with reading(engine) as session:
        return session.exec(query).first() is not None


@only(Role.COORDINATOR)
def people(_: Person, engine: Engine) -> list[PersonView]:
    """Return everybody who may sign in or once could, coordinators first, then by name."""
    done = func.count(col(Assignment.id)).filter(col(Assignment.state) != State.OPEN)
    times = (func.max(col(Assignment.done_at)), func.max(col(Assignment.opened_at)))
    work = (
        columns_of(Assignment.rater, done, func.count(col(Assignment.id)), *times)
        .where(col(Assignment.state) != State.RECUSED)
        .group_by(col(Assignment.rater))
    )
    consents_given = {consent.rater: consent for consent in consents(engine)}
    views = []
    with reading(engine) as session:
        work_of = {row[0]: tuple(row[1:]) for row in session.exec(work)}
        accesses: dict[int, list[Access]] = {}
        for access in session.exec(select(Access).order_by(col(Access.created))):
            accesses.setdefault(access.account, []).append(access)
        specialties = dict(session.exec(select(Rater.id, Rater.specialty)).all())
        for account in session.exec(select(Account)):
            key, rater = account.id or 0, account.rater or 0
            ways = accesses.get(key, [])
            done_there, total, *came = work_of.get(rater, (0, 0))
            seen = [*came, *(access.used for access in ways)]
            views.append(
                PersonView(
                    *(key, account.name, Role(account.role), account.email, done_there, total),
                    last=max((at for at in seen if at), default=None),
                    way="ended" if account.ended else _way(ways),
                    consent=consents_given.get(rater),
                    specialty=specialties.get(rater, ""),
                )
            )
    order = [Role.COORDINATOR, Role.RESEARCHER, Role.CLINICIAN]
    return sorted(views, key=lambda view: (view.way == "ended", order.index(view.role), view.name))


@only(Role.RESEARCHER, Role.COORDINATOR)
def names_of_actors(person: Person, engine: Engine) -> dict[str, str]:
    """Return how the record calls an account -> its name; nothing for who may not see people."""
    if person.role != Role.COORDINATOR:
        return {}
    with reading(engine) as session:
        rows = session.exec(select(Account.id, Account.name)).all()
    return {f"account {number}": name for number, name in rows}


# Clinician -> showings with a flag in their newest submission, and responses rated unassigned.
_FLAGGED = (
    select(Assignment.rater, func.count(func.distinct(Assignment.id)))
    .join(Remark)
    .where(Remark.kind != RECUSED, Remark.revision == NEWEST_SUBMISSION, BY_CLINICIAN)
    .group_by(col(Assignment.rater))
)
_ELSEWHERE = (
    select(Rating.rater, func.count(func.distinct(Rating.response)))
    .where(
        col(Rating.rater).in_(select(Rater.id).where(Rater.kind == Kind.CLINICIAN)),
        ~select(Assignment.id)
        .where(Assignment.rater == Rating.rater, Assignment.response == Rating.response)
        .exists(),
    )
    .group_by(col(Rating.rater))
)


@only(Role.RESEARCHER, Role.COORDINATOR)
def workloads(_: Person, engine: Engine) -> list[Workload]:
    """Return every clinician's work, by name; those who neither rated nor are to rate left out."""
    query = (
        select(Rater.id, Rater.handle, Rater.simulated, Account.ended)
        .select_from(Rater)
        .outerjoin(Account)
        .where(Rater.kind == Kind.CLINICIAN)
        .order_by(col(Rater.handle))
    )
    columns = (
        *(Assignment.rater, Assignment.state, Assignment.seconds_active, Assignment.done_at),
        Assignment.assigned_at,
    )
    showings: dict[int, list[Any]] = {}
    with reading(engine) as session:
        for row in session.exec(columns_of(*columns)):
            showings.setdefault(row[0], []).append(row)
        flags, elsewhere = (dict(session.exec(counts).all()) for counts in (_FLAGGED, _ELSEWHERE))
        work = [
            _workload(
                showings.get(key or 0, []),
                handle=name,
                simulated=simulated,
                ended=ended is not None,
                flagged=flags.get(key or 0, 0),
                elsewhere=elsewhere.get(key or 0, 0),
            )
            for key, name, simulated, ended in session.exec(query)
        ]
    return [one for one in work if one.total or one.recused or one.elsewhere]


@only(Role.RESEARCHER, Role.COORDINATOR)
def finished_showings(_: Person, engine: Engine, since: datetime) -> list[tuple[str, datetime]]:
    """Return who ended a showing when, from a moment on, oldest first; simulated ones left out."""
    query = (
        columns_of(Rater.handle, Assignment.done_at)
        .select_from(Assignment)
        .join(Rater)
        .where(
            col(Assignment.state).in_(DONE),
            col(Assignment.done_at) >= since,
            col(Rater.simulated).is_(False),
        )
        .order_by(col(Assignment.done_at))
    )
    with reading(engine) as session:
        return [(handle, at) for handle, at in session.exec(query)]


@only(Role.COORDINATOR)
def last_reminded(_: Person, engine: Engine) -> dict[int, datetime]:
    """Return account -> when a reminder was last sent to them."""
    query = select(Event.detail, Event.at).where(Event.action == REMINDED).order_by(col(Event.id))
    with reading(engine) as session:
        return {detail["account"]: at for detail, at in session.exec(query)}


def _way(accesses: list[Access]) -> str:
    """Return how somebody can sign in now."""
    valid = [
        access
        for access in accesses
        if access.revoked is None and (not access.expires or access.expires > now())
    ]
    if any(not access.once for access in valid):
        return "code"
    return "link" if any(access.used is None for access in valid) else "none"


def _is_secret(stored: str, secret: str) -> bool:
    """Return whether a secret is the one that was hashed; a way in without one fits nothing."""
    hashed = stored if stored.startswith("$argon2") else _unused_hash()
    try:
        return PasswordHasher().verify(hashed, secret)
    except VerificationError:
        return False


@cache
def _unused_hash() -> str:
    """Return a hash that no code has, so that a wrong code takes as long as a right one."""
    return PasswordHasher().hash("nobody")


def _workload(rows: Sequence[Any], **known: Any) -> Workload:
    """Return a clinician's work, with what their showings say of it."""
    states = Counter(row.state for row in rows)
    ended = [row for row in rows if row.state in DONE]
    seconds = sorted(row.seconds_active for row in ended if row.state == State.DONE)
    given = [row.assigned_at for row in rows if row.state == State.OPEN]
    return Workload(
        **known,
        done=len(ended),
        total=len(rows) - states[State.RECUSED],
        unrated=states[State.UNRATED],
        recused=states[State.RECUSED],
        last=max((row.done_at for row in ended if row.done_at), default=None),
        seconds=seconds[len(seconds) // 2] if seconds else None,
        open_since=None if None in given else min(given, default=None),
    )
