"""The form of a message: a template with the names of a note's figures, or what makes the words.

In a template, `{lost:response}` is a number with its noun ("1 response", "3 responses"),
`{raters}` of several texts is "a, b", `{second:scorer}` a scorer without its kind, and all else is
as in `str.format`.
"""

from collections.abc import Callable, Mapping
from string import Formatter
from typing import Any

Figures = Mapping[str, Any]
Message = str | Callable[[Figures], str]


def filled(message: Message, figures: Figures) -> str:
    """Return a message with its figures in place; KeyError where the note lacks one."""
    if callable(message):
        return message(figures)
    return _FORMATTER.vformat(message, (), figures)


def counted(number: int, thing: str) -> str:
    """Return a number with its noun, in the plural where it is not 1."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def sentence(text: str) -> str:
    """Return words as a sentence: with a capital and a full stop; "" stays so."""
    return f"{text[:1].upper()}{text[1:]}." if text else ""


class _Formatter(Formatter):
    """Formats counts with their nouns, and texts one after another."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """Return a value as its specification says."""
        if format_spec == "scorer":
            return str(value).removeprefix("juror:").removeprefix("metric:")
        if len(format_spec) > 1 and format_spec.replace(" ", "").isalpha():
            return counted(value, format_spec)
        if isinstance(value, tuple):
            return ", ".join(value)
        return str(super().format_field(value, format_spec))


_FORMATTER = _Formatter()
