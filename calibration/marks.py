"""What clinicians marked in responses and sources, and how far they marked the same places."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

COLUMNS = ("response_id", "rater", "side", "start", "end", "criterion", "error", "severity")


@dataclass(frozen=True, eq=False)
class Marks:
    """What was marked, and who could have marked it.

    Attributes
    ----------
    stretches : DataFrame
        A mark a row, of first readings alone, with the columns `COLUMNS`: `side` is "response" or
        "source", `start` and `end` characters of it, `severity` "" where that was not said.
    readers : mapping
        response_id -> the clinicians who submitted it where marks can be made. Nothing is known of
        what anybody else saw wrong.
    """

    stretches: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=[*COLUMNS]))
    readers: Mapping[str, frozenset[str]] = field(default_factory=dict)


NOTHING = Marks()


@dataclass(frozen=True, slots=True)
class Stretch:
    """Who marked which characters of which side."""

    rater: str
    side: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SharedCharacters:
    """What the pairs of a response's readers marked, in characters.

    Attributes
    ----------
    twice_shared : twice the characters that both of a pair marked, summed over pairs
    marked : the characters that either of a pair marked, once for each, summed over pairs
    """

    twice_shared: int
    marked: int


def shared_characters(stretches: Iterable[Stretch], readers: int) -> SharedCharacters:
    """Return the two sums whose ratio is the F1 of characters between pairs of readers.

    Parameters
    ----------
    stretches : of one response
    readers : how many could have marked it, those without a mark among them

    Notes
    -----
    For two readers with the marked characters A and B, F1 is 2 |A and B| / (|A| + |B|). Summed over
    all pairs it is sum n (n - 1) / ((readers - 1) sum n), n being how many marked a character: the
    positive specific agreement of several raters. Sums over responses are taken before the ratio,
    so that a pair counts by how much it marked, and a pair that marked nothing adds nothing.

    References
    ----------
    Hripcsak & Rothschild (2005), J Am Med Inform Assoc 12, 296; Cicchetti & Feinstein (1990),
    J Clin Epidemiol 43, 551.
    """
    own: dict[str, set[tuple[str, int]]] = {}
    for one in stretches:
        own.setdefault(one.rater, set()).update((one.side, at) for at in range(one.start, one.end))
    times = np.array([*Counter(at for marked in own.values() for at in marked).values()], np.int64)
    return SharedCharacters(int((times * (times - 1)).sum()), (readers - 1) * int(times.sum()))


def places(stretches: Sequence[Stretch]) -> list[int]:
    """Return, of each place of a response that was marked, how many readers marked it.

    A place is a run of stretches that overlap, one with the next; stretches that only touch are two.
    """
    found: list[set[str]] = []
    side, reached = "", 0
    for one in sorted(stretches, key=lambda own: (own.side, own.start, own.end)):
        if one.side != side or one.start >= reached:
            found.append(set())
            side, reached = one.side, one.end
        found[-1].add(one.rater)
        reached = max(reached, one.end)
    return [len(raters) for raters in found]
