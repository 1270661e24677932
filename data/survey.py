"""A survey of a taxonomy: cards in each clinician's own order, and the answer that a form becomes.

What a browser is sent has the words of cards and categories, never where a card belongs.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from data.card import Reply
from data.errors import BadInput, OffScale, Unknown
from data.taxonomy import BELOW, Taxonomy

ITEMS = ("subcategories", "tasks")
COMPREHENSIVENESS, CLARITY = "comprehensiveness", "clarity"
ON_THE_WHOLE = (COMPREHENSIVENESS, CLARITY)
LOW, HIGH = 1, 5
CODE = "survey-"  # how the codes of invitations begin
MOST_CARDS = 300


@dataclass(frozen=True, slots=True)
class Item:
    """What clinicians place: a part of the taxonomy or a line of tasks.

    Attributes
    ----------
    key
        Its place, by which answers name it.
    text, detail
        What the card says; `detail` are the tasks of a part.
    intended
        The category that the taxonomy has it in: never sent.
    """

    key: str
    text: str
    detail: tuple[str, ...]
    intended: str


def items_of(taxonomy: Taxonomy, kind: str) -> tuple[Item, ...]:
    """Return what is placed in a survey, in the taxonomy's order.

    Raises
    ------
    BadInput
        If there is nothing to place, too much, or no two categories to place it in.
    """
    leaves = [place for place in taxonomy.leaves() if place.subcategory or kind == "tasks"]
    if kind == "tasks":
        found = [
            Item(BELOW.join((*place.path, task.line)), task.line, (), place.category)
            for place in taxonomy.places()
            for task in place.part.tasks
        ]
    else:
        found = [
            Item(
                BELOW.join(place.path),
                place.path[-1],
                tuple(task.line for task in place.part.tasks),
                place.category,
            )
            for place in leaves
        ]
    if len(taxonomy.categories) < 2 or not 0 < len(found) <= MOST_CARDS:
        raise BadInput(
            f"taxonomy {taxonomy.name}: a survey of {kind} places 1 to {MOST_CARDS} of them into two or "
            f"more categories; it has {len(found)} and {len(taxonomy.categories)}"
        )
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Form:
    """A survey as one clinician has it: the cards by their codes, in this clinician's order."""

    cards: Mapping[str, Item]
    categories: tuple[str, ...]

    def refuse_impossible(self, reply: Reply) -> None:
        """Refuse what the form cannot send: an unknown card, or a point that there is not.

        Raises
        ------
        Unknown, OffScale
            As of a rating.
        """
        for name, point in reply.scores.items():
            if name in ON_THE_WHOLE:
                top = HIGH
            elif name in self.cards:
                top = len(self.categories)
            else:
                raise Unknown(f"card {name}: is not in this survey")
            if not LOW <= point <= top:
                raise OffScale(f"{name}: {point} is not from {LOW} to {top}")
        for name in reply.comments:
            if name not in self.cards:
                raise Unknown(f"card {name}: is not in this survey")
        if reply.spans or reply.flags:
            raise Unknown("a survey has no marks and no flags")

    def answer(self, reply: Reply) -> str:
        """Return a whole answer as it is stored.

        Raises
        ------
        BadInput
            If a card is not placed or a rating is missing.
        """
        self.refuse_impossible(reply)
        missing = [name for name in (*self.cards, *ON_THE_WHOLE) if name not in reply.scores]
        if missing:
            raise BadInput(f"{len(missing)} answers are missing; place every card and rate both")
        said: dict[str, Any] = {
            "placed": {
                item.key: self.categories[int(reply.scores[code]) - 1]
                for code, item in self.cards.items()
            },
            "comments": {
                self.cards[code].key: text for code, text in reply.comments.items() if text.strip()
            },
            "comment": reply.comment.strip(),
        }
        said |= {name: int(reply.scores[name]) for name in ON_THE_WHOLE}
        return json.dumps(said, sort_keys=True, ensure_ascii=False)


def form_of(taxonomy: Taxonomy, kind: str, seed: int, rater: int) -> Form:
    """Return the form of a clinician: the order comes from the seed and who it is, the same each time.

    A card's code is its place in that order, which tells nothing of its category.
    """
    ordered = sorted(items_of(taxonomy, kind), key=lambda item: _draw(seed, rater, item.key))
    cards = {f"card{number}": item for number, item in enumerate(ordered, 1)}
    return Form(cards, tuple(category.name for category in taxonomy.categories))


def _draw(seed: int, rater: int, key: str) -> bytes:
    return hashlib.sha256(f"{seed}\0{rater}\0{key}".encode()).digest()


def read_answer(text: str) -> dict[str, Any]:
    """Return a stored answer."""
    answer: dict[str, Any] = json.loads(text)
    return answer
