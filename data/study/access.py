"""Ways in: codes, links that work once, and hospital accounts. Only hashes are stored.

Signing in and out is recorded. A failed attempt is not: anyone could flood the record with those.
"""

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from argon2 import PasswordHasher
from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import transaction
from data.errors import Conflict, NotAllowed
from data.person import Person
from data.record import log
from data.schema import Access, Account, Event, Setting, now

ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
GROUP, GROUPS = 4, 4
SESSION_KEY = "session_key"  # in no copy of a study: who has it signs in as anybody
PSEUDONYM_KEY = "signing_key"  # in every copy: the same file read again has the same people
# What the hash of a way in begins with that a hospital account opened: no code fits it.
NO_HASH = "-"
SIGNED_OUT, KEY_MADE, EMAIL_ACT = "signed out", "key made", "e-mail"


@dataclass(frozen=True, slots=True)
class Way:
    """How somebody is let in: by a code that stays theirs, or by a link that works `once`.

    `days` ends it; sessions opened before go on.
    """

    once: bool = False
    days: int | None = None


PERSONAL_CODE = Way()


@dataclass(frozen=True, slots=True)
class Entered:
    """Who has just signed in; after a link that works once, the code they come back with."""

    person: Person
    code: str = ""


def enter(engine: Engine, person: Person) -> Entered:
    """Record that somebody signs in by their way in; a link that works once is used up.

    Raises
    ------
    NotAllowed
        If the way in was used up, revoked or has expired meanwhile. However many use one
        link at once, one of them is let in.
    """
    with transaction(engine) as session:
        way = session.exec(
            select(Access).where(Access.lookup == person.access).with_for_update()
        ).first()
        account = session.get(Account, person.id)
        expired = way is not None and way.expires is not None and way.expires <= now()
        if way is None or way.revoked or expired or (way.once and way.used):
            raise NotAllowed("this way in is no longer valid")
        if account is None or account.ended:
            raise NotAllowed("this way in is no longer valid")
        way.used = now()
        session.add(way)
        detail = {"account": account.id, "lookup": way.lookup}
        log(session, person.actor, "signed in", detail)
        return Entered(person, new_code(session, person.actor, account) if way.once else "")


def enter_by_email(engine: Engine, person: Person, number: str = "", subject: str = "") -> Entered:
    """Record that somebody signs in by their hospital account, as a way in used up at once.

    The first hospital account that comes by an address is the only one that may, until a
    coordinator gives the person another address. `subject` tells it: a hash of issuer and subject.

    Raises
    ------
    NotAllowed
        If the account has ended, or the sign-in of this number was taken in before, at any server.
    Conflict
        If another hospital account came by this address first.
    """
    with transaction(engine) as session:
        account = session.get(Account, person.id)
        if account is None or account.ended:
            raise NotAllowed("this account has ended")
        lookup = f"oidc-{number or secrets.token_hex(8)}"
        if session.get(Access, lookup) is not None:
            raise NotAllowed("this sign-in was used before")
        own = f"{NO_HASH}{subject}"
        if not _subjects(session, person.id) <= {own}:
            raise Conflict("another hospital account signed in by this address before")
        way = Access(lookup=lookup, account=person.id, secret_hash=own, once=True, used=now())
        session.add(way)
        detail = {"account": person.id, "lookup": lookup}
        log(session, person.actor, "signed in", detail)
    return Entered(Person(person.id, person.name, person.role, person.rater, access=lookup))


def _subjects(session: Session, account: int) -> set[str]:
    """Return the hospital accounts that came by the present address of a person."""
    given = select(Event).where(col(Event.action).startswith(EMAIL_ACT))
    since = [one.at for one in session.exec(given) if one.detail["account"] == account]
    came = select(Access.secret_hash).where(
        Access.account == account,
        col(Access.secret_hash).startswith(NO_HASH),
        col(Access.used) > max(since, default=datetime.min.replace(tzinfo=UTC)),
    )
    return {*session.exec(came)}


def leave(engine: Engine, person: Person, number: str) -> None:
    """Record that somebody signs out of the session of this number: no server takes it again."""
    detail = {"account": person.id, "lookup": person.access, "session": number}
    with transaction(engine) as session:
        log(session, person.actor, SIGNED_OUT, detail)


def new_code(session: Session, actor: str, account: Account, way: Way = PERSONAL_CODE) -> str:
    """Store a new code's hash and return the code: its first group finds it, the rest proves it."""
    groups = ["".join(secrets.choice(ALPHABET) for _ in range(GROUP)) for _ in range(GROUPS)]
    while session.get(Access, groups[0]) is not None:
        groups[0] = "".join(secrets.choice(ALPHABET) for _ in range(GROUP))
    new = Access(
        lookup=groups[0],
        account=account.id or 0,
        secret_hash=PasswordHasher().hash("".join(groups[1:])),
        once=way.once,
        expires=None if way.days is None else now() + timedelta(days=way.days),
    )
    session.add(new)
    detail = {"account": account.id, "lookup": groups[0], "once": way.once, "days": way.days}
    log(session, actor, "code issued", detail)
    return "-".join(groups)


def revoke(session: Session, actor: str, account: Account) -> None:
    """End every way in of an account, and with them its sessions."""
    query = select(Access).where(Access.account == account.id, col(Access.revoked).is_(None))
    accesses = session.exec(query).all()
    for access in accesses:
        access.revoked = now()
        session.add(access)
    if accesses:
        log(session, actor, "codes revoked", {"account": account.id})


def study_key(engine: Engine, name: str) -> str:
    """Return a key of this study, made at first use.

    That of `SESSION_KEY` signs its sessions, and is another in each copy; that of `PSEUDONYM_KEY` makes its
    pseudonyms, and is kept in its copies.
    """
    with transaction(engine) as session:
        stored = session.get(Setting, name)
        if stored is None:
            value = secrets.token_urlsafe(32)
            session.add(Setting(key=name, value=value))
            log(session, "medjury", KEY_MADE, {"key": name})
            return value
        return stored.value
