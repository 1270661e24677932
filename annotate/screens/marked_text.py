"""A response with the stretches that clinicians marked in it, verbatim; every text is escaped."""

import html
from collections.abc import Sequence
from itertools import pairwise

from annotate.panes import PICTURES
from data.card import Marked as Stretch

Marked = tuple[str, Stretch]  # who, what


def pane(text: str, stretches: Sequence[Marked]) -> str:
    """Return the response's box; a stretch is underlined by its kind and carries its numbers."""
    edges = {0, len(text)}
    for _, one in stretches:
        edges |= {max(0, min(one.start, len(text))), max(0, min(one.end, len(text)))}
    places = sorted(edges)
    parts = [_part(text, a, b, stretches) for a, b in pairwise(places)]
    return (
        '<div class="mj-pane mj-answer" tabindex="0" role="region" aria-label="Response">'
        f'<div class="mj-text">{"".join(parts)}</div></div>'
    )


def legend(stretches: Sequence[Marked]) -> str:
    """Return who marked what, by number."""
    if not stretches:
        return ""
    items = "".join(
        f"<li><b>{html.escape(one.error)}</b>, {html.escape(one.criterion)} "
        f"<small>{html.escape(who)}</small>{_note(one.note)}</li>"
        for who, one in stretches
    )
    return f'<ol class="mj-marks" aria-label="Marked stretches">{items}</ol>'


def _part(text: str, start: int, end: int, stretches: Sequence[Marked]) -> str:
    """Return a piece of the text that the same stretches cover."""
    words = text[start:end].replace("\r\n", "\n").replace("\r", "\n").translate(PICTURES)
    shown = html.escape(words)
    over = [
        (number, one)
        for number, (_, one) in enumerate(stretches, 1)
        if one.start <= start and one.end >= end
    ]
    if not over:
        return shown
    ending = [str(number) for number, one in over if one.end == end]
    numbers = f"<sup>{','.join(ending)}</sup>" if ending else ""
    kind = html.escape(over[0][1].error)
    return f'<mark class="mj-marked mj-{kind}">{shown}{numbers}</mark>'


def _note(note: str) -> str:
    return f": {html.escape(note)}" if note else ""
