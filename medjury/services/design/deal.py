"""Who reads which response, dealt evenly, and in which order, with hidden repeats far from the first showing.

Raters and responses are numbers here. What counts in a table, in this order: equal loads, equal
overlaps of every pair of raters, then equal parts of each label (model, benchmark, instance).
At the end all raters are linked by shared responses, and loads are equal, whatever chance did.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import NamedTuple

Labels = Sequence[Sequence[int]]


@dataclass
class Deal:
    """Which raters read each response, with the running counts that exchanges need.

    Attributes
    ----------
    raters
        How many there are.
    labels
        One list a label, most important first; the label's value, from 0, of each response.
    held, free
        Raters of each response who stay, and those who may be exchanged.
    load, overlap, counts
        Readings of each rater; readings shared by two raters; readings of each rater of
        each value, one table a label.
    """

    raters: int
    labels: Labels
    held: list[list[int]]
    free: list[list[int]]
    load: list[int] = field(default_factory=list)
    overlap: list[list[int]] = field(default_factory=list)
    counts: list[list[list[int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.load = [0] * self.raters
        self.overlap = [[0] * self.raters for _ in range(self.raters)]
        sizes = [max(values, default=-1) + 1 for values in self.labels]
        self.counts = [[[0] * size for _ in range(self.raters)] for size in sizes]
        for response, block in enumerate(self.all_readers()):
            for index, rater in enumerate(block):
                self._count(rater, response, block[:index], 1)

    def readers(self, response: int) -> list[int]:
        """Return all raters of a response."""
        return self.held[response] + self.free[response]

    def all_readers(self) -> list[list[int]]:
        """Return the raters of every response."""
        return [self.readers(response) for response in range(len(self.free))]

    def place(self, rater: int, response: int) -> None:
        """Give a response to a rater."""
        self._count(rater, response, self.readers(response), 1)
        self.free[response].append(rater)

    def remove(self, rater: int, response: int) -> None:
        """Take a response from a rater who does not hold it."""
        self.free[response].remove(rater)
        self._count(rater, response, self.readers(response), -1)

    def exchange(self, first: int, leaving: list[int], second: int, coming: list[int]) -> None:
        """Move `leaving` from the first response to the second, and `coming` the other way."""
        for rater in leaving:
            self.remove(rater, first)
        for rater in coming:
            self.remove(rater, second)
            self.place(rater, first)
        for rater in leaving:
            self.place(rater, second)

    def _count(self, rater: int, response: int, others: Sequence[int], by: int) -> None:
        self.load[rater] += by
        for other in others:
            self.overlap[rater][other] += by
            self.overlap[other][rater] += by
        for values, counts in zip(self.labels, self.counts, strict=True):
            counts[rater][values[response]] += by


def deal(table: Deal, per_response: int, raters: Sequence[int], order: Sequence[int]) -> None:
    """Fill the responses up to `per_response`, in that order, each time with the best rater.

    Responses of one model should follow each other: as loads stay equal all the way
    through, each rater then gets their part of each model.
    """
    for response in order:
        while len(readers := table.readers(response)) < per_response:
            able = [rater for rater in raters if rater not in readers]
            least = min(table.load[rater] for rater in able)
            able = [rater for rater in able if table.load[rater] == least]
            table.place(
                min(able, key=lambda rater: _cost(table, rater, response, readers)), response
            )


def _cost(table: Deal, rater: int, response: int, readers: list[int]) -> tuple[int, ...]:
    """Return a rater's overlap with the readers, and their counts of each of the response's labels."""
    row = table.overlap[rater]
    shared = sum([row[other] for other in readers])
    seen = [
        counts[rater][values[response]]
        for values, counts in zip(table.labels, table.counts, strict=True)
    ]
    return (shared, *seen)


def improve(table: Deal, rng: Random, patience: int, *, whole: bool = False) -> None:
    """Exchange raters between two responses at random, keeping what is not worse.

    Loads never change. What is judged is `gaps`, the earlier ones before the later. Stops
    when all are 0, or after `patience` tries in a row without gain in any but the last.

    Parameters
    ----------
    whole
        Only exchange all raters of two responses: overlaps then stay as they are.
    """
    remaining, tries = gaps(table), 0
    while any(remaining) and tries < patience:
        tries += 1
        move = _propose(table, rng, whole)
        change = _change(table, move) if move else None
        if move and change:
            table.exchange(*move)
            remaining = [gap + by for gap, by in zip(remaining, change, strict=True)]
            tries = 0 if any(change[:-1]) else tries


def gaps(table: Deal) -> list[int]:
    """Return how uneven overlaps and then each label are, 0 being as even as can be.

    Unevenness is a sum of squares less the least that whole numbers of that sum allow:
    of the overlaps of each rater with the others, whose sum the load fixes; and of the
    counts of each value over the raters. For some sizes no design reaches 0.
    """
    rows = [[*row[:rater], *row[rater + 1 :]] for rater, row in enumerate(table.overlap)]
    columns = [list(zip(*counts, strict=True)) for counts in table.counts]
    return [_uneven(rows), *(_uneven(column) for column in columns)]


def _uneven(groups: Sequence[Sequence[int]]) -> int:
    unevenness = 0
    for values in groups:
        mean, over = divmod(sum(values), len(values) or 1)
        least = over * (mean + 1) ** 2 + (len(values) - over) * mean**2
        unevenness += sum(value * value for value in values) - least
    return unevenness


Move = tuple[int, list[int], int, list[int]]


def _propose(table: Deal, rng: Random, whole: bool) -> Move | None:
    """Return two responses and the raters to exchange, or None if the draw allows nothing."""
    size = len(table.free)
    first, second = int(rng.random() * size), int(rng.random() * size)
    ours, theirs = table.free[first], table.free[second]
    kept_first, kept_second = table.held[first], table.held[second]
    leaving = [rater for rater in ours if rater not in theirs and rater not in kept_second]
    coming = [rater for rater in theirs if rater not in ours and rater not in kept_first]
    if not leaving or not coming:
        return None
    if not kept_first and not kept_second and (whole or rng.random() < 0.5):
        return (first, leaving, second, coming) if len(leaving) == len(coming) else None
    if whole:
        return None
    leaver, joiner = (side[int(rng.random() * len(side))] for side in (leaving, coming))
    return first, [leaver], second, [joiner]


def _change(table: Deal, move: Move) -> list[int] | None:
    """Return by how much each gap grows, or None if that is for the worse."""
    change = [_overlap_change(table, *move)]
    if change[0] > 0:
        return None
    settled = change[0] < 0
    for values, counts in zip(table.labels, table.counts, strict=True):
        change.append(_label_change(values, counts, *move))
        if not settled and change[-1] > 0:
            return None
        settled = settled or change[-1] < 0
    return change


def _label_change(
    values: Sequence[int],
    counts: list[list[int]],
    first: int,
    leaving: list[int],
    second: int,
    coming: list[int],
) -> int:
    first_value, second_value = values[first], values[second]
    if first_value == second_value:
        return 0
    by = 0
    for rater in leaving:
        by += counts[rater][second_value] - counts[rater][first_value] + 1
    for rater in coming:
        by += counts[rater][first_value] - counts[rater][second_value] + 1
    return 2 * by


def _overlap_change(
    table: Deal, first: int, leaving: list[int], second: int, coming: list[int]
) -> int:
    """Return the change of both raters' rows and of the rows of those they read with."""
    if len(leaving) > 1:
        return 0  # two responses trade all their raters
    (leaver,), (joiner,) = leaving, coming
    first_readers, second_readers = table.readers(first), table.readers(second)
    ours, theirs = table.overlap[leaver], table.overlap[joiner]
    by = 0
    for rater in first_readers:
        if rater != leaver and rater not in second_readers:
            by += theirs[rater] - ours[rater] + 1
    for rater in second_readers:
        if rater != joiner and rater not in first_readers:
            by += ours[rater] - theirs[rater] + 1
    return 4 * by


