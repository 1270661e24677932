"""Which notes of a table only add figures, so that those that warn can be read first."""

import re
from collections.abc import Sequence

FIGURES = re.compile(
    r"(?:^|: )(?:"
    r"BCa bootstrap .*"
    r"|bootstrap over pairs .*"
    r"|crossed mixed model of all readings: .*"
    r"|with the other clinicians: .*"
    r"|[\d.]+ % interval, for looking at \d+ benchmarks .*"
    r"|\d+ clinicians? compared, each on \d+ responses or more"
    r"|\d+ pairs? left out for sharing fewer than \d+ responses"
    r")$"
)
LOST = re.compile(r"(?:^|: )(\d+) of (\d+) resamples undefined and left out$")
FEW_LOST = 0.05
FEW_NOTES = 6  # so many are read at a glance


def parted(notes: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the notes that warn, and those that only add figures; all warn where there are few.

    A note that is not known to be quiet warns.
    """
    quiet = [one for one in notes if len(notes) > FEW_NOTES and _is_quiet(one)]
    return [one for one in notes if one not in quiet], quiet


def _is_quiet(note: str) -> bool:
    lost = LOST.search(note)
    if lost is not None:
        return int(lost[1]) <= FEW_LOST * int(lost[2])
    return FIGURES.search(note) is not None
