"""One jury prompt of HELM as a rubric: word for word, its placeholders in our form."""

import hashlib
import re

from data.rubric import PLACEHOLDER, Criterion, Gold, Rubric, Scale

# The open-ended benchmarks of MedHELM, by HELM's names; a rubric of ours ships for each.
BENCHMARKS = (
    "aci_bench",
    "chw_care_plan",
    "dischargeme",
    "med_dialog",
    "medalign",
    "medi_qa",
    "medication_qa",
    "mental_health",
    "mimic_bhc",
    "mimic_rrs",
    "mtsamples_procedures",
    "mtsamples_replicate",
    "starr_patient_instructions",
)
OURS = {"QUESTION": "{{context}}", "RESPONSE": "{{response}}", "GOLD_RESPONSE": "{{reference}}"}
# Twice braced up to HELM 0.5.7, once since.
THEIRS = re.compile(
    r"\{\{(QUESTION|RESPONSE|GOLD_RESPONSE)\}\}|\{(QUESTION|RESPONSE|GOLD_RESPONSE)\}"
)
SCALE = re.compile(r"scale\s+of\s+(\d{1,4})\s*(?:to|-|\u2013)\s*(\d{1,4})", re.IGNORECASE)
POINT = re.compile(r"[(,;]\s*(\d{1,4})\s*=\s*([^,;()]+)")
COMPARED = re.compile(r"compared?\b[^.<]*<gold\w*>([^.]*)\.", re.IGNORECASE)
IF_NEEDED = re.compile(r"\b(?:when|where|if)(?:ever)?\s+(?:needed|necessary)\b", re.IGNORECASE)
UNDESCRIBED = (
    "HELM has no words for this point; its prompt, which jurors read verbatim, holds all it says"
)
AUDIENCE = "the readers named in HELM's own prompt"
WIDEST = 100  # points of a scale


class Unusable(ValueError):
    """A prompt that cannot be taken, with the reason."""


def rubric_of(name: str, template: str, criteria: list[str], release: str) -> Rubric:
    """Return the rubric that puts HELM's prompt, word for word, to a juror."""
    scale = SCALE.search(template)
    if scale is None:
        raise Unusable("its prompt names no scale")
    prompt = our_prompt(template)
    low, high = int(scale[1]), int(scale[2])
    anchors = _anchors(template, low, high)
    return Rubric(
        name=f"helm_{name}",
        version=version_of(template, release),
        audience=AUDIENCE,
        gold=gold_of(prompt),
        scale=Scale(min=low, max=high),
        criterion=tuple(
            Criterion(name=one, question=_question(template, one), anchors=anchors)
            for one in criteria
        ),
        prompt=prompt,
    )


def our_prompt(template: str) -> str:
    """Return a template with HELM's placeholders in our form, or refuse one with others."""
    if PLACEHOLDER.search(THEIRS.sub("", template)):
        raise Unusable("its prompt holds a placeholder that is not HELM's")
    return THEIRS.sub(lambda found: OURS[found[1] or found[2]], template)


def version_of(template: str, release: str) -> str:
    """Return the version of the rubric of a template: the release and the template's digest."""
    return f"{release}, prompt sha256 {hashlib.sha256(template.encode()).hexdigest()}"


def gold_of(prompt: str) -> Gold:
    """Return when the prompt has the reference used; where it does not say, when needed."""
    if "{{reference}}" not in prompt:
        return "never"
    compared = COMPARED.search(prompt)
    return "when_needed" if compared is None or IF_NEEDED.search(compared[1]) else "always"


def _anchors(template: str, low: int, high: int) -> dict[int, str]:
    """Return what the prompt says of each point; HELM says it of the two ends, for all criteria."""
    if not 0 < high - low < WIDEST:
        raise Unusable(f"its prompt names the scale {low}-{high}")
    said = {int(point): " ".join(words.split()) for point, words in POINT.findall(template)}
    return {point: said.get(point, UNDESCRIBED) for point in range(low, high + 1)}


def _question(template: str, criterion: str) -> str:
    """Return the lines under the criterion's heading, else a pointer to the prompt."""
    word = re.escape(criterion).replace("_", "[ _]")
    heading = rf"^[ \t]*{word}[ \t]*\([^()\n]*\):?[ \t]*\n((?:.*\S.*(?:\n|\Z))+)"
    found = re.search(heading, template, re.IGNORECASE | re.MULTILINE)
    if found is None:
        return f"{criterion}, as HELM's prompt puts it"
    lines = (line.strip().removeprefix("-").strip() for line in found[1].splitlines())
    return " ".join(lines)
