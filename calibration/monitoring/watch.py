"""Compare each period with the target and with the floor, by a CUSUM of falls."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

import numpy as np

from calibration.monitoring.cusum import (
    POWER,
    SHORTEST,
    YEARS,
    detectable_fall,
    falling_cusum,
    fisher_z,
    icc_of_fisher,
    limits,
    window_factor,
)
from calibration.monitoring.periods import PeriodLength
from calibration.monitoring.rows import CusumRow, DetectableFall, Fall, PeriodRow
from calibration.notes import Figures, Note, counted, note, noted
from calibration.scores import Array, Integers
from calibration.values import NAN, NORMAL_95

BASELINE = 3  # periods; with fewer, only larger falls are found
FLOOR_SHARE = 0.1  # of the false alarms, for the floor; the rest is for the target
A_YEAR = {"week": 52, "month": 12, "quarter": 4}
MOST_OF_ONE = (
    0.8  # of what raises an alarm, the most that one period can add: none is a fall by itself
)


@dataclass(frozen=True)
class TargetOptions:
    """Where the target comes from: the first periods, or a known ICC.

    Attributes
    ----------
    periods : int or None
        The target is the mean of the first so many periods that are not left out.
    icc : float
        Without `periods`: a known ICC(C,2), given or of a frozen report.
    since : with `icc`, only periods that end on this day or later are watched
    source : "baseline", "report ID" or "given"
    se : with `icc`, the standard error of its Fisher's z; 0 where it is taken as exact
    """

    periods: int | None = BASELINE
    icc: float = NAN
    since: date | None = None
    source: str = "baseline"
    se: float = 0.0


@dataclass(frozen=True)
class AlarmRule:
    """When an alarm is raised.

    Attributes
    ----------
    false_alarms : share of years in which an unchanged jury raises an alarm
    floor : the lowest acceptable ICC
    every : the calendar period, which says how many make a year
    """

    false_alarms: float = 0.05
    floor: float = 0.4
    every: PeriodLength = "month"

    @property
    def year(self) -> int:
        """Return how many periods make a year."""
        return A_YEAR[self.every]


@dataclass(frozen=True)
class CusumResult:
    """The periods compared with the target and with the floor.

    Attributes
    ----------
    target_icc, target_low, target_high : float
        ICC of the target; its interval is NaN for a target without an error.
    source : where the target comes from
    rule : by which alarms are raised
    baseline : rows of the periods that the target comes from, or of those before its report
    rows : a row for each period; empty where nothing is compared with a target
    alarm : the first period at whose end a fall is shown, below the target or the floor
    fall : the fall that raised the alarm
    fell : the periods of the fall; without one, the judged period
    judged : the newest period with enough rated instances; the newest of all where none has
    earlier : periods before the judged one that have an ICC and enough instances
    detectable : the smallest fall that would be found
    reason : why nothing is compared with a target
    """

    target_icc: float
    target_low: float
    target_high: float
    source: str
    rule: AlarmRule
    baseline: tuple[PeriodRow, ...]
    rows: tuple[CusumRow, ...]
    alarm: PeriodRow | None
    fall: Fall | None
    fell: tuple[PeriodRow, ...]
    judged: PeriodRow
    earlier: tuple[PeriodRow, ...]
    detectable: DetectableFall | None = None
    reason: Note | None = None

    @property
    def limit(self) -> float | None:
        """Return where the CUSUM of the newest watched period raises an alarm."""
        return next((row.limit for row in reversed(self.rows) if row.limit is not None), None)

    @property
    def is_below_target(self) -> bool:
        """Whether an alarm was raised by a fall below the target."""
        return self.fall is not None and self.fall.of == "target"


@dataclass(frozen=True, eq=False)
class _Series:
    """Periods that can be compared, in the order of time, with the precision of their z.

    `weights` are responses minus 2. `factor`, as known at the end of each period, is the variance
    of z relative to that of independent normal responses, 1 / weight.
    """

    rows: tuple[PeriodRow, ...]
    z: Array
    weights: Array
    factor: Array

    def after(self, n: int) -> "_Series":
        """Return it without its first periods."""
        return _Series(self.rows[n:], self.z[n:], self.weights[n:], self.factor[n:])


@dataclass(frozen=True, eq=False)
class _CusumTarget:
    """A value that periods are compared with.

    Attributes
    ----------
    z, variance : Fisher's z, and its variance as known at the end of each period
    periods : the target is as exact as the mean of so many periods
    rate : of false alarms in a year
    """

    z: float
    variance: Array
    periods: float
    rate: float


class _CusumLook(NamedTuple):
    """The CUSUM at the end of a period; `total` is None before there are two periods."""

    total: float | None
    limit: float
    window: int
    is_alarm: bool


@dataclass(frozen=True, eq=False)
class _CusumSeries:
    """Periods compared with a target: the CUSUM at the end of each, its limit and its window."""

    of: str
    target: _CusumTarget
    series: _Series
    sums: Array
    limits: Array
    windows: Integers

    @property
    def alarm(self) -> int | None:
        """Return the place of the first period with an alarm."""
        reached = np.flatnonzero(self.sums >= self.limits)
        return int(reached[0]) if len(reached) else None


def watch(
    rows: Sequence[PeriodRow], target_options: TargetOptions, rule: AlarmRule | None = None
) -> CusumResult:
    """Compare each period with the target and with the floor, by CUSUMs of falls below them.

    Parameters
    ----------
    rows : at least one, from `periods.period_rows`
    target_options : TargetOptions
    rule : AlarmRule, by default one false alarm in 20 years of watching by month

    Returns
    -------
    CusumResult
        The target of a baseline is the mean of its periods' z, weighted by their responses minus
        2. Where there are no more periods than the baseline needs, only the floor is watched.
    """
    rule = rule or AlarmRule()
    usable = _series([row for row in rows if why_left_out(row) is None])
    n_baseline = _baseline_length(usable.rows, target_options)
    watched = usable.after(n_baseline)
    reason = _why_no_cusum(rows, usable, watched, target_options)
    target = _target(usable, n_baseline, target_options, rule)
    target_series = None if reason else _compare("target", watched, target, rule)
    floor_series = _compare("floor", usable, _floor_target(usable, rule), rule)
    fall = _first_fall([target_series, floor_series] if target_series else [floor_series], rule)
    judged = next((row for row in reversed(rows) if not row.unfilled), rows[-1])
    error = float(np.sqrt(target.variance[-1])) if target.variance.any() else NAN
    ends = icc_of_fisher(
        np.array([target.z, target.z - NORMAL_95 * error, target.z + NORMAL_95 * error])
    )
    return CusumResult(
        target_icc=float(ends[0]),
        target_low=float(ends[1]),
        target_high=float(ends[2]),
        source=target_options.source,
        rule=rule,
        baseline=usable.rows[:n_baseline],
        rows=tuple(_cusum_rows(rows, usable, target, (target_series, floor_series)))
        if target_series
        else (),
        alarm=fall.periods[-1] if fall else None,
        fall=fall,
        fell=fall.periods if fall else (judged,),
        judged=judged,
        earlier=tuple(row for row in rows if row.end < judged.start and _comparable(row)),
        detectable=_detectable(watched, target, rule) if target_series else None,
        reason=reason,
    )


def why_left_out(row: PeriodRow) -> Note | None:
    """Return why a period cannot take part in a CUSUM, or None where it can."""
    if row.too_few:
        return note("left_out_few", "too few instances")
    if not row.over:
        return note("left_out_not_over", "not over")
    if not np.isfinite(row.fisher_z):
        return note("left_out_no_z", "its ICC has no z")
    return None if np.isfinite(row.se) else note("left_out_no_error", "its z has no standard error")


def _comparable(row: PeriodRow) -> bool:
    return not row.too_few and bool(np.isfinite(row.icc))


def _series(usable: Sequence[PeriodRow]) -> _Series:
    """Return the periods with their weights, and the factor of their errors.

    The factor is the mean of (jackknife SE)^2 * weight * (m - 2) / m over the periods to date,
    m instances each, plus half that mean's standard error, since from few periods of scores that
    hardly vary it is too small by chance. It is never below 1. (The delete-one jackknife's
    variance is about m / (m - 2) times too large.)
    """
    weights = np.array([row.n_responses - 2.0 for row in usable])
    spread = np.array([row.se**2 * (1 - 2 / row.n_instances) for row in usable]) * weights
    counts = np.arange(1, len(usable) + 1)
    mean = np.cumsum(spread) / counts
    square = np.maximum(np.cumsum(spread**2) / counts - mean**2, 0.0)
    error = np.sqrt(square / np.maximum(counts - 1, 1))
    z = np.array([row.fisher_z for row in usable])
    return _Series(tuple(usable), z, weights, np.maximum(mean + error / 2, 1.0))


def _baseline_length(rows: Sequence[PeriodRow], target_options: TargetOptions) -> int:
    """Return how many of the first periods are not watched."""
    if target_options.periods is not None:
        return min(target_options.periods, len(rows))
    since = target_options.since or date.min
    return sum(row.end < since for row in rows)


def _target(
    usable: _Series, n_baseline: int, target_options: TargetOptions, rule: AlarmRule
) -> _CusumTarget:
    """Return the target with its error at the end of each watched period, or of the newest."""
    watched = usable.after(n_baseline)
    factor = watched.factor if len(watched.rows) else usable.factor[-1:]
    is_exact = target_options.periods is None and not target_options.se
    rate = rule.false_alarms * (1 if is_exact else 1 - FLOOR_SHARE)
    if target_options.periods is None:
        variance = np.full(len(factor), target_options.se**2)
        mean_weight = float(np.sum(watched.weights) / max(len(watched.rows), 1))
        target_periods = (
            np.inf
            if is_exact or not mean_weight
            else float(factor[-1] / mean_weight / target_options.se**2)
        )
        return _CusumTarget(
            float(fisher_z(target_options.icc)), variance, _rounded(target_periods), rate
        )
    if not n_baseline:
        return _CusumTarget(NAN, np.full(len(factor), NAN), NAN, rate)
    weights = usable.weights[:n_baseline]
    z = float(weights @ usable.z[:n_baseline] / weights.sum())
    mean_weight = watched.weights.mean() if len(watched.rows) else weights.mean()
    return _CusumTarget(
        z, factor / weights.sum(), _rounded(float(weights.sum() / mean_weight)), rate
    )


def _floor_target(usable: _Series, rule: AlarmRule) -> _CusumTarget:
    no_variance = np.zeros(len(usable.rows))
    return _CusumTarget(
        float(fisher_z(rule.floor)), no_variance, np.inf, rule.false_alarms * FLOOR_SHARE
    )


def _rounded(periods: float) -> float:
    """Return a number rounded to two digits, so that a limit does not change with each response."""
    return float(f"{periods:.2g}")


def _compare(below: str, series: _Series, target: _CusumTarget, rule: AlarmRule) -> _CusumSeries:
    years = np.minimum(np.arange(len(series.rows)) // rule.year, YEARS - 1)
    year_limits = limits(target.periods, rule.year, target.rate, int(years.max(initial=0)) + 1)
    most_step = (
        MOST_OF_ONE * min(year_limits) * window_factor(SHORTEST, rule.year) * math.sqrt(SHORTEST)
    )
    falls = np.minimum(target.z - series.z, most_step * np.sqrt(series.factor / series.weights))
    cusum = falling_cusum(falls, series.weights, series.factor, target.variance, rule.year)
    return _CusumSeries(
        below, target, series, cusum.sums, np.array(year_limits)[years], cusum.windows
    )


def _first_fall(comparisons: Sequence[_CusumSeries], rule: AlarmRule) -> Fall | None:
    """Return the first fall that raised an alarm; of two in one period, that below the target."""
    alarms = [
        (comparison, comparison.alarm) for comparison in comparisons if comparison.alarm is not None
    ]
    if not alarms:
        return None
    comparison, place = min(alarms, key=lambda alarm: alarm[0].series.rows[alarm[1]].start)
    length = int(comparison.windows[place])
    in_window = slice(place - length + 1, place + 1)
    weights = comparison.series.weights[in_window]
    z = float(weights @ comparison.series.z[in_window] / weights.sum())
    variance = comparison.series.factor[place] / weights.sum()
    error = float(np.sqrt(comparison.target.variance[place] + variance))
    reach = comparison.limits[place] * window_factor(length, rule.year) * error
    half_width = NORMAL_95 * float(np.sqrt(variance))
    low, icc, high, most = icc_of_fisher(z + np.array([-half_width, 0, half_width, reach]))
    return Fall(
        comparison.of,
        comparison.series.rows[in_window],
        float(icc),
        float(low),
        float(high),
        float(most),
    )


def _detectable(watched: _Series, target: _CusumTarget, rule: AlarmRule) -> DetectableFall:
    """Return the smallest fall right after the baseline that would be found, at today's errors."""
    fall = detectable_fall(target.periods, rule.year, target.rate)
    weight = float(watched.weights.mean())
    icc = icc_of_fisher(target.z - fall * np.sqrt(watched.factor[-1] / weight))
    return DetectableFall(float(icc), round(weight + 2), rule.year, POWER)


