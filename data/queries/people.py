"""Who is signed in, and what they may do."""

from dataclasses import dataclass
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError
from sqlalchemy import ColumnElement, Engine, or_
from sqlmodel import col, select

from data.database import reading
from data.errors import NotAllowed
from data.schema import Access, Account, Role, now


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody signed in: `id` is the account, `rater` the clinician's primary key as a rater."""

    id: int
    name: str
    role: Role
    rater: int | None = None


def person_by_code(engine: Engine, code: str) -> Person | None:
    """Return whom a sign-in code belongs to; None, in the same time, if to nobody."""
    lookup, _, secret = code.strip().upper().replace(" ", "").partition("-")
    query = (
        select(Access.secret_hash, Account)
        .join(Account, col(Account.id) == col(Access.account))
        .where(Access.lookup == lookup, *_valid(), *_usable())
    )
    with reading(engine) as session:
        found = session.exec(query).first()
    stored, account = found or (_nobody(), None)
    try:
        PasswordHasher().verify(stored, secret.replace("-", ""))
    except VerifyMismatchError:
        return None
    return None if account is None else _person(account)


def person(engine: Engine, account: int) -> Person | None:
    """Return the person of an account, unless it was ended or has no valid way in."""
    query = (
        select(Account)
        .join(Access, col(Access.account) == col(Account.id))
        .where(Account.id == account, *_valid())
    )
    with reading(engine) as session:
        found = session.exec(query).first()
    return None if found is None else _person(found)


def require(person: Person, *roles: Role) -> None:
    """Raise NotAllowed unless a person has one of these roles; ask where data is read."""
    if person.role not in roles:
        raise NotAllowed(f"{person.name} is a {person.role}: this is for a {' or a '.join(roles)}")


def _valid() -> tuple[ColumnElement[bool], ...]:
    """Return what must hold for a session: its way in not revoked, the account not ended."""
    return col(Access.revoked).is_(None), col(Account.ended).is_(None)


def _usable() -> tuple[ColumnElement[bool], ...]:
    """Return what must hold to sign in: the code neither expired nor used up."""
    expires, once = col(Access.expires), col(Access.once)
    return (
        or_(expires.is_(None), expires > now()),
        or_(once.is_(False), col(Access.used).is_(None)),
    )


def _person(account: Account) -> Person:
    return Person(account.id or 0, account.name, Role(account.role), account.rater)


@cache
def _nobody() -> str:
    """Return a hash that no code has, so that a wrong code takes as long as a right one."""
    return PasswordHasher().hash("nobody")
