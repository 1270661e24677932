"""Decide whether agreement has fallen, from the periods and their CUSUMs."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from calibration.codes import MonitoringCode, NoteCode
from calibration.decision import Decision, DecisionKind
from calibration.messages import REASONS
from calibration.monitoring.rows import CaseMix, Fall, PeriodRow
from calibration.monitoring.watch import CusumResult
from calibration.values import Note, note, noted


def decide(
    watched: CusumResult,
    mix: CaseMix | None,
    *,
    anchored: bool = False,
    simulated: Sequence[str] = (),
) -> Decision:
    """Return whether the jury's agreement has fallen.

    Parameters
    ----------
    watched : CusumResult
    mix : the judged period compared with the baseline or the first period, unless it is that
    anchored : whether any juror has scored responses again, which shows a changed model
    simulated : simulated raters behind the figures

    Returns
    -------
    Decision
        Of subject "monitoring". Its figure is the ICC of the periods of the alarm together, else
        of the judged one. The first that holds is its kind:

        "simulated" : any rater behind the figures is; the reasons are those of the kind it
            would be
        "fallen" : a CUSUM has raised an alarm, of falls below the target or below the floor,
            which stands until watching begins anew
        "undefined" : the judged period has no ICC
        "too_few" : the judged period has too few instances
        "no_baseline" : there is neither an earlier period nor a target; one period alone is
            never a fall, however far below the floor
        "inconclusive" : without an alarm, the judged period is below the floor, or the whole
            interval of its change from the baseline is below 0
        "steady" : periods are watched by the CUSUM, without an alarm
        "no_baseline" : there are too few periods for a CUSUM
    """
    kind = _kind(watched, mix)
    row, fall = watched.judged, watched.fall
    decision = Decision(
        "monitoring",
        kind,
        estimate=fall.icc if fall else row.icc,
        low=fall.low if fall else row.boot_low,
        high=fall.high if fall else row.boot_high,
        reasons=noted(*_reasons(kind, watched, mix)),
        basis=noted(_basis(watched.alarm or row), _target(watched), _detectable(watched)),
        next=_next(kind, watched, anchored=anchored),
    )
    if not simulated:
        return decision
    simulated_note = note(NoteCode.SIMULATED, raters=simulated)
    reasons = (simulated_note, *decision.reasons)
    return replace(
        decision,
        kind=DecisionKind.SIMULATED,
        reasons=reasons,
        next=note(MonitoringCode.DO_REAL_STUDY),
    )


def _kind(watched: CusumResult, mix: CaseMix | None) -> DecisionKind:
    row = watched.judged
    if watched.fall:
        return DecisionKind.FALLEN
    if not np.isfinite(row.icc):
        return DecisionKind.UNDEFINED
    if row.too_few:
        return DecisionKind.TOO_FEW
    if not (watched.earlier or _has_cusum(watched)):
        return DecisionKind.NO_BASELINE
    if row.icc < watched.rule.floor or (mix is not None and mix.change_high < 0):
        return DecisionKind.INCONCLUSIVE
    return DecisionKind.STEADY if _has_cusum(watched) else DecisionKind.NO_BASELINE


def _has_cusum(watched: CusumResult) -> bool:
    return any(row.role == "watched" for row in watched.rows)


def _reasons(
    kind: DecisionKind, watched: CusumResult, mix: CaseMix | None
) -> Iterator[Note | None]:
    row = watched.judged
    if watched.fall:
        yield _alarm(watched, watched.fall)
        yield _newest_period(watched, watched.fall) if row is not watched.alarm else None
        return
    if kind is DecisionKind.UNDEFINED:
        yield _undefined(row)
    else:
        yield _lower_than_baseline(mix) if kind is DecisionKind.INCONCLUSIVE else None
        yield _to_floor(row, watched.rule.floor)
        yield row.told(MonitoringCode.FEW_OF_PERIOD)
    yield watched.reason or (_no_alarm(watched) if _has_cusum(watched) else None)


def _alarm(watched: CusumResult, fall: Fall) -> Note:
    figures = {"period": fall.periods[-1].period, "periods": len(fall.periods), "icc": fall.icc}
    if fall.of == "floor":
        floor = watched.rule.floor
        return note(MonitoringCode.SHOWN_BELOW_FLOOR, **figures, most=fall.most, floor=floor)
    figures |= {"low": fall.low, "high": fall.high, "target": watched.target_icc}
    return note(MonitoringCode.ALARM, **figures, percent=_percent(watched.rule.false_alarms))


def _percent(share: float) -> float:
    return round(100 * share, 1)


def _no_alarm(watched: CusumResult) -> Note:
    return note(MonitoringCode.NO_ALARM, target=watched.target_icc)


def _newest_period(watched: CusumResult, fall: Fall) -> Note:
    """Return a note that compares the newest period with target or floor after an earlier alarm."""
    row = watched.judged
    if not np.isfinite(row.icc):
        return _undefined(row)
    figures = {"period": row.period, **_figures(row)}
    compared_with = watched.rule.floor if fall.of == "floor" else watched.target_icc
    return note(
        MonitoringCode.NEWEST_PERIOD, **figures, aim=fall.of, is_below=row.icc < compared_with
    )


def _undefined(row: PeriodRow) -> Note:
    reason = next((remark for remark in row.notes if remark.code in REASONS), None)
    return note(MonitoringCode.NEWEST_UNDEFINED, period=row.period, why=reason)


def _to_floor(row: PeriodRow, floor: float) -> Note:
    if row.icc >= floor:
        code = MonitoringCode.NOT_BELOW_FLOOR
    else:
        code = (
            MonitoringCode.BELOW_FLOOR
            if row.boot_high < floor
            else MonitoringCode.BELOW_FLOOR_MAYBE
        )
    return note(code, period=row.period, **_figures(row), floor=floor)


def _figures(row: PeriodRow) -> dict[str, float | None]:
    known = bool(np.isfinite(row.boot_low))
    low, high = (row.boot_low, row.boot_high) if known else (None, None)
    return {"icc": row.icc, "low": low, "high": high}


def _lower_than_baseline(mix: CaseMix | None) -> Note | None:
    if mix is None or not mix.change_high < 0:
        return None
    return note(
        MonitoringCode.LOWER_THAN_BASELINE,
        now=mix.now,
        icc=mix.icc_now,
        baseline=mix.baseline,
        icc_baseline=mix.icc_baseline,
        change=mix.change,
        low=mix.change_low,
        high=mix.change_high,
    )


def _basis(row: PeriodRow) -> Note:
    return note(
        MonitoringCode.PERIOD_RESTS_ON,
        period=row.period,
        responses=row.n_responses,
        instances=row.n_instances,
        clinicians=row.n_clinicians,
        missing=row.n_missing,
    )


def _target(watched: CusumResult) -> Note | None:
    if not _has_cusum(watched):
        return None
    known = bool(np.isfinite(watched.target_low))
    return note(
        MonitoringCode.TARGET,
        icc=watched.target_icc,
        low=watched.target_low if known else None,
        high=watched.target_high if known else None,
        source=watched.source,
    )


def _detectable(watched: CusumResult) -> Note | None:
    fall = watched.detectable
    if fall is None:
        return None
    return note(
        MonitoringCode.DETECTABLE,
        icc=fall.icc if np.isfinite(fall.icc) else None,
        responses=fall.responses,
        periods=fall.periods,
        percent=_percent(fall.power),
    )


def _next(kind: DecisionKind, watched: CusumResult, *, anchored: bool) -> Note | None:
    """Return the next useful action."""
    row = watched.judged
    if kind is DecisionKind.FALLEN:
        return note(MonitoringCode.DO_VALIDATE_AGAIN if anchored else MonitoringCode.DO_SCORE_AGAIN)
    if kind is DecisionKind.NO_BASELINE and row.icc < watched.rule.floor:
        return note(MonitoringCode.DO_COMPARE_JURIES)
    if kind is DecisionKind.NO_BASELINE and watched.source == "baseline":
        return note(MonitoringCode.DO_FREEZE)
    if kind in (DecisionKind.NO_BASELINE, DecisionKind.INCONCLUSIVE):
        return note(MonitoringCode.DO_LOOK_AGAIN, period=row.period, over=row.over)
    return _more_ratings(row) if kind in (DecisionKind.UNDEFINED, DecisionKind.TOO_FEW) else None


def _more_ratings(row: PeriodRow) -> Note | None:
    """Return what to do so that a period has an ICC from enough instances."""
    few = row.told(MonitoringCode.FEW_OF_PERIOD)
    if row.n_missing and not row.unfilled:
        return note(MonitoringCode.DO_SCORE_REST_OF, period=row.period, responses=row.n_missing)
    if few is None:
        return None
    lacking = few["least"] - few["instances"]
    return note(MonitoringCode.DO_RATE_MORE_OF, period=row.period, instances=lacking)
