"""The worker process answers with values, keeps the server light, and may be killed at any time."""

import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil
import pytest
from kit.studies import Run, rated
from kit.study_place import StudyIn
from sqlalchemy import Engine

from annotate import worker
from annotate.assign import DesignRequest, PlannedDesign, planned_design
from annotate.worker import Worker, ask, call
from data.database import open_study
from data.errors import BadInput, BadPanel, MedjuryError, NoStudy, NotAllowed, TooFew
from data.person import OPERATOR, Person
from data.rubric import read_rubric
from data.schema import Role
from data.study.ledger import compositions_tried
from data.study.settings import set_setting
from data.study.standing import version
from jury.panel import Juror, Panel, read_panel
from medjury.services.panels import panel_probe
from medjury.services.rubric_export import RubricExport, exported_rubric

pytestmark = pytest.mark.not_quick  # the worker is a process

WAIT_SECONDS = 120
HEAVY = ("pandas", "numpy", "scipy", "altair", "pyarrow", "statsmodels", "openai", "anthropic")
SIMULATED = tuple(one.name for one in read_panel("simulated").juror)
SERVER = """
import sys
from annotate.assign import DesignRequest, planned_design
from annotate.worker import ask, call, make
from data.database import open_study
from data.person import OPERATOR
from data.rubric import read_rubric
from jury.panel import read_panel
from medjury.services.panels import RunScope, panel_probe, run_estimate
from medjury.services.rubric_export import RubricExport, exported_rubric
engine, panel = open_study(sys.argv[1]), read_panel("simulated")
for function, question in (
    (planned_design, DesignRequest(("a", "b"), 2, 0.0, 0)),
    (run_estimate, RunScope(read_panel("current"))),
    (exported_rubric, RubricExport(read_rubric("generic").to_json(), panel, "medjury", 20)),
):
    print(type(ask(OPERATOR, engine, function, question).result()).__name__)
print(type(call("probes", panel_probe, panel)[0]).__name__)
rows = [{"a": 1}]
print(type(make("annotate.vega:svg", {"data": {"values": rows}, "mark": "point"})).__name__)
print([one for one in sys.argv[2:] if one in sys.modules])
"""
TWO = DesignRequest(("clinician-1", "clinician-2"), 2, 0.0, 0)
SECRET = "s3cret-of-the-database"
PATIENT = "Mrs Krause has chest pain"


@pytest.fixture
def own() -> Iterator[Worker]:
    """Return a worker that no other test asks, its log this test's."""
    made = Worker()
    yield made
    made.end()


def answered(by: Worker, function: str, *given: object) -> object:
    """Return what a worker answers in the lane of figures."""
    return pickle.loads(by.answer("figures", pickle.dumps((function, given))))  # noqa: S301 ours


def pid_of(asked: Worker) -> int:
    """Return the number of a worker's process."""
    assert asked.child is not None
    return asked.child.process.pid


