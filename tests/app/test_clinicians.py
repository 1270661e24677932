"""Clinicians to whoever steers: haste and straight lines, specialty, open work, and withdrawal."""

import json

import pytest
from kit.browsers import RITA, drawn_page, labelled, said
from kit.rating_study import build, row, rubric, task_of
from kit.studies import Run
from sqlmodel import Session, select
from streamlit.testing.v1 import AppTest

from data.card import Reply
from data.person import OPERATOR
from data.schema import Rater, Role
from data.study import people
from data.study.adjudication import differences
from data.study.assignments import Slot, answers_for, assign, pace_of, rating_habits
from data.study.frames import ratings_frame
from data.study.people import add_people
from data.study.ratings import FormState, submit
from data.study.settings import set_setting
from data.study.withdrawals import ended_work
from medjury.services.record import steered

N = 24
HASTY = "dr-quick"


@pytest.fixture
def rated(run, engine, tmp_path) -> Run:
    """Two clinicians read for a minute and differ from response to response; one gives 4 at once."""
    rows = [row(n, "word " * 150 + f"{n}.", response_id=f"r{n}") for n in range(N)]
    build(engine, rows, ["dr-a", "dr-b", HASTY], rubric("accuracy"))
    for key, name in ((1, "dr-a"), (2, "dr-b"), (3, HASTY)):
        for n in range(N):
            task = task_of(engine, key)
            score = 4 if name == HASTY else 1 + (n * 7 + key * (n % 3 == 0)) % 5
            seconds = 1.0 if name == HASTY else 60.0
            draft = {"scores": {"accuracy": score}, "by": "page", "seq": 1}
            state = FormState(draft, seconds)
            assert submit(
                engine, key, task.card.code, Reply({"accuracy": score}, comment="x"), seconds, state
            )
    jury = "response_id,rater,kind,accuracy\n" + "".join(
        f"r{n},j{j},juror,{1 + (n * 7 + j % 2) % 5}\n" for n in range(N) for j in range(3)
    )
    (tmp_path / "jury.csv").write_text(jury, "utf-8")
    assert run("rate", "ratings", str(tmp_path / "jury.csv"))[0] == 0
    return run


def test_who_cannot_have_read_is_known_and_in_no_pace(rated, engine):
    habits = rating_habits(engine)
    assert {name: one.is_fast for name, one in habits.items()} == {
        "dr-a": False,
        "dr-b": False,
        HASTY: True,
    }
    assert (habits[HASTY].n_hasty, habits[HASTY].n_timed) == (N, N)
    assert (habits[HASTY].longest_run, habits[HASTY].is_straight) == (N, True)
    assert not habits["dr-a"].is_straight
    assert pace_of(engine).timed == 2 * N


def test_nothing_is_said_of_an_order_that_is_only_that_of_a_file(rated, engine, tmp_path):
    rows = "".join(f"r{n},dr-file,clinician,4\n" for n in range(N))
    (tmp_path / "file.csv").write_text(f"response_id,rater,kind,accuracy\n{rows}", "utf-8")
    assert rated("rate", "ratings", str(tmp_path / "file.csv"))[0] == 0
    assert "dr-file" not in rating_habits(engine)
    assert "dr-file:" not in rated("analyse", "calibrate")[1]


def test_calibrate_says_who_was_fast_and_what_hangs_on_them(rated):
    code, out, _ = rated("analyse", "calibrate", "--json", "-")
    assert code == 0
    told = json.loads(out)
    assert {one["rater"]: one["fast"] for one in told["raters"]} == {
        "dr-a": False,
        "dr-b": False,
        HASTY: True,
    }
    _, words, _ = rated("analyse", "calibrate")
    assert f"{HASTY}: {N} of {N} ratings came faster" in " ".join(words.split())
    assert f"{HASTY}: {N} responses in a row got the same scores" in " ".join(words.split())
    assert f"without {HASTY}" in " ".join(words.split())
    without = json.loads(rated("analyse", "calibrate", "--without", HASTY, "--json", "-")[1])
    assert HASTY not in {one["rater"] for one in without["raters"]}


@pytest.mark.usefixtures("rated")
def test_the_home_of_a_coordinator_names_them(screen):
    told = said(screen("home.to_do"))
    assert f"{HASTY}|{N}|{N}|1.0|{N}" in told
    assert "dr-a|" not in told


CRITERIA = ("accuracy", "completeness", "clarity")
SCRIPT = """
from annotate.navigation import study
from annotate.screens.home.people import manage_person
from data.study import people
from data.person import OPERATOR
(member,) = [one for one in people.people(OPERATOR, study()) if one.name == NAME]
manage_person(study(), OPERATOR, member, 1)
"""


