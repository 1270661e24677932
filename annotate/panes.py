"""Texts as HTML: verbatim, escaped, never interpreted; a dialogue laid out by its turns."""

import html
import re
from importlib.resources import files

STYLE = (files("annotate") / "panes.css").read_text("utf-8")
TURN = re.compile(r"^(\[[^\W\d_][\w .-]{0,30}\]|[A-Z][a-zA-Z .-]{0,30}:)(\s*)(.*)$")
# What has no glyph, and what HTML cannot carry, is shown by its picture in Unicode.
PICTURES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n\r"} | {
    0x7F: 0x2421
}
FEWEST_TURNS = 3


def style() -> str:
    """Return the style sheet of the panes and of the page around them."""
    return f"<style>{STYLE}</style>"


def pane(text: str, label: str, name: str) -> str:
    """Return a text in a box of its own that scrolls."""
    return (
        f'<div class="mj-pane mj-{name}" tabindex="0" role="region" '
        f'aria-label="{html.escape(label)}">{_body(text)}</div>'
    )


def heading(text: str) -> str:
    """Return the heading above a pane."""
    return f'<h2 class="mj-heading">{html.escape(text)}</h2>'


def top(done: int, total: int, handle: str) -> str:
    """Return the line at the top of the page: how far the rater is, and who is signed in."""
    percent = round(100 * done / total) if total else 0
    return (
        '<div class="mj-top"><span class="mj-brand">medjury</span>'
        f'<span class="mj-count"><b>{done}</b> of <b>{total}</b> rated</span>'
        f'<span class="mj-bar" role="progressbar" aria-label="Responses rated" '
        f'aria-valuemin="0" aria-valuemax="{total}" aria-valuenow="{done}">'
        f'<span style="width:{percent}%"></span></span>'
        f'<span class="mj-who">{html.escape(handle)}</span>'
        '<a href="/logout" target="_self">Sign out</a></div>'
    )


def note(title: str, text: str) -> str:
    """Return a page that is only a message."""
    return f'<div class="mj-note"><h1>{html.escape(title)}</h1><p>{html.escape(text)}</p></div>'


def _body(text: str) -> str:
    """Return a text's lines, as turns where it is a dialogue."""
    lines = text.translate(PICTURES).splitlines() if _is_dialogue(text) else None
    if lines is None:
        return f'<div class="mj-text">{html.escape(text.translate(PICTURES))}</div>'
    return "".join(_line(one) for one in lines)


def _is_dialogue(text: str) -> bool:
    """Return whether nearly every line that is not empty begins with who speaks."""
    lines = [one for one in text.split("\n") if one.strip()]
    turns = sum(TURN.match(one) is not None for one in lines)
    return turns >= FEWEST_TURNS and turns >= 0.6 * len(lines)


def _line(line: str) -> str:
    """Return one line of a dialogue, every character of it in place."""
    found = TURN.match(line)
    if found is None:
        return f'<div class="mj-turn"><span></span><span>{html.escape(line)}\n</span></div>'
    who, space, said = (html.escape(one) for one in found.groups())
    first = "mj-turn mj-first" if _asks(found[1]) else "mj-turn"
    return (
        f'<div class="{first}"><span class="mj-who">{who}{space}</span><span>{said}\n</span></div>'
    )


def _asks(who: str) -> bool:
    """Return whether the speaker is on the clinic's side, to tell the voices apart by eye."""
    return bool(re.search(r"doctor|physician|clinician|nurse|^\[?dr\b", who, re.IGNORECASE))
