"""Ask a juror of a panel to draft points of cases, from context, task and reference, never from responses.

A draft is stored as such: it counts nowhere before people have corrected and stored it. An answer is read as
strictly as a file of points: one list, every point with its weight. All else changes nothing, and
its cost is kept with the call.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from data.errors import BadInput, MedjuryError
from data.importers.points import PointRow, point_of
from data.importers.rows import Origin
from data.points import Point, case_rubric
from data.queries.cases import CaseToDraft, to_draft
from data.question import NO_REFERENCE, PLACEHOLDER
from data.rubric import Rubric
from data.rubrics.injection import disarm
from data.schema import PointCall, Status, now
from data.store.calls import Step
from data.store.points import add_drafts, refuse_points
from jury.admission import admit, api_keys, with_counted_prices
from jury.answer_text import after_reasoning, objects
from jury.budget import Budget
from jury.call import Answer, Call, Provider, Turn, Usage
from jury.conversation import Conversation, Writer, hash_request, not_asked_columns
from jury.cost import JurorEstimate
from jury.panel import Juror, Panel, refuse_ended
from jury.parse import LONGEST, AnswerReading, storable
from jury.providers.registry import open_provider
from jury.run import RunLimits, Watch, known_sessions, refuse_numbers, run_all, run_lock, run_loop
from jury.run_result import RunResult, RunTally, with_study_spending
from jury.session import JurorSession, Patience, RunContext
from jury.window import prompt_size

KEY = "points"
NAMES = ("point", "weight", "kind", "critical")
FORM = '{"points": [{"point": "...", "weight": 5, "kind": "must", "critical": false}]}'
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        KEY: {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "point": {"type": "string"},
                    "weight": {"type": "number"},
                    "kind": {"type": "string", "enum": ["must", "must_not", "nice"]},
                    "critical": {"type": "boolean"},
                },
                "required": list(NAMES),
                "additionalProperties": False,
            },
        }
    },
    "required": [KEY],
    "additionalProperties": False,
}
ANSWER_TOKENS = 4_000
LIKELY_POINTS = 8
AGAIN = (
    "This answer cannot be used: {reason}. Write the points of the same case again and answer with one "
    "JSON object only, in the form " + FORM + "."
)
QUESTION = Path(__file__).with_name("points_question.txt").read_text("utf-8").rstrip("\n")


@dataclass(frozen=True, slots=True)
class DraftReading(AnswerReading):
    """The reading of an answer; `points` is None where it gives no list that could be a case's."""

    points: tuple[Point, ...] | None = None


@dataclass(frozen=True, slots=True)
class DraftQuestion:
    """Who drafts points of which benchmark, on which rubric of points."""

    panel: Panel
    juror: str
    benchmark: str
    rubric: Rubric

    def drafting(self) -> Panel:
        """Return a panel of the juror that drafts, with room for its answers; "" is the first juror.

        Raises
        ------
        BadInput
            If the panel has no juror of that name.
        """
        jurors = {juror.name: juror for juror in self.panel.juror}
        name = self.juror or next(iter(jurors))
        if name not in jurors:
            raise BadInput(f"juror {name!r}: the jurors are {', '.join(jurors)}")
        juror = jurors[name]
        room = juror.model_copy(update={"max_tokens": max(juror.max_tokens, ANSWER_TOKENS)})
        return Panel(name=self.panel.name, juror=(room,))


def draft_points(
    engine: Engine,
    question: DraftQuestion,
    *,
    concurrency: int = 8,
    budget: Budget | None = None,
    progress: Watch | None = None,
    patience: Patience = Patience(),  # noqa: B008 - frozen
    waiting: Callable[[], None] = lambda: None,
) -> RunResult:
    """Ask for points of every instance that has neither points nor a draft; see `run_panel`.

    In the result `responses` counts those instances, and `rated` the drafts that were stored.

    Raises
    ------
    BadPanel, BadInput, Conflict, Unknown
        Before anything is sent: as `run_panel`, and if the benchmark cannot be put on points.
    """
    panel, budget = admit(question.drafting()), budget or Budget()
    refuse_numbers(panel, budget, concurrency=concurrency)
    refuse_ended(panel, now().date())
    refuse_points(engine, question.benchmark, question.rubric)
    secrets = api_keys(panel)
    [juror] = panel.juror
    with run_lock(engine, waiting):
        line: Provider = (
            SimulatedDrafter(juror)
            if juror.simulated
            else open_provider(juror, secrets[juror.name])
        )
        sessions = known_sessions(engine, panel, {juror.name: line})
        cases = to_draft(engine, question.benchmark, question.rubric)
        tally = RunTally(len(cases), progress)
        queue: Iterator[Sequence[CaseToDraft]] = iter([(case,) for case in cases])
        budget.begin(engine, panel)
        asking = partial(_ask, engine, Writer(engine), question)
        limits = RunLimits(concurrency, budget, patience)
        run_loop(run_all(sessions, [queue], asking, tally, limits))
        result = tally.result(panel.name, len(cases), sessions)
        return with_study_spending(result, engine, budget)


def draft_estimate(engine: Engine, question: DraftQuestion) -> JurorEstimate:
    """Return what drafting would take; nothing is sent or stored."""
    refuse_points(engine, question.benchmark, question.rubric)
    [juror] = with_counted_prices(question.drafting()).juror
    row = JurorEstimate(juror.name)
    for case in to_draft(engine, question.benchmark, question.rubric):
        row = row.plus(juror, points_question(case), LIKELY_POINTS, now())
    return row


