"""Words of decisions and methods: headlines, uses of a jury, what a protocol fixes, what was computed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from calibration.notes import Figures, Note, counted, filled, listed

if TYPE_CHECKING:
    from calibration.protocol import Critical, Protocol

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
CLOSER: Mapping[tuple[str, str, str], str] = {
    ("agreement", "inferior", "misses_above"): (
        "The jury misses more unsafe responses than the protocol allows."
    ),
    ("agreement", "inconclusive", "misses_reach"): (
        "The jury is not shown to miss as few unsafe responses as the protocol requires."
    ),
    ("agreement", "inconclusive", "none_unsafe"): (
        "Not known whether the jury finds unsafe responses: clinicians found none on {criterion}."
    ),
    ("agreement", "inconclusive", "hangs_on"): (
        "Not shown that the jury agrees no worse than a clinician does, within {margin:g}: the verdict "
        "hangs on {hangs_on}."
    ),
    ("agreement", "non_inferior, clinicians_like_these", "worse_within"): (
        "The jury agrees with clinicians like these worse than a clinician does, by less than {margin:g}."
    ),
    ("agreement", "non_inferior, these_clinicians", "worse_within"): (
        "The jury agrees worse than a clinician does, by less than {margin:g}, for these "
        "{clinicians:clinician} only; not shown for others like them."
    ),
    ("agreement", "exploratory", "protocol_late"): (
        "Exploratory, not evidence: the protocol (margin {margin:g}) was fixed after {ratings:rating}."
    ),
    ("agreement", "exploratory", "protocol_for_any"): (
        "Exploratory, not evidence: the protocol (margin {margin:g}) names no jury."
    ),
    ("juries", "inconclusive", "verdict_on"): (
        "No jury to recommend yet: the best, {jury}, is not shown to meet the study's protocol."
    ),
    ("monitoring", "no_baseline", "below_floor"): (
        "Agreement is below the floor of {floor:z.2f}; there is no earlier period to compare with."
    ),
    ("monitoring", "inconclusive", "below_floor"): (
        "The ICC of {period} is below the floor of {floor:z.2f}; one period alone does not show a fall."
    ),
    ("monitoring", "inconclusive", "lower_than_baseline"): (
        "Agreement is lower than in {baseline}, but no alarm is raised."
    ),
    ("monitoring", "fallen", "shown_below_floor"): (
        "Agreement is below the floor of {floor:z.2f}."
    ),
}
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
BIG_POOL = "Verdicts on single benchmarks: see below, each with its own interval."
Z = {
    "paper": (
        "z within each rater over all of the rater's composites in the analysed set (sd with n - 1), "
        "then the mean over the clinicians, and over the jury, of a response: section 4.3.3 of the "
        "MedHELM paper"
    ),
    "published": (
        "the mean of raw composites over the clinicians, and over the jury, of a response, then z of "
        "the two columns over the responses that have both: what the MedHELM paper's Table 2 was "
        "computed with"
    ),
}
LIKE = (
    "Each clinician is held out in turn: the ICC of the jury with the mean of the other clinicians, "
    "minus that of the held-out clinician with the same mean, on the same responses. Each of the two "
    "ICCs is one figure over all clinicians. Only this comparison supports that a jury agrees no worse "
    "than a clinician does. It is about these clinicians; the interval is over instances, not "
    "clinicians."
)
MISSING = (
    "A rating that is missing stays missing and is counted. Nothing is filled in. A reading that "
    "lacks a criterion has no composite. "
)


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


def protocol_facts(protocol: "Protocol", unit: str = "ICC") -> Iterator[tuple[str, str]]:
    """Yield what a protocol fixes: the name of each thing, and the thing in words; `unit` is the margin's."""
    whose = f"on {protocol.criterion}" if protocol.criterion else "on the composite"
    because = f": {protocol.because}" if protocol.because else ""
    yield "Margin", f"{protocol.margin:g} in {unit} of like for like, {whose}{because}"
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
    before = "fixed before any rating was seen" if protocol.set_at else "taken as fixed beforehand"
    when = when if protocol.late else before
    day = f" ({protocol.set_at})" if protocol.set_at else ""
    again = f"; it replaces {counted(protocol.replaced, 'protocol')}" if protocol.replaced else ""
    return f"{when}{day}{again}"
