"""Who rates what, in which order, from a seed.

A design gives every response exactly as many clinicians as asked. Then, each as far as
those before it allow: loads differ by at most one; all clinicians are linked by shared
responses; every pair shares equally many; every clinician sees each model equally often,
and each benchmark and instance. Orders are random, every clinician's own.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from sqlalchemy import Engine

from data.errors import BadInput
from data.study.assignments import Assigned, Item, Slot, assigned, design_items, pace_of
from data.study.points import refuse_without_points
from data.study.standing import benchmarks
from data.study.withdrawals import ended_work
from medjury.services.design.deal import Deal, Showing, arrange, connect, deal, gaps, improve, level
from medjury.services.design.plan import Design, Plan, plan_of

Name = TypeVar("Name", bound=Hashable)

STARTS = 6  # of a design that cannot at once be made as even as can be
ENOUGH = 6000  # readings dealt in all starts together; a large design gets one start


@dataclass(frozen=True)
class Start:
    """The input of all tables; the first `staff` of `everyone` can be given work."""

    items: Sequence[Item]
    everyone: Sequence[str]
    staff: int
    existing: Sequence[Assigned]

    def readers(self, *, done: bool) -> list[list[int]]:
        """Return who has each response by now: done, or open with someone still there."""
        able = self.everyone if done else self.everyone[: self.staff]
        number = {rater: index for index, rater in enumerate(able)}
        readers: dict[int, list[int]] = {item.response: [] for item in self.items}
        for slot in self.existing:
            if not slot.pass_ and slot.done == done and slot.rater in number:
                readers[slot.response].append(number[slot.rater])
        return list(readers.values())

    def labels(self) -> list[list[int]]:
        """Return model, benchmark and instance of each item as numbers from 0."""
        return [
            _numbered([item.model for item in self.items]),
            _numbered([item.benchmark for item in self.items]),
            _numbered([item.instance for item in self.items]),
        ]


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
    staying = _kept(start, table)
    stays = set(staying)
    return Design(
        slots=tuple(_slots(start, table, staying, repeats, rng)),
        raters=tuple(staff),
        responses=tuple(items),
        per_response=per_response,
        asked=repeats,
        seed=seed,
        kept=tuple(staying),
        dropped=tuple(slot for slot in start.existing if slot not in stays),
    )


def _start(
    existing: Sequence[Assigned], items: Sequence[Item], staff: Sequence[str], rng: Random
) -> Start:
    past = sorted({slot.rater for slot in existing if slot.done} - set(staff))
    order = sorted(
        existing, key=lambda slot: (slot.rater, slot.position, slot.response, slot.pass_)
    )
    return Start(items, [*rng.sample(staff, len(staff)), *past], len(staff), order)


def _kept(start: Start, table: Deal) -> list[Assigned]:
    """Return the slots from before that stay: all done ones, and open ones not passed on.

    An open repeat stays with its first showing.
    """
    staff = set(start.everyone[: start.staff])
    reads = {
        (start.everyone[rater], item.response)
        for index, item in enumerate(start.items)
        for rater in table.readers(index)
    }
    return [
        slot
        for slot in start.existing
        if slot.done or (slot.rater in staff and (slot.rater, slot.response) in reads)
    ]


def _slots(
    start: Start, table: Deal, staying: Sequence[Assigned], repeats: float, rng: Random
) -> Iterator[Slot]:
    """Yield the new slots in each rater's order, after what that rater has already."""
    for number, rater in sorted(
        enumerate(start.everyone[: start.staff]), key=lambda entry: entry[1]
    ):
        own = [slot for slot in staying if slot.rater == rater]
        mine = [
            item for item, at in zip(start.items, table.all_readers(), strict=True) if number in at
        ]
        number_of_repeats = round(repeats * len(mine)) - sum(slot.pass_ for slot in own)
        own_rng = Random(repr((rng.random(), rater)))  # noqa: S311 - published, not a secret
        line = arrange(*_showings(own, mine, start.items), max(number_of_repeats, 0), own_rng)
        first = own[-1].position + 1 if own else 0
        for position, showing in enumerate(line, first):
            yield Slot(rater, showing.response, position, showing.pass_)


def _showings(
    own: Sequence[Assigned], mine: Sequence[Item], items: Sequence[Item]
) -> tuple[list[Showing], list[Showing]]:
    """Return a rater's earlier showings, in order, and the new ones."""
    instance = {item.response: item.instance for item in items}
    responses_read = {slot.response for slot in own if not slot.pass_}
    before = [Showing(slot.response, instance[slot.response], slot.pass_) for slot in own]
    new = [
        Showing(item.response, item.instance)
        for item in mine
        if item.response not in responses_read
    ]
    return before, new


def _check(
    existing: Sequence[Assigned],
    responses: Sequence[Item],
    raters: Sequence[str],
    per_response: int,
    repeats: float,
) -> None:
    """Refuse input that no design can be made of, and say what to do."""
    twice = _twice(raters)
    same = _twice([item.response for item in responses])
    duplicates = _twice([(slot.rater, slot.response, slot.pass_) for slot in existing])
    lost = sorted({slot.response for slot in existing} - {item.response for item in responses})
    faults = {
        "no responses to assign: import some first": not responses,
        f"responses given twice: {same[:5]}; give each once": same,
        f"raters named twice: {', '.join(twice)}; give each handle once": twice,
        "a rater without a name: give every clinician a handle": not all(map(str.strip, raters)),
        f"per_response={per_response}: a response needs at least one clinician": per_response < 1,
        f"per_response={per_response} with {len(raters)} clinicians ({', '.join(raters)}): "
        "ask for fewer readings a response, or invite more": per_response > len(raters),
        f"repeats={repeats}: give a share from 0 to 0.5": not 0 <= repeats <= 0.5,
        f"slots given twice: {duplicates[:5]}; give each once": duplicates,
        f"work on responses that are not given: {lost[:5]}; give old and new ones": lost,
    }
    for fault, holds in faults.items():
        if holds:
            raise BadInput(fault)


