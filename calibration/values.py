"""The values that all statistics share: a note on a figure, and rows that carry notes.

A fact is a field with a type. A note is a code with the figures and names it is about; its words
are made in `calibration.messages`, where somebody reads them, and nothing reads them back.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

from calibration.codes import AnyCode, NoteCode

if TYPE_CHECKING:
    from concurrent.futures import Executor

NAN = float("nan")
NORMAL_95 = NormalDist().inv_cdf(0.975)  # 1.959964 standard errors to either end of a 95 % interval
POWER_80 = NormalDist().inv_cdf(0.8)  # 0.841621
COMBINED = "combined"  # what the agreement table calls all benchmarks at once

Figure = object  # a number, a text, a tuple of texts, another note, or None


Method = Literal["paper", "published"]


@dataclass(frozen=True, slots=True)
class AnalysisOptions:
    """The options of an analysis of a study's ratings.

    Attributes
    ----------
    jurors : who sits on the jury; None is every juror of the scores that are analysed
    min_jurors : jurors that must have scored a response; None is all of them
    benchmark, criterion : one of them alone; None is all, and the composite
    method : "paper" or "published", see `calibration.table.agreement_table`
    references : "all", or "sound": without the instances whose references jurors have marked
    min_shared : responses that two clinicians must share to be compared
    reps, seed : resamples of the bootstrap, and where its random numbers begin
    groups : which subgroups are looked at; none: all that the study has
    without : clinicians whose ratings are left out
    reading : "independent", or "adjudicated": with the reading that settled a difference in the
        place of the clinicians' mean
    executor : where resamples are computed; None is this process. It changes no figure
    further : whether to compute the intervals and the model that stand in notes alone, which take
        as long to load and compute as all else
    """

    jurors: tuple[str, ...] | None = None
    min_jurors: int | None = None
    benchmark: str | None = None
    criterion: str | None = None
    method: Method = "paper"
    references: Literal["all", "sound"] = "all"
    min_shared: int = 2
    reps: int = 2000
    seed: int = 0
    groups: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    reading: Literal["independent", "adjudicated"] = "independent"
    executor: "Executor | None" = field(default=None, compare=False, repr=False)
    further: bool = field(default=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Note:
    """A remark on a figure, as a code with the figures and names it is about.

    Attributes
    ----------
    code : AnyCode
    figures : pairs of a name and a value, in the order they were given
    """

    code: AnyCode
    figures: tuple[tuple[str, Figure], ...] = ()

    def __getitem__(self, name: str) -> Any:
        """Return one of its figures; KeyError where it has none of that name."""
        return dict(self.figures)[name]


def note(code: AnyCode, **figures: Figure) -> Note:
    """Return a note; lists of names become tuples, numpy's numbers Python's."""
    return Note(code, tuple((name, _frozen(value)) for name, value in figures.items()))


def noted(*notes: Note | None) -> tuple[Note, ...]:
    """Return the notes that are not None."""
    return tuple(note for note in notes if note is not None)


@dataclass(frozen=True, kw_only=True)
class Noted:
    """A row of figures with the notes on them, in the order in which they are shown."""

    notes: tuple[Note, ...] = ()

    def told(self, code: AnyCode) -> Note | None:
        """Return its first note of a code, or None."""
        return next((note for note in self.notes if note.code is code), None)

    @property
    def simulated(self) -> tuple[str, ...]:
        """Return the raters behind its figures that are not real."""
        return simulated_in([self])


def simulated_in(rows: Iterable[Noted]) -> tuple[str, ...]:
    """Return the raters behind some rows that are not real, each once, in alphabetical order."""
    notes = (note for row in rows for note in row.notes if note.code is NoteCode.SIMULATED)
    return tuple(sorted({name for note in notes for name in note["raters"]}))


def _frozen(value: Figure) -> Figure:
    if isinstance(value, str | Note):
        return value
    if isinstance(value, Iterable):
        return tuple(_frozen(item) for item in value)
    return value.item() if hasattr(value, "item") else value
