"""Options and rows of a plan. This module imports nothing heavy: the app's server loads it."""

import math
from dataclasses import dataclass, field
from typing import Literal

from calibration.notes import Note, Noted
from calibration.values import NAN

JURY = "jury"
EITHER = "clinicians or jury"  # with two clinicians a response both are two columns
Basis = Literal["assumed", "paper obtained", "pilot", "low end"]
AIMS = {1: "single-rater ICC", 2: "ICC(C,2)"}  # by how many ratings the ICC is of


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What a plan is to achieve, and the resources it has.

    Attributes
    ----------
    width : of the 95 % interval, from end to end
    per_response : clinicians who rate each response
    assurance : share of studies that are to obtain the width
    clinicians, minutes : number of clinicians, and minutes to rate a response, for their load
    responses : number of responses; None for as many as the width takes
    difference : between two ICC(C,2), to be shown
    population : number of instances that exist at all, if few
    shared : correlation of the errors of the two scorers compared, where no pilot tells it
    seed : of the simulation
    margin : in ICC, to show that the jury is no worse than a clinician (leave-one-clinician-out)
    ceiling : share of scores at the top of the scale; None for what a pilot has, or else two kinds
    """

    width: float = 0.3
    per_response: int = 2
    assurance: float = 0.8
    clinicians: int | None = None
    minutes: float | None = None
    responses: int | None = None
    difference: float | None = None
    population: int | None = None
    shared: float = 0.5
    seed: int = 0
    margin: float | None = None
    ceiling: float | None = None


@dataclass(frozen=True)
class PlannedIcc(Noted):
    """An ICC to plan with.

    Attributes
    ----------
    scorer : "clinicians", "jury" or "clinicians or jury"
    basis : where the ICC comes from
    single : the single-rater ICC(C,1)
    columns : how many columns of scores it is estimated from
    of : the plan is for the interval of ICC(C,of)
    """

    scorer: str
    basis: Basis
    single: float
    columns: int = 2
    of: int = 2


@dataclass(frozen=True)
class Reliability(Noted):
    """An ICC in the pilot, with its percentile 95 % interval over instances.

    `scorer` is "clinicians": `icc` is then ICC(C,1), of single clinicians; or "jury": ICC(C,2)
    of the jury and the clinicians' mean. NaN where undefined, with the reason in `notes`.
    """

    scorer: str
    icc: float = NAN
    low: float = NAN
    high: float = NAN
    n_responses: int = 0
    n_instances: int = 0


@dataclass(frozen=True)
class Variation(Noted):
    """How much the jury's ICC minus another's varies between studies of the pilot's size.

    Attributes
    ----------
    b : str
        What the jury is compared with: "metric:NAME", "juror:NAME", or "like_for_like" for a
        clinician left out, both before the same other clinicians.
    sd : float
        Of the difference in a bootstrap over `n_instances` with their `n_responses`. Where rare
        extremes make it more than 1.25 times that of a normal curve with the same 95 %
        interval, it is the latter, since a larger study has no such extremes.
    """

    b: str
    sd: float = NAN
    n_responses: int = 0
    n_instances: int = 0

    def at(self, n: int) -> float:
        """Return the standard deviation expected with n responses: it falls as 1 / sqrt(n).

        It holds for as many responses an instance as in the pilot. With fewer, and responses to
        one instance that are alike, it is smaller: a plan then asks for more than it needs.
        """
        return self.sd * math.sqrt(self.n_responses / n) if self.n_responses else NAN


@dataclass(frozen=True)
class Pilot:
    """Reliabilities and variations in a study's own ratings.

    Attributes
    ----------
    varied : how much the jury's ICC minus each other scorer's varies
    minutes, timed : median minutes of rating a response, and how many ratings were timed
    told : sentences on when and why the study was unblinded or reopened
    top : share of the clinicians' composites that are the highest of all
    """

    benchmark: str
    jurors: tuple[str, ...]
    clinicians: Reliability
    jury: Reliability
    varied: tuple[Variation, ...]
    minutes: float | None
    timed: int
    told: tuple[str, ...]
    top: float = 0.0


@dataclass(frozen=True)
class PlanRow(Noted):
    """How many responses one ICC takes. NaN or None where undefined.

    Attributes
    ----------
    icc_single, icc_panel : ICC(C,1), and that of the mean of `columns`
    n_bonett, n_zou, n_exact : responses by each formula
    n : the number of responses in the options, else the largest of the three
    readings, per_clinician : ratings of a response by a clinician, in all and for each clinician
    width_expected, width_assured : of the interval with n responses, on average and in a share
        `assurance` of studies
    """

    per_response: int
    scorer: str
    basis: Basis
    columns: int
    icc_of: int
    icc_single: float = NAN
    icc_panel: float = NAN
    width: float = NAN
    n_bonett: int | None = None
    n_zou: int | None = None
    n_exact: int | None = None
    n: int | None = None
    readings: int | None = None
    per_clinician: int | None = None
    minutes_per_clinician: float = NAN
    width_expected: float = NAN
    width_assured: float = NAN

    @property
    def icc_of_two(self) -> float:
        """Return its ICC as the agreement table has it: ICC(C,2)."""
        return icc_of_two_raters(self.icc_single)

    @property
    def is_of_jury(self) -> bool:
        """Tell whether the row is planned for the jury, alone or with the clinicians."""
        return self.scorer in (JURY, EITHER)


@dataclass(frozen=True)
class PowerRow(Noted):
    """The power of n responses to show a difference between the jury and another scorer.

    Attributes
    ----------
    compared : the other scorer
    difference, power, mc_error : of ICCs, the power to show it, and that one's simulation error
    mde : smallest difference that is found with 80 % power
    n_for_difference : responses with which `difference` is found with 80 % power
    sd, rule : of the estimated difference where there is none, and 2.8 times it
    source : note on what these figures rest on
    """

    compared: str
    n: int
    difference: float = NAN
    power: float = NAN
    mc_error: float = NAN
    mde: float = NAN
    n_for_difference: int | None = None
    sd: float = NAN
    rule: float = NAN
    source: Note = field(kw_only=True)


@dataclass(frozen=True)
class PanelSizeRow(Noted):
    """The reliability of the mean of a number of raters: a decision study.

    Attributes
    ----------
    raters : "clinicians" or "jurors"; jurors with one another, not with clinicians
    number : of raters, m
    consistency, agreement : ICC(C,m) and ICC(A,m); None where only an ICC(C) is assumed
    """

    raters: str
    number: int
    consistency: float = NAN
    agreement: float | None = NAN


@dataclass(frozen=True)
class NonInferiorityRow(Noted):
    """The power of n responses to show that a jury as good as a clinician is no worse.

    Attributes
    ----------
    basis : of the single-rater ICC `icc_single`, as in the rows of the plan
    clinicians, per_response : who take part, and who read each response
    ceiling : share of scores at the top of the scale; 0 for normal scores
    margin : in ICC of the leave-one-clinician-out comparison
    power, mc_error : share of simulated studies that show it, and its simulation error
    power_like_these : share that shows it for clinicians like these too; NaN with fewer than three
    sd : of the estimated difference
    n_for_power : responses for the share that the plan is to assure; None above a million, or where
        clinicians agree too little for the margin
    """

    basis: Basis
    icc_single: float
    per_response: int
    clinicians: int
    ceiling: float
    margin: float
    n: int
    power: float = NAN
    power_like_these: float = NAN
    mc_error: float = NAN
    sd: float = NAN
    n_for_power: int | None = None


def icc_of_two_raters(single: float) -> float:
    """Return the ICC(C,2) that a single-rater ICC(C,1) amounts to: 2 r / (1 + r)."""
    return 2 * single / (1 + single)


def opponent(compared: str) -> str:
    """Return what a jury is compared with, as a plan names it."""
    name = "held-out clinician" if compared == "like_for_like" else compared
    return name.removeprefix("metric:").removeprefix("juror:")
