"""The prompt that puts a rubric to a juror, and the form of the answer it asks for.

A rubric's prompt says in its own words whether an explanation comes before its score. A juror may be
asked otherwise: then the sentence that the shipped rubrics share is replaced, and a prompt with a
sentence of its own is followed by one that overrides it. A prompt without `{{schema}}`, such as
HELM's own, writes the form out and is never changed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from data.card import CANNOT_TELL, NOT_APPLICABLE, Card

if TYPE_CHECKING:
    from data.rubric import Example, Rubric

PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
NO_REFERENCE = "(no reference is given for this instance)"
NO_CHECKLIST = "(no checklist is given for this instance)"

Explanation = Literal["before", "after", "none"]

SLOT = "{{schema}}"
Word = Literal["explanation", "evidence"]
LONGEST_EXPLANATION = 400  # characters: the two sentences that the form asks for, and no runaway
PARTS: dict[str, str] = {
    "explanation": '"explanation": "<one or two sentences>"',
    "evidence": '"evidence": "<words of the response>"',
    "score": '"score": <whole number>',
}
MEANINGS = {
    NOT_APPLICABLE: "the question does not arise for this response",
    CANNOT_TELL: "what is shown does not allow a judgement",
}
# The sentence of the shipped prompts, as they have it, and what it is for another order.
ORDER_SENTENCES: dict[Explanation, str] = {
    "before": "For every criterion\n"
    "first give a short justification of one or two sentences that names what decided the point, such\n"
    "as the wrong or missing fact, then the score.",
    "after": "For every criterion\n"
    "first give the score, then a short justification of one or two sentences that names what decided\n"
    "the point, such as the wrong or missing fact.",
    "none": "For every criterion\ngive the score alone, without a justification.",
}
OVERRIDING_SENTENCES: dict[Explanation, str] = {
    "before": "Give each explanation before its score, even where another order is named above.",
    "after": "Give each score before its explanation, even where another order is named above.",
    "none": "Give scores alone, even where explanations are asked for above.",
}


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A prompt in two pieces: what all responses of an instance share, then the rest."""

    shared: str
    own: str

    @property
    def text(self) -> str:
        """The whole."""
        return self.shared + self.own


def example_text(number: int, example: "Example") -> str:
    """Return an example as a juror reads it."""
    scores = "; ".join(
        f"{name} {', '.join(f'{score:g}' for score in given)}"
        for name, given in example.scores.items()
    )
    parts = {
        "Source": example.context,
        "Task": example.prompt,
        "Response": example.response,
        "Scores by clinicians": scores,
        "What they wrote": example.why,
    }
    told = (f"{name}: {text}" for name, text in parts.items() if text)
    return "\n".join([f"Example {number}, rated by clinicians; it is not what you rate.", *told])


def form_text(rubric: "Rubric") -> str:
    """Return which scores there are, in a sentence: one for all criteria, or one for each that differs."""
    kinds = _kinds_of_score(rubric)
    if len(kinds) == 1:
        return f"Each score is {next(iter(kinds))}."
    return " ".join(
        f"The score of {' and '.join(names)} is {kind}." for kind, names in kinds.items()
    )


def every_score(rubric: "Rubric") -> str:
    """Return what every score has to be, as a juror is told who is asked again."""
    kinds = _kinds_of_score(rubric)
    return f"every score {next(iter(kinds)) if len(kinds) == 1 else 'as that form has it'}"


def _kinds_of_score(rubric: "Rubric") -> dict[str, list[str]]:
    """Return what a score may be -> the criteria on which it may be that."""
    kinds: dict[str, list[str]] = {}
    for name in rubric.criteria:
        allowed = "".join(f' or "{answer}"' for answer in rubric.answers_of(name))
        kind = f"a whole number on the scale {rubric.scale_of(name)}{allowed}"
        kinds.setdefault(kind, []).append(name)
    return kinds


def card_texts(card: Card) -> dict[str, str]:
    """Return the texts of a card by placeholder, without those that are None."""
    rated = ("first", "second") if card.second is not None else ("response",)
    texts = {"context": card.context, "prompt": card.prompt}
    texts |= dict(zip(rated, card.rated, strict=True))
    others = {"reference": card.reference, "checklist": card.checklist}
    return texts | {name: text for name, text in others.items() if text is not None}


def prompt_in_order(prompt: str, explanation: Explanation | None) -> str:
    """Return a rubric's prompt with its sentence on explanations replaced for another order."""
    return (
        prompt
        if explanation is None
        else prompt.replace(ORDER_SENTENCES["before"], ORDER_SENTENCES[explanation])
    )


def answer_keys(explanation: Explanation | None, word: Word) -> tuple[str, ...]:
    """Return what an answer has for each criterion, in its order; None is the rubrics' own."""
    orders = {"before": (word, "score"), "after": ("score", word), "none": ("score",)}
    return orders[explanation or "before"]


def is_placeholder(text: str) -> bool:
    """Return whether an explanation repeats what stands in its place in the form, and so says nothing."""
    return any(f'"{text.strip()}"' in part for part in PARTS.values()) and text.strip() != ""


def with_lengths(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema whose explanations are bounded, for servers that keep to `maxLength`.

    A small model in an unbounded string writes until `max_tokens` ends it.
    """
    bounded = {}
    for name, part in schema.items():
        if name in ("explanation", "evidence") and isinstance(part, Mapping):
            bounded[name] = {**part, "maxLength": LONGEST_EXPLANATION}
        else:
            bounded[name] = with_lengths(part) if isinstance(part, Mapping) else part
    return bounded
