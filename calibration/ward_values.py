"""What looks at a study and comparisons of notes found, in values that load no statistics."""

from dataclasses import dataclass
from enum import StrEnum

LEAST = 20  # instances of a group on a side, below which it is not compared
ALPHA = 0.05
# Share of the notes: a smaller difference changes no verdict, however sure it is.
SMALLEST_GAP = 0.1


class Verdict(StrEnum):
    """What a look says."""

    SHOWN = "shown"
    REFUTED = "refuted"
    GO_ON = "go_on"
    OUT_OF_REACH = "out_of_reach"
    ENDED = "ended"

    @property
    def goes_on(self) -> bool:
        """Whether more ratings can still change it."""
        return self in (Verdict.GO_ON, Verdict.OUT_OF_REACH)


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a study.

    Attributes
    ----------
    rated, planned : responses rated so far, and to be rated at most
    estimate, error : of the goal's figure, and its standard error
    target : the goal is to show that the figure is above it
    instances : that these responses are of, which the error rests on
    """

    rated: int
    planned: int
    estimate: float
    error: float
    target: float
    instances: int


@dataclass(frozen=True, slots=True)
class Stopping:
    """What a look says, with the interval that holds under stopping.

    Attributes
    ----------
    verdict
    low, high : the interval that holds though others were looked at: `ordered` says which
    ordered : the study ends here, and the interval has the coverage of 95 %; else it holds at this
        look and all before it together, and is wider
    fixed_low, fixed_high : the one that would hold if nobody had looked before, for comparison
    critical : half of the interval's width, in standard errors
    more : responses until it is likely to be shown; None where it is decided or out of reach
    chance : to show it with all that is planned, if the figure is what it is estimated to be
    """

    verdict: Verdict
    low: float
    high: float
    fixed_low: float
    fixed_high: float
    critical: float
    more: int | None
    chance: float
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class PastLook:
    """An earlier look: responses rated by then, and how far the figure was from its target.

    Attributes
    ----------
    statistic : in standard errors, as a normal one; None where the record has none
    """

    rated: int
    statistic: float | None = None


class Standing(StrEnum):
    """What is known of a group of notes."""

    ALIKE = "alike"
    DIFFERENT = "different"
    NOT_RATED = "not_rated"
    FEW = "few"


@dataclass(frozen=True, slots=True)
class Compared:
    """One property of the notes of a group, those the jury was validated on and the new ones.

    Attributes
    ----------
    group : "all", or the group's name and value
    what : the figure's name, "text", or "mix of NAME"
    validated, new : means of the figures; NaN for texts and mixes
    difference, low, high : of the means, new minus validated, with its 95 % interval
    gap : the largest difference of the shares at or under any value, of the shares of groups, or of
        texts the energy distance, 0 to 1
    p, p_holm : by permutation of instances; adjusted for all that is compared
    """

    group: str
    what: str
    validated: float
    new: float
    difference: float
    low: float
    high: float
    gap: float
    p: float
    p_holm: float = float("nan")

    @property
    def differs(self) -> bool:
        """Whether it differs for sure, and by enough to matter."""
        return self.p_holm < ALPHA and self.gap >= SMALLEST_GAP


@dataclass(frozen=True, slots=True)
class GroupStanding:
    """A group of notes: how many instances of it the clinicians rated, how many are new, what differs."""

    group: str
    validated: int
    new: int
    standing: Standing
    differs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Transported:
    """The standing of each group, and all comparisons; `all_alike` if no group stands otherwise."""

    groups: tuple[GroupStanding, ...]
    compared: tuple[Compared, ...]

    @property
    def all_alike(self) -> bool:
        """Whether nothing was found that the jury is not validated for."""
        return all(one.standing is Standing.ALIKE for one in self.groups)
