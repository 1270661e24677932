"""Ask every juror once per instance whether its reference says more than its source.

The MedHELM paper's Appendix D: some references use facts that are absent from the source, so that a
response which keeps to the source is marked down for it. The question is about an instance, not a
response, and holds no rubric. Budget, retries, forms of answer and rate limits are those of a jury
run. An answer is read as strictly as a rating (`jury/parse.py`): one object, or the last one that has
`absent`; `absent` is true or false; `facts` is a list of texts, at least one where `absent` is true
and none where it is false. All else is an unusable answer.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from data.rubric import PLACEHOLDER
from data.rubrics.injection import disarm
from data.schema import ReferenceCheck, Status, now
from data.study.calls import Step, known_jurors
from data.study.references import ReferenceCard, answered_references, reference_cards
from jury.admission import admit, api_keys
from jury.answer_text import objects
from jury.budget import Budget
from jury.call import Answer, Call, Provider, Turn, Usage
from jury.conversation import Conversation, Writer, hash_request, not_asked_columns
from jury.panel import Juror, Panel, refuse_ended
from jury.parse import LONGEST, AnswerReading, storable
from jury.providers.registry import open_provider
from jury.run import RunLimits, Watch, known_sessions, refuse_numbers, run_all, run_lock, run_loop
from jury.run_result import RunResult, RunTally, with_study_spending
from jury.session import JurorSession, Patience, RunContext
from jury.window import WindowUse, prompt_size, window_use
from jury.worklist import juror_record, known_benchmarks

FORM = '{"absent": true or false, "facts": ["..."]}'
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "absent": {"type": "boolean"},
        "facts": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["absent", "facts"],
    "additionalProperties": False,
}
AGAIN = (
    "This answer cannot be used: {reason}. Look at the same reference again and answer with one "
    "JSON object only, in the form " + FORM + "."
)
QUESTION = Path(__file__).with_name("reference_question.txt").read_text("utf-8").rstrip("\n")


@dataclass(frozen=True, slots=True)
class ReferenceReading(AnswerReading):
    """The reading of an answer about a reference.

    Attributes
    ----------
    absent
        Whether the reference has facts that its source has not; None where that was not answered.
    facts
        Those facts, in the juror's words.
    """

    absent: bool | None = None
    facts: tuple[str, ...] = ()


def check_references(
    engine: Engine,
    panel: Panel,
    *,
    concurrency: int = 8,
    budget: Budget | None = None,
    benchmarks: Sequence[str] | None = None,
    progress: Watch | None = None,
    patience: Patience = Patience(),  # noqa: B008 - frozen
    waiting: Callable[[], None] = lambda: None,
) -> RunResult:
    """Ask every juror about every reference that it has not answered about yet.

    The parameters are those of `run_panel`. Only instances with a reference and a context are asked
    about. In the result `responses` counts those instances, and `rated` the usable answers.

    Raises
    ------
    BadPanel
        Before anything is sent: a juror is not allowed, a key is missing, a model has ended, or
        there is a cap while a price is not known.
    BadInput
        If a number is out of range; Unknown if the study has no such benchmark.
    Conflict
        The study knows a juror of the same name with other settings.
    """
    panel, budget = admit(panel), budget or Budget()
    refuse_numbers(panel, budget, concurrency=concurrency)
    known_benchmarks(engine, benchmarks)
    refuse_ended(panel, now().date())
    secrets = api_keys(panel)
    instances = sum(1 for _ in reference_cards(engine, benchmarks))
    tally = RunTally(instances * len(panel.juror), progress)
    with run_lock(engine, waiting):
        lines: dict[str, Provider] = {
            juror.name: SimulatedReader(juror)
            if juror.simulated
            else open_provider(juror, secrets[juror.name])
            for juror in panel.juror
        }
        sessions = known_sessions(engine, panel, lines)
        queues = [_unanswered(engine, session, benchmarks, tally) for session in sessions]
        budget.begin(engine, panel)
        limits = RunLimits(concurrency, budget, patience)
        run_loop(run_all(sessions, queues, partial(_ask, Writer(engine)), tally, limits))
        return with_study_spending(tally.result(panel.name, instances, sessions), engine, budget)


def reference_windows(
    engine: Engine, panel: Panel, benchmarks: Sequence[str] | None = None
) -> dict[str, WindowUse]:
    """Return what the questions still to be asked take of each juror's context window, by name.

    Nothing is sent or stored. In the result `longest_response` names the instance.
    """
    known_benchmarks(engine, benchmarks)
    raters = known_jurors(engine, [juror_record(juror) for juror in panel.juror])
    keys = {juror.name: raters.get(juror.name, 0) for juror in panel.juror}
    answered = {name: answered_references(engine, key) for name, key in keys.items()}
    uses = {juror.name: window_use(juror) for juror in panel.juror}
    for card in reference_cards(engine, benchmarks):
        prompt = prompt_for(card)
        for juror in panel.juror:
            if card.instance not in answered[juror.name]:
                size = prompt_size(juror, prompt)
                uses[juror.name] = uses[juror.name].plus(size, card.name, is_first=True)
    return uses


def _unanswered(
    engine: Engine, session: JurorSession, benchmarks: Sequence[str] | None, tally: RunTally
) -> Iterator[Sequence[ReferenceCard]]:
    """Yield each reference that a juror has not answered about; count those that it has."""
    answered = answered_references(engine, session.rater)
    for card in reference_cards(engine, benchmarks):
        if card.instance in answered:
            tally.ended(session.juror.name, Status.OK)
        else:
            yield (card,)


async def _ask(
    writer: Writer, context: RunContext, session: JurorSession, card: ReferenceCard
) -> Status | None:
    return await _ReferenceConversation(writer, session, card).run(context)


class _ReferenceConversation(Conversation[ReferenceReading]):
    """One juror asked about one reference."""

    def __init__(self, writer: Writer, session: JurorSession, card: ReferenceCard) -> None:
        super().__init__(writer, session, Turn("user", prompt_for(card)), SCHEMA)
        self.card = card

    @property
    def subject(self) -> dict[str, int]:
        """The instance that is asked about."""
        return {"instance": self.card.instance}

    def read(self, answer: Answer) -> ReferenceReading:
        """Return the reading of an answer."""
        if answer.status != Status.OK:
            return ReferenceReading(answer.status, answer.reason)
        return read_reference(answer.text)

    def retry_question(self, reason: str) -> str:
        """Return the question that follows an answer which cannot be used."""
        return AGAIN.replace("{reason}", reason)

    def request_hash(self, call: Call) -> str:
        """Return the hash of a request."""
        return hash_request(self.session.juror, call)

    def step(self, columns: dict[str, Any], reading: ReferenceReading) -> Step:
        """Return the reference check that is stored of a request."""
        return self._check(absent=reading.absent, facts=reading.facts, **columns)

    async def not_asked(self, status: Status, reason: str) -> Status:
        """Store why the juror was not asked about the reference."""
        digest = self.request_hash(self.call())
        columns = not_asked_columns(self.session.rater, status, reason, digest)
        await self.writer.write(self._check(**columns))
        return status

    def _check(self, **columns: Any) -> Step:
        return Step(check=ReferenceCheck(instance=self.card.instance, **columns))


def prompt_for(card: ReferenceCard) -> str:
    """Return the question about one reference; tags that it uses are disarmed in the texts."""
    texts = {name: getattr(card, name) for name in ("context", "prompt", "reference")}
    parts = {name: disarm(text, QUESTION) for name, text in texts.items()} | {"form": FORM}
    return PLACEHOLDER.sub(lambda tag: parts[tag[1]], QUESTION)


def read_reference(text: str) -> ReferenceReading:
    """Return the reading of an answer's text; never raises, never guesses."""
    verdict: dict[str, Any] | None = None
    for candidate in objects(text[:LONGEST]):
        if isinstance(candidate, dict) and (verdict is None or "absent" in candidate):
            verdict = candidate
    if verdict is None:
        return ReferenceReading(Status.INVALID_JSON, "the answer holds no JSON object")
    for key in ("absent", "facts"):
        if verdict.get(key) is None:
            return ReferenceReading(Status.MISSING_CRITERION, f"{key} is not given")
    return _checked(verdict["absent"], verdict["facts"])


