"""Evaluations that were run elsewhere: responses, jurors and verdicts.

A run made with an export of ours also says where it came from. Its study is known by the hash of the
record's first event, rubric and jurors by their own. The file may come from a stranger: its rubric
counts only with the hash that it claims, and a verdict only if it is complete and on the scale. Keys
that no class here names are ignored.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from data.card import ANSWERS, Score, points_of
from data.importers.rows import JurorRecord, RatingRow, ResponseRow
from data.rubric import Rubric
from data.schema import Kind, Status

LONGEST_REASON = 200


class Part(BaseModel):
    """Base of the parts of a tool's files; keys that no class names are ignored."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)


P = TypeVar("P", bound=Part)


@dataclass(frozen=True, slots=True)
class Failure:
    """A call to a juror that gave no valid verdict, with the reason if known."""

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
    jurors: tuple[JurorRecord, ...]
    ratings: tuple[RatingRow, ...]
    failures: tuple[Failure, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A juror's verdict on a response: all scores, or none and the reason."""

    scores: Mapping[str, Score]
    comments: Mapping[str, str]
    status: Status = Status.OK
    reason: str = ""


def said_of(said: Any) -> Score | None:
    """Return a score, or an answer that stands in the place of one; None for anything else."""
    return str(said) if said in ANSWERS else score_of(said)


def score_of(said: Any) -> float | None:
    """Return a score as a number, also from a text such as "4"; None for anything else."""
    if isinstance(said, bool) or not isinstance(said, int | float | str):
        return None
    try:
        value = float(said)
    except (ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None


def verdict_of(
    scores: Mapping[str, Score | None], comments: Mapping[str, str], rubric: Rubric
) -> Verdict:
    """Return a verdict with all scores, or with none if one is no number or off the scale."""
    if unread := [name for name, score in scores.items() if score is None]:
        return Verdict({}, {}, Status.INVALID_JSON, f"no number for {', '.join(unread)}")
    given = {name: score for name, score in scores.items() if score is not None}
    numbers = points_of(given)
    scales = {name: rubric.scale_of(name) for name in numbers}
    off = [
        f"{name} {score:g}"
        for name, score in numbers.items()
        if not scales[name].min <= score <= scales[name].max
    ]
    off += [
        f"{name} {answer}"
        for name, answer in given.items()
        if isinstance(answer, str) and answer not in rubric.answers_of(name)
    ]
    if off:
        reason = f"{', '.join(off)}: off the scale {rubric.scales}"
        return Verdict({}, {}, Status.OUT_OF_RANGE, reason)
    return Verdict(given, comments)


def run_of(
    source: str,
    rubric: Rubric,
    jurors: tuple[JurorRecord, ...],
    judged: Sequence[tuple[ResponseRow, Mapping[str, Verdict]]],
) -> FinishedRun:
    """Return a run from responses, each with the verdict of every juror; an invalid one has no scores."""
    ratings, failures = list[RatingRow](), list[Failure]()
    for row, verdicts in judged:
        for juror, verdict in verdicts.items():
            about = row.origin, row.response_id, juror, Kind.JUROR
            ratings += [
                RatingRow(*about, name, str(score), verdict.comments.get(name, ""))
                for name, score in verdict.scores.items()
            ]
            if verdict.status != Status.OK:
                failures.append(Failure(row.response_id, juror, verdict.status, verdict.reason))
    rows = tuple(row for row, _ in judged)
    return FinishedRun(source, rubric, rows, jurors, tuple(ratings), tuple(failures))


def missing(runs: Iterable[FinishedRun]) -> dict[str, dict[str, int]]:
    """Return juror -> status -> number of invalid verdicts."""
    counts: dict[str, Counter[str]] = {}
    for run in runs:
        for failure in run.failures:
            counts.setdefault(failure.juror, Counter())[failure.status.value] += 1
    return {juror: dict(sorted(own.items())) for juror, own in sorted(counts.items())}


class OwnJuror(Part):
    """A juror as its study knows it."""

    name: str = Field(pattern=r"^[\w.-]{1,64}$")
    family: str = Field("", max_length=64)
    profile: dict[str, Any] = Field(min_length=1)

    def record(self) -> JurorRecord:
        """Return the juror as a study keeps it."""
        made_up = self.profile.get("provider") == "simulated"
        return JurorRecord(self.name, self.profile, self.family, made_up)


class ExportOrigin(Part):
    """The study, rubric and jurors of an export; `body` is the rubric, if it is in the run."""

    study: str = ""
    rubric_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    body: dict[str, Any] | None = None
    jurors: dict[str, OwnJuror] = Field(default_factory=dict)

    def rubric(self) -> Rubric | None:
        """Return the rubric in the run; None if there is none or its hash differs."""
        try:
            rubric = Rubric(**self.body) if self.body else None
        except (ValidationError, TypeError):
            return None
        return rubric if rubric and rubric.sha256 == self.rubric_sha256 else None


class ResponsePlace(Part):
    """A response's benchmark and instance in its study; `response_id` if it is the study's own."""

    benchmark: str = Field(min_length=1)
    instance_id: str = Field(min_length=1)
    response_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRun:
    """A run as its tool wrote it.

    Attributes
    ----------
    left_out, notes
        Reason -> answers that were not taken; and what of those taken is not in the study.
    origin
        What our own export was of, None where it was not ours.
    """

    name: str
    benchmark: str
    left_out: Mapping[str, int]
    notes: Mapping[str, int]
    origin: ExportOrigin | None = None


R = TypeVar("R", bound=ReadRun)


@dataclass(frozen=True, slots=True)
class Taken(Generic[R]):
    """A run, and the values made from it."""

    run: R
    values: FinishedRun

    @property
    def benchmarks(self) -> list[str]:
        """Names of the benchmarks it has responses of, each once; else its own name."""
        names = dict.fromkeys(row.benchmark for row in self.values.responses)
        return list(names) or [self.run.benchmark]

    def figures(self) -> dict[str, Any]:
        """Return the figures of the run, as `medjury study import --json` writes them."""
        run, values = self.run, self.values
        return {
            "benchmark": run.benchmark,
            "rubric": values.rubric.name,
            "rubric_sha256": values.rubric.sha256,
            "jurors": [{"name": j.handle, "model": j.profile.get("model")} for j in values.jurors],
            "instances": len({row.instance_id for row in values.responses}),
            "responses": len(values.responses),
            "ratings": len(values.ratings),
            "missing": len(values.failures),
            "left_out": dict(run.left_out),
            "notes": dict(run.notes),
        }


@dataclass(frozen=True, slots=True)
class InstanceTexts:
    """An instance as its study has it."""

    context: str
    prompt: str
    reference: str | None
    checklist: str | None


def juror_of(name: str, settings: Mapping[str, Any]) -> JurorRecord | None:
    """Return the juror of a verdict, None if the run has no settings of it."""
    juror = in_form(OwnJuror, {**settings, "name": name})
    return juror.record() if juror else None


def in_form(form: type[P], body: object) -> P | None:
    """Return a part that an export of ours left in a run, None if it is not in our form."""
    try:
        return form.model_validate(body)
    except ValidationError:
        return None


def own_verdict(body: object, rubric: Rubric) -> Verdict:
    """Return a juror's verdict: all of the rubric's criteria on its scale, or none."""
    parts = body if isinstance(body, dict) else {}
    scores, words = parts.get("scores"), parts.get("explanations")
    if not isinstance(scores, dict):
        named = {status.value: status for status in Status if status != Status.OK}
        status = named.get(str(parts.get("status")), Status.REQUEST_FAILED)
        reason = _storable(parts.get("reason")) or "no reason is given"
        return Verdict({}, {}, status, reason[:LONGEST_REASON])
    if lacking := [name for name in rubric.criteria if scores.get(name) is None]:
        return Verdict({}, {}, Status.MISSING_CRITERION, f"no score for {', '.join(lacking)}")
    explanations = words if isinstance(words, dict) else {}
    comments = {name: _storable(explanations.get(name)) for name in rubric.criteria}
    return verdict_of({name: said_of(scores[name]) for name in rubric.criteria}, comments, rubric)


def _storable(text: object) -> str:
    """Return a text without NUL, which a database cannot hold; empty where it is none."""
    return text.replace("\x00", "\ufffd") if isinstance(text, str) else ""
