"""Which reading of a response a pass number marks, in one place.

Passes below `THIRD` are independent: 0 is a clinician's first reading, 1 and on its hidden
repeats. Readings that settle a difference between clinicians come after: they are kept beside
the independent ones, and no figure is of them unless it is asked for.
"""

from typing import Literal, get_args

FIRST = 0
THIRD = 100
CONSENSUS = 101

Reading = Literal["independent", "third", "consensus"]
Settling = Literal["third", "consensus"]
SETTLING: tuple[Settling, ...] = get_args(Settling)
PASS_OF: dict[Settling, int] = {"third": THIRD, "consensus": CONSENSUS}


def reading_of_pass(pass_: int) -> Reading:
    """Return what kind of reading a pass number marks."""
    if pass_ < THIRD:
        return "independent"
    return "third" if pass_ == THIRD else "consensus"
