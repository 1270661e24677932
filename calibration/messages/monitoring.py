"""Messages on agreement over time: periods, alarms, causes, reports and the decision."""

from collections.abc import Callable, Mapping

from calibration.codes import AnyCode, MonitoringCode
from calibration.messages.form import Figures, Message, counted, filled

SOURCES = {
    "baseline": "of the baseline",
    "given": "given, and taken as exact",
}
DRIFTS = {
    "model": "and the data point to the model: its scores of the same responses have changed",
    "case_mix": "and the data point to the case mix: other responses were rated",
    "model_and_case_mix": "and both have changed: the model and the case mix",
    "neither": (
        "and neither the model nor the case mix shows why: the clinicians may have changed, or it "
        "is chance"
    ),
    "unknown": "and the case mix does not show why",
}
UNANCHORED = (
    "no anchor: without responses scored again it is not known whether the model has changed; a "
    "jury run with more verdicts of each juror scores them again"
)
REASONS: Mapping[AnyCode, Message] = {
    MonitoringCode.MIX_UNDEFINED: "too few responses in the baseline or now to compare",
}


def _ends(figures: Figures) -> str:
    if figures["low"] is None:
        return ""
    return filled(" (95 % {low:z.2f} to {high:z.2f})", figures)


def _drift(figures: Figures) -> str:
    lower = "agreement has fallen" if figures["alarm"] else "the ICC is lower than in the baseline"
    text = f"{lower}, {DRIFTS[figures['drift']]}"
    return text if figures["anchored"] else f"{text}; {UNANCHORED}"


def _target(figures: Figures) -> str:
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


def _to_floor(then: str) -> Callable[[Figures], str]:
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
    return _to_floor(f"below the floor of {{floor:z.2f}}, {how}")(figures)