def until(true: Callable[[], bool]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + WAIT_SECONDS
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.usefixtures("small_study")
def test_a_value_comes_back_with_its_type_and_is_that_of_the_command(
    engine: Engine, run: Run
) -> None:
    planned = ask(OPERATOR, engine, planned_design, TWO).result(WAIT_SECONDS)

    assert isinstance(planned, PlannedDesign)
    _, out, _ = run("rate", "assign", "--raters", "2", "--plan", "--repeats", "0", "--json", "-")
    told = json.loads(out)
    assert (planned.load, planned.overlap) == (told["load"], told["overlap"])
    assert [planned.plan.icc_low, planned.plan.icc_high] == [
        told["plan"]["icc_low"],
        told["plan"]["icc_high"],
    ]


def test_a_question_is_computed_once_until_the_study_changes_or_it_failed(engine: Engine) -> None:
    first = ask(OPERATOR, engine, planned_design, TWO)
    assert ask(OPERATOR, engine, planned_design, DesignRequest(("a",), 1, 0.0, 0)) is not first
    before = version(engine)

    set_setting(engine, "pause_minutes", "30")

    assert version(engine) != before
    second = ask(OPERATOR, engine, planned_design, TWO)
    assert second is not first
    assert first not in worker._answers.values(), "nobody can ask for it again"
    assert second.exception(WAIT_SECONDS)
    assert ask(OPERATOR, engine, planned_design, TWO) is not second


def test_what_two_people_ask_at_once_is_computed_once(
    engine: Engine, run: Run, tmp_path: Path
) -> None:
    rated(run, tmp_path, SIMULATED, n=8)
    asked = RubricExport(read_rubric("generic").to_json(), read_panel("simulated"), "medjury", 20)

    with ThreadPoolExecutor(4) as people:
        each = people.map(lambda _: ask(OPERATOR, engine, exported_rubric, asked), range(4))
        [one] = {*each}

    assert "bundle.json" in one.result(WAIT_SECONDS).files
    assert ask(OPERATOR, engine, exported_rubric, asked) is one, "the ledger is no change"
    assert {entry.times for entry in compositions_tried(engine)} <= {1}


def test_two_studies_have_answers_of_their_own(
    engine: Engine, tmp_path: Path, study_in: StudyIn
) -> None:
    other = open_study(study_in(tmp_path, "other.db"), create=True)
    first = ask(OPERATOR, engine, planned_design, TWO)
    assert ask(OPERATOR, other, planned_design, TWO) is not first
    assert first in worker._answers.values()
    other.dispose()


def test_a_clinician_is_told_no_figures(engine: Engine) -> None:
    with pytest.raises(NotAllowed):
        ask(Person(1, "dr-a", Role.CLINICIAN), engine, planned_design, TWO)


def test_an_error_comes_back_as_its_class_with_its_message(engine: Engine, tmp_path: Path) -> None:
    keyless = Juror(
        name="a",
        provider="openai",
        model="m",
        family="f",
        base_url="http://127.0.0.1:9/v1",
        api_key_env="NO_SUCH_VARIABLE_KEY",
    )
    with pytest.raises(BadInput, match="the study has no responses yet"):
        ask(OPERATOR, engine, planned_design, TWO).result(WAIT_SECONDS)
    with pytest.raises(BadPanel, match="NO_SUCH_VARIABLE_KEY is not set"):
        call("probes", panel_probe, Panel(name="p", juror=(keyless,)))
    with pytest.raises(NoStudy, match=r"absent\.db"):
        call(
            *("figures", "annotate.worker_process:of_study"),
            *(f"sqlite:///{tmp_path / 'absent.db'}", "annotate.assign:planned_design", TWO),
        )
    with pytest.raises(TooFew, match="an ICC needs 2 responses"):
        call("figures", "calibration.icc:icc_consistency", np.ones((1, 2)))


def test_another_error_says_only_that_the_log_tells_more_and_the_log_quotes_no_text(
    own: Worker, capfd: pytest.CaptureFixture[str]
) -> None:
    told = answered(own, "builtins:int", PATIENT)

    assert isinstance(told, MedjuryError)
    assert "the server's log says why" in str(told)
    log = capfd.readouterr().err
    assert "ValueError in the worker process" in log
    assert "worker_process.py" in log
    assert PATIENT not in log + str(told)
    assert answered(own, "builtins:sum", [1, 2]) == 3


def test_what_cannot_be_sent_back_is_such_an_error_too(
    own: Worker, capfd: pytest.CaptureFixture[str]
) -> None:
    assert isinstance(answered(own, "threading:Lock"), MedjuryError)
    assert isinstance(answered(own, "no_such_module:function"), MedjuryError)
    assert isinstance(answered(own, "sys:exit"), MedjuryError)
    assert "ModuleNotFoundError" in capfd.readouterr().err
    assert answered(own, "builtins:sum", [1, 2]) == 3


def test_who_waits_for_a_process_that_is_killed_is_told_and_the_next_gets_an_answer(
    own: Worker,
) -> None:
    answered(own, "os:getpid")
    killed = pid_of(own)
    with ThreadPoolExecutor(1) as person:
        waiting = person.submit(answered, own, "time:sleep", WAIT_SECONDS)
        time.sleep(0.2)
        os.kill(killed, 9)
        with pytest.raises(MedjuryError, match="interrupted because its process ended; try again"):
            waiting.result(WAIT_SECONDS)

    assert answered(own, "os:getpid") == pid_of(own) != killed


def test_a_drawing_that_is_interrupted_is_drawn_again(own: Worker) -> None:
    answered(own, "os:getpid")
    killed = pid_of(own)
    with ThreadPoolExecutor(1) as person:
        waiting = person.submit(own.answer, "drawings", pickle.dumps(("time:sleep", (1,))))
        time.sleep(0.2)
        os.kill(killed, 9)
        assert pickle.loads(waiting.result(WAIT_SECONDS)) is None  # noqa: S301 ours

    assert pid_of(own) != killed


def test_a_process_killed_while_nobody_waits_is_not_missed(own: Worker) -> None:
    answered(own, "os:getpid")
    killed = pid_of(own)
    os.kill(killed, 9)
    until(lambda: not own.runs)

    assert answered(own, "os:getpid") != killed


def test_it_ends_when_idle_and_no_question_is_lost_to_that() -> None:
    brief = Worker(idle_seconds=0.1)
    pids = set()
    for wait in (0.0, 0.08, 0.1, 0.12, 0.5):
        time.sleep(wait)
        pids.add(answered(brief, "os:getpid"))
    until(lambda: not brief.runs)

    assert len(pids) > 1
    assert brief.child is not None
    assert brief.child.process.returncode == 0


def test_it_ends_with_the_server_also_in_the_middle_of_a_computation() -> None:
    code = (
        "from annotate import worker; import threading; worker.call('figures', 'os:getpid')\n"
        "sleep = threading.Thread(target=worker.call, args=('figures', 'time:sleep', 600))\n"
        "sleep.start(); print(worker._worker.child.process.pid, flush=True)"
    )
    server = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    child = int(server.stdout.readline())
    assert psutil.pid_exists(child)

    server.kill()
    server.wait()
    server.stdout.close()

    until(lambda: not psutil.pid_exists(child))


def test_the_password_of_a_study_is_shown_to_no_ps_and_in_no_message(
    own: Worker, capfd: pytest.CaptureFixture[str]
) -> None:
    url = f"postgresql+psycopg://medjury:{SECRET}@127.0.0.1:9/study"
    told = answered(
        own, "annotate.worker_process:of_study", url, "annotate.assign:planned_design", TWO
    )

    assert isinstance(told, NoStudy)
    child = psutil.Process(pid_of(own))
    assert "annotate.worker_process" in child.cmdline()
    assert SECRET not in " ".join([*child.cmdline(), *child.environ().values(), str(told)])
    assert SECRET not in capfd.readouterr().err


def test_the_server_loads_nothing_heavy_for_the_answers_that_it_is_given(
    engine: Engine, run: Run, tmp_path: Path
) -> None:
    rated(run, tmp_path, SIMULATED, n=8)
    url = engine.url.render_as_string(hide_password=False)

    ran = subprocess.run(
        [sys.executable, "-c", SERVER, url, *HEAVY], capture_output=True, text=True
    )

    assert ran.stdout.split() == [
        *("PlannedDesign", "RunEstimate", "RubricFiles", "ProbeRow", "str", "[]")
    ], ran.stderr
