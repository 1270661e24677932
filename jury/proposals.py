"""Ask a model for a rubric that brings a jury closer to the clinicians.

It is shown the rubric as jurors read it, and cases: responses whose scores by jurors are far from the
clinicians', with all that both said. It may give guidance for each criterion and rewrite anchors;
names, questions, scale, what is critical and the prompt stay, so that both rubrics' scores can be
compared. An answer is read as strictly as a rating: one object, no other key, texts only. All else is
an unusable answer, and changes nothing.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Engine

from data.card import Card
from data.question import PLACEHOLDER
from data.rubric import Criterion, Rubric, first_complaint
from data.rubrics.injection import disarm
from data.safe_text import one_line
from data.schema import Proposal, Status, now
from data.study.calls import Step
from jury.admission import admit, api_keys
from jury.answer_text import objects
from jury.budget import Budget
from jury.call import Answer, Call, Provider, Turn, Usage
from jury.conversation import Conversation, Writer, hash_request, not_asked_columns
from jury.panel import Juror, Panel, refuse_ended
from jury.parse import LONGEST, AnswerReading, storable
from jury.providers.registry import open_provider
from jury.run import RunLimits, known_sessions, run_all, run_lock, run_loop
from jury.run_result import RunResult, RunTally, with_study_spending
from jury.session import JurorSession, Patience, RunContext

LONGEST_TEXT = 3_000  # characters of a case's text that the model is shown
LONGEST_GUIDANCE = 2_000
ANSWER_TOKENS = 4_000
AGAIN = "This answer cannot be used: {reason}. Answer with one JSON object only, in the form given above."
QUESTION = Path(__file__).with_name("proposal_question.txt").read_text("utf-8").rstrip("\n")
SIMULATED_GUIDANCE = "simulated; learned from nothing"


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one clinician or juror gave a response, and what they said of it, line by line."""

    scores: Mapping[str, float]
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """A response on which jurors and clinicians differ. Clinicians have no names here."""

    card: Card
    clinicians: tuple[Opinion, ...]
    jurors: Mapping[str, Opinion]


@dataclass(frozen=True, slots=True)
class ProposalRequest:
    """What a model is asked to better: a rubric, cases it fails on, and rubrics that did not help.

    `improvement` and `round` are where the study keeps the call; `base` is the rubric that the
    clinicians rated on.
    """

    improvement: int
    round: int
    base: Rubric
    rubric: Rubric
    cases: tuple[Case, ...]
    tried: tuple[Rubric, ...] = ()


@dataclass(frozen=True, slots=True)
class ProposalReading(AnswerReading):
    """The reading of a proposal: the rubric that it makes, None where it makes none."""

    rubric: Rubric | None = None


@dataclass
class _Heard:
    """What came of the one question."""

    reading: ProposalReading | None = None


def ask_for_rubric(
    engine: Engine,
    proposer: Juror,
    request: ProposalRequest,
    *,
    budget: Budget | None = None,
    patience: Patience = Patience(),  # noqa: B008 - frozen
) -> tuple[ProposalReading | None, RunResult]:
    """Ask a model for a better rubric; its call is stored with what it cost, whatever came of it.

    Returns
    -------
    reading
        None where nothing was asked, as the next call could pass the cap.
    result
        What was spent; see `run_panel`.

    Raises
    ------
    BadPanel
        Before anything is sent: the model is not allowed, its key is missing, or it has ended.
    """
    asked = proposer.model_copy(update={"max_tokens": max(proposer.max_tokens, ANSWER_TOKENS)})
    panel, budget = admit(Panel(name="proposer", juror=(asked,))), budget or Budget()
    refuse_ended(panel, now().date())
    secrets = api_keys(panel)
    tally, heard = RunTally(1, None), _Heard()
    with run_lock(engine):
        [juror] = panel.juror
        line: Provider = (
            SimulatedProposer(juror, request.rubric)
            if juror.simulated
            else open_provider(juror, secrets[juror.name])
        )
        sessions = known_sessions(engine, panel, {juror.name: line})
        budget.begin(engine, panel)
        asking = partial(_ask, Writer(engine), heard)
        queue: Iterator[Sequence[ProposalRequest]] = iter([(request,)])
        run_loop(run_all(sessions, [queue], asking, tally, RunLimits(1, budget, patience)))
        result = with_study_spending(tally.result(panel.name, 1, sessions), engine, budget)
    return heard.reading, result


