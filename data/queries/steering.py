"""What those who steer a study, or read it, are shown of it: material, work done, standing."""

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Engine, func
from sqlalchemy import select as select_columns
from sqlmodel import col, select

from data.database import reading
from data.person import Person, only
from data.queries.masks import StoredText, author_names, searched_up_to, stored_texts
from data.queries.models import TAXONOMY
from data.queries.record import Verified, acts, locked_since, verify
from data.queries.study import BenchmarkView, benchmarks, stored_rubric
from data.rubric import Rubric
from data.schema import (
    Account,
    Event,
    Expert,
    Instance,
    Kind,
    Rater,
    Rating,
    Response,
    Role,
    RubricText,
)


@dataclass(frozen=True, slots=True)
class Material:
    """A benchmark, where MedHELM's taxonomy has one of its name, and what stands in it.

    Attributes
    ----------
    known
        Category and subcategory in the taxonomy; ("", "") if it has no such benchmark.
    references, masked
        Instances with a reference; responses in which an author's name is masked.
    """

    view: BenchmarkView
    known: tuple[str, str]
    references: int
    masked: int


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a study is locked, what was lifted or reopened when and why, and its chain.

    Attributes
    ----------
    steered
        (act, when, by whom, reason), oldest first.
    """

    locked: str | None
    steered: tuple[tuple[str, datetime, str, str], ...]
    events: int
    simulated: bool


@only(Role.RESEARCHER, Role.COORDINATOR)
def materials(_: Person, engine: Engine) -> list[Material]:
    """Return every benchmark with its counts, by name; training responses left out."""
    with_reference = (
        select_columns(col(Instance.benchmark), func.count())
        .where(col(Instance.reference).is_not(None))
        .group_by(col(Instance.benchmark))
    )
    masked = (
        select_columns(col(Instance.benchmark), func.count())
        .join(Response, col(Response.instance) == col(Instance.id))
        .where(col(Response.shown).is_not(None))
        .group_by(col(Instance.benchmark))
    )
    with reading(engine) as session:
        references = dict(map(tuple, session.execute(with_reference)))
        masks = dict(map(tuple, session.execute(masked)))
    return [
        Material(
            one,
            known_places().get(one.name, ("", "")),
            references.get(one.name, 0),
            masks.get(one.name, 0),
        )
        for one in benchmarks(engine)
    ]


def taxonomy() -> dict[str, list[str]]:
    """Return MedHELM's categories with their subcategories, in its order."""
    return {
        category["name"]: [part["name"] for part in category["subcategory"]]
        for category in _taxonomy()["category"]
    }


def known_places() -> Mapping[str, tuple[str, str]]:
    """Return category and subcategory of MedHELM's benchmarks, by name."""
    return {
        benchmark: (category["name"], part["name"])
        for category in _taxonomy()["category"]
        for part in category["subcategory"]
        for benchmark in part["benchmarks"]
    }


@only(Role.RESEARCHER, Role.COORDINATOR)
def readings_by_response(_: Person, engine: Engine) -> dict[str, Counter[int]]:
    """Return, for each benchmark, how many responses have been rated by 0, 1, 2 ... clinicians.

    Hidden repeats and training responses do not count; simulated clinicians do.
    """
    by_whom = (
        select_columns(col(Rating.response), col(Rating.rater))
        .join(Rater, col(Rater.id) == col(Rating.rater))
        .where(col(Rater.kind) == Kind.CLINICIAN, col(Rating.pass_) == 0)
        .distinct()
        .subquery()
    )
    query = (
        select_columns(col(Instance.benchmark), func.count(by_whom.c.rater))
        .select_from(Response)
        .join(Instance, col(Instance.id) == col(Response.instance))
        .outerjoin(by_whom, by_whom.c.response == col(Response.id))
        .where(col(Response.id).not_in(select(Expert.response)))
        .group_by(col(Response.id), col(Instance.benchmark))
    )
    found: dict[str, Counter[int]] = {}
    with reading(engine) as session:
        for benchmark, times in session.execute(query):
            found.setdefault(benchmark, Counter())[times] += 1
    return found


@only(Role.RESEARCHER, Role.COORDINATOR)
def standing(_: Person, engine: Engine) -> Standing:
    """Return whether a study is locked, and what was done to its blind and its lock."""
    told = acts(engine, "locked", "reopened", "unblinded")
    with reading(engine) as session:
        events = session.execute(select_columns(func.count(col(Event.id)))).scalar_one()
        made_up = select(Rater.id).where(col(Rater.simulated).is_(True)).limit(1)
        simulated = session.exec(made_up).first() is not None
    steered = tuple((one.action, one.at, one.actor, one.detail.get("reason", "")) for one in told)
    return Standing(locked_since(engine), steered, events, simulated)


@only(Role.RESEARCHER, Role.COORDINATOR)
def checked_record(_: Person, engine: Engine, head: str | None = None) -> Verified:
    """Check the record as it stands at this moment: see `verify`."""
    return verify(engine, head)


@only(Role.RESEARCHER, Role.COORDINATOR)
def rubric_names(_: Person, engine: Engine) -> list[str]:
    """Return the names of the rubrics that stand in the study."""
    with reading(engine) as session:
        return sorted(set(session.exec(select(RubricText.name))))


@only(Role.RESEARCHER, Role.COORDINATOR)
def rubric_of_name(_: Person, engine: Engine, name: str) -> Rubric | None:
    """Return the rubric last stored under a name, or None."""
    return stored_rubric(engine, name)


@only(Role.RESEARCHER, Role.COORDINATOR)
def who_can_rate(_: Person, engine: Engine) -> list[str]:
    """Return the clinicians who can be given work: those with an account that has not ended."""
    query = select(Account.name).where(Account.role == Role.CLINICIAN, col(Account.ended).is_(None))
    with reading(engine) as session:
        return sorted(session.exec(query))


@only(Role.COORDINATOR)
def names_to_mask(_: Person, engine: Engine) -> list[str]:
    """Return the study's models, which no response may name."""
    return author_names(engine)


@only(Role.COORDINATOR)
def unsearched_texts(_: Person, engine: Engine) -> Iterator[list[StoredText]]:
    """Return the responses not yet searched for their authors' names, page by page."""
    return stored_texts(engine, searched_up_to(engine))


@cache
def _taxonomy() -> dict[str, Any]:
    return tomllib.loads(TAXONOMY.read_text("utf-8"))
