"""Finished runs of Inspect: responses, and scores as verdicts of jurors.

Only complete and valid verdicts on a rubric become ratings. What no class here names is ignored.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from data.errors import BadFile
from data.importers.finished import (
    ExportOrigin,
    P,
    Part,
    ReadRun,
    ResponsePlace,
    Taken,
    Verdict,
    in_form,
    juror_of,
    own_verdict,
    run_of,
    score_of,
    verdict_of,
)
from data.importers.grades import Grades, grades_of, no_answer, plain, rubric_of_grades
from data.importers.log_file import read_log
from data.importers.rows import JurorRecord, Origin, ResponseRow, made_id
from data.importers.safe import fault_of, wrong
from data.rubric import Rubric
from data.schema import Status

OWN = "medjury"  # the key under which our own export keeps what it says


class LogMessage(Part):
    """A turn of a talk; content in pieces may hold images, which are no text."""

    role: str = "user"
    content: str | list[dict[str, Any]] = ""

    @property
    def text(self) -> str:
        """Return its text, pieces of it on lines of their own."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(
            str(piece.get("text")) for piece in self.content if piece.get("type") == "text"
        )

    @property
    def pictures(self) -> bool:
        """Whether it holds anything other than text and reasoning."""
        pieces = self.content if isinstance(self.content, list) else []
        return any(piece.get("type") not in ("text", "reasoning") for piece in pieces)


class Choice(Part):
    """An answer."""

    message: LogMessage


class LogOutput(Part):
    """The output of a model."""

    choices: list[Choice] = Field(default_factory=list)
    completion: str = ""

    @property
    def text(self) -> str:
        """Return the first answer."""
        return self.choices[0].message.text if self.choices else self.completion


class Score(Part):
    """A score, as a scorer gave it."""

    value: Any = None
    explanation: str | None = None
    reason: str | None = None
    metadata: dict[str, Any] | None = None

    @property
    def own(self) -> Mapping[str, Any]:
        """Return the record of our own scorer, empty for any other scorer."""
        body = (self.metadata or {}).get(OWN)
        return body if isinstance(body, dict) and isinstance(body.get("jurors"), dict) else {}


class Sample(Part):
    """One answer to one input, with its scores."""

    id: str = Field(min_length=1)
    epoch: int = 1
    input: str | list[LogMessage]
    target: str | list[str] = ""
    output: LogOutput = Field(default_factory=LogOutput)
    scores: dict[str, Score] | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    error: Any = None
    invalidation: Any = None
    attachments: dict[str, str] = Field(default_factory=dict)


class LogSpec(Part):
    """The task that was run, with its model and scorers."""

    task: str = Field(min_length=1)
    model: str = Field(min_length=1)
    scorers: list[dict[str, Any]] | None = None
    model_roles: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None


class LogHead(Part):
    """A log without its samples."""

    version: int
    status: str
    eval: LogSpec
    invalidated: bool = False


def checked(path: Path, name: str, value: Any, form: type[P]) -> P:
    """Return a validated part of a log, or refuse the log without quoting it."""
    try:
        return form.model_validate(value)
    except ValidationError as error:
        key, kind = fault_of(error)
        raise wrong(path, f"{name}: {key} is not as Inspect writes it ({kind})") from error


VERSION = 2
GRADED, GRADE = "inspect_grade", "grade"  # rubric and criterion of graders that say one word
ATTACHMENT = "attachment://"
SOURCE = "Inspect log"
AGAIN = "a study's own response, rated again"
PREFIX = "inspect."
CRITERIA = PREFIX + "criteria"  # scorers that are named as criteria, taken together
REASON = re.compile(r"[a-z][a-z_]{0,39}")
Verdicts = Mapping[str, Verdict]


@dataclass(frozen=True, slots=True)
class ScoredResponse:
    """A response as a row of the study, with the score of each scorer.

    `place` is where it belongs in the study that our own task was exported from.
    """

    row: ResponseRow
    scores: Mapping[str, Score]
    place: ResponsePlace | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectLog(ReadRun):
    """A log that can be imported.

    Attributes
    ----------
    status
        success, error or cancelled: of the latter two only the samples that ended are there.
    rubric_sha256
        Of the rubric that our own scorer rated on; "" where it did not.
    again
        Responses of a study that were rated again; nobody else's study can take them.
    kept
        Ids of responses that are in the study already.
    """

    spec: LogSpec
    status: str
    scored: tuple[ScoredResponse, ...]
    rubric_sha256: str
    again: tuple[ScoredResponse, ...] = ()
    kept: frozenset[str] = frozenset()


