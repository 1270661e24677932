"""Who is asking, and what they may do. Reads and acts that are not for everybody ask here."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar, cast

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import reading
from data.errors import NotAllowed
from data.schema import Event, Role

Given = ParamSpec("Given")
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody signed in.

    Attributes
    ----------
    id
        The account.
    rater
        The clinician's primary key as a rater; None for those who do not rate.
    access
        The way in that was used, by its public half; who it is does not depend on it.
    """

    id: int
    name: str
    role: Role
    rater: int | None = None
    access: str = field(default="", compare=False)

    @property
    def actor(self) -> str:
        """How the record names this person: by number, never by name."""
        if self.rater is not None:
            return f"rater {self.rater}"
        return f"account {self.id}" if self.id else "coordinator"


# Whoever can open the database itself: the command line acts for them.
OPERATOR = Person(0, "the command line", Role.COORDINATOR)


def require(person: Person, *roles: Role) -> None:
    """Raise NotAllowed unless a person has one of these roles; ask where data is read."""
    if person.role not in roles:
        raise NotAllowed(f"{person.name} is a {person.role}: this is for a {' or a '.join(roles)}")


def only(
    *roles: Role,
) -> Callable[
    [Callable[Concatenate[Person, Given], Found]], Callable[Concatenate[Person, Given], Found]
]:
    """Let only people of these roles call a function; its first argument is who asks."""

    def guard(
        function: Callable[Concatenate[Person, Given], Found],
    ) -> Callable[Concatenate[Person, Given], Found]:
        @wraps(function)
        def guarded(person: Person, /, *args: Given.args, **kwargs: Given.kwargs) -> Found:
            require(person, *roles)
            return function(person, *args, **kwargs)

        guarded.roles = frozenset(roles)  # type: ignore[attr-defined] # a test asks every screen for it
        return cast(Callable[Concatenate[Person, Given], Found], guarded)

    return guard


def asking(
    function: Callable[Given, Found], *roles: Role
) -> Callable[Concatenate[Person, Given], Found]:
    """Return a function that also takes who calls it, first, and lets only these roles call it."""

    @wraps(function)
    def asked(_: Person, /, *args: Given.args, **kwargs: Given.kwargs) -> Found:
        return function(*args, **kwargs)

    return only(*roles)(asked)


UNBLINDED, REOPENED = "unblinded", "reopened"
_LAST_LIFTED = (
    select(Event.action)
    .where(col(Event.action).in_((UNBLINDED, REOPENED)))
    .order_by(col(Event.id).desc())
    .limit(1)
)


def is_blind_in(session: Session) -> bool:
    """Tell whether the blind was never lifted, or not since the study was last reopened."""
    return session.exec(_LAST_LIFTED).first() != UNBLINDED


def is_blind(engine: Engine) -> bool:
    """Tell whether a study is blind: see `is_blind_in`."""
    with reading(engine) as session:
        return is_blind_in(session)
