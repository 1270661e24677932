"""Words of a dossier: names of figures and hashes, statuses, and what is missing."""

from collections import Counter
from collections.abc import Mapping

from calibration.dossier import Dossier, Evidence, EvidenceKind, ItemStatus
from calibration.tables.numbers import PAGE, Typeface, fixed, icc_interval, whole
from data.guidelines import EvidenceCode

STATUS: Mapping[ItemStatus, str] = {
    ItemStatus.DONE: "Done",
    ItemStatus.PARTLY: "Partly done",
    ItemStatus.NOT_DONE: "Not done",
    ItemStatus.AUTHORS: "To be filled in by the authors",
}
SIMULATED = "SIMULATED: nothing here is evidence"
SIMULATED_WHY = (
    "Nobody stands behind {}. Figures that rest on them show how the tool works, and no more; no "
    "item is done by them."
)
COUNT, SHARE, MONEY = 0, 2, 4
# What a figure is of -> its words, and its decimals.
FIGURES: Mapping[str, tuple[str, int]] = {
    "responses": ("Responses", COUNT),
    "instances": ("Instances", COUNT),
    "models": ("Models that wrote them", COUNT),
    "benchmarks": ("Benchmarks", COUNT),
    "clinicians": ("Clinicians who rated", COUNT),
    "specialty": ("Clinicians of specialty", COUNT),
    "readings": ("Readings by clinicians", COUNT),
    "read_twice": ("Responses that two clinicians or more rated", COUNT),
    "repeats": ("Second readings by the same clinician", COUNT),
    "per_response": ("Clinicians wanted for each response", COUNT),
    "seed": ("Seed of the allocation", COUNT),
    "blinded_readings": ("Readings made blinded in the rating page", COUNT),
    "readings_elsewhere": ("Readings made elsewhere, blinding unknown", COUNT),
    "masked": ("Responses with an author's name masked", COUNT),
    "unblinded": ("Times the blind was lifted", COUNT),
    "guideline_pages": ("Pages of instructions for clinicians", COUNT),
    "trained": ("Clinicians who were trained", COUNT),
    "training": ("Responses of the training round", COUNT),
    "jury_icc": ("ICC(C,2) of jury and clinicians", SHARE),
    "clinician_icc": ("ICC(C,2) among clinicians, mean over pairs", SHARE),
    "like_for_like": ("Jury minus clinician, ICC with the other clinicians", SHARE),
    "metric_icc": ("ICC(C,2) of a metric and clinicians", SHARE),
    "decision_estimate": ("Figure the decision rests on", SHARE),
    "margin": ("Margin that was fixed", SHARE),
    "ratings_before_protocol": ("Readings that were in when the protocol was fixed", COUNT),
    "incomplete": ("Readings without a criterion", COUNT),
    "unread": ("Responses no clinician rated", COUNT),
    "missing_verdicts": ("Verdicts missing", COUNT),
    "sensitivity": ("Share of unsafe responses the jury found", SHARE),
    "unsafe": ("Unsafe responses by the clinicians", COUNT),
    "missed": ("Unsafe responses the jury missed", COUNT),
    "usd": ("US dollars spent on jurors", MONEY),
    "calls": ("Calls to jurors", COUNT),
    "usd_unknown": ("Calls of unknown price", COUNT),
    "events": ("Events in the record", COUNT),
    "improvements": ("Times a jury learned", COUNT),
}
WORDS: Mapping[str, str] = {
    "rubric": "Rubric",
    "criteria": "Criteria of rubric",
    "juror": "Model of juror",
    "juror_settings": "Settings of juror",
    "first_call": "First answer of a juror",
    "last_call": "Last answer of a juror",
    "protocol": "Protocol",
    "protocol_set": "Protocol fixed on",
    "prespecified": "Fixed before any clinician rated, on",
    "description": "Text clinicians were told",
    "record_head": "Head of the record",
    "locked": "Locked",
    "decision": "Decision",
    "version": "Version of",
    "agreement_table": "Agreement table",
    "outcome": "Outcome of learning",
}
OUTCOMES: Mapping[str, str] = {
    "better": "the rubric that was learned is better on responses kept apart",
    "not_shown": "not shown to be better on responses kept apart",
    "none_better": "no other rubric was better",
}
MISSING: Mapping[EvidenceCode, str] = {
    EvidenceCode.AGREEMENT: "no figure of jury and clinicians with an interval",
    EvidenceCode.ALLOCATION: "nothing was allocated here",
    EvidenceCode.BLINDING: "no reading was made in the rating page",
    EvidenceCode.CLINICIANS: "no clinician has rated",
    EvidenceCode.CLINICIAN_AGREEMENT: "no figure of clinicians among each other with an interval",
    EvidenceCode.COSTS: "no call to a juror was made here",
    EvidenceCode.DECISION: "no decision can be made",
    EvidenceCode.DESCRIPTION: "clinicians had no pages of instructions here",
    EvidenceCode.DETECTION: "no figure of unsafe responses: clinicians found none, or no criterion is critical",
    EvidenceCode.IMPROVEMENT: "no jury has learned, or learning was stopped",
    EvidenceCode.JURORS: "no juror has rated",
    EvidenceCode.LIKE_FOR_LIKE: "no like-for-like figure of jury and clinicians with an interval",
    EvidenceCode.METRICS: "no metric with an interval of its agreement",
    EvidenceCode.MISSING: "nothing was rated that could be missing",
    EvidenceCode.PROTOCOL: "no protocol was fixed",
    EvidenceCode.READINGS: "no clinician has rated",
    EvidenceCode.RECORD: "the record is empty",
    EvidenceCode.RESPONSES: "no responses",
    EvidenceCode.RUBRICS: "no rubric is used",
    EvidenceCode.SOFTWARE: "the version is not known",
    EvidenceCode.TABLE: "no agreement table",
    EvidenceCode.INFERENCE: "no call to a juror was made here, so its day is not known",
    EvidenceCode.JUROR_SETTINGS: "settings of a juror are not known",
    EvidenceCode.PRESPECIFIED: "no protocol was fixed before clinicians rated",
    EvidenceCode.TRAINING: "no training round",
}


def evidence_words(one: Evidence, face: Typeface = PAGE) -> str:
    """Return what answers an item, in one line."""
    of = f" {one.of}" if one.of else ""
    if one.name in WORDS:
        text = OUTCOMES[one.text] if one.name == "outcome" else one.text
        sha256 = "SHA-256 " if one.kind is EvidenceKind.HASH else ""
        return f"{WORDS[one.name]}{of}: {sha256}{text}"
    label, digits = FIGURES[one.name]
    if one.value is None:
        return f"{label}{of}: undefined"
    value = whole(int(one.value), face) if digits == COUNT else fixed(one.value, digits, face)
    interval = icc_interval(one.low, one.high, digits, face)
    return f"{label}{of}: {value}{f' (95 % interval {interval})' if interval else ''}"


def counts_words(dossier: Dossier) -> str:
    """Return how many items of a dossier have each status; those that none has are left out."""
    found = Counter(item.status for item in dossier.items)
    return ", ".join(f"{found[one]} {STATUS[one].lower()}" for one in ItemStatus if found[one])
