"""How many benchmarks stand in each part of the taxonomy of tasks, MedHELM's and a study's own."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from data.study.standing import BenchmarkView
from data.taxonomy import LISTS, medhelm_places


@dataclass(frozen=True, slots=True)
class CoverageRow:
    """A part of the taxonomy with its single tasks, and its benchmarks: of each list, and a study's own.

    Nothing stands below a leaf; benchmarks of a part that is none were placed no deeper.
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
    """How the taxonomy is covered: by list, how many leaves have one benchmark of it, and none.

    `not_placed` are benchmarks of the study without a place in the taxonomy.
    """

    rows: tuple[CoverageRow, ...]
    leaves: int
    once: Mapping[str, int]
    empty: Mapping[str, int]
    not_placed: tuple[str, ...] = ()


def coverage(benchmarks: Sequence[BenchmarkView] = ()) -> Coverage:
    """Return how many benchmarks stand in each part of the taxonomy, of each list and of a study.

    A category has a row only where benchmarks were placed in it and no deeper.
    """
    of_study: dict[tuple[str, str], list[str]] = {}
    for one in benchmarks:
        of_study.setdefault(one.place, []).append(one.name)
    rows = [
        CoverageRow(
            *(at.category, at.subcategory, at.label, at.is_leaf, at.tasks),
            Counter(name for lists in at.benchmarks.values() for name in lists),
            tuple(of_study.get((at.category, at.subcategory), ())),
        )
        for at in medhelm_places()
    ]
    leaves = [row for row in rows if row.is_leaf]
    known = {(row.category, row.subcategory) for row in rows}
    return Coverage(
        tuple(row for row in rows if row.is_leaf or row.listed or row.study),
        len(leaves),
        {name: sum(row.listed.get(name, 0) == 1 for row in leaves) for name in LISTS},
        {name: sum(not row.listed.get(name, 0) for row in leaves) for name in LISTS},
        tuple(one.name for one in benchmarks if one.place not in known),
    )
