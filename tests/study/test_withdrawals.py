"""Withdrawing a rater, a rating or a response, joining spellings, and work of those who left."""

import pytest
from kit.browsers import drawn_page
from sqlalchemy import text
from sqlmodel import Session, select

from annotate.navigation import study as served
from data.card import Reply
from data.errors import BadInput, Conflict, MedjuryError, NotAllowed, Unknown
from data.person import OPERATOR, Person
from data.schema import Assignment, Rater, Response, Role
from data.study.frames import ratings_frame, responses_frame
from data.study.ratings import FormState, save_draft, submit
from data.study.readings import readings
from data.study.room import next_task, task
from data.study.settings import lock
from data.study.verify import verify
from data.study.withdrawals import join_raters, spellings, withdraw, withdrawals
from medjury.services.record import steered

WIDE = "response_id,rater,kind,accuracy,completeness,clarity\n"
ROWS = f"{WIDE}r11,dr_a,clinician,4,4,4\nr12,dr_a,clinician,2,2,3\nr11,dr_b,clinician,3,3,3\n"
LONG = "response_id,rater,kind,criterion,score\n"


@pytest.fixture
def rated(small_study, run, tmp_path):
    (tmp_path / "ratings.csv").write_text(ROWS)
    assert run("rate", "ratings", str(tmp_path / "ratings.csv"))[0] == 0
    return small_study


def names(engine):
    return list(responses_frame(engine)["response_id"])


def current(engine):
    """How many ratings count for who reads the database with SQL."""
    query = text("SELECT count(*) FROM rating WHERE id NOT IN (SELECT rating FROM superseded)")
    with engine.connect() as connection:
        return int(connection.execute(query).scalar_one())


def test_a_withdrawn_rater_is_stored_sealed_named_and_counts_nowhere(rated):
    assert withdraw(OPERATOR, rated, rater="dr_b", reason="took back consent") == 3
    assert {*ratings_frame(rated)["rater"]} == {"dr_a"}
    assert {one.handle for one in readings(Session(rated))} == {"dr_a"}
    assert current(rated) == 6
    assert "dr_b (3 scores): took back consent" in steered(rated)[0]
    checked = verify(rated)
    assert not checked.findings
    assert (checked.rows["withdrawal"], checked.rows["rating"]) == (1, 9)
    assert withdraw(OPERATOR, rated, rater="dr_b", reason="again") == 0


def test_a_withdrawn_response_is_in_no_frame_and_no_reading(rated):
    assert withdraw(OPERATOR, rated, response="r11", reason="names the patient") == 6
    assert "r11" not in names(rated)
    assert len(ratings_frame(rated)) == current(rated) == 3


def test_a_withdrawn_rating_brings_no_older_one_back_and_a_later_one_counts(rated, run, write):
    path = str(write("again.csv", f"{LONG}r11,dr_b,clinician,clarity,5\n"))
    assert run("rate", "ratings", path)[0] == 0
    assert withdraw(OPERATOR, rated, response="r11", rater="dr_b", reason="wrong patient") == 3
    assert "dr_b" not in {*ratings_frame(rated)["rater"]}
    assert current(rated) == 6
    assert run("rate", "ratings", path)[0] == 0
    assert current(rated) == len(ratings_frame(rated)) == 7


def test_withdrawing_is_refused_without_a_reason_or_a_subject_or_in_a_locked_study(rated):
    with pytest.raises(BadInput, match="say why"):
        withdraw(OPERATOR, rated, rater="dr_b", reason=" ")
    with pytest.raises(BadInput, match="name the response"):
        withdraw(OPERATOR, rated, reason="x")
    with pytest.raises(Unknown, match="dr_c"):
        withdraw(OPERATOR, rated, rater="dr_c", reason="x")
    with pytest.raises(NotAllowed):
        withdraw(Person(1, "c", Role.CLINICIAN), rated, rater="dr_b", reason="x")
    lock(rated, "coordinator")
    with pytest.raises(NotAllowed, match="locked"):
        withdraw(OPERATOR, rated, rater="dr_b", reason="x")
    assert not withdrawals(rated)


