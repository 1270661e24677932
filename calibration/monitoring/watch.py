"""Watching the periods: what is normal, and the CUSUM of falls below it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from calibration.codes import NoteCode as Code
from calibration.monitoring.cusum import LIMIT, Cusum, falling_cusum
from calibration.monitoring.fisher import fisher_z, icc_of_fisher, independent_se
from calibration.monitoring.rows import CusumRow, PeriodRow
from calibration.scores import Array
from calibration.values import NAN, Note, note, noted

BASELINE = 3  # periods; with fewer the target is so uncertain that most alarms are false
WIDE = 1.959964


@dataclass(frozen=True)
class Normal:
    """What says how far the jury agrees while nothing has changed: exactly one of the three.

    Attributes
    ----------
    periods : the first so many periods that are not too few
    icc : a known ICC(C,2), given or of a frozen report
    since : with `icc`, only periods that end on this day or later are watched
    source : "baseline", "report ID" or "given"
    """

    periods: int | None = BASELINE
    icc: float = NAN
    since: date | None = None
    source: str = "baseline"


@dataclass(frozen=True)
class Watched:
    """What the periods say.

    Attributes
    ----------
    target_icc, target_low, target_high : float
        ICC of the target; the interval is of a target from periods, else NaN.
    source : where the target comes from
    baseline : rows of the periods it comes from; of those before the report, if from one
    rows : a row a period; none where there is no CUSUM
    alarm : the first period with an alarm
    fell : periods since the sum last left 0 before the alarm; without one, the judged period
    judged : the newest period with enough rated instances; the newest of all where none has
    earlier : periods before the judged one whose ICC can be compared with its
    reason : why there is no CUSUM
    """

    target_icc: float
    target_low: float
    target_high: float
    source: str
    baseline: tuple[PeriodRow, ...]
    rows: tuple[CusumRow, ...]
    alarm: PeriodRow | None
    fell: tuple[PeriodRow, ...]
    judged: PeriodRow
    earlier: tuple[PeriodRow, ...]
    reason: Note | None = None


def spread(row: PeriodRow) -> float:
    """Return the standard error of a period's z in the CUSUM.

    The jackknife's over instances, and never less than that of as many independent responses:
    from 20 instances the jackknife is sometimes small by luck, and would raise false alarms.
    NaN where one of the two is undefined.
    """
    return float(np.maximum(row.se, independent_se(row.n_responses)))


def watch(rows: Sequence[PeriodRow], normal: Normal) -> Watched:
    """Compare each period with what is normal, and add up the falls.

    Parameters
    ----------
    rows : at least one, from `periods.period_rows`
    normal : Normal

    Returns
    -------
    Watched
        The target of a baseline is the mean of its periods' z, each weighted by 1 / SE^2. Where
        there are no more periods than the baseline needs there is no CUSUM, with the reason.
    """
    usable = [row for row in rows if why_left_out(row) is None]
    baseline, watched = _split(usable, normal)
    z, error = _target(baseline, normal)
    reason = _why_none(usable, watched, normal)
    values = np.array([row.fisher_z if row in watched else np.nan for row in rows])
    found = falling_cusum(values, np.array([spread(row) for row in rows]), NAN if reason else z)
    judged = next((row for row in reversed(rows) if not row.unfilled), rows[-1])
    steps = (z - values) / np.array([spread(row) for row in rows])
    ends = icc_of_fisher(np.array([z, z - WIDE * error, z + WIDE * error]))
    return Watched(
        target_icc=float(ends[0]),
        target_low=float(ends[1]),
        target_high=float(ends[2]),
        source=normal.source,
        baseline=tuple(baseline),
        rows=() if reason else tuple(_rows(rows, baseline, steps, found.sums)),
        alarm=None if found.alarm is None else rows[found.alarm],
        fell=tuple(_since(rows, found, judged)),
        judged=judged,
        earlier=tuple(row for row in rows if row.end < judged.start and _comparable(row)),
        reason=reason,
    )


def why_left_out(row: PeriodRow) -> Note | None:
    """Return why a period cannot take part in a CUSUM, or None where it can."""
    if row.too_few:
        return note(Code.LEFT_OUT_FEW)
    if not np.isfinite(row.fisher_z):
        return note(Code.LEFT_OUT_NO_Z)
    return None if np.isfinite(spread(row)) else note(Code.LEFT_OUT_NO_ERROR)


def _comparable(row: PeriodRow) -> bool:
    return not row.too_few and bool(np.isfinite(row.icc))


def _split(usable: Sequence[PeriodRow], normal: Normal) -> tuple[list[PeriodRow], list[PeriodRow]]:
    if normal.periods is not None:
        return list(usable[: normal.periods]), list(usable[normal.periods :])
    if normal.since is None:
        return [], list(usable)
    before = [row for row in usable if row.end < normal.since]
    return before, [row for row in usable if row.end >= normal.since]


def _since(rows: Sequence[PeriodRow], found: Cusum, judged: PeriodRow) -> list[PeriodRow]:
    """Return the periods of a fall: its beginning is estimated by where the sum last was 0."""
    if found.alarm is None:
        return [judged]
    zero = np.flatnonzero(found.sums[: found.alarm] == 0)
    fell = rows[int(zero[-1]) + 1 if len(zero) else 0 :]
    return [row for row in fell if why_left_out(row) is None]


def _target(baseline: Sequence[PeriodRow], normal: Normal) -> tuple[float, float]:
    """Return the target's z, and its standard error where it comes from periods."""
    if normal.periods is None:
        return float(fisher_z(normal.icc)), NAN
    if not baseline:
        return NAN, NAN
    weights = np.array([spread(row) ** -2 for row in baseline])
    z = np.array([row.fisher_z for row in baseline])
    return float(weights @ z / weights.sum()), float(weights.sum() ** -0.5)


def _why_none(
    usable: Sequence[PeriodRow], watched: Sequence[PeriodRow], normal: Normal
) -> Note | None:
    if watched and (normal.periods is None or len(usable) > normal.periods):
        return None
    if normal.periods is None:
        return note(Code.NO_CUSUM_SINCE)
    return note(Code.NO_CUSUM_YET, periods=len(usable), baseline=normal.periods)


def _rows(
    rows: Sequence[PeriodRow], baseline: Sequence[PeriodRow], steps: Array, sums: Array
) -> list[CusumRow]:
    out = []
    for row, step, total in zip(rows, steps.tolist(), sums.tolist(), strict=True):
        role = "watched" if np.isfinite(step) else "baseline" if row in baseline else "left out"
        out.append(
            CusumRow(
                benchmark=row.benchmark,
                period=row.period,
                role=role,
                fisher_z=row.fisher_z,
                se=spread(row),
                step=step if role == "watched" else None,
                cusum=total,
                alarm=total >= LIMIT,
                notes=noted(why_left_out(row)) if role == "left out" else (),
            )
        )
    return out
