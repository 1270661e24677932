"""What is said of agreement over time: of periods, alarms, causes, reports, and the decision."""

from collections.abc import Callable, Mapping

from calibration.codes import NoteCode as Code
from calibration.messages.form import Figures, Message, filled

SOURCES = {
    "baseline": "of the baseline",
    "given": "given, and taken as exact",
}
DRIFTS = {
    "model": "and the data speak for the model: on the same responses it has changed",
    "case_mix": "and the data speak for the case mix: other responses were rated",
    "model_and_case_mix": "and both have changed: the model and the case mix",
    "neither": (
        "and neither the model nor the case mix shows why: the clinicians may have changed, or it "
        "is chance"
    ),
    "unknown": "and the case mix does not show why",
}
UNANCHORED = (
    "no anchor: whether the model has changed cannot be told; a jury run with more verdicts of "
    "each juror scores the same responses again"
)


def _ends(figures: Figures) -> str:
    if figures["low"] is None:
        return ""
    return filled(" (95 % {low:z.2f} to {high:z.2f})", figures)


def _drift(figures: Figures) -> str:
    lower = "agreement has fallen" if figures["alarm"] else "the ICC is lower than in the baseline"
    said = f"{lower}, {DRIFTS[figures['drift']]}"
    return said if figures["anchored"] else f"{said}; {UNANCHORED}"


def _target(figures: Figures) -> str:
    source = SOURCES.get(figures["source"], f"of {figures['source']}")
    return filled(f"target ICC {{icc:z.2f}}{_ends(figures)}, {source}", figures)


def _rests_on(figures: Figures) -> str:
    every = figures["responses"] + figures["missing"]
    said = (
        "{responses:response} to {instances:instance} of {period}, rated by {clinicians:clinician}"
    )
    missing = f"; the jury scored {{responses}} of {every}" if figures["missing"] else ""
    return filled(said + missing, figures)


def _newest(figures: Figures) -> str:
    said = f"the ICC of {{period}}, the newest judged, is {{icc:z.2f}}{_ends(figures)}"
    if not figures["is_below"]:
        said += ", not below the {aim}; an alarm stands until watching begins anew"
    return filled(said, figures)


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
    said = "no CUSUM: {periods:period} with enough instances, and {baseline} make the baseline"
    if "not_over" in figures:
        said += ", once over"
    return filled(f"{said}; compared with a frozen report it needs none", figures)


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


