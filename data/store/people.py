"""Adding people, giving them codes, addresses and specialties, and shutting them out.

A code is shown once; only its hash is stored.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import transaction
from data.errors import BadInput, Conflict, Unknown
from data.person import OPERATOR, Person, only
from data.record import log, new_salt, refuse_locked
from data.schema import Access, Account, Kind, Rater, Role, now
from data.store.access import NO_HASH, PERSONAL_CODE, Way, new_code, revoke

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
        return [
            Invitation(handle, new_code(session, OPERATOR.actor, account))
            for account, handle in accounts
            if not account.ended and not _has_access(session, account)
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


def renew(engine: Engine, handle: str) -> Invitation:
    """Give a person a new code; the old ones no longer sign in."""
    return renew_access(OPERATOR, engine, handle)


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
            f"{name} is in this study already; give them a new code (`medjury rate people renew`; "
            "in the app: People, Manage)"
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
    accesses = select(Access).where(Access.account == account.id, Access.secret_hash == NO_HASH)
    ended = session.exec(accesses.where(col(Access.revoked).is_(None))).all()
    for access in ended:
        access.revoked = now()
    act = "removed" if address is None else "changed" if account.email else "given"
    account.email = address
    session.add(account)
    log(session, by.actor, f"e-mail {act}", {"account": account.id})
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


def _has_access(session: Session, account: Account) -> bool:
    valid = select(Access).where(Access.account == account.id, col(Access.revoked).is_(None))
    return session.exec(valid).first() is not None
