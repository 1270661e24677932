"""Rows of monitoring: periods, CUSUM, anchor and case mix.

This module imports nothing heavy: tables and the app's server load it.
"""

import math
from dataclasses import dataclass
from datetime import date

from calibration.notes import Noted
from calibration.values import NAN


@dataclass(frozen=True)
class PeriodRow(Noted):
    """A jury's agreement with the clinicians in one period.

    Attributes
    ----------
    period, start, end : label, first and last day
    joined : calendar periods it is made of
    over : False while ratings may still be added to it
    too_few : fewer instances with both columns than are needed: no part of a CUSUM
    unfilled : clinicians have not yet rated as many instances; only the last can be that
    icc, boot_low, boot_high : ICC(C,2) with its percentile 95 % interval over instances
    fisher_z, se : Fisher's z of the ICC, and its standard error over instances
    n_responses, n_instances, n_clinicians : on whom the ICC rests
    n_missing : responses of the period that the jury has no score for
    jury_first, jury_last : days on which the jury scored these responses, where known
    """

    benchmark: str
    period: str
    start: date
    end: date
    joined: int
    over: bool
    too_few: bool
    unfilled: bool
    icc: float
    boot_low: float
    boot_high: float
    fisher_z: float
    se: float
    n_responses: int
    n_instances: int
    n_clinicians: int
    n_missing: int
    jury_first: date | None
    jury_last: date | None


@dataclass(frozen=True)
class CusumRow(Noted):
    """One period in the CUSUM of falls below the target, and in that of falls below the floor.

    None where the period takes no part in it.

    Attributes
    ----------
    role : "baseline", "watched", or "left out", with the reason in its notes
    se : standard error of its z: NaN where it is left out
    step : (target z - z) / se, above 0 where agreement is lower than the target
    cusum, limit : the sum at its end, and where it raises an alarm; None before there are two
    window : of how many of the latest periods the sum is
    floor_cusum, floor_limit : the same for the floor; the baseline takes part in it
    alarm : whether one of the two sums has reached its limit
    """

    benchmark: str
    period: str
    role: str
    fisher_z: float
    se: float
    step: float | None
    cusum: float | None
    limit: float | None
    window: int | None
    floor_cusum: float | None
    floor_limit: float | None
    alarm: bool


@dataclass(frozen=True)
class Fall:
    """A fall that raised an alarm.

    Attributes
    ----------
    of : "target" or "floor", whichever agreement is shown to be below
    periods : at least 2, the last of which raised the alarm
    icc, low, high : of these periods together, with a 95 % interval
    most : upper end that holds for all looks of a year; it is below the target or floor by more
        than the error of that
    """

    of: str
    periods: tuple[PeriodRow, ...]
    icc: float
    low: float
    high: float
    most: float


@dataclass(frozen=True)
class DetectableFall:
    """The smallest fall right after the baseline that would be found.

    Attributes
    ----------
    icc : a fall to this ICC or lower is found; NaN where none would be
    responses : in a period, on average
    periods : within which it is found
    power : share of studies that find it
    """

    icc: float
    responses: int
    periods: int
    power: float


@dataclass(frozen=True)
class AnchorRow(Noted):
    """A scorer's first and latest composites of the same responses.

    Attributes
    ----------
    scorer : "juror:NAME", or "jury" for the mean of jurors that all have both
    shift, low, high : latest minus first in points, with a 95 % interval over instances
    p, p_holm : two-sided, of shift 0; corrected for the jurors of the jury
    icc_one : ICC(A,1) of first and latest
    icc_first, icc_latest : ICC(C,2) with the clinicians on the same n_clinical responses
    change, change_low, change_high : latest minus first of these two, over instances
    """

    benchmark: str
    scorer: str
    n_responses: int
    n_instances: int
    first_day: date | None
    latest_day: date | None
    mean_first: float
    mean_latest: float
    shift: float
    low: float
    high: float
    p: float
    p_holm: float
    icc_one: float
    n_clinical: int
    icc_first: float
    icc_latest: float
    change: float
    change_low: float
    change_high: float


@dataclass(frozen=True)
class BenchmarkShare:
    """A benchmark's share of the responses of a period, 0 to 1, and their number."""

    benchmark: str
    n_baseline: int
    n_now: int
    baseline: float
    now: float


@dataclass(frozen=True)
class CaseMix(Noted):
    """The responses rated in the baseline and now, and how much that alone would change the ICC.

    Attributes
    ----------
    baseline, now : labels of the periods
    shares : of the benchmarks, in alphabetical order
    moved : float
        Half the sum of absolute differences of the shares: 0 the same, 1 nothing in common.
    mean_*, sd_* : of the clinicians' mean composites, in points
    mean_change, sd_ratio : now minus baseline; now by baseline; 95 % intervals over instances
    icc_baseline, icc_now, change : ICC(C,2), and its change with a 95 % interval
    icc_reweighted : float
        Of now, its benchmarks weighted to the baseline's shares. NaN where that rests on
        fewer than 10 effective responses, (sum of weights)^2 / sum of squares (Kish 1965).
    icc_spread : float
        Of the baseline, if the clinicians' scores had the spread of now, and the jury's
        regression on them and its errors were those of the baseline (Thorndike 1949, case 2:
        selection on the clinicians).
    """

    baseline: str
    now: str
    shares: tuple[BenchmarkShare, ...] = ()
    moved: float = NAN
    mean_baseline: float = NAN
    mean_now: float = NAN
    mean_change: float = NAN
    mean_low: float = NAN
    mean_high: float = NAN
    sd_baseline: float = NAN
    sd_now: float = NAN
    sd_ratio: float = NAN
    sd_low: float = NAN
    sd_high: float = NAN
    icc_baseline: float = NAN
    icc_now: float = NAN
    change: float = NAN
    change_low: float = NAN
    change_high: float = NAN
    icc_reweighted: float = NAN
    icc_spread: float = NAN

    @property
    def is_defined(self) -> bool:
        """Whether there were enough responses to compare."""
        return math.isfinite(self.mean_now)
