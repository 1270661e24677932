"""Foreign text made safe for messages, Markdown and spreadsheets."""

import re
from collections.abc import Iterable, Mapping
from unicodedata import category

from data.errors import BadInput

LONGEST_NAME = 60
# Controls, signs of format and direction, halves of surrogate pairs, ends of lines and paragraphs.
UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
# A stroke below inside a word means nothing there, and names are full of them.
MARKS = re.compile(r"[\\`*{}\[\]<>|~&$#!^]|(?<!\w)_|_(?!\w)")
ON_PAGE = re.compile(r"[\\`*_{}\[\]()<>#+\-.!$~|:&=^]")
ADDRESS = re.compile(r"(?<=http)s?://|(?<=www)\.|(?<=\w)@", re.IGNORECASE)
COMPUTED = re.compile(r"'*[=+\-@\t\r]")  # with what a guard has put before it
NUMBER = re.compile(r"[+-]\d+(\.\d*)?|[+-]\.\d+")


def short(name: str, longest: int = LONGEST_NAME) -> str:
    """Return a name to quote in a message; a long one, perhaps a patient's text, is not shown."""
    fits = len(name) <= longest and name.isprintable()
    return name if fits else f"(a text of {len(name)} characters)"


def one_line(message: str, longest: int) -> str:
    """Return a message as one printable line of limited length."""
    plain = "".join(sign if sign.isprintable() else " " for sign in message)
    line = " ".join(plain.split())
    return line if len(line) <= longest else line[: longest - 3] + "..."


def visible(text: str) -> str:
    """Return a text as one line, with invisible characters as U+ and their number."""
    line = " ".join(text.split())
    if line.isprintable():
        return line
    return "".join(f"U+{ord(sign):04X}" if category(sign) in UNSEEN else sign for sign in line)


def in_markdown(text: object) -> str:
    """Return a text as one line of Markdown that shows it word for word."""
    return MARKS.sub(r"\\\g<0>", visible(str(text)))


def on_page(text: object) -> str:
    """Return a text as a page's Markdown shows it word for word: nothing in it becomes a link.

    A page makes links of bare addresses; a sign without width in them keeps it from that.
    """
    return ON_PAGE.sub(r"\\\g<0>", ADDRESS.sub("\N{WORD JOINER}\\g<0>", visible(str(text))))


def guarded(text: str) -> str:
    """Return a text with a leading ' if a spreadsheet would run it; `unguarded` removes it."""
    return f"'{text}" if COMPUTED.match(text) else text


def guarded_name(name: str) -> str:
    """Return a name or an id as `guarded` does, but numbers such as -5 unchanged."""
    return name if NUMBER.fullmatch(name) else guarded(name)


def unguarded(text: str) -> str:
    """Return the text that `guarded` or `guarded_name` was given."""
    return text[1:] if text.startswith("'") and COMPUTED.match(text, 1) else text


def refuse_nul(values: Iterable[object]) -> None:
    """Raise BadInput if a text, of lists and mappings too, holds U+0000: PostgreSQL keeps none."""
    for value in values:
        if isinstance(value, str):
            if "\0" in value:
                raise BadInput(
                    "a text holds the sign U+0000, which no database can keep: take it out"
                )
        elif isinstance(value, Mapping):
            refuse_nul((*value.keys(), *value.values()))
        elif isinstance(value, list | tuple):
            refuse_nul(value)
