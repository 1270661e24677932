"""Who rates what, in which order, from a seed.

A design gives every response exactly as many clinicians as asked. Then, each as far as
those before it allow: loads differ by at most one; all clinicians are linked by shared
responses; every pair shares equally many; every clinician sees each model equally often,
and each benchmark and instance. Orders are random, every clinician's own.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from random import Random
from typing import TypeVar

from annotate.balance import Table
from annotate.order import Showing, arrange
from annotate.plan import Assigned, Design, Item
from annotate.staff import Start, most_even
from data.errors import BadInput
from data.store.submissions import Slot

Name = TypeVar("Name", bound=Hashable)

__all__ = ["Assigned", "Design", "Item", "design", "top_up"]


def design(
    responses: Sequence[Item],
    raters: Sequence[str],
    per_response: int,
    repeats: float = 0.1,
    seed: int = 0,
) -> Design:
    """Plan a study in which every response is read by `per_response` clinicians.

    Parameters
    ----------
    responses
        What is to be rated, in any order.
    raters
        Handles of the clinicians, in any order.
    per_response
        Clinicians a response.
    repeats
        Share of each clinician's responses shown to them again, 0 to 0.5: round(repeats x
        load), at least ten places later; fewer where a list is shorter than ten.
    seed
        The same input and seed give the same design everywhere.

    Raises
    ------
    BadInput
        If no such design exists.
    """
    return top_up((), responses, raters, per_response, seed, repeats=repeats)


def top_up(
    existing: Sequence[Assigned],
    responses: Sequence[Item],
    raters: Sequence[str],
    per_response: int,
    seed: int = 0,
    *,
    repeats: float = 0.1,
) -> Design:
    """Extend a design: new responses, new clinicians, or clinicians who left.

    What is done stays and counts. What is open stays with its clinician, unless they are
    no longer among `raters`, the response has its readings already, or the loads can only
    be made equal by passing it on. New slots come after all that a clinician has.

    `existing` is all that is assigned so far; mark as `done` whatever must not move, such
    as work that has been opened. `responses` are all, old and new; `raters` those who can
    be given work. Of the result, `slots` are new, `dropped` the open ones to delete, and
    `kept` all others. Models are balanced among new slots only.
    """
    _check(existing, responses, raters, per_response, repeats)
    staff, items = sorted(raters), sorted(responses, key=lambda item: item.response)
    rng = Random(repr((seed, staff, per_response)))  # noqa: S311 - published, not a secret
    start = _start(existing, items, staff, rng)
    table = most_even(start, per_response, rng)
    kept = _kept(start, table)
    stays = set(kept)
    return Design(
        slots=tuple(_slots(start, table, kept, repeats, rng)),
        raters=tuple(staff),
        responses=tuple(items),
        per_response=per_response,
        asked=repeats,
        seed=seed,
        kept=tuple(kept),
        dropped=tuple(one for one in start.existing if one not in stays),
    )


def _start(
    existing: Sequence[Assigned], items: Sequence[Item], staff: Sequence[str], rng: Random
) -> Start:
    past = sorted({one.rater for one in existing if one.done} - set(staff))
    order = sorted(existing, key=lambda one: (one.rater, one.position, one.response, one.pass_))
    return Start(items, [*rng.sample(staff, len(staff)), *past], len(staff), order)


def _kept(start: Start, table: Table) -> list[Assigned]:
    """Return the slots from before that stay: all done ones, and open ones not passed on.

    An open repeat stays with its first showing.
    """
    staff = set(start.everyone[: start.staff])
    reads = {
        (start.everyone[rater], item.response)
        for place, item in enumerate(start.items)
        for rater in table.readers(place)
    }
    return [
        one
        for one in start.existing
        if one.done or (one.rater in staff and (one.rater, one.response) in reads)
    ]


def _slots(
    start: Start, table: Table, kept: Sequence[Assigned], repeats: float, rng: Random
) -> Iterator[Slot]:
    """Yield the new slots in each rater's order, after what that rater has already."""
    for number, rater in sorted(enumerate(start.everyone[: start.staff]), key=lambda one: one[1]):
        own = [one for one in kept if one.rater == rater]
        mine = [
            item for item, at in zip(start.items, table.all_readers(), strict=True) if number in at
        ]
        wanted = round(repeats * len(mine)) - sum(one.pass_ for one in own)
        own_rng = Random(repr((rng.random(), rater)))  # noqa: S311 - published, not a secret
        line = arrange(*_showings(own, mine, start.items), max(wanted, 0), own_rng)
        first = own[-1].position + 1 if own else 0
        for place, one in enumerate(line, first):
            yield Slot(rater, one.response, place, one.pass_)


def _showings(
    own: Sequence[Assigned], mine: Sequence[Item], items: Sequence[Item]
) -> tuple[list[Showing], list[Showing]]:
    """Return what a rater has already, in order, and what is new to them."""
    instance = {item.response: item.instance for item in items}
    known = {one.response for one in own if not one.pass_}
    before = [Showing(one.response, instance[one.response], one.pass_) for one in own]
    new = [Showing(one.response, one.instance) for one in mine if one.response not in known]
    return before, new


def _check(
    existing: Sequence[Assigned],
    responses: Sequence[Item],
    raters: Sequence[str],
    per_response: int,
    repeats: float,
) -> None:
    """Refuse what no design can be made of, saying what to do."""
    twice = _twice(raters)
    same = _twice([one.response for one in responses])
    both = _twice([(one.rater, one.response, one.pass_) for one in existing])
    lost = sorted({one.response for one in existing} - {one.response for one in responses})
    faults = {
        "no responses to assign: import some first": not responses,
        f"responses given twice: {same[:5]}; give each once": same,
        f"raters named twice: {', '.join(twice)}; give each handle once": twice,
        "a rater without a name: give every clinician a handle": not all(map(str.strip, raters)),
        f"per_response={per_response}: a response needs at least one clinician": per_response < 1,
        f"per_response={per_response} with {len(raters)} clinicians ({', '.join(raters)}): "
        "ask for fewer readings a response, or invite more": per_response > len(raters),
        f"repeats={repeats}: give a share from 0 to 0.5": not 0 <= repeats <= 0.5,
        f"slots given twice: {both[:5]}; give each once": both,
        f"work on responses that are not given: {lost[:5]}; give old and new ones": lost,
    }
    for fault, holds in faults.items():
        if holds:
            raise BadInput(fault)


def _twice(names: Sequence[Name]) -> list[Name]:
    return [name for name, count in Counter(names).items() if count > 1]
