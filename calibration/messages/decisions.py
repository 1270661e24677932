"""Texts of decisions: headlines, reasons, the next step, what a jury may be used for, and the protocol."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from calibration.messages.form import counted, listed

if TYPE_CHECKING:
    from calibration.protocol import Critical, Protocol
from collections.abc import Mapping, Sequence

from calibration.codes import AnyCode, MonitoringCode, NoteCode
from calibration.codes import NoteCode as Code
from calibration.messages.form import Figures, Message, filled
from calibration.values import Note

# subject -> kind of decision -> headline; `{0}` is the first name that it is about.
HEADLINES: Mapping[str, Mapping[str, str]] = {
    "agreement": {
        "simulated": "Simulated: nothing here is evidence.",
        "undefined": "Not known whether the jury agrees as well as a clinician does.",
        "too_few": "Too few data to say whether the jury agrees as well as a clinician does.",
        "no_protocol": "Not judged: no margin was fixed for this analysis.",
        "inconclusive": (
            "Not shown that the jury's agreement with these clinicians is non-inferior to a "
            "clinician's."
        ),
        "non_inferior": (
            "The jury agrees with these clinicians no worse than a clinician does, within the margin."
        ),
        "inferior": (
            "The jury agrees with these clinicians worse than a clinician does, by more than the margin."
        ),
    },
    "monitoring": {
        "simulated": "Simulated: nothing here is evidence.",
        "undefined": "Not known whether agreement has fallen: no figure to judge it by.",
        "too_few": "Too few data to say whether agreement has fallen.",
        "no_baseline": "Not known whether agreement has fallen: not enough data to compare with yet.",
        "inconclusive": "Not shown that agreement has fallen.",
        "steady": "No fall in agreement is seen.",
        "fallen": "Agreement has fallen.",
    },
    "juries": {
        "simulated": "Simulated: nothing here is evidence.",
        "undefined": "No jury has an ICC with the clinicians.",
        "too_few": "Too few data to recommend a jury.",
        "inconclusive": "No jury stands out: none is shown to agree with the clinicians.",
        "recommended": "Recommended jury: {0}.",
        "no_protocol": "Best jury so far: {0}. Not judged: no margin was fixed for it.",
        "inferior": (
            "No jury to recommend: by the study's protocol the best, {0}, is inferior to a clinician."
        ),
    },
    "comparison": {
        "simulated": "Simulated: nothing here is evidence.",
        "undefined": "Not known which of the two juries agrees better with the clinicians.",
        "too_few": "Too few data to say which of the two juries agrees better with the clinicians.",
        "inconclusive": "Not shown which of the two juries agrees better with the clinicians.",
        "first_better": "The first jury, {0}, agrees better with the clinicians than {1}.",
        "second_better": "The second jury, {1}, agrees better with the clinicians than {0}.",
    },
    "models": {
        "simulated": "Simulated: nothing here is evidence.",
        "undefined": "The models cannot be compared yet.",
        "too_few": "Too few data to say whether any model leads.",
        "inconclusive": "No model is shown to lead.",
        "told_apart": "{0} leads: its scores are higher than those of every other model compared.",
    },
    "predictions": {
        "simulated": "Simulated: nothing here is evidence.",
        "undefined": "Not known whether the jury's predictions may be used.",
        "too_few": "Too few data to say whether the jury's predictions may be used.",
        "inconclusive": "Not shown that the jury's predictions may be used.",
        "no_protocol": (
            "Not judged whether the jury's predictions may be used: no margin was fixed for this jury."
        ),
        "inferior": "The jury is no stand-in for a clinician: do not use its predictions.",
        "usable": (
            "The jury's predictions may be used, if the responses that clinicians rated are a random "
            "sample."
        ),
        "usable_combined": (
            "The jury's predictions may be used for all benchmarks combined, but not for each of them, "
            "if the responses that clinicians rated are a random sample."
        ),
    },
}
# A verdict of which only the kind is known: it may rest on agreement or on missed unsafe responses.
VERDICTS: Mapping[str, str] = {
    "simulated": "simulated raters show nothing",
    "undefined": "there is no difference to judge",
    "too_few": "too few data",
    "no_protocol": "not judged, as no margin was fixed for this analysis",
    "inconclusive": "not shown to meet the study's protocol",
    "inferior": "inferior by the study's protocol",
    "non_inferior": "non-inferior by the study's protocol",
}
OF_READING: Mapping[str, str] = {
    "": "",
    "independent": "Based on independent readings.",
    "adjudicated": "Based on adjudicated readings; like for like is based on independent ones.",
}
# A more specific headline where the first reason allows one: subject, kind and that reason's code -> headline, with the
# figures of the reason.
CLOSER: Mapping[tuple[str, str, AnyCode], str] = {
    ("agreement", "inferior", NoteCode.MISSES_ABOVE): (
        "The jury misses more unsafe responses than the protocol allows."
    ),
    ("agreement", "inconclusive", NoteCode.MISSES_REACH): (
        "The jury is not shown to miss as few unsafe responses as the protocol requires."
    ),
    ("agreement", "inconclusive", NoteCode.NONE_UNSAFE): (
        "Not known whether the jury finds unsafe responses: clinicians found none on {criterion}."
    ),
    ("juries", "inconclusive", NoteCode.VERDICT_ON): (
        "No jury to recommend yet: the best, {jury}, is not shown to meet the study's protocol."
    ),
    ("monitoring", "no_baseline", MonitoringCode.BELOW_FLOOR): (
        "Agreement is below the floor of {floor:z.2f}; there is no earlier period to compare with."
    ),
    ("monitoring", "inconclusive", MonitoringCode.BELOW_FLOOR): (
        "The ICC of {period} is below the floor of {floor:z.2f}; one period alone does not show a fall."
    ),
    ("monitoring", "inconclusive", MonitoringCode.LOWER_THAN_BASELINE): (
        "Agreement is lower than in {baseline}, but no alarm is raised."
    ),
    ("monitoring", "fallen", MonitoringCode.SHOWN_BELOW_FLOOR): (
        "Agreement is below the floor of {floor:z.2f}."
    ),
}
MOST_NAMED = 3
REASONS: Mapping[Code, Message] = {}
INTENDED = (
    "To score responses of {benchmarks} on the rubric {rubrics} in the place of one clinician among "
    "several; not to treat patients."
)
PLACE = "A clinician's place beside others on further responses like these"
MAY: Mapping[str, str] = {
    "non_inferior": (
        f"{PLACE}: the same benchmarks, this rubric, these jurors with these settings."
    ),
    "no_protocol": "To be read beside clinicians' ratings. No margin was fixed, so nothing is claimed.",
    "inconclusive": "To be read beside clinicians' ratings, until there are enough of them to decide.",
    "inferior": "To be read beside clinicians' ratings, bearing in mind that it agrees less than a clinician.",
    "too_few": "To be read beside clinicians' ratings, until there are enough of them.",
    "undefined": "Nothing yet: it is not known whether the jury agrees with clinicians.",
    "simulated": "Nothing: the figures come from simulated raters.",
}
NOT_SHOWN = f"{PLACE}: non-inferiority is not shown."
ALWAYS = (
    "Other benchmarks, another wording of the rubric, other jurors or settings, or a later version of "
    "a model under the same name: validate again."
)
NO_LIMIT = (
    "To let responses pass unread because the jury scored them high: no limit on missed unsafe "
    "responses was fixed, and agreement does not show how many it misses."
)
LIMIT_OPEN = (
    "To let responses pass unread because the jury scored them high: it is not shown to miss few "
    "enough unsafe ones."
)
OTHER_CLINICIANS = (
    "In the place of clinicians other than these: non-inferiority is not shown for them."
)
NO_DIFFERENCE = ": no difference is shown, which does not mean that the two are equal"
BIG_POOL = "Verdicts on single benchmarks: see below, each with its own interval."


def headline(subject: str, kind: str, names: Sequence[str] = (), reason: Note | None = None) -> str:
    """Return the headline of a decision; KeyError where its subject has no such kind."""
    closer = CLOSER.get((subject, kind, reason.code)) if reason else None
    if reason and closer:
        return filled(closer, dict(reason.figures))
    return HEADLINES[subject][kind].format(*names)


def _made_up(figures: Figures) -> str:
    number = len(figures["raters"])
    if number > MOST_NAMED:
        return f"these figures rest on {number} simulated raters"
    return filled("these figures rest on simulated raters: {raters}", figures)


def _gap(figures: Figures) -> str:
    gap, low, high = (figures[name] for name in ("gap", "low", "high"))
    between, shown = "no interval", ""
    if low is not None:
        between = f"95 % interval {low:z.3f} to {high:z.3f}, for these clinicians"
        shown = NO_DIFFERENCE if low <= 0 <= high else ""
    text = (
        "agreement (ICC) with the other clinicians, each clinician held out in turn: jury {jury:z.3f}, "
        f"one clinician {{clinician:z.3f}}; difference {gap:z.3f} ({between}){shown}"
    )
    return filled(text, figures)


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
    if not figures["responses"]:
        return filled("no response that both scored; the jury scored 0 of {missing}", figures)
    text = (
        "{responses:response} of {instances:instance}, rated by {clinicians:clinician}; the jury "
        f"scored {{responses}} of {figures['responses'] + figures['missing']}"
    )
    return filled(text, figures)


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
    Code.DO_MORE_FOR_AN_EQUAL: (
        "have clinicians rate more: at this margin, even a jury exactly as good as a clinician takes "
        "about {responses} responses in all to be shown non-inferior"
    ),
    Code.DO_MORE_RESAMPLES: "analyse with more resamples, at least {least}",
    Code.DO_VARIED: (
        "have clinicians rate responses that differ more: too many here have the same score"
    ),
    Code.DO_JURY_THAT_DIFFERS: (
        "read the jury's answers, and mend its rubric prompt or take other jurors: one that gives "
        "every response the same score measures nothing"
    ),
    Code.DO_OTHER_JURY: "compare other juries of the jurors already run, or run other jurors",
    Code.DO_EXPORT: "export the rubric with this evidence",
    Code.DO_SEE_NOTES: "read the notes of the row Like for like (difference)",
    Code.DO_FIX_MARGIN: "fix a margin in the study's protocol, preferably before clinicians rate",
    Code.DO_ANALYSE_AS_FIXED: "analyse the jury, criterion, method and data that the protocol names",
    Code.DO_RATE_PLANNED: "have clinicians rate {more:more response}, as planned",
    Code.DO_MORE_UNSAFE: "have clinicians rate more responses that may be unsafe",
}


def may_not(
    kind: str, *, is_limited: bool, keeps_limits: bool, holds_for_others: bool, is_pooled: bool
) -> Iterator[str]:
    """Yield what a jury may not be used for, the most important first.

    Parameters
    ----------
    kind : of the decision
    is_limited, keeps_limits : whether missed unsafe responses are limited, and all limits kept
    holds_for_others : whether the margin is shown for other clinicians like these
    is_pooled : whether several benchmarks are pooled
    """
    if kind != "non_inferior":
        yield NOT_SHOWN
    if not is_limited:
        yield NO_LIMIT
    elif not keeps_limits:
        yield LIMIT_OPEN
    if kind == "non_inferior" and not holds_for_others:
        yield OTHER_CLINICIANS
    if is_pooled:
        yield BIG_POOL
    yield ALWAYS


def protocol_facts(protocol: "Protocol") -> Iterator[tuple[str, str]]:
    """Yield what a protocol fixes: the name of each thing, and the thing in words."""
    whose = f"on {protocol.criterion}" if protocol.criterion else "on the composite"
    yield "Margin", f"{protocol.margin:g} in ICC of like for like, {whose}"
    yield "Jury", listed(protocol.jurors) if protocol.jurors else "any that is analysed"
    yield "Responses", f"{protocol.responses}" if protocol.responses else "no number fixed"
    for critical in protocol.critical:
        yield "Unsafe", unsafe_words(critical)
    if protocol.method != "paper":
        yield "Method", protocol.method
    yield "Fixed", when_fixed(protocol)


def unsafe_words(critical: "Critical") -> str:
    """Return which responses are unsafe, and how many of them may be missed."""
    about = f"{critical.criterion} {critical.threshold:g} or less"
    if math.isnan(critical.miss_at_most):
        return f"{about}; no limit to how many the jury may miss"
    return f"{about}; the jury may miss at most {critical.miss_at_most:.0%} of them"


def when_fixed(protocol: "Protocol") -> str:
    """Return when a protocol was fixed, as every report says it."""
    after = protocol.set_after_ratings
    when = f"set after {counted(after, 'rating')}" if after else "fixed before any rating was seen"
    day = f" ({protocol.set_at})" if protocol.set_at else ""
    again = f"; it replaces {counted(protocol.replaced, 'protocol')}" if protocol.replaced else ""
    return f"{when}{day}{again}"
