"""A jury's agreement with the clinicians in each week, month or quarter, and whether it has fallen.

A month of 20 responses says little by itself. Falls are therefore looked for by a scan of windows:
at the end of each period, the mean of Fisher's z over the latest 2, 3, ... periods, up to a year, is
compared with the target, in standard errors, and the largest of these falls is held against a limit.
The limit is a quantile of the largest of many correlated normal values. It has no closed form when
the target has an error of its own, so it is simulated, with a fixed seed.

A fall comes from a changed juror, another case mix, both, or neither. A juror that scored the same
responses again a week later or more (the anchor) shows whether it has changed; the responses rated
then and now show whether the cases have.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from calibration import remarks
from calibration.clustered_intervals import clustered_mean
from calibration.columns import LEAST_RESPONSES, PanelColumns, columns, unscaled, why_undefined
from calibration.decision import Decision, DecisionKind
from calibration.differences import holm
from calibration.intervals import (
    Difference,
    fisher_z,
    icc_difference,
    icc_of_fisher,
    jackknife_error,
    jackknife_interval,
    left_out,
)
from calibration.notes import Note, Noted, note, noted, undefined
from calibration.rating_matrix import mean_of_given, on_shared_scale, required_criteria
from calibration.scope import Scope
from calibration.scores import Array, Flags, Integers, RubricShape, Scores
from calibration.shared_notes import DO_REAL_RATERS, SIMULATED
from calibration.values import NAN, NORMAL_95, MonitoringOptions
from calibration.weighted import scorer_iccs, weighted_icc

CALENDAR = {"week": ("W-SUN", 52), "month": ("M", 12), "quarter": ("Q", 4)}  # periods of a year
SHORTEST = 2  # periods of a window: one alone is never a fall
MOST_FACTOR = 1.6  # how many times more a short window must show than a year
MOST_OF_ONE = 0.8  # of what raises an alarm, the most that one period can add
FLOOR_SHARE = 0.1  # of the false alarms, for the floor; the rest is for the target
YEARS = 3  # limits are simulated for so many; later years have the last one
STUDIES, CELLS_OF_YEAR = 20_000, 260_000  # simulated at most: studies, and periods of a year

LEVEL = 0.05
MOVED_SHARE = 0.1  # smaller changes of the shares of benchmarks are usual between months
LEAST_EXPLAINED = 0.5  # share of the fall that a reason must explain to be named
LEAST_EFFECTIVE = 10
MIN_GAP = timedelta(days=7)  # replicates made within a week show a juror's noise, not its drift
DRIFTS = {
    "none": "agreement has not measurably fallen since the baseline",
    "not_compared": "no earlier period to compare the newest one with",
    "model": "the data point to the model: its scores of the same responses have changed",
    "case_mix": "the data point to the case mix: other responses were rated",
    "model_and_case_mix": "both have changed: the model and the case mix",
    "neither": "neither model nor case mix shows why: the clinicians may have changed, or it is chance",
    "unknown": "the case mix does not show why, and nothing was scored again to test the model",
}


@dataclass(frozen=True)
class PeriodRow(Noted):
    """A jury's agreement with the clinicians in one period, and the scan at its end.

    Attributes
    ----------
    period, start, end : label, first and last day
    over : False while ratings may still be added to it
    too_few : fewer instances with both columns than are needed: left out of the scan
    unfilled : clinicians have not yet rated as many instances; only the last can be that
    icc, low, high : ICC(C,2) with its 95 % interval, of the jackknife over instances
    fisher_z, se : Fisher's z of the ICC, and its jackknife standard error over instances
    n_missing : responses of the period that the jury has no score for
    role : "baseline", "watched", "left out" (too few, not over, or without z or its error), or ""
        where nothing is compared with a target
    scan, limit : the largest fall below the target over a window of the latest periods, in standard
        errors, and where it raises an alarm; None where not watched, or before the second period
    alarm : whether the scan of falls below the target, or that below the floor, is at its limit
    """

    period: str
    start: date
    end: date
    over: bool
    too_few: bool
    unfilled: bool
    icc: float
    low: float
    high: float
    fisher_z: float
    se: float
    n_responses: int
    n_instances: int
    n_clinicians: int
    n_missing: int
    role: str = ""
    scan: float | None = None
    limit: float | None = None
    alarm: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Watched:
    """The periods compared with the target and with the floor.

    Attributes
    ----------
    target_icc : NaN without a target
    reason : why nothing is compared with a target, or None
    baseline : the periods that the target comes from, or those before its report
    judged : the newest period with enough rated instances; the newest of all where none has
    below : "target" or "floor", whichever the first alarm shows agreement to be below, else ""
    fell : the periods of the fall, the last of which raised the alarm; without one, the judged one
    icc, low, high : of the periods of the fall together, else of the judged one
    most : upper end for the fall that holds for all looks of a year; NaN without an alarm
    """

    options: MonitoringOptions
    periods: tuple[PeriodRow, ...]
    target_icc: float
    reason: Note | None
    baseline: tuple[PeriodRow, ...]
    judged: PeriodRow
    below: str
    fell: tuple[PeriodRow, ...]
    icc: float
    low: float
    high: float
    most: float = NAN

    @property
    def alarm(self) -> PeriodRow | None:
        """Return the first period at whose end a fall is shown."""
        return self.fell[-1] if self.below else None


@dataclass(frozen=True)
class AnchorRow(Noted):
    """A scorer's first and latest composites of the same responses.

    Attributes
    ----------
    scorer : "juror:NAME", or "jury" for the mean of jurors that all have both
    shift, low, high : latest minus first in points, with a 95 % interval over instances
    p_holm : two-sided p of shift 0, corrected for the jurors of the jury
    icc_first, icc_latest : ICC(C,2) with the clinicians on the same n_clinical responses
    change_low, change_high : 95 % interval of latest minus first of these two
    """

    scorer: str
    n_responses: int
    n_instances: int
    shift: float
    low: float
    high: float
    p_holm: float
    n_clinical: int
    icc_first: float
    icc_latest: float
    change_low: float
    change_high: float


@dataclass(frozen=True)
class CaseMix(Noted):
    """The responses rated in the baseline and now.

    Attributes
    ----------
    baseline, now : labels of the periods
    shares : a mapping for each benchmark: its name, and its share of the responses of each
    moved : half the sum of absolute differences of the shares: 0 the same, 1 nothing in common
    mean_*, sd_* : of the clinicians' mean composites, in points
    icc_baseline, icc_now : ICC(C,2)
    change_low, change_high : 95 % interval of its change
    icc_reweighted : of now, its benchmarks weighted to the baseline's shares. NaN where that rests
        on fewer than 10 effective responses, (sum of weights)^2 / sum of squares (Kish 1965)
    """

    baseline: str
    now: str
    shares: tuple[Mapping[Any, Any], ...] = ()
    moved: float = NAN
    mean_baseline: float = NAN
    mean_now: float = NAN
    sd_baseline: float = NAN
    sd_now: float = NAN
    icc_baseline: float = NAN
    icc_now: float = NAN
    change_low: float = NAN
    change_high: float = NAN
    icc_reweighted: float = NAN


def calendar(
    days: Sequence[date], clusters: Integers, options: MonitoringOptions
) -> list[tuple[pd.Period, pd.Period, Flags]]:
    """Return the first and last calendar period of each period, and its responses, shape (n,).

    `days` are those of n responses, `clusters` (n,) their instances. A period with fewer than
    `least` instances is joined with those after it until there are as many; the last may have
    fewer. Days before `since` are in none.
    """
    shown = np.array([day >= (options.since or date.min) for day in days], dtype=np.bool_)
    if not shown.any():
        return []
    own = pd.PeriodIndex(pd.to_datetime(list(days)), freq=CALENDAR[options.every][0])
    found, first, last = [], own[shown].min(), own[shown].max()
    for period in pd.period_range(first, last):
        rows = np.asarray((own >= first) & (own <= period)) & shown
        if len(np.unique(clusters[rows])) >= options.least or period == last:
            found.append((first, period, rows))
            first = period + 1
    return found


def period_label(first: pd.Period, last: pd.Period) -> str:
    """Return "2026-W09" (ISO 8601), "2026-03", "2026-Q1", or "2026-03 to 2026-05"."""
    form = {"W": "%G-W%V", "M": "%Y-%m", "Q": f"%Y-Q{first.quarter}"}[first.freqstr[0]]
    label = first.start_time.strftime(form)
    return label if first == last else f"{label} to {period_label(last, last)}"


def finite_z(icc: Array | float) -> Array:
    """Return Fisher's z of ICC(C,2), NaN where it is not finite."""
    values = np.asarray(icc, dtype=np.float64)
    return fisher_z(np.where(np.isfinite(values) & (values < 1), values, NAN))


