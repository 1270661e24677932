"""The order in which a clinician is shown the responses, and which are repeated."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import NamedTuple

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
    place = int(rng.random() * len(pool))
    if due is not None or pool[place].instance == last:
        places = range(len(pool))
        other = [candidate for candidate in places if pool[candidate].instance != last]
        fit = (
            [candidate for candidate in other if due in (None, pool[candidate].instance)]
            or other
            or places
        )
        place = rng.choice(fit)
    pool[place], pool[-1] = pool[-1], pool[place]
    return pool.pop()


def _with_repeats(line: list[Showing], start: int, repeats: int, rng: Random) -> list[Showing]:
    """Put `repeats` responses of the line into it once more, none before place `start`."""
    again = {showing.response for showing in line if showing.pass_}
    firsts = [
        place
        for place, showing in enumerate(line)
        if not showing.pass_ and showing.response not in again
    ]
    early = [place for place in firsts if place + GAP <= len(line)]
    enough = repeats <= len(early)  # if not, each repeat makes room for the next one
    chosen = sorted(rng.sample(early, repeats)) if enough else firsts[:repeats]
    for showing in [line[place] for place in chosen]:
        least = max(line.index(showing) + GAP, start)
        if least <= len(line):
            repeat = showing._replace(pass_=1)
            line.insert(_gap_for(repeat, line, least, rng), repeat)
    return line


def _gap_for(repeat: Showing, line: list[Showing], least: int, rng: Random) -> int:
    """Return a place from `least` on where neither neighbour shows the same instance."""
    places = range(least, len(line) + 1)
    draws = (rng.choice(places) for _ in range(TRIES))
    drawn = next((place for place in draws if _apart(repeat, line, place)), None)
    if drawn is not None:
        return drawn
    return rng.choice([place for place in places if _apart(repeat, line, place)] or places)


def _apart(repeat: Showing, line: list[Showing], place: int) -> bool:
    return all(neighbour.instance != repeat.instance for neighbour in line[place - 1 : place + 1])
