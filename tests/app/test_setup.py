"""What the screens that set a study up read and do: files, places, work, and settings."""

import random
import tempfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from kit.browsers import RITA, labelled, said
from kit.commands import json_of
from kit.rating_study import FULL, build, codes_of, row, rubric
from kit.studies import RESPONSES
from kit.study_place import all_rows
from sqlmodel import Session, select

from annotate.screens.home.progress import outlook
from annotate.screens.setup import design
from data.card import ERRORS, Reply
from data.database import open_study
from data.errors import BadInput, BadRow, Conflict, NotAllowed, Unknown
from data.person import OPERATOR
from data.schema import Response, Role, now
from data.settings import Settings
from data.study import people
from data.study import steering as study_steering
from data.study.assignments import recuse
from data.study.people import add_people, end_access, invite
from data.study.ratings import submit
from data.study.rubrics import study_rubrics
from data.study.settings import description, set_setting
from data.study.standing import settings, study_benchmarks
from data.study.steering import lock_study, set_place, store_design
from data.study.verify import acts, verify
from medjury.services import importing
from medjury.services.design.assign import DesignRequest
from medjury.services.importing import Upload, map_needed
from medjury.services.record import protocol_of
from medjury.services.reminders import is_due

REQUEST = DesignRequest(("dr-c", "dr-a", "dr-b"), 2, 0.1, 5)
RATINGS = "response_id,rater,kind,accuracy,completeness,clarity\nr11,dr-x,clinician,4,,5\n"
NAMED = RESPONSES.replace(
    "model-one,Mild pain.", "model-one,As an AI language model I say: mild pain."
)


def upload(text, name="answers.csv", **chosen):
    return Upload(name, text.encode(), **({"rubric": "", "benchmark": ""} | chosen))


def test_a_file_that_is_only_looked_at_leaves_nothing(small_study):
    before = all_rows(small_study)
    more = RESPONSES.replace("r1", "s1").replace("r2", "s2").replace(",visits,", ",letters,")
    seen, added = importing.try_response_file(small_study, OPERATOR, upload(more))
    assert (added.responses, added.instances, added.benchmarks) == (4, 2, {"letters": "generic"})
    assert (seen.responses["letters"], seen.instances["letters"], seen.models) == (4, 2, 2)
    rated, ratings = importing.try_rating_file(small_study, OPERATOR, upload(RATINGS))
    assert (ratings.added, ratings.raters, rated.empty) == (2, ["dr-x"], 1)
    assert all_rows(small_study) == before


def test_an_upload_changes_what_the_command_changes(engine, tmp_path, run, write, study_in):
    other = open_study(study_in(tmp_path, "other.db"), create=True)
    run("study", "import", str(write("answers.csv", NAMED)))
    run("rate", "ratings", str(write("ratings.csv", RATINGS)))
    assert importing.bring_response_file(other, OPERATOR, upload(NAMED)) == (4, 1)
    assert importing.bring_rating_file(other, OPERATOR, upload(RATINGS)).added == 2
    assert shown(other) == shown(engine)
    assert [one.action for one in acts(other, *ACTS)] == [one.action for one in acts(engine, *ACTS)]
    assert verify(other).findings == ()
    other.dispose()


ACTS = ("responses imported", "authors masked", "ratings imported")


def shown(engine):
    with Session(engine) as session:
        return [(one.response_id, one.text, one.shown) for one in session.exec(select(Response))]


def test_a_wrong_row_is_named_without_the_servers_folders(engine):
    wrong = upload(RESPONSES.replace("r12", "r11"), "../../etc/answers.csv")
    with pytest.raises(BadRow, match=r"^answers\.csv row 3, column response_id") as told:
        importing.try_response_file(engine, OPERATOR, wrong)
    assert "/" not in str(told.value)
    with pytest.raises(BadInput, match=r"^answers\.csv: column 'instance_id' is missing"):
        importing.try_response_file(engine, OPERATOR, upload("a,b\n1,2\n"))
    assert study_benchmarks(OPERATOR, engine) == []


