"""Compare each period with the target and with the floor, by a CUSUM of falls."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

import numpy as np

from calibration.codes import MonitoringCode
from calibration.monitoring.cusum import (
    POWER,
    SHORTEST,
    YEARS,
    demand,
    detectable_fall,
    falling_cusum,
    fisher_z,
    icc_of_fisher,
    limits,
)
from calibration.monitoring.periods import Every
from calibration.monitoring.rows import CusumRow, Detectable, Fall, PeriodRow
from calibration.scores import Array, Integers
from calibration.values import NAN, Note, note, noted

BASELINE = 3  # periods; the fewer, the larger a fall must be to be found
FLOOR_SHARE = 0.1  # of the false alarms, for the floor; the rest is for the target
A_YEAR = {"week": 52, "month": 12, "quarter": 4}
SOLE = 0.8  # of what raises an alarm, the most that one period can add: none is a fall by itself
WIDE = 1.959964


@dataclass(frozen=True)
class Normal:
    """What says how far the jury agrees while nothing has changed: exactly one of the three.

    Attributes
    ----------
    periods : the first so many periods that are not left out
    icc : a known ICC(C,2), given or of a frozen report
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
class Rule:
    """How often an unchanged jury may raise an alarm, and what it must not be shown to be below.

    Attributes
    ----------
    false_alarms : share of years of watching
    floor : the least ICC that is wanted
    every : the calendar period, which says how many make a year
    """

    false_alarms: float = 0.05
    floor: float = 0.4
    every: Every = "month"

    @property
    def year(self) -> int:
        """Return how many periods make a year."""
        return A_YEAR[self.every]


@dataclass(frozen=True)
class Watched:
    """What the periods say.

    Attributes
    ----------
    target_icc, target_low, target_high : float
        ICC of the target; the interval is of a target with an error, else NaN.
    source : where the target comes from
    rule : by which alarms are raised
    baseline : rows of the periods it comes from; of those before the report, if from one
    rows : a row a period; none where nothing is compared with a target
    alarm : the first period at whose end a fall is shown, below the target or the floor
    fall : what the alarm rests on
    fell : the periods of the fall; without one, the judged period
    judged : the newest period with enough rated instances; the newest of all where none has
    earlier : periods before the judged one whose ICC can be compared with its
    detectable : the fall that watching would find
    reason : why nothing is compared with a target
    """

    target_icc: float
    target_low: float
    target_high: float
    source: str
    rule: Rule
    baseline: tuple[PeriodRow, ...]
    rows: tuple[CusumRow, ...]
    alarm: PeriodRow | None
    fall: Fall | None
    fell: tuple[PeriodRow, ...]
    judged: PeriodRow
    earlier: tuple[PeriodRow, ...]
    detectable: Detectable | None = None
    reason: Note | None = None

    @property
    def limit(self) -> float | None:
        """Return where the CUSUM of the newest watched period raises an alarm."""
        return next((row.limit for row in reversed(self.rows) if row.limit is not None), None)

    @property
    def is_below_target(self) -> bool:
        """Whether an alarm says that agreement is below the target."""
        return self.fall is not None and self.fall.of == "target"


@dataclass(frozen=True, eq=False)
class _Series:
    """Periods that can be compared, in the order of time, and how exact they are.

    `weights` are responses less 2, and `factor`, as known at the end of each, is how many times
    the variance of z is that of independent normal responses, 1 / weight.
    """

    rows: tuple[PeriodRow, ...]
    z: Array
    weights: Array
    factor: Array

    def after(self, many: int) -> "_Series":
        """Return it without its first periods."""
        return _Series(self.rows[many:], self.z[many:], self.weights[many:], self.factor[many:])


@dataclass(frozen=True, eq=False)
class _Target:
    """A value that periods are compared with: its z, and that one's variance at each's end."""

    z: float
    variance: Array
    periods: float
    rate: float


class _Look(NamedTuple):
    """What was found at the end of a period."""

    total: float | None
    limit: float
    window: int
    is_alarm: bool


@dataclass(frozen=True, eq=False)
class _Compared:
    """What comparing periods with a target gives: sums, their limits, and over which periods."""

    of: str
    target: _Target
    series: _Series
    sums: Array
    limits: Array
    windows: Integers

    @property
    def alarm(self) -> int | None:
        """Return the place of the first period with an alarm."""
        reached = np.flatnonzero(self.sums >= self.limits)
        return int(reached[0]) if len(reached) else None