@pytest.fixture
def dialogs(serve) -> dict[str, AppTest]:
    """Return the dialog of a clinician, and that of a researcher."""
    for name, role in (("dr-a", Role.CLINICIAN), ("Rita", Role.RESEARCHER)):
        add_people(OPERATOR, serve, [name], role)
    return {name: drawn_page(f"NAME = {name!r}\n{SCRIPT}", 60).run() for name in ("dr-a", "Rita")}


def test_a_clinician_s_specialty_is_set_in_the_dialog_and_nobody_elses(dialogs, engine):
    page = dialogs["dr-a"]
    assert "Specialty" not in dialogs["Rita"].radio[0].options
    page.radio[0].set_value("Specialty").run()
    page.text_input[0].input("cardiology")
    page.button[0].click().run()
    assert not page.exception
    specialties = {one.name: one.specialty for one in people.people(OPERATOR, engine)}
    assert specialties == {"dr-a": "cardiology", "Rita": ""}


def test_work_left_open_by_somebody_whose_access_has_ended_is_given_to_others(small_study, dialogs):
    assign(small_study, [Slot("dr-a", 1, 1)], seed=0, per_response=1)
    people.end_access(OPERATOR, small_study, "dr-a")
    page = dialogs["dr-a"].run()
    page.radio[0].set_value("Give open work to others").run()
    page.button("free-now").click().run()
    assert not page.exception
    assert ended_work(small_study) == {"dr-a": 0}


def test_all_ratings_of_a_clinician_are_withdrawn_after_a_reason_and_a_second_question(
    small_study, dialogs
):
    assign(small_study, [Slot("dr-a", 1, 1)], seed=0, per_response=1)
    with Session(small_study) as session:
        rater = session.exec(select(Rater.id).where(Rater.handle == "dr-a")).one() or 0
    task = task_of(small_study, rater)
    submit(small_study, rater, task.card.code, Reply(dict.fromkeys(CRITERIA, 4)))
    page = dialogs["dr-a"].run()
    page.radio[0].set_value("Withdraw all ratings").run()
    assert page.button("withdraw-dr-a").disabled
    page.checkbox[0].check().run()
    page.button("withdraw-dr-a").click().run()
    assert "say why" in page.error[0].value
    assert len(ratings_frame(small_study)) == 3
    page.text_input[0].input("took back consent")
    page.button("withdraw-dr-a").click().run()
    assert not page.exception
    assert ratings_frame(small_study).empty
    assert "took back consent" in steered(small_study)[0]


def test_an_address_is_given_and_access_ended_in_the_dialog(dialogs, engine):
    page = dialogs["dr-a"]
    page.radio[0].set_value("Hospital e-mail").run()
    page.text_input[0].input("NG@ward.example")
    page.button[0].click().run()
    page.run().radio[0].set_value("Shut out").run()
    labelled(page.button, "Shut out").click().run()
    assert not page.exception
    [found] = [one for one in people.people(OPERATOR, engine) if one.name == "dr-a"]
    assert (found.email, found.way) == ("ng@ward.example", "ended")


def test_a_difference_is_given_out_and_a_flag_answered_by_words_that_name_no_model(
    small_study, screen
):
    add_people(OPERATOR, small_study, ["dr_low", "dr_high", "dr_other"], Role.CLINICIAN)
    assign(small_study, [Slot("dr_low", 1, 0), Slot("dr_high", 1, 0)], seed=0)
    for rater, accuracy, flags in ((1, 1, ("flag",)), (2, 4, ())):
        scores = {"accuracy": accuracy, "completeness": 3, "clarity": 3}
        reply = Reply(scores, comment="is it <b>cut</b> off?", flags=flags)
        submit(small_study, rater, task_of(small_study, rater).card.code, reply)
    set_setting(small_study, "adjudicate_from", "2")
    page = screen("home.to_do")
    assert "1 flag, 1 not answered" in said(page)
    labelled(page.button, "Assign 1 third reading").click()
    assert "1 reading assigned" in said(page)
    assert [one.reading for one in differences(OPERATOR, small_study, 2)] == ["third"]
    for answer, told in (
        ("Ask model-one.", "names what may be a model"),
        ("It is whole.", "Answered; the clinician sees it"),
    ):
        labelled(page.text_area, "Answer to dr_low on r11").set_value(answer)
        labelled(page.button, "Answer").click()
        assert told in said(page)
    assert [one.answer for one in answers_for(small_study, 1)] == ["It is whole."]
    assert "Answer" not in {one.label for one in screen("home.to_do", RITA).run().button}