def _alarm(figures: Figures) -> str:
    return filled(
        "the CUSUM of falls reached its limit in {period}: over {periods:period} to then the ICC is "
        f"{{icc:z.2f}}{_ends(figures)}, the target {{target:z.2f}}; an unchanged jury raises an "
        "alarm in {percent:g} % of years",
        figures,
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


def _detectable(figures: Figures) -> str:
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


MESSAGES: Mapping[AnyCode, Message] = {
    MonitoringCode.SCORED_OF: "scored {scored} of {analysed}",
    MonitoringCode.JOINED: "{periods} {every}s joined: fewer than {least} instances separately",
    MonitoringCode.FEW_OF_PERIOD: "too few: {instances:instance}, and {least} are needed",
    MonitoringCode.NOT_OVER: "not over: ratings may still be added",
    MonitoringCode.LEFT_OUT_FEW: "too few instances",
    MonitoringCode.LEFT_OUT_NOT_OVER: "not over",
    MonitoringCode.LEFT_OUT_NO_Z: "its ICC has no z",
    MonitoringCode.LEFT_OUT_NO_ERROR: "its z has no standard error",
    MonitoringCode.NO_CUSUM_YET: _no_cusum_yet,
    MonitoringCode.NO_CUSUM_SINCE: "no trend check (CUSUM) yet: no completed period since then has enough instances",
    MonitoringCode.TARGET: _target,
    MonitoringCode.DETECTABLE: _detectable,
    MonitoringCode.SCORED_AT_ONCE: (
        "the jury scored all periods within a week, by {day}: a fall between them is no change of "
        "the model"
    ),
    MonitoringCode.ONE_PERIOD: (
        "all responses are of one period ({period}): ratings imported without rated_at carry the "
        "day of the import"
    ),
    MonitoringCode.NO_ANCHOR: "no anchor: no response scored again at least {days} days later",
    MonitoringCode.SAME_MOVE: "every score moved by the same amount: there is no spread for a test",
    MonitoringCode.FEW_ANCHORS_RATED: "{responses} of these responses rated by clinicians: no ICC",
    MonitoringCode.MIX_OF_ONE: "nothing to compare: the newest period is the baseline",
    MonitoringCode.FEW_EFFECTIVE: (
        "weighted to the baseline's shares, the newest period has {responses:.1f} effective "
        "responses: {least} are needed"
    ),
    MonitoringCode.NOT_RATED_NOW: "not rated now, so weighting cannot represent them: {benchmarks}",
    MonitoringCode.SHARE_OF_BENCHMARK: (
        "{benchmark}: {baseline:.0%} of responses then, {now:.0%} now ({n_now:response})"
    ),
    MonitoringCode.NOT_LOWER: "agreement has not measurably fallen since the baseline",
    MonitoringCode.NOTHING_EARLIER: "no earlier period to compare the newest one with",
    MonitoringCode.DRIFT: _drift,
    MonitoringCode.JUROR_MOVED: (
        "{juror:scorer} moved by {shift:+.2f} points ({low:+.2f} to {high:+.2f}) on {responses} "
        "responses scored again"
    ),
    MonitoringCode.ANCHOR_ICC_FELL: (
        "its ICC on {responses} responses scored again went from {first:z.2f} to {latest:z.2f}"
    ),
    MonitoringCode.SHARES_EXPLAIN: (
        "{moved:.0%} of the responses are of other benchmarks than in the baseline; weighted to "
        "its shares the ICC would be {weighted:z.2f} instead of {icc:z.2f}"
    ),
    MonitoringCode.SPREAD_EXPLAINS: (
        "the clinicians' scores lie closer together: SD {sd_now:.2f}, {sd_baseline:.2f} in the "
        "baseline; that alone takes its ICC of {icc:z.2f} to {icc_spread:z.2f}"
    ),
    MonitoringCode.CHANGED_SINCE: lambda figures: (
        f"since the one before: {', '.join(figures['changes'])}"
    ),
    MonitoringCode.BENCHMARK_NEW: "benchmark {benchmark} is new",
    MonitoringCode.BENCHMARK_GONE: "benchmark {benchmark} is gone",
    MonitoringCode.RUBRIC_CHANGED: "rubric of {benchmark}",
    MonitoringCode.JUROR_JOINED: "juror {juror} joined",
    MonitoringCode.JUROR_LEFT: "juror {juror} left",
    MonitoringCode.JUROR_SETTINGS: "settings of juror {juror}",
    MonitoringCode.OPTION_CHANGED: "{option} {was} -> {now}",
    MonitoringCode.RATINGS_CHANGED: "ratings ({was} -> {now} responses)",
    MonitoringCode.MODEL_ENDED: (
        "juror {juror} ({model}) ended on {day}: no new response can be scored by it"
    ),
    MonitoringCode.MODEL_ENDS: (
        "juror {juror} ({model}) ends on {day}: validate its successor while both can be asked"
    ),
    MonitoringCode.ALARM: _alarm,
    MonitoringCode.NO_ALARM: "the CUSUM of falls below the target {target:z.2f} has raised no alarm",
    MonitoringCode.SHOWN_BELOW_FLOOR: (
        "over {periods:period} to {period} the ICC is {icc:z.2f}, at most {most:z.2f} corrected for "
        "all looks of a year: below the floor of {floor:z.2f}"
    ),
    MonitoringCode.BELOW_FLOOR: _to_floor(
        "and its whole interval is below the floor of {floor:z.2f}"
    ),
    MonitoringCode.BELOW_FLOOR_MAYBE: _maybe_below,
    MonitoringCode.NOT_BELOW_FLOOR: _to_floor("not below the floor of {floor:z.2f}"),
    MonitoringCode.NEWEST_PERIOD: _newest,
    MonitoringCode.NEWEST_UNDEFINED: _newest_undefined,
    MonitoringCode.LOWER_THAN_BASELINE: (
        "the ICC of {now}, {icc:z.2f}, is lower than that of {baseline}, {icc_baseline:z.2f}: "
        "change {change:+.2f} ({low:+.2f} to {high:+.2f})"
    ),
    MonitoringCode.PERIOD_RESTS_ON: _rests_on,
    MonitoringCode.DO_SCORE_AGAIN: (
        "run the jury on earlier responses again, to distinguish a changed juror from a changed case "
        "mix, and do not rely on it until it is validated again"
    ),
    MonitoringCode.DO_VALIDATE_AGAIN: (
        "check whether the jurors or the cases have changed, and do not rely on the jury until it is "
        "validated again"
    ),
    MonitoringCode.DO_FREEZE: (
        "freeze a report of this agreement, on as many responses as there are: later periods are "
        "compared with it"
    ),
    MonitoringCode.DO_COMPARE_JURIES: (
        "compare other juries of the jurors already run, or run other jurors"
    ),
    MonitoringCode.DO_RATE_MORE_OF: "have clinicians rate responses to {instances:more instance}",
    MonitoringCode.DO_SCORE_REST_OF: (
        "run the jury on the {responses:response} of {period} that it has not scored"
    ),
    MonitoringCode.DO_LOOK_AGAIN: _look_again,
    MonitoringCode.DO_REAL_STUDY: "import ratings by real clinicians and scores of real jurors",
}
