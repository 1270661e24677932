"""Finding who reads each response: from what is done already to the most even table."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from random import Random

from annotate.balance import Table, deal, gaps, improve
from annotate.plan import Assigned, Item
from annotate.repair import connect, level

STARTS = 6  # of a design that cannot at once be made as even as can be
ENOUGH = 6000  # readings dealt in all starts together; a large design gets one start


@dataclass(frozen=True)
class Start:
    """What tables are made from; the first `staff` of `everyone` can be given work."""

    items: Sequence[Item]
    everyone: Sequence[str]
    staff: int
    existing: Sequence[Assigned]

    def readers(self, *, done: bool) -> list[list[int]]:
        """Return who has each response by now: done, or open with someone still there."""
        able = self.everyone if done else self.everyone[: self.staff]
        number = {rater: place for place, rater in enumerate(able)}
        readers: dict[int, list[int]] = {item.response: [] for item in self.items}
        for one in self.existing:
            if not one.pass_ and one.done == done and one.rater in number:
                readers[one.response].append(number[one.rater])
        return list(readers.values())

    def labels(self) -> list[list[int]]:
        """Return model, benchmark and instance of each item as numbers from 0."""
        return [
            _numbered([item.model for item in self.items]),
            _numbered([item.benchmark for item in self.items]),
            _numbered([item.instance for item in self.items]),
        ]


def _numbered(values: Sequence[Hashable]) -> list[int]:
    number: dict[Hashable, int] = {}
    return [number.setdefault(value, len(number)) for value in values]


def most_even(start: Start, per_response: int, rng: Random) -> Table:
    """Return the most even of several tables, or the first that is as even as can be."""
    found: list[Table] = []
    readings = len(start.items) * per_response
    for _ in range(max(1, min(STARTS, ENOUGH // readings))):
        found.append(_staffed(start, per_response, rng))
        _even_out(found[-1], per_response, rng)
        if not any(gaps(found[-1])[:2]):
            break
    return min(found, key=_unevenness)


def _unevenness(table: Table) -> tuple[int, ...]:
    """Return the gap of the overlaps, their range, and the gap of the models."""
    shared = [table.overlap[one][other] for one in range(table.raters) for other in range(one)]
    of_overlaps, of_models = gaps(table)[:2]
    return of_overlaps, max(shared, default=0) - min(shared, default=0), of_models


def _staffed(start: Start, per_response: int, rng: Random) -> Table:
    """Return a table with every response read as often as asked and all loads equal.

    What stays from before is held; what was open is passed on only if new work alone
    cannot make the loads equal.
    """
    open_ = start.readers(done=False)
    table = Table(len(start.everyone), start.labels(), start.readers(done=True), open_)
    for response, free in enumerate(table.free):
        while free and len(table.readers(response)) > per_response:
            table.remove(max(free, key=lambda rater: table.load[rater]), response)
    before = [list(free) for free in table.free]
    staff = range(start.staff)
    _hold(table, before)
    order = rng.sample(range(len(start.items)), len(start.items))
    order.sort(key=lambda place: (start.items[place].model, start.items[place].benchmark))
    deal(table, per_response, staff, order)
    level(table, staff)
    _release(table, before)
    level(table, staff)
    _hold(table, before)
    return table


def _hold(table: Table, blocks: Sequence[Sequence[int]]) -> None:
    for response, block in enumerate(blocks):
        here = [rater for rater in block if rater in table.free[response]]
        table.held[response] += here
        table.free[response] = [one for one in table.free[response] if one not in here]


def _release(table: Table, blocks: Sequence[Sequence[int]]) -> None:
    for response, block in enumerate(blocks):
        table.free[response] += block
        table.held[response] = [one for one in table.held[response] if one not in block]


def _even_out(table: Table, per_response: int, rng: Random) -> None:
    size = len(table.free)
    patience = 5 * size + min(20_000, 200 + 8 * (size * per_response) ** 2)
    improve(table, rng, patience)
    if connect(table):
        improve(table, rng, patience, whole=True)