def independent_se(n: int) -> float:
    """Return the standard error of Fisher's z for n independent normal responses; NaN if n < 3.

    z is half the logarithm of F = MS_rows / MS_error, with n - 1 and n - 1 degrees of freedom, so
    var z = trigamma((n - 1) / 2) / 2.
    """
    return math.sqrt(float(special.polygamma(1, (n - 1) / 2)) / 2) if n > 2 else NAN


def period_rows(
    scope: Scope, jury: PanelColumns, rated: Mapping[str, date], options: MonitoringOptions
) -> list[PeriodRow]:
    """Return the jury's agreement in each calendar period, in the order of time.

    Parameters
    ----------
    scope : one benchmark, or all combined
    jury : whose members have columns in the scope's grid
    rated : response_id -> the day that puts it into a period, for the whole analysed set

    Notes
    -----
    With method "paper" z is within each rater over the whole analysed set, not within the period:
    over the two or three ratings of a clinician in a week z is noise. NaN where undefined, with the
    reason in its notes.
    """
    grid, method = scope.grid, scope.options.method
    pair, found = columns(grid, jury, method), list[PeriodRow]()
    days = [rated[name] for name in grid.responses]
    given = pd.DataFrame(grid.composites[:, grid.of_kind("clinician")], columns=scope.clinicians)
    for first, last, rows in calendar(days, grid.clusters, options):
        both, end = rows & pair.both, last.end_time.date()
        reason, iccs = why_undefined(pair.clinicians[both], pair.scorer[both]), np.full(1, NAN)
        if not reason:  # without each instance every mean, sd and z is computed anew
            weights = left_out(grid.n_clusters, grid.clusters[rows])
            iccs = scorer_iccs(grid, [jury], method, weights, rows)[:, 0]
        z, interval, instances = finite_z(iccs), jackknife_interval(iccs), grid.instances(both)
        clinicians = [*given[both].dropna(axis=1, how="all")]
        raters = [*clinicians, *jury.members]
        row = PeriodRow(
            period=period_label(first, last),
            start=first.start_time.date(),
            end=end,
            over=end < options.today,
            too_few=instances < options.least,
            unfilled=grid.instances(rows) < options.least,
            icc=float(iccs[0]),
            low=interval.low,
            high=interval.high,
            fisher_z=float(z[0]),
            se=jackknife_error(z),
            n_responses=int(both.sum()),
            n_instances=instances,
            n_clinicians=len(clinicians),
            n_missing=int((rows & ~jury.present(grid)).sum()),
            notes=noted(
                reason,
                remarks.no_variance(unscaled(grid, raters) if method == "paper" else ()),
                remarks.simulated(scope.simulated & {*raters}),
            ),
        )
        found.append(row)
    return found


