"""Keys of answers: what a right answer to each instance is, from a table or from HELM's own runs."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from data.errors import BadFile
from data.importers.helm.answers import CORRECT, answered_runs
from data.importers.helm.files import HelmInstance, RequestState
from data.importers.helm.run import is_helm
from data.importers.rows import Origin, filled
from data.importers.table import Cells, TableFile

OPTION = "option:"
COLUMNS = ("instance_id", "key", "option:A", "category", "lower_limit", "upper_limit", "answerable")
YES = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False, "": True}


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """What is right for one instance.

    Attributes
    ----------
    keys : answers that count as right, at least one; "" where declining is right
    options : letter -> text of a choice, where answers are letters
    category, lower, upper : of a calculation (`calibration.closed_ended.calculations`)
    can_be_answered : whether the question has an answer in its database
    """

    keys: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    category: str = ""
    lower: str = ""
    upper: str = ""
    can_be_answered: bool = True


def read_keys(path: Path) -> dict[str, AnswerKey]:
    """Return instance -> its key, from a table (CSV, JSON Lines, ...) or from runs of HELM.

    A row is one key; an instance may have several rows, which then count all as right and
    agree in everything else that they give.

    Raises
    ------
    BadFile
        If it cannot be read, or a column that is needed is missing.
    BadRow
        At the first row that is wrong.
    """
    if is_helm(path):
        return _merged(_of_runs(path))
    table = TableFile(path)
    if absent := [name for name in COLUMNS[:2] if name not in table.columns]:
        raise table.wrong(
            f"column {absent[0]!r} is missing (keys have {', '.join(COLUMNS)}; {table.header})"
        )
    return _merged(_of_table(table))


Keyed = Iterable[tuple[Origin, str, AnswerKey]]


def _merged(rows: Keyed) -> dict[str, AnswerKey]:
    merged: dict[str, AnswerKey] = {}
    for origin, instance, key in rows:
        before = merged.get(instance, replace(key, keys=()))
        if replace(before, keys=()) != replace(key, keys=()):
            raise origin.wrong("instance_id", instance, "its rows differ in more than the key")
        merged[instance] = replace(key, keys=tuple(dict.fromkeys((*before.keys, *key.keys))))
    return merged


def _of_table(table: TableFile) -> Iterator[tuple[Origin, str, AnswerKey]]:
    letters = [name for name in table.columns if name.startswith(OPTION)]
    for origin, cells in table:
        yield (
            origin,
            filled(origin, cells, "instance_id"),
            AnswerKey(
                (cells.get("key", ""),),
                {name.removeprefix(OPTION): cells[name] for name in letters if cells.get(name)},
                cells.get("category", "").strip(),
                cells.get("lower_limit", "").strip(),
                cells.get("upper_limit", "").strip(),
                _can_be_answered(origin, cells),
            ),
        )


def _can_be_answered(origin: Origin, cells: Cells) -> bool:
    said = cells.get("answerable", "").strip().lower()
    if said not in YES:
        raise origin.wrong("answerable", said, "is yes or no")
    return YES[said]


def _of_runs(path: Path) -> Iterator[tuple[Origin, str, AnswerKey]]:
    seen: dict[str, AnswerKey] = {}
    for name, _, states in answered_runs(path):
        for number, state in enumerate(states, start=1):
            instance = state.instance
            if instance.id is None or instance.split == "train" or instance.perturbation:
                continue
            key, origin = _of_state(state), Origin(name, number)
            if seen.setdefault(instance.id, key) != key:
                raise BadFile(
                    f"{path}: the instance {instance.id} has other keys in {name}: name the runs of one "
                    "benchmark"
                )
            yield origin, instance.id, key


def _of_state(state: RequestState) -> AnswerKey:
    instance, more = state.instance, state.instance.extra_data or {}
    return AnswerKey(
        keys=tuple(_right(instance)) or ("",),
        options={str(letter): str(text) for letter, text in (state.output_mapping or {}).items()},
        category=_text(more.get("category")),
        lower=_text(more.get("lower_limit")),
        upper=_text(more.get("upper_limit")),
        can_be_answered=not more.get("is_impossible", False),
    )


def _right(instance: HelmInstance) -> Iterator[str]:
    """Yield the references that HELM tags as right."""
    return (reference.output.said for reference in instance.references if CORRECT in reference.tags)


def _text(value: Any) -> str:
    return "" if value is None else str(value)
