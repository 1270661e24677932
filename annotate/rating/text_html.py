"""Texts as HTML: verbatim, escaped, never interpreted; a dialogue laid out by its turns."""

import html
import re
from importlib.resources import files

STYLE = (files("annotate.rating") / "page.css").read_text("utf-8")
TURN = re.compile(r"^(\[[^\W\d_][\w .-]{0,30}\]|[A-Z][a-zA-Z .-]{0,30}:)(\s*)(.*)$")
# What has no glyph, and what HTML cannot carry, is shown by its picture in Unicode.
PICTURES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n\r"} | {
    0x7F: 0x2421
}
FEWEST_TURNS = 3
FEWEST_SECTIONS = 2
# A line of its own: in capitals, or ending with a colon, or marked as a heading or in bold.
HEADING = re.compile(
    r"(?:[A-Z][A-Z &/,()'-]{3,58}:?|[A-Z]{2,}:"
    r"|[A-Z][A-Za-z&/()'-]*(?: [A-Za-z&/()'-]+){0,5}:|#{1,4} \S.{0,58}|\*\*[^*]{2,58}\*\*:?)[ \t]*"
)
LETTERS = re.compile(r"[A-Za-z]{2}")


def style() -> str:
    """Return the style sheet of the panes and of the page around them."""
    return f"<style>{STYLE}</style>"


def pane(text: str, label: str, name: str, *, folds: bool = False) -> str:
    """Return a text in a box of its own that scrolls.

    Parameters
    ----------
    folds
        Whether it is a source: turns of a dialogue are laid out, sections can be folded.
    """
    return (
        f'<div class="mj-pane mj-{name}" tabindex="0" role="region" '
        f'aria-label="{html.escape(label)}">{body(text, folds)}</div>'
    )


def unseen(text: str) -> list[int]:
    """Return where a text holds characters that its pane leaves out: returns before newlines."""
    return [match.start() for match in re.finditer("\r(?=\n)", text)]


def heading(text: str) -> str:
    """Return the heading above a pane."""
    return f'<h2 class="mj-heading">{html.escape(text)}</h2>'


def note(title: str, text: str) -> str:
    """Return a page that is only a message."""
    return f'<div class="mj-note"><h1>{html.escape(title)}</h1><p>{html.escape(text)}</p></div>'


def body(text: str, folds: bool) -> str:
    """Return a text's lines; a source as turns if it is a dialogue, as sections if it has headings.

    A response or a reference is never laid out: its form is part of what is rated.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if folds and _is_dialogue(text):
        return "".join(_line(line) for line in text.translate(PICTURES).splitlines())
    lines = text.translate(PICTURES).split("\n")
    starts = [n for n, line in enumerate(lines) if _is_heading(line)] if folds else []
    if len(starts) < FEWEST_SECTIONS:
        return _text(lines)
    before = [_text([*lines[: starts[0]], ""])] if starts[0] else []
    ends = [*starts[1:], None]
    return "".join(before + [_section(lines[a:b], b) for a, b in zip(starts, ends, strict=True)])


def _text(lines: list[str]) -> str:
    return f'<div class="mj-text">{html.escape(chr(10).join(lines))}</div>'


def _section(lines: list[str], goes_on: int | None) -> str:
    """Return a heading and what is under it, which folds away; no character is changed."""
    rest = [*lines[1:], ""] if goes_on else lines[1:]
    newline = chr(10) if rest else ""
    return (
        f'<details class="mj-section" open><summary>{html.escape(lines[0])}{newline}</summary>'
        f"{_text(rest)}</details>"
    )


def _is_heading(line: str) -> bool:
    """Return whether a line is surely a heading; a line of values or of a list is none."""
    return HEADING.fullmatch(line) is not None and LETTERS.search(line) is not None


def _is_dialogue(text: str) -> bool:
    """Return whether nearly every line that is not empty begins with who speaks."""
    lines = [line for line in text.split("\n") if line.strip()]
    turns = sum(TURN.match(line) is not None for line in lines)
    return turns >= FEWEST_TURNS and turns >= 0.6 * len(lines)


def _line(line: str) -> str:
    """Return one line of a dialogue, every character of it in place."""
    match = TURN.match(line)
    if match is None:
        return f'<div class="mj-turn"><span></span><span>{html.escape(line)}\n</span></div>'
    speaker, space, speech = (html.escape(group) for group in match.groups())
    first = "mj-turn mj-first" if _asks(match[1]) else "mj-turn"
    return f'<div class="{first}"><span class="mj-who">{speaker}{space}</span><span>{speech}\n</span></div>'


def _asks(speaker: str) -> bool:
    """Return whether the speaker is on the clinic's side, to tell the voices apart by eye."""
    return bool(re.search(r"doctor|physician|clinician|nurse|^\[?dr\b", speaker, re.IGNORECASE))
