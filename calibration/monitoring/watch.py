"""Watching the periods: what is normal, the CUSUM of falls, and whether agreement has fallen."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from calibration import notes
from calibration.monitoring.cusum import LIMIT, Cusum, falling_cusum
from calibration.monitoring.fisher import fisher_z, icc_of_fisher, independent_se
from calibration.monitoring.periods import PeriodRow
from calibration.scope import NAN
from calibration.scores import Array

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
class CusumRow:
    """One period in the CUSUM. `step` and `cusum` are in standard errors.

    `role` is "baseline", "watched", or "left out", with the reason in the note. `step` is
    (target z - z) / SE, above 0 where agreement is lower than the target; None if not watched.
    """

    benchmark: str
    period: str
    role: str
    fisher_z: float
    se: float
    step: float | None
    cusum: float
    alarm: bool
    note: str


@dataclass(frozen=True)
class Watched:
    """What the periods say.

    Attributes
    ----------
    target_icc, target_low, target_high : float
        ICC of the target; the interval is of a target from periods, else NaN.
    source : where the target comes from
    baseline : rows of the periods it comes from; of those before the report, if from one
    rows : a row a period
    alarm : label of the first period with an alarm, or ""
    fell : periods since the sum last left 0 before the alarm; without one, the judged period
    judged : the newest period with enough rated instances; the newest of all where none has
    reason : why there is no CUSUM, or ""
    """

    target_icc: float
    target_low: float
    target_high: float
    source: str
    baseline: tuple[PeriodRow, ...]
    rows: tuple[CusumRow, ...]
    alarm: str
    fell: tuple[PeriodRow, ...]
    judged: PeriodRow
    reason: str = ""


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
    usable = [row for row in rows if why_left_out(row) == ""]
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
        rows=tuple(_rows(rows, baseline, steps, found.sums)) if not reason else (),
        alarm="" if found.alarm is None else rows[found.alarm].period,
        fell=tuple(_since(rows, found, judged)),
        judged=judged,
        reason=reason,
    )


def why_left_out(row: PeriodRow) -> str:
    """Return why a period cannot take part in a CUSUM, or ""."""
    if row.too_few:
        return "too few instances"
    if not np.isfinite(row.fisher_z):
        return "its ICC has no z"
    return "" if np.isfinite(spread(row)) else "its z has no standard error"


def fallen(watched: Watched, least: float) -> tuple[bool, bool, str]:
    """Tell whether agreement has fallen, whether that can be said at all, and why, in a sentence.

    It has where the ICC of the judged period is below `least`, or the CUSUM has raised an
    alarm. The alarm stands until watching begins anew: one good month does not take it back.
    An undefined ICC cannot be judged, and is no all-clear.
    """
    row = watched.judged
    if watched.alarm:
        return (
            True,
            True,
            (
                f"the CUSUM reached its limit in {watched.alarm}: agreement has fallen below the target "
                f"{watched.target_icc:z.2f}; the ICC of {row.period} is {row.icc:z.2f}"
            ),
        )
    if not np.isfinite(row.icc):
        return False, False, f"the ICC of {row.period} cannot be judged: {_reason(row)}"
    said = f"the ICC of {row.period} is {row.icc:z.2f}"
    few = f" ({_few(row)})" if row.too_few else ""
    if row.icc >= least:
        return False, True, f"{said}, not below {least:z.2f}{few}"
    return True, True, f"{said}, below {least:z.2f}{few}; {_certainty(row, least)}"


def _certainty(row: PeriodRow, least: float) -> str:
    if not np.isfinite(row.boot_high):
        return "it has no interval"
    ends = f"its interval {row.boot_low:z.2f} to {row.boot_high:z.2f}"
    if row.boot_high < least:
        return f"{ends} is all below it"
    return f"{ends} reaches above it, so chance alone may do this"


def _few(row: PeriodRow) -> str:
    return f"from {notes.counted(row.n_instances, 'instance')} only"


def _reason(row: PeriodRow) -> str:
    found = [part for part in row.note.split("; ") if part.startswith("undefined")]
    return found[0] if found else "it is undefined"


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
    return [row for row in fell if why_left_out(row) == ""]


def _target(baseline: Sequence[PeriodRow], normal: Normal) -> tuple[float, float]:
    """Return the target's z, and its standard error where it comes from periods."""
    if normal.periods is None:
        return float(fisher_z(normal.icc)), NAN
    if not baseline:
        return NAN, NAN
    weights = np.array([spread(row) ** -2 for row in baseline])
    z = np.array([row.fisher_z for row in baseline])
    return float(weights @ z / weights.sum()), float(weights.sum() ** -0.5)


def _why_none(usable: Sequence[PeriodRow], watched: Sequence[PeriodRow], normal: Normal) -> str:
    if watched and (normal.periods is None or len(usable) > normal.periods):
        return ""
    if normal.periods is None:
        return "no CUSUM: no period since then has enough instances"
    have = notes.counted(len(usable), "period")
    return (
        f"no CUSUM: {have} with enough instances, and {normal.periods} make the baseline; "
        "compared with a frozen report it needs none"
    )


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
                note=why_left_out(row) if role == "left out" else "",
            )
        )
    return out
