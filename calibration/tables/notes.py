"""The notes below a table: each once, with the rows it holds for, those that warn first."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from calibration.codes import AnyCode
from calibration.codes import NoteCode as Code
from calibration.messages import general
from calibration.values import Note

FEW_LOST = 0.05  # of the resamples: with fewer lost an interval means what it says
FEW_NOTES = 6  # so many are read at a glance
IN_EVERY_TABLE = (Code.SIMULATED, Code.COVERAGE)  # the caption and a column say it
QUIET = (  # they only add figures
    Code.BCA,
    Code.PAIRS_INTERVAL,
    Code.MIXED_MODEL,
    Code.HELD_ICCS,
    Code.CORRECTED,
    Code.HELD_ON,
    Code.POPULATION_FEW,
    Code.POPULATION_UNDEFINED,
    Code.PAIRS_TOO_FEW,
    Code.SHARED_AC2,
    Code.SINGLE_SCORES,
    Code.GIVEN_AGAIN,
    Code.GIVEN_AGAIN_EACH,
    Code.OWN_MEANS,
)


@dataclass(frozen=True, slots=True)
class Remark:
    """The notes of one row, under its group's heading and its name."""

    group: str
    name: str
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class TableNote:
    """A note below a table: its words, with the rows it holds for.

    `is_quiet` tells whether it only adds figures; `code` is None of what is no note on a figure.
    """

    text: str
    is_quiet: bool = False
    code: AnyCode | None = None


def table_notes(
    rows: Sequence[Remark], left_out: Collection[AnyCode] = ()
) -> tuple[TableNote, ...]:
    """Return each note once, with the rows it holds for, or alone where it holds for all."""
    holds: dict[str, dict[tuple[str, str], Note]] = {}
    for row in rows:
        for note in row.notes:
            if note.code not in IN_EVERY_TABLE and note.code not in left_out:
                holds.setdefault(general(note), {})[row.group, row.name] = note
    everybody = [*dict.fromkeys((row.group, row.name) for row in rows)]
    return tuple(_note(words, own, everybody) for words, own in holds.items())


def parted(notes: Sequence[TableNote]) -> tuple[list[TableNote], list[TableNote]]:
    """Return the notes that warn, and those that only add figures; all warn where there are few."""
    quiet = [one for one in notes if one.is_quiet and len(notes) > FEW_NOTES]
    return [one for one in notes if one not in quiet], quiet


def is_quiet(note: Note) -> bool:
    """Tell whether a note only adds figures, and warns of nothing."""
    if note.code is Code.UNDEFINED_RESAMPLES:
        return bool(note["lost"] <= FEW_LOST * note["resamples"])
    return note.code in QUIET


def _note(
    words: str, own: dict[tuple[str, str], Note], everybody: Sequence[tuple[str, str]]
) -> TableNote:
    for_all = len(own) == len(everybody) > 1
    text = words if for_all else f"{_whom([*own], everybody)}: {words}"
    notes = [*own.values()]
    return TableNote(text, all(map(is_quiet, notes)), notes[0].code)


def _whom(who: Sequence[tuple[str, str]], everybody: Sequence[tuple[str, str]]) -> str:
    """Return rows by name, group by group; a group alone where all its rows are meant.

    The same rows in every group are named once.
    """
    if everywhere := _in_every_group(who, {group for group, _ in everybody}):
        return f"{', '.join(everywhere)}, everywhere"
    return "; ".join(_groups(who, everybody))


def _groups(who: Iterable[tuple[str, str]], everybody: Sequence[tuple[str, str]]) -> Iterator[str]:
    for group, own in groupby(who, key=lambda one: one[0]):
        names = [name for _, name in own]
        all_of_it = len(names) > 1 and len(names) == sum(one[0] == group for one in everybody)
        listed = "" if group and all_of_it else ", ".join(names)
        yield ", ".join(filter(None, (group, listed)))


def _in_every_group(who: Sequence[tuple[str, str]], groups: Collection[str]) -> Sequence[str]:
    """Return the rows that are meant, if those of every group of several have the same names."""
    own = {group: [name for heading, name in who if heading == group] for group in groups}
    first = own[who[0][0]]
    same = len(groups) > 1 and all(names == first for names in own.values())
    return first if same else ()