REASONS: Mapping[Code, Message] = {
    Code.MIX_UNDEFINED: "too few responses in the baseline or now to compare",
}
MESSAGES: Mapping[Code, Message] = {
    Code.SCORED_OF: "scored {scored} of {analysed}",
    Code.JOINED: "{periods} {every}s joined: fewer than {least} instances apart",
    Code.FEW_OF_PERIOD: "too few: {instances:instance}, and {least} are needed",
    Code.NOT_OVER: "not over: ratings may still be added",
    Code.LEFT_OUT_FEW: "too few instances",
    Code.LEFT_OUT_NOT_OVER: "not over",
    Code.LEFT_OUT_NO_Z: "its ICC has no z",
    Code.LEFT_OUT_NO_ERROR: "its z has no standard error",
    Code.NO_CUSUM_YET: _no_cusum_yet,
    Code.NO_CUSUM_SINCE: "no CUSUM: no period since then has enough instances",
    Code.TARGET: _target,
    Code.DETECTABLE: _detectable,
    Code.SCORED_AT_ONCE: (
        "the jury scored all periods within a week, by {day}: a fall between them is no change of "
        "the model"
    ),
    Code.ONE_PERIOD: (
        "all responses are of one period ({period}): were ratings brought in without rated_at, "
        "they have the day of the import"
    ),
    Code.NO_ANCHOR: "no anchor: no response scored again at least {days} days later",
    Code.SAME_MOVE: "every score moved by the same: there is no spread to test it by",
    Code.FEW_ANCHORS_RATED: "{responses} of these responses rated by clinicians: no ICC",
    Code.MIX_OF_ONE: "nothing to compare: the newest period is the baseline",
    Code.FEW_EFFECTIVE: (
        "weighted to the baseline's shares now rests on {responses:.1f} effective responses: "
        "{least} are needed"
    ),
    Code.NOT_RATED_NOW: "not rated now, so no weight can bring them back: {benchmarks}",
    Code.SHARE_OF_BENCHMARK: (
        "{benchmark}: {baseline:.0%} of responses then, {now:.0%} now ({n_now:response})"
    ),
    Code.NOT_LOWER: "agreement has not measurably fallen since the baseline",
    Code.NOTHING_EARLIER: "no earlier period to compare the newest one with",
    Code.DRIFT: _drift,
    Code.JUROR_MOVED: (
        "{juror:scorer} moved by {shift:+.2f} points ({low:+.2f} to {high:+.2f}) on {responses} "
        "responses scored again"
    ),
    Code.ANCHOR_ICC_FELL: (
        "its ICC on {responses} responses scored again went from {first:z.2f} to {latest:z.2f}"
    ),
    Code.SHARES_EXPLAIN: (
        "{moved:.0%} of the responses are of other benchmarks than in the baseline; weighted to "
        "its shares the ICC would be {weighted:z.2f} instead of {icc:z.2f}"
    ),
    Code.SPREAD_EXPLAINS: (
        "the clinicians' scores lie closer together: SD {sd_now:.2f}, {sd_baseline:.2f} in the "
        "baseline; that alone takes its ICC of {icc:z.2f} to {icc_spread:z.2f}"
    ),
    Code.CHANGED_SINCE: lambda figures: f"since the one before: {', '.join(figures['changes'])}",
    Code.BENCHMARK_NEW: "benchmark {benchmark} is new",
    Code.BENCHMARK_GONE: "benchmark {benchmark} is gone",
    Code.RUBRIC_CHANGED: "rubric of {benchmark}",
    Code.JUROR_JOINED: "juror {juror} joined",
    Code.JUROR_LEFT: "juror {juror} left",
    Code.JUROR_SETTINGS: "settings of juror {juror}",
    Code.OPTION_CHANGED: "{option} {was} -> {now}",
    Code.RATINGS_CHANGED: "ratings ({was} -> {now} responses)",
    Code.MODEL_ENDED: (
        "juror {juror} ({model}) ended on {day}: no new response can be scored by it"
    ),
    Code.MODEL_ENDS: (
        "juror {juror} ({model}) ends on {day}: validate its successor while both can be asked"
    ),
    Code.ALARM: _alarm,
    Code.NO_ALARM: "the CUSUM of falls below the target {target:z.2f} has raised no alarm",
    Code.SHOWN_BELOW_FLOOR: (
        "over {periods:period} to {period} the ICC is {icc:z.2f}, at most {most:z.2f} allowing for "
        "every look of a year: below the floor of {floor:z.2f}"
    ),
    Code.BELOW_FLOOR: _to_floor("and its interval is all below the floor of {floor:z.2f}"),
    Code.BELOW_FLOOR_MAYBE: _maybe_below,
    Code.NOT_BELOW_FLOOR: _to_floor("not below the floor of {floor:z.2f}"),
    Code.NEWEST_PERIOD: _newest,
    Code.NEWEST_UNDEFINED: _newest_undefined,
    Code.LOWER_THAN_BASELINE: (
        "the ICC of {now}, {icc:z.2f}, is lower than that of {baseline}, {icc_baseline:z.2f}: "
        "change {change:+.2f} ({low:+.2f} to {high:+.2f})"
    ),
    Code.PERIOD_RESTS_ON: _rests_on,
    Code.DO_SCORE_AGAIN: (
        "let the jury score earlier responses again, which tells a changed juror from other "
        "cases, and do not rely on it until it is validated anew"
    ),
    Code.DO_VALIDATE_AGAIN: (
        "see what speaks for the jurors and what for the cases, and do not rely on the jury until "
        "it is validated anew"
    ),
    Code.DO_FREEZE: (
        "freeze a report of this agreement, on as many responses as there are: later periods are "
        "compared with it"
    ),
    Code.DO_COMPARE_JURIES: "compare other juries of the jurors already heard, or ask other jurors",
    Code.DO_RATE_MORE_OF: "let clinicians rate responses to {instances:more instance}",
    Code.DO_SCORE_REST_OF: (
        "run the jury on the {responses:response} of {period} that it has not scored"
    ),
    Code.DO_LOOK_AGAIN: _look_again,
    Code.DO_REAL_STUDY: "bring in ratings by real clinicians and scores of real jurors",
}