def _checked(absent: object, facts: object) -> ReferenceReading:
    """Return the reading of the two values, or why they contradict each other."""
    if not isinstance(absent, bool):
        return ReferenceReading(
            Status.INVALID_JSON, "absent is neither true nor false, or given twice"
        )
    if not isinstance(facts, list) or not all(isinstance(fact, str) for fact in facts):
        return ReferenceReading(Status.INVALID_JSON, "facts is not a list of texts")
    stated = tuple(storable(fact).strip() for fact in facts if fact.strip())
    if absent != bool(stated):
        why = "true, but facts names none" if absent else "false, but facts names some"
        return ReferenceReading(Status.INVALID_JSON, f"absent is {why}")
    return ReferenceReading(Status.OK, "", absent, stated)


class SimulatedReader:
    """A simulated juror: its answer is drawn from the hash of the texts, and says so."""

    def __init__(self, juror: Juror) -> None:
        self._juror = juror

    async def complete(self, call: Call) -> Answer:
        """Return an answer in the form a real juror gives it; one reference in five is marked."""
        text = call.messages[0].text
        shared = _share(text)
        absent = shared < 0.2 if _share(self._juror.name + text) < 0.9 else shared >= 0.2
        facts = [f"simulated by {self._juror.model}; not a judgement"] if absent else []
        return Answer(
            Status.OK,
            text=json.dumps({"absent": absent, "facts": facts}),
            sent={"simulated": self._juror.model},
            usage=Usage(tokens_in=0, tokens_out=0),
            http=200,
            returned_model=self._juror.model,
        )

    async def close(self) -> None:
        """Do nothing: there is no connection."""


def _share(text: str) -> float:
    """Return a number from 0 to 1 drawn from the hash of a text."""
    return int(sha256(text.encode("utf-8", "replace")).hexdigest()[:8], 16) / 16**8