def groups(blocks: Iterable[Sequence[int]], raters: int) -> list[int]:
    """Return a group number for each rater: the same for all linked by shared responses."""
    parent = list(range(raters))

    def root(rater: int) -> int:
        while parent[rater] != rater:
            parent[rater] = parent[parent[rater]]
            rater = parent[rater]
        return rater

    for block in blocks:
        for rater in block[1:]:
            parent[root(rater)] = root(block[0])
    return [root(rater) for rater in range(raters)]


def connect(table: Deal) -> int:
    """Join all raters into one group, wherever there are readings enough: n(k - 1) >= r - 1.

    In each step a rater whom a response can spare without splitting its group trades
    places with a rater of another group, which makes one group of two. Such a rater
    exists as long as there are two groups and readings enough: the graph of raters and
    responses then has more edges than a forest can have. Returns the number of steps.
    """
    steps = 0
    while move := _joining(table):
        table.exchange(*move)
        steps += 1
    return steps


def _joining(table: Deal) -> Move | None:
    blocks = table.all_readers()
    group = groups(blocks, table.raters)
    home = {group[free[0]]: response for response, free in enumerate(table.free) if free}
    if len(home) < 2:
        return None
    for response, block in enumerate(blocks):
        for rater in table.free[response] if len(block) > 1 else []:
            without = [*blocks[:response], [reader for reader in block if reader != rater]]
            if len(set(groups(without + blocks[response + 1 :], table.raters))) == len(set(group)):
                other = next(
                    other_rater for number, other_rater in home.items() if number != group[rater]
                )
                return response, [rater], other, table.free[other][:1]
    return None


