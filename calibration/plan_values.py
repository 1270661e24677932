"""Options and rows of a plan. This module imports nothing heavy: the app's server loads it."""

from dataclasses import dataclass
from typing import Literal

from calibration.notes import Noted
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
    seed: int = 0
    margin: float | None = None
    ceiling: float | None = None


@dataclass(frozen=True)
class Reliability(Noted):
    """An ICC in the pilot, with its 95 % interval: the jackknife of the jury, else percentiles of resamples.

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
class Pilot:
    """Reliabilities in a study's own ratings.

    Attributes
    ----------
    minutes, timed : median minutes of rating a response, and how many ratings were timed
    told : sentences on when and why the study was unblinded or reopened
    top : share of the clinicians' composites that are the highest of all
    """

    benchmark: str
    jurors: tuple[str, ...]
    clinicians: Reliability
    jury: Reliability
    minutes: float | None
    timed: int
    told: tuple[str, ...]
    top: float = 0.0


@dataclass(frozen=True)
class PlanRow(Noted):
    """How many responses one ICC takes. NaN or None where undefined.

    Attributes
    ----------
    scorer, basis : "clinicians", "jury" or "clinicians or jury", and where its ICC comes from
    columns, icc_of : scores that ICC(C,icc_of) is estimated from; the plan is for its interval
    icc_single : ICC(C,1)
    n_exact : responses with which a share `assurance` of studies obtain the width
    n : the number of responses in the options, else `n_exact`
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
    n_exact: int | None = None
    n: int | None = None
    readings: int | None = None
    per_clinician: int | None = None
    minutes_per_clinician: float = NAN
    width_expected: float = NAN
    width_assured: float = NAN

    @property
    def icc_of_two(self) -> float:
        """Return its ICC as the agreement table has it, ICC(C,2): 2 r / (1 + r)."""
        return 2 * self.icc_single / (1 + self.icc_single)


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
    per_response, clinicians : who read each response, and who take part
    ceiling : share of scores that are the highest of five; 0 for normal scores
    margin : in ICC of the leave-one-clinician-out comparison
    power : share of simulated studies that say "no worse"; NaN for too few responses
    power_like_these : share that says so for clinicians like these too; NaN with fewer than three
    sd : of the difference between the jury's ICC and a clinician's, for the same clinicians
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
    sd: float = NAN
    n_for_power: int | None = None
