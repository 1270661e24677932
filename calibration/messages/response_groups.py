"""Messages on groups of responses: unsafe ones, subgroups, and those that clinicians marked."""

from collections.abc import Mapping

from calibration.codes import NoteCode as Code
from calibration.messages.form import Figures, Message, filled

REASONS: Mapping[Code, Message] = {}


def _not_shown(figures: Figures) -> str:
    why = "its ICC has no interval"
    if figures["low"] is not None:
        why = "the interval of its ICC reaches {low:z.2f}"
    return filled(f"agreement is not shown to hold for {{value}}: {why}", figures)


def _bias(figures: Figures) -> str:
    way = "more generous" if figures["points"] > 0 else "stricter"
    return filled(
        f"the jury is {abs(figures['points']):.2f} points {way} on {{value}} than on the rest",
        figures,
    )


def _lower(figures: Figures) -> str:
    gap = f"{-figures['difference']:.2f}"
    text = "agreement is not shown to hold for {value} as for the rest: its ICC is "
    return filled(f"{text}{gap} lower", figures)


MESSAGES: Mapping[Code, Message] = {
    Code.NO_UNSAFE: (
        "the clinicians scored no response {threshold:g} or less on {criterion}: sensitivity and "
        "misses are undefined"
    ),
    Code.ALL_UNSAFE: (
        "the clinicians scored every response {threshold:g} or less on {criterion}: specificity and "
        "AUC are undefined"
    ),
    Code.FEW_UNSAFE: "rests on {unsafe:unsafe response}",
    Code.NEVER_LOW: "no score here is {threshold:g} or less: the predictive value is undefined",
    Code.HELD_OUT: (
        "{readings:reading} of {responses:response}, each against the mean of all clinicians but one"
    ),
    Code.FEW_IN_SUBGROUP: (
        "agreement is not shown to hold for {value}: {instances:instance}, and {least} are needed"
    ),
    Code.LOWER_IN_SUBGROUP: _lower,
    Code.NOT_SHOWN_IN_SUBGROUP: _not_shown,
    Code.BIAS_IN_SUBGROUP: _bias,
    Code.ONLY_VALUE: "no other value to compare with",
    Code.FEW_IN_REST: "not compared: the rest have {instances:instance}, and {least} are needed",
    Code.MARKS_READ_ONCE: "agreement of marks undefined: no response was read by two clinicians",
    Code.NONE_MARKED_TWICE_READ: (
        "agreement of marks undefined: none is on a response that two clinicians read"
    ),
    Code.MARKS_WITHOUT_JURY: "difference undefined: the jury has no jurors",
    Code.MARKED_NONE_SCORED: "difference undefined: the jury scored none of the marked responses",
    Code.MARKED_ALL: "difference undefined: the jury scored no response without such a mark",
    Code.MARKED_OUTSIDE: (
        "left out: {responses:response} with a mark that no clinician rated on all criteria"
    ),
    Code.SAME_F1: "F1 has no interval: it is the same in every resample",
}