def level(table: Deal, raters: Sequence[int]) -> None:
    """Pass free readings on until no chain of raters could make the loads more equal.

    A chain moves one reading from its first rater to the second, one from the second to
    the third, and so on: only the loads of its two ends change.
    """
    mine: dict[int, list[int]] = {rater: [] for rater in raters}
    for response, free in enumerate(table.free):
        for rater in free:
            mine[rater].append(response)
    while chain := _chain(table, mine):
        for giver, response, taker in chain:
            table.remove(giver, response)
            table.place(taker, response)
            mine[giver].remove(response)
            mine[taker].append(response)


Chain = list[tuple[int, int, int]]


def _chain(table: Deal, mine: dict[int, list[int]]) -> Chain | None:
    """Return (giver, response, taker) steps that bring two loads nearer, or None."""
    by_load = sorted(mine, key=lambda rater: table.load[rater])
    for giver in reversed(by_load):
        if table.load[giver] - table.load[by_load[0]] < 2:
            return None
        came = _reachable(table, mine, giver)
        for taker in by_load:
            if table.load[giver] - table.load[taker] >= 2 and taker in came:
                return _steps(came, giver, taker)
    return None


def _reachable(table: Deal, mine: dict[int, list[int]], giver: int) -> dict[int, tuple[int, int]]:
    """Return, for each rater that a chain from the giver reaches, the step that gets there."""
    came: dict[int, tuple[int, int]] = {}
    queue, unseen = [giver], set(mine) - {giver}
    for rater in queue:
        for response in mine[rater]:
            if not unseen:
                return came
            for taker in sorted(unseen.difference(table.readers(response))):
                came[taker] = (rater, response)
                unseen.remove(taker)
                queue.append(taker)
    return came


def _steps(came: dict[int, tuple[int, int]], giver: int, taker: int) -> Chain:
    """Walk back from the taker to the giver; the steps are in the order to take them."""
    steps = []
    while taker != giver:
        rater, response = came[taker]
        steps.append((rater, response, taker))
        taker = rater
    return steps


GAP = 10  # a repeat stands at least so many places after its first showing
TRIES = 20


