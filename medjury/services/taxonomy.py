"""A taxonomy of tasks, and how many benchmarks stand in each of its parts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Engine

from data.queries.taxonomy import PlacedBenchmark, placed_benchmarks, study_taxonomy
from data.taxonomy import LISTS, CatalogueBenchmark, Part, Place, Taxonomy

OTHER = "named"  # the list of benchmarks that a taxonomy names and describes nowhere


@dataclass(frozen=True, slots=True)
class CoverageRow:
    """A part of a taxonomy and its benchmarks.

    Attributes
    ----------
    label
        Its short name.
    is_leaf
        Whether nothing stands below it; benchmarks of a part that is none were placed no deeper.
    tasks
        Single tasks of it.
    listed
        List -> how many of its benchmarks stand here.
    study
        The study's own benchmarks here, by name.
    """

    category: str
    subcategory: str
    label: str
    is_leaf: bool
    tasks: int
    listed: Mapping[str, int]
    study: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Coverage:
    """How a taxonomy is covered.

    Attributes
    ----------
    lists
        The names of the lists, in order.
    once, empty
        List -> how many leaves have one benchmark of it, and none.
    not_placed
        Benchmarks of the study without a place in the taxonomy.
    """

    lists: tuple[str, ...]
    rows: tuple[CoverageRow, ...]
    leaves: int
    once: Mapping[str, int]
    empty: Mapping[str, int]
    not_placed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StudyTaxonomy:
    """The taxonomy of a study, its coverage, and the study's benchmarks; none without a study."""

    taxonomy: Taxonomy
    coverage: Coverage
    benchmarks: tuple[PlacedBenchmark, ...] = ()


def study_coverage(engine: Engine, taxonomy: Taxonomy | None = None) -> StudyTaxonomy:
    """Return the taxonomy of a study, or another one, with the study's benchmarks in it."""
    chosen = taxonomy or study_taxonomy(engine)
    benchmarks = placed_benchmarks(engine)
    return StudyTaxonomy(chosen, coverage(chosen, benchmarks), tuple(benchmarks))


def coverage(taxonomy: Taxonomy, benchmarks: Sequence[PlacedBenchmark] = ()) -> Coverage:
    """Return how many benchmarks stand in each part of a taxonomy, of each list and of a study.

    A part that is no leaf has a row only where benchmarks were placed in it and no deeper.
    """
    described = {one.name: one for one in taxonomy.benchmarks}
    of_study: dict[tuple[str, str], list[str]] = {}
    for one in benchmarks:
        of_study.setdefault((one.category, one.subcategory), []).append(one.name)
    rows, places = [], set()
    for place in taxonomy.places():
        places.add((place.category, place.subcategory))
        own = tuple(of_study.get((place.category, place.subcategory), ()))
        row = _row(place, described, own)
        if place.is_leaf or row.listed or own:
            rows.append(row)
    lists = _lists(rows)
    leaves = [row for row in rows if row.is_leaf]
    return Coverage(
        lists,
        tuple(rows),
        len(leaves),
        {name: sum(row.listed.get(name, 0) == 1 for row in leaves) for name in lists},
        {name: sum(not row.listed.get(name, 0) for row in leaves) for name in lists},
        tuple(one.name for one in benchmarks if (one.category, one.subcategory) not in places),
    )


def _row(
    place: Place, described: Mapping[str, CatalogueBenchmark], own: tuple[str, ...]
) -> CoverageRow:
    listed = Counter(
        name
        for benchmark in place.part.benchmarks
        for name in (described[benchmark].lists if benchmark in described else ()) or (OTHER,)
    )
    tasks = sum(len(task.single) for task in place.part.tasks)
    part = place.part
    return CoverageRow(
        place.category, place.subcategory, part.label, place.is_leaf, tasks, dict(listed), own
    )


def _lists(rows: Sequence[CoverageRow]) -> tuple[str, ...]:
    """Return the lists that occur: MedHELM's in their order, then others by name."""
    found = {name for row in rows for name in row.listed}
    return (*(name for name in LISTS if name in found), *sorted(found.difference(LISTS)))


def picture_rows(found: Coverage) -> tuple[str, list[dict[str, str | int]]]:
    """Return the list that a picture of the coverage shows, the longest, and its rows."""
    totals = {name: sum(row.listed.get(name, 0) for row in found.rows) for name in found.lists}
    chosen = max(totals, key=lambda name: totals[name], default="")
    rows: list[dict[str, str | int]] = [
        {
            "category": row.category,
            "part": row.label if row.is_leaf else f"(in {row.label} only)",
            "listed": row.listed.get(chosen, 0),
            "own": len(row.study),
        }
        for row in found.rows
    ]
    return chosen, rows


def to_json(known: StudyTaxonomy) -> dict[str, Any]:
    """Return a taxonomy with its coverage as `--json` writes it."""
    taxonomy, found = known.taxonomy, known.coverage
    places = taxonomy.place_of()
    return {
        "taxonomy": {
            "name": taxonomy.name,
            "version": taxonomy.version,
            "source": taxonomy.source,
            "sha256": taxonomy.sha256,
            "published": dict(taxonomy.published),
            "categories": [_part_json(one) for one in taxonomy.categories],
        },
        "counts": counts(taxonomy),
        "coverage": asdict(found) | {"rows": [asdict(row) for row in found.rows]},
        "benchmarks": [asdict(one) | _at(places.get(one.name)) for one in taxonomy.benchmarks],
        "study": [asdict(one) for one in known.benchmarks],
    }


def counts(taxonomy: Taxonomy) -> dict[str, int]:
    """Return how many categories, leaves, lines of tasks, single tasks and benchmarks there are."""
    return {
        "categories": len(taxonomy.categories),
        "leaves": len(taxonomy.leaves()),
        "depth": taxonomy.depth(),
        "task_lines": taxonomy.lines(),
        "single_tasks": taxonomy.single_tasks(),
        "benchmarks": len({*taxonomy.place_of(), *(one.name for one in taxonomy.benchmarks)}),
    }


def _at(place: Place | None) -> dict[str, str]:
    found = ("", "") if place is None else (place.category, place.subcategory)
    return dict(zip(("category", "subcategory"), found, strict=True))


def _part_json(part: Part) -> dict[str, Any]:
    below = [_part_json(one) for one in part.parts]
    return {name: value for name, value in asdict(part).items() if name != "parts"} | {
        "subcategories": below
    }