async def _ask(
    writer: Writer,
    heard: _Heard,
    context: RunContext,
    session: JurorSession,
    request: ProposalRequest,
) -> Status | None:
    return await _ProposalConversation(writer, session, request, heard).run(context)


class _ProposalConversation(Conversation[ProposalReading]):
    """One model asked for one rubric."""

    def __init__(
        self, writer: Writer, session: JurorSession, request: ProposalRequest, heard: _Heard
    ) -> None:
        question = Turn("user", question_for(request))
        super().__init__(writer, session, question, schema_for(request.rubric))
        self.request, self.heard = request, heard

    @property
    def subject(self) -> dict[str, int]:
        """Neither a response nor an instance."""
        return {}

    def read(self, answer: Answer) -> ProposalReading:
        """Return the reading of an answer, and keep it."""
        if answer.status != Status.OK:
            reading = ProposalReading(answer.status, answer.reason)
        else:
            reading = read_proposal(answer.text, self.request)
        self.heard.reading = reading
        return reading

    def retry_question(self, reason: str) -> str:
        """Return the question that follows an answer which cannot be used."""
        return AGAIN.replace("{reason}", reason)

    def request_hash(self, call: Call) -> str:
        """Return the hash of a request."""
        return hash_request(self.session.juror, call)

    def step(self, columns: dict[str, Any], reading: ProposalReading) -> Step:
        """Return the proposal that is stored of a request."""
        return self._kept(columns, reading.rubric)

    async def not_asked(self, status: Status, reason: str) -> Status:
        """Store why the model was not asked."""
        digest = self.request_hash(self.call())
        await self.writer.write(
            self._kept(not_asked_columns(self.session.rater, status, reason, digest), None)
        )
        return status

    def _kept(self, columns: dict[str, Any], rubric: Rubric | None) -> Step:
        request = self.request
        made = Proposal(
            improvement=request.improvement,
            round=request.round,
            parent=request.rubric.sha256,
            rubric_sha256=rubric.sha256 if rubric else None,
            **columns,
        )
        return Step(proposal=made, rubrics=tuple(filter(None, (request.rubric, rubric))))


def question_for(request: ProposalRequest) -> str:
    """Return the question; tags that it uses are broken in the texts of cases."""
    parts = {
        "criteria": request.rubric.criteria_text(),
        "cases": "\n\n".join(
            f"Case {number}\n{_case_text(case)}" for number, case in enumerate(request.cases, 1)
        ),
        "tried": "\n\n".join(_words_of(rubric) for rubric in request.tried) or "nothing yet",
        "form": json.dumps(_form(request.rubric), indent=1, ensure_ascii=False),
    }
    safe = {name: disarm(text, QUESTION) for name, text in parts.items()}
    return PLACEHOLDER.sub(lambda tag: safe[tag[1]], QUESTION)


def schema_for(rubric: Rubric) -> dict[str, Any]:
    """Return the form of a proposal as a closed JSON Schema; every text may be empty."""
    return _closed(_form(rubric))


def read_proposal(text: str, request: ProposalRequest) -> ProposalReading:
    """Return the reading of an answer's text; never raises, never guesses."""
    found = [value for value in objects(text[:LONGEST]) if isinstance(value, dict)]
    chosen = [value for value in found if "guidance" in value] or found
    if not chosen:
        return ProposalReading(Status.INVALID_JSON, "the answer holds no JSON object")
    if why := _fault(chosen[-1], _form(request.rubric), ""):
        return ProposalReading(Status.INVALID_JSON, storable(why))
    return _made(chosen[-1], request)