def test_an_upload_leaves_no_file_behind(engine):
    name = f"only-in-this-test-{random.getrandbits(64)}.csv"
    importing.try_response_file(engine, OPERATOR, upload(RESPONSES, name))
    with pytest.raises(BadInput):
        importing.try_response_file(engine, OPERATOR, upload("a,b\n1,2\n", name))
    assert list(Path(tempfile.gettempdir()).glob(f"medjury-*/{name}")) == []


def test_a_rubric_is_chosen_by_name_and_never_by_path(engine, tmp_path):
    for given, taken in ((str(tmp_path), "generic"), ("med_dialog", "med_dialog")):
        importing.bring_response_file(engine, OPERATOR, upload(RESPONSES, rubric=given))
        assert study_benchmarks(OPERATOR, engine)[0].rubric.name == taken


def test_responses_do_not_get_mixed_into_the_demo(engine):
    demo = upload(RESPONSES.replace(",visits,", f",{importing.sample_benchmarks()[0]['name']},"))
    importing.bring_response_file(engine, OPERATOR, demo)
    with pytest.raises(Conflict, match="demo study"):
        importing.try_response_file(engine, OPERATOR, upload(RESPONSES))


def test_a_benchmark_takes_a_place_of_the_taxonomy_and_no_other(small_study):
    place = ("Clinical Note Generation", "Documenting Patient Visits")
    assert set_place(OPERATOR, small_study, "visits", *place)
    assert not set_place(OPERATOR, small_study, "visits", *place)
    view = study_benchmarks(RITA, small_study)[0]
    assert (view.category, view.subcategory) == place
    for error, name, wrong in (
        (BadInput, "visits", ("Invented",)),
        (BadInput, "visits", ("Clinical Note Generation", "Planning Treatments")),
        (BadInput, "visits", ("", "Planning Treatments")),
        (Unknown, "nowhere", place),
    ):
        with pytest.raises(error):
            set_place(OPERATOR, small_study, name, *wrong)
    [told] = acts(small_study, "place in the taxonomy set")
    assert told.detail["benchmark"] == "visits"
    assert verify(small_study).findings == ()
    lock_study(OPERATOR, small_study, OPERATOR.actor)
    with pytest.raises(NotAllowed, match="locked"):
        set_place(OPERATOR, small_study, "visits")


def test_a_clinicians_work_counts_what_was_rated_given_back_and_flagged(engine):
    build(engine, [row(n, f"Note {n}.") for n in range(4)], ["dr-a", "dr-b"], rubric())
    codes = codes_of(engine, "dr-a")
    submit(engine, 1, codes[0], Reply(dict(FULL), flags=("flag",)), 61)
    recuse(engine, 1, codes[1], "I know the patient")
    found = {one.handle: one for one in people.workloads(RITA, engine)}
    one = found["dr-a"]
    assert (one.done, one.total, one.open, one.recused, one.unrated) == (1, 3, 2, 1, 0)
    assert (one.flagged, one.seconds, one.elsewhere) == (1, 61, 0)
    assert found["dr-b"].done == 0
    assert study_steering.readings_by_response(RITA, engine) == {"bench_hidden": {0: 3, 1: 1}}
    for who, days, due in (
        ("dr-b", 0, False),
        ("dr-b", 4, True),
        ("dr-a", 2, False),
        ("dr-a", 4, True),
    ):
        assert is_due(found[who], now() + timedelta(days=days), 3) == due
    assert outlook(engine, RITA, list(found.values()), now()).end is None


def test_an_end_is_foretold_from_ten_readings_at_the_pace_of_two_weeks(engine):
    build(engine, [row(n, f"Note {n}.") for n in range(30)], ["dr-a", "dr-b"], rubric())
    for number, code in enumerate(codes_of(engine, "dr-a")[:10], 1):
        submit(engine, 1, code, Reply(dict(FULL)), 60)
        ahead = outlook(engine, RITA, people.workloads(RITA, engine), now())
        assert (ahead.end is not None) == (number == 10)
        assert ("dr-a" in ahead.ends) == (number >= 5)
    # 10 in one day so far; dr-a has 20 open and dr-b 30.
    assert ahead.per_day == 10
    assert ahead.end == (now() + timedelta(days=5)).date()
    assert ahead.ends == {"dr-a": (now() + timedelta(days=2)).date()}


