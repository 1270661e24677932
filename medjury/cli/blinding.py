"""`medjury study blind`, and masking at import: no response names its author to a rater."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import Engine

from annotate.blind import MARK, Found, Masked, Why, find_self_naming, mask
from data.errors import BadInput, Unknown
from data.queries.authors import author_names
from data.queries.text_search import (
    StoredText,
    TextPlace,
    known_response_ids,
    names_left,
    searched_up_to,
    stored_texts,
)
from data.store.masks import LeftNames, MaskedText, leave_names, mask_responses
from medjury.cli.options import Db, Json, study_of
from medjury.cli.output import counted, progress, say
from medjury.cli.places import write_json

AROUND = 60
LONGEST = 40  # characters of a find that are listed
HOW = (
    "`medjury study blind --mask ID@PLACE` masks one, `--mask ID` all of a response; `--leave ID@PLACE` "
    "or `--leave ID` leaves it for good, `--leave-words WORDS` leaves these words in every response"
)
WHY = {
    Why.NAME: "name of a model or maker",
    Why.OWN: "name of a model of this study",
    Why.SAYS: "says that a machine wrote it",
    Why.INTRODUCED: "introduces its author",
    Why.REASONING: "reasoning before the answer",
    Why.TEMPLATE: "mark of a chat format",
    Why.USED: "a model that somebody may have used",
    Why.OTHER_MEANING: "may be a person, a place or a thing",
    Why.DISGUISED: "a name with other signs for letters",
}


def blind(
    context: typer.Context,
    listed: Annotated[
        bool, typer.Option("--list", help="List possible names of authors; the default.")
    ] = False,
    masked: Annotated[
        list[str] | None,
        typer.Option(
            "--mask",
            metavar="ID[@START]",
            help="Mask this response, or one place in it, as listed.",
        ),
    ] = None,
    left: Annotated[
        list[str] | None,
        typer.Option(
            "--leave",
            metavar="ID[@START]",
            help="Leave it unmasked: it names no author; list it no more.",
        ),
    ] = None,
    words: Annotated[
        list[str] | None,
        typer.Option(
            "--leave-words", metavar="WORDS", help="Leave these words unmasked in every response."
        ),
    ] = None,
    show_masked: Annotated[bool, typer.Option("--masked", help="List what is masked.")] = False,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """List text that may name a response's author; mask it or leave it.

    For coordinators. ID is a response, ID@START one place of it as listed. What somebody has
    begun or rated is never changed.
    """
    engine = study_of(context, db)
    mask_new(engine, json_to)
    if masked:
        _mask_by_hand(engine, _chosen(engine, masked), json_to)
    if left or words:
        _leave(engine, left or [], words or [], json_to)
    if listed or show_masked or not (masked or left or words):
        _list(_masked_places(engine) if show_masked else _doubtful(engine), json_to)


@dataclass(slots=True)
class Searched:
    """What a search of new responses found: responses and places masked, and what was not.

    `reasoning` counts the masked blocks in which a model reasons.
    """

    masked: int = 0
    places: int = 0
    reasoning: int = 0
    possible: int = 0
    begun: int = 0


@dataclass(frozen=True, slots=True)
class Listed:
    """A place of a response (response_id), in characters of its stored text, and what it is."""

    response: str
    start: int
    end: int
    text: str
    why: Why
    around: str


def mask_new(engine: Engine, json_to: Path | None = None) -> Searched:
    """Search the responses not yet searched, mask what surely names an author, and say so.

    Page by page, each kept at once: a search that is cut short goes on where it ended.
    """
    names, found = author_names(engine), Searched()
    with progress("looking for authors' names", None) as at:
        for page in stored_texts(engine, searched_up_to(engine)):
            _search(engine, page, names, found)
            at(page[-1].response)
    _say_searched(found, json_to)
    return found


def _search(
    engine: Engine, page: Sequence[StoredText], names: Sequence[str], found: Searched
) -> None:
    sure = {one.response: mask(one.text, names) for one in page}
    hits = [_as_stored(one.response, sure[one.response]) for one in page]
    hits = [one for one in hits if one.places]
    found.possible += sum(
        len(_remaining(one, _places(sure[one.response].changes), names)) for one in page
    )
    done, left = mask_responses(engine, hits, searched=page[-1].response)
    found.masked, found.begun = found.masked + done, found.begun + left
    changes = [one for text in sure.values() for one in text.changes]
    found.places += len(changes)
    found.reasoning += sum(one.why is Why.REASONING for one in changes)


def _as_stored(response: int, masked: Masked) -> MaskedText:
    return MaskedText(response, masked.text, _places(masked.changes))


def _places(found: Iterable[Found]) -> list[TextPlace]:
    return [(one.start, one.end, one.text) for one in found]


def _remaining(one: StoredText, masked: Iterable[TextPlace], names: Sequence[str]) -> list[Found]:
    """Return what may name an author, less what is masked."""
    taken = list(masked)
    return [
        found
        for found in find_self_naming(one.text, names)
        if not any(start < found.end and found.start < end for start, end, _ in taken)
    ]


def _say_searched(found: Searched, json_to: Path | None) -> None:
    if found.masked:
        blocks = f", {counted(found.reasoning, 'block')} of reasoning" if found.reasoning else ""
        say(
            f"{found.masked} responses named their author: masked ({found.places} places{blocks})",
            json_to,
        )
    if found.begun:
        say(
            f"{found.begun} responses name their author and were left: somebody has begun them",
            json_to,
        )
    if found.possible:
        say(
            f"{found.possible} possible places left as they are: `medjury study blind` lists them",
            json_to,
        )


def _chosen(engine: Engine, keys: Sequence[str]) -> LeftNames:
    """Read ID and ID@START; an ID that ends in an @ and a number is itself if there is one."""
    known = known_response_ids(engine, keys)
    places = {}
    for key in set(keys) - known:
        name, at, start = key.rpartition("@")
        places[key] = (name, int(start)) if at and start.isdecimal() else None
    if lost := sorted(key for key, place in places.items() if place is None):
        raise Unknown(f"no response {', '.join(lost)} in this study")
    return LeftNames(known, frozenset(place for place in places.values() if place))


def _leave(engine: Engine, keys: Sequence[str], words: Sequence[str], json_to: Path | None) -> None:
    """Record what betrays nobody."""
    chosen = replace(_chosen(engine, keys), words=frozenset(one.casefold() for one in words))
    leave_names(engine, chosen)
    told = [
        (len(chosen.responses), "responses"),
        (len(chosen.places), "places"),
        (len(chosen.words), "words"),
    ]
    parts = [f"{number} {what}" for number, what in told if number]
    say(f"{', '.join(parts)} left as they are; recorded", json_to)


def _mask_by_hand(engine: Engine, chosen: LeftNames, json_to: Path | None) -> None:
    """Mask what is listed of some responses, or single places, unless somebody has begun them."""
    names = author_names(engine)
    wanted = chosen.responses | {name for name, _ in chosen.places}
    texts = [one for page in stored_texts(engine) for one in page if one.response_id in wanted]
    if lost := wanted - {one.response_id for one in texts}:
        raise Unknown(f"no response {', '.join(sorted(lost))} in this study")
    more = {
        one.response_id: [
            found
            for found in _remaining(one, one.places, names)
            if chosen.covers(one.response_id, found.start, "")
        ]
        for one in texts
    }
    if empty := _not_listed(chosen, more):
        raise BadInput(f"nothing in {', '.join(empty)} is listed; nothing was masked")
    masked = [masked_at(one, [*one.places, *_places(more[one.response_id])]) for one in texts]
    done, left = mask_responses(engine, masked)
    say(f"{done} responses masked, {left} left as they are: somebody has begun them", json_to)


def _not_listed(chosen: LeftNames, listed: Mapping[str, Sequence[Found]]) -> list[str]:
    """Return what was named and is not in the list."""
    starts = {(name, one.start) for name, found in listed.items() for one in found}
    return sorted(
        [name for name in chosen.responses if not listed[name]]
        + [f"{name}@{start}" for name, start in chosen.places - starts]
    )


def masked_at(one: StoredText, places: Iterable[TextPlace]) -> MaskedText:
    """Return a response with a mark in the place of each stretch, overlapping ones as one."""
    parts: list[str] = []
    kept, at = list(places), 0
    for start, end, _ in sorted(kept):
        if start >= at:
            parts += [one.text[at:start], MARK]
        at = max(at, end)
    return MaskedText(one.response, "".join([*parts, one.text[at:]]), kept)


def _doubtful(engine: Engine) -> list[Listed]:
    """Return what may name an author, is not masked and was not left."""
    names, left = author_names(engine), names_left(engine)
    return [
        _listed(one, found)
        for page in stored_texts(engine)
        for one in page
        for found in _remaining(one, one.places, names)
        if not left.covers(one.response_id, found.start, found.text)
    ]


def _masked_places(engine: Engine) -> list[Listed]:
    """Return what is masked; what it is, where the search finds it by itself."""
    names = author_names(engine)
    return [
        _listed(one, Found(start, end, text, "sure", _why(one.text, start, end, names)))
        for page in stored_texts(engine)
        for one in page
        for start, end, text in sorted(one.places)
    ]


def _why(text: str, start: int, end: int, names: Sequence[str]) -> Why:
    found = find_self_naming(text, names)
    whys = (one.why for one in found if one.start < end and start < one.end)
    return next(whys, Why.OTHER_MEANING)


def _listed(one: StoredText, found: Found) -> Listed:
    around = _context(one.text, (found.start, found.end, found.text))
    return Listed(one.response_id, found.start, found.end, found.text, found.why, around)


def _list(found: Sequence[Listed], json_to: Path | None) -> None:
    """List places, and say how to mask or leave them."""
    for one in found:
        say(f"{one.response}@{one.start}  {_on_one_line(one.text)}  ({WHY[one.why]})", json_to)
        say(f"    {one.around}", json_to)
    if found:
        say(f"{counted(len(found), 'place')}. {HOW}", json_to)
    else:
        say("nothing that may name an author is left unmasked", json_to)
    write_json({"places": [asdict(one) for one in found]}, json_to)


def _on_one_line(text: str) -> str:
    """Return the beginning of a text without control characters."""
    shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
    return "".join(sign if sign.isprintable() else " " for sign in shown)


def _context(text: str, place: TextPlace) -> str:
    """Return what stands around a place, on one line and without control characters."""
    start, end, _ = place
    around = text[max(0, start - AROUND) : min(end, start + AROUND) + AROUND]
    return "".join(sign if sign.isprintable() else " " for sign in around)
