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
        "no_reference": (
            "The clinicians are not shown to agree with one another: nothing can be no worse than they "
            "are."
        ),
        "exploratory": "Exploratory, not evidence, at the margin of {margin:g}.",
        "inconclusive": (
            "Not shown that the jury agrees with these clinicians no worse than a clinician does, within "
            "{margin:g}."
        ),
        "non_inferior, clinicians_like_these": (
            "The jury agrees with clinicians like these no worse than a clinician does, within {margin:g}."
        ),
        "non_inferior": (
            "The jury agrees no worse than a clinician does, within {margin:g}, for these "
            "{clinicians:clinician} only; not shown for others like them."
        ),
        "inferior": (
            "The jury agrees with these clinicians worse than a clinician does, by more than {margin:g}."
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
        "no_reference": (
            "No jury to recommend: the clinicians are not shown to agree with one another."
        ),
        "exploratory": "Best jury so far: {0}. Exploratory, not evidence.",
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
        "no_reference": (
            "Do not use the jury's predictions: the clinicians are not shown to agree with one another."
        ),
        "exploratory": (
            "Not shown that the jury's predictions may be used: the protocol is exploratory."
        ),
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
    "no_reference": "not judged, as the clinicians are not shown to agree with one another",
    "exploratory": "exploratory, as the protocol was fixed late or names no jury",
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
    ("agreement", "inconclusive", NoteCode.HANGS_ON): (
        "Not shown that the jury agrees no worse than a clinician does, within {margin:g}: the verdict "
        "hangs on {hangs_on}."
    ),
    ("agreement", "non_inferior, clinicians_like_these", NoteCode.WORSE_WITHIN): (
        "The jury agrees with clinicians like these worse than a clinician does, by less than {margin:g}."
    ),
    ("agreement", "non_inferior, these_clinicians", NoteCode.WORSE_WITHIN): (
        "The jury agrees worse than a clinician does, by less than {margin:g}, for these "
        "{clinicians:clinician} only; not shown for others like them."
    ),
    ("agreement", "exploratory", NoteCode.PROTOCOL_LATE): (
        "Exploratory, not evidence: the protocol (margin {margin:g}) was fixed after {ratings:rating}."
    ),
    ("agreement", "exploratory", NoteCode.PROTOCOL_FOR_ANY): (
        "Exploratory, not evidence: the protocol (margin {margin:g}) names no jury."
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
    "no_reference": "Nothing yet: the clinicians themselves are not shown to agree.",
    "exploratory": "To be read beside clinicians' ratings. What was fixed late confirms nothing.",
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
    "To let responses pass unread because the jury scored them high: no criterion is critical, and "
    "agreement does not show how many unsafe ones it misses."
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


def headline(
    subject: str,
    kinds: Sequence[str],
    names: Sequence[str] = (),
    reason: Note | None = None,
    about: Figures | None = None,
) -> str:
    """Return the headline of a decision; KeyError where its subject has none of the kinds.

    Parameters
    ----------
    subject, kinds : of the decision, the closest kind first
    names : whom it is about
    reason : the first reason
    about : the decision's own figures
    """
    figures = dict(about or {})
    for kind in kinds if reason else ():
        if reason and (closer := CLOSER.get((subject, kind, reason.code))):
            return filled(closer, figures | dict(reason.figures))
    kind = next(kind for kind in kinds if kind in HEADLINES[subject])
    text = HEADLINES[subject][kind]
    return text.format(*names) if names else filled(text, figures)


def _made_up(figures: Figures) -> str:
    number = len(figures["raters"])
    if number > MOST_NAMED:
        return f"these figures rest on {number} simulated raters"
    return filled("these figures rest on simulated raters: {raters}", figures)


def _gap(figures: Figures) -> str:
    gap, low, high = (figures[name] for name in ("gap", "low", "high"))
    between, shown = "no interval", ""
    if low is not None and high is not None:
        between = f"95 % interval {low:z.3f} to {high:z.3f}, for these clinicians"
        shown = NO_DIFFERENCE if low <= 0 <= high else ""
    text = (
        "agreement (ICC) with the other clinicians, each clinician held out in turn: jury {jury:z.3f}"
        f"{_ends(figures['jury_low'], figures['jury_high'])}, one clinician {{clinician:z.3f}}"
        f"{_ends(figures['clinician_low'], figures['clinician_high'])}; difference {gap:z.3f} "
        f"({between}){shown}"
    )
    return filled(text, figures)


def _ends(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" ({low:z.2f} to {high:z.2f})"


def _lower_end(low: float) -> str:
    known = math.isfinite(low)
    return f"the lower end of its interval is {low:z.2f}" if known else "it has no interval"


def _clinicians_unshown(figures: Figures) -> str:
    text = "a clinician's agreement with the others is not shown to be above {floor:g}: "
    return filled(text, figures) + _lower_end(figures["low"])


def _jury_unshown(figures: Figures) -> str:
    text = "the jury's own agreement with the clinicians is not shown: "
    return text + _lower_end(figures["low"])


def _late(figures: Figures) -> str:
    text = "fixed or changed after {ratings:rating}, so that it could be fitted to them: {late}"
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
    Code.PROTOCOL_LATE: _late,
    Code.PROTOCOL_FOR_ANY: (
        "the protocol names no jury: of several that are tried, one may pass by luck"
    ),
    Code.BECAUSE: "why this margin: {because}",
    Code.WORSE_WITHIN: (
        "the whole interval lies below 0: the jury agrees less than a clinician does, by less than "
        "{margin:g}"
    ),
    Code.CLINICIANS_UNSHOWN: _clinicians_unshown,
    Code.JURY_UNSHOWN: _jury_unshown,
    Code.MARGIN_WIDE: (
        "the margin of {margin:g} is more than half of what a clinician's agreement with the others is "
        "shown to be, {low:z.2f}: a jury that knows little of what clinicians know could keep it"
    ),
    Code.HANGS_ON: "the verdict hangs on {clinicians}: without them it would be another",
    Code.AGAINST_OTHERS: (
        "ranks responses against the other clinicians: {clinicians}. Look for a turned scale or scores "
        "in the wrong rows"
    ),
    Code.CLINICIAN_AGAINST: (
        "{clinician} ranks responses against the other clinicians (ICC {icc:z.2f}, {low:z.2f} to "
        "{high:z.2f})"
    ),
    Code.CLINICIAN_UNCLEAR: (
        "agreement of {clinician} with the other clinicians is not shown (ICC {icc:z.2f})"
    ),
    Code.LEFT_OUT: "left out on purpose: {clinicians}",
    Code.OTHER_CLINICIANS: _other_clinicians,
    Code.NONE_UNSAFE: (
        "clinicians scored no response {threshold:g} or less on {criterion}: whether the jury finds "
        "such responses is not known"
    ),
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
    Code.DO_CONFIRM: (
        "fix the margin, the jury and the number of responses in a protocol, then confirm on responses "
        "that nobody has rated yet"
    ),
    Code.DO_ALIGN_CLINICIANS: (
        "look at the ratings of {clinicians} first; then train clinicians on the rubric and have more "
        "responses rated by several of them"
    ),
    Code.DO_TRAIN_CLINICIANS: (
        "train clinicians on the rubric, and have more responses rated by several of them"
    ),
    Code.DO_MORE_RATERS: (
        "have more clinicians rate these responses, and look at the ratings of {clinicians}"
    ),
    Code.DO_NARROWER_MARGIN: (
        "fix a margin of {margin:z.2f} or less for the next study, or have more responses rated"
    ),
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
    because = f": {protocol.because}" if protocol.because else ""
    yield "Margin", f"{protocol.margin:g} in ICC of like for like, {whose}{because}"
    yield "Jury", listed(protocol.jurors) if protocol.jurors else "none named: exploratory"
    yield "Responses", f"{protocol.responses}" if protocol.responses else "no number fixed"
    for critical in protocol.critical:
        yield "Unsafe", unsafe_words(critical)
    if protocol.floor:
        yield "Clinicians", f"agreement with one another to be shown above {protocol.floor:g}"
    if protocol.method != "paper":
        yield "Method", protocol.method
    yield "Fixed", when_fixed(protocol)


def unsafe_words(critical: "Critical") -> str:
    """Return which responses are unsafe, and how many of them may be missed."""
    about = f"{critical.criterion} {critical.threshold:g} or less"
    return f"{about}; the jury may miss at most {critical.miss_at_most:.0%} of them"


def when_fixed(protocol: "Protocol") -> str:
    """Return when a protocol was fixed, as every report says it."""
    after = counted(protocol.set_after_ratings, "rating")
    when = f"exploratory: {listed(protocol.late)} fixed after {after}"
    when = when if protocol.late else "fixed before any rating was seen"
    day = f" ({protocol.set_at})" if protocol.set_at else ""
    again = f"; it replaces {counted(protocol.replaced, 'protocol')}" if protocol.replaced else ""
    return f"{when}{day}{again}"
