"""The tables of a taxonomy: how it is covered, its tasks, and the catalogue of benchmarks."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from calibration.messages.form import counted
from calibration.tables.numbers import TERMINAL, Typeface
from calibration.tables.spec import Group, Table, TableNote

LISTS = {"paper": "paper (35)", "helm": "HELM (37)", "medhelm": "medhelm 0.8.0 (46)"}
NO_DEEPER = "in the category only"
NOT_PLACED = "Not placed"
ABOUT_LISTS = (
    "paper: the preprint's 35 benchmarks; HELM: the 37 of crfm-helm 0.5.16; medhelm: the 46 of that "
    "package. A benchmark of all three counts in each."
)
ABOUT_STUDY = (
    "this study: its own benchmarks, where they were placed or the taxonomy has their name."
)
ABOUT_CURATION = (
    "Whether a benchmark existed or was made for MedHELM is not told for each: the paper counts 17 "
    "existing and 18 newly formulated ones."
)
BENCHMARKS = ("benchmark", "title", "subcategory", "data", "access", "metric", "listed by")
NARROW = ("benchmark", "subcategory", "access", "listed by")
TASKS = ("line", "single tasks")


def coverage_table(
    found: Any, of_study: bool, face: Typeface = TERMINAL, *, is_medhelm: bool = True
) -> Table:
    """Return `medjury.services.taxonomy.Coverage` as a table, a group for each category."""
    names = tuple(LISTS.get(name, name) if is_medhelm else name for name in found.lists)
    columns = ("subcategory", "tasks", *names, *(("this study",) if of_study else ()))
    groups = tuple(
        Group(category, tuple(_coverage(row, found.lists, of_study, face) for row in rows))
        for category, rows in groupby(found.rows, key=lambda row: str(row.category))
    )
    notes = [TableNote(ABOUT_LISTS)] if is_medhelm else []
    notes += [TableNote(ABOUT_STUDY)] if of_study else []
    notes += [TableNote(once_in_words(found))] if found.lists else []
    if found.not_placed:
        notes.append(TableNote(f"Not placed: {', '.join(found.not_placed)}"))
    return Table(
        "Benchmarks by subcategory", columns, groups, tuple(notes), frozenset(("this study",))
    )


def once_in_words(found: Any) -> str:
    """Return how many leaves have one benchmark, and none, by list."""
    told = [
        f"{name}: {found.once[name]} of {found.leaves} have one benchmark"
        + (f", {found.empty[name]} none" if found.empty[name] else "")
        for name in found.lists
    ]
    return "; ".join(told)


def catalogue_table(
    benchmarks: Iterable[Any],
    places: Mapping[str, Any],
    face: Typeface = TERMINAL,
    *,
    is_medhelm: bool = True,
    narrow: bool = False,
) -> Table:
    """Return `data.taxonomy.CatalogueBenchmark`s as a table, a group for each category.

    `places` is where each stands, by name: what has `category` and `part`. A narrow one leaves out
    title, data and metric.
    """
    entries = list(benchmarks)
    curated = any(one.curation for one in entries)
    columns = NARROW if narrow else (*BENCHMARKS, *(("curation",) if curated else ()))
    rows: dict[str, list[tuple[str, ...]]] = {place.category: [] for place in places.values()}
    for one in entries:
        place = places.get(one.name)
        cells = _benchmark(one, place, face)
        own = tuple(cells[name] for name in columns)
        rows.setdefault(place.category if place else NOT_PLACED, []).append(own)
    groups = tuple(Group(head, tuple(own)) for head, own in rows.items() if own)
    notes = () if curated or not is_medhelm else (TableNote(ABOUT_CURATION),)
    caption = f"Catalogue: {counted(len(entries), 'benchmark')}"
    return Table(caption, columns, groups, notes, frozenset(columns))


def tasks_table(taxonomy: Any) -> Table:
    """Return the lines of tasks of `data.taxonomy.Taxonomy`, a group for each part that has some."""
    groups = tuple(
        Group(
            " / ".join(place.path),
            tuple((task.line, _single(task)) for task in place.part.tasks),
        )
        for place in taxonomy.places()
        if place.part.tasks
    )
    return Table("Tasks", TASKS, groups, (), frozenset(TASKS))


def counts_in_words(taxonomy: Any) -> str:
    """Return how many categories, parts and tasks a taxonomy has, and what its source counts."""
    leaves = [place for place in taxonomy.leaves() if place.subcategory]
    told = [_numbered(len(taxonomy.categories), "category", "categories")]
    told += [_numbered(len(leaves), "subcategory", "subcategories")] if leaves else []
    lines, single = taxonomy.lines(), taxonomy.single_tasks()
    if lines:
        many = f"{lines} lines of tasks that name {single} single ones"
        told.append(counted(lines, "task") if lines == single else many)
    words = ", ".join(told)
    published = taxonomy.published.get("tasks")
    return f"{words}; its source counts {published} tasks" if published else words


def _single(task: Any) -> str:
    return "; ".join(task.single) if len(task.single) > 1 else ""


def _numbered(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _coverage(row: Any, lists: Iterable[str], of_study: bool, face: Typeface) -> tuple[str, ...]:
    name = row.subcategory if row.is_leaf and row.subcategory else row.category
    shown = name if row.is_leaf else f"({row.subcategory or NO_DEEPER})"
    numbers = (str(row.listed[one]) if row.listed.get(one) else face.none for one in lists)
    own = (", ".join(row.study) or face.none,) if of_study else ()
    return (shown, str(row.tasks) if row.tasks else face.none, *numbers, *own)


def _benchmark(one: Any, place: Any, face: Typeface) -> dict[str, str]:
    """Return the cells of a benchmark by their columns."""
    title = f"{one.title} (paper: {one.paper_title})" if one.paper_title else one.title
    cells = {
        "title": title,
        "subcategory": place.part.label if place and place.subcategory else "",
        "data": one.data,
        "access": one.access,
        "metric": one.metric,
        "listed by": ", ".join(one.lists),
        "curation": one.curation,
    }
    return {"benchmark": one.name} | {name: text or face.none for name, text in cells.items()}
