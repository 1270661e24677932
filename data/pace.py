"""How long rating takes: by the number of words, as measured in the study, or as stated."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import NamedTuple

# Brysbaert (2019), How many words do we read per minute?, Journal of Memory and Language 109,
# 104047: 190 studies of adults who silently read non-fiction in English.
WORDS_PER_MINUTE = 238.0
# Carver (1992), Reading rate: theory, research, and practical implications, Journal of Reading 36(2),
# 84-95: adults who only scan a text for a word pass 600 a minute; who follows its sense, 300.
MOST_WORDS_PER_MINUTE = 600.0
CLOCK_SECONDS = 1.0  # the page counts whole seconds
SECONDS_PER_CRITERION = 10.0  # to choose a score; an assumption, no published figure
FEWEST_SHOWINGS = 20  # timed ones from which on their own pace is taken


class PaceSource(StrEnum):
    """How a pace was found."""

    WORDS = "words"
    MEASURED = "measured"
    SAID = "said"


class Timed(NamedTuple):
    """A showing that was submitted: active seconds, words to read, and those of the response alone."""

    seconds: float
    words: int
    of_response: int

    @property
    def is_hasty(self) -> bool:
        """Whether not even the response can have been scanned for a word in that time."""
        fastest = 60 * self.of_response / MOST_WORDS_PER_MINUTE
        return self.seconds + CLOCK_SECONDS < fastest


@dataclass(frozen=True, slots=True)
class Work:
    """An amount of rating work: showings, words of source and response, criteria."""

    showings: int = 0
    words: int = 0
    criteria: int = 0


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds for each word, each criterion and each showing.

    Attributes
    ----------
    timed
        Showings from which it was measured; 0 where it was not.
    """

    source: PaceSource = PaceSource.WORDS
    seconds_per_word: float = 60 / WORDS_PER_MINUTE
    seconds_per_criterion: float = SECONDS_PER_CRITERION
    seconds_per_showing: float = 0.0
    timed: int = 0

    def minutes(self, work: Work) -> float:
        """Return the minutes for an amount of work."""
        seconds = (
            work.words * self.seconds_per_word
            + work.criteria * self.seconds_per_criterion
            + work.showings * self.seconds_per_showing
        )
        return seconds / 60


def stated(minutes: float) -> Pace:
    """Return a pace of a fixed number of minutes for each showing."""
    return Pace(PaceSource.SAID, 0.0, 0.0, 60 * minutes)


def measured(timed: Sequence[Timed]) -> Pace:
    """Return the pace of timed showings, or the one by words where too few are timed.

    Parameters
    ----------
    timed
        Those without seconds or words are left out, and hasty ones: nobody plans for them.

    Returns
    -------
    Pace
        The median of seconds per word over the showings, scoring included: half of them may be
        interrupted or hurried without moving it far. From words where fewer than
        FEWEST_SHOWINGS are timed.
    """
    read = (one for one in timed if one.seconds > 0 and one.words > 0 and not one.is_hasty)
    rates = [one.seconds / one.words for one in read]
    if len(rates) < FEWEST_SHOWINGS:
        return Pace()
    return Pace(PaceSource.MEASURED, median(rates), 0.0, timed=len(rates))