def test_spellings_of_one_name_are_found_and_joined_only_by_an_act(rated, run, write):
    assert spellings(["dr a smith"], ["Dr. A. Smith", "dr b"]) == [("Dr. A. Smith", "dr a smith")]
    with pytest.raises(Conflict, match="both scored"):
        join_raters(OPERATOR, rated, "dr_b", "dr_a", "one person")
    withdraw(OPERATOR, rated, response="r11", rater="dr_a", reason="doubled")
    assert join_raters(OPERATOR, rated, "dr_b", "dr_a", "one person") == 3
    assert {*ratings_frame(rated)["rater"]} == {"dr_a"}
    assert len(ratings_frame(rated)) == current(rated) == 6
    assert not verify(rated).findings
    other = write("other.csv", f"{LONG}r12,Dr. A,clinician,clarity,4\n")
    _, out, _ = run("rate", "ratings", str(other))
    assert 'rate people join "Dr. A" "dr_a"' in " ".join(out.split())
    assert {"Dr. A", "dr_a"} <= {*ratings_frame(rated)["rater"]}


def test_a_file_clears_what_is_empty_and_with_replace_all_it_leaves_out(rated, run, write):
    path = str(write("corrected.csv", f"{WIDE}r11,dr_a,clinician,4,,4\n"))
    _, out, _ = run("rate", "ratings", path)
    assert "1 earlier score cleared" in out
    assert "still count (dr_a 3, dr_b 3); --replace withdraws them" in " ".join(out.split())
    assert current(rated) == 8
    _, out, _ = run("rate", "ratings", path, "--replace")
    assert "6 earlier scores not in this file withdrawn" in out
    assert current(rated) == len(ratings_frame(rated)) == 2
    assert not verify(rated).findings


def test_nobody_who_left_is_dealt_work_and_what_they_left_open_is_free_for_others(small_study, run):
    assign = ("rate", "assign", "--raters", "2", "--repeats", "0")
    assert run(*assign)[0] == 0
    _, out, _ = run("rate", "people", "end", "clinician-2", "--give-back")
    assert "4 open readings can be dealt to others" in out
    _, out, _ = run(*assign)
    assert "clinician-3" in out
    assert "clinician-2's access has ended" in out
    assert "clinician-2's access has ended." in run("status")[1]
    assert not verify(small_study).findings


def test_a_withdrawn_response_leaves_the_room_and_its_draft_stays_stored(small_study, run):
    assert run("rate", "assign", "--raters", "2", "--repeats", "0")[0] == 0
    with Session(small_study) as session:
        rater = session.exec(select(Rater.id).where(Rater.handle == "clinician-1")).one()
    before = next_task(small_study, rater)
    assert before.task is not None
    code = before.task.card.code
    entered = FormState({"comment": "names her", "by": "page1", "seq": 1}, 3.0)
    save_draft(small_study, rater, code, entered)
    with Session(small_study) as session:
        query = select(Response.response_id).join(Assignment).where(Assignment.code == code)
        [name] = session.exec(query).all()
    withdraw(OPERATOR, small_study, response=name, reason="names the patient")
    after = next_task(small_study, rater)
    assert after.task is not None
    assert after.task.card.code != code
    assert after.progress.total == before.progress.total - 1
    assert task(small_study, rater, code) is None
    with pytest.raises(MedjuryError):
        submit(small_study, rater, code, Reply({"accuracy": 4}), 5.0)
    with Session(small_study) as session:
        [draft] = session.exec(select(Assignment.draft).where(Assignment.code == code)).all()
    assert "names her" in str(draft)


WORKBENCH = """
from annotate.navigation import study
from annotate.screens.agreement import responses
from data.person import Person
from data.schema import Role
responses.show(study(), Person(1, "Carla", Role.{role}))
"""


def test_one_rating_or_the_response_is_withdrawn_beside_what_was_said_of_it(rated, monkeypatch):
    monkeypatch.setenv("MEDJURY_DB", rated.url.render_as_string(hide_password=False))

    def withdrawn_by(role, why, what=""):
        page = drawn_page(WORKBENCH.format(role=role))
        page.query_params["response"] = "r11"
        page.run()
        offered = page.selectbox("withdraw-what-r11")
        if what:
            offered.select(what).run()
        page.text_input("withdraw-why-r11").input(why)
        page.checkbox("withdraw-sure-r11").check().run()
        page.button("withdraw-r11").click().run()
        assert not page.exception
        return list(offered.options)

    withdrawn_by("COORDINATOR", "wrong patient", "dr_a")
    [found] = withdrawals(rated)
    assert (found.response, found.rater, found.scores) == ("r11", "dr_a", 3)
    assert withdrawn_by("RESEARCHER", "names the patient") == ["the response"]
    assert "r11" not in names(rated)
    served().dispose()
