"""What coordinators do to a study in the app; each function checks the role."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, event

from data.database import transaction
from data.description import Description
from data.errors import BadInput, Unknown
from data.importers.rows import RatingRow, ResponseRow
from data.person import Person, asking, only
from data.queries.validation import study_rubrics
from data.record import log, refuse_locked
from data.rubric import Rubric
from data.schema import Benchmark, Role
from data.store.assignments import Key, Slot, assign
from data.store.masks import mask_responses
from data.store.people import Invitation, invite
from data.store.ratings import RatingsAdded, import_ratings
from data.store.responses import ResponsesAdded, RubricFor, TaxonomyPlace, import_responses
from data.store.rubrics import add_rubric
from data.store.study import describe, lock, reopen
from data.taxonomy import medhelm_taxonomy


@contextmanager
def dry_run(engine: Engine) -> Iterator[Engine]:
    """Yield an engine on the same study on which every commit is a rollback.

    What is written in one transaction is seen to its end and then gone, whoever wrote it.
    """
    trial = engine.execution_options(rehearsal=True)
    event.listen(trial, "commit", _take_back)
    yield trial


def _take_back(connection: Connection) -> None:
    """Undo all, in the driver, just before a commit: the commit then has nothing to keep."""
    driver: Any = connection.connection.dbapi_connection
    driver.rollback()


@dataclass(frozen=True, slots=True)
class PlannedWork:
    """A design to be stored: new slots, and open ones (rater, response, pass) to take back."""

    slots: Sequence[Slot]
    dropped: Sequence[Key]
    per_response: int
    seed: int


# Store responses.
bring_responses = asking(import_responses, Role.COORDINATOR)


@only(Role.COORDINATOR)
def try_responses(
    _: Person,
    engine: Engine,
    rows: Iterable[ResponseRow],
    rubric_for: RubricFor,
    chosen: Rubric | None = None,
) -> ResponsesAdded:
    """Return what `bring_responses` would do, or raise what it would; nothing is stored."""
    with dry_run(engine) as trial:
        return import_responses(trial, rows, rubric_for, chosen)


# Store ratings made elsewhere.
bring_ratings = asking(import_ratings, Role.COORDINATOR)


@only(Role.COORDINATOR)
def try_ratings(
    _: Person, engine: Engine, rows: Iterable[RatingRow], chosen: Rubric | None = None
) -> RatingsAdded:
    """Return what `bring_ratings` would do, or raise what it would; nothing is stored."""
    with dry_run(engine) as trial:
        return import_ratings(trial, rows, chosen)


# Mask new responses, searched up to a primary key; return how many were, and were not.
mask_found = asking(mask_responses, Role.COORDINATOR)


@only(Role.COORDINATOR)
def set_place(by: Person, engine: Engine, benchmark: str, place: TaxonomyPlace) -> bool:
    """Say where a benchmark stands in the taxonomy; False if it stands there already.

    Raises
    ------
    Unknown
        If the study has no such benchmark.
    BadInput
        If the taxonomy has no such category, or the category no such subcategory. A
        category alone, or neither, is allowed.
    """
    places = medhelm_taxonomy().subcategories()
    parts = places.get(place.category, [])
    if place.category and place.category not in places:
        raise BadInput(f"category {place.category!r}: choose from {', '.join(places)}")
    if place.subcategory and place.subcategory not in parts:
        raise BadInput(f"subcategory {place.subcategory!r}: is not one of {place.category!r}")
    with transaction(engine) as session:
        refuse_locked(session)
        stored = session.get(Benchmark, benchmark)
        if stored is None:
            raise Unknown(f"benchmark {benchmark!r}: is not in this study")
        if (stored.category, stored.subcategory) == (place.category, place.subcategory):
            return False
        stored.category, stored.subcategory = place.category, place.subcategory
        session.add(stored)
        detail = {
            "benchmark": benchmark,
            "category": stored.category,
            "subcategory": stored.subcategory,
        }
        log(session, by.actor, "place in the taxonomy set", detail)
    return True


@only(Role.COORDINATOR)
def store_design(
    _: Person, engine: Engine, plan: PlannedWork, raters: Sequence[str]
) -> list[Invitation]:
    """Store a design as `medjury rate assign` does; return a code for each clinician without one."""
    invitations = invite(engine, raters)
    assign(engine, plan.slots, plan.seed, plan.dropped, plan.per_response)
    return invitations


@only(Role.COORDINATOR)
def lock_study(by: Person, engine: Engine) -> str:
    """Lock the study and return the head to keep elsewhere: see `lock`."""
    return lock(engine, by.actor)


@only(Role.COORDINATOR)
def reopen_study(by: Person, engine: Engine, reason: str) -> None:
    """Open a locked study again, with a reason that stays in the record."""
    reopen(engine, by.actor, reason)


@only(Role.COORDINATOR)
def describe_study(by: Person, engine: Engine, description: Description) -> bool:
    """Tell clinicians this of the study from now on: see `describe`."""
    return describe(engine, description, by.actor)


@only(Role.COORDINATOR)
def keep_version(by: Person, engine: Engine, rubric: Rubric) -> str:
    """Store a rubric as `medjury study rubric add` does; return its SHA-256.

    Raises
    ------
    BadInput
        If the study has exactly this rubric, or other words under the same name and version:
        nobody could tell the two apart by name.
    NotAllowed
        If the study is locked.
    """
    for existing in study_rubrics(by, engine):
        if existing.rubric.sha256 == rubric.sha256:
            raise BadInput("nothing is changed: the study has a rubric of exactly these words")
        if (existing.rubric.name, existing.rubric.version) == (rubric.name, rubric.version):
            raise BadInput(
                f"version {rubric.version}: the study has other words under this version of "
                f"{rubric.name}; give another version"
            )
    return add_rubric(engine, rubric)
