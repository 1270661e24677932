"""What a coordinator does about a clinician in the app: specialty, open work, and withdrawal."""

import pytest
from kit.pages import drawn_page
from kit.rating_study import task_of
from sqlalchemy import Engine
from sqlmodel import Session, select
from streamlit.testing.v1 import AppTest

from data.card import Reply
from data.person import OPERATOR
from data.schema import Rater, Role
from data.study import people
from data.study.assignments import Slot, assign
from data.study.frames import ratings_frame
from data.study.people import add_people
from data.study.ratings import submit
from data.study.withdrawals import ended_work
from medjury.services.record import steered

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
def dialogs(serve: Engine) -> dict[str, AppTest]:
    """Return the dialog of a clinician, and that of a researcher."""
    for name, role in (("dr-a", Role.CLINICIAN), ("Rita", Role.RESEARCHER)):
        add_people(OPERATOR, serve, [name], role)
    return {name: drawn_page(f"NAME = {name!r}\n{SCRIPT}", 60).run() for name in ("dr-a", "Rita")}


def test_a_clinician_s_specialty_is_set_in_the_dialog_and_nobody_elses(
    dialogs: dict[str, AppTest], engine: Engine
) -> None:
    page = dialogs["dr-a"]
    assert "Specialty" not in dialogs["Rita"].radio[0].options
    page.radio[0].set_value("Specialty").run()
    page.text_input[0].input("cardiology")
    page.button[0].click().run()
    assert not page.exception
    specialties = {one.name: one.specialty for one in people.people(OPERATOR, engine)}
    assert specialties == {"dr-a": "cardiology", "Rita": ""}


def test_work_left_open_by_somebody_whose_access_has_ended_is_given_to_others(
    small_study: Engine, dialogs: dict[str, AppTest]
) -> None:
    assign(small_study, [Slot("dr-a", 1, 1)], seed=0, per_response=1)
    people.end_access(OPERATOR, small_study, "dr-a")
    page = dialogs["dr-a"].run()
    page.radio[0].set_value("Give open work to others").run()
    page.button("free-now").click().run()
    assert not page.exception
    assert ended_work(small_study) == {"dr-a": 0}


def test_all_ratings_of_a_clinician_are_withdrawn_after_a_reason_and_a_second_question(
    small_study: Engine, dialogs: dict[str, AppTest]
) -> None:
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
