"""Options and rows of a plan. This module imports nothing heavy: the app's server loads it."""

import math
from dataclasses import dataclass, field
from typing import Literal

from calibration.values import NAN, Note, Noted

JURY = "jury"
EITHER = "clinicians or jury"  # with two clinicians a response both are two columns
Basis = Literal["assumed", "paper obtained", "pilot", "low end"]


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What is wanted and what there is.

    Attributes
    ----------
    width : of the 95 % interval, from end to end
    per_response : clinicians who rate each response
    assurance : share of studies that are to obtain the width
    clinicians, minutes : clinicians there are, and minutes a reading takes: for the load of each
    responses : what there will be; None is what the width takes
    difference : between two ICC(C,2), to be shown
    population : the instances there are at all, if few
    shared : of the errors of the two scorers compared, where no pilot tells
    seed : of the simulation
    margin : in ICC of like for like, to show that the jury is no worse than a clinician
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


@dataclass(frozen=True)
class Expected(Noted):
    """An ICC to plan with: of whom, on what basis, from how many columns, and of how many ratings."""

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
    """How much the jury's ICC minus another's varies from study to study of the pilot's size.

    `b` is what the jury is compared with: "metric:NAME", "juror:NAME", or "like_for_like" for
    a held-out clinician before the same others. `sd` is of the bootstrap over `n_instances`
    with their `n_responses`; where rare extremes make it more than 1.25 times that of a normal
    curve with the same 95 % interval, it is the latter, for a larger study has no such extremes.
    """

    b: str
    sd: float = NAN
    n_responses: int = 0
    n_instances: int = 0

    def at(self, n: int) -> float:
        """Return the standard deviation expected with n responses: it falls as 1 / sqrt(n).

        For as many responses an instance as in the pilot. With fewer it is smaller, where
        responses to one instance are alike: to read it for them errs to more responses.
        """
        return self.sd * math.sqrt(self.n_responses / n) if self.n_responses else NAN


@dataclass(frozen=True)
class Pilot:
    """What a study's own ratings say; `minutes` is the median of `timed` finished readings.

    `told` is when and why the blind was lifted or the study reopened.
    """

    benchmark: str
    jurors: tuple[str, ...]
    clinicians: Reliability
    jury: Reliability
    varied: tuple[Variation, ...]
    minutes: float | None
    timed: int
    told: tuple[str, ...]


@dataclass(frozen=True)
class PlanRow(Noted):
    """Responses for one ICC; `n` is those asked about, else the largest. NaN or None: undefined."""

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
        return two(self.icc_single)

    @property
    def is_of_jury(self) -> bool:
        """Tell whether the row is planned for the jury, alone or with the clinicians."""
        return self.scorer in (JURY, EITHER)


@dataclass(frozen=True)
class PowerRow(Noted):
    """What n responses can show of a difference between the jury and what it is `compared` with.

    `mde` is the smallest difference found with 80 % power; `sd` that of the estimated difference
    where there is none, and `rule` 2.8 times it. `n_for_difference`: for 80 % power to find it.
    `source` says what all of it rests on.
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
    """How reliable the mean of so many raters is: a decision study.

    `raters` is "clinicians" or "jurors"; consistency is ICC(C,m), agreement ICC(A,m), which an
    assumed ICC does not tell: None. That of jurors is with one another, not with clinicians.
    """

    raters: str
    number: int
    consistency: float = NAN
    agreement: float | None = NAN


@dataclass(frozen=True)
class NonInferiorityRow(Noted):
    """What n responses show of a jury that is truly as good as a clinician.

    Attributes
    ----------
    basis : of the single-rater ICC `icc_single`, as in the rows of the plan
    margin : in ICC of like for like
    power, mc_error : share of simulated studies that show it, and its error from simulating
    sd : of the estimated difference
    n_for_power : responses for the share that the plan is to assure; None above a million
    """

    basis: Basis
    icc_single: float
    per_response: int
    margin: float
    n: int
    power: float = NAN
    mc_error: float = NAN
    sd: float = NAN
    n_for_power: int | None = None


def two(single: float) -> float:
    """Return the ICC(C,2) over a single-rater ICC."""
    return 2 * single / (1 + single)
