"""The values that all statistics share: the options of an analysis, and its constants."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import date
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from concurrent.futures import Executor

NAN = float("nan")
NORMAL_95 = NormalDist().inv_cdf(0.975)  # 1.959964 standard errors to either end of a 95 % interval
RESAMPLES = 2000  # of a bootstrap: of juries, models, pairs and points alone
COMBINED = "combined"  # what the agreement table calls all benchmarks at once

Method = Literal["paper", "published"]
PeriodLength = Literal["week", "month", "quarter"]


def real_first(jurors: Iterable[str], simulated: Collection[str]) -> list[str]:
    """Return the real jurors, or all where none is real: real ones never sit with simulated ones."""
    everybody = list(jurors)
    return [name for name in everybody if name not in simulated] or everybody


@dataclass(frozen=True, slots=True)
class AnalysisOptions:
    """The options of an analysis of a study's ratings.

    Attributes
    ----------
    jurors : who sits on the jury; None is every juror of the scores that are analysed
    min_jurors : jurors that must have scored a response; None is all of them
    benchmark, criterion : one of them alone; None is all, and the composite
    method : "paper" or "published", see `calibration.table.agreement_table`
    references : "all", or "sound": without the instances whose references jurors have marked
    min_shared : responses that two clinicians must share to be compared
    reps, seed : resamples of the bootstrap, and where its random numbers begin
    groups : which subgroups are looked at; none: all that the study has
    without : clinicians whose ratings are left out
    reading : "independent", or "adjudicated": with the reading that settled a difference in the
        place of the clinicians' mean
    executor : where resamples are computed; None is this process. It changes no figure
    further : whether to fit the clinicians' mixed model, which stands in a note alone and takes as
        long to load and compute as all else
    """

    jurors: tuple[str, ...] | None = None
    min_jurors: int | None = None
    benchmark: str | None = None
    criterion: str | None = None
    method: Method = "paper"
    references: Literal["all", "sound"] = "all"
    min_shared: int = 2
    reps: int = RESAMPLES
    seed: int = 0
    groups: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    reading: Literal["independent", "adjudicated"] = "independent"
    executor: "Executor | None" = field(default=None, compare=False, repr=False)
    further: bool = field(default=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class MonitoringOptions:
    """The options of watching agreement over time.

    Attributes
    ----------
    today : the period that this day is in is not over
    analysis : its min_shared and references are not used
    panel : a panel of the user's, which may know when its jurors' models end
    every, least : the calendar period, and the instances it needs
    since : responses before this day are in no period, but count for z
    floor : the lowest acceptable ICC
    false_alarms : share of years in which an unchanged jury may raise an alarm
    baseline : periods whose mean is the target, where neither a report nor an ICC is given
    baseline_report : the frozen report that gives the target
    target, target_se : a known ICC, and the standard error of its Fisher's z, 0 where it is exact
    target_since : with a target, only periods that end on this day or later are watched
    """

    today: date
    analysis: AnalysisOptions = field(default_factory=AnalysisOptions)
    panel: str | None = None
    every: PeriodLength = "month"
    least: int = 20
    since: date | None = None
    floor: float = 0.4
    false_alarms: float = 0.05
    baseline: int = 3
    baseline_report: int | None = None
    target: float | None = None
    target_se: float = 0.0
    target_since: date | None = None

    @property
    def source(self) -> str:
        """Return where the target comes from."""
        if self.baseline_report is not None:
            return f"report {self.baseline_report}"
        return "baseline" if self.target is None else "given"


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


@dataclass(frozen=True, slots=True)
class PlanQuestion:
    """What is planned: from an ICC(C,2) that is assumed, or where it is None from the study's ratings."""

    options: PlanOptions
    icc: float | None = None
    benchmark: str | None = None
    single: float | None = None