class Showing(NamedTuple):
    """A response put before a clinician: its instance, and pass 1 when it is a repeat."""

    response: int
    instance: int
    pass_: int = 0


def arrange(
    before: Sequence[Showing], new: Sequence[Showing], repeats: int, rng: Random
) -> list[Showing]:
    """Return a random order of `new` and of hidden repeats, to follow on `before`.

    Two showings of one instance stand apart wherever that is possible (for the repeats:
    wherever one of several draws finds it), and a repeat at least GAP places after its
    first showing. Fewer repeats are given where the list is too short for that.
    """
    best: list[Showing] = []
    worst = None
    for _ in range(TRIES):
        line = _with_repeats([*before, *_spread(before, new, rng)], len(before), repeats, rng)
        faults = (-len(line), adjacent(line))
        if worst is None or faults < worst:
            best, worst = line, faults
        if not faults[1] and len(line) == len(before) + len(new) + repeats:
            break
    return best[len(before) :]


def adjacent(line: Sequence[Showing]) -> int:
    """Return how often one instance is shown twice in a row."""
    return sum(first.instance == two.instance for first, two in pairwise(line))


def _spread(before: Sequence[Showing], new: Sequence[Showing], rng: Random) -> list[Showing]:
    """Shuffle so that neighbours differ in their instance, wherever an order allows it.

    Any showing of another instance than the last may come next, unless one instance
    makes up more than half of what is left: then it comes now or its last ones will touch.
    """
    pool, line = list(new), list(before[-1:])
    remaining = Counter(showing.instance for showing in pool)
    most = max(remaining.values(), default=0)
    while pool:
        last = line[-1].instance if line else None
        many, count = remaining.most_common(1)[0] if 2 * most > len(pool) else (None, 0)
        line.append(_draw(pool, many if 2 * count > len(pool) else None, last, rng))
        remaining[line[-1].instance] -= 1
    return line[len(before[-1:]) :]


def _draw(pool: list[Showing], due: int | None, last: int | None, rng: Random) -> Showing:
    """Take a showing from the pool: of the instance that is due, or not of the last one."""
    index = int(rng.random() * len(pool))
    if due is not None or pool[index].instance == last:
        places = range(len(pool))
        other = [candidate for candidate in places if pool[candidate].instance != last]
        fit = (
            [candidate for candidate in other if due in (None, pool[candidate].instance)]
            or other
            or places
        )
        index = rng.choice(fit)
    pool[index], pool[-1] = pool[-1], pool[index]
    return pool.pop()


def _with_repeats(line: list[Showing], start: int, repeats: int, rng: Random) -> list[Showing]:
    """Put `repeats` responses of the line into it once more, none before place `start`."""
    again = {showing.response for showing in line if showing.pass_}
    firsts = [
        index
        for index, showing in enumerate(line)
        if not showing.pass_ and showing.response not in again
    ]
    early = [index for index in firsts if index + GAP <= len(line)]
    enough = repeats <= len(early)  # if not, each repeat makes room for the next one
    chosen = sorted(rng.sample(early, repeats)) if enough else firsts[:repeats]
    for showing in [line[index] for index in chosen]:
        least = max(line.index(showing) + GAP, start)
        if least <= len(line):
            repeat = showing._replace(pass_=1)
            line.insert(_gap_for(repeat, line, least, rng), repeat)
    return line


def _gap_for(repeat: Showing, line: list[Showing], least: int, rng: Random) -> int:
    """Return a place from `least` on where neither neighbour shows the same instance."""
    places = range(least, len(line) + 1)
    draws = (rng.choice(places) for _ in range(TRIES))
    drawn = next((index for index in draws if _apart(repeat, line, index)), None)
    if drawn is not None:
        return drawn
    return rng.choice([index for index in places if _apart(repeat, line, index)] or places)


def _apart(repeat: Showing, line: list[Showing], index: int) -> bool:
    return all(neighbour.instance != repeat.instance for neighbour in line[index - 1 : index + 1])
