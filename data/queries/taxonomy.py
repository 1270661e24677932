"""The taxonomy of a study: its own, or MedHELM's; and where its benchmarks stand in it."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import reading
from data.person import asking
from data.queries.base import FOR_STUDY, columns_of
from data.schema import Benchmark, Instance, Response, Role, Setting
from data.taxonomy import Taxonomy, shipped_taxonomy

TAXONOMY = "taxonomy"  # the setting that holds a study's own


@dataclass(frozen=True, slots=True)
class PlacedBenchmark:
    """A benchmark of a study and where it stands: its own place, else that of its name.

    `is_own` tells whether somebody placed it; category and subcategory are "" where nobody did and
    the taxonomy has no benchmark of this name.
    """

    name: str
    category: str
    subcategory: str
    responses: int
    is_own: bool = False


def taxonomy_in(session: Session) -> Taxonomy:
    """Return the taxonomy that a study uses: its own where it has one, else MedHELM's."""
    stored = session.get(Setting, TAXONOMY)
    return shipped_taxonomy() if stored is None else Taxonomy.from_json(stored.value)


def study_taxonomy(engine: Engine) -> Taxonomy:
    """Return the taxonomy that a study uses; see `taxonomy_in`."""
    with reading(engine) as session:
        return taxonomy_in(session)


def known_places(taxonomy: Taxonomy) -> Mapping[str, tuple[str, str]]:
    """Return category and subcategory of the benchmarks that a taxonomy names."""
    return {name: (at.category, at.subcategory) for name, at in taxonomy.place_of().items()}


def subcategories(taxonomy: Taxonomy) -> dict[str, list[str]]:
    """Return the categories with the names of all that stands below each, in the taxonomy's order."""
    names: dict[str, list[str]] = {category.name: [] for category in taxonomy.categories}
    for place in taxonomy.places():
        if place.subcategory:
            names[place.category].append(place.subcategory)
    return names


def categories(engine: Engine) -> dict[str, str]:
    """Return benchmark -> category: its own, else that of the taxonomy's of this name, or ""."""
    with reading(engine) as session:
        known = known_places(taxonomy_in(session))
        rows = session.exec(select(Benchmark.name, Benchmark.category))
        return {name: category or known.get(name, ("", ""))[0] for name, category in rows}


def placed_benchmarks(engine: Engine) -> list[PlacedBenchmark]:
    """Return every benchmark of a study with its place, by name; training responses do not count."""
    with reading(engine) as session:
        known = known_places(taxonomy_in(session))
        numbers: dict[str, int] = {}
        of_response = columns_of(Instance.benchmark).select_from(Response).join(Instance)
        for (name,) in session.exec(of_response.where(FOR_STUDY)):
            numbers[name] = numbers.get(name, 0) + 1
        rows = session.exec(select(Benchmark).order_by(col(Benchmark.name))).all()
        return [_placed(row, known, numbers.get(row.name, 0)) for row in rows]


def _placed(
    row: Benchmark, known: Mapping[str, tuple[str, str]], responses: int
) -> PlacedBenchmark:
    if row.category:
        return PlacedBenchmark(row.name, row.category, row.subcategory, responses, is_own=True)
    return PlacedBenchmark(row.name, *known.get(row.name, ("", "")), responses)


# Return the taxonomy of a study.
taxonomy_for = asking(study_taxonomy, Role.RESEARCHER, Role.COORDINATOR)

# Return the benchmarks of a study with their places.
placed_for = asking(placed_benchmarks, Role.RESEARCHER, Role.COORDINATOR)
