"""A study as a line of steps: from an empty one to one that is watched, and what is done next."""

from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest

from annotate.figures import HomeFigures
from annotate.navigation import SCREENS
from annotate.screens import rubrics, study_home
from annotate.screens.study import PARTS
from calibration.decision import NOTHING_RATED
from calibration.notes import note, sentence
from data.schema import Role
from medjury.services.status import (
    STATES,
    TITLES,
    BenchmarkStatus,
    CliniciansStatus,
    JuryStatus,
    NextStep,
    RecordStatus,
    ReportStatus,
    Step,
    StepState,
    StudyStatus,
    next_of,
    steps_of,
)

EMPTY = StudyStatus(
    *(None, None, ()),
    CliniciansStatus(*(0, 0, 0, 0, 0, 0), invited=0, shared=0),
    JuryStatus((), 0, 0, 0.0, 0, 0.0),
    None,
    RecordStatus(0, "", None, 0, False),
    reports=0,
)
WITH_RESPONSES = replace(
    EMPTY,
    benchmarks=(BenchmarkStatus("visits", "generic", 2, 4, 0),),
    clinicians=replace(EMPTY.clinicians, responses=4),
)
FIXED = replace(WITH_RESPONSES, protocol_set_at="2026-11-01T08:00:00Z", margin=0.1)
ASSIGNED = replace(FIXED, clinicians=replace(FIXED.clinicians, clinicians=2, assigned=8))
BEGUN = replace(
    ASSIGNED, clinicians=replace(ASSIGNED.clinicians, done=3, responses_rated=2, shared=1)
)
HEARD = replace(BEGUN, jury=JuryStatus(("a", "b"), 3, 5, 1.5, 0, 0.0))
RATED = replace(HEARD, clinicians=replace(HEARD.clinicians, done=8, responses_rated=4, shared=4))
WHOLE = replace(RATED, jury=replace(RATED.jury, missing=0))
REPORT = ReportStatus(7, "2026-11-20T08:00:00Z", "inconclusive", "Not shown.", 0.61, 0.58)
KEPT = replace(WHOLE, report=REPORT, reports=2)
LOCKED = replace(KEPT, record=replace(KEPT.record, locked="2026-11-21"))


@pytest.mark.parametrize(
    ("stage", "following", "done"),
    [
        (EMPTY, NextStep.IMPORT_RESPONSES, ""),
        (WITH_RESPONSES, NextStep.SET_PROTOCOL, "responses"),
        (FIXED, NextStep.ASSIGN, "plan responses"),
        (ASSIGNED, NextStep.RUN_JURY, "plan responses design"),
        (HEARD, NextStep.LET_RATE, "plan responses design"),
        (RATED, NextStep.COMPLETE_JURY, "plan responses design rating clinicians"),
        (WHOLE, NextStep.CALIBRATE, "plan responses design rating clinicians jury"),
        (KEPT, NextStep.LOCK, "plan responses design rating clinicians jury agreement"),
        (LOCKED, NextStep.SHARE, "plan responses design rating clinicians jury agreement"),
    ],
)
def test_each_step_is_done_when_its_facts_say_so_and_one_alone_is_next(
    stage: StudyStatus, following: NextStep, done: str
) -> None:
    steps = steps_of(stage)
    assert [step.step for step in steps] == [*Step]
    assert " ".join(step.step for step in steps if step.state is StepState.DONE) == done
    assert next_of(stage) is following
    assert sum(step.is_next for step in steps) == 1
    for step in steps:
        told = sentence(step.answer)
        assert told.endswith(".")
        assert not {"{", "None", "nan"} & {*told.split()}


@pytest.mark.parametrize(
    ("decision", "state"),
    [
        ("inconclusive", StepState.OPEN),
        ("simulated", StepState.OPEN),
        ("inferior", StepState.OPEN),
        ("non_inferior", StepState.UNDER_WAY),
    ],
)
def test_only_a_report_that_shows_non_inferiority_speaks_of_a_use(
    decision: str, state: StepState
) -> None:
    kept = replace(KEPT, report=replace(REPORT, decision=decision))
    use = next(step for step in steps_of(kept) if step.step is Step.USE)
    assert use.state is state
    assert ("shows no use yet" in sentence(use.answer)) == (state is StepState.OPEN)


def test_clinicians_who_can_sign_in_are_counted_before_they_have_work() -> None:
    invited = replace(FIXED, clinicians=replace(FIXED.clinicians, invited=4))
    design = next(step for step in steps_of(invited) if step.step is Step.DESIGN)
    assert sentence(design.answer) == "4 clinicians can sign in, and no work is assigned yet."


def test_what_was_computed_takes_the_place_of_what_was_counted() -> None:
    between = note("agreement_of_clinicians", "ICC(C,2) {icc:.2f}", icc=0.6)
    shown = study_home.answered(steps_of(KEPT), HomeFigures(NOTHING_RATED, clinicians=between))
    answers = {step.step: sentence(step.answer) for step in shown}
    assert answers[Step.CLINICIANS] == "ICC(C,2) 0.60."
    assert answers[Step.AGREEMENT].startswith("Report 7")


def test_every_link_leads_to_a_screen_and_a_part_that_are_there() -> None:
    screens = {screen.path for screen in SCREENS}
    parts = {"": {*PARTS}, "rubrics": {*rubrics.PARTS}}
    places = [*study_home.PLACES.values(), *(act.to for act in study_home.ACTIONS.values())]
    for place in places:
        address = urlsplit(place)
        path = address.path.strip("/")
        assert path in {"", *screens}, place
        assert {*parse_qs(address.query).get("part", [])} <= parts.get(path, set()), place
    assert {*study_home.ACTIONS} == {*NextStep}
    assert {*study_home.PLACES} == {*TITLES} == {*Step}
    assert {*STATES} == {*StepState}


def test_a_researcher_reads_the_next_step_and_is_given_no_link_to_do_it() -> None:
    shown = {
        role: study_home.steps_html(steps_of(EMPTY), next_of(EMPTY), role)
        for role in (Role.COORDINATOR, Role.RESEARCHER)
    }
    assert 'href="/?part=Import"' in shown[Role.COORDINATOR]
    assert 'href="/?part=Import"' not in shown[Role.RESEARCHER]
    assert study_home.LEFT_TO_COORDINATORS in shown[Role.RESEARCHER]
