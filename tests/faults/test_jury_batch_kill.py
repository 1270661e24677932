"""Batches killed, dropped and interrupted anywhere: nothing is handed in twice, nothing is lost."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from kit.batches import batches, run
from kit.batches import stub as stub
from kit.jurors import Do
from kit.jury_runs import attempts, panel_at

VENDORS = ("openai", "anthropic")
CREATE = {"openai": ("POST", "/v1/batches"), "anthropic": ("POST", "/v1/messages/batches")}
LOOK = {"openai": ("GET", "/v1/batches/"), "anthropic": ("GET", "/v1/messages/batches/")}


@pytest.fixture
def panel_file(write, stub):
    def put(vendor: str) -> Path:
        url = stub.openai_url if vendor == "openai" else stub.anthropic_url
        head = f'name = "p"\n[[juror]]\nname = "a"\nmodel = "a"\nfamily = "x"\nbase_url = "{url}"\n'
        return write("panel.toml", f'{head}provider = "{vendor}"\nschema = "json_schema"\n')

    return put


def started(url, panel):
    return subprocess.Popen(
        [sys.executable, "-m", "medjury", "--db", url, "jury", "run", str(panel), "--batch"],
        env=os.environ | {"ANTHROPIC_LOG": "debug", "OPENAI_LOG": "debug"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def looked(stub, vendor):
    """Return what tells whether a run has asked how its batch does."""
    return lambda: any(path.startswith(LOOK[vendor][1]) for _, path in stub.log)


def ended(process, true, how=signal.SIGKILL):
    """End a process once something holds; return its output and messages."""
    for _ in range(6000):
        if true() or process.poll() is not None:
            break
        threading.Event().wait(0.01)
    process.send_signal(how)
    return process.communicate()


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_run_killed_before_it_heard_the_batchs_id_finds_the_batch(
    url, small_study, stub, panel_file, vendor
):
    stub.take(vendor, [{"custom_id": "another's"}] * 4, state="ended")
    for _ in range(3):
        stub.take(vendor, [], state="ended")
    stub.fails = {CREATE[vendor]: [-2]}
    ended(started(url, panel_file(vendor)), lambda: len(stub.batches) == 5)
    assert [one.state for one in batches(small_study)] == ["submitting"]
    said: list[str] = []
    result = run(small_study, panel_at(stub, vendor=vendor), tell=said.append)
    assert (result.rated, result.calls, stub.creations()) == (4, 0, 1)
    assert len(attempts(small_study)) == 4


def test_a_run_killed_while_it_uploads_leaves_no_text_behind_and_hands_in_once(
    url, small_study, stub, panel_file
):
    stub.fails = {("POST", "/v1/files"): [-2]}
    ended(started(url, panel_file("openai")), lambda: len(stub.files) == 1)
    assert [one.state for one in batches(small_study)] == ["prepared"]
    assert run(small_study, panel_at(stub)).rated == 4
    assert (stub.creations(), stub.files) == (1, {})


@pytest.mark.parametrize("vendor", ["anthropic", pytest.param("openai", marks=pytest.mark.slow)])
def test_a_run_killed_while_it_waits_is_collected_by_the_next(
    url, small_study, stub, panel_file, vendor
):
    stub.hold = True
    ended(started(url, panel_file(vendor)), looked(stub, vendor))
    stub.hold = False
    result = run(small_study, panel_at(stub, vendor=vendor))
    assert (result.rated, result.calls, stub.creations()) == (4, 0, 1)


@pytest.mark.parametrize("vendor", ["openai", pytest.param("anthropic", marks=pytest.mark.slow)])
def test_an_interrupt_leaves_the_batch_with_the_provider_and_says_how_to_collect(
    url, small_study, stub, panel_file, vendor
):
    stub.hold = True
    process = started(url, panel_file(vendor))
    out, errors = ended(process, looked(stub, vendor), signal.SIGINT)
    assert process.returncode == 1
    assert "4 verdicts in flight: the same command collects them" in out
    assert ": 4 in_flight" in out
    assert "Traceback" not in errors
    assert "fever" not in out + errors
    stub.hold = False
    assert (run(small_study, panel_at(stub, vendor=vendor)).rated, stub.creations()) == (4, 1)


def test_within_its_grace_a_batch_that_is_not_found_is_not_handed_in_again(
    url, small_study, stub, panel_file
):
    stub.fails = {CREATE["anthropic"]: [0]}
    process = started(url, panel_file("anthropic"))
    out, _ = ended(
        process, lambda: stub.log.count(("GET", "/v1/messages/batches")) > 2, signal.SIGINT
    )
    assert "unknown whether a batch of 4 was taken: it is being looked for" in out
    assert (stub.creations(), process.returncode) == (1, 1)


def test_a_live_run_is_told_what_is_in_a_batch_already(small_study, stub, run, panel_file):
    stub.script = lambda _: Do()
    stub.fails = {LOOK["openai"]: [404]}
    path = str(panel_file("openai"))
    code, out, _ = run("jury", "run", path, "--batch")
    assert (code, stub.creations()) == (1, 1)
    _, out, _ = run("jury", "run", path)
    assert "juror a: 4 requests in a batch already" in out
