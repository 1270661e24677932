"""Messages on the comparison of models: their figures, their cost, and whether one leads."""

from collections.abc import Mapping

from calibration.codes import NoteCode as Code
from calibration.messages.form import Figures, Message, counted, filled

COMPARED_BY = {
    "clinicians": "rated by clinicians",
    "jury": "scored by the jury",
    "corrected": ("scored by the jury, corrected with the clinicians' ratings of {rated} of them"),
    "paper": "scored by each benchmark's own metric, or else by the jury",
}
REASONS: Mapping[Code, Message] = {
    Code.FEW_RATED_BY_BOTH: ("fewer than {least} instances that clinicians and jury both scored"),
    Code.NO_TWO_MODELS: "no two models share two scored instances",
}
GENERAL: Mapping[Code, str] = {
    Code.OTHER_INSTANCES: (
        "not all of its scored instances have scores for all models: its means are over other "
        "instances than theirs, whereas the win rate by instance uses shared instances"
    ),
}


def _few_instances(figures: Figures) -> str:
    kind = "rated" if figures["are_rated"] else "scored"
    text = (
        f"only {{instances}} {kind} instances on a benchmark: with fewer than {{least}} the "
        "true uncertainty is larger than this interval"
    )
    return filled(text, figures)


def _not_random(figures: Figures) -> str:
    unlike = (
        f"{name} ({abs(size):.2f} sd {'better' if size > 0 else 'worse'})"
        for name, size in figures["benchmarks"]
    )
    return f"rated responses may be no random sample by the jury's scores: {', '.join(unlike)}"


def _beyond_corrected(figures: Figures) -> str:
    way = "higher" if figures["is_above"] else "lower"
    text = (
        f"the jury alone scores it {way} than clinicians would, beyond both intervals (corrected "
        "{corrected:z.3f}, {low:z.3f} to {high:z.3f}): do not rank it by the jury alone"
    )
    return filled(text, figures)


def _fewer_than_two(figures: Figures) -> str:
    whose = "clinicians" if figures["by"] == "clinicians" else "clinicians and the jury"
    text = f"fewer than two models have a mean by {whose} on the same benchmark"
    return f"{text}; without one: {', '.join(figures['models'])}" if figures["models"] else text


def _between(figures: Figures) -> str:
    if figures["low"] is None:
        return "(no interval)"
    return filled("(95 % interval {low:z.3f} to {high:z.3f})", figures)


def _leads_by(figures: Figures) -> str:
    text = "its macro-average, {of:.3f}, is {difference:.3f} above that of the next model, {next} "
    return filled(text, figures) + _between(figures)


def _models_differ(figures: Figures) -> str:
    text = "the macro-averages of {first} and {second} differ by {difference:.3f} "
    return filled(text, figures) + _between(figures)


def _compared(figures: Figures) -> str:
    on = "{models:model} on {benchmarks:benchmark}, {responses:response} "
    return filled(on + COMPARED_BY[figures["by"]], figures)


def _rate_more(figures: Figures) -> str:
    text = (
        "have clinicians rate more responses: about {responses} of each model, where "
        f"{_have(figures['rated'])} rated now, would show a true difference of this size in 80 % of studies"
    )
    return filled(text, figures)


def _have(rated: int) -> str:
    return f"{counted(rated, 'response')} {'is' if rated == 1 else 'are'}"