async def _ask(
    engine: Engine,
    writer: Writer,
    question: DraftQuestion,
    context: RunContext,
    session: JurorSession,
    case: CaseToDraft,
) -> Status | None:
    asked = _DraftConversation(writer, session, case, question.rubric)
    size = prompt_size(session.juror, asked.messages[0].text)
    if size.is_too_long:
        return await asked.not_asked(Status.TOO_LONG, size.reason)
    status = await asked.run(context)
    if status == Status.OK and asked.points is not None:
        rows = [
            PointRow(Origin("the draft", number), case.instance_id, point)
            for number, point in enumerate(asked.points, 1)
        ]
        await asyncio.to_thread(
            add_drafts, engine, question.benchmark, rows, question.rubric, session.juror.name
        )
    return status


class _DraftConversation(Conversation[DraftReading]):
    """One juror asked for the points of one case."""

    def __init__(
        self, writer: Writer, session: JurorSession, case: CaseToDraft, rubric: Rubric
    ) -> None:
        super().__init__(writer, session, Turn("user", points_question(case)), SCHEMA)
        self.case, self.rubric = case, rubric
        self.points: tuple[Point, ...] | None = None

    @property
    def subject(self) -> dict[str, int]:
        """The instance that is asked about."""
        return {"instance": self.case.instance}

    def read(self, answer: Answer) -> DraftReading:
        """Return the reading of an answer, and keep its points."""
        if answer.status != Status.OK:
            return DraftReading(answer.status, answer.reason)
        reading = read_points(answer.text, self.rubric)
        self.points = reading.points
        return reading

    def retry_question(self, reason: str) -> str:
        """Return the question that follows an answer which cannot be used."""
        return AGAIN.replace("{reason}", reason)

    def request_hash(self, call: Call) -> str:
        """Return the hash of a request."""
        return hash_request(self.session.juror, call)

    def step(self, columns: dict[str, Any], reading: DraftReading) -> Step:
        """Return the call that is stored of a request."""
        return self._kept(columns)

    async def not_asked(self, status: Status, reason: str) -> Status:
        """Store why the juror was not asked."""
        digest = self.request_hash(self.call())
        await self.writer.write(
            self._kept(not_asked_columns(self.session.rater, status, reason, digest))
        )
        return status

    def _kept(self, columns: Mapping[str, Any]) -> Step:
        return Step(drafted=PointCall(instance=self.case.instance, **columns))


def points_question(case: CaseToDraft) -> str:
    """Return the question about one case; tags that it uses are broken in the texts."""
    texts = {
        "context": case.context,
        "prompt": case.prompt,
        "reference": case.reference or NO_REFERENCE,
    }
    parts = {name: disarm(text, QUESTION) for name, text in texts.items()} | {"form": FORM}
    return PLACEHOLDER.sub(lambda tag: parts[tag[1]], QUESTION)


def read_points(text: str, rubric: Rubric) -> DraftReading:
    """Return the reading of an answer's text; never raises, never guesses."""
    if len(text) > LONGEST:
        return DraftReading(
            Status.INVALID_JSON, f"the answer is longer than {LONGEST:,} characters"
        )
    found = list(objects(after_reasoning(text)))
    lists = [one[KEY] for one in found if isinstance(one, dict) and KEY in one]
    if not lists or any(isinstance(one, str) for one in found):
        return DraftReading(Status.INVALID_JSON, "the answer holds no whole list of points")
    if any(other != lists[-1] for other in lists):
        return DraftReading(Status.TWO_VERDICTS, "the answer holds two lists that differ")
    try:
        points = tuple(_points(lists[-1]))
        case_rubric(rubric, points)
    except MedjuryError as error:
        return DraftReading(Status.INVALID_JSON, storable(str(error)))
    return DraftReading(Status.OK, "", points)


def _points(listed: object) -> Iterator[Point]:
    """Yield a list's points, read as the cells of a file are."""
    if not isinstance(listed, list):
        raise BadInput("points: is no list, or is given twice")
    for number, one in enumerate(listed, 1):
        if not isinstance(one, dict) or not set(one) <= set(NAMES):
            raise BadInput(f"points: number {number} does not have {', '.join(NAMES)} alone")
        plain = {name: "" if one.get(name) is None else f"{one[name]}" for name in NAMES}
        cells = {name: " ".join(storable(text).split()) for name, text in plain.items()}
        yield point_of(Origin("points", number), cells)


class SimulatedDrafter:
    """A simulated juror: its points say that they are simulated, and check nothing."""

    def __init__(self, juror: Juror) -> None:
        self._juror = juror

    async def complete(self, call: Call) -> Answer:
        """Return points in the form that a real juror gives them."""
        words = ("simulated: checks nothing", "simulated: checks nothing either")
        listed = [{"point": text, "weight": 1, "kind": "must", "critical": False} for text in words]
        return Answer(
            Status.OK,
            text=json.dumps({KEY: listed}),
            sent={"simulated": self._juror.model},
            usage=Usage(tokens_in=0, tokens_out=0),
            http=200,
            returned_model=self._juror.model,
        )

    async def close(self) -> None:
        """Do nothing: there is no connection."""