def log_files(path: Path) -> list[Path]:
    """Return the log that a path names, or the logs in a folder by name.

    Raises
    ------
    BadFile
        If a folder has none.
    """
    if not path.is_dir():
        return [path]
    logs = sorted(file for file in path.iterdir() if file.suffix == ".eval")
    logs = logs or sorted(file for file in path.iterdir() if file.suffix == ".json")
    if not logs:
        raise wrong(path, "no log of Inspect in it (*.eval, *.json)")
    return logs


def read_inspect(path: Path, benchmark: str | None = None) -> InspectLog:
    """Read one log; its benchmark is the task's name or the given one.

    Raises
    ------
    BadFile
        If it is no log, of a version not known here, unfinished, or without anything to rate.
    """
    header, bodies = read_log(path)
    if header.get("version") != VERSION or isinstance(header.get("version"), bool):
        has = "version" in header and "eval" in header
        why = f"a log of another version than {VERSION}" if has else "no log of Inspect"
        raise wrong(path, f"{why}; write it anew with `inspect log convert`" if has else why)
    head = checked(path, "the head", header, LogHead)
    if head.status == "started":
        raise wrong(path, "the run has not ended; wait for it, or `inspect log recover`")
    if head.invalidated:
        raise wrong(path, "Inspect marks this log as invalidated")
    name = benchmark or head.eval.task
    taken, again = list[ScoredResponse](), list[ScoredResponse]()
    left_out, notes = Counter[str](), Counter[str]()
    for number, body in enumerate(bodies, start=1):
        sample = checked(path, f"sample {number}", body, Sample)
        if why := _exclusion_reason(sample):
            left_out[why] += 1
            continue
        row = _response_row(Origin(path.name, number), name, head.eval.model, sample)
        own = sample.metadata.get(OWN)
        stored = isinstance(own, dict) and bool(own.get("stored"))
        answer = ScoredResponse(row, sample.scores or {}, in_form(ResponsePlace, own))
        (again if stored else taken).append(answer)
        if not stored:
            messages = sample.input if isinstance(sample.input, list) else []
            notes["further reference"] += max(0, len(_targets(sample)) - 1)
            notes["input that is no text"] += any(message.pictures for message in messages)
    if not taken and not (again and benchmark is None):
        left_out.update({AGAIN: len(again)} if again else {})
        raise nothing_in(path.name, head.status, left_out)
    own_scores = [
        score.own for answer in (*taken, *again) for score in answer.scores.values() if score.own
    ]
    rubrics = {str(body.get("rubric_sha256")) for body in own_scores}
    if len(rubrics) > 1:
        raise wrong(path, "medjury's scorer rated on several rubrics in it: log each by itself")
    of_task = (head.eval.metadata or {}).get(OWN)
    return InspectLog(
        name=path.name,
        benchmark=name,
        spec=head.eval,
        status=head.status,
        scored=tuple(taken),
        left_out=left_out,
        notes=+notes,
        rubric_sha256=next(iter(rubrics), ""),
        origin=in_form(ExportOrigin, of_task)
        or in_form(ExportOrigin, next(iter(own_scores), None)),
        again=tuple(again),
    )


def nothing_in(name: str, status: str, left_out: Mapping[str, int]) -> BadFile:
    """Return the error that says why a log has nothing to import."""
    reasons = ", ".join(f"{count} {why}" for why, count in left_out.items()) or "no samples"
    return wrong(Path(name), f"nothing to rate in it: {reasons} (status {status[:20]})")


def _exclusion_reason(sample: Sample) -> str:
    """Return why a sample cannot be rated, or ""."""
    reasons = {
        "ended with an error": sample.error is not None,
        "invalidated": sample.invalidation is not None,
        "empty question": not "".join(_context_and_prompt(sample)).strip(),
        "empty response": not _text(sample, sample.output.text).strip(),
    }
    return next((why for why, holds in reasons.items() if holds), "")


def _response_row(origin: Origin, benchmark: str, model: str, sample: Sample) -> ResponseRow:
    """Return an answer as a row; its id does not depend on the model."""
    context, prompt = _context_and_prompt(sample)
    text = _text(sample, sample.output.text)
    epoch = [str(sample.epoch)] if sample.epoch > 1 else []
    own = sample.metadata.get(OWN)
    reference = (
        own.get("reference") if isinstance(own, dict) else next(iter(_targets(sample)), None)
    )
    return ResponseRow(
        origin=origin,
        instance_id=sample.id,
        benchmark=benchmark,
        context=context,
        prompt=prompt,
        reference=reference if isinstance(reference, str) else None,
        response_id=made_id(benchmark, sample.id, text, *epoch),
        id_made=True,
        model=model,
        response=text,
    )


