"""Ask every juror once per instance whether its reference says more than its source.

The MedHELM paper's Appendix D: some references use facts that are absent from the source, so that a
response which keeps to the source is marked down for it. The question is about an instance, not a
response, and holds no rubric. Budget, retries, forms of answer and rate limits are those of a jury
run. An answer is read as strictly as a verdict (`jury/reading.py`): `absent` is true or false; `facts` is a
list of texts, at least one where `absent` is true and none where it is false.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict
from sqlalchemy import Engine

from data.rubric import PLACEHOLDER
from data.rubrics.injection import disarm
from data.schema import Purpose, Status
from data.study.calls import known_jurors
from data.study.references import ReferenceCard, answered_references, reference_cards
from jury.budget import Budget
from jury.call import Turn
from jury.conversation import Conversation, Writer
from jury.panel import Panel
from jury.parse import ParsedAnswer
from jury.reading import storable
from jury.run import RunLimits, Watch, run_tasks
from jury.run_result import RunResult, RunTally
from jury.session import JurorSession, RunContext
from jury.task import Patience, Task, reader
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


class ReferenceForm(BaseModel):
    """The form of an answer about a reference."""

    model_config = ConfigDict(extra="forbid", strict=True)
    absent: bool
    facts: list[str]


def check_references(
    engine: Engine,
    panel: Panel,
    *,
    concurrency: int | None = None,
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
    known_benchmarks(engine, benchmarks)
    instances = sum(1 for _ in reference_cards(engine, benchmarks))
    tally = RunTally(instances * len(panel.juror), progress)

    def unanswered(session: JurorSession) -> Iterator[Sequence[ReferenceCard]]:
        answered = answered_references(engine, session.rater)
        for card in reference_cards(engine, benchmarks):
            if card.instance in answered:
                tally.ended(session.juror.name, Status.OK)
            else:
                yield (card,)

    async def ask(
        writer: Writer, context: RunContext, session: JurorSession, card: ReferenceCard
    ) -> Status | None:
        subject, question = {"instance": card.instance}, Turn("user", prompt_for(card))
        task = Task(Purpose.REFERENCE, subject, question, SCHEMA, read_reference, AGAIN)
        return await Conversation(writer, session, task).run(context)

    return run_tasks(
        engine,
        panel,
        unanswered,
        ask,
        tally,
        instances,
        limits=RunLimits(concurrency, budget or Budget(), patience),
        waiting=waiting,
    )


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


def prompt_for(card: ReferenceCard) -> str:
    """Return the question about one reference; tags that it uses are disarmed in the texts."""
    texts = {name: getattr(card, name) for name in ("context", "prompt", "reference")}
    parts = {name: disarm(text, QUESTION) for name, text in texts.items()} | {"form": FORM}
    return PLACEHOLDER.sub(lambda tag: parts[tag[1]], QUESTION)


def _checked(found: ReferenceForm) -> ParsedAnswer:
    facts = [storable(fact).strip() for fact in found.facts if fact.strip()]
    if found.absent != bool(facts):
        why = "true, but facts names none" if found.absent else "false, but facts names some"
        return ParsedAnswer(Status.INVALID_JSON, f"absent is {why}")
    return ParsedAnswer(Status.OK, answer={"absent": found.absent, "facts": facts})


read_reference = reader(ReferenceForm, _checked)