def scan_falls(
    falls: Array, weights: Array, factor: Array, target_variance: Array, year: int
) -> tuple[Array, Integers]:
    """Return the largest fall over a window of the latest periods, and that window's length.

    For the last w periods with weights a, fall d = sum(a * falls) / sum(a), and
    S_t = max over w of d / sqrt(target_variance_t + factor_t / sum(a)) / window_factor(w, year).

    Parameters
    ----------
    falls : shape (..., periods), target minus value; leading axes are independent series
    weights : shape (periods,), above 0; a period's variance is factor / weight
    factor, target_variance : shape (periods,), as known at the end of each; 0 for a known target
    year : periods of a year, and the longest window; the shortest has 2

    Returns
    -------
    two of shape (..., periods) : -inf and 0 before the second period

    References
    ----------
    Lai (1995), Journal of the Royal Statistical Society B 57, 613, for limits on windows. Haybittle
    (1971), British Journal of Radiology 44, 793, for a maximum of the limit at early looks.
    """
    total = np.insert(np.cumsum(falls * weights, axis=-1), 0, 0.0, axis=-1)
    total_weight = np.insert(np.cumsum(weights), 0, 0.0)
    largest = np.full(falls.shape, -np.inf)
    windows = np.zeros(falls.shape, dtype=np.int64)
    for length in range(SHORTEST, min(year, len(weights)) + 1):
        ends = slice(length - 1, None)
        weight = total_weight[length:] - total_weight[:-length]
        error = np.sqrt(target_variance[ends] + factor[ends] / weight)
        fall = (total[..., length:] - total[..., :-length]) / weight
        fall /= error * window_factor(length, year)
        windows[..., ends][fall > largest[..., ends]] = length
        largest[..., ends] = np.maximum(largest[..., ends], fall)
    return largest, windows


def window_factor(window: int, year: int) -> float:
    """Return how many times larger a fall over a window must be, in its errors, than over a year.

    sqrt(year / window), with which lasting falls are found soonest, and at most 1.6, so that a
    large fall is found although it is short.
    """
    return min(math.sqrt(year / window), MOST_FACTOR)