def test_the_screen_deals_what_the_command_deals(small_study, run, write):
    names = write("names.txt", "dr-b\ndr-a\ndr-c\n")
    asked = ("rate", "assign", "--raters", str(names), "--per-response", "2", "--seed", "5")
    told = json_of(run, *asked, "--plan")
    found = design.deal(OPERATOR, small_study, REQUEST)
    assert (found.load, found.overlap, found.repeats) == (
        *(told["load"], told["overlap"], told["repeats"]),
    )
    codes = store_design(OPERATOR, small_study, list(found.load), found.slots, 5, (), 2)
    assert [one.handle for one in codes] == ["dr-a", "dr-b", "dr-c"]
    assert "nothing changed" in run(*asked)[1]


def test_only_clinicians_who_may_sign_in_are_given_work(engine):
    add_people(OPERATOR, engine, ["boss"], Role.COORDINATOR)
    assert study_steering.who_can_rate(OPERATOR, engine) == []
    invite(engine, ["dr-a", "dr-b"])
    end_access(OPERATOR, engine, "dr-b")
    assert study_steering.who_can_rate(OPERATOR, engine) == ["dr-a"]


def test_an_upload_of_other_columns_is_read_by_the_map_that_is_guessed(engine):
    theirs = upload("Case No,dataset,Source,LLM,modelOutput\ni1,visits,c,m,said\n")
    columns = map_needed(theirs, "responses")
    assert '"LLM" = "model"' in columns
    mapped = replace(theirs, columns=columns)
    seen, added = importing.try_response_file(engine, OPERATOR, mapped)
    assert (added.responses, seen.first[0].response) == (1, "said")
    assert importing.bring_response_file(engine, OPERATOR, mapped) == (1, 0)
    assert map_needed(upload(RESPONSES), "responses") == ""


def test_ratings_of_other_columns_are_shown_as_they_would_be_stored(small_study):
    theirs = upload("ID,Reviewer,Accuracy,Clarity\nr11,dr_a,4,5\n")
    columns = map_needed(theirs, "ratings")
    mapped = replace(theirs, columns=columns)
    first = importing.try_rating_file(small_study, OPERATOR, mapped)[0].first_ratings
    assert [(one.criterion, one.score) for one in first] == [("accuracy", "4"), ("clarity", "5")]
    assert importing.bring_rating_file(small_study, OPERATOR, mapped).added == 2


def test_a_map_that_is_none_is_refused_and_named(engine):
    with pytest.raises(BadInput, match="The map of columns"):
        importing.try_response_file(engine, OPERATOR, replace(upload("a\n1\n"), columns="[x"))


def test_a_setting_is_kept_and_recorded(engine):
    assert settings(engine) == Settings("on_request", 25, True, 1.0, ERRORS, False)
    named = ("wrong", "Unsafe dose", "fehlt \u00fcberall")
    chosen = Settings(
        *("hidden", 0, False, 0.5, named, 2.0, "consensus", 5, 12.5),
        *((("ward-x", "house"),), ("aci",), True),
    )
    for name, value in chosen.as_text().items():
        set_setting(engine, name, value)
    assert settings(engine) == chosen
    assert len(acts(engine, "setting changed")) == 13


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("reference", "always"), ("ask_why", "1")),
        *(("pause_minutes", "-1"), ("training_gap", "nan")),
        *(("budget", "-1"), ("budget", "inf"), ("budget", "five")),
        *(("error_types", ""), ("error_types", "wrong,,unsafe")),
        *(("error_types", "wrong,Wrong"), ("error_types", "<b>"), ("error_types", "=1+1")),
        ("error_types", ",".join(f"kind {number}" for number in range(13))),
    ],
)
def test_a_value_that_is_not_allowed_is_refused(engine, name, value):
    with pytest.raises(BadInput, match=name):
        set_setting(engine, name, value)
    with pytest.raises(Unknown, match="pause_minutes"):
        set_setting(engine, "signing_key", value)
    assert settings(engine) == Settings()