MESSAGES: Mapping[Code, Message] = {
    Code.RATED_BY_CLINICIANS: "{responses} of them rated by clinicians",
    Code.LACKS_BENCHMARKS: (
        "{why} on {benchmarks}: with a mean on {on} of {of} benchmarks, not comparable with models, "
        "or ways of scoring, that have one there"
    ),
    Code.CRITERION_LEFT_OUT: "no such criterion: {benchmarks} left out",
    Code.NO_OPPONENT: "win rate undefined: no other model has a score on the same benchmark",
    Code.NO_OPPONENT_ON: "no other model has a score on {benchmarks}",
    Code.OTHER_INSTANCES: (
        "{common} of its {own:scored instance} have scores for all models: its means are over other "
        "instances than theirs, whereas the win rate by instance uses shared instances"
    ),
    Code.ONE_SCORED_INSTANCE: (
        "1 scored instance on a benchmark: intervals over instances are undefined"
    ),
    Code.FEW_SCORED_INSTANCES: _few_instances,
    Code.NOT_DETECTED: (
        "not told apart, as the 95 % interval of the difference includes 0: {models}"
    ),
    Code.NOT_RANDOM: _not_random,
    Code.BEYOND_CORRECTED: _beyond_corrected,
    Code.WITHOUT_BENCHMARKS: "without {benchmarks}",
    Code.PAIRS_NOT_DETECTED: ("{small} of {pairs:pair} of models are seen to differ by less"),
    Code.PAIRS_SHARE: "a pair shares {fewest} to {most} instances",
    Code.MODEL_PAIRS_LEFT: "{pairs:pair} left out for sharing fewer than {least}",
    Code.NO_PAPER_FIGURE: (
        "no figure by the paper's formula, which divides by the top of the scale"
    ),
    Code.DETECTABLE_A_GUESS: (
        "with fewer than {least} instances the sd, and so the figure, is a rough estimate"
    ),
    Code.NO_COST_GIVEN: "no cost given",
    Code.NO_RECORDED_CALL: "no recorded call of {jurors}: rated elsewhere",
    Code.BOUND_NEEDS_PANEL: (
        "the paper's bound needs the jurors' prices: choose a panel as the jury"
    ),
    Code.BOUND_NEEDS_CALLS: "no bound: not all jurors have recorded calls",
    Code.BOUND_NEEDS_TOKENS: "no bound: calls of {jurors} do not record their input tokens",
    Code.BOUND_NEEDS_PRICE: "no bound: the price of a juror is unknown",
    Code.TOKENS_UNKNOWN: (
        "input tokens are unknown for calls whose answer did not report them: {jurors}"
    ),
    Code.FEWER_THAN_TWO: _fewer_than_two,
    Code.BY_JURY_ALONE: (
        "these are the jury's scores alone, and a jury may favour a model: what clinicians would "
        "say is not known"
    ),
    Code.LEADS_BY: _leads_by,
    Code.MODELS_DIFFER: _models_differ,
    Code.TO_BE_DETECTED: (
        "of studies with as many responses, 80 % would show a true difference of {detectable:.3f}"
    ),
    Code.GAP_SPANS_ZERO: "the interval includes 0",
    Code.FEW_ON_BENCHMARK: (
        "a mean rests on {instances:instance} of a benchmark, and with fewer than {least} the "
        "true uncertainty is larger than its interval"
    ),
    Code.FEW_DRAWN: "{resamples:resample} do not make an interval; {least} are needed",
    Code.LOST_DRAWN: (
        "{lost} of {resamples} resamples have no difference: the interval is unreliable"
    ),
    Code.WIN_RATE_ELSEWHERE: (
        "{model} has the lower macro-average but not the lower win rate: the two figures disagree"
    ),
    Code.OTHER_BENCHMARKS: "scored on other benchmarks, and so not comparable: {models}",
    Code.NOT_RANKED: "not ranked, without comparable scores: {models}",
    Code.MODELS_COMPARED: _compared,
    Code.DO_RATE_TWO_MODELS: (
        "have clinicians rate responses of at least two models to the same benchmark"
    ),
    Code.DO_COMPARE_WITH_CLINICIANS: (
        "compare by the clinicians' ratings, or by the jury corrected with them"
    ),
    Code.DO_SCORE_SAME_BENCHMARKS: "have all models scored on the same benchmarks",
    Code.DO_RATE_EACH_BENCHMARK: (
        "have clinicians rate responses to at least {least} instances of each benchmark; one has "
        "{instances}"
    ),
    Code.DO_COMPARE_AGAIN: "compare again with 2,000 resamples",
    Code.DO_RATE_A_SAMPLE: "have clinicians rate a random sample of each model's responses",
    Code.DO_SEE_BENCHMARKS: (
        "look at the benchmarks one by one: each model is better on some of them"
    ),
    Code.DO_TAKE_AS_EQUAL: (
        "treat the two as equally good: showing a difference like this would take more than "
        "{times} times as many responses"
    ),
    Code.DO_RATE_MORE_OF_EACH: _rate_more,
}
