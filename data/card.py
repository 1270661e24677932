"""What a rater is shown, and what a rater answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Card:
    """A response without its author: all that any rater, human or model, is ever shown.

    Attributes
    ----------
    code
        Opaque handle of this showing; says nothing about the author or the order.
    context, prompt, response
        Verbatim texts; context and prompt may be empty.
    reference, checklist
        Verbatim, or None where the instance has none.
    """

    code: str
    context: str
    prompt: str
    response: str
    reference: str | None = None
    checklist: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """All that a rater answers: a score a criterion, in the points of the rubric's scale.

    Attributes
    ----------
    scores
        Criterion name -> score. A criterion left out is missing, never a default.
    comments
        Criterion name -> free text.
    comment
        Free text on the response as a whole; stored with each criterion that has no own one.
    """

    scores: Mapping[str, float]
    comments: Mapping[str, str] = field(default_factory=dict)
    comment: str = ""

    def comment_on(self, criterion: str) -> str:
        """Return what was said of a criterion, or else of the whole."""
        return self.comments.get(criterion) or self.comment
