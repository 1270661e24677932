"""What others wrote, as messages and pages may say it: in one line, cut short, without effect."""

import re
from unicodedata import category

LONGEST_NAME = 60
# Controls, signs of format and direction, halves of surrogate pairs, ends of lines and paragraphs.
UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
# A stroke below inside a word means nothing there, and names are full of them.
MARKS = re.compile(r"[\\`*{}\[\]<>|~&$#!^]|(?<!\w)_|_(?!\w)")


def short(name: str, longest: int = LONGEST_NAME) -> str:
    """Return a name as a message may quote it: a long one may be a text in the wrong column."""
    fits = len(name) <= longest and name.isprintable()
    return name if fits else f"(a text of {len(name)} characters)"


def one_line(said: str, longest: int) -> str:
    """Return a message in one line that a terminal can show, cut short."""
    plain = "".join(sign if sign.isprintable() else " " for sign in said)
    line = " ".join(plain.split())
    return line if len(line) <= longest else line[: longest - 3] + "..."


def visible(text: str) -> str:
    """Return a text in one line, its signs that nobody sees as U+ and their number."""
    line = " ".join(text.split())
    if line.isprintable():
        return line
    return "".join(f"U+{ord(one):04X}" if category(one) in UNSEEN else one for one in line)


def in_markdown(text: object) -> str:
    """Return what others wrote as Markdown shows it word for word, in one line."""
    return MARKS.sub(r"\\\g<0>", visible(str(text)))
