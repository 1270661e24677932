"""A study as a line of steps: from an empty one to one that is watched, and what is done next."""

from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest
from kit.browsers import drawn_page, read

from annotate.navigation import SCREENS
from annotate.screens import home, setup
from annotate.screens.export import PARTS as EXPORTED
from calibration.notes import sentence
from data.schema import Role
from medjury.services import status

EMPTY = status.StudyStatus(
    *(None, None, ()),
    status.CliniciansStatus(*(0, 0, 0, 0, 0, 0), invited=0, shared=0),
    status.JuryStatus((), 0, 0, 0.0, 0, 0.0),
    None,
    status.RecordStatus(0, "", None, 0, False),
    reports=0,
)
WITH_RESPONSES = replace(
    EMPTY,
    benchmarks=(status.BenchmarkStatus("visits", "generic", 2, 4, 0),),
    clinicians=replace(EMPTY.clinicians, responses=4),
)
FIXED = replace(WITH_RESPONSES, protocol_set_at="2026-11-01T08:00:00Z", margin=0.1)
ASSIGNED = replace(FIXED, clinicians=replace(FIXED.clinicians, clinicians=2, assigned=8))
BEGUN = replace(
    ASSIGNED, clinicians=replace(ASSIGNED.clinicians, done=3, responses_rated=2, shared=1)
)
HEARD = replace(BEGUN, jury=status.JuryStatus(("a", "b"), 3, 5, 1.5, 0, 0.0))
RATED = replace(HEARD, clinicians=replace(HEARD.clinicians, done=8, responses_rated=4, shared=4))
WHOLE = replace(RATED, jury=replace(RATED.jury, missing=0))
REPORT = status.ReportStatus(7, "2026-11-20T08:00:00Z", "inconclusive", "Not shown.", 0.61, 0.58)
KEPT = replace(WHOLE, report=REPORT, reports=2)
LOCKED = replace(KEPT, record=replace(KEPT.record, locked="2026-11-21"))


@pytest.mark.parametrize(
    ("stage", "following", "done"),
    [
        (EMPTY, status.NextStep.IMPORT_RESPONSES, ""),
        (WITH_RESPONSES, status.NextStep.SET_PROTOCOL, "responses"),
        (FIXED, status.NextStep.ASSIGN, "plan responses"),
        (ASSIGNED, status.NextStep.RUN_JURY, "plan responses design"),
        (HEARD, status.NextStep.LET_RATE, "plan responses design"),
        (RATED, status.NextStep.COMPLETE_JURY, "plan responses design rating clinicians"),
        (WHOLE, status.NextStep.CALIBRATE, "plan responses design rating clinicians jury"),
        (KEPT, status.NextStep.LOCK, "plan responses design rating clinicians jury agreement"),
        (LOCKED, status.NextStep.SHARE, "plan responses design rating clinicians jury agreement"),
    ],
)
def test_each_step_is_done_when_its_facts_say_so_and_one_alone_is_next(stage, following, done):
    steps = status.steps_of(stage)
    assert [step.step for step in steps] == [*status.Step]
    assert " ".join(step.step for step in steps if step.state is status.StepState.DONE) == done
    assert status.next_of(stage) is following
    assert sum(step.is_next for step in steps) == 1
    for told in (sentence(step.answer) for step in steps):
        assert told.endswith(".")
        assert not {"{", "None", "nan"} & {*told.split()}


@pytest.mark.parametrize(
    ("decision", "state"),
    [
        ("inconclusive", status.StepState.OPEN),
        ("simulated", status.StepState.OPEN),
        ("inferior", status.StepState.OPEN),
        ("non_inferior", status.StepState.UNDER_WAY),
    ],
)
def test_only_a_report_that_shows_non_inferiority_speaks_of_a_use(decision, state):
    kept = replace(KEPT, report=replace(REPORT, decision=decision))
    use = next(step for step in status.steps_of(kept) if step.step is status.Step.USE)
    assert use.state is state
    assert ("shows no use yet" in sentence(use.answer)) == (state is status.StepState.OPEN)


def test_clinicians_who_can_sign_in_are_counted_before_they_have_work():
    invited = replace(FIXED, clinicians=replace(FIXED.clinicians, invited=4))
    design = next(step for step in status.steps_of(invited) if step.step is status.Step.DESIGN)
    assert "4 clinicians can sign in" in sentence(design.answer)


def test_every_link_leads_to_a_screen_and_a_part_that_are_there():
    screens = {screen.path for screen in SCREENS}
    parts = {"setup": {*setup.PARTS}, "export": {*EXPORTED}, "": {"Progress"}}
    for action in home.ACTIONS.values():
        address = urlsplit(action.to)
        path, asked = address.path.strip("/"), parse_qs(address.query)
        assert path in {"", *screens}, action
        assert {part for values in asked.values() for part in values} <= parts.get(path, set())
    for said, every in (
        (home.ACTIONS, status.NextStep),
        (status.TITLES, status.Step),
        (status.STATES, status.StepState),
    ):
        assert {*said} == {*every}


def test_a_researcher_reads_the_next_step_and_is_given_no_link_to_do_it():
    shown = {}
    for role in (Role.COORDINATOR, Role.RESEARCHER):
        script = (
            "from annotate.screens.home import show_next\n"
            f"show_next({status.NextStep.IMPORT_RESPONSES.value!r}, {role.value!r})\n"
        )
        shown[role] = read(drawn_page(script).run())
    assert 'href="/setup?part=Notes"' in shown[Role.COORDINATOR]
    assert "href" not in shown[Role.RESEARCHER]
    assert home.LEFT_TO_COORDINATORS in shown[Role.RESEARCHER]
