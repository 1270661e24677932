"""`medjury blind`, and masking at import: no response names its author to a rater."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from sqlalchemy import Engine

from annotate.blind import MARK, find_self_naming, mask
from data.errors import BadInput, Unknown
from data.queries.steering import (
    Place,
    StoredText,
    author_names,
    names_left,
    searched_up_to,
    stored_texts,
)
from data.store.masks import MaskedText, leave_names, mask_responses
from medjury.cli.options import Db, study_of
from medjury.cli.output import progress, say, show

AROUND = 60


def blind(
    context: typer.Context,
    listed: Annotated[bool, typer.Option("--list", help="List them; the default.")] = False,
    masked: Annotated[
        list[str] | None,
        typer.Option("--mask", metavar="RESPONSE_ID", help="Mask all that is listed of it."),
    ] = None,
    left: Annotated[
        list[str] | None,
        typer.Option("--not", metavar="RESPONSE_ID", help="It betrays nobody; list it no more."),
    ] = None,
    db: Db = None,
) -> None:
    """List what may name a response's author and is not masked; mask it, or leave it for good.

    For coordinators. What somebody has begun or rated is never changed.
    """
    engine = study_of(context, db)
    mask_new(engine)
    if masked:
        _mask_by_hand(engine, masked)
    if left:
        leave_names(engine, left)
        say(f"{len(set(left))} responses left as they are; recorded")
    if listed or not (masked or left):
        _list(engine)


@dataclass(slots=True)
class Searched:
    """What a search of new responses found: responses and places masked, and what was not."""

    masked: int = 0
    places: int = 0
    possible: int = 0
    begun: int = 0


def mask_new(engine: Engine) -> Searched:
    """Search the responses not yet searched, mask what surely names an author, and say so.

    Page by page, each kept at once: a search that is cut short goes on where it ended.
    """
    names, found = author_names(engine), Searched()
    with progress("looking for authors' names", None) as at:
        for page in stored_texts(engine, searched_up_to(engine)):
            _search(engine, page, names, found)
            at(page[-1].response)
    _say_searched(found)
    return found


def _search(
    engine: Engine, page: Sequence[StoredText], names: Sequence[str], found: Searched
) -> None:
    sure = {one.response: _sure(one, names) for one in page}
    hits = [one for one in sure.values() if one.places]
    found.possible += sum(len(_remaining(one, sure[one.response].places, names)) for one in page)
    done, left = mask_responses(engine, hits, searched=page[-1].response)
    found.masked, found.begun = found.masked + done, found.begun + left
    found.places += sum(len(one.places) for one in hits)


def _sure(one: StoredText, names: Sequence[str]) -> MaskedText:
    masked = mask(one.text, names)
    places = [(change.start, change.end, change.text) for change in masked.changes]
    return MaskedText(one.response, masked.text, places)


def _remaining(one: StoredText, masked: Iterable[Place], names: Sequence[str]) -> list[Place]:
    """Return the places that may name an author, less those that are masked."""
    taken = list(masked)
    return [
        (found.start, found.end, found.text)
        for found in find_self_naming(one.text, names)
        if not any(start < found.end and found.start < end for start, end, _ in taken)
    ]


def _say_searched(found: Searched) -> None:
    if found.masked:
        say(f"{found.masked} responses named their author: masked ({found.places} places)")
    if found.begun:
        say(f"{found.begun} responses name their author and were left: somebody has begun them")
    if found.possible:
        say(f"{found.possible} possible places left as they are: `medjury blind` lists them")


def _mask_by_hand(engine: Engine, response_ids: Sequence[str]) -> None:
    """Mask all that is listed of some responses, unless somebody has begun them."""
    names, wanted = author_names(engine), set(response_ids)
    chosen = [one for page in stored_texts(engine) for one in page if one.response_id in wanted]
    if lost := wanted - {one.response_id for one in chosen}:
        raise Unknown(f"no response {', '.join(sorted(lost))} in this study")
    more = {one.response_id: _remaining(one, one.places, names) for one in chosen}
    if empty := sorted(name for name, places in more.items() if not places):
        raise BadInput(f"nothing in {', '.join(empty)} is listed; nothing was masked")
    masked = [masked_at(one, [*one.places, *more[one.response_id]]) for one in chosen]
    done, left = mask_responses(engine, masked)
    say(f"{done} responses masked, {left} left as they are: somebody has begun them")


def masked_at(one: StoredText, places: Iterable[Place]) -> MaskedText:
    """Return a response with a mark in the place of each stretch, overlapping ones as one."""
    parts: list[str] = []
    kept, at = list(places), 0
    for start, end, _ in sorted(kept):
        if start >= at:
            parts += [one.text[at:start], MARK]
        at = max(at, end)
    return MaskedText(one.response, "".join([*parts, one.text[at:]]), kept)


def _list(engine: Engine) -> None:
    names, left = author_names(engine), names_left(engine)
    rows = [
        [one.response_id, found[2], _context(one.text, found)]
        for page in stored_texts(engine)
        for one in page
        if one.response_id not in left
        for found in _remaining(one, one.places, names)
    ]
    if not rows:
        say("nothing that may name an author is left unmasked")
        return
    show("May name the author", ["response", "found", "where"], rows)
    say("`medjury blind --mask RESPONSE_ID` masks it, `--not RESPONSE_ID` leaves it for good")


def _context(text: str, place: Place) -> str:
    """Return what stands around a place, on one line and without control characters."""
    start, end, _ = place
    around = text[max(0, start - AROUND) : end + AROUND]
    return "".join(sign if sign.isprintable() else " " for sign in around)
