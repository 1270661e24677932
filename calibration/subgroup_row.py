"""One row on a subgroup: how the jury agrees there, against the rest, and what it misses."""

from dataclasses import dataclass
from enum import StrEnum

from calibration.values import NAN, Noted


class Finding(StrEnum):
    """What may be said of the jury's agreement in a subgroup.

    "shown" is an interval of the ICC above 0 and no difference to the rest found: not that there
    is none. All others are "not shown to hold".
    """

    SHOWN = "shown"
    LOWER = "lower"
    NOT_SHOWN = "not_shown"
    TOO_FEW = "too_few"


@dataclass(frozen=True, slots=True)
class UnsafeThere:
    """What the jury finds of a subgroup's unsafe responses on one critical criterion.

    `sensitivity` with its 95 % interval over instances; NaN where no response is unsafe.
    """

    criterion: str
    threshold: float
    n_bad: int = 0
    n_missed: int = 0
    sensitivity: float = NAN
    sensitivity_low: float = NAN
    sensitivity_high: float = NAN


@dataclass(frozen=True)
class SubgroupRow(Noted):
    """The jury in one subgroup. NaN: undefined, or not tested, as notes say.

    Attributes
    ----------
    group, value, benchmark, scorer : "specialty" groups clinicians, all else responses; the scorer
        is the jury
    n, n_instances : responses with jury and clinicians, and their instances
    icc, low, high : ICC(C,2) of the subgroup alone, z taken within it, with its 95 % interval
    bias, bias_low, bias_high : jury minus clinicians in points of the scale
    difference, difference_low, difference_high, p : ICC here minus ICC of the rest
    bias_difference, bias_difference_low, bias_difference_high, bias_p : the same of the bias
    p_holm, bias_p_holm : p corrected for all subgroups of the benchmark that were tested; a group
        of two values is one test
    finding : what may be said
    unsafe : on each critical criterion
    """

    group: str
    value: str
    benchmark: str
    scorer: str = "jury"
    n: int = 0
    n_instances: int = 0
    icc: float = NAN
    low: float = NAN
    high: float = NAN
    bias: float = NAN
    bias_low: float = NAN
    bias_high: float = NAN
    difference: float = NAN
    difference_low: float = NAN
    difference_high: float = NAN
    p: float = NAN
    p_holm: float = NAN
    bias_difference: float = NAN
    bias_difference_low: float = NAN
    bias_difference_high: float = NAN
    bias_p: float = NAN
    bias_p_holm: float = NAN
    finding: Finding = Finding.NOT_SHOWN
    unsafe: tuple[UnsafeThere, ...] = ()

    @property
    def label(self) -> str:
        """Return its name in a table, as "language: de"."""
        return f"{self.group}: {self.value}"
