"""Withdrawing a rater, a rating or a response, joining spellings, and work of those who left."""

from pathlib import Path

import pytest
from kit.pages import drawn_page
from kit.studies import Run
from sqlalchemy import Engine, text
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

ROWS = """response_id,rater,kind,accuracy,completeness,clarity
r1,dr_a,clinician,4,4,4
r2,dr_a,clinician,2,2,3
r1,dr_b,clinician,3,3,3
"""


@pytest.fixture
def rated(small_study: Engine, run: Run, tmp_path: Path) -> Engine:
    responses = list(responses_frame(small_study)["response_id"])
    body = ROWS.replace("r1", responses[0]).replace("r2", responses[1])
    (tmp_path / "ratings.csv").write_text(body)
    assert run("rate", "ratings", str(tmp_path / "ratings.csv"))[0] == 0
    return small_study


def names(engine: Engine) -> list[str]:
    return list(responses_frame(engine)["response_id"])


def current(engine: Engine) -> int:
    """How many ratings count for who reads the database with SQL."""
    query = text("SELECT count(*) FROM rating WHERE id NOT IN (SELECT rating FROM superseded)")
    with engine.connect() as connection:
        return int(connection.execute(query).scalar_one())


def test_a_withdrawn_rater_is_stored_sealed_named_and_counts_nowhere(rated: Engine) -> None:
    assert withdraw(OPERATOR, rated, rater="dr_b", reason="took back consent") == 3
    assert {*ratings_frame(rated)["rater"]} == {"dr_a"}
    assert {one.handle for one in readings(Session(rated))} == {"dr_a"}
    assert current(rated) == 6
    assert "dr_b (3 scores): took back consent" in steered(rated)[0]
    checked = verify(rated)
    assert not checked.findings
    assert (checked.rows["withdrawal"], checked.rows["rating"]) == (1, 9)
    assert withdraw(OPERATOR, rated, rater="dr_b", reason="again") == 0


def test_a_withdrawn_response_is_in_no_frame_and_no_reading(rated: Engine) -> None:
    first = names(rated)[0]
    assert withdraw(OPERATOR, rated, response=first, reason="names the patient") == 6
    assert first not in names(rated)
    assert len(ratings_frame(rated)) == current(rated) == 3


def test_a_withdrawn_rating_does_not_bring_an_older_one_back_and_a_later_one_counts(
    rated: Engine, run: Run, tmp_path: Path
) -> None:
    first, path = names(rated)[0], tmp_path / "again.csv"
    row = "response_id,rater,kind,criterion,score\n{},dr_b,clinician,clarity,{}\n"
    path.write_text(row.format(first, 5))
    assert run("rate", "ratings", str(path))[0] == 0
    assert withdraw(OPERATOR, rated, response=first, rater="dr_b", reason="wrong patient") == 3
    assert "dr_b" not in {*ratings_frame(rated)["rater"]}
    assert current(rated) == 6
    assert run("rate", "ratings", str(path))[0] == 0
    assert current(rated) == 7
    assert len(ratings_frame(rated)) == 7


def test_withdrawing_is_refused_without_a_reason_or_a_subject_or_in_a_locked_study(
    rated: Engine,
) -> None:
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


def test_spellings_of_one_name_are_found_and_joined_only_by_an_act(rated: Engine) -> None:
    assert spellings(["dr a smith"], ["Dr. A. Smith", "dr b"]) == [("Dr. A. Smith", "dr a smith")]
    with pytest.raises(Conflict, match="both scored"):
        join_raters(OPERATOR, rated, "dr_b", "dr_a", "one person")
    withdraw(OPERATOR, rated, response=names(rated)[0], rater="dr_a", reason="doubled")
    assert join_raters(OPERATOR, rated, "dr_b", "dr_a", "one person") == 3
    assert {*ratings_frame(rated)["rater"]} == {"dr_a"}
    assert len(ratings_frame(rated)) == current(rated) == 6
    assert not verify(rated).findings


