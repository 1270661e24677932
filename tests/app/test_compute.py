"""Processes beside the server answer with values, keep it light, and may be killed at any time."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from subprocess import PIPE

import numpy as np
import psutil
import pytest
from kit.servers import free_port
from kit.studies import rated

from annotate import compute
from annotate.compute import Process, ask, call
from data.database import open_study
from data.errors import BadInput, BadPanel, MedjuryError, NoStudy, TooFew
from data.person import OPERATOR
from data.rubric import read_rubric
from data.study.ledger import compositions_tried
from data.study.settings import set_setting
from data.study.standing import version
from jury.panel import Juror, Panel, read_panel
from medjury.services.design.assign import DesignRequest, PlannedDesign, planned_design
from medjury.services.panels import panel_probe
from medjury.services.rubric_export import RubricExport, exported_rubric

WAIT_SECONDS = 120
SIMULATED = tuple(one.name for one in read_panel("simulated").juror)
DESIGN = "medjury.services.design.assign:planned_design"
TWO = DesignRequest(("clinician-1", "clinician-2"), 2, 0.0, 0)
SECRET = "s3cret-of-the-database"
PATIENT = "Mrs Krause has chest pain"


@pytest.fixture
def own():
    """Return a worker that no other test asks, its log this test's."""
    made = Process()
    yield made
    made.end()


def answered(by, function, *given):
    return by.submit(function, *given).result(WAIT_SECONDS)


def running(pid):
    """Tell whether a process runs; one that has ended may not be reaped yet."""
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def until(true):
    end = time.monotonic() + WAIT_SECONDS
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.usefixtures("small_study")
def test_a_value_comes_back_with_its_type_and_is_that_of_the_command(engine, run):
    planned = ask(OPERATOR, engine, planned_design, TWO).result(WAIT_SECONDS)
    assert isinstance(planned, PlannedDesign)
    _, out, _ = run("rate", "assign", "--raters", "2", "--plan", "--repeats", "0", "--json", "-")
    told = json.loads(out)
    assert (planned.load, planned.overlap) == (told["load"], told["overlap"])
    plan = {"icc_low": planned.plan.icc_low, "icc_high": planned.plan.icc_high}
    assert plan.items() <= told["plan"].items()


def test_a_question_is_computed_once_until_its_study_changes_or_it_failed(
    engine, tmp_path, study_in
):
    first = ask(OPERATOR, engine, planned_design, TWO)
    assert ask(OPERATOR, engine, planned_design, DesignRequest(("a",), 1, 0.0, 0)) is not first
    other = open_study(study_in(tmp_path, "other.db"), create=True)
    assert ask(OPERATOR, other, planned_design, TWO) is not first, "each study has its own"
    assert first in compute._answers.values()
    other.dispose()
    before = version(engine)

    set_setting(engine, "pause_minutes", "30")

    assert version(engine) != before
    second = ask(OPERATOR, engine, planned_design, TWO)
    assert second is not first
    assert first not in compute._answers.values(), "nobody can ask for it again"
    assert second.exception(WAIT_SECONDS)
    assert ask(OPERATOR, engine, planned_design, TWO) is not second


def test_a_closed_process_is_not_started_again_by_a_page_that_waited():
    closed = Process()
    waited = closed.submit("time:sleep", 60)
    until(lambda: len(multiprocessing.active_children()) > 0)

    closed.close()

    assert str(waited.exception(WAIT_SECONDS)) == compute.INTERRUPTED
    with pytest.raises(MedjuryError, match="interrupted"):
        closed.submit("time:sleep", 0)
    assert not closed.runs


def test_what_two_people_ask_at_once_is_computed_once(engine, run, tmp_path):
    rated(run, tmp_path, SIMULATED, n=8)
    asked = RubricExport(read_rubric("generic").to_json(), read_panel("simulated"), "medjury", 20)

    with ThreadPoolExecutor(4) as people:
        each = people.map(lambda _: ask(OPERATOR, engine, exported_rubric, asked), range(4))
        [one] = {*each}

    assert "bundle.json" in one.result(WAIT_SECONDS).files
    assert ask(OPERATOR, engine, exported_rubric, asked) is one, "the ledger is no change"
    assert {entry.times for entry in compositions_tried(engine)} <= {1}


