"""The form of a message: a template with the names of a note's figures, or what makes the words.

In a template, `{lost:response}` is a number with its noun ("1 response", "3 responses"),
`{raters}` of several texts is "a, b", `{second:scorer}` a scorer without its kind, and all else is
as in `str.format`. A name with a comma or a semicolon stands in quotation marks, so that it cannot
be read as two names, or as a note of its own.
"""

from collections.abc import Callable, Iterable, Mapping
from string import Formatter
from typing import Any

Figures = Mapping[str, Any]
Message = str | Callable[[Figures], str]
PARTING = frozenset(",;")


class Words(str):
    """A text that is a sentence, or a part of one, and no name."""

    __slots__ = ()


def filled(message: Message, figures: Figures) -> str:
    """Return a message with its figures in place; KeyError where the note lacks one."""
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
