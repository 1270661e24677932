"""Where a study's benchmarks stand in the taxonomy."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Engine
from sqlmodel import col, select

from data.database import reading
from data.person import asking
from data.queries.base import FOR_STUDY, columns_of
from data.schema import Benchmark, Instance, Response, Role
from data.taxonomy import medhelm_taxonomy


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


def known_places() -> Mapping[str, tuple[str, str]]:
    """Return category and subcategory of the benchmarks that the taxonomy names."""
    places = medhelm_taxonomy().place_of()
    return {name: (at.category, at.subcategory) for name, at in places.items()}


def categories(engine: Engine) -> dict[str, str]:
    """Return benchmark -> category: its own, else that of the taxonomy's of this name, or ""."""
    return {one.name: one.category for one in placed_benchmarks(engine)}


def placed_benchmarks(engine: Engine) -> list[PlacedBenchmark]:
    """Return every benchmark of a study with its place, by name; training responses do not count."""
    known = known_places()
    of_response = columns_of(Instance.benchmark).select_from(Response).join(Instance)
    with reading(engine) as session:
        numbers = Counter(name for (name,) in session.exec(of_response.where(FOR_STUDY)))
        rows = session.exec(select(Benchmark).order_by(col(Benchmark.name))).all()
        return [
            PlacedBenchmark(row.name, row.category, row.subcategory, numbers[row.name], True)
            if row.category
            else PlacedBenchmark(row.name, *known.get(row.name, ("", "")), numbers[row.name])
            for row in rows
        ]


# Return the benchmarks of a study with their places.
placed_for = asking(placed_benchmarks, Role.RESEARCHER, Role.COORDINATOR)
