"""The headline of every decision: one sentence for each subject and kind."""

from collections.abc import Mapping, Sequence

from calibration.codes import AnyCode, MonitoringCode, NoteCode
from calibration.messages.form import filled
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


def headline(subject: str, kind: str, names: Sequence[str] = (), reason: Note | None = None) -> str:
    """Return the headline of a decision; KeyError where its subject has no such kind."""
    closer = CLOSER.get((subject, kind, reason.code)) if reason else None
    if reason and closer:
        return filled(closer, dict(reason.figures))
    return HEADLINES[subject][kind].format(*names)
