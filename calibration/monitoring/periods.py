"""A jury's agreement with the clinicians in each week, month or quarter."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Literal, NamedTuple

import numpy as np

from calibration import remarks
from calibration.agreement import Columns, Panel, column_icc, columns, unscaled, why_undefined
from calibration.bootstrap import (
    LEAST_CLUSTERS,
    Counts,
    Resampling,
    percentile_interval,
    replicates,
)
from calibration.codes import MonitoringCode
from calibration.icc import UNDEFINED
from calibration.monitoring.cusum import fisher_z, jackknife_se
from calibration.monitoring.rows import PeriodRow
from calibration.resampled_moments import (
    Prepared,
    icc_of_moments,
    moments,
    panel_column,
    prepare,
    scale,
)
from calibration.scope import Scope
from calibration.scores import Array, Flags, Integers
from calibration.values import NAN, Note, note, noted

Every = Literal["week", "month", "quarter"]
EVERY: tuple[Every, ...] = ("week", "month", "quarter")
MONTHS = {"month": 1, "quarter": 3}


@dataclass(frozen=True, eq=False)
class Period:
    """One calendar period, or several that follow one another, and what was rated in it.

    Attributes
    ----------
    label : "2026-W09" (ISO 8601), "2026-03", "2026-Q1", or "2026-03 to 2026-05"
    start, end : first day, and the first day after it
    joined : how many calendar periods it is made of
    rows : shape (n,), which responses belong to it
    n_instances : of those responses
    """

    label: str
    start: date
    end: date
    joined: int
    rows: Flags
    n_instances: int


def start_of(day: date, every: Every) -> date:
    """Return the first day of the week (Monday), month or quarter that a day belongs to."""
    if every == "week":
        return day - timedelta(days=day.weekday())
    months = MONTHS[every]
    return date(day.year, (day.month - 1) // months * months + 1, 1)


def next_start(start: date, every: Every) -> date:
    """Return the first day of the period after the one that starts on a day."""
    if every == "week":
        return start + timedelta(days=7)
    months = start.month - 1 + MONTHS[every]
    return date(start.year + months // 12, months % 12 + 1, 1)


def label_of(start: date, every: Every) -> str:
    """Return what people call the period that starts on a day."""
    if every == "week":
        year, week, _ = start.isocalendar()
        return f"{year}-W{week:02d}"
    if every == "quarter":
        return f"{start.year}-Q{(start.month + 2) // 3}"
    return f"{start.year}-{start.month:02d}"


def periods(days: Sequence[date], clusters: Integers, every: Every, least: int) -> list[Period]:
    """Return the periods from the first day to the last, in order; each response is in one.

    Parameters
    ----------
    days : n days, in any order
    clusters : shape (n,), the instance of each response
    every : "week", "month" or "quarter"
    least : int
        A period with fewer instances is joined with those after it until there are as many.
        What is left at the end stays a period of its own, with fewer.
    """
    if not days:
        return []
    begun = np.array([start_of(day, every) for day in days], dtype="datetime64[D]")
    found: list[Period] = []
    start, last = min(days), max(days)
    first = at = start_of(start, every)
    while at <= last:
        after = next_start(at, every)
        rows = (begun >= np.datetime64(first)) & (begun <= np.datetime64(at))
        instances = len(np.unique(clusters[rows]))
        if instances >= least or after > last:
            found.append(_period(first, at, every, rows, instances))
            first = after
        at = after
    return found


def _period(first: date, at: date, every: Every, rows: Flags, instances: int) -> Period:
    joined, one = 1, first
    while one < at:
        one, joined = next_start(one, every), joined + 1
    label = label_of(first, every)
    if joined > 1:
        label = f"{label} to {label_of(at, every)}"
    return Period(label, first, next_start(at, every), joined, rows, instances)


LEAST_INSTANCES = 20  # with fewer, an ICC says next to nothing and its interval is too narrow


class Days(NamedTuple):
    """From the first day to the last."""

    first: date
    last: date


@dataclass(frozen=True)
class Asking:
    """What is asked of the calendar.

    Attributes
    ----------
    rated : response_id -> days on which its clinicians rated it; it belongs to the last
    scored : response_id -> days from the first to the last score of the jury
    today : whose period is not over
    every, least : the calendar period, and the instances it needs
    since : responses before this day are shown in no period; z is over all all the same
    """

    rated: Mapping[str, Days]
    today: date
    every: Every = "month"
    least: int = LEAST_INSTANCES
    since: date | None = None
    scored: Mapping[str, Days] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class PeriodIcc:
    """The ICC of a period's responses, with its instances drawn anew and all others once.

    Every mean, sd and z is recomputed in each resample. Called with counts (B, m) over the
    period's m instances it returns shape (B,), NaN where undefined.
    """

    every: Prepared
    own: Prepared
    clusters: Integers
    clinicians: Integers
    jury: Integers
    present: Array

    def __call__(self, counts: Counts) -> Array:
        """Return the ICC of every resample."""
        whole = np.ones((len(counts), len(self.every.sums)))
        whole[:, self.clusters] = counts
        by = scale(self.every, whole)
        clinical = panel_column(self.own, by, self.clinicians)
        jury = panel_column(self.own, by, self.jury)
        weights = whole[:, self.own.clusters] * (clinical.count > 0) * (jury.count > 0)
        sums = moments(weights * self.present, jury.mean, clinical.mean)
        return icc_of_moments(sums, restandardise=self.every.method == "published")


def period_icc(scope: Scope, jury: Panel, rows: Flags) -> PeriodIcc:
    """Return the resampled ICC of a jury on some responses, shape (n,) of the scope's grid."""
    grid = scope.grid
    every = prepare(grid, scope.asked.method)
    values, given, clusters = every.values[rows], every.given[rows], every.clusters[rows]
    return PeriodIcc(
        every=every,
        own=replace(every, values=values, given=given, clusters=clusters),
        clusters=np.unique(clusters),
        clinicians=grid.of_kind("clinician"),
        jury=grid.columns(jury.members),
        present=jury.present(grid)[rows].astype(np.float64),
    )


