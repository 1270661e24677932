"""Places of responses that may name their author: listed with the names blotted, masked or left."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Engine

from data.errors import BadInput, Unknown
from data.person import Person, only
from data.schema import Role
from data.study.authors import author_names
from data.study.masks import (
    LeftNames,
    MaskedText,
    StoredText,
    TextPlace,
    leave_names,
    mask_responses,
    names_left,
    searched_up_to,
    stored_texts,
)
from medjury.services.blinding.search import MARK, Found, Masked, Why, find_self_naming, mask

AROUND = 60
LONGEST = 40  # characters of a find that are listed


@only(Role.COORDINATOR)
def doubtful_places(_: Person, engine: Engine) -> list[dict[str, Any]]:
    """Return what may name an author, is not masked and was not left; the names are blotted."""
    names = author_names(engine)
    return [listed_place(*place, names, False) for place in doubtful(engine, names)]


@only(Role.COORDINATOR)
def mask_places(_: Person, engine: Engine, chosen: LeftNames) -> tuple[int, int]:
    """Mask places by hand, as `mask_by_hand` does."""
    return mask_by_hand(engine, chosen)


@only(Role.COORDINATOR)
def leave_places(_: Person, engine: Engine, chosen: LeftNames) -> None:
    """Leave places as they are, as `leave` does."""
    leave(engine, chosen)


@only(Role.COORDINATOR)
def mask_found(_: Person, engine: Engine) -> int:
    """Mask what surely names an author, as `mask_new` does; return in how many responses."""
    return sum(masked for *_, masked, _ in mask_new(engine))


def mask_new(engine: Engine) -> Iterator[tuple[list[StoredText], dict[int, Masked], int, int]]:
    """Mask what surely names an author in the responses not yet searched.

    Page by page, each kept at once: a search that is cut short goes on where it ended.

    Yields
    ------
    page, masked, number, begun
        Responses, what was found in each by its primary key, how many were masked, and how many
        were left because somebody has begun them.
    """
    names = author_names(engine)
    for page in stored_texts(engine, searched_up_to(engine)):
        masked = {response.response: mask(response.text, names) for response in page}
        hits = [
            MaskedText(response, found.text, places_of(found.changes))
            for response, found in masked.items()
            if found.changes
        ]
        yield page, masked, *mask_responses(engine, hits, searched=page[-1].response)


def places_of(spans: Iterable[Found]) -> list[TextPlace]:
    """Return what was found as (start, end, text)."""
    return [(span.start, span.end, span.text) for span in spans]


def remaining(
    response: StoredText, masked: Iterable[TextPlace], names: Sequence[str]
) -> list[Found]:
    """Return what may name an author, less what is masked."""
    taken = list(masked)
    return [
        span
        for span in find_self_naming(response.text, names)
        if not any(start < span.end and span.start < end for start, end, _ in taken)
    ]


def _texts_of(engine: Engine, response_ids: Collection[str]) -> list[StoredText]:
    return [
        response
        for page in stored_texts(engine)
        for response in page
        if response.response_id in response_ids
    ]


def leave(engine: Engine, chosen: LeftNames) -> LeftNames:
    """Record what betrays nobody; its places are those of the texts as raters see them.

    Return it by its places in the stored texts.

    Raises
    ------
    Unknown
        If a response is not in the study.
    """
    texts = {
        text.response_id: text for text in _texts_of(engine, {name for name, _ in chosen.places})
    }
    places = frozenset(
        (name, _in_stored(texts[name].places, start))
        for name, start in chosen.places
        if name in texts
    )
    if len(places) < len(chosen.places):
        lost = {name for name, _ in chosen.places} - texts.keys()
        raise Unknown(f"no response {', '.join(sorted(lost))} in this study")
    chosen = replace(chosen, places=places)
    leave_names(engine, chosen)
    return chosen


def mask_by_hand(engine: Engine, chosen: LeftNames) -> tuple[int, int]:
    """Mask what is listed of some responses, or single places, unless somebody has begun them.

    Return how many responses were masked, and how many were left because somebody has begun them.

    Raises
    ------
    Unknown, BadInput
        If a response is not in the study, or nothing in it is listed.
    """
    names = author_names(engine)
    response_ids = chosen.responses | {name for name, _ in chosen.places}
    texts = _texts_of(engine, response_ids)
    if lost := response_ids - {response.response_id for response in texts}:
        raise Unknown(f"no response {', '.join(sorted(lost))} in this study")
    listed = {
        response.response_id: [
            span
            for span in remaining(response, response.places, names)
            if chosen.covers(response.response_id, _in_shown(response.places, span.start), "")
        ]
        for response in texts
    }
    starts = {
        (text.response_id, _in_shown(text.places, span.start))
        for text in texts
        for span in listed[text.response_id]
    }
    empty = [name for name in sorted(chosen.responses) if not listed[name]]
    if empty := [*empty, *(f"{name}@{start}" for name, start in sorted(chosen.places - starts))]:
        raise BadInput(f"nothing in {', '.join(empty)} is listed; nothing was masked")
    masked = [
        masked_at(response, [*response.places, *places_of(listed[response.response_id])])
        for response in texts
    ]
    return mask_responses(engine, masked)


def masked_at(response: StoredText, places: Iterable[TextPlace]) -> MaskedText:
    """Return a response with a mark in the place of each stretch, overlapping ones as one."""
    spans, at, parts = list(places), 0, list[str]()
    for start, end in _merged(spans):
        parts += [response.text[at:start], MARK]
        at = end
    return MaskedText(response.response, "".join([*parts, response.text[at:]]), spans)


def _merged(places: Iterable[TextPlace]) -> list[tuple[int, int]]:
    """Return where stretches begin and end, overlapping ones as one."""
    merged: list[tuple[int, int]] = []
    for start, end, _ in sorted(places):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


def _in_shown(places: Iterable[TextPlace], at: int) -> int:
    """Return where a place of the stored text stands in the text as raters see it.

    Lists count so: in the stored text a place tells how long the masked names before it are.
    """
    return at + sum(len(MARK) - (end - start) for start, end in _merged(places) if end <= at)


def _in_stored(places: Iterable[TextPlace], at: int) -> int:
    """Return where a place of the text as raters see it stands in the stored text."""
    for start, end in _merged(places):
        if start >= at:
            break
        at += end - start - len(MARK)
    return at


Place = tuple[StoredText, Found]


def doubtful(engine: Engine, names: Sequence[str]) -> list[Place]:
    """Return what may name an author, is not masked and was not left."""
    left = names_left(engine)
    return [
        (response, span)
        for page in stored_texts(engine)
        for response in page
        for span in remaining(response, response.places, names)
        if not left.covers(response.response_id, span.start, span.text)
    ]


def masked_places(engine: Engine, names: Sequence[str]) -> list[Place]:
    """Return what is masked; what it is, where the search finds it by itself."""
    return [
        (response, Found(start, end, text, "sure", _why(response.text, start, end, names)))
        for page in stored_texts(engine)
        for response in page
        for start, end, text in sorted(response.places)
    ]


def _why(text: str, start: int, end: int, names: Sequence[str]) -> Why:
    spans = find_self_naming(text, names)
    whys = (span.why for span in spans if span.start < end and start < span.end)
    return next(whys, Why.OTHER_MEANING)


def listed_place(
    response: StoredText, span: Found, names: Sequence[str], show_names: bool
) -> dict[str, Any]:
    """Return a place as it is listed, what may name an author blotted out unless it is shown."""
    text, start, end, word = response.text, span.start, span.end, span.text
    if not show_names:
        every = [*response.places, *places_of(find_self_naming(text, names))]
        text = masked_at(response, every).shown
        start = next(_in_shown(every, s) for s, e in _merged(every) if s <= span.start < e)
        end, word = start + len(MARK), MARK
    return {
        "response": response.response_id,
        "start": _in_shown(response.places, span.start),
        "text": _on_one_line(word if len(word) <= LONGEST else f"{word[:LONGEST]}..."),
        "why": span.why,
        "around": _on_one_line(text[max(0, start - AROUND) : min(end, start + AROUND) + AROUND]),
    }


def _on_one_line(text: str) -> str:
    """Return a text without control characters."""
    return "".join(sign if sign.isprintable() else " " for sign in text)
