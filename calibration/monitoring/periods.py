"""Agreement by calendar period: a jury against the clinicians who rated in it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import NamedTuple

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
from calibration.f_interval import UNDEFINED
from calibration.monitoring.calendar import Every, Period, periods
from calibration.monitoring.fisher import fisher_z, jackknife_se
from calibration.monitoring.rows import PeriodRow
from calibration.resample import Prepared, icc_of_moments, moments, panel_column, prepare, scale
from calibration.scope import Scope
from calibration.scores import Array, Flags, Integers
from calibration.values import NAN, Note, note, noted

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
