"""Ask a model for a rubric that brings a jury closer to the clinicians.

It is shown the rubric as jurors read it, and cases: responses whose scores by jurors are far from the
clinicians', with all that both said. It may give guidance for each criterion and rewrite anchors;
names, questions, scale, what is critical and the prompt stay, so that both rubrics' scores can be
compared. An answer is read as strictly as a rating: one object, no other key, texts only. All else is
an unusable answer, and changes nothing.
"""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from sqlalchemy import Engine

from data.question import PLACEHOLDER
from data.rubric import Rubric, first_complaint
from data.rubrics.injection import disarm
from data.schema import Purpose, Status
from data.study.improving import JurorVerdict, RatedResponse
from data.study.readings import Reading
from jury.budget import Budget
from jury.call import Turn
from jury.conversation import Conversation
from jury.panel import Juror, Panel
from jury.parse import ParsedAnswer
from jury.reading import storable
from jury.run import RunLimits, run_tasks
from jury.run_result import RunResult, RunTally
from jury.task import Patience, Task, reader

LONGEST_TEXT = 3_000  # characters of a case's text that the model is shown
LimitedText = Annotated[str, Field(max_length=2_000)]
ANSWER_TOKENS = 4_000
AGAIN = "This answer cannot be used: {reason}. Answer with one JSON object only, in the form given above."
QUESTION = Path(__file__).with_name("proposal_question.txt").read_text("utf-8").rstrip("\n")


class ProposalRequest(NamedTuple):
    """What a model is asked to better: a rubric, cases it fails on, and rubrics that did not help.

    `improvement` and `round` are where the study keeps the call; `base` is the rubric that the
    clinicians rated on. Each case is a response with what each juror gave it.
    """

    improvement: int
    round: int
    base: Rubric
    rubric: Rubric
    cases: tuple[tuple[RatedResponse, Mapping[str, JurorVerdict]], ...]
    tried: tuple[Rubric, ...] = ()


def ask_for_rubric(
    engine: Engine,
    proposer: Juror,
    request: ProposalRequest,
    budget: Budget,
    patience: Patience = Patience(),  # noqa: B008 - frozen
) -> RunResult:
    """Ask a model for a better rubric; what came of it is stored with what it cost.

    Returns
    -------
    RunResult
        What was spent; see `run_panel`. The proposal is in `data.study.improving.proposed_rubrics`.

    Raises
    ------
    BadPanel
        Before anything is sent: the model is not allowed, its key is missing, or it has ended.
    """
    asked = proposer.model_copy(update={"max_tokens": max(proposer.max_tokens, ANSWER_TOKENS)})
    form = _form(request.rubric)
    task = Task(
        Purpose.RUBRIC,
        {"improvement": request.improvement, "round": request.round},
        Turn("user", question_for(request)),
        _closed(form),
        reader(_model(form), partial(_made, request)),
        AGAIN,
        request.rubric,
    )
    return run_tasks(
        engine,
        Panel(name="proposer", juror=(asked,)),
        lambda _: iter([(task,)]),
        lambda writer, context, session, task: Conversation(writer, session, task).run(context),
        RunTally(1, None),
        1,
        limits=RunLimits(1, budget, patience),
    )


def question_for(request: ProposalRequest) -> str:
    """Return the question; tags that it uses are broken in the texts of cases."""
    parts = {
        "criteria": request.rubric.criteria_text(),
        "cases": "\n\n".join(
            f"Case {number}\n{_case_text(*case)}" for number, case in enumerate(request.cases, 1)
        ),
        "tried": "\n\n".join(
            "\n".join(f"{one.name}: {one.guidance}" for one in tried.criterion if one.guidance)
            or "other words for the anchors"
            for tried in request.tried
        )
        or "nothing yet",
        "form": json.dumps(_form(request.rubric), indent=1, ensure_ascii=False),
    }
    safe = {name: disarm(text, QUESTION) for name, text in parts.items()}
    return PLACEHOLDER.sub(lambda tag: safe[tag[1]], QUESTION)


def _model(form: Mapping[str, Any]) -> type[BaseModel]:
    kinds: Any = {
        f"part{at}": (_model(part) if isinstance(part, dict) else LimitedText, Field(alias=name))
        for at, (name, part) in enumerate(form.items())
    }
    return create_model("Form", __config__=ConfigDict(extra="forbid", strict=True), **kinds)


def _made(request: ProposalRequest, found: BaseModel) -> ParsedAnswer:
    rubric, proposed = request.rubric, found.model_dump(by_alias=True)
    criteria = []
    for one in rubric.criterion:
        words = proposed["anchors"][one.name]
        anchors = {
            point: storable(words[str(point)]).strip() or text
            for point, text in one.anchors.items()
        }
        guidance = storable(proposed["guidance"][one.name]).strip() or one.guidance
        criteria.append(one.model_copy(update={"guidance": guidance, "anchors": anchors}))
    changes = {
        "criterion": tuple(criteria),
        "version": f"{request.base.version}+{request.improvement}.{request.round}",
        "parent": rubric.sha256,
    }
    plain = {name: getattr(rubric, name) for name in type(rubric).model_fields}
    try:
        new = Rubric(**(plain | changes))
    except ValidationError as error:
        return ParsedAnswer(Status.INVALID_JSON, first_complaint(error.errors()))
    if new.criteria_text() == rubric.criteria_text():
        return ParsedAnswer(Status.INVALID_JSON, "it changes nothing")
    return ParsedAnswer(Status.OK, answer={"rubric": new.sha256}, rubric=new)


def _form(rubric: Rubric) -> dict[str, Any]:
    return {
        "why": "",
        "guidance": dict.fromkeys(rubric.criteria, ""),
        "anchors": {
            criterion.name: dict.fromkeys(map(str, sorted(criterion.anchors)), "")
            for criterion in rubric.criterion
        },
    }


def _closed(form: object) -> dict[str, Any]:
    if not isinstance(form, dict):
        return {"type": "string"}
    return {
        "type": "object",
        "properties": {name: _closed(part) for name, part in form.items()},
        "required": list(form),
        "additionalProperties": False,
    }


def _case_text(response: RatedResponse, given: Mapping[str, JurorVerdict]) -> str:
    """Return a case as the model reads it; clinicians have no names here."""
    card = response.card
    texts = {"Source": card.context, "Task": card.prompt, "Response": card.response}
    lines = [f"{name}: {_cut(text)}" for name, text in texts.items() if text]
    clinicians = [("Clinician", one.scores, words_of(one)) for one in response.readings]
    models = [("Model", one.scores, [*one.words]) for one in given.values()]
    for opinions in (clinicians, models):
        for number, (who, points, words) in enumerate(opinions, 1):
            scores = "; ".join(f"{criterion} {score:g}" for criterion, score in points.items())
            lines.append(" | ".join([f"{who} {number} gave {scores}", *map(_cut, words)]))
    return "\n".join(lines)


def words_of(reading: Reading) -> list[str]:
    """Return all that a clinician said of a response, line by line."""
    lines = [f"{criterion}: {comment}" for criterion, comment in reading.comments.items()]
    for mark in reading.spans:
        note = f" ({mark.note})" if mark.note else ""
        lines.append(f"{mark.criterion}: marked {mark.text!r} as {mark.error}{note}")
    return [*lines, reading.comment] if reading.comment else lines


def _cut(text: str) -> str:
    more = len(text) - LONGEST_TEXT
    return text if more <= 0 else f"{text[:LONGEST_TEXT]} ({more:,} more characters)"
