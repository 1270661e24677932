"""A jury's agreement with the clinicians in each week, month or quarter."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Literal, NamedTuple

import numpy as np

from calibration import remarks
from calibration.agreement import (
    Columns,
    PanelColumns,
    column_icc,
    columns,
    unscaled,
    why_undefined,
)
from calibration.bootstrap import (
    LEAST_CLUSTERS,
    BootstrapPlan,
    Counts,
    percentile_interval,
    replicates,
)
from calibration.icc import UNDEFINED
from calibration.monitoring.cusum import fisher_z, jackknife_se
from calibration.monitoring.rows import PeriodRow
from calibration.notes import Note, note, noted
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
from calibration.values import NAN

PeriodLength = Literal["week", "month", "quarter"]
PERIOD_LENGTHS: tuple[PeriodLength, ...] = ("week", "month", "quarter")
MONTHS = {"month": 1, "quarter": 3}
LEAST_INSTANCES = 20  # with fewer, an ICC says next to nothing and its interval is too narrow


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


def start_of(day: date, every: PeriodLength) -> date:
    """Return the first day of the week (Monday), month or quarter that a day belongs to."""
    if every == "week":
        return day - timedelta(days=day.weekday())
    months = MONTHS[every]
    return date(day.year, (day.month - 1) // months * months + 1, 1)


def next_start(start: date, every: PeriodLength) -> date:
    """Return the first day of the period after the one that starts on a day."""
    if every == "week":
        return start + timedelta(days=7)
    months = start.month - 1 + MONTHS[every]
    return date(start.year + months // 12, months % 12 + 1, 1)


def label_of(start: date, every: PeriodLength) -> str:
    """Return the label of the period that starts on a day, such as "2026-03"."""
    if every == "week":
        year, week, _ = start.isocalendar()
        return f"{year}-W{week:02d}"
    if every == "quarter":
        return f"{start.year}-Q{(start.month + 2) // 3}"
    return f"{start.year}-{start.month:02d}"


def periods(
    days: Sequence[date], clusters: Integers, every: PeriodLength, least: int
) -> list[Period]:
    """Return the periods from the first day to the last, in order; each response is in one.

    Parameters
    ----------
    days : n days, in any order
    clusters : shape (n,), the instance of each response
    every : "week", "month" or "quarter"
    least : int
        A period with fewer instances is joined with those after it until there are as many.
        The last one may have fewer.
    """
    if not days:
        return []
    starts = np.array([start_of(day, every) for day in days], dtype="datetime64[D]")
    joined_periods: list[Period] = []
    start, last = min(days), max(days)
    first_start = current = start_of(start, every)
    while current <= last:
        following = next_start(current, every)
        rows = (starts >= np.datetime64(first_start)) & (starts <= np.datetime64(current))
        instances = len(np.unique(clusters[rows]))
        if instances >= least or following > last:
            joined_periods.append(_period(first_start, current, every, rows, instances))
            first_start = following
        current = following
    return joined_periods


def _period(first: date, last: date, every: PeriodLength, rows: Flags, instances: int) -> Period:
    joined, start = 1, first
    while start < last:
        start, joined = next_start(start, every), joined + 1
    label = label_of(first, every)
    if joined > 1:
        label = f"{label} to {label_of(last, every)}"
    return Period(label, first, next_start(last, every), joined, rows, instances)


class DayRange(NamedTuple):
    """A range of days, both ends included."""

    first: date
    last: date


@dataclass(frozen=True)
class PeriodOptions:
    """How responses are put into calendar periods.

    Attributes
    ----------
    rated : response_id -> days on which its clinicians rated it; it belongs to the last
    scored : response_id -> days on which the jury scored it
    today : the period that this day is in is not over
    every, least : the calendar period, and the instances it needs
    since : responses before this day are in no period, but count for z
    """

    rated: Mapping[str, DayRange]
    today: date
    every: PeriodLength = "month"
    least: int = LEAST_INSTANCES
    since: date | None = None
    scored: Mapping[str, DayRange] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class PeriodIcc:
    """The ICC of a period's responses in resamples of its instances, all others counting once.

    Every mean, sd and z is recomputed in each resample. Called with counts (B, m) over the
    period's m instances it returns shape (B,), NaN where undefined.

    Attributes
    ----------
    analysed, in_period : the analysed set, and the period's responses of it
    clusters : shape (m,), the period's instances
    clinicians, jury : columns of the grid
    present : shape (n,), 1 where the jury has a score on a response of the period
    """

    analysed: Prepared
    in_period: Prepared
    clusters: Integers
    clinicians: Integers
    jury: Integers
    present: Array

    def __call__(self, counts: Counts) -> Array:
        """Return the ICC of every resample."""
        all_counts = np.ones((len(counts), len(self.analysed.sums)))
        all_counts[:, self.clusters] = counts
        scales = scale(self.analysed, all_counts)
        clinicians = panel_column(self.in_period, scales, self.clinicians)
        jury = panel_column(self.in_period, scales, self.jury)
        has_both = (clinicians.count > 0) * (jury.count > 0)
        weights = all_counts[:, self.in_period.clusters] * has_both
        sums = moments(weights * self.present, jury.mean, clinicians.mean)
        return icc_of_moments(sums, restandardise=self.analysed.method == "published")


def period_icc(scope: Scope, jury: PanelColumns, rows: Flags) -> PeriodIcc:
    """Return the statistic that gives a jury's ICC on some responses in resamples.

    `rows` has shape (n,), the responses of the scope's grid.
    """
    grid = scope.grid
    analysed = prepare(grid, scope.options.method)
    in_period = analysed.of(rows)
    return PeriodIcc(
        analysed=analysed,
        in_period=in_period,
        clusters=np.unique(in_period.clusters),
        clinicians=grid.of_kind("clinician"),
        jury=grid.columns(jury.members),
        present=jury.present(grid)[rows].astype(np.float64),
    )


def period_rows(scope: Scope, jury: PanelColumns, options: PeriodOptions) -> list[PeriodRow]:
    """Return the jury's agreement in each calendar period, in the order of time.

    Parameters
    ----------
    scope : Scope
        One benchmark, or all combined.
    jury : Panel
        Whose members have columns in the scope's grid.
    options : PeriodOptions
        `rated` must have every response of the analysed set.

    Returns
    -------
    list of PeriodRow
        With method "paper" z is within each rater over the whole analysed set, not within the
        period: over the two or three ratings of a clinician in a week z is noise. A period with
        fewer than `least` instances is joined with the next; the last is marked too few. NaN
        where undefined, with the reason in its notes.
    """
    columns_of_both = columns(scope.grid, jury, scope.options.method)
    return [
        _row(scope, jury, columns_of_both, options, period) for period in periods_of(scope, options)
    ]


def periods_of(scope: Scope, options: PeriodOptions) -> list[Period]:
    """Return the periods of a scope, their rows as in its grid."""
    grid = scope.grid
    days = [options.rated[name].last for name in grid.responses]
    since = options.since or date.min
    shown = np.flatnonzero([day >= since for day in days])
    periods_shown = periods(
        [days[i] for i in shown], grid.clusters[shown], options.every, options.least
    )
    return [
        replace(period, rows=_flags_at(shown[period.rows], len(days))) for period in periods_shown
    ]


def _flags_at(places: Integers, n: int) -> Flags:
    rows = np.zeros(n, dtype=np.bool_)
    rows[places] = True
    return rows


def _row(
    scope: Scope,
    jury: PanelColumns,
    columns_of_both: Columns,
    options: PeriodOptions,
    period: Period,
) -> PeriodRow:
    grid, both = scope.grid, period.rows & columns_of_both.both
    x, y = columns_of_both.clinicians[both], columns_of_both.scorer[both]
    reason, instances = why_undefined(x, y), grid.instances(both)
    statistic = period_icc(scope, jury, period.rows)
    drawn = np.empty(0) if reason else _resampled_iccs(scope, statistic)
    interval = UNDEFINED if instances < LEAST_CLUSTERS else percentile_interval(drawn)
    icc = column_icc(x, y, scope.options.method)
    clinicians = _clinicians(scope, both)
    scoring_days = _scoring_days(scope, options, both)
    return PeriodRow(
        benchmark=scope.name,
        period=period.label,
        start=period.start,
        end=date.fromordinal(period.end.toordinal() - 1),
        joined=period.joined,
        over=period.end <= options.today,
        too_few=instances < options.least,
        unfilled=period.n_instances < options.least,
        icc=icc,
        boot_low=interval.low,
        boot_high=interval.high,
        fisher_z=float(fisher_z(icc)),
        se=NAN if reason else jackknife_se(statistic, len(statistic.clusters)),
        n_responses=len(x),
        n_instances=instances,
        n_clinicians=len(clinicians),
        n_missing=int((period.rows & ~jury.present(grid)).sum()),
        jury_first=min((days.first for days in scoring_days), default=None),
        jury_last=max((days.last for days in scoring_days), default=None),
        notes=noted(
            *_notes(period, options, instances, int(period.rows.sum()), len(x)),
            reason,
            _raters_without_variance(scope, (*clinicians, *jury.members)),
            remarks.undefined_resamples(drawn),
            remarks.simulated(scope.simulated & {*jury.members, *clinicians}),
        ),
    )


def _clinicians(scope: Scope, rows: Flags) -> list[str]:
    composites = scope.grid.composites[:, scope.grid.of_kind("clinician")][rows]
    raters = np.flatnonzero((~np.isnan(composites)).any(axis=0))
    return [scope.clinicians[place] for place in raters]


def _resampled_iccs(scope: Scope, statistic: PeriodIcc) -> Array:
    analysis, rows = scope.options, len(scope.grid.responses)
    resampling = BootstrapPlan(len(statistic.clusters), rows, analysis.reps, analysis.seed)
    return replicates(statistic, resampling, scope.tick)


def _raters_without_variance(scope: Scope, raters: Sequence[str]) -> Note | None:
    if scope.options.method != "paper":
        return None
    return remarks.no_variance(unscaled(scope.grid, raters))


def _scoring_days(scope: Scope, options: PeriodOptions, rows: Flags) -> list[DayRange]:
    names = [scope.grid.responses[place] for place in np.flatnonzero(rows)]
    return [options.scored[name] for name in names if name in options.scored]


def _notes(
    period: Period, options: PeriodOptions, instances: int, analysed: int, scored: int
) -> Iterator[Note]:
    yield note("scored_of", "scored {scored} of {analysed}", scored=scored, analysed=analysed)
    if period.joined > 1:
        yield note(
            "joined",
            "{periods} {every}s joined: fewer than {least} instances separately",
            periods=period.joined,
            every=options.every,
            least=options.least,
        )
    if instances < options.least:
        yield note(
            "few_of_period",
            "too few: {instances:instance}, and {least} are needed",
            instances=instances,
            least=options.least,
        )
    if period.end > options.today:
        yield note("not_over", "not over: ratings may still be added")