def period_rows(scope: Scope, jury: Panel, asking: Asking) -> list[PeriodRow]:
    """Return the jury's agreement in each calendar period, in the order of time.

    Parameters
    ----------
    scope : Scope
        One benchmark, or all combined.
    jury : Panel
        Whose members have columns in the scope's grid.
    asking : Asking
        `rated` must have every response of the analysed set.

    Returns
    -------
    list of PeriodRow
        Under "paper" z is within each rater over the whole analysed set, not within the
        period: with the two or three ratings that one clinician gives in a week z is noise.
        Fewer than `least` instances are joined with the next period; what is left at the end
        is marked too few. NaN where undefined, with the reason in the note.
    """
    pair = columns(scope.grid, jury, scope.asked.method)
    return [_row(scope, jury, pair, asking, one) for one in periods_of(scope, asking)]


def periods_of(scope: Scope, asking: Asking) -> list[Period]:
    """Return the periods of a scope, their rows as in its grid."""
    grid = scope.grid
    days = [asking.rated[name].last for name in grid.responses]
    since = asking.since or date.min
    kept = np.flatnonzero([day >= since for day in days])
    found = periods([days[i] for i in kept], grid.clusters[kept], asking.every, asking.least)
    return [replace(one, rows=_spread(kept[one.rows], len(days))) for one in found]


def _spread(places: Integers, n: int) -> Flags:
    rows = np.zeros(n, dtype=np.bool_)
    rows[places] = True
    return rows


def _row(scope: Scope, jury: Panel, pair: Columns, asking: Asking, period: Period) -> PeriodRow:
    grid, both = scope.grid, period.rows & pair.both
    x, y = pair.clinicians[both], pair.scorer[both]
    reason, instances = why_undefined(x, y), grid.instances(both)
    statistic = period_icc(scope, jury, period.rows)
    drawn = np.empty(0) if reason else _drawn(scope, statistic)
    boot = UNDEFINED if instances < LEAST_CLUSTERS else percentile_interval(drawn)
    icc = column_icc(x, y, scope.asked.method)
    clinicians = _clinicians(scope, both)
    scored = [asking.scored[name] for name in _names(scope, both) if name in asking.scored]
    return PeriodRow(
        benchmark=scope.name,
        period=period.label,
        start=period.start,
        end=date.fromordinal(period.end.toordinal() - 1),
        joined=period.joined,
        over=period.end <= asking.today,
        too_few=instances < asking.least,
        unfilled=period.n_instances < asking.least,
        icc=icc,
        boot_low=boot.low,
        boot_high=boot.high,
        fisher_z=float(fisher_z(icc)),
        se=NAN if reason else jackknife_se(statistic, len(statistic.clusters)),
        n_responses=len(x),
        n_instances=instances,
        n_clinicians=len(clinicians),
        n_missing=int((period.rows & ~jury.present(grid)).sum()),
        jury_first=min((one.first for one in scored), default=None),
        jury_last=max((one.last for one in scored), default=None),
        notes=noted(
            *_notes(period, asking, instances, int(period.rows.sum()), len(x)),
            reason,
            _flat(scope, (*clinicians, *jury.members)),
            remarks.undefined_resamples(drawn),
            remarks.simulated(scope.simulated & {*jury.members, *clinicians}),
        ),
    )


def _clinicians(scope: Scope, rows: Flags) -> list[str]:
    own = scope.grid.composites[:, scope.grid.of_kind("clinician")][rows]
    heard = np.flatnonzero((~np.isnan(own)).any(axis=0))
    return [scope.clinicians[place] for place in heard]


def _drawn(scope: Scope, statistic: PeriodIcc) -> Array:
    asked, rows = scope.asked, len(scope.grid.responses)
    how = Resampling(len(statistic.clusters), rows, asked.reps, asked.seed)
    return replicates(statistic, how, scope.tick)


def _flat(scope: Scope, raters: Sequence[str]) -> Note | None:
    if scope.asked.method != "paper":
        return None
    return remarks.no_variance(unscaled(scope.grid, raters))


def _names(scope: Scope, rows: Flags) -> list[str]:
    return [scope.grid.responses[place] for place in np.flatnonzero(rows)]


def _notes(
    period: Period, asking: Asking, instances: int, analysed: int, scored: int
) -> Iterator[Note]:
    yield note(MonitoringCode.SCORED_OF, scored=scored, analysed=analysed)
    if period.joined > 1:
        yield note(
            MonitoringCode.JOINED, periods=period.joined, every=asking.every, least=asking.least
        )
    if instances < asking.least:
        yield note(MonitoringCode.FEW_OF_PERIOD, instances=instances, least=asking.least)
    if period.end > asking.today:
        yield note(MonitoringCode.NOT_OVER)
