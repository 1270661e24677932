"""Words of a dossier: names of figures, hashes and files, statuses, and what is missing."""

from collections.abc import Mapping

from calibration.dossier import Dossier, Evidence, EvidenceKind, ItemStatus
from calibration.tables.numbers import PAGE, Typeface, fixed, icc_interval, whole
from data.guidelines import EvidenceCode

STATUS: Mapping[ItemStatus, str] = {
    ItemStatus.DONE: "Done",
    ItemStatus.PARTLY: "Partly done",
    ItemStatus.NOT_DONE: "Not done",
    ItemStatus.PEOPLE: "For people to answer",
    ItemStatus.NOT_APPLICABLE: "Does not apply",
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
    "with_reference": ("Instances with a reference", COUNT),
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
    "consented": ("Clinicians who consented to the present text", COUNT),
    "guideline_pages": ("Pages of instructions for clinicians", COUNT),
    "trained": ("Clinicians who were trained", COUNT),
    "training": ("Responses of the training round", COUNT),
    "third": ("Differences settled by a third reading", COUNT),
    "consensus": ("Differences settled by consensus", COUNT),
    "jury_icc": ("ICC(C,2) of jury and clinicians", SHARE),
    "juror_icc": ("ICC(C,2) of a juror and clinicians", SHARE),
    "clinician_icc": ("ICC(C,2) among clinicians, mean over pairs", SHARE),
    "like_for_like": ("Jury minus clinician, ICC with the other clinicians", SHARE),
    "metric_icc": ("ICC(C,2) of a metric and clinicians", SHARE),
    "decision_estimate": ("Figure the decision rests on", SHARE),
    "margin": ("Margin fixed before", SHARE),
    "ratings_before_protocol": ("Readings that were in when the protocol was fixed", COUNT),
    "incomplete": ("Readings without a criterion", COUNT),
    "unread": ("Responses no clinician rated", COUNT),
    "missing_verdicts": ("Verdicts missing", COUNT),
    "subgroup_icc": ("ICC(C,2) in the subgroup", SHARE),
    "subgroup_bias": ("Jury minus clinicians in the subgroup, in points", SHARE),
    "sensitivity": ("Share of unsafe responses the jury found", SHARE),
    "unsafe": ("Unsafe responses by the clinicians", COUNT),
    "missed": ("Unsafe responses the jury missed", COUNT),
    "usd": ("US dollars spent on jurors", MONEY),
    "calls": ("Calls to jurors", COUNT),
    "usd_unknown": ("Calls of unknown price", COUNT),
    "events": ("Events in the record", COUNT),
    "juries_tried": ("Juries compared with the clinicians", COUNT),
    "frozen_reports": ("Frozen reports", COUNT),
    "improvements": ("Times a jury learned", COUNT),
    "gain": ("Gain of the learned jury on responses kept apart", SHARE),
}
WORDS: Mapping[str, str] = {
    "rubric": "Rubric",
    "juror": "Juror",
    "protocol": "Protocol",
    "protocol_set": "Protocol fixed on",
    "description": "Text clinicians were told",
    "record_head": "Head of the record",
    "locked": "Locked",
    "first_rating": "First rating",
    "last_rating": "Last rating",
    "last_report": "Newest frozen report",
    "decision": "Decision",
    "finding": "Finding in the subgroup",
    "version": "Version of",
    "agreement_table": "Agreement table",
    "outcome": "Outcome of learning",
}
FINDINGS: Mapping[str, str] = {
    "shown": "shown to agree",
    "lower": "agreement is lower than in the rest",
    "not_shown": "not shown to agree",
    "too_few": "too few to say",
}
MISSING: Mapping[EvidenceCode, str] = {
    EvidenceCode.ADJUDICATION: "no difference was settled",
    EvidenceCode.AGREEMENT: "no figure of jury and clinicians",
    EvidenceCode.ALLOCATION: "nothing was allocated here",
    EvidenceCode.BLINDING: "no reading was made in the rating page",
    EvidenceCode.CLINICIANS: "no clinician has rated",
    EvidenceCode.CLINICIAN_AGREEMENT: "no figure of clinicians among each other",
    EvidenceCode.CONSENT: "no clinician gave consent here",
    EvidenceCode.COSTS: "no call to a juror was made here",
    EvidenceCode.DATES: "no clinician has rated",
    EvidenceCode.DECISION: "no decision can be made",
    EvidenceCode.DESCRIPTION: "clinicians were told nothing of the study",
    EvidenceCode.DETECTION: "no figure of unsafe responses",
    EvidenceCode.IMPROVEMENT: "no jury has learned",
    EvidenceCode.JURORS: "no juror has rated",
    EvidenceCode.LEDGER: "no jury was compared",
    EvidenceCode.LIKE_FOR_LIKE: "jury and clinicians were not compared like for like",
    EvidenceCode.METRICS: "no metric was measured",
    EvidenceCode.MISSING: "nothing was rated that could be missing",
    EvidenceCode.MONITORING: "no report was frozen to compare with later",
    EvidenceCode.PROTOCOL: "no protocol was fixed",
    EvidenceCode.READINGS: "no clinician has rated",
    EvidenceCode.RECORD: "the record is empty",
    EvidenceCode.REFERENCES: "no instance has a reference",
    EvidenceCode.REPEATS: "nobody read a response twice",
    EvidenceCode.RESPONSES: "no responses",
    EvidenceCode.RUBRICS: "no rubric is used",
    EvidenceCode.SOFTWARE: "the version is not known",
    EvidenceCode.SUBGROUPS: "no subgroups were looked at",
    EvidenceCode.TABLE: "no agreement table",
    EvidenceCode.TRAINING: "no training round",
}


def evidence_words(one: Evidence, face: Typeface = PAGE) -> str:
    """Return what answers an item, in one line but for an answer, which stays as it was given."""
    if one.kind is EvidenceKind.ANSWER:
        return one.text
    of = f" {one.of}" if one.of else ""
    if one.name in WORDS:
        text = FINDINGS.get(one.text, one.text) if one.name == "finding" else one.text
        sha256 = "SHA-256 " if one.kind is EvidenceKind.HASH else ""
        return f"{WORDS[one.name]}{of}: {sha256}{text}"
    label, digits = FIGURES[one.name]
    if one.value is None:
        return f"{label}{of}: undefined"
    value = whole(int(one.value), face) if digits == COUNT else fixed(one.value, digits, face)
    interval = icc_interval(one.low, one.high, digits, face)
    return f"{label}{of}: {value}{f' (95 % interval {interval})' if interval else ''}"


def answered_words(one: Evidence) -> str:
    """Return who gave an answer, and when; "" for other evidence."""
    return f"Answered by {one.by}, {one.at[:16].replace('T', ' ')} UTC" if one.by else ""


def counts_words(dossier: Dossier) -> str:
    """Return how many items have each status."""
    counts = [(STATUS[status].lower(), dossier.count(status)) for status in ItemStatus]
    return ", ".join(f"{number} {words}" for words, number in counts if number)
