"""What a rater is shown, and what a rater answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Error = Literal["wrong", "missing", "unsupported"]
Flag = Literal["flag", "not_enough_context", "names_author"]
NOT_ENOUGH_CONTEXT: Flag = "not_enough_context"


@dataclass(frozen=True, slots=True)
class Card:
    """A response without its author: all that any rater, human or model, is ever shown.

    Attributes
    ----------
    code
        Opaque handle of this showing; says nothing about the author or the order.
    context, prompt, response
        Verbatim texts, but for masks where the response named its author; context and
        prompt may be empty.
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
class ExportRow:
    """One instance, with a response to it where there is one; never the response's author.

    Attributes
    ----------
    instance_id
        benchmark/instance, unique in the study.
    context, prompt
        Verbatim; either may be empty.
    reference
        None where the instance has none, or the rubric shows none to a rater.
    response
        As raters see it; None where the other tool is to make its own.
    """

    instance_id: str
    context: str
    prompt: str
    reference: str | None
    response: str | None


@dataclass(frozen=True, slots=True)
class Marked:
    """A stretch of the response as shown, in characters, and the error a rater sees there."""

    criterion: str
    start: int
    end: int
    error: Error
    note: str = ""


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
    spans
        Stretches of the response that hold an error.
    flags
        What else is to be said of it. With "not_enough_context" a rater may leave out scores:
        the response then counts as one they could not rate.
    """

    scores: Mapping[str, float]
    comments: Mapping[str, str] = field(default_factory=dict)
    comment: str = ""
    spans: tuple[Marked, ...] = ()
    flags: tuple[Flag, ...] = ()

    def comment_on(self, criterion: str) -> str:
        """Return what was said of a criterion, or else of the whole."""
        return self.comments.get(criterion) or self.comment
