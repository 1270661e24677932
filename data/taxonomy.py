"""MedHELM's taxonomy: categories of tasks, their subcategories, and the benchmarks that stand in them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, TypeAdapter

from data.files import read_toml

SHIPPED = Path(__file__).parent / "taxonomy.toml"
BENCHMARKS = Path(__file__).parent / "taxonomy_benchmarks.toml"
LISTS = ("paper", "helm", "medhelm")


@dataclass(frozen=True, slots=True)
class TaskLine:
    """Tasks as one line names them; `single` has each by itself, the line alone where it is one."""

    line: str
    single: tuple[str, ...]


def _task(task: str | Mapping[str, Any]) -> Mapping[str, Any]:
    line = task if isinstance(task, str) else task["line"]
    return {"single": (line,)} | ({"line": task} if isinstance(task, str) else dict(task))


@dataclass(frozen=True, slots=True)
class Part:
    """A category, or one of its subcategories.

    Attributes
    ----------
    short
        Its name where there is little room; "" where it has no other.
    definition, counts_when, performer
        Of a category: what it is about, when a task counts as one of it, and who does such tasks.
    benchmarks
        Names of the benchmarks that stand here and in no part below.
    """

    name: str
    short: str = ""
    definition: str = ""
    counts_when: str = ""
    performer: str = ""
    tasks: tuple[Annotated[TaskLine, BeforeValidator(_task)], ...] = ()
    benchmarks: tuple[str, ...] = ()
    parts: Annotated[tuple["Part", ...], Field(validation_alias="subcategory")] = ()

    @property
    def label(self) -> str:
        """Its short name, or the name."""
        return self.short or self.name


@dataclass(frozen=True, slots=True)
class Place:
    """A part and where it stands; `subcategory` is "" of a category itself."""

    category: str
    subcategory: str
    part: Part

    @property
    def is_leaf(self) -> bool:
        """Whether nothing stands below it."""
        return not self.part.parts


@dataclass(frozen=True, slots=True)
class CatalogueBenchmark:
    """A benchmark as MedHELM lists it.

    Attributes
    ----------
    access
        public, gated or private; "" where it is not known.
    data, metric
        What it is made of, and its main metric.
    lists
        Which of `LISTS` have it.
    """

    name: str
    title: str = ""
    paper_title: str = ""
    access: str = ""
    metric: str = ""
    data: str = ""
    lists: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Taxonomy:
    """Categories with what stands below them, and the benchmarks that are known by name."""

    name: str
    version: str
    source: str
    categories: Annotated[tuple[Part, ...], Field(validation_alias="category")]
    benchmarks: tuple[CatalogueBenchmark, ...]
    published: Mapping[str, Any]

    def places(self) -> Iterator[Place]:
        """Yield every part, a category before what stands below it."""
        for category in self.categories:
            yield Place(category.name, "", category)
            for part in category.parts:
                yield Place(category.name, part.name, part)

    def leaves(self) -> list[Place]:
        """Return the 22 subcategories."""
        return [place for place in self.places() if place.is_leaf]

    def place_of(self) -> dict[str, Place]:
        """Return benchmark -> where it stands."""
        return {name: place for place in self.places() for name in place.part.benchmarks}

    def subcategories(self) -> dict[str, list[str]]:
        """Return category -> the names of its subcategories, in the taxonomy's order."""
        return {one.name: [part.name for part in one.parts] for one in self.categories}


@cache
def medhelm_taxonomy() -> Taxonomy:
    """Return MedHELM's taxonomy with its catalogue of benchmarks."""
    body = read_toml(SHIPPED) | {"benchmarks": read_toml(BENCHMARKS)["benchmark"]}
    return TypeAdapter(Taxonomy).validate_python(body)