def _why_no_cusum(
    rows: Sequence[PeriodRow], usable: _Series, watched: _Series, target_options: TargetOptions
) -> Note | None:
    if len(watched.rows):
        return None
    if target_options.periods is None:
        return note(
            "no_cusum_since",
            "no trend check (CUSUM) yet: no completed period since then has enough instances",
        )
    waiting = sum(not row.over and not row.too_few for row in rows)
    counts = {"periods": len(usable.rows) + waiting, "baseline": target_options.periods}
    return note(
        "no_cusum_yet", _no_cusum_yet, **counts, **({"not_over": waiting} if waiting else {})
    )


def _cusum_rows(
    rows: Sequence[PeriodRow],
    usable: _Series,
    target: _CusumTarget,
    comparisons: tuple[_CusumSeries, _CusumSeries],
) -> list[CusumRow]:
    """Return a row for each period; None where the period takes no part in a CUSUM."""
    by_target, by_floor = (dict(_by_period(comparison)) for comparison in comparisons)
    names = [row.period for row in usable.rows]
    errors = dict(zip(names, np.sqrt(usable.factor / usable.weights).tolist(), strict=True))
    places = ((row, row.period) for row in rows)
    return [
        _cusum_row(row, by_target.get(name), by_floor.get(name), errors.get(name, NAN), target.z)
        for row, name in places
    ]


