"""Decide whether agreement has fallen, from the periods and their CUSUMs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from calibration.decision import Decision, DecisionKind
from calibration.monitoring.rows import CaseMix, Fall, PeriodRow
from calibration.monitoring.watch import CusumResult
from calibration.notes import Figures, Note, filled, note, noted
from calibration.shared_notes import SIMULATED

SOURCES = {
    "baseline": "of the baseline",
    "given": "given, and taken as exact",
}


def _ends(figures: Figures) -> str:
    if figures["low"] is None:
        return ""
    return filled(" (95 % {low:z.2f} to {high:z.2f})", figures)


def _to_floor_words(then: str) -> Callable[[Figures], str]:
    def said(figures: Figures) -> str:
        start = f"the ICC of {{period}} is {{icc:z.2f}}{_ends(figures)}, "
        return filled(start + then, figures)

    return said


def _maybe_below(figures: Figures) -> str:
    how = (
        "without an interval"
        if figures["low"] is None
        else "with an interval that reaches above it"
    )
    return _to_floor_words(f"below the floor of {{floor:z.2f}}, {how}")(figures)


BELOW_FLOOR = (
    "below_floor",
    _to_floor_words("and its whole interval is below the floor of {floor:z.2f}"),
)
BELOW_FLOOR_MAYBE = ("below_floor_maybe", _maybe_below)
DO_SCORE_AGAIN = (
    "do_score_again",
    (
        "run the jury on earlier responses again, to distinguish a changed juror from a "
        "changed case mix, and do not rely on it until it is validated again"
    ),
)
DO_VALIDATE_AGAIN = (
    "do_validate_again",
    (
        "check whether the jurors or the cases have changed, and do not rely on the jury "
        "until it is validated again"
    ),
)
NOT_BELOW_FLOOR = ("not_below_floor", _to_floor_words("not below the floor of {floor:z.2f}"))


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
    simulated_note = note(*SIMULATED, raters=simulated)
    reasons = (simulated_note, *decision.reasons)
    return replace(
        decision,
        kind=DecisionKind.SIMULATED,
        reasons=reasons,
        next=note("do_real_study", "import ratings by real clinicians and scores of real jurors"),
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
        yield row.told("few_of_period")
    yield watched.reason or (_no_alarm(watched) if _has_cusum(watched) else None)


def _alarm(watched: CusumResult, fall: Fall) -> Note:
    figures = {"period": fall.periods[-1].period, "periods": len(fall.periods), "icc": fall.icc}
    if fall.of == "floor":
        floor = watched.rule.floor
        return note(
            "shown_below_floor",
            (
                "over {periods:period} to {period} the ICC is {icc:z.2f}, at most {most:z.2f} "
                "corrected for all looks of a year: below the floor of {floor:z.2f}"
            ),
            **figures,
            most=fall.most,
            floor=floor,
        )
    figures |= {"low": fall.low, "high": fall.high, "target": watched.target_icc}
    return note("alarm", _alarm_words, **figures, percent=_percent(watched.rule.false_alarms))


def _percent(share: float) -> float:
    return round(100 * share, 1)


def _no_alarm(watched: CusumResult) -> Note:
    return note(
        "no_alarm",
        "the CUSUM of falls below the target {target:z.2f} has raised no alarm",
        target=watched.target_icc,
    )


def _newest_period(watched: CusumResult, fall: Fall) -> Note:
    """Return a note that compares the newest period with target or floor after an earlier alarm."""
    row = watched.judged
    if not np.isfinite(row.icc):
        return _undefined(row)
    figures = {"period": row.period, **_figures(row)}
    compared_with = watched.rule.floor if fall.of == "floor" else watched.target_icc
    return note("newest_period", _newest, **figures, aim=fall.of, is_below=row.icc < compared_with)


def _undefined(row: PeriodRow) -> Note:
    reason = next((remark for remark in row.notes if remark.is_reason), None)
    return note("newest_undefined", _newest_undefined, period=row.period, why=reason)


def _to_floor(row: PeriodRow, floor: float) -> Note:
    if row.icc >= floor:
        code = NOT_BELOW_FLOOR
    else:
        code = BELOW_FLOOR if row.boot_high < floor else BELOW_FLOOR_MAYBE
    return note(*code, period=row.period, **_figures(row), floor=floor)


def _figures(row: PeriodRow) -> dict[str, float | None]:
    known = bool(np.isfinite(row.boot_low))
    low, high = (row.boot_low, row.boot_high) if known else (None, None)
    return {"icc": row.icc, "low": low, "high": high}


def _lower_than_baseline(mix: CaseMix | None) -> Note | None:
    if mix is None or not mix.change_high < 0:
        return None
    return note(
        "lower_than_baseline",
        (
            "the ICC of {now}, {icc:z.2f}, is lower than that of {baseline}, {icc_baseline:z.2f}: "
            "change {change:+.2f} ({low:+.2f} to {high:+.2f})"
        ),
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
        "period_rests_on",
        _rests_on,
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
        "target",
        _target_words,
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
        "detectable",
        _detectable_words,
        icc=fall.icc if np.isfinite(fall.icc) else None,
        responses=fall.responses,
        periods=fall.periods,
        percent=_percent(fall.power),
    )


def _next(kind: DecisionKind, watched: CusumResult, *, anchored: bool) -> Note | None:
    """Return the next useful action."""
    row = watched.judged
    if kind is DecisionKind.FALLEN:
        return note(*(DO_VALIDATE_AGAIN if anchored else DO_SCORE_AGAIN))
    if kind is DecisionKind.NO_BASELINE and row.icc < watched.rule.floor:
        return note(
            "do_compare_juries",
            "compare other juries of the jurors already run, or run other jurors",
        )
    if kind is DecisionKind.NO_BASELINE and watched.source == "baseline":
        return note(
            "do_freeze",
            (
                "freeze a report of this agreement, on as many responses as there are: later periods "
                "are compared with it"
            ),
        )
    if kind in (DecisionKind.NO_BASELINE, DecisionKind.INCONCLUSIVE):
        return note("do_look_again", _look_again, period=row.period, over=row.over)
    return _more_ratings(row) if kind in (DecisionKind.UNDEFINED, DecisionKind.TOO_FEW) else None


def _more_ratings(row: PeriodRow) -> Note | None:
    """Return what to do so that a period has an ICC from enough instances."""
    few = row.told("few_of_period")
    if row.n_missing and not row.unfilled:
        return note(
            "do_score_rest_of",
            "run the jury on the {responses:response} of {period} that it has not scored",
            period=row.period,
            responses=row.n_missing,
        )
    if few is None:
        return None
    lacking = few["least"] - few["instances"]
    return note(
        "do_rate_more_of",
        "have clinicians rate responses to {instances:more instance}",
        period=row.period,
        instances=lacking,
    )


def _target_words(figures: Figures) -> str:
    source = SOURCES.get(figures["source"], f"of {figures['source']}")
    return filled(f"target ICC {{icc:z.2f}}{_ends(figures)}, {source}", figures)


def _rests_on(figures: Figures) -> str:
    every = figures["responses"] + figures["missing"]
    text = (
        "{responses:response} to {instances:instance} of {period}, rated by {clinicians:clinician}"
    )
    missing = f"; the jury scored {{responses}} of {every}" if figures["missing"] else ""
    return filled(text + missing, figures)


def _newest(figures: Figures) -> str:
    text = f"the ICC of {{period}}, the newest judged, is {{icc:z.2f}}{_ends(figures)}"
    if not figures["is_below"]:
        text += ", not below the {aim}; an alarm stands until monitoring is restarted"
    return filled(text, figures)


def _newest_undefined(figures: Figures) -> str:
    why = figures["why"] or "it is undefined"
    return f"the ICC of {figures['period']} cannot be judged: {why}"


def _alarm_words(figures: Figures) -> str:
    return filled(
        "the CUSUM of falls reached its limit in {period}: over {periods:period} to then the ICC is "
        f"{{icc:z.2f}}{_ends(figures)}, the target {{target:z.2f}}; an unchanged jury raises an "
        "alarm in {percent:g} % of years",
        figures,
    )


def _detectable_words(figures: Figures) -> str:
    start = "with {responses:response} a period, "
    if figures["icc"] is None:
        return filled(start + "no fall would be found within {periods} periods", figures)
    return filled(
        start + "a fall to {icc:z.2f} would be found within {periods} periods in {percent:g} % of "
        "studies",
        figures,
    )


def _look_again(figures: Figures) -> str:
    if figures["over"]:
        return "look again when the next period has enough instances"
    return filled("look again when {period} is over, or more of its responses are rated", figures)
