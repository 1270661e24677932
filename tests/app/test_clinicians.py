"""Clinicians to whoever steers: haste and straight lines, specialty, open work, and withdrawal."""

import pytest
from kit.browsers import drawn_page, said
from kit.commands import json_of
from kit.rating_study import build, row, rubric, task_of
from sqlmodel import Session, select

from data.card import Reply
from data.person import OPERATOR
from data.schema import Rater, Role
from data.study import people
from data.study.assignments import Slot, assign, pace_of, rating_habits
from data.study.frames import ratings_frame
from data.study.people import add_people
from data.study.ratings import FormState, submit
from data.study.withdrawals import ended_work
from medjury.services.record import steered

N = 24
HASTY = "dr-quick"


@pytest.fixture
def rated(run, engine, tmp_path):
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
    assert {name: (one.is_fast, one.is_straight) for name, one in habits.items()} == {
        **dict.fromkeys(("dr-a", "dr-b"), (False, False)),
        HASTY: (True, True),
    }
    hasty = habits[HASTY]
    assert (hasty.n_hasty, hasty.n_timed, hasty.longest_run) == (N, N, N)
    assert pace_of(engine).timed == 2 * N


def test_nothing_is_said_of_an_order_that_is_only_that_of_a_file(rated, engine, tmp_path):
    rows = "".join(f"r{n},dr-file,clinician,4\n" for n in range(N))
    (tmp_path / "file.csv").write_text(f"response_id,rater,kind,accuracy\n{rows}", "utf-8")
    assert rated("rate", "ratings", str(tmp_path / "file.csv"))[0] == 0
    assert "dr-file" not in rating_habits(engine)
    assert "dr-file:" not in rated("analyse", "calibrate")[1]


def test_calibrate_says_who_was_fast_and_what_hangs_on_them(rated):
    told = json_of(rated, "analyse", "calibrate")
    fast = {"dr-a": False, "dr-b": False, HASTY: True}
    assert {one["rater"]: one["fast"] for one in told["raters"]} == fast
    words = " ".join(rated("analyse", "calibrate")[1].split())
    assert f"{HASTY}: {N} of {N} ratings came faster" in words
    assert f"{HASTY}: {N} responses in a row got the same scores" in words
    assert f"without {HASTY}" in words
    without = json_of(rated, "analyse", "calibrate", "--without", HASTY)
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
def dialogs(serve):
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