def _by_period(comparison: _CusumSeries) -> Iterator[tuple[str, _CusumLook]]:
    """Yield each period with the CUSUM at its end."""
    figures = zip(
        comparison.series.rows, comparison.sums, comparison.limits, comparison.windows, strict=True
    )
    for row, total, limit, length in figures:
        shown = float(total) if np.isfinite(total) else None
        yield row.period, _CusumLook(shown, float(limit), int(length), bool(total >= limit))


def _cusum_row(
    row: PeriodRow,
    target_look: _CusumLook | None,
    floor_look: _CusumLook | None,
    error: float,
    target: float,
) -> CusumRow:
    return CusumRow(
        benchmark=row.benchmark,
        period=row.period,
        role="watched" if target_look else "baseline" if floor_look else "left out",
        fisher_z=row.fisher_z,
        se=error,
        step=(target - row.fisher_z) / error if target_look else None,
        cusum=target_look.total if target_look else None,
        limit=target_look.limit if target_look else None,
        window=target_look.window if target_look else None,
        floor_cusum=floor_look.total if floor_look else None,
        floor_limit=floor_look.limit if floor_look else None,
        alarm=any(look is not None and look.is_alarm for look in (target_look, floor_look)),
        notes=noted(why_left_out(row)),
    )


def _no_cusum_yet(figures: Figures) -> str:
    waiting = figures.get("not_over", 0)
    over, needed = figures["periods"] - waiting, counted(figures["baseline"], "completed period")
    verb = "is" if over == 1 else "are"
    more = f" ({waiting} more not over yet)" if waiting else ""
    return (
        f"no trend check (CUSUM) yet: it needs {needed} with enough instances and one more to watch, "
        f"and there {verb} {over}{more}; compared with a frozen report, one completed period after it is enough"
    )
