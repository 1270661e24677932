"""Clinicians and their ways in. A code is shown once; only its hash is stored."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from argon2 import PasswordHasher
from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import transaction
from data.errors import BadInput, Unknown
from data.schema import Access, Account, Kind, Rater, Role, Setting, now
from data.store.audit import log, refuse_locked

ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
GROUP, GROUPS = 4, 4
SIGNING_KEY = "signing_key"


@dataclass(frozen=True, slots=True)
class Invitation:
    """A clinician and the code that signs them in, in clear: hand it over, it is not kept."""

    handle: str
    code: str


def invite(
    engine: Engine, handles: Sequence[str], simulated: Sequence[str] = ()
) -> list[Invitation]:
    """Add clinicians and return a code for each that has none yet.

    A clinician who already has a way in keeps it and gets no second code. Those named in
    `simulated` are marked so and get none.
    """
    repeated = sorted({one for one in handles if list(handles).count(one) > 1})
    if repeated or "" in handles:
        raise BadInput(f"raters: {repeated[0] if repeated else 'an empty name'!r} stands twice")
    with transaction(engine) as session:
        refuse_locked(session)
        people = [(_keep(session, one, one in simulated), one) for one in handles]
        return [
            Invitation(handle, _new_code(session, _account(session, rater)))
            for rater, handle in people
            if handle not in simulated and not _has_access(session, _account(session, rater))
        ]


def renew(engine: Engine, handle: str) -> Invitation:
    """Give a clinician a new code; the old ones no longer sign in.

    Raises
    ------
    Unknown
        If the study has no clinician of that name.
    """
    with transaction(engine) as session:
        person = session.exec(select(Rater).where(Rater.handle == handle)).first()
        if person is None or person.kind != Kind.CLINICIAN or person.simulated:
            raise Unknown(f"clinician {handle!r}: nobody of that name can sign in to this study")
        account = _account(session, person)
        for old in session.exec(select(Access).where(Access.account == account.id)):
            old.revoked = old.revoked or now()
            session.add(old)
        return Invitation(handle, _new_code(session, account))


def signing_key(engine: Engine) -> str:
    """Return the key that signs this study's sessions, made at first use."""
    with transaction(engine) as session:
        stored = session.get(Setting, SIGNING_KEY)
        if stored is None:
            stored = Setting(key=SIGNING_KEY, value=secrets.token_urlsafe(32))
            session.add(stored)
        return stored.value


def _keep(session: Session, handle: str, simulated: bool) -> Rater:
    """Return the clinician of that name, made if new."""
    known = session.exec(select(Rater).where(Rater.handle == handle)).first()
    if known is None:
        known = Rater(kind=Kind.CLINICIAN, handle=handle, simulated=simulated)
        session.add(known)
        session.flush()
        log(session, "coordinator", "clinician added", {"rater": known.id})
    if known.kind != Kind.CLINICIAN:
        raise BadInput(f"rater {handle!r} is a {known.kind} in this study; use another name")
    return known


def _account(session: Session, rater: Rater) -> Account:
    """Return a clinician's account, made if new."""
    known = session.exec(select(Account).where(Account.rater == rater.id)).first()
    if known is None:
        known = Account(name=rater.handle, role=Role.CLINICIAN, rater=rater.id)
        session.add(known)
        session.flush()
    return known


def _has_access(session: Session, account: Account) -> bool:
    valid = select(Access).where(Access.account == account.id, col(Access.revoked).is_(None))
    return session.exec(valid).first() is not None


def _new_code(session: Session, account: Account) -> str:
    """Store a new code's hash and return the code: its first group finds it, the rest proves it."""
    groups = ["".join(secrets.choice(ALPHABET) for _ in range(GROUP)) for _ in range(GROUPS)]
    while session.get(Access, groups[0]) is not None:
        groups[0] = "".join(secrets.choice(ALPHABET) for _ in range(GROUP))
    secret = "".join(groups[1:])
    session.add(
        Access(lookup=groups[0], account=account.id or 0, secret_hash=PasswordHasher().hash(secret))
    )
    session.flush()
    log(session, "coordinator", "code issued", {"account": account.id, "lookup": groups[0]})
    return "-".join(groups)
