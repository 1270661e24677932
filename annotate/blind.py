"""Finding and masking what betrays the author of a response, and nothing else.

What is sure is masked by a neutral mark and recorded, so that it can be audited and undone.
What may be a patient, a wind or a laboratory value is reported as possible and left alone.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from annotate import clues
from annotate.authors import default_names, folded

__all__ = ["MARK", "Found", "Masked", "default_names", "find_self_naming", "mask", "unmask"]

MARK = "[author masked]"
Kind = Literal["sure", "possible"]


@dataclass(frozen=True, slots=True)
class Found:
    """A place of a text, in characters, that betrays its author or may do so."""

    start: int
    end: int
    text: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Masked:
    """A text with marks in it, and what they replaced, at its places in the original."""

    text: str
    changes: tuple[Found, ...] = ()


def find_self_naming(text: str, names: Sequence[str] = ()) -> list[Found]:
    """Find what betrays an author, in the order of the text, without overlaps.

    Parameters
    ----------
    text
        A response, verbatim.
    names
        The study's models, families and makers. Ids with a number (`gpt-4o`) are sure in any
        spelling of their separators; plain words (`nova`) are possible, and sure only where
        the text introduces itself by them. Long names of several parts (`house-mistral-x`) are
        sure with anything between their letters, and look-alike letters count as Latin ones.

    Returns
    -------
    list[Found]
        `sure`: a model's or maker's name that means nothing else, an author's introduction,
        "as an AI language model". `possible`: a name that people or things bear too, or one
        that the text says someone else used. Laboratory GPT is neither.
    """
    known, read = tuple(sorted(set(names))), folded(text)
    sure = _merged(
        [
            *clues.self_descriptions(read),
            *clues.own_names(read, known),
            *clues.plain_names(read, known),
            *clues.introductions(read, known),
        ]
    )
    doubtful = [one for one in _merged([*clues.doubtful_names(read, known)]) if _free(one, sure)]
    found = [Found(*span, text[slice(*span)], "sure") for span in sure]
    found += [Found(*span, text[slice(*span)], "possible") for span in doubtful]
    return sorted(found, key=lambda one: one.start)


def mask(text: str, names: Sequence[str] = ()) -> Masked:
    """Put a mark in the place of all that is sure; every other character stays as it is."""
    masked = Masked(text)
    while found := [one for one in find_self_naming(masked.text, names) if one.kind == "sure"]:
        masked = _mask_more(masked, found)
    return masked


def unmask(masked: Masked) -> str:
    """Return the original text."""
    parts, at, shift = [], 0, 0
    for one in masked.changes:
        parts += [masked.text[at : one.start + shift], one.text]
        at = one.start + shift + len(MARK)
        shift += len(MARK) - len(one.text)
    return "".join([*parts, masked.text[at:]])


def _mask_more(masked: Masked, found: Sequence[Found]) -> Masked:
    """Mask what a masked text still holds; the record stays in places of the original."""
    parts, at = [], 0
    changes = list(masked.changes)
    for one in found:
        parts += [masked.text[at : one.start], MARK]
        at = one.end
        start = _original(masked, one.start)
        changes.append(Found(start, start + len(one.text), one.text, "sure"))
    text = "".join([*parts, masked.text[at:]])
    return Masked(text, tuple(sorted(changes, key=lambda one: one.start)))


def _original(masked: Masked, place: int) -> int:
    """Return where a place of a masked text stood before."""
    shift = 0
    for one in masked.changes:
        if one.start + shift >= place:
            break
        shift += len(MARK) - len(one.text)
    return place - shift


def _free(span: clues.Span, taken: Sequence[clues.Span]) -> bool:
    """Whether a span overlaps none of those in order."""
    place = bisect_right(taken, span[0], key=lambda one: one[1])
    return place == len(taken) or span[1] <= taken[place][0]


def _merged(spans: Sequence[clues.Span]) -> list[clues.Span]:
    """Return spans in order, overlapping ones as one."""
    merged: list[clues.Span] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