def _context_and_prompt(sample: Sample) -> tuple[str, str]:
    """Return context and prompt: our own task's, else the whole input as context."""
    own = sample.metadata.get(OWN)
    if isinstance(own, dict):
        return str(own.get("context") or ""), str(own.get("prompt") or "")
    if isinstance(sample.input, str):
        return _text(sample, sample.input), ""
    turns: Sequence[LogMessage] = sample.input
    if len(turns) == 1:
        return _text(sample, turns[0].text), ""
    return "\n\n".join(f"[{turn.role}]\n{_text(sample, turn.text)}" for turn in turns), ""


def _targets(sample: Sample) -> list[str]:
    targets = [sample.target] if isinstance(sample.target, str) else sample.target
    return [text for target in targets if (text := _text(sample, target)).strip()]


def _text(sample: Sample, text: str) -> str:
    """Return a text; a long one may stand among the sample's attachments."""
    if not text.startswith(ATTACHMENT):
        return text
    return sample.attachments.get(text.removeprefix(ATTACHMENT), text)


@dataclass(frozen=True, slots=True)
class TakenLog(Taken[InspectLog]):
    """A log with the values made from it; `not_taken` are scorers that rate no criterion."""

    not_taken: tuple[str, ...]

    def figures(self) -> dict[str, Any]:
        """Return the figures of one log, as `medjury study import --json` writes them."""
        log = {"log": self.run.name, "status": self.run.status}
        return Taken.figures(self) | log | {"scorers_not_taken": list(self.not_taken)}


def finished(log: InspectLog, rubric: Rubric) -> TakenLog:
    """Return a log as values to be stored: each scorer that rates the rubric's criteria is a juror."""
    forms = _scoring_forms(log, rubric)
    jurors = dict[str, JurorRecord]()  # in the log's order, our own scorer's first
    verdicts = [_verdicts(answer, forms, rubric, jurors) for answer in log.scored]
    for name, form in forms.items():
        if form in ("keys", "only"):
            jurors[PREFIX + name] = JurorRecord(PREFIX + name, _profile(log, name))
    if apart := [name for name, form in forms.items() if form == "criterion"]:
        profile = _profile(log, apart[0]) | {"scorer": "+".join(apart)}
        jurors[CRITERIA] = JurorRecord(CRITERIA, profile)
    lacking = Verdict({}, {}, Status.REQUEST_FAILED, "the log has no score of this scorer")
    judged = [
        (answer.row, {juror: given.get(juror, lacking) for juror in jurors})
        for answer, given in zip(log.scored, verdicts, strict=True)
    ]
    values = run_of(SOURCE, rubric, tuple(jurors.values()), judged)
    new = tuple(row for row in values.responses if row.response_id not in log.kept)
    values = replace(values, responses=new)
    return TakenLog(log, values, tuple(name for name, form in forms.items() if not form))


def graded_rubric(
    log: InspectLog, named: Grades | None = None, unless: Sequence[str] = ()
) -> Rubric | None:
    """Return a rubric for a log's grades in words, or for the given scale.

    None where no scorer gives single values, the words are of no scale that is known, or a scorer gives
    points by key to the criteria of `unless`.
    """
    values = [
        score.value for answer in log.scored for score in answer.scores.values() if not score.own
    ]
    if any(name in value for value in values if isinstance(value, dict) for name in unless):
        return None
    single = [one for one in values if isinstance(one, str | int | float) and one == one]
    words = [value for value in single if isinstance(value, bool) or score_of(value) is None]
    partial = any(
        bool((scorer.get("options") or {}).get("partial_credit"))
        for scorer in log.spec.scorers or ()
    )
    grades = named or (grades_of(words, partial) if words else None)
    return rubric_of_grades(GRADED, [GRADE], grades, SOURCE) if grades and single else None


def _point(value: Any, criterion: str, rubric: Rubric) -> float | None:
    """Return a score: a number, or the point whose anchor is the grade."""
    number = score_of(value)
    if number is not None or not isinstance(value, str | bool):
        return number
    anchors = next(item.anchors for item in rubric.criterion if item.name == criterion)
    grade = plain(value)
    return next((float(point) for point, word in anchors.items() if plain(word) == grade), None)