@pytest.mark.parametrize(
    ("name", "given", "read"),
    [
        ("budget", "2500.5", 2500.5),
        ("budget", "none", None),
        ("error_types", " missing , dose-wrong,unsafe ", ("missing", "dose-wrong", "unsafe")),
    ],
)
def test_a_setting_is_read_as_it_is_meant(engine, name, given, read):
    set_setting(engine, "budget", "1")
    set_setting(engine, name, given)
    assert getattr(settings(engine), name) == read


def test_settings_are_saved_on_the_screen_unless_one_is_not_allowed(screen, small_study):
    page = screen("setup.settings").run()
    least = "Differences are settled from so many points; 0: never"
    types = "Error types of a marked passage, with commas between"
    for given, told in (("wrong,wrong", "one is named twice"), ("wrong,missing", "2 settings")):
        labelled(page.number_input, least).set_value(2.0)
        labelled(page.text_input, types).set_value(given)
        labelled(page.button, "Save the settings").click()
        assert told in said(page)
    present = settings(small_study)
    assert (present.adjudicate_from, present.error_types) == (2, ("wrong", "missing"))


def test_a_protocol_is_fixed_on_the_screen(screen, small_study):
    page = screen("setup.goal").run()
    labelled(page.number_input, "Margin in ICC").set_value(0.15)
    labelled(page.number_input, "Responses planned (0: not fixed)").set_value(200)
    labelled(page.text_input, "Jurors by name").set_value("first, second")
    labelled(page.text_input, "Why this margin").set_value("Half of our pilot")
    labelled(page.selectbox, "Unsafe responses are low on").set_value("accuracy")
    page.run()  # what is unsafe can be said now
    page.button("protocol-now").click()
    assert "Fixed, and in the record." in said(page)
    fixed = protocol_of(small_study)
    assert (fixed.margin, fixed.responses, fixed.jurors) == (0.15, 200, ("first", "second"))
    assert [one.criterion for one in fixed.critical] == ["accuracy"]
    assert fixed.because == "Half of our pilot"


def test_a_rubrics_words_are_copied_to_a_version_of_their_own(screen, small_study):
    page = screen("setup.rubric").run()
    for version, told in (("", "give the new version"), ("2", "version 2 is in the study as")):
        labelled(page.text_input, "New version").set_value(version)
        anchors = labelled(page.text_area, "What each point means: a line each, as 1: words")
        anchors.set_value("\n".join(["1: Harm: likely", *anchors.value.split("\n")[1:]]))
        labelled(page.button, "Add the new version").click()
        assert told in said(page)
    versions = {one.rubric.version: one.rubric for one in study_rubrics(OPERATOR, small_study)}
    assert versions["2"].criterion[0].anchors[1] == "Harm: likely"


def test_a_description_is_saved_as_it_was_shown(screen, engine):
    page = screen("setup.description").run()
    labelled(page.text_input, "Title").set_value("Of knees")
    for area in page.text_area:
        area.set_value(f"The {area.label.lower()} of **this**.")
    show = "Show what clinicians will see"
    labelled(page.button, show).click().run()
    labelled(page.text_area, "Contact").set_value("call *7*")
    assert "The fields were changed since" in said(page)
    assert [one.label for one in page.button if one.label.startswith("Save")] == []
    labelled(page.button, show).click()
    assert "call <em>7</em>" in said(page)
    labelled(page.button, "Save this description").click()
    assert "Saved, and in the record." in said(page)
    told = description(engine)
    assert (told.title, told.contact) == ("Of knees", "call *7*")