@lru_cache(maxsize=64)
def limits(target_periods: float, year: int, rate: float, years: int = YEARS) -> tuple[float, ...]:
    """Return the limit of the scan in each year of watching, at which an alarm is raised.

    The target is as exact as the mean of `target_periods`, infinite for a known one. `rate` is the
    share of unchanged juries without an earlier alarm that have one in a year of `year` periods. From
    normal periods with equal errors, the target's error being the same in all; with 20,000 simulated
    studies (5,000 by week) a rate of 5 % is right to some 0.2 (0.3) percentage points.
    """
    random = np.random.default_rng(0)
    studies = min(STUDIES, CELLS_OF_YEAR // year)
    target = random.normal(size=(studies, 1)) / np.sqrt(target_periods)
    periods = np.hstack([random.normal(size=(studies, year)) for _ in range(years)])
    ones = np.ones(year * years)
    scan, _ = scan_falls(target - periods, ones, ones, ones / target_periods, year)
    without_alarm, year_limits = np.ones(studies, dtype=np.bool_), []
    for begin in range(0, years * year, year):
        largest = scan[:, begin : begin + year].max(axis=1)
        year_limits.append(float(np.quantile(largest[without_alarm], 1 - rate)))
        without_alarm &= largest < year_limits[-1]
    return tuple(year_limits)


def watch(rows: Sequence[PeriodRow], options: MonitoringOptions) -> Watched:
    """Compare the periods, at least one, with the target and with the floor.

    The target of a baseline is the mean of its periods' z, weighted by their responses minus 2.
    Where there are no more periods than the baseline needs, only the floor is watched.
    """
    year, rate, series = CALENDAR[options.every][1], options.false_alarms, _series(rows)
    before, since = min(options.baseline, len(series)), options.target_since or date.min
    if options.target is not None:
        before = sum(rows[place].end < since for place in series.index)
    centre, variance, worth = _target(series, before, options)
    reason = None
    if len(series) <= before:
        needed = 1 if options.target is not None else options.baseline + 1 - len(series)
        words = "not watched yet: {needed:more completed period} with enough instances needed"
        reason = note("not_watched_yet", words, needed=needed)
    scans = {}
    if reason is None:
        is_exact = options.target is not None and not options.target_se
        own_rate = rate * (1 if is_exact else 1 - FLOOR_SHARE)
        scans["target"] = _scan(series[before:], centre, variance, worth, year, own_rate)
    floor, exact = float(finite_z(options.floor)), np.zeros(len(series))
    scans["floor"] = _scan(series, floor, exact, np.inf, year, rate * FLOOR_SHARE)
    alarms = [(place, below) for below, own in scans.items() for place in own.index[own["alarm"]]]
    looks: Mapping[Any, Any] = {} if reason else scans["target"].to_dict("index")
    shown = []
    for place, row in enumerate(rows):
        look, role = looks.get(place, {}), "baseline" if place in series.index else "left out"
        shown.append(
            replace(
                row,
                role="" if reason else "watched" if look else role,
                scan=look["scan"] if look.get("window") else None,
                limit=look.get("limit"),
                alarm=any(place == one for one, _ in alarms),
            )
        )
    judged = next((row for row in reversed(shown) if not row.unfilled), shown[-1])
    found = Watched(
        options=options,
        periods=tuple(shown),
        target_icc=float(icc_of_fisher(centre)),
        reason=reason,
        baseline=tuple(shown[place] for place in series.index[:before]),
        judged=judged,
        below="",
        fell=(judged,),
        icc=judged.icc,
        low=judged.low,
        high=judged.high,
    )
    if not alarms:
        return found
    place, below = min(alarms, key=lambda alarm: alarm[0])  # of two in one period the target's
    return _with_fall(found, below, scans[below].loc[:place], year)


def _series(rows: Sequence[PeriodRow]) -> pd.DataFrame:
    """Return z, weight and factor of the rows that can be compared, by their places.

    A weight is responses minus 2. The factor, as known at the end of each period, is the variance of
    z relative to that of independent normal responses, 1 / weight: the mean of
    (jackknife SE)^2 * weight * (m - 2) / m over the periods to date, m instances each, plus half that
    mean's standard error, since from few periods of scores that hardly vary it is too small by
    chance. It is never below 1. (The delete-one jackknife's variance is m / (m - 2) times too large.)
    """
    usable = {
        place: (row.fisher_z, row.n_responses - 2.0, row.se**2 * (1 - 2 / row.n_instances))
        for place, row in enumerate(rows)
        if row.over and not row.too_few and math.isfinite(row.fisher_z) and math.isfinite(row.se)
    }
    series = pd.DataFrame.from_dict(usable, "index", np.float64, ["z", "weight", "factor"])
    spread = (series["factor"] * series["weight"]).expanding()
    error: Array = spread.std(ddof=0) / np.sqrt(np.maximum(spread.count() - 1, 1))
    return series.assign(factor=np.maximum(spread.mean() + error / 2, 1.0))


def _target(
    series: pd.DataFrame, before: int, options: MonitoringOptions
) -> tuple[float, Array, float]:
    """Return the target on z, its variance at each watched end, and of how many periods it is worth.

    The last is rounded to two digits, so that a limit does not change with each response.
    """
    z, weights, factor = series.to_numpy().T
    own, rest = factor[before:] if len(z) > before else factor[-1:], weights[before:]
    if options.target is not None:
        variance = options.target_se**2
        worth = own[-1] / rest.mean() / variance if variance and len(rest) else np.inf
        return float(finite_z(options.target)), np.full(len(own), variance), float(f"{worth:.2g}")
    if not before:
        return NAN, np.full(len(own), NAN), NAN
    total = weights[:before].sum()
    worth = total / (rest if len(rest) else weights[:before]).mean()
    return float(weights[:before] @ z[:before] / total), own / total, float(f"{worth:.2g}")


def _scan(
    series: pd.DataFrame, centre: float, variance: Array, worth: float, year: int, rate: float
) -> pd.DataFrame:
    """Return the scan of falls below a centre, its window, limit, and whether that is reached.

    `variance` is the centre's at each end; `worth` is how many periods it is as exact as.
    """
    z, weights, factor = series.to_numpy().T
    years = np.minimum(np.arange(len(z)) // year, YEARS - 1)
    by_year = np.array(limits(worth, year, rate, int(years.max(initial=0)) + 1))
    most = MOST_OF_ONE * by_year.min() * window_factor(SHORTEST, year) * math.sqrt(SHORTEST)
    falls = np.minimum(centre - z, most * np.sqrt(factor / weights))
    scan, windows = scan_falls(falls, weights, factor, variance, year)
    figures = {"scan": scan, "window": windows, "limit": by_year[years], "variance": variance}
    return series.assign(**figures, alarm=scan >= by_year[years])


def _with_fall(watched: Watched, below: str, scan: pd.DataFrame, year: int) -> Watched:
    """Return it with the fall that raises the alarm at the end of a scan."""
    look: Mapping[Any, Any] = scan.iloc[-1].to_dict()
    window = scan[-look["window"] :]
    variance = look["factor"] / window["weight"].sum()
    half, error = NORMAL_95 * math.sqrt(variance), math.sqrt(look["variance"] + variance)
    reach = look["limit"] * window_factor(look["window"], year) * error
    z = float(np.average(window["z"], weights=window["weight"]))
    ends = icc_of_fisher(z + np.array([0, -half, half, reach])).tolist()
    fell = tuple(watched.periods[place] for place in window.index)
    figures = dict(zip(("icc", "low", "high", "most"), ends, strict=True))
    return replace(watched, below=below, fell=fell, **figures)


def decide(watched: Watched, mix: CaseMix | None, simulated: Sequence[str] = ()) -> Decision:
    """Return whether the jury's agreement has fallen, with the ICC of the fall, else of the judged period.

    "simulated" where any rater is, else "fallen" at an alarm, which stands until watching begins anew;
    else of the judged period "undefined" or "too_few"; "no_baseline" without an earlier period or
    target; "inconclusive" where it is below the floor, or the whole interval of its change from the
    baseline is below 0; "steady" where it is watched. `mix` compares the judged period with the
    baseline or the first period, unless it is that; `simulated` are simulated raters.
    """
    kind, reasons, action = _verdict(watched, mix)
    row, words = watched.fell[-1], "{responses:response} to {instances:instance} of {period}"
    figures = {"responses": row.n_responses, "instances": row.n_instances, "period": row.period}
    rests_on = note("period_rests_on", words, **figures)
    words, source = "target ICC {icc:z.2f}, source: {source}", watched.options.source
    target = note("target", words, icc=watched.target_icc, source=source)
    if simulated:
        kind, reasons = DecisionKind.SIMULATED, [note(*SIMULATED, raters=simulated), *reasons]
        action = note(*DO_REAL_RATERS)
    return Decision(
        "monitoring",
        kind,
        estimate=watched.icc,
        low=watched.low,
        high=watched.high,
        reasons=noted(*reasons),
        basis=noted(rests_on, None if watched.reason else target),
        next=action,
    )


def _verdict(
    watched: Watched, mix: CaseMix | None
) -> tuple[DecisionKind, list[Note | None], Note | None]:
    """Return the kind of decision, its reasons, and the next useful action."""
    row, options = watched.judged, watched.options
    if watched.below:
        again = "score earlier responses again to see whether the jury changed, and validate anew"
        return DecisionKind.FALLEN, [_alarm(watched)], note("do_validate_again", again)
    quiet = "falls below the target {target:z.2f} have raised no alarm"
    watching = watched.reason or note("no_alarm", quiet, target=watched.target_icc)
    if not math.isfinite(row.icc):
        why = next((remark for remark in row.notes if remark.is_reason), "it is undefined")
        words = "the ICC of {period} cannot be judged: {why}"
        lost = note("newest_undefined", words, period=row.period, why=why)
        return DecisionKind.UNDEFINED, [lost, watching], _more(row, options.least)
    words = " (95 % {low:z.2f} to {high:z.2f})" if math.isfinite(row.low) else ""
    words = f"the ICC of {{period}} is {{icc:z.2f}}{words}; the floor is {{floor:z.2f}}"
    figures = {name: getattr(row, name) for name in ("period", "icc", "low", "high")}
    code = "below_floor" if row.high < options.floor else "to_floor"
    level = note(code, words, **figures, floor=options.floor)
    if row.too_few:
        return DecisionKind.TOO_FEW, [level, watching], _more(row, options.least)
    earlier = any(
        before.end < row.start and not before.too_few and math.isfinite(before.icc)
        for before in watched.periods
    )
    lower = None
    if mix is not None and mix.change_high < 0:
        words = "the ICC of {now} is lower than that of {baseline}, by {low:.2f} to {high:.2f}"
        ends = {"low": -mix.change_high, "high": -mix.change_low}
        lower = note("lower_than_baseline", words, now=mix.now, baseline=mix.baseline, **ends)
    if (lower or row.icc < options.floor) and (earlier or not watched.reason):
        return DecisionKind.INCONCLUSIVE, [lower, level, watching], None
    if not watched.reason:
        return DecisionKind.STEADY, [level, watching], None
    compare = "compare other juries of the jurors already run, or run other jurors"
    freeze = "freeze a report on as many responses as there are, to compare later periods with"
    action = note("do_freeze", freeze) if options.source == "baseline" else None
    if row.icc < options.floor:
        action = note("do_compare_juries", compare)
    return DecisionKind.NO_BASELINE, [level, watching], action


def _alarm(watched: Watched) -> Note:
    below, ends = watched.below, ("icc", "low", "high", "most")
    return note(
        "shown_below_floor" if below == "floor" else "alarm",
        "falls reached their limit in {period}: over {periods:period} to then the ICC is {icc:z.2f} "
        "(95 % {low:z.2f} to {high:z.2f}; corrected for all looks of a year at most {most:z.2f}), "
        f"below the {below} of {{{below}:z.2f}}; an unchanged jury raises an alarm in "
        "{percent:g} % of years",
        period=watched.fell[-1].period,
        periods=len(watched.fell),
        percent=round(100 * watched.options.false_alarms, 1),
        **{name: getattr(watched, name) for name in ends},
        target=watched.target_icc,
        floor=watched.options.floor,
    )


def _more(row: PeriodRow, least: int) -> Note | None:
    """Return what makes it possible to judge a period."""
    if row.n_missing and not row.unfilled:
        rest = "run the jury on the {responses:response} of {period} that it has not scored"
        return note("do_score_rest_of", rest, period=row.period, responses=row.n_missing)
    if not row.too_few:
        return None
    more, lacking = "have clinicians rate responses to {instances:more instance}", row.n_instances
    return note("do_rate_more_of", more, period=row.period, instances=least - lacking)


def drift_of(anchor: Sequence[AnchorRow], mix: CaseMix | None, alarm: bool) -> str:
    """Return what a fall in agreement comes from, a key of `DRIFTS`.

    Agreement has fallen where there is an alarm, or the whole interval of the change from the
    baseline is below 0. The model has changed where, on the anchor, the shift of a juror has
    p_holm below 0.05 or the whole interval of the jury's change in ICC is below 0. The case mix
    explains a fall if shares of benchmarks moved by 0.1 or more, and weighted back they account
    for half of it, on Fisher's z.
    """
    if not (alarm or (mix is not None and mix.change_high < 0)):
        is_compared = mix is not None and np.isfinite(mix.change_high)
        return "none" if is_compared else "not_compared"
    moved = any(row.scorer != "jury" and row.p_holm < LEVEL for row in anchor)
    causes = ["model"] * (moved or any(row.change_high < 0 for row in anchor[-1:]))
    if mix is not None and mix.moved >= MOVED_SHARE:
        iccs = np.array([mix.icc_baseline, mix.icc_now, mix.icc_reweighted])
        before, after, weighted = fisher_z(np.where(iccs < 1, iccs, NAN))
        is_explained = before > after and weighted - after >= LEAST_EXPLAINED * (before - after)
        causes += ["case_mix"] * bool(is_explained)
    none = "neither" if any(row.n_responses for row in anchor) else "unknown"
    return "_and_".join(causes) or none


def case_mix(
    scope: Scope, jury: PanelColumns, baseline: tuple[str, Flags], now: tuple[str, Flags]
) -> CaseMix:
    """Compare what was rated in two sets of periods.

    Over the responses with both columns, those of the whole analysed set (z as there). `baseline` and
    `now` are a label and which responses of the grid, shape (n,). The interval leaves out each instance
    of the two in turn. NaN where undefined, with the reason in the notes.
    """
    grid, method = scope.grid, scope.options.method
    pair = columns(grid, jury, method)
    benchmarks = scope.composites.drop_duplicates("response_id").set_index("response_id")
    responses = pd.DataFrame(
        {
            "x": pair.clinicians,
            "y": pair.scorer,
            "points": mean_of_given(grid.composites[:, grid.of_kind("clinician")]),
            "benchmark": benchmarks["benchmark"].reindex(list(grid.responses)).to_numpy(),
        }
    )
    rows = [flags & pair.both for _, flags in (baseline, now)]
    old, new = (responses[own] for own in rows)
    if min(len(old), len(new)) < 2:
        few = (undefined("mix_undefined", "too few responses in the baseline or now"),)
        return CaseMix(baseline[0], now[0], notes=few)
    weights = left_out(grid.n_clusters, grid.clusters[rows[0] | rows[1]])
    before, after = (scorer_iccs(grid, [jury], method, weights, own)[:, 0] for own in rows)
    change = icc_difference(after, before)
    both = pd.concat({"baseline": old["benchmark"], "now": new["benchmark"]})
    shares = both.groupby(level=0).value_counts(normalize=True).unstack(0, fill_value=0.0)
    weight = new["benchmark"].map(shares["baseline"] / shares["now"]).to_numpy()[None]
    x, y = ((new[one] - new[one].mean()).to_numpy() for one in ("x", "y"))
    reweighted = weighted_icc(x, y, weight, restandardise=method == "published")
    effective = float(weight.sum() ** 2 / np.square(weight).sum()) if weight.any() else 0.0
    return CaseMix(
        baseline=baseline[0],
        now=now[0],
        shares=tuple(shares.reset_index().to_dict("records")),
        moved=float((shares["now"] - shares["baseline"]).abs().sum() / 2),
        mean_baseline=old["points"].mean(),
        mean_now=new["points"].mean(),
        sd_baseline=old["points"].std(),
        sd_now=new["points"].std(),
        icc_baseline=float(before[0]),
        icc_now=float(after[0]),
        change_low=change.low,
        change_high=change.high,
        icc_reweighted=float(reweighted[0]) if effective >= LEAST_EFFECTIVE else NAN,
    )


def anchor_rows(
    scope: Scope, jury: PanelColumns, jurors: Sequence[str], readings: pd.DataFrame
) -> list[AnchorRow]:
    """Return how the scores of each juror, and then of the jury, have changed on its anchor.

    `readings` are as `anchors` returns them, of the scope's benchmarks; responses without clinicians
    count only for the shift. Empty where no juror has an anchor; a juror without one has n_responses
    0. p is by t with instances - 1 degrees of freedom, p_holm Holm's; NaN where undefined.
    """
    own = readings[readings["rater"].isin(list(jurors))]
    if own.empty:
        return []
    rows = [
        _anchor_row(scope, jury, f"juror:{name}", (name,), own[own["rater"] == name])
        for name in jurors
    ]
    adjusted = holm(np.array([row.p_holm for row in rows]))
    rows = [replace(row, p_holm=float(p)) for row, p in zip(rows, adjusted, strict=True)]
    if len(jurors) == 1:
        return rows
    grouped = own.groupby(["response_id", "instance_id"])[["first", "latest"]]
    of_all = grouped.mean()[grouped.size() == len(jurors)].reset_index()
    return [*rows, _anchor_row(scope, jury, "jury", jurors, of_all)]


def _anchor_row(
    scope: Scope, jury: PanelColumns, scorer: str, members: Sequence[str], readings: pd.DataFrame
) -> AnchorRow:
    grid, pair = scope.grid, readings[["first", "latest"]].to_numpy(dtype=np.float64)
    clusters, instances = pd.factorize(readings["instance_id"])
    shift = mean_shift(pair[:, 1] - pair[:, 0], clusters)
    place = pd.Index(grid.responses).get_indexer(pd.Index(readings["response_id"]))
    judge = columns(grid, jury, scope.options.method).clinicians[place]
    rated = (place >= 0) & ~np.isnan(judge)
    iccs, change = np.full((2, 1), NAN), Difference()
    if rated.sum() >= LEAST_RESPONSES:
        of = grid.clusters[place[rated]]
        weights = left_out(grid.n_clusters, of)[:, of]
        x, *both = (one[rated] - one[rated].mean() for one in (judge, *pair.T))
        iccs = np.stack([weighted_icc(x, y, weights, restandardise=True) for y in both])
        change = icc_difference(iccs[1], iccs[0])
    return AnchorRow(
        scorer=scorer,
        n_responses=len(pair),
        n_instances=len(instances),
        shift=shift.value,
        low=shift.low,
        high=shift.high,
        p_holm=shift.p,
        n_clinical=int(rated.sum()),
        icc_first=float(iccs[0, 0]),
        icc_latest=float(iccs[1, 0]),
        change_low=change.low,
        change_high=change.high,
        notes=noted(remarks.simulated(scope.simulated & set(members))),
    )


def mean_shift(differences: Array, clusters: Integers) -> Difference:
    """Return the mean of differences, its 95 % interval over clusters, and the p of a mean of 0.

    By t with clusters - 1 degrees of freedom on `clustered_mean`: with one difference a cluster this
    is the paired t test. Interval and p are NaN with fewer than 2 clusters; p is 1 where all
    differences are 0, and NaN where they are all equal and not 0, since they have no variance.
    (Cameron & Miller 2015, Journal of Human Resources 50, 317.)
    """
    mean = clustered_mean(differences, clusters, len(np.unique(clusters)))
    if mean.error <= 1e-12:
        p = 1.0 if abs(mean.value) <= 1e-12 else NAN
        return Difference(mean.value, mean.value, mean.value, p)
    ends = mean.interval()
    p = 2 * float(special.stdtr(mean.instances - 1, -abs(mean.value) / mean.error))
    return Difference(mean.value, ends.low, ends.high, p)


def anchors(readings: pd.DataFrame, rubrics: Mapping[str, RubricShape]) -> pd.DataFrame:
    """Return the first and the latest composite of every response a juror scored again later.

    `readings` has response_id, instance_id, benchmark, rater, criterion, pass_, replicate, score and
    at, a row for each score; a score that replaced another of the same replicate is not a second
    reading, and one without all criteria has no composite. Of readings at least 7 days apart it
    returns response_id, instance_id, benchmark, rater, first and latest.
    """
    complete = _complete(readings, rubrics)
    pairs = complete.groupby(["response_id", "instance_id", "benchmark", "rater"])
    both = pairs.agg(first=("composite", "first"), latest=("composite", "last"))
    return both[pairs["later"].last()].reset_index()


def without_later(scores: Scores, readings: pd.DataFrame) -> Scores:
    """Return the scores without those by a juror a week or more after its first of the response.

    Such readings show how a juror has changed; averaged with the first they would hide that.
    `readings` are as in `anchors`.
    """
    complete = _complete(readings, scores.rubrics)
    keys = ["response_id", "rater", "pass_", "replicate"]
    later = pd.MultiIndex.from_frame(complete.loc[complete["later"], keys])
    is_later = pd.MultiIndex.from_frame(scores.ratings[keys]).isin(later)
    return replace(scores, ratings=scores.ratings[~is_later].reset_index(drop=True))


def _complete(readings: pd.DataFrame, rubrics: Mapping[str, RubricShape]) -> pd.DataFrame:
    """Return the composites of readings with all criteria in order, and which are 7 days after the first."""
    required = required_criteria(rubrics, None)
    pairs = [(name, criterion) for name, own in required.items() for criterion in own]
    asked = pd.MultiIndex.from_frame(readings[["benchmark", "criterion"]]).isin(pairs)
    keys = ["response_id", "instance_id", "benchmark", "rater", "pass_", "replicate"]
    read = readings[asked].dropna(subset=["score"])
    read = read.assign(score=on_shared_scale(read, rubrics))
    grouped = read.groupby(keys, sort=False)
    composites = grouped.agg(
        composite=("score", "mean"), given=("score", "size"), at=("at", "max")
    ).reset_index()
    needed = composites["benchmark"].map({name: len(own) for name, own in required.items()})
    found = composites[composites["given"] == needed].sort_values(
        ["at", "replicate"], kind="stable"
    )
    first = found.groupby(["response_id", "rater"])["at"].transform("min")
    return found.assign(later=found["at"] - first >= MIN_GAP)