def _made(proposed: Mapping[str, Any], request: ProposalRequest) -> ProposalReading:
    """Return the rubric that a proposal makes, or why it makes none."""
    rubric = request.rubric
    changes = {
        "criterion": tuple(_changed(criterion, proposed) for criterion in rubric.criterion),
        "version": f"{request.base.version}+{request.improvement}.{request.round}",
        "parent": rubric.sha256,
    }
    plain = {name: getattr(rubric, name) for name in type(rubric).model_fields}
    try:
        new = Rubric(**(plain | changes))
    except ValidationError as error:
        return ProposalReading(Status.INVALID_JSON, first_complaint(error.errors()))
    if new.criteria_text() == rubric.criteria_text():
        return ProposalReading(Status.INVALID_JSON, "it changes nothing")
    return ProposalReading(Status.OK, "", new)


def _changed(criterion: Criterion, proposed: Mapping[str, Any]) -> Criterion:
    guidance = storable(proposed["guidance"][criterion.name]).strip()
    words = {int(point): text for point, text in proposed["anchors"][criterion.name].items()}
    anchors = {
        point: storable(words[point]).strip() or said for point, said in criterion.anchors.items()
    }
    return criterion.model_copy(
        update={"guidance": guidance or criterion.guidance, "anchors": anchors}
    )


def _form(rubric: Rubric) -> dict[str, Any]:
    """Return the form of a proposal with empty texts."""
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


def _fault(value: object, form: object, where: str) -> str:
    """Return what of an answer is not in the form, or ""."""
    if not isinstance(form, dict):
        if not isinstance(value, str):
            return f"{where} is not a text"
        return f"{where} is too long" if len(value) > LONGEST_GUIDANCE else ""
    if not isinstance(value, dict):
        return f"{where or 'the answer'} is not an object"
    for name in (*form, *value):
        place = f"{where}.{one_line(str(name), 40)}".lstrip(".")
        if name not in value:
            return f"{place} is not given"
        if name not in form:
            return f"{place} is not asked for"
        if why := _fault(value[name], form[name], place):
            return why
    return ""


def _case_text(case: Case) -> str:
    texts = {"Source": case.card.context, "Task": case.card.prompt, "Response": case.card.response}
    lines = [f"{name}: {_cut(text)}" for name, text in texts.items() if text]
    raters = {f"Clinician {number}": one for number, one in enumerate(case.clinicians, 1)}
    raters |= {f"Model {number}": one for number, one in enumerate(case.jurors.values(), 1)}
    for name, opinion in raters.items():
        scores = "; ".join(f"{criterion} {score:g}" for criterion, score in opinion.scores.items())
        lines.append(" | ".join([f"{name} gave {scores}", *map(_cut, opinion.words)]))
    return "\n".join(lines)


def _cut(text: str) -> str:
    more = len(text) - LONGEST_TEXT
    return text if more <= 0 else f"{text[:LONGEST_TEXT]} ({more:,} more characters)"


def _words_of(rubric: Rubric) -> str:
    told = [f"{one.name}: {one.guidance}" for one in rubric.criterion if one.guidance]
    return "\n".join(told) or "other words for the anchors"


@dataclass
class SimulatedProposer:
    """A simulated model: what it proposes says that it is simulated, and helps nobody."""

    juror: Juror
    rubric: Rubric

    async def complete(self, call: Call) -> Answer:
        """Return a proposal in the form that a real model gives it."""
        form = _form(self.rubric)
        form["guidance"] = dict.fromkeys(
            self.rubric.criteria, f"{SIMULATED_GUIDANCE} ({len(call.messages[0].text)})"
        )
        return Answer(
            Status.OK,
            text=json.dumps(form),
            sent={"simulated": self.juror.model},
            usage=Usage(tokens_in=0, tokens_out=0),
            http=200,
            returned_model=self.juror.model,
        )

    async def close(self) -> None:
        """Do nothing: there is no connection."""