def _scoring_forms(log: InspectLog, rubric: Rubric) -> dict[str, str]:
    """Return how each scorer rates: own, keys, criterion (its name is one), only (one); or ""."""
    forms: dict[str, str] = {}
    for name in dict.fromkeys(name for answer in log.scored for name in answer.scores):
        scores = [answer.scores[name] for answer in log.scored if name in answer.scores]
        keyed = [score.value for score in scores if isinstance(score.value, dict)]
        points = (_point(score.value, rubric.criteria[0], rubric) for score in scores)
        if any(score.own for score in scores):
            forms[name] = OWN
        elif any(criterion in value for value in keyed for criterion in rubric.criteria):
            forms[name] = "keys"
        elif all(point is None for point in points):
            forms[name] = ""
        elif _name_alone(name) in rubric.criteria:
            forms[name] = "criterion"
        else:
            forms[name] = "only" if len(rubric.criteria) == 1 else ""
    named = {_name_alone(name) for name, form in forms.items() if form == "criterion"}
    if set(rubric.criteria) - named:  # scorers named as criteria rate together, or not at all
        forms = {name: "" if form == "criterion" else form for name, form in forms.items()}
    return forms


def _name_alone(name: str) -> str:
    """Return a scorer's name without its package."""
    return name.rpartition("/")[2]


def _verdicts(
    answer: ScoredResponse,
    forms: Mapping[str, str],
    rubric: Rubric,
    own: dict[str, JurorRecord],
) -> Verdicts:
    """Return juror -> verdict on a response; add the jurors of our own scorer to `own`."""
    verdicts: dict[str, Verdict] = {}
    apart: dict[str, Score] = {}
    for name, score in answer.scores.items():
        form = forms[name]
        if form == OWN:
            for name_alone, body in score.own.get("jurors", {}).items():
                juror = _own_juror(name_alone, body)
                own.setdefault(juror.handle, juror)
                verdicts[juror.handle] = own_verdict(body, rubric)
        elif form == "criterion":
            apart[_name_alone(name)] = score
        elif form:
            value = {rubric.criteria[0]: score.value} if form == "only" else score.value
            verdicts[PREFIX + name] = _verdict(value, {rubric.criteria[0]: score}, rubric)
    if apart:
        points = {name: score.value for name, score in apart.items()}
        verdicts[CRITERIA] = _verdict(points, apart, rubric)
    return verdicts


def _own_juror(name: str, body: object) -> JurorRecord:
    """Return a juror of our own scorer; without its settings, one named after Inspect."""
    settings = body if isinstance(body, dict) else {}
    model = {"model": str(settings["model"])} if settings.get("model") else {}
    return juror_of(name, settings) or JurorRecord(PREFIX + name, {"provider": SOURCE} | model)


def _verdict(value: object, scores: Mapping[str, Score], rubric: Rubric) -> Verdict:
    """Return a verdict on all of the rubric's criteria, or the reason why there is none.

    `scores` has explanations and reason, by criterion or all of them at the first.
    """
    points = value if isinstance(value, dict) else {"": math.nan}
    if points and all(isinstance(one, float) and math.isnan(one) for one in points.values()):
        reason = next(iter(scores.values())).reason or ""
        said = reason if REASON.fullmatch(reason) else "no reason is given"
        return Verdict({}, {}, Status.REQUEST_FAILED, f"unscored in Inspect: {said}")
    if lacking := [name for name in rubric.criteria if points.get(name) is None]:
        return Verdict({}, {}, Status.MISSING_CRITERION, f"no score for {', '.join(lacking)}")
    numbers = {name: _point(points[name], name, rubric) for name in rubric.criteria}
    if any(numbers[name] is None and no_answer(points[name]) for name in numbers):
        reason = "graded as no answer, which is no point of the scale"
        return Verdict({}, {}, Status.REQUEST_FAILED, reason)
    return verdict_of(
        numbers, {name: one.explanation or "" for name, one in scores.items()}, rubric
    )


def _profile(log: InspectLog, name: str) -> dict[str, Any]:
    """Return a scorer's name, and its model if the log names it, by itself or with its settings."""
    settings = next((scorer for scorer in log.spec.scorers or () if scorer.get("name") == name), {})
    options = settings.get("options")
    models = [options.get("model") if isinstance(options, dict) else None]
    models.append((log.spec.model_roles or {}).get("grader"))
    names = (model.get("model") if isinstance(model, dict) else model for model in models)
    named = next((model for model in names if model), None)
    return {"provider": SOURCE, "scorer": name} | (
        {"model": named} if isinstance(named, str) else {}
    )