def _twice(names: Sequence[Name]) -> list[Name]:
    return [name for name, count in Counter(names).items() if count > 1]


def _numbered(values: Sequence[Hashable]) -> list[int]:
    number: dict[Hashable, int] = {}
    return [number.setdefault(value, len(number)) for value in values]


def most_even(start: Start, per_response: int, rng: Random) -> Deal:
    """Return the most even of several tables, or the first that is as even as can be."""
    tables: list[Deal] = []
    readings = len(start.items) * per_response
    for _ in range(max(1, min(STARTS, ENOUGH // readings))):
        tables.append(_staffed(start, per_response, rng))
        _even_out(tables[-1], per_response, rng)
        if not any(gaps(tables[-1])[:2]):
            break
    return min(tables, key=_unevenness)


def _unevenness(table: Deal) -> tuple[int, ...]:
    """Return the gap of the overlaps, their range, and the gap of the models."""
    shared = [
        table.overlap[rater][other] for rater in range(table.raters) for other in range(rater)
    ]
    of_overlaps, of_models = gaps(table)[:2]
    return of_overlaps, max(shared, default=0) - min(shared, default=0), of_models


def _staffed(start: Start, per_response: int, rng: Random) -> Deal:
    """Return a table with every response read as often as asked and all loads equal.

    What stays from before is held; what was open is passed on only if new work alone
    cannot make the loads equal.
    """
    open_ = start.readers(done=False)
    table = Deal(len(start.everyone), start.labels(), start.readers(done=True), open_)
    for response, free in enumerate(table.free):
        while free and len(table.readers(response)) > per_response:
            table.remove(max(free, key=lambda rater: table.load[rater]), response)
    before = [list(free) for free in table.free]
    staff = range(start.staff)
    _hold(table, before)
    order = rng.sample(range(len(start.items)), len(start.items))
    order.sort(key=lambda index: (start.items[index].model, start.items[index].benchmark))
    deal(table, per_response, staff, order)
    level(table, staff)
    _release(table, before)
    level(table, staff)
    _hold(table, before)
    return table


def _hold(table: Deal, blocks: Sequence[Sequence[int]]) -> None:
    for response, block in enumerate(blocks):
        present = [rater for rater in block if rater in table.free[response]]
        table.held[response] += present
        table.free[response] = [rater for rater in table.free[response] if rater not in present]


def _release(table: Deal, blocks: Sequence[Sequence[int]]) -> None:
    for response, block in enumerate(blocks):
        table.free[response] += block
        table.held[response] = [rater for rater in table.held[response] if rater not in block]


def _even_out(table: Deal, per_response: int, rng: Random) -> None:
    size = len(table.free)
    patience = 5 * size + min(20_000, 200 + 8 * (size * per_response) ** 2)
    improve(table, rng, patience)
    if connect(table):
        improve(table, rng, patience, whole=True)


NOTHING = "the study has no responses yet: import some (`medjury study import FILE`; in the app: Set up, Notes)"


@dataclass(frozen=True, slots=True)
class DesignRequest:
    """The request for a design.

    Attributes
    ----------
    raters
        Handles of those who can be given work.
    per_response
        Clinicians a response.
    repeats
        Share of each clinician's responses shown to them again.
    minutes
        Of a showing, for the plan; None takes the study's own pace, or one from words.
    """

    raters: tuple[str, ...]
    per_response: int
    repeats: float
    seed: int
    minutes: float | None = None


@dataclass(frozen=True, slots=True)
class PlannedDesign:
    """The figures of a planned design, without authors.

    Attributes
    ----------
    load
        First readings of each clinician.
    overlap
        Responses shared by each pair, keyed "a|b".
    repeats
        Hidden repeats of all clinicians; `repeats_of` of each.
    """

    per_response: int
    load: Mapping[str, int]
    overlap: Mapping[str, int]
    repeats: int
    plan: Plan
    repeats_of: Mapping[str, int]


def designed(engine: Engine, request: DesignRequest) -> Design:
    """Return the design for every response of the study, begun work staying where it is.

    The same study and request give the same design everywhere.

    Raises
    ------
    BadInput
        If there is nothing to deal, or no such design.
    """
    refuse_without_points(engine, benchmarks(engine))
    left = ended_work(engine)
    if ended := [name for name in request.raters if name in left]:
        raise BadInput(
            f"{', '.join(ended)}: access has ended; leave them out, or give a new code first"
        )
    items = design_items(engine)
    if not items:
        raise BadInput(NOTHING)
    raters, repeats, number = list(request.raters), request.repeats, request.per_response
    return top_up(assigned(engine), items, raters, number, request.seed, repeats=repeats)


def planned_design(engine: Engine, request: DesignRequest) -> PlannedDesign:
    """Return the figures of the design that a study would have."""
    design = designed(engine, request)
    figures = design.load, design.overlap, design.repeats
    plan = plan_of(design, pace_of(engine, request.minutes))
    repeats_of = {rater: design.repeats_of(rater) for rater in design.raters}
    return PlannedDesign(design.per_response, *figures, plan, repeats_of)