def watch(rows: Sequence[PeriodRow], normal: Normal, rule: Rule | None = None) -> Watched:
    """Compare each period with what is normal and with the floor, and add up the falls.

    Parameters
    ----------
    rows : at least one, from `periods.period_rows`
    normal : Normal
    rule : Rule, by default one false alarm in 20 years of watching by month

    Returns
    -------
    Watched
        The target of a baseline is the mean of its periods' z, weighted by their responses less
        2. Where there are no more periods than the baseline needs, only the floor is watched.
    """
    rule = rule or Rule()
    usable = _series([row for row in rows if why_left_out(row) is None])
    many = _baseline(usable.rows, normal)
    watched = usable.after(many)
    reason = _why_none(rows, usable, watched, normal)
    target = _target(usable, many, normal, rule)
    below = None if reason else _compared("target", watched, target, rule)
    below_floor = _compared("floor", usable, _floor(usable, rule), rule)
    fall = _fall([below, below_floor] if below else [below_floor], rule)
    judged = next((row for row in reversed(rows) if not row.unfilled), rows[-1])
    error = float(np.sqrt(target.variance[-1])) if target.variance.any() else NAN
    ends = icc_of_fisher(np.array([target.z, target.z - WIDE * error, target.z + WIDE * error]))
    return Watched(
        target_icc=float(ends[0]),
        target_low=float(ends[1]),
        target_high=float(ends[2]),
        source=normal.source,
        rule=rule,
        baseline=usable.rows[:many],
        rows=tuple(_rows(rows, usable, target, (below, below_floor))) if below else (),
        alarm=fall.periods[-1] if fall else None,
        fall=fall,
        fell=fall.periods if fall else (judged,),
        judged=judged,
        earlier=tuple(row for row in rows if row.end < judged.start and _comparable(row)),
        detectable=_detectable(watched, target, rule) if below else None,
        reason=reason,
    )


def why_left_out(row: PeriodRow) -> Note | None:
    """Return why a period cannot take part in a CUSUM, or None where it can."""
    if row.too_few:
        return note(MonitoringCode.LEFT_OUT_FEW)
    if not row.over:
        return note(MonitoringCode.LEFT_OUT_NOT_OVER)
    if not np.isfinite(row.fisher_z):
        return note(MonitoringCode.LEFT_OUT_NO_Z)
    return None if np.isfinite(row.se) else note(MonitoringCode.LEFT_OUT_NO_ERROR)


def _comparable(row: PeriodRow) -> bool:
    return not row.too_few and bool(np.isfinite(row.icc))


def _series(usable: Sequence[PeriodRow]) -> _Series:
    """Return the periods with their weights, and the factor of their errors.

    The factor is the mean of (jackknife SE)^2 * weight * (m - 2) / m over the periods to date,
    m instances each, and half that mean's standard error more: from few periods of scores that
    hardly vary it is small by luck. It is never below 1. (The delete-one jackknife's variance
    is some m / (m - 2) times too large.)
    """
    weights = np.array([row.n_responses - 2.0 for row in usable])
    spread = np.array([row.se**2 * (1 - 2 / row.n_instances) for row in usable]) * weights
    counts = np.arange(1, len(usable) + 1)
    mean = np.cumsum(spread) / counts
    square = np.maximum(np.cumsum(spread**2) / counts - mean**2, 0.0)
    error = np.sqrt(square / np.maximum(counts - 1, 1))
    z = np.array([row.fisher_z for row in usable])
    return _Series(tuple(usable), z, weights, np.maximum(mean + error / 2, 1.0))


def _baseline(usable: Sequence[PeriodRow], normal: Normal) -> int:
    """Return how many of the first periods are not watched."""
    if normal.periods is not None:
        return min(normal.periods, len(usable))
    since = normal.since or date.min
    return sum(row.end < since for row in usable)


def _target(usable: _Series, many: int, normal: Normal, rule: Rule) -> _Target:
    """Return the target with its error at the end of each watched period, or of the newest."""
    watched = usable.after(many)
    factor = watched.factor if len(watched.rows) else usable.factor[-1:]
    exact = normal.periods is None and not normal.se
    rate = rule.false_alarms * (1 if exact else 1 - FLOOR_SHARE)
    if normal.periods is None:
        variance = np.full(len(factor), normal.se**2)
        own = float(np.sum(watched.weights) / max(len(watched.rows), 1))
        periods = np.inf if exact or not own else float(factor[-1] / own / normal.se**2)
        return _Target(float(fisher_z(normal.icc)), variance, _rounded(periods), rate)
    if not many:
        return _Target(NAN, np.full(len(factor), NAN), NAN, rate)
    weights = usable.weights[:many]
    z = float(weights @ usable.z[:many] / weights.sum())
    own = watched.weights.mean() if len(watched.rows) else weights.mean()
    return _Target(z, factor / weights.sum(), _rounded(float(weights.sum() / own)), rate)