def test_an_error_comes_back_as_its_class_with_its_message(engine, tmp_path):
    one = {"name": "a", "provider": "openai", "model": "m", "family": "f"}
    at = {"base_url": "http://127.0.0.1:9/v1", "api_key_env": "NO_SUCH_VARIABLE_KEY"}
    keyless = Juror.model_validate(one | at)
    with pytest.raises(BadInput, match="the study has no responses yet"):
        ask(OPERATOR, engine, planned_design, TWO).result(WAIT_SECONDS)
    with pytest.raises(BadPanel, match="NO_SUCH_VARIABLE_KEY is not set"):
        call(panel_probe, Panel(name="p", juror=(keyless,)))
    with pytest.raises(NoStudy, match=r"absent\.db"):
        call("annotate.compute:opened", f"sqlite:///{tmp_path / 'absent.db'}", DESIGN, TWO)
    with pytest.raises(TooFew, match="an ICC needs 2 responses"):
        call("calibration.icc:icc_consistency", np.ones((1, 2)))


@pytest.mark.parametrize(
    ("function", "given", "logged"),
    [
        ("builtins:int", [PATIENT], ("ValueError in a computation", "compute.py")),
        ("threading:Lock", [], ("TypeError in a computation",)),  # it cannot be sent back
        ("no_such_module:function", [], ("ModuleNotFoundError in a computation", "compute.py")),
        ("sys:exit", [], ("SystemExit in a computation", "compute.py")),
    ],
)
def test_another_error_says_only_that_the_log_tells_more_and_the_log_quotes_no_text(
    own, function, given, logged, capfd
):
    with pytest.raises(MedjuryError, match="the server's log says why") as refused:
        answered(own, function, *given)
    log = capfd.readouterr().err
    assert [words for words in logged if words not in log] == []
    assert PATIENT not in log + str(refused.value)
    assert answered(own, "builtins:sum", [1, 2]) == 3


def test_who_waits_for_a_process_that_is_killed_is_told_and_the_next_gets_an_answer(own):
    killed = answered(own, "os:getpid")
    waiting = own.submit("time:sleep", WAIT_SECONDS)
    time.sleep(0.2)
    os.kill(killed, 9)
    with pytest.raises(MedjuryError, match="interrupted because its process ended; try again"):
        waiting.result(WAIT_SECONDS)

    assert answered(own, "os:getpid") != killed


def test_a_process_killed_while_nobody_waits_is_not_missed(own):
    killed = answered(own, "os:getpid")
    os.kill(killed, 9)
    until(lambda: not running(killed))
    time.sleep(0.2)

    assert answered(own, "os:getpid") != killed


def test_it_ends_when_idle_and_no_question_is_lost_to_that():
    brief = Process(idle_seconds=0.1)
    pids = set()
    for wait in (0.0, 0.08, 0.1, 0.12, 0.5):
        time.sleep(wait)
        pids.add(answered(brief, "os:getpid"))
    until(lambda: not any(map(running, pids)))

    assert len(pids) > 1
    assert not brief.runs


def test_how_far_a_computation_is_can_be_seen_while_it_runs(engine):
    place = compute._lanes["long"]
    answer = compute.of_study(engine, "kit.slow_computation:half_done", 1)
    waiting = place.submit("os:getpid")

    until(lambda: place.share(answer) == 0.5)
    assert place.share(waiting) == compute.WAITS
    assert {lane.share(waiting) for lane in compute._lanes.values()} == {compute.WAITS}
    assert answer.result(WAIT_SECONDS) == "done"


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_the_server_also_in_the_middle_of_a_computation(ending, small_study, engine):
    code = (
        "import sys, threading; from annotate import compute\n"
        "print(compute.call('os:getpid'), flush=True)\n"
        "threading.Thread(target=compute.call, args=('time:sleep', 600), daemon=True).start()\n"
        "from annotate.server import serve; serve(sys.argv[1], int(sys.argv[2]))"
    )
    words = [str(engine.url), str(free_port())]
    server = subprocess.Popen([sys.executable, "-c", code, *words], stdout=PIPE, text=True)
    child = int(server.stdout.readline())
    assert "http://" in server.stdout.readline()
    time.sleep(1)
    assert running(child)

    server.send_signal(ending)
    server.wait(WAIT_SECONDS)
    server.stdout.close()

    until(lambda: not running(child))


def test_the_password_of_a_study_is_shown_to_no_ps_and_in_no_message(own, capfd):
    url = f"postgresql+psycopg://medjury:{SECRET}@127.0.0.1:9/study"
    with pytest.raises(NoStudy) as refused:
        answered(own, "annotate.compute:opened", url, DESIGN, TWO)
    child = psutil.Process(answered(own, "os:getpid"))
    shown = [*child.cmdline(), *child.environ().values(), str(refused.value)]
    assert SECRET not in " ".join(shown)
    assert SECRET not in capfd.readouterr().err
