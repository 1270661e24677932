"""Messages on subgroups: for whom the jury's agreement is not shown to hold, and why."""

from collections.abc import Mapping

from calibration.codes import NoteCode as Code
from calibration.messages.form import Figures, Message, filled


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
    said = "agreement is not shown to hold for {value} as for the rest: its ICC is "
    return filled(f"{said}{gap} lower", figures)


REASONS: Mapping[Code, Message] = {}
MESSAGES: Mapping[Code, Message] = {
    Code.FEW_IN_SUBGROUP: (
        "agreement is not shown to hold for {value}: {instances:instance}, and {least} are needed"
    ),
    Code.LOWER_IN_SUBGROUP: _lower,
    Code.NOT_SHOWN_IN_SUBGROUP: _not_shown,
    Code.BIAS_IN_SUBGROUP: _bias,
    Code.ONLY_VALUE: "no other value to compare with",
    Code.FEW_IN_REST: "not compared: the rest have {instances:instance}, and {least} are needed",
}
