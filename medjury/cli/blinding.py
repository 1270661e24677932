"""`medjury study blind`, and masking at import: no response names its author to a rater."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy import Engine

from annotate.blind import MARK, Found, Masked, Why, find_self_naming, mask
from data.errors import BadInput, Unknown
from data.person import OPERATOR
from data.study.authors import author_names
from data.study.masks import (
    LeftNames,
    MaskedText,
    StoredText,
    TextPlace,
    known_response_ids,
    leave_names,
    mask_responses,
    names_left,
    record_names_shown,
    searched_up_to,
    stored_texts,
)
from medjury.cli.files import write_json
from medjury.cli.options import Db, Json, study_of
from medjury.cli.output import counted, progress, say

AROUND = 60
LONGEST = 40  # characters of a find that are listed
HOW = (
    "`medjury study blind --mask ID@PLACE` masks one, `--mask ID` all of a response; `--leave ID@PLACE` "
    "or `--leave ID` leaves it for good, `--leave-words WORDS` leaves these words in every response; "
    "`--show-names` shows the words themselves, which is recorded"
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
    show_names: Annotated[
        bool, typer.Option("--show-names", help="Show the names in the list; this is recorded.")
    ] = False,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """List text that may name a response's author; mask it or leave it.

    For coordinators. ID is a response, ID@START one place of it as listed. The names themselves
    are blotted out. What somebody has begun or rated is never changed.

    Example:
    medjury study blind --list
    """
    engine = study_of(context, db)
    mask_new(engine, json_to)
    if masked:
        _mask_by_hand(engine, _chosen(engine, masked), json_to)
    if left or words:
        _leave(engine, left or [], words or [], json_to)
    if listed or show_masked or show_names or not (masked or left or words):
        _list(engine, _masked_places if show_masked else _doubtful, show_names, json_to)


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


def mask_new(engine: Engine, json_to: Path | None = None) -> Searched:
    """Search the responses not yet searched, mask what surely names an author, and say so.

    Page by page, each kept at once: a search that is cut short goes on where it ended.
    """
    names, searched = author_names(engine), Searched()
    with progress("looking for authors' names", None) as at:
        for page in stored_texts(engine, searched_up_to(engine)):
            _search(engine, page, names, searched)
            at(page[-1].response)
    _say_searched(searched, json_to)
    return searched


def _search(
    engine: Engine, page: Sequence[StoredText], names: Sequence[str], searched: Searched
) -> None:
    masked = {response.response: mask(response.text, names) for response in page}
    hits = [_as_stored(response.response, masked[response.response]) for response in page]
    hits = [masked_text for masked_text in hits if masked_text.places]
    searched.possible += sum(
        len(_remaining(response, _places(masked[response.response].changes), names))
        for response in page
    )
    stored, begun = mask_responses(engine, hits, searched=page[-1].response)
    searched.masked, searched.begun = searched.masked + stored, searched.begun + begun
    changes = [change for text in masked.values() for change in text.changes]
    searched.places += len(changes)
    searched.reasoning += sum(change.why is Why.REASONING for change in changes)


def _as_stored(response: int, masked: Masked) -> MaskedText:
    return MaskedText(response, masked.text, _places(masked.changes))


def _places(spans: Iterable[Found]) -> list[TextPlace]:
    return [(span.start, span.end, span.text) for span in spans]


def _remaining(
    response: StoredText, masked: Iterable[TextPlace], names: Sequence[str]
) -> list[Found]:
    """Return what may name an author, less what is masked."""
    taken = list(masked)
    return [
        span
        for span in find_self_naming(response.text, names)
        if not any(start < span.end and span.start < end for start, end, _ in taken)
    ]


def _say_searched(searched: Searched, json_to: Path | None) -> None:
    if searched.masked:
        blocks = (
            f", {counted(searched.reasoning, 'block')} of reasoning" if searched.reasoning else ""
        )
        say(
            f"{searched.masked} responses named their author: masked ({searched.places} places{blocks})",
            json_to,
        )
    if searched.begun:
        say(
            f"{searched.begun} responses name their author and were left: somebody has begun them",
            json_to,
        )
    if searched.possible:
        say(
            f"{searched.possible} possible places left as they are: `medjury study blind` lists them",
            json_to,
        )


def _chosen(engine: Engine, keys: Sequence[str]) -> LeftNames:
    """Read ID and ID@START; an ID that ends in an @ and a number is itself if there is one."""
    response_ids = known_response_ids(engine, keys)
    places = {}
    for key in set(keys) - response_ids:
        name, at, start = key.rpartition("@")
        places[key] = (name, int(start)) if at and start.isdecimal() else None
    if lost := sorted(key for key, place in places.items() if place is None):
        raise Unknown(f"no response {', '.join(lost)} in this study")
    return LeftNames(response_ids, frozenset(place for place in places.values() if place))


def _leave(engine: Engine, keys: Sequence[str], words: Sequence[str], json_to: Path | None) -> None:
    """Record what betrays nobody, by its places in the stored texts."""
    chosen = _chosen(engine, keys)
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
    chosen = replace(chosen, places=places, words=frozenset(word.casefold() for word in words))
    leave_names(engine, chosen)
    counts = [
        (len(chosen.responses), "responses"),
        (len(chosen.places), "places"),
        (len(chosen.words), "words"),
    ]
    parts = [f"{number} {noun}" for number, noun in counts if number]
    say(f"{', '.join(parts)} left as they are; recorded", json_to)


def _texts_of(engine: Engine, response_ids: Collection[str]) -> list[StoredText]:
    return [
        response
        for page in stored_texts(engine)
        for response in page
        if response.response_id in response_ids
    ]


def _mask_by_hand(engine: Engine, chosen: LeftNames, json_to: Path | None) -> None:
    """Mask what is listed of some responses, or single places, unless somebody has begun them."""
    names = author_names(engine)
    response_ids = chosen.responses | {name for name, _ in chosen.places}
    texts = _texts_of(engine, response_ids)
    if lost := response_ids - {response.response_id for response in texts}:
        raise Unknown(f"no response {', '.join(sorted(lost))} in this study")
    listed = {
        response.response_id: [
            span
            for span in _remaining(response, response.places, names)
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
        masked_at(response, [*response.places, *_places(listed[response.response_id])])
        for response in texts
    ]
    changed, begun = mask_responses(engine, masked)
    say(f"{changed} responses masked, {begun} left as they are: somebody has begun them", json_to)


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


def _doubtful(engine: Engine, names: Sequence[str]) -> list[Place]:
    """Return what may name an author, is not masked and was not left."""
    left = names_left(engine)
    return [
        (response, span)
        for page in stored_texts(engine)
        for response in page
        for span in _remaining(response, response.places, names)
        if not left.covers(response.response_id, span.start, span.text)
    ]


def _masked_places(engine: Engine, names: Sequence[str]) -> list[Place]:
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


def _list(
    engine: Engine,
    find: Callable[[Engine, Sequence[str]], list[Place]],
    show_names: bool,
    json_to: Path | None,
) -> None:
    """List places, and say how to mask or leave them; the record says it before names are shown."""
    names = author_names(engine)
    places = find(engine, names)
    if show_names and places:
        responses = {response.response_id for response, _ in places}
        record_names_shown(engine, OPERATOR.actor, len(places), len(responses))
    listed = [_listed(response, span, names, show_names) for response, span in places]
    for place in listed:
        say(
            f"{place['response']}@{place['start']}  {place['text']}  ({WHY[place['why']]})", json_to
        )
        say(f"    {place['around']}", json_to)
    if places:
        say(f"{counted(len(places), 'place')}. {HOW}", json_to)
    else:
        say("nothing that may name an author is left unmasked", json_to)
    write_json({"places": listed}, json_to)


def _listed(
    response: StoredText, span: Found, names: Sequence[str], show_names: bool
) -> dict[str, Any]:
    """Return a place as it is listed, what may name an author blotted out unless it is shown."""
    text, start, end, word = response.text, span.start, span.end, span.text
    if not show_names:
        every = [*response.places, *_places(find_self_naming(text, names))]
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