def _floor(usable: _Series, rule: Rule) -> _Target:
    none = np.zeros(len(usable.rows))
    return _Target(float(fisher_z(rule.floor)), none, np.inf, rule.false_alarms * FLOOR_SHARE)


def _rounded(periods: float) -> float:
    """Return two digits of a number: a limit shall not move with each response."""
    return float(f"{periods:.2g}")


def _compared(of: str, series: _Series, target: _Target, rule: Rule) -> _Compared:
    years = np.minimum(np.arange(len(series.rows)) // rule.year, YEARS - 1)
    known = limits(target.periods, rule.year, target.rate, int(years.max(initial=0)) + 1)
    most = SOLE * min(known) * demand(SHORTEST, rule.year) * math.sqrt(SHORTEST)
    falls = np.minimum(target.z - series.z, most * np.sqrt(series.factor / series.weights))
    found = falling_cusum(falls, series.weights, series.factor, target.variance, rule.year)
    return _Compared(of, target, series, found.sums, np.array(known)[years], found.windows)


def _fall(compared: Sequence[_Compared], rule: Rule) -> Fall | None:
    """Return the first fall that is shown: of two at once, that below the target."""
    raised = [(one, one.alarm) for one in compared if one.alarm is not None]
    if not raised:
        return None
    one, place = min(raised, key=lambda each: each[0].series.rows[each[1]].start)
    length = int(one.windows[place])
    own = slice(place - length + 1, place + 1)
    weights = one.series.weights[own]
    z = float(weights @ one.series.z[own] / weights.sum())
    variance = one.series.factor[place] / weights.sum()
    apart = float(np.sqrt(one.target.variance[place] + variance))
    reach = one.limits[place] * demand(length, rule.year) * apart
    wide = WIDE * float(np.sqrt(variance))
    low, icc, high, most = icc_of_fisher(z + np.array([-wide, 0, wide, reach]))
    return Fall(one.of, one.series.rows[own], float(icc), float(low), float(high), float(most))


def _detectable(watched: _Series, target: _Target, rule: Rule) -> Detectable:
    """Return what a fall right after the baseline had to reach, at the errors known now."""
    fall = detectable_fall(target.periods, rule.year, target.rate)
    weight = float(watched.weights.mean())
    icc = icc_of_fisher(target.z - fall * np.sqrt(watched.factor[-1] / weight))
    return Detectable(float(icc), round(weight + 2), rule.year, POWER)


def _why_none(
    rows: Sequence[PeriodRow], usable: _Series, watched: _Series, normal: Normal
) -> Note | None:
    if len(watched.rows):
        return None
    if normal.periods is None:
        return note(MonitoringCode.NO_CUSUM_SINCE)
    waiting = sum(not row.over and not row.too_few for row in rows)
    many = {"periods": len(usable.rows) + waiting, "baseline": normal.periods}
    return note(MonitoringCode.NO_CUSUM_YET, **many, **({"not_over": waiting} if waiting else {}))


def _rows(
    rows: Sequence[PeriodRow],
    usable: _Series,
    target: _Target,
    compared: tuple[_Compared, _Compared],
) -> list[CusumRow]:
    """Return a row a period: what is None was not looked at."""
    below, below_floor = (dict(_by_period(one)) for one in compared)
    names = [row.period for row in usable.rows]
    errors = dict(zip(names, np.sqrt(usable.factor / usable.weights).tolist(), strict=True))
    places = ((row, row.period) for row in rows)
    return [
        _row(row, below.get(name), below_floor.get(name), errors.get(name, NAN), target.z)
        for row, name in places
    ]


def _by_period(one: _Compared) -> Iterator[tuple[str, _Look]]:
    """Yield each period with what was found at its end."""
    figures = zip(one.series.rows, one.sums, one.limits, one.windows, strict=True)
    for row, total, limit, length in figures:
        known = float(total) if np.isfinite(total) else None
        yield row.period, _Look(known, float(limit), int(length), bool(total >= limit))


def _row(
    row: PeriodRow, own: _Look | None, floor: _Look | None, error: float, target: float
) -> CusumRow:
    return CusumRow(
        benchmark=row.benchmark,
        period=row.period,
        role="watched" if own else "baseline" if floor else "left out",
        fisher_z=row.fisher_z,
        se=error,
        step=(target - row.fisher_z) / error if own else None,
        cusum=own.total if own else None,
        limit=own.limit if own else None,
        window=own.window if own else None,
        floor_cusum=floor.total if floor else None,
        floor_limit=floor.limit if floor else None,
        alarm=any(one is not None and one.is_alarm for one in (own, floor)),
        notes=noted(why_left_out(row)),
    )
