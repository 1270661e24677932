"""A command's money: whatever phases it has and however its calls end, no cap is passed or spent twice."""

import asyncio
import random
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.jurors import Do, Seen, Stub
from kit.jury_runs import HASTY, written
from kit.learning_study import fill as fill_learning
from kit.learning_study import juror as learning_juror
from kit.money import MOST_OUT, Vendor, bill, most, panel, started
from kit.money import panel as panel_at_prices
from kit.reference_study import fill
from kit.studies import Run, Write
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
from jury.references import check_references
from jury.run import known_sessions, run_panel
from jury.run_result import RunTally
from jury.session import JurorSession, RunContext
from jury.task import Patience, Task


@pytest.mark.parametrize(
    "seed", [0, 3, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 4, 5))]
)
def test_no_phase_of_a_command_spends_again_what_an_earlier_one_may_have_spent(
    engine: Engine, write: Write, seed: int
) -> None:
    fill(engine, write, 12)
    draw = random.Random(seed)  # noqa: S311 seeded on purpose
    set_setting(engine, "budget", "1.5")
    vendor = Vendor(seed)
    with Stub(vendor) as stub:
        for command in range(4):
            name, cap = f"m{command}", draw.uniform(0.05, 0.6)
            options: dict[str, Any] = {"budget": Budget(cap), "patience": HASTY}
            for phase in range(draw.randrange(2, 5)):
                options["concurrency"] = draw.choice([1, 4, 16])
                if draw.random() < 0.3:
                    check_references(engine, panel(stub, name), **options)
                else:
                    run_panel(engine, panel(stub, name), replicates=phase + 1, **options)
                assert vendor.bills.get(name, 0.0) <= cap
                spent = study_spending(engine)
                assert sum(vendor.bills.values()) <= spent.usd <= 1.5
    assert stub.seen


def test_what_timed_out_in_one_phase_leaves_the_next_what_it_did_not_hold(
    engine: Engine, write: Write
) -> None:
    fill(engine, write, 12)
    budget = Budget(0.4)
    options: dict[str, Any] = {"budget": budget, "patience": HASTY}
    with Stub(lambda _: Do(drop=True)) as stub:
        for replicates in (1, 2, 3):
            run_panel(engine, panel(stub, "a"), replicates=replicates, **options)
        check_references(engine, panel(stub, "b"), **options)
        held = study_spending(engine)
    assert held.known == 0.0
    assert 0.3 < held.usd <= 0.4
    assert sum(map(most, stub.seen)) <= held.usd


def ended(process: subprocess.Popen[str], how: int, vendor: Vendor, seconds: float) -> None:
    """Let a command end, or stop it by a signal some time after any call came in."""
    before = sum(vendor.bills.values())
    while how and sum(vendor.bills.values()) == before and process.poll() is None:
        threading.Event().wait(0.005)
    if how and process.poll() is None:
        threading.Event().wait(seconds)
        process.send_signal(how)
    out, said = process.communicate()
    assert process.returncode in (0, 1, 2, 130, -how), out + said  # 130: stopped while it waited
    assert "Traceback" not in out + said


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("seed", "commands"), [(1, 2), *(pytest.param(n, 30, marks=pytest.mark.slow) for n in (2, 3))]
)
def test_no_kill_and_no_other_command_at_once_makes_a_cap_passed(
    url: str, engine: Engine, write: Write, seed: int, commands: int
) -> None:
    fill(engine, write, 30)
    draw = random.Random(seed)  # noqa: S311 seeded on purpose
    allowed, caps, vendor = 0.4 * commands, dict[str, float](), Vendor(seed)
    set_setting(engine, "budget", f"{allowed}")
    with Stub(vendor) as stub:
        while len(caps) < commands:
            at_once = {f"m{len(caps) + n}": draw.uniform(0.1, 0.9) for n in range(2)}
            caps |= at_once
            with ExitStack() as stack:
                running = []
                for name, cap in at_once.items():
                    file = written(write, panel(stub, name), name)
                    words = ("--max-usd", f"{cap}", "--replicates", "3")
                    running.append(started(url, file, *words))
                    stack.callback(running[-1].kill)
                for process in running:
                    how = draw.choice([0, signal.SIGINT, signal.SIGKILL, signal.SIGKILL])
                    ended(process, how, vendor, draw.uniform(0, 0.3))
            spent = study_spending(engine)
            assert sum(vendor.bills.values()) <= spent.usd <= allowed
    assert all(usd <= caps[name] for name, usd in vendor.bills.items())
    assert len(vendor.bills) >= commands / 2


def test_jury_improve_keeps_its_cap_over_all_its_phases_though_calls_time_out(
    engine: Engine, tmp_path: Path, run: Run, write: Write
) -> None:
    fill_learning(engine, tmp_path, seed=1)
    bills = {"known": 0.0, "unknown": 0.0}

    def script(seen: Seen) -> Do:
        if seen.number % 2:
            bills["known"] += bill(300, 30)
            return Do(**{**vars(learning_juror(seen)), "tokens": (300, 30)})
        bills["unknown"] += most(seen)
        return Do(drop=True)

    with Stub(script) as stub:
        words = [written(write, panel(stub, "a", "b")), "--rounds", "2", "--examples", "0"]
        code, out, said = run("jury", "improve", *words, "--max-usd", "6")
        assert code in (0, 1), said
        assert "Traceback" not in out + said
    assert sum(bills.values()) <= 6
    assert bills["unknown"] > 3 * bills["known"] > 0
    assert study_spending(engine).usd <= 6


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
class ToldVendor:
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
    vendor = ToldVendor(panel.juror[0], ends)

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


@pytest.mark.parametrize("examples", [30, pytest.param(300, marks=pytest.mark.slow)])
def test_neither_cap_is_passed_whatever_the_phases_and_however_their_calls_end(
    empty: Path, examples: int
) -> None:
    @settings(max_examples=examples)
    @given(commands=COMMANDS, allowed=st.floats(0.05, 0.8))
    def kept(commands: list[tuple[float, list[Phase]]], allowed: float) -> None:
        caps_are_kept(empty, commands, allowed)

    kept()


def caps_are_kept(empty: Path, commands: list[tuple[float, list[Phase]]], allowed: float) -> None:
    panel = panel_at_prices(_Nowhere(), "a")
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
