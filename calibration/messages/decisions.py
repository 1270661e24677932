"""Messages of decisions: the reasons, the data behind them, and the next step."""

from collections.abc import Mapping

from calibration.codes import NoteCode as Code
from calibration.messages.form import Figures, Message, filled

MOST_NAMED = 3


def _made_up(figures: Figures) -> str:
    number = len(figures["raters"])
    if number > MOST_NAMED:
        return f"these figures rest on {number} simulated raters"
    return filled("these figures rest on simulated raters: {raters}", figures)


def _gap(figures: Figures) -> str:
    gap, low, high = (figures[name] for name in ("gap", "low", "high"))
    way = "the same as" if f"{abs(gap):.3f}" == "0.000" else _way(gap)
    between = "no interval" if low is None else f"95 % interval {low:z.3f} to {high:z.3f}"
    text = (
        f"each clinician held out in turn, the jury's ICC with the others is {way} a clinician's "
        f"({between}): {{jury:z.3f}} and {{clinician:z.3f}}"
    )
    return filled(text, figures)


def _way(gap: float) -> str:
    return f"{abs(gap):.3f} {'higher' if gap > 0 else 'lower'} than"


def _other_clinicians(figures: Figures) -> str:
    shown = "is shown" if figures["holds"] else "is not shown"
    text = (
        "for other clinicians like these, the 95 % interval of the difference is {low:z.3f} to "
        f"{{high:z.3f}}, so non-inferiority {shown} for them at the margin of {{margin:g}}"
    )
    return filled(text, figures)


def _unsafe(figures: Figures) -> str:
    """Return how many of the responses that clinicians scored low the jury misses."""
    text = (
        "of {unsafe:response} that clinicians scored {threshold:g} or less on {criterion}, the jury "
        "scored {missed} higher (95 % interval {low:.0%} to {high:.0%}"
    )
    return filled(text, figures)


def _seen(figures: Figures) -> str:
    return f"{_unsafe(figures)})"


def _within(figures: Figures) -> str:
    return f"{_unsafe(figures)}), within the limit of {figures['limit']:.0%}"


def _reach(figures: Figures) -> str:
    text = "), so it is not known whether the limit of {limit:.0%} is met"
    return _unsafe(figures) + filled(text, figures)


def _above(figures: Figures) -> str:
    return f"{_unsafe(figures)}), above the limit of {figures['limit']:.0%}"


def _rests_on(figures: Figures) -> str:
    text = (
        "{responses:response} of {instances:instance}, rated by {clinicians:clinician}; the jury "
        f"scored {{responses}} of {figures['responses'] + figures['missing']}"
    )
    return filled(text, figures)


REASONS: Mapping[Code, Message] = {}
MESSAGES: Mapping[Code, Message] = {
    Code.MADE_UP: _made_up,
    Code.NO_JUROR: "no juror has rated a response of this study",
    Code.NO_CLINICIAN_RATING: "no clinician has rated a response on all criteria",
    Code.GAP: _gap,
    Code.ALL_ABOVE: "the whole interval lies above -{margin:g}, the margin",
    Code.ALL_BELOW: "the whole interval lies below -{margin:g}, the margin",
    Code.REACHES_BELOW: (
        "the interval includes -{margin:g}, the margin: more data may show on which side it lies"
    ),
    Code.CORRECTED_REACHES: (
        "the interval lies above -{margin:g}, the margin, but corrected for {benchmarks} benchmarks "
        "it does not"
    ),
    Code.NO_MARGIN: "no margin was fixed for how much worse than a clinician the jury may be",
    Code.OTHER_ANALYSIS: (
        "the protocol is about another jury, criterion, method or part of the study than this analysis"
    ),
    Code.BEFORE_PLANNED: (
        "the protocol plans {planned:response} and only {responses} are analysed: too early for a verdict"
    ),
    Code.FIXED_BEFORE: "the margin of {margin:g} was fixed before any rating was seen",
    Code.FIXED_AFTER: "the margin of {margin:g} was set after {ratings:rating}",
    Code.OTHER_CLINICIANS: _other_clinicians,
    Code.NONE_UNSAFE: (
        "clinicians scored no response {threshold:g} or less on {criterion}: whether the jury finds "
        "such responses is not known"
    ),
    Code.MISSES_SEEN: _seen,
    Code.MISSES_WITHIN: _within,
    Code.MISSES_REACH: _reach,
    Code.MISSES_ABOVE: _above,
    Code.FEW_TO_TRUST: (
        "with {instances:instance}, fewer than {least}, that interval is unreliable"
    ),
    Code.LOST_TO_TRUST: (
        "{lost} of {resamples} resamples have no difference: that interval is unreliable"
    ),
    Code.NO_INTERVAL: "there is no interval",
    Code.HOLDS_CORRECTED: "it holds after correction for {benchmarks} benchmarks",
    Code.NOT_CORRECTED: "the interval is not corrected for {benchmarks} benchmarks",
    Code.RESTS_ON: _rests_on,
    Code.DO_REAL_RATERS: "import your own responses, have clinicians rate them and run real jurors",
    Code.DO_LET_RATE: "have clinicians rate responses, at least two of them the same ones",
    Code.DO_RUN_JURY: "run a jury on the responses that clinicians have rated",
    Code.DO_RUN_JURY_ON: "run the jury on the {responses:response} that it has not scored",
    Code.DO_SECOND_CLINICIAN: "have a second clinician rate the same responses",
    Code.DO_MORE_CLINICIANS: (
        "have two clinicians rate the same responses, at least {least} of them"
    ),
    Code.DO_MORE_INSTANCES: "have clinicians rate responses to {instances} more instances",
    Code.DO_MORE_RESPONSES: (
        "about {responses} responses in all would narrow the interval enough, if the difference "
        "stays what it is"
    ),
    Code.DO_OTHER_JURY: "compare other juries of the jurors already run, or run other jurors",
    Code.DO_EXPORT: "export the rubric with this evidence",
    Code.DO_SEE_NOTES: "read the notes of the row Like for like",
    Code.DO_FIX_MARGIN: "fix a margin in the study's protocol, preferably before clinicians rate",
    Code.DO_ANALYSE_AS_FIXED: "analyse the jury, criterion, method and data that the protocol names",
    Code.DO_RATE_PLANNED: "have clinicians rate {more:more response}, as planned",
    Code.DO_MORE_UNSAFE: "have clinicians rate more responses that may be unsafe",
}
