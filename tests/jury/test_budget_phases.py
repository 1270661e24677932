"""No sequence of phases, kills and calls of unknown cost passes a command's cap or the study's budget."""

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.money import MOST_OUT, bill
from kit.money import panel as at_prices
from kit.reference_study import fill
from sqlalchemy import Engine

from data.database import open_study
from data.schema import Purpose, Status
from data.study.costs import study_spending
from data.study.settings import set_setting
from jury.budget import Budget
from jury.call import Answer, Call, Turn, Usage
from jury.conversation import Conversation, Unstored, Writer, worst_case_usd
from jury.panel import Juror, Panel
from jury.parse import ParsedAnswer
from jury.run import known_sessions
from jury.run_result import RunTally
from jury.session import JurorSession, RunContext
from jury.task import Patience, Task

End = Literal["paid", "unusable", "unreported", "timeout", "refused", "killed"]
ENDS: tuple[End, ...] = ("paid", "paid", "unusable", "unreported", "timeout", "refused", "killed")
PHASES = {
    "run": (Purpose.VERDICT, {"response": 1}),
    "references": (Purpose.REFERENCE, {"instance": 1}),
    "improve": (Purpose.VERDICT, {"response": 2}),
    "probe": (Purpose.VERDICT, {"response": 1}),
}
QUICK = Patience(tries=2, first_wait=0.0, longest_wait=0.0)


class _Nowhere:
    openai_url = anthropic_url = "http://127.0.0.1:9/v1"


class _Killed(BaseException):
    """The process has ended."""


@dataclass(frozen=True)
class Phase:
    """The calls of one phase: each with the length of its prompt, and how its requests end."""

    kind: str
    calls: list[tuple[int, list[End]]]
    places: int


@dataclass
class Vendor:
    """Answers as it is told, and keeps the most that it may bill for all that it was sent."""

    juror: Juror
    ends: dict[str, Iterator[End]]
    billed: float = 0.0

    async def complete(self, call: Call) -> Answer:
        """Return how a call ends; raise where the process is to."""
        text, end = call.messages[0].text, next(self.ends[call.messages[0].text], "paid")
        most = worst_case_usd(self.juror, call) or 0.0
        self.billed += most
        await asyncio.sleep(0.001)
        if end == "killed":
            raise _Killed
        if end == "timeout":
            return Answer(Status.TIMEOUT, "timed out", transient=True)
        if end == "refused":
            self.billed -= most
            return Answer(Status.REQUEST_FAILED, "HTTP 500", http=500, transient=True)
        if end == "unreported":
            return Answer(Status.OK, text="x", http=200)
        tokens = len(text) // 2, MOST_OUT // 2
        self.billed += bill(*tokens) - most
        return Answer(
            Status.OK, text="" if end == "unusable" else "x", http=200, usage=Usage(*tokens)
        )

    async def close(self) -> None:
        """Close nothing."""


def read(answer: Answer) -> ParsedAnswer:
    if answer.status != Status.OK or answer.text:
        return ParsedAnswer(answer.status, answer.reason)
    return ParsedAnswer(Status.INVALID_JSON, "no JSON")


def worked_off(engine: Engine, budget: Budget, panel: Panel, phase: Phase) -> tuple[float, bool]:
    """Return the most that a phase may be billed, and whether it was killed."""
    purpose, subject = PHASES[phase.kind]
    prompts = [f"{number}" + "a" * length for number, (length, _) in enumerate(phase.calls)]
    ends = {text: iter(ends) for text, (_, ends) in zip(prompts, phase.calls, strict=True)}
    vendor = Vendor(panel.juror[0], ends)

    async def ask_all(session: JurorSession) -> None:
        places = asyncio.Semaphore(phase.places)
        stopping, ready = asyncio.Event(), asyncio.Semaphore(phase.places + 1)
        context = RunContext(budget, ready, places, stopping, QUICK, RunTally(0, None))
        writer = Unstored() if phase.kind == "probe" else Writer(engine)
        async with asyncio.TaskGroup() as group:
            for text in prompts:
                task = Task(purpose, subject, Turn("user", text), {}, read, "again: {reason}")
                group.create_task(Conversation(writer, session, task).run(context))

    (session,) = known_sessions(engine, panel, {"a": vendor})
    budget.begin(engine, panel)
    is_killed = False
    try:
        asyncio.run(ask_all(session))
    except* _Killed:
        is_killed = True
    return vendor.billed, is_killed


CALLS = st.tuples(st.integers(0, 2000), st.lists(st.sampled_from(ENDS), min_size=1, max_size=4))
PHASE = st.builds(
    Phase, st.sampled_from([*PHASES]), st.lists(CALLS, min_size=1, max_size=8), st.integers(1, 4)
)
COMMANDS = st.lists(
    st.tuples(st.floats(0.02, 0.3), st.lists(PHASE, min_size=1, max_size=4)), min_size=1, max_size=4
)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("budget")

    def write(name: str, text: str) -> Path:
        (folder / name).write_text(text, "utf-8")
        return folder / name

    engine = open_study(f"sqlite:///{folder / 'study.db'}", create=True)
    fill(engine, write, 2)
    engine.dispose()
    return folder / "study.db"


@given(commands=COMMANDS, allowed=st.floats(0.05, 0.8))
def test_neither_cap_is_passed_whatever_the_phases_and_however_their_calls_end(
    empty: Path, commands: list[tuple[float, list[Phase]]], allowed: float
) -> None:
    panel = at_prices(_Nowhere(), "a")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(empty, folder)
        engine = open_study(f"sqlite:///{folder}/study.db")
        set_setting(engine, "budget", f"{allowed}")
        billed_to_study = 0.0
        for cap, phases in commands:
            budget, billed = Budget(cap), 0.0
            for phase in phases:
                usd, killed = worked_off(engine, budget, panel, phase)
                billed += usd
                billed_to_study += 0.0 if phase.kind == "probe" else usd
                spent = study_spending(engine)
                assert billed <= cap + 1e-9
                assert billed_to_study <= spent.usd + 1e-9
                assert spent.usd <= allowed + 1e-9
                if killed:
                    break
        engine.dispose()
