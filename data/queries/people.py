"""Who is signed in."""

from dataclasses import dataclass
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError
from sqlalchemy import Engine
from sqlmodel import col, select

from data.database import reading
from data.schema import Access, Rater


@dataclass(frozen=True, slots=True)
class Person:
    """A signed-in clinician."""

    id: int
    handle: str


def person_by_code(engine: Engine, code: str) -> Person | None:
    """Return the clinician a sign-in code belongs to; None, in the same time, if to nobody."""
    lookup, _, secret = code.strip().upper().replace(" ", "").partition("-")
    query = (
        select(Access.secret_hash, Rater.id, Rater.handle)
        .join(Rater, col(Rater.id) == col(Access.rater))
        .where(Access.lookup == lookup, col(Access.revoked).is_(None))
    )
    with reading(engine) as session:
        found = session.exec(query).first()
    stored, rater, handle = found or (_nobody(), None, "")
    try:
        PasswordHasher().verify(stored, secret.replace("-", ""))
    except VerifyMismatchError:
        return None
    return Person(rater, handle) if rater is not None else None


def person(engine: Engine, rater: int) -> Person | None:
    """Return a clinician by primary key, if their access has not been revoked."""
    query = (
        select(Rater.handle)
        .join(Access, col(Access.rater) == col(Rater.id))
        .where(Rater.id == rater, col(Access.revoked).is_(None))
    )
    with reading(engine) as session:
        handle = session.exec(query).first()
    return None if handle is None else Person(rater, handle)


@cache
def _nobody() -> str:
    """Return a hash that no code has, so that a wrong code takes as long as a right one."""
    return PasswordHasher().hash("nobody")
