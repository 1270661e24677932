"""Which outputs clinicians rate, and who rates which: seeded, by stratum, never by author."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import floor
from random import Random

from data.queries.watch import Work
from data.store.assignments import Slot

BLOCK = 20  # outputs of a stratum, in the order of arrival, of which as many are drawn as the share says


@dataclass(frozen=True, slots=True)
class Sample:
    """A stratified sample of what comes, which needs no look ahead.

    The outputs of a stratum are numbered as they come, and cut into blocks of 20. Of each block as many
    are drawn at random as the share comes to by then, so that the number drawn is never further than
    one block's from the share, and each output has the same chance.

    Attributes
    ----------
    share : 0 to 1, of each stratum
    seed : the same outputs in the same order and the same seed give the same sample
    by : subgroup that makes strata besides the benchmark, "" for none
    """

    share: float
    seed: int = 0
    by: str = ""

    def draw(self, counts: Mapping[str, int], arrivals: Iterable[tuple[int, str]]) -> list[int]:
        """Return the keys of the arrivals that are drawn.

        Parameters
        ----------
        counts : stratum -> how many of it came before
        arrivals : key and stratum of each, in the order in which they came
        """
        seen, places, drawn = dict(counts), dict[tuple[str, int], frozenset[int]](), []
        for key, stratum in arrivals:
            block, place = divmod(seen.get(stratum, 0), BLOCK)
            seen[stratum] = seen.get(stratum, 0) + 1
            if (stratum, block) not in places:
                places[stratum, block] = self._places(stratum, block)
            if place in places[stratum, block]:
                drawn.append(key)
        return drawn

    def _places(self, stratum: str, block: int) -> frozenset[int]:
        """Return which places of a block are drawn."""
        start = Random(repr((self.seed, stratum))).random()  # noqa: S311 - published, no secret
        by_then, before = (floor((block + n) * BLOCK * self.share + start) for n in (1, 0))
        own = Random(repr((self.seed, stratum, block)))  # noqa: S311 - published, no secret
        return frozenset(own.sample(range(BLOCK), min(BLOCK, by_then - before)))


def given_out(
    responses: Sequence[int], clinicians: Sequence[str], per_response: int, work: Work, seed: int
) -> list[Slot]:
    """Return who rates which of some new responses, each after all that they have.

    Each response goes to those with the least to read, and of these to the pair that shares least;
    what remains equal is drawn. Who wrote a response is not known here.

    Parameters
    ----------
    per_response : at most as many as there are clinicians
    """
    load, places, shared = dict(work.load), dict(work.next), dict(work.shared)
    slots = []
    for response in responses:
        rng = Random(repr((seed, response)))  # noqa: S311 - published, no secret
        chosen: list[str] = []
        for _ in range(per_response):
            free = [name for name in clinicians if name not in chosen]
            chosen.append(min(rng.sample(free, len(free)), key=_least(load, shared, chosen)))
        for name in chosen:
            slots.append(Slot(name, response, places[name]))
            load[name], places[name] = load[name] + 1, places[name] + 1
        for pair in ((a, b) for a in chosen for b in chosen if a < b):
            shared[pair] = shared.get(pair, 0) + 1
    return slots


def _least(
    load: Mapping[str, int], shared: Mapping[tuple[str, str], int], chosen: Sequence[str]
) -> Callable[[str], tuple[int, int]]:
    """Return what clinicians are compared by: their load, then what they share with those chosen."""

    def of(name: str) -> tuple[int, int]:
        pairs = ((min(name, other), max(name, other)) for other in chosen)
        return load[name], sum(shared.get(pair, 0) for pair in pairs)

    return of
