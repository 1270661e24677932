"""MedHELM's taxonomy: categories of tasks, their subcategories, and the benchmarks that stand in them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from data.files import read_toml

SHIPPED = Path(__file__).parent / "taxonomy.toml"
BENCHMARKS = Path(__file__).parent / "taxonomy_benchmarks.toml"
LISTS = ("paper", "helm", "medhelm")


@dataclass(frozen=True, slots=True)
class Place:
    """A category of tasks, whose `subcategory` is "", or one of its subcategories.

    Attributes
    ----------
    label
        Its name, a short one where it has one.
    is_leaf
        Whether nothing stands below it.
    tasks
        How many single tasks its lines name.
    benchmarks
        Names of those that stand here and in nothing below -> which of `LISTS` have them.
    """

    category: str
    subcategory: str
    label: str
    is_leaf: bool
    tasks: int
    benchmarks: Mapping[str, tuple[str, ...]]


@cache
def medhelm_places() -> tuple[Place, ...]:
    """Return every place in MedHELM's taxonomy, a category before what stands below it."""
    lists = {one["name"]: tuple(one["lists"]) for one in read_toml(BENCHMARKS)["benchmark"]}
    return tuple(
        Place(
            category["name"],
            "" if part is category else part["name"],
            part.get("short", part["name"]),
            "subcategory" not in part,
            sum(len(line["single"]) if "single" in line else 1 for line in part.get("tasks", ())),
            {name: lists[name] for name in part.get("benchmarks", ())},
        )
        for category in read_toml(SHIPPED)["category"]
        for part in (category, *category.get("subcategory", ()))
    )


def known_places() -> dict[str, tuple[str, str]]:
    """Return category and subcategory of the benchmarks that the taxonomy names."""
    places = medhelm_places()
    return {name: (at.category, at.subcategory) for at in places for name in at.benchmarks}


def subcategories() -> dict[str, list[str]]:
    """Return category -> the names of its subcategories, in the taxonomy's order."""
    parts: dict[str, list[str]] = {}
    for at in medhelm_places():
        parts.setdefault(at.category, []).extend([at.subcategory] if at.subcategory else [])
    return parts
