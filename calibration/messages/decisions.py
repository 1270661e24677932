"""What a decision gives as its reasons, what it rests on, and what to do next."""

from collections.abc import Mapping

from calibration.codes import NoteCode as Code
from calibration.messages.form import Figures, Message, filled

MOST_NAMED = 3


def _made_up(figures: Figures) -> str:
    number = len(figures["raters"])
    if number > MOST_NAMED:
        return f"{number} raters behind these figures are made up"
    return filled("raters behind these figures are made up: {raters}", figures)


def _gap(figures: Figures) -> str:
    gap, low, high = (figures[name] for name in ("gap", "low", "high"))
    way = "the same as" if f"{abs(gap):.3f}" == "0.000" else _way(gap)
    between = "no interval" if low is None else f"95 % interval {low:z.3f} to {high:z.3f}"
    said = (
        f"each clinician held out in turn, the jury's mean ICC with the others is {way} a clinician's "
        f"({between}): {{jury:z.3f}} and {{clinician:z.3f}}"
    )
    return filled(said, figures)


def _way(gap: float) -> str:
    return f"{abs(gap):.3f} {'higher' if gap > 0 else 'lower'} than"


def _line(figures: Figures) -> str:
    margin = figures["margin"]
    return f"-{margin:g}" if margin else "0"


def _all_above(figures: Figures) -> str:
    named = ", the margin that was set" if figures["margin"] else ""
    return f"the whole interval lies above {_line(figures)}{named}"


def _reaches_below(figures: Figures) -> str:
    line = _line(figures)
    return f"the interval reaches below {line}: neither a difference nor its absence is shown"


def _corrected_reaches(figures: Figures) -> str:
    said = (
        f"the interval lies above {_line(figures)}, but corrected for looking at {{benchmarks}} "
        "benchmarks it does not"
    )
    return filled(said, figures)


def _rests_on(figures: Figures) -> str:
    said = (
        "{responses:response} of {instances:instance}, rated by {clinicians:clinician}; the jury "
        f"scored {{responses}} of {figures['responses'] + figures['missing']}"
    )
    return filled(said, figures)


REASONS: Mapping[Code, Message] = {}
MESSAGES: Mapping[Code, Message] = {
    Code.MADE_UP: _made_up,
    Code.NO_JUROR: "no juror has rated a response of this study",
    Code.NO_CLINICIAN_RATING: "no clinician has rated a response on all criteria",
    Code.GAP: _gap,
    Code.ALL_ABOVE: _all_above,
    Code.ALL_BELOW: "the whole interval lies below 0",
    Code.REACHES_BELOW: _reaches_below,
    Code.CORRECTED_REACHES: _corrected_reaches,
    Code.FEW_TO_TRUST: (
        "with {instances:instance}, fewer than {least}, that interval is not to be trusted"
    ),
    Code.LOST_TO_TRUST: (
        "{lost} of {resamples} resamples have no difference: that interval is not to be trusted"
    ),
    Code.NO_INTERVAL: "there is no interval",
    Code.HOLDS_CORRECTED: "it holds after correction for looking at {benchmarks} benchmarks",
    Code.NOT_CORRECTED: "the interval is not corrected for looking at {benchmarks} benchmarks",
    Code.RESTS_ON: _rests_on,
    Code.DO_REAL_RATERS: "bring in responses of your own, clinicians to rate them and real jurors",
    Code.DO_LET_RATE: "let clinicians rate responses, at least two of them the same ones",
    Code.DO_RUN_JURY: "run a jury on the responses that clinicians have rated",
    Code.DO_RUN_JURY_ON: "run the jury on the {responses:response} that it has not scored",
    Code.DO_SECOND_CLINICIAN: "let a second clinician rate the same responses",
    Code.DO_MORE_CLINICIANS: (
        "let two clinicians rate the same responses, at least {least} of them"
    ),
    Code.DO_MORE_INSTANCES: "let clinicians rate responses to {instances} more instances",
    Code.DO_MORE_RESPONSES: (
        "about {responses} responses in all would narrow the interval enough, if the difference "
        "stays what it is"
    ),
    Code.DO_OTHER_JURY: "compare other juries of the jurors already heard, or ask other jurors",
    Code.DO_EXPORT: "nothing is left to do; the rubric can be exported with this evidence",
    Code.DO_SEE_NOTES: "see the notes of the row like for like",
}
