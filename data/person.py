"""People with their roles and rights, and whether the study is blind.

Every read and act that is not for everybody is checked here. While a study is blind, nothing that
depends on who wrote a response is shown. Authors are read in two modules alone,
`data/study/authors.py`, which asks `is_blind`; docs/blinding.md says
what that means for each command and screen.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar, cast

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import reading
from data.errors import NotAllowed
from data.record import REOPENED, UNBLINDED
from data.schema import Event, Kind, Rater, Role

Params = ParamSpec("Params")
Result = TypeVar("Result")
_LAST_LIFTED = (
    select(Event.action)
    .where(col(Event.action).in_((UNBLINDED, REOPENED)))
    .order_by(col(Event.id).desc())
    .limit(1)
)


@dataclass(frozen=True, slots=True)
class Person:
    """A person who is signed in.

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
    """Raise NotAllowed unless a person has one of these roles; call it where data is read."""
    if person.role not in roles:
        raise NotAllowed(f"{person.name} is a {person.role}: this is for a {' or a '.join(roles)}")


def only(
    *roles: Role,
) -> Callable[
    [Callable[Concatenate[Person, Params], Result]], Callable[Concatenate[Person, Params], Result]
]:
    """Return a decorator that lets only people of these roles call a function; the person comes first."""

    def guard(
        function: Callable[Concatenate[Person, Params], Result],
    ) -> Callable[Concatenate[Person, Params], Result]:
        @wraps(function)
        def guarded(person: Person, /, *args: Params.args, **kwargs: Params.kwargs) -> Result:
            require(person, *roles)
            return function(person, *args, **kwargs)

        guarded.roles = frozenset(roles)  # type: ignore[attr-defined] # a test asks every screen for it
        return cast(Callable[Concatenate[Person, Params], Result], guarded)

    return guard


def asking(
    function: Callable[Params, Result], *roles: Role
) -> Callable[Concatenate[Person, Params], Result]:
    """Return a function that also takes the person calling it, and lets only these roles call it."""

    @wraps(function)
    def asked(_: Person, /, *args: Params.args, **kwargs: Params.kwargs) -> Result:
        return function(*args, **kwargs)

    return only(*roles)(asked)


def pseudonym(rater: Rater) -> str:
    """Return the name of a clinician for those who may not know who it is, and in addresses."""
    return rater.pseudonym or f"clinician {rater.id}"


def name_for(person: Person, rater: Rater) -> str:
    """Return the name that a rater has for whoever asks."""
    is_hidden = rater.kind == Kind.CLINICIAN and person.role != Role.COORDINATOR
    return pseudonym(rater) if is_hidden else rater.handle


def is_blind_in(session: Session) -> bool:
    """Tell whether a study is blind: never unblinded, or reopened since."""
    return session.exec(_LAST_LIFTED).first() != UNBLINDED


def is_blind(engine: Engine) -> bool:
    """Tell whether a study is blind; see `is_blind_in`."""
    with reading(engine) as session:
        return is_blind_in(session)
