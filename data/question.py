"""The question that a rubric puts to a juror, and the form that the answer is to have.

Pure: what medjury asks with, and what the exports carry along to ask the same elsewhere.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from data.card import Card
from data.rubrics.answer_form import Explanation, asked_for, form_schema, form_text
from data.rubrics.tags import disarm, forges

RESPONSE = "{{response}}"
PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
NO_REFERENCE = "(no reference is given for this instance)"
NO_CHECKLIST = "(no checklist is given for this instance)"


class ScaleLike(Protocol):
    """Whole-number points; as text, how a juror reads them."""

    @property
    def min(self) -> int: ...  # noqa: D102 - what a rubric's own scale says
    @property
    def max(self) -> int: ...  # noqa: D102
    @property
    def points(self) -> range: ...  # noqa: D102


class CriterionLike(Protocol):
    """One thing to rate."""

    @property
    def name(self) -> str: ...  # noqa: D102 - what a rubric's own criterion says
    @property
    def question(self) -> str: ...  # noqa: D102
    @property
    def anchors(self) -> Mapping[int, str]: ...  # noqa: D102


class RubricLike(Protocol):
    """What is looked at of a rubric to ask on it and to read the answer."""

    @property
    def prompt(self) -> str: ...  # noqa: D102 - what a rubric itself says
    @property
    def scale(self) -> ScaleLike: ...  # noqa: D102
    @property
    def criterion(self) -> Sequence[CriterionLike]: ...  # noqa: D102
    @property
    def criteria(self) -> tuple[str, ...]: ...  # noqa: D102


def scale_text(low: int, high: int) -> str:
    """Return a scale as a juror reads it."""
    return f"{low}-{high}" if low >= 0 else f"{low} to {high}"


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a juror reads: first what all responses of an instance share, then what is their own."""

    shared: str
    own: str

    @property
    def text(self) -> str:
        """The whole."""
        return self.shared + self.own


def render(rubric: RubricLike, card: Card, explanation: Explanation | None = None) -> str:
    """Return the prompt for one card; see `parts`."""
    return parts(rubric, card, explanation).text


def parts(rubric: RubricLike, card: Card, explanation: Explanation | None = None) -> Prompt:
    """Return the prompt for one card, every placeholder filled in a single pass.

    It is cut where the response begins: what stands before it is the same for all responses
    of an instance. `explanation` is where a juror is to give it; None leaves that to the
    rubric's own words.

    What is inserted is never looked at again: a `{{response}}`, a `$` or a brace
    inside a patient's text stays as it is. Only a tag that the prompt itself uses is
    broken in it, so that no text can end its part or pose as another; see `forged`.
    """
    inserted = {name: disarm(text, rubric.prompt) for name, text in _inserted(card).items()}
    filled = {
        "reference": NO_REFERENCE,
        "checklist": NO_CHECKLIST,
        "criteria": criteria_text(rubric),
        "schema": schema_text(rubric, explanation),
    } | inserted
    prompt = asked_for(rubric.prompt, explanation)
    begins = prompt.index(RESPONSE)
    shared, own = (
        PLACEHOLDER.sub(lambda found: filled[found[1]], piece)
        for piece in (prompt[:begins], prompt[begins:])
    )
    return Prompt(shared, own)


def forged(rubric: RubricLike, card: Card) -> tuple[str, ...]:
    """Return the shown parts of a card that hold a tag of this prompt: `render` breaks it.

    Such a text may be innocent, or may try to end its part and to speak to the juror.
    """
    shown = set(PLACEHOLDER.findall(rubric.prompt))
    texts = _inserted(card).items()
    return tuple(name for name, text in texts if name in shown and forges(text, rubric.prompt))


def criteria_text(rubric: RubricLike) -> str:
    """Return the criteria as a juror reads them: name, question, a line for each anchor."""
    blocks = []
    for c in rubric.criterion:
        lines = [f"{point}: {c.anchors[point]}" for point in sorted(c.anchors)]
        blocks.append("\n".join([f"{c.name}: {c.question}", *lines]))
    return "\n\n".join(blocks)


def schema_text(rubric: RubricLike, explanation: Explanation | None = None) -> str:
    """Return the form of the answer, as it stands in the prompt."""
    return form_text(rubric.criteria, rubric.scale, rubric.prompt, explanation)


def json_schema(rubric: RubricLike, explanation: Explanation | None = None) -> dict[str, Any]:
    """Return the answer as a closed JSON Schema, scores as an enumeration of the points."""
    return form_schema(rubric.criteria, rubric.scale.points, explanation)


def _inserted(card: Card) -> dict[str, str]:
    """Return the texts of a card that a prompt can show, by placeholder; none for what is None."""
    names = ("context", "prompt", "response", "reference", "checklist")
    return {name: text for name in names if (text := getattr(card, name)) is not None}
