"""What each role is refused, whatever screen asks: the study stays as it was, and nothing is told."""

from collections.abc import Callable

import pytest
from kit.browsers import CARLA, CLINICIAN, RITA
from kit.studies import RESPONSES
from kit.study_place import all_rows
from sqlalchemy import Engine

from annotate import jury_runs
from annotate.compute import ask
from annotate.screens.export import files
from annotate.screens.export.record import actor_label
from annotate.screens.jury import panels
from annotate.screens.setup import training
from annotate.screens.setup.notes import measured
from data.errors import NotAllowed
from data.person import OPERATOR, Person
from data.schema import Role
from data.study import compare, people, references, reviews, runs, steering
from data.study.assignments import odd_habits
from data.study.runs import RunOrder, keep_panel, stop_run
from data.study.standing import study_benchmarks
from data.study.steering import lock_study, set_place, store_design
from data.study.training import bring_experts, let_through_as
from medjury.services import importing
from medjury.services.design.assign import DesignRequest, planned_design
from medjury.services.importing import Upload

Act = Callable[[Person, Engine], object]
RESPONSE_FILE = Upload("responses.csv", RESPONSES.encode(), "", "")
RATINGS = b"response_id,rater,kind,criterion,score\nr11,d,juror,clarity,3\n"
RATING_FILE = Upload("r.csv", RATINGS, "", "")
TWO = compare.TwoJuries(compare.JurySide(), compare.JurySide())
ORDER = RunOrder("two", "")

# Acts and views of coordinators alone.
STEERS: dict[str, Act] = {
    "people": people.people,
    "adding people": lambda me, engine: people.add_people(me, engine, ["x"]),
    "a new code": lambda me, engine: people.renew_access(me, engine, "me"),
    "shutting out": lambda me, engine: people.end_access(me, engine, "me"),
    "a try of responses": lambda me, engine: importing.try_response_file(engine, me, RESPONSE_FILE),
    "responses": lambda me, engine: importing.bring_response_file(engine, me, RESPONSE_FILE),
    "a try of ratings": lambda me, engine: importing.try_rating_file(engine, me, RATING_FILE),
    "ratings": lambda me, engine: importing.bring_rating_file(engine, me, RATING_FILE),
    "a place": lambda me, engine: set_place(me, engine, "visits"),
    "a design": lambda me, engine: store_design(me, engine, ["dr-a"], (), 0, (), 2),
    "a lock": lambda me, engine: lock_study(me, engine, me.actor),
    "a lock undone": lambda me, engine: steering.reopen_study(me, engine, me.actor, "why"),
    "a package": files.packed,
    "a backup": files.backed_up,
    "metrics": lambda me, engine: measured(me, engine, ("rouge-l",)),
    "habits": lambda me, engine: odd_habits(me, engine),
    "standings in training": training.standings,
    "experts' scores": lambda me, engine: bring_experts(me, engine, [], me.actor),
    "letting through": lambda me, engine: let_through_as(me, engine, "dr-a", "why", me.actor),
}
# What researchers see and do too, and clinicians do not.
READS: dict[str, Act] = {
    "benchmarks": study_benchmarks,
    "standing": steering.standing,
    "workloads": people.workloads,
    "readings": steering.readings_by_response,
    "the record": steering.checked_record,
    "who can rate": steering.who_can_rate,
    "both juries": lambda me, engine: compare.on_both(me, engine, TWO),
    "both juries' jurors": lambda me, engine: compare.jurors_on(me, engine, TWO, 1),
    "versions": compare.rated_versions,
    "verdicts": compare.most_verdicts,
    "a search": lambda me, engine: compare.responses_with(me, engine, "fever"),
    "snippets": lambda me, engine: compare.snippets(me, engine, [1]),
    "clinicians": compare.workbench_clinicians,
    "references": references.checked_references,
    "a reference": lambda me, engine: references.opened_reference(me, engine, "visits/i0"),
    "a review": lambda me, engine: reviews.review_of(me, engine, 1),
    "tags": reviews.tag_counts,
    "who is tagged": lambda me, engine: reviews.tagged(me, engine, ["fine"]),
    "who has a note": reviews.noted,
    "reviews": reviews.standing_reviews,
    "tags of some": lambda me, engine: reviews.tags_on(me, engine, [1]),
    "the last run": runs.last_run,
    "panels": runs.own_panels,
}
DOES: dict[str, Act] = {
    "a tag": lambda me, engine: reviews.change_tags(me, engine, 1, put_on=["fine"]),
    "a note": lambda me, engine: reviews.keep_note(me, engine, 1, "fine"),
    "a run": lambda me, engine: jury_runs.start(me, engine, ORDER),
    "a run's end": lambda me, engine: stop_run(me, engine, "x"),
    "a panel": lambda me, engine: keep_panel(me, engine, "two", ""),
    "a probe": lambda me, engine: panels.begin_probe(me, engine, ""),
    "figures": lambda me, engine: ask(me, engine, planned_design, DesignRequest(("a",), 1, 0.0, 0)),
}


def refused(engine, person, act):
    before = all_rows(engine)
    with pytest.raises(NotAllowed):
        act(person, engine)
    assert all_rows(engine) == before


@pytest.mark.parametrize("person", [RITA, CLINICIAN], ids=lambda one: str(one.role))
@pytest.mark.parametrize("what", STEERS)
def test_only_a_coordinator_steers_a_study(small_study, person, what):
    refused(small_study, person, STEERS[what])


@pytest.mark.parametrize("what", READS | DOES)
def test_a_clinician_reads_and_does_nothing_of_those_who_steer(small_study, what):
    refused(small_study, CLINICIAN, (READS | DOES)[what])


def test_a_researcher_reads_what_clinicians_do_not(small_study):
    for view in READS.values():
        view(RITA, small_study)


def test_only_clinicians_are_raters(engine):
    for role in Role:
        [made] = people.add_people(OPERATOR, engine, [f"one-{role}"], role)
        person = people.check_code(engine, made.code).person
        assert (person.rater is not None) == (role is Role.CLINICIAN)


def test_the_names_of_clinicians_are_told_to_coordinators_alone(engine):
    people.add_people(OPERATOR, engine, ["Rita"], Role.COORDINATOR)
    [rita] = people.people(CARLA, engine)
    names, actor = people.names_of_actors(CARLA, engine), f"account {rita.id}"
    assert names == {actor: "Rita"}
    assert (actor_label(actor, names), actor_label("x", names)) == (f"Rita ({actor})", "x")
    assert people.names_of_actors(RITA, engine) == {}
