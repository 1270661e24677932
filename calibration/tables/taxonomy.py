"""The table of a taxonomy: how it is covered."""

from itertools import groupby
from typing import Any

from calibration.tables.numbers import TERMINAL, Typeface
from calibration.tables.spec import Group, Table, TableNote

LISTS = {"paper": "paper (35)", "helm": "HELM (37)", "medhelm": "medhelm 0.8.0 (46)"}
ABOUT_LISTS = (
    "paper: the preprint's 35 benchmarks; HELM: the 37 of crfm-helm 0.5.16; medhelm: the 46 of that "
    "package. A benchmark of all three counts in each."
)
ABOUT_STUDY = (
    "this study: its own benchmarks, where they were placed or the taxonomy has their name."
)


def coverage_table(found: Any, of_study: bool, face: Typeface = TERMINAL) -> Table:
    """Return `medjury.services.taxonomy.Coverage` as a table, a group for each category."""
    columns = ("subcategory", "tasks", *LISTS.values(), *(("this study",) if of_study else ()))
    groups = tuple(
        Group(category, tuple(_cells(row, of_study, face) for row in rows))
        for category, rows in groupby(found.rows, key=lambda row: str(row.category))
    )
    once = "; ".join(
        f"{name}: {found.once[name]} of {found.leaves} have one benchmark"
        + (f", {found.empty[name]} none" if found.empty[name] else "")
        for name in LISTS
    )
    notes = [ABOUT_LISTS, *([ABOUT_STUDY] if of_study else []), once]
    notes += [f"Not placed: {', '.join(found.not_placed)}"] if found.not_placed else []
    return Table(
        "Benchmarks by subcategory",
        columns,
        groups,
        tuple(map(TableNote, notes)),
        frozenset(("this study",)),
    )


def _cells(row: Any, of_study: bool, face: Typeface) -> tuple[str, ...]:
    shown = row.subcategory if row.is_leaf else "(in the category only)"
    numbers = (str(row.listed[one]) if row.listed.get(one) else face.none for one in LISTS)
    own = (", ".join(row.study) or face.none,) if of_study else ()
    return (shown, str(row.tasks) if row.tasks else face.none, *numbers, *own)
