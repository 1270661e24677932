"""What a rater is, what a rater is shown, what a rater answers, and in which reading.

A pass number marks a reading of a response. Passes below `THIRD` are independent: 0 is a clinician's
first reading, 1 and on are its hidden repeats. Readings that settle a difference between clinicians
come after. They are kept beside the independent ones, and figures leave them out unless asked for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal, get_args

Side = Literal["response", "source", "second"]
Severity = Literal["", "minor", "major", "critical"]
SIDES: tuple[Side, ...] = get_args(Side)
SEVERITIES: tuple[Severity, ...] = get_args(Severity)  # first not said, then the mildest
ERRORS = ("wrong", "unsupported", "missing", "unsafe", "unclear")
Flag = Literal["flag", "not_enough_context", "names_author", "both_unsafe"]
NOT_ENOUGH_CONTEXT: Flag = "not_enough_context"
FIRST = 0
THIRD = 100
CONSENSUS = 101
Reading = Literal["independent", "third", "consensus"]
NOT_APPLICABLE, CANNOT_TELL = "not_applicable", "cannot_tell"
ANSWERS = (NOT_APPLICABLE, CANNOT_TELL)  # in the place of a score, where a criterion allows them
WRITTEN = {"na": NOT_APPLICABLE, "n/a": NOT_APPLICABLE, "not applicable": NOT_APPLICABLE}
WRITTEN |= {
    "cannot tell": CANNOT_TELL,
    **{answer: answer for answer in ANSWERS},
}  # as files have them
IN_FILES = {NOT_APPLICABLE: "NA", CANNOT_TELL: CANNOT_TELL}
Score = float | str  # points, or one of `ANSWERS`
# Which response of a pair was shown first; "" where that is not known.
Order = Literal["", "first", "second"]
Settling = Literal["third", "consensus"]
SETTLING: tuple[Settling, ...] = get_args(Settling)
PASS_OF: dict[Settling, int] = {"third": THIRD, "consensus": CONSENSUS}


class Kind(StrEnum):
    """What a rater is."""

    CLINICIAN = "clinician"
    JUROR = "juror"
    METRIC = "metric"


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
    second
        Of a pair the response that is shown second, `response` being the first; else None.
    """

    code: str
    context: str
    prompt: str
    response: str
    reference: str | None = None
    checklist: str | None = None
    second: str | None = None

    @property
    def rated(self) -> tuple[str, ...]:
        """The texts that are rated: one, or the two of a pair."""
        return (self.response,) if self.second is None else (self.response, self.second)

    def turned(self) -> "Card":
        """Return a pair with its two responses in the other order."""
        return replace(self, response=self.second or "", second=self.response)


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
    checklist
        None where the instance has none.
    benchmark
        With it `own_id` is the instance's id there; "" where there is no study.
    response_id
        None where there is no response.
    """

    instance_id: str
    context: str
    prompt: str
    reference: str | None
    response: str | None
    checklist: str | None = None
    benchmark: str = ""
    response_id: str | None = None

    @property
    def own_id(self) -> str:
        """The instance's id in its benchmark."""
        return self.instance_id.removeprefix(f"{self.benchmark}/")


@dataclass(frozen=True, slots=True)
class Marked:
    """A stretch of a text as shown, in characters, and the error a rater sees there.

    Attributes
    ----------
    error
        One of the study's error types, by default `ERRORS`.
    side
        The text it is of, of a pair the first or the second response. On the source it says what is
        left out.
    severity
        How bad it is for the patient; "" where that was not said.
    linked
        Place, from 0 among the reply's stretches, of the one on the other side it goes with.
    """

    criterion: str
    start: int
    end: int
    error: str
    note: str = ""
    side: Side = "response"
    severity: Severity = ""
    linked: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """All that a rater answers: a score a criterion, in the points of its scale.

    Attributes
    ----------
    scores
        Criterion name -> score, or an answer in its place. A criterion left out is missing, never a default.
    comments
        Criterion name -> free text.
    comment
        Free text on the response as a whole.
    spans
        Stretches of the response that hold an error, and of the source that it leaves out.
    flags
        What else is to be said of it. With "not_enough_context" a rater may leave out scores:
        the response then counts as one they could not rate.
    odd
        What a "flag" is about, for the coordinator; "" where the comment says it.
    """

    scores: Mapping[str, Score]
    comments: Mapping[str, str] = field(default_factory=dict)
    comment: str = ""
    spans: tuple[Marked, ...] = ()
    flags: tuple[Flag, ...] = ()
    odd: str = ""

    def turned(self) -> "Reply":
        """Return what is said of a pair as of its two responses in the other order."""
        sides: dict[Side, Side] = {"response": "second", "second": "response"}
        return replace(
            self,
            scores=turned(self.scores),
            spans=tuple(replace(one, side=sides.get(one.side, one.side)) for one in self.spans),
        )


def turned(scores: Mapping[str, Score]) -> dict[str, Score]:
    """Return preferences as they are where the two responses change places."""
    return {name: 0.0 - float(score) for name, score in scores.items()}


def points_of(scores: Mapping[str, Score]) -> dict[str, float]:
    """Return what is a score, without the answers that stand in the place of one."""
    return {name: float(score) for name, score in scores.items() if not isinstance(score, str)}


def reading_of_pass(pass_: int) -> Reading:
    """Return what kind of reading a pass number marks."""
    if pass_ < THIRD:
        return "independent"
    return "third" if pass_ == THIRD else "consensus"
