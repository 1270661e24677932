"""Jury runs that outlive whoever started them, and the panels that are run: written, kept and probed."""

import os
import signal
import subprocess
import sys
import time
from tempfile import gettempdir

import pytest
from kit.browsers import RITA, labelled, said
from kit.jurors import Do, Seen
from kit.rating_study import row, rubric
from kit.study_place import behind_the_record

from annotate import jury_panels, jury_runs
from annotate.jury_panels import checked, panel_of, shipped_texts
from annotate.screens.jury import panels as jury_panels_screen
from annotate.screens.jury.run import juror_rows
from data.calls import other_model_words
from data.errors import BadInput, BadPanel, Conflict, NotAllowed
from data.person import OPERATOR
from data.schema import Role, Setting
from data.study import runs
from data.study.calls import other_models
from data.study.people import add_people, check_code, end_access
from data.study.responses import import_responses
from data.study.runs import RUN, RunOrder, begin_run
from data.study.verify import acts, verify
from jury.panel import read_panel, shipped

PATIENCE_SECONDS = 120
SECRET = "sk-verysecret-0123456789"


@pytest.fixture
def study(engine):
    rows = [row(n, f"Response {n}.") for n in range(20)]
    import_responses(engine, rows, lambda _: rubric())
    return engine


def panel_text(stub, *names, also="", price=0.0):
    head = f'provider = "openai"\nfamily = "x"\nbase_url = "{stub.openai_url}"\n{also}\n'
    head += f"usd_per_million_in = {price}\nusd_per_million_out = {price}\n"
    jurors = (f'[[juror]]\nname = "{one}"\nmodel = "{one}"\n{head}' for one in names or ("a", "b"))
    return 'name = "two"\n' + "".join(jurors)


def run_of(engine):
    return runs.last_run(OPERATOR, engine)


def until(true):
    end = time.monotonic() + PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def wait_ended(engine):
    until(lambda: run_of(engine).ended is not None)
    return run_of(engine)


def test_a_run_is_stopped_on_the_screen_and_goes_on_where_it_was(study, stub, screen, monkeypatch):
    monkeypatch.setenv("STUB_KEY", SECRET)
    stub.script = lambda _: Do(seconds=0.3)
    text = panel_text(stub, also='api_key_env = "STUB_KEY"', price=1.0)
    order = RunOrder("two", text, concurrency=2, cap=5.0)
    jury_runs.start(OPERATOR, study, order)
    until(lambda: len(stub.seen) >= 4)
    with pytest.raises(Conflict, match="the command line started a run of the panel two at"):
        jury_runs.start(OPERATOR, study, order)
    page = screen("jury", RITA)
    assert "started by the command line" in said(page)
    page.button("stop-0").click().run()
    stopped = wait_ended(study)
    assert "stopped; what was stored stays" in said(page)

    rows = runs.jury_progress(OPERATOR, study, stopped, ["a", "b", "never"])
    assert stopped.code == 1
    assert 0 < rows[0].rated + rows[1].rated == len(stub.seen) < 40
    assert [one.total for one in rows] == [20, 20, 20]
    assert sum(one.cost.calls for one in rows) == len(stub.seen)
    assert sum(one.cost.usd for one in rows) == pytest.approx(0.0011 * len(stub.seen))
    assert stopped.figures["by_status"]["interrupted"] > 0

    stub.script = lambda _: Do()
    page.button("resume").click().run()
    ended = wait_ended(study)
    assert (ended.code, ended.figures["rated"], len(stub.seen)) == (0, 40, 40)
    assert "Run of the panel two: complete" in said(page)
    of_two = runs.jury_progress(OPERATOR, study, ended, ["a", "b"])
    assert [one.total for one in of_two] == [20, 20]
    assert "answers as a-returned" in other_model_words(other_models(study)["a"])
    usable = [row["Usable at first asking"] for row in juror_rows(study, of_two)]
    assert all("of 20" in line for line in usable), usable
    assert {seen.headers["authorization"] for seen in stub.seen} == {f"Bearer {SECRET}"}
    assert SECRET not in str(ended)
    assert [line for line in ended.said if line.startswith("study ") or gettempdir() in line] == []
    told = [one.action for one in acts(study, "jury run started", "jury run stopped")]
    assert told == ["jury run started", "jury run stopped", "jury run started"]
    assert verify(study).findings == ()


def test_a_panel_with_a_key_or_a_shipped_name_is_not_kept(study, stub, screen):
    page = screen("jury", RITA).run()
    labelled(page.button, "Edit a copy").click().run()
    text = panel_text(stub)
    for written, told in (
        (panel_text(stub, also=f'api_key_env = "{SECRET}"'), "may hold a key"),
        (text.replace('"two"', '"current"'), "a panel of this name ships"),
        (text, "Jurors of the panel two"),
    ):
        labelled(page.text_area, "Panel, as TOML").set_value(written)
        labelled(page.button, "Save panel").click()
        shown = said(page)
        assert told in shown
        assert SECRET not in "".join(one.value for one in page.error)
    assert runs.own_panels(OPERATOR, study) == {"two": text}
    assert [one.detail["panel"] for one in acts(study, "panel kept")] == ["two"]


def test_failures_are_counted_by_reason(study, stub):
    def script(seen: Seen) -> Do:
        return Do(refusal="No.") if seen.model == "b" and "Response 3." in seen.prompt else Do()

    stub.script = script
    jury_runs.start(OPERATOR, study, RunOrder("two", panel_text(stub)))
    ended = wait_ended(study)
    first, second = runs.jury_progress(OPERATOR, study, ended, ["a", "b"])
    assert (ended.code, first.rated, first.failed) == (1, 20, {})
    assert (second.rated, [*second.failed]) == (19, ["refused"])
    assert [*second.failed["refused"].values()] == [1]
    assert any("missing: b: 1 refused" in line for line in ended.said)