def test_a_file_clears_what_is_empty_in_it_and_with_replace_all_that_it_leaves_out(
    rated: Engine, run: Run, tmp_path: Path
) -> None:
    first = names(rated)[0]
    path = tmp_path / "corrected.csv"
    path.write_text(
        f"response_id,rater,kind,accuracy,completeness,clarity\n{first},dr_a,clinician,4,,4\n"
    )
    _, out, _ = run("rate", "ratings", str(path))
    assert "1 earlier score cleared" in out
    assert "still count (dr_a 3, dr_b 3); --replace withdraws them" in " ".join(out.split())
    assert current(rated) == 8
    _, out, _ = run("rate", "ratings", str(path), "--replace")
    assert "6 earlier scores not in this file withdrawn" in out
    assert current(rated) == len(ratings_frame(rated)) == 2
    assert not verify(rated).findings


def test_an_import_tells_of_another_spelling_of_a_name(
    rated: Engine, run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "other.csv"
    path.write_text(
        f"response_id,rater,kind,criterion,score\n{names(rated)[1]},Dr. A,clinician,clarity,4\n"
    )
    _, out, _ = run("rate", "ratings", str(path))
    assert 'rate people join "Dr. A" "dr_a"' in " ".join(out.split())
    assert {"Dr. A", "dr_a"} <= {*ratings_frame(rated)["rater"]}


def test_nobody_who_left_is_dealt_work_and_what_they_left_open_is_free_for_others(
    small_study: Engine, run: Run
) -> None:
    assign = ("rate", "assign", "--raters", "2", "--repeats", "0")
    assert run(*assign)[0] == 0
    _, out, _ = run("rate", "people", "end", "clinician-2", "--give-back")
    assert "4 open readings can be dealt to others" in out
    _, out, _ = run(*assign)
    assert "clinician-3" in out
    assert "clinician-2's access has ended" in out
    assert "clinician-2's access has ended." in run("status")[1]
    assert not verify(small_study).findings


def test_a_withdrawn_response_leaves_the_room_and_what_was_typed_of_it_stays_stored(
    small_study: Engine, run: Run
) -> None:
    assert run("rate", "assign", "--raters", "2", "--repeats", "0")[0] == 0
    with Session(small_study) as session:
        [rater] = session.exec(select(Rater.id).where(Rater.handle == "clinician-1")).all()
    assert rater is not None
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
    assert draft is not None
    assert "names her" in str(draft)


WORKBENCH = """
from annotate.navigation import study
from annotate.screens.agreement import responses
from data.person import Person
from data.schema import Role
responses.show(study(), Person(1, "Carla", Role.{role}))
"""


def test_one_rating_or_the_response_is_withdrawn_beside_what_was_said_of_it(
    rated: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = names(rated)[0]
    monkeypatch.setenv("MEDJURY_DB", rated.url.render_as_string(hide_password=False))
    page = drawn_page(WORKBENCH.format(role="COORDINATOR"))
    page.query_params["response"] = first
    page.run()
    page.selectbox(f"withdraw-what-{first}").select("dr_a").run()
    page.text_input(f"withdraw-why-{first}").input("wrong patient")
    page.checkbox(f"withdraw-sure-{first}").check().run()
    page.button(f"withdraw-{first}").click().run()
    assert not page.exception
    assert [(one.response, one.rater, one.scores) for one in withdrawals(rated)] == [
        (first, "dr_a", 3)
    ]
    other = drawn_page(WORKBENCH.format(role="RESEARCHER"))
    other.query_params["response"] = first
    other.run()
    assert other.selectbox(f"withdraw-what-{first}").options == ["the response"]
    other.text_input(f"withdraw-why-{first}").input("names the patient")
    other.checkbox(f"withdraw-sure-{first}").check().run()
    other.button(f"withdraw-{first}").click().run()
    assert not other.exception
    assert first not in names(rated)
    served().dispose()
