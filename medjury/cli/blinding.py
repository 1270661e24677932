"""`medjury study blind`, and masking at import: no response names its author to a rater."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import typer
from sqlalchemy import Engine

from data.errors import Unknown
from data.person import OPERATOR
from data.study.authors import author_names
from data.study.masks import (
    LeftNames,
    known_response_ids,
    record_names_shown,
)
from medjury.cli.options import Study
from medjury.cli.output import counted, progress, say
from medjury.services.blinding.places import (
    Place,
    doubtful,
    leave,
    listed_place,
    mask_by_hand,
    masked_places,
    places_of,
    remaining,
)
from medjury.services.blinding.places import mask_new as search_new
from medjury.services.blinding.search import WHY, Why

HOW = (
    "`medjury study blind --mask ID@PLACE` masks one, `--mask ID` all of a response; `--leave ID@PLACE` "
    "or `--leave ID` leaves it for good, `--leave-words WORDS` leaves these words in every response; "
    "`--show-names` shows the words themselves, which is recorded"
)


def blind(
    study: Study,
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
) -> None:
    """List text that may name a response's author; mask it or leave it.

    For coordinators. ID is a response, ID@START one place of it as listed. The names themselves
    are blotted out. What somebody has begun or rated is never changed.

    Example:
    medjury study blind --list
    """
    engine = study.open()
    mask_new(engine)
    if masked:
        changed, begun = mask_by_hand(engine, _chosen(engine, masked))
        say(f"{changed} responses masked, {begun} left as they are: somebody has begun them")
    if left or words:
        _leave(engine, left or [], words or [])
    if listed or show_masked or show_names or not (masked or left or words):
        places = _list(engine, masked_places if show_masked else doubtful, show_names)
        study.write({"places": places})


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


def mask_new(engine: Engine) -> Searched:
    """Search the responses not yet searched, mask what surely names an author, and say so."""
    names, searched = author_names(engine), Searched()
    with progress("looking for authors' names", None) as at:
        for page, masked, stored, begun in search_new(engine):
            searched.possible += sum(
                len(remaining(response, places_of(masked[response.response].changes), names))
                for response in page
            )
            searched.masked, searched.begun = searched.masked + stored, searched.begun + begun
            changes = [change for text in masked.values() for change in text.changes]
            searched.places += len(changes)
            searched.reasoning += sum(change.why is Why.REASONING for change in changes)
            at(page[-1].response)
    _say_searched(searched)
    return searched


def _say_searched(searched: Searched) -> None:
    if searched.masked:
        blocks = (
            f", {counted(searched.reasoning, 'block')} of reasoning" if searched.reasoning else ""
        )
        say(
            f"{searched.masked} responses named their author: masked ({searched.places} places{blocks})"
        )
    if searched.begun:
        say(f"{searched.begun} responses name their author and were left: somebody has begun them")
    if searched.possible:
        say(
            f"{searched.possible} possible places left as they are: `medjury study blind` lists them"
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


def _leave(engine: Engine, keys: Sequence[str], words: Sequence[str]) -> None:
    """Record what betrays nobody, by its places in the stored texts."""
    folded = frozenset(word.casefold() for word in words)
    chosen = leave(engine, replace(_chosen(engine, keys), words=folded))
    counts = [
        (len(chosen.responses), "responses"),
        (len(chosen.places), "places"),
        (len(chosen.words), "words"),
    ]
    parts = [f"{number} {noun}" for number, noun in counts if number]
    say(f"{', '.join(parts)} left as they are; recorded")


def _list(
    engine: Engine,
    find: Callable[[Engine, Sequence[str]], list[Place]],
    show_names: bool,
) -> list[dict[str, Any]]:
    """List places, and say how to mask or leave them; the record says it before names are shown."""
    names = author_names(engine)
    places = find(engine, names)
    if show_names and places:
        responses = {response.response_id for response, _ in places}
        record_names_shown(engine, OPERATOR.actor, len(places), len(responses))
    listed = [listed_place(response, span, names, show_names) for response, span in places]
    for place in listed:
        say(f"{place['response']}@{place['start']}  {place['text']}  ({WHY[place['why']]})")
        say(f"    {place['around']}")
    if places:
        say(f"{counted(len(places), 'place')}. {HOW}")
    else:
        say("nothing that may name an author is left unmasked")
    return listed
