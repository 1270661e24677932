"""How clinicians rate: faster than a response can be read, or the same scores over and over."""

from dataclasses import dataclass
from itertools import groupby
from statistics import median

from sqlalchemy import Engine

from data.database import reading
from data.person import Person, only
from data.schema import Kind, Role
from data.study.assignments import showings_by_rater
from data.study.readings import readings

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
