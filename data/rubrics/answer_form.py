"""The form of a juror's answer: an explanation before each score, after it, or none at all.

A rubric's prompt says in its own words what comes first. A juror may be asked otherwise: then the
sentence that the shipped rubrics share is put in other words, and a prompt that says it in words of
its own is followed by one that overrides them. A prompt without `{{schema}}`, such as HELM's own,
writes the form out and is never changed.
"""

from collections.abc import Sequence
from typing import Any, Literal

Explanation = Literal["before", "after", "none"]

SLOT = "{{schema}}"
WORDS = '"explanation": "<one or two sentences>"'
NUMBER = '"score": <whole number>'
FORMS: dict[Explanation, str] = {
    "before": f"{{{WORDS}, {NUMBER}}}",
    "after": f"{{{NUMBER}, {WORDS}}}",
    "none": f"{{{NUMBER}}}",
}
KEYS: dict[Explanation, tuple[str, ...]] = {
    "before": ("explanation", "score"),
    "after": ("score", "explanation"),
    "none": ("score",),
}
# The sentence of the shipped prompts, as they have it, and what it is for another order.
ASKED: dict[Explanation, str] = {
    "before": "For every criterion\n"
    "first give a short justification of one or two sentences that names what decided the point, such\n"
    "as the wrong or missing fact, then the score.",
    "after": "For every criterion\n"
    "first give the score, then a short justification of one or two sentences that names what decided\n"
    "the point, such as the wrong or missing fact.",
    "none": "For every criterion\ngive the score alone, without a justification.",
}
OVERRIDING: dict[Explanation, str] = {
    "before": "Give each explanation before its score, even where another order is named above.",
    "after": "Give each score before its explanation, even where another order is named above.",
    "none": "Give scores alone, even where explanations are asked for above.",
}


def asked_for(prompt: str, explanation: Explanation | None) -> str:
    """Return a rubric's prompt with its own sentence on the order put in other words."""
    return prompt if explanation is None else prompt.replace(ASKED["before"], ASKED[explanation])


def form_text(
    criteria: Sequence[str], scale: object, prompt: str, explanation: Explanation | None
) -> str:
    """Return the form of the answer as it stands in a prompt; None is the rubric's own order."""
    rows = ",\n".join(f'  "{name}": {FORMS[explanation or "before"]}' for name in criteria)
    text = f"{{\n{rows}\n}}\nEach score is a whole number on the scale {scale}."
    if explanation is None or ASKED["before"] in prompt:
        return text
    return f"{text}\n{OVERRIDING[explanation]}"


def form_schema(
    criteria: Sequence[str], points: Sequence[int], explanation: Explanation | None
) -> dict[str, Any]:
    """Return the answer as a closed JSON Schema, scores as an enumeration of the points."""
    kinds: dict[str, dict[str, Any]] = {
        "explanation": {"type": "string"},
        "score": {"type": "integer", "enum": list(points)},
    }
    keys = KEYS[explanation or "before"]
    verdict = {
        "type": "object",
        "properties": {key: kinds[key] for key in keys},
        "required": list(keys),
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": dict.fromkeys(criteria, verdict),
        "required": list(criteria),
        "additionalProperties": False,
    }
