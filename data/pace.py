"""How long rating takes: by the number of words, as measured in the study, or as stated."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

# Brysbaert (2019), How many words do we read per minute?, Journal of Memory and Language 109,
# 104047: 190 studies of adults who silently read non-fiction in English.
WORDS_PER_MINUTE = 238.0
SECONDS_PER_CRITERION = 10.0  # to choose a score; an assumption, no published figure
FEWEST_SHOWINGS = 20  # timed ones from which on their own pace is taken


class PaceSource(StrEnum):
    """How a pace was found."""

    WORDS = "words"
    MEASURED = "measured"
    SAID = "said"


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


def measured(timed: Sequence[tuple[float, int]]) -> Pace:
    """Return the pace of timed showings, or the one by words where too few are timed.

    Parameters
    ----------
    timed
        Active seconds and words of each. Those without either are left out.

    Returns
    -------
    Pace
        The median of seconds per word over the showings, scoring included: half of them may be
        interrupted or hurried without moving it far. From words where fewer than
        FEWEST_SHOWINGS are timed.
    """
    rates = [seconds / words for seconds, words in timed if seconds > 0 and words > 0]
    if len(rates) < FEWEST_SHOWINGS:
        return Pace()
    return Pace(PaceSource.MEASURED, median(rates), 0.0, timed=len(rates))
