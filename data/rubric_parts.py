"""Small parts of a rubric: what points of a case count, and what they come to as a score."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

PointKind = Literal["must", "must_not", "nice"]
Name = Annotated[str, Field(pattern=r"^[\w.-]+$", max_length=64)]


class RubricPart(BaseModel):
    """Base of a rubric's parts: immutable, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True)


class PointWorth(RubricPart):
    """What a point of the case counts, above 0; see `data.points.Point`. No rater reads it."""

    weight: float
    kind: PointKind
    critical: bool


class Case(RubricPart):
    """What the points of a case come to: a score on a criterion of the benchmark's rubric.

    `rubric` is that rubric's SHA-256, `max` the top of its scale; `clipped` whether less than 0 is 0.
    """

    rubric: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    criterion: Name
    max: int
    clipped: bool
