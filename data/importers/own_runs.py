"""What an export of ours left in another tool's run: where it came from, and what each juror said.

The study is known by the hash of its record's first event, the rubric and the jurors by their own.
A file may come from a stranger: the rubric in it counts only with the hash that it claims, a verdict
only whole and on the scale. What no class here names is ignored.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from data.importers.finished import Verdict, score_of, verdict_of
from data.importers.rows import JurorRecord
from data.rubric import Rubric
from data.status import Status

LONGEST_REASON = 200


class Part(BaseModel):
    """A piece of what an export left."""

    model_config = ConfigDict(frozen=True)


class OwnJuror(Part):
    """A juror as its study knows it."""

    name: str = Field(pattern=r"^[\w.-]{1,64}$")
    family: str = Field("", max_length=64)
    profile: dict[str, Any] = Field(min_length=1)

    def record(self) -> JurorRecord:
        """Return the juror as a study keeps it."""
        made_up = self.profile.get("provider") == "simulated"
        return JurorRecord(self.name, self.profile, self.family, made_up)


class Origin(Part):
    """What an export is of; `body` is the whole rubric, where it travels along."""

    study: str = ""
    rubric_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    body: dict[str, Any] | None = None
    jurors: dict[str, OwnJuror] = Field(default_factory=dict)

    def rubric(self) -> Rubric | None:
        """Return the rubric that travelled along, None where none did or it has another hash."""
        try:
            found = Rubric(**self.body) if self.body else None
        except (ValidationError, TypeError):
            return None
        return found if found and found.sha256 == self.rubric_sha256 else None


class Place(Part):
    """Where a response belongs in its study; `response_id` where it is one of the study's own."""

    benchmark: str = Field(min_length=1)
    instance_id: str = Field(min_length=1)
    response_id: str | None = None


@dataclass(frozen=True, slots=True)
class InstanceTexts:
    """An instance as its study has it."""

    context: str
    prompt: str
    reference: str | None
    checklist: str | None


def origin_of(found: object) -> Origin | None:
    """Return where a run came from, None where it does not say so in our form."""
    try:
        return Origin.model_validate(found)
    except ValidationError:
        return None


def place_of(found: object) -> Place | None:
    """Return where a response belongs, None where the run does not say so in our form."""
    try:
        return Place.model_validate(found)
    except ValidationError:
        return None


def juror_of(name: str, told: Mapping[str, Any]) -> JurorRecord | None:
    """Return the juror that a verdict is of, None where its settings did not travel along."""
    try:
        return OwnJuror.model_validate({**told, "name": name}).record()
    except ValidationError:
        return None


def own_verdict(told: object, rubric: Rubric) -> Verdict:
    """Return what a juror said, with all of the rubric's criteria on its scale or not at all."""
    found = told if isinstance(told, dict) else {}
    scores, words = found.get("scores"), found.get("explanations")
    if not isinstance(scores, dict):
        return Verdict({}, {}, _status(found.get("status")), _reason(found.get("reason")))
    if lacking := [name for name in rubric.criteria if scores.get(name) is None]:
        return Verdict({}, {}, Status.MISSING_CRITERION, f"no score for {', '.join(lacking)}")
    said = words if isinstance(words, dict) else {}
    comments = {name: _storable(said.get(name)) for name in rubric.criteria}
    return verdict_of({name: score_of(scores[name]) for name in rubric.criteria}, comments, rubric)


def _status(found: object) -> Status:
    """Return a status that a run names, other than the one of a verdict that stands."""
    known = {one.value: one for one in Status if one != Status.OK}
    return known.get(str(found), Status.REQUEST_FAILED)


def _reason(found: object) -> str:
    return (_storable(found) or "no reason is given")[:LONGEST_REASON]


def _storable(found: object) -> str:
    """Return a text without NUL, which a database cannot hold; empty where it is none."""
    return found.replace("\x00", "\ufffd") if isinstance(found, str) else ""
