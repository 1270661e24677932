"""Notes on figures: a code, the sentence, and the figures and names that it is about.

A note is made where its fact arises. What decides reads its code and figures, never the sentence.

In a template, `{lost:response}` is a number with its noun ("1 response", "3 responses"), `{raters}`
of several texts is "a, b", `{second:scorer}` a scorer without its kind, and all else is as in
`str.format`. A name with a comma or a semicolon stands in quotation marks, so that it cannot be
read as two names, or as a note of its own.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from string import Formatter
from typing import Any, TypeAlias

Figure: TypeAlias = object  # a number, a text, a tuple of texts, another note, or None
Figures: TypeAlias = Mapping[str, Any]
Message: TypeAlias = str | Callable[[Figures], str]
Kind: TypeAlias = tuple[str, Message]  # a note's code and its words, before its figures are known
PARTING = frozenset(",;")


@dataclass(frozen=True, slots=True)
class Note:
    """A remark on a figure. Two are the same that have the same code and figures.

    Attributes
    ----------
    code : what it says, the same for every note that says it
    text : the same in words, without a full stop
    figures : pairs of a name and a value, in the order they were given
    is_reason : whether it says why the figure is undefined
    general : its words where a table tells it of several rows at once; "" where these are the same
    """

    code: str
    text: str = field(compare=False)
    figures: tuple[tuple[str, Figure], ...] = ()
    is_reason: bool = field(default=False, compare=False)
    general: str = field(default="", compare=False)

    def __getitem__(self, name: str) -> Any:
        """Return one of its figures; KeyError where it has none of that name."""
        return dict(self.figures)[name]

    def __str__(self) -> str:
        """Return it as it stands by a figure: a reason says that the figure is undefined."""
        return f"undefined: {self.text}" if self.is_reason else self.text


def note(code: str, message: Message, general: Message = "", /, **figures: Figure) -> Note:
    """Return a note; KeyError where its message lacks a figure.

    Lists of names become tuples, numpy's numbers Python's.
    """
    kept = {name: _frozen(value) for name, value in figures.items()}
    worded = {name: _worded(value) for name, value in kept.items()}
    text, at_once = filled(message, worded), filled(general, worded)
    return Note(code, text, tuple(kept.items()), general=at_once)


def undefined(code: str, message: Message, /, **figures: Figure) -> Note:
    """Return a note that says why a figure is undefined."""
    return replace(note(code, message, "", **figures), is_reason=True)


def noted(*notes: Note | None) -> tuple[Note, ...]:
    """Return the notes that are not None."""
    return tuple(note for note in notes if note is not None)


@dataclass(frozen=True, kw_only=True)
class Noted:
    """A row of figures with the notes on them, in the order in which they are shown."""

    notes: tuple[Note, ...] = ()

    def told(self, code: str) -> Note | None:
        """Return its first note of a code, or None."""
        return next((note for note in self.notes if note.code == code), None)

    @property
    def simulated(self) -> tuple[str, ...]:
        """Return the raters behind its figures that are not real."""
        return simulated_in([self])


def simulated_in(rows: Iterable[Noted]) -> tuple[str, ...]:
    """Return the raters behind some rows that are not real, each once, in alphabetical order."""
    notes = (note for row in rows for note in row.notes if note.code == "simulated")
    return tuple(sorted({name for note in notes for name in note["raters"]}))


def sentence(note: Note) -> str:
    """Return one note as a sentence that stands by itself."""
    text = str(note)
    return f"{text[:1].upper()}{text[1:]}."


def told(notes: Iterable[Note]) -> str:
    """Return notes as the text of the key `note` and of a cell: sentences joined by "; "."""
    return "; ".join(map(str, notes))


def _frozen(value: Figure) -> Figure:
    if isinstance(value, str | Note):
        return value
    if isinstance(value, Iterable):
        return tuple(_frozen(item) for item in value)
    return value.item() if hasattr(value, "item") else value


def _worded(value: Any) -> Any:
    """Return a figure with the notes in it as words."""
    if isinstance(value, Note):
        return Words(value.text)
    return tuple(map(_worded, value)) if isinstance(value, tuple) else value


class Words(str):
    """A text that is a sentence, or a part of one, and no name."""

    __slots__ = ()


def filled(message: Message, figures: Figures) -> str:
    """Return a message with its figures in place; KeyError where one is lacking."""
    if callable(message):
        return message(figures)
    return _FORMATTER.vformat(message, (), figures)


def counted(number: int, thing: str) -> str:
    """Return a number, its thousands apart, with its noun in the plural where it is not 1."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def quoted(name: str) -> str:
    """Return a name as it stands in a sentence: in one line, and where it must be in quotation marks."""
    line = "".join(sign if sign.isprintable() else " " for sign in name)
    if not PARTING & {*line}:
        return line
    escaped = line.replace('"', r"\"")
    return f'"{escaped}"'


def listed(names: Iterable[str]) -> str:
    """Return names one after another."""
    return ", ".join(map(quoted, names))


class _Formatter(Formatter):
    """Formats counts with their nouns, and texts one after another."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """Return a value as its specification says."""
        if format_spec == "scorer":
            return quoted(str(value).removeprefix("juror:").removeprefix("metric:"))
        if len(format_spec) > 1 and format_spec.replace(" ", "").isalpha():
            return counted(value, format_spec)
        if isinstance(value, tuple):
            return listed(value)
        if isinstance(value, str) and not isinstance(value, Words):
            return quoted(value)
        return str(super().format_field(value, format_spec))


_FORMATTER = _Formatter()