def test_a_run_that_is_refused_says_why_and_not_where(study, stub, monkeypatch):
    monkeypatch.delenv("NOBODYS_KEY", raising=False)
    text = panel_text(stub, also='api_key_env = "NOBODYS_KEY"')
    jury_runs.start(OPERATOR, study, RunOrder("two", text))
    ended = wait_ended(study)
    assert ended.code == 2
    assert "the environment variable NOBODYS_KEY is not set" in ended.said[-1]
    assert "/" not in ended.said[-1].split(";")[0]


def test_a_run_outlives_the_process_that_started_it(study, stub):
    stub.script = lambda _: Do(seconds=0.05)
    program = (
        "import sys; from annotate import jury_runs; from annotate.navigation import study\n"
        "from data.person import OPERATOR; from data.study.runs import RunOrder\n"
        "jury_runs.start(OPERATOR, study(), RunOrder('two', sys.argv[1]))\n"
        "import time; time.sleep(60)"
    )
    call = [sys.executable, "-c", program, panel_text(stub)]
    server = subprocess.Popen(call, env=jury_runs.environment(study), start_new_session=True)
    until(lambda: len(stub.seen) >= 2)
    os.killpg(server.pid, signal.SIGKILL)
    server.wait()
    assert wait_ended(study).figures["rated"] == 40


def test_a_run_whose_keeper_fell_silent_does_not_hold_the_next_one(study):
    begin_run(OPERATOR, study, RunOrder("two", ""), "dead")
    assert run_of(study).on
    with behind_the_record(study) as session:
        stored = session.get_one(Setting, RUN)
        stored.value = stored.value.replace(f"{run_of(study).seen:%Y-}", "2001-")
    assert run_of(study).lost
    begin_run(OPERATOR, study, RunOrder("three", ""), "next")
    assert run_of(study).order.panel == "three"


def test_a_panel_that_costs_money_needs_a_cap(study, stub):
    order = RunOrder("two", panel_text(stub, price=1.0))
    with pytest.raises(BadInput, match="set a cap in US dollars"):
        jury_runs.start(OPERATOR, study, order)
    texts = jury_panels.shipped_texts()
    costs = {name for name in texts if jury_panels.costs_money(jury_panels.checked(texts[name]))}
    assert costs == {"azure", "bedrock", "current", "medhelm", "vertex"}
    assert (next(iter(texts)), {*texts}) == ("current", {*shipped()})
    assert runs.last_run(OPERATOR, study) is None
    assert not stub.seen


PASTED = (f'api_key_env = "{SECRET}"', f'api_key = "{SECRET}"', f"# {SECRET}")
PASTED += ('model = "AIzaSyD0123456789abcdefghijk"', f'name = "{"a1B2" * 12}"')


@pytest.mark.parametrize("line", PASTED)
def test_a_pasted_key_is_refused_and_not_echoed(line, stub):
    with pytest.raises(BadPanel) as refused:
        jury_panels.checked(panel_text(stub, "a") + line)
    said = str(refused.value) + repr(refused.value.__cause__)
    assert "may hold a key" in str(refused.value)
    assert ("0123456789" in said, "a1B2" in str(refused.value)) == (False, False)


def test_a_page_that_polls_learns_nothing_once_its_owner_is_shut_out(engine):
    made = add_people(OPERATOR, engine, ["Rita"], Role.RESEARCHER)[0]
    person = check_code(engine, made.code).person
    assert runs.last_run(person, engine) is None
    end_access(OPERATOR, engine, "Rita")
    with pytest.raises(NotAllowed):
        runs.last_run(person, engine)


def test_a_probe_is_told_to_whoever_looks_and_sends_nothing_of_the_study(study, stub):
    text = panel_text(stub)
    asked = jury_panels_screen.begin_probe(OPERATOR, study, text)
    rows = asked.rows.result(PATIENCE_SECONDS)
    assert [one.juror for one in rows] == ["a", "b"]
    assert jury_panels_screen.last_probe(OPERATOR, study, text) is asked
    assert jury_panels_screen.begin_probe(OPERATOR, study, text) is not asked
    assert [probe["juror"] for probe in runs.newest_probes(study).values()] == ["a", "b"]
    assert not any("Response" in seen.prompt and "fever" in seen.prompt for seen in stub.seen)


@pytest.mark.parametrize("name", shipped())
def test_a_panel_of_all_jurors_of_one_that_ships_is_that_panel_under_another_name(name):
    jurors = read_panel(name).juror
    profiles = {juror.name: juror.profile() for juror in jurors}
    new, text = panel_of([*profiles], profiles, {name: shipped_texts()[name]})
    assert new == jury_panels.RECOMMENDED
    assert checked(text).juror == jurors


def test_a_new_panel_takes_a_name_that_no_other_has():
    juror = read_panel("simulated").juror[0]
    texts = {"simulated": shipped_texts()["simulated"], "recommended": "", "recommended-2": ""}
    assert panel_of([juror.name], {juror.name: juror.profile()}, texts)[0] == "recommended-3"


def test_a_juror_that_rated_with_other_settings_is_named_and_put_on_no_panel():
    juror = read_panel("simulated").juror[0]
    texts = {"simulated": shipped_texts()["simulated"]}
    for profile in ({}, juror.profile() | {"model": "another"}):
        with pytest.raises(BadPanel, match=f"{juror.name}: rated with settings that stand in no"):
            panel_of([juror.name], {juror.name: profile}, texts)
