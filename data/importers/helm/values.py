"""An evaluation that was run elsewhere, as values: responses, who judged them, and the verdicts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from data.importers.rows import RatingRow, ResponseRow
from data.rubric import Rubric
from data.schema import Status


@dataclass(frozen=True, slots=True)
class FinishedJuror:
    """A juror of that evaluation; `profile` says what is known of it, its model above all."""

    handle: str
    profile: Mapping[str, Any]
    family: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """A verdict that was asked for and does not stand, with what is known of the reason."""

    response_id: str
    juror: str
    status: Status
    reason: str


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """One model's responses to one benchmark with the verdicts of a jury on one rubric.

    `source` names the kind of evaluation, and no model: it is stored beside verdicts.
    """

    source: str
    rubric: Rubric
    responses: tuple[ResponseRow, ...]
    jurors: tuple[FinishedJuror, ...]
    ratings: tuple[RatingRow, ...]
    failures: tuple[Failure, ...]
