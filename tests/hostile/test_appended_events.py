"""Events that are appended heal no forgery, and what came since a head is told."""

import pytest
from kit.changed_cells import attacked
from kit.sealed_study import made
from sqlalchemy import update
from sqlmodel import Session, col, select

from data import record
from data.card import Reply
from data.database import transaction
from data.errors import BadInput
from data.rubric import read_rubric
from data.schema import Assignment, Authorship, Event, Rater, Rating, Response, Setting, Table, now
from data.study.assignments import Slot, assign
from data.study.people import invite
from data.study.rubrics import RatingForm
from data.study.settings import lock, reopen, set_setting
from data.study.verify import present_head, verify, verify_in

__all__ = ["made"]


def scores_up(session):
    """Give every response the best score of every clinician."""
    clinicians = select(Rater.id).where(Rater.kind == "clinician")
    session.execute(update(Rating).where(col(Rating.rater).in_(clinicians)).values(score=5.0))
    return Rating


def authors_moved(session):
    """Give every response the author of the one before."""
    rows = session.exec(select(Authorship).order_by(col(Authorship.response))).all()
    for row, model in zip(rows, [rows[-1].model, *(one.model for one in rows)], strict=False):
        row.model = model
    return Authorship


def texts_changed(session):
    """Say that a response came with another text."""
    response = session.exec(select(Response)).first()
    response.text, response.commitment = (
        "Another.",
        record.commitment(response.salt or "", "Another."),
    )
    return Response


def seal_anew(session, model, action, kind):
    """Append an event that seals all rows of a table as they are now, as an honest one would."""
    session.flush()
    written, name = record.Written(), str(model.__tablename__)
    for row in session.exec(select(model)).all():
        values = row.model_dump()
        getattr(written, kind)(name, values)
    previous = session.exec(select(Event.sha256).order_by(col(Event.id).desc()).limit(1)).one()
    event = Event(at=now(), actor="coordinator", action=action, previous=previous, sha256="")
    event.detail = {"sealed": written.seals([name])}
    event.sha256 = record.event_hash(event)
    session.add(event)


@pytest.mark.parametrize("kind", ["add", "change"])
@pytest.mark.parametrize("action", ["setting changed", "rated", "responses imported"])
@pytest.mark.parametrize("forge", [scores_up, authors_moved, texts_changed])
def test_a_seal_that_is_appended_heals_no_forgery(forge, action, kind, made):
    with attacked(made) as session:
        model = forge(session)
        if kind == "add" or record.columns_of_table(str(model.__tablename__)).changing:
            seal_anew(session, model, action, kind)
        session.flush()
        findings = verify_in(session).findings
    name = str(model.__tablename__)
    assert any(one.startswith(name) and "changed since event" in one for one in findings)


def test_nothing_but_the_reopening_follows_a_lock(small_study):
    lock(small_study, "coordinator")
    with Session(small_study, info={record.WRITTEN: record.Written()}) as session, session.begin():
        session.add(Setting(key="reading_order", value="forged"))
        record.log(session, "coordinator", "setting changed", {})
    [finding] = [one for one in verify(small_study).findings if "locked" in one]
    assert "setting changed" in finding


def test_a_lock_is_taken_away_by_no_other_act(small_study):
    lock(small_study, "coordinator")
    with Session(small_study, info={record.WRITTEN: record.Written()}) as session, session.begin():
        session.delete(session.get_one(Setting, "locked"))
        record.log(session, "coordinator", "panel forgotten", {})
    assert any("seals setting locked" in one for one in verify(small_study).findings)


def test_what_came_since_a_head_is_told_and_since_a_lock_is_a_finding(small_study, run, tmp_path):
    before = tmp_path / "before.head"
    before.write_text(present_head(small_study).to_text(), "ascii")
    lock(small_study, "coordinator")
    kept = tmp_path / "study.head"
    kept.write_text(present_head(small_study).to_text(), "ascii")
    assert verify(small_study, str(kept)).findings == ()
    reopen(small_study, "coordinator", "two more clinicians")
    set_setting(small_study, "training_gap", "1.5")
    assert verify(small_study).findings == ()
    found = verify(small_study, str(before))
    since = {"locked": 1, "reopened": 1, "setting changed": 1}
    assert (found.findings, dict(found.since or {})) == ((), since)
    told = [one.split("): ")[1] for one in verify(small_study, str(kept)).findings]
    assert told == ["came after the head, at which the study was locked"] * 2
    code, said, _ = run("study", "verify", "--head", str(kept))
    assert code == 1
    assert "since the head that was kept: 1 reopened, 1 setting changed" in said


def test_every_table_is_written_by_some_act():
    written = {table for tables in record.ACTS.values() for table in tables}
    assert set(Table.metadata.tables) - written == {"event"}


def test_what_is_written_without_an_event_is_refused(small_study):
    def rename(session):
        session.exec(select(Response)).all()[0].response_id = "another"

    for said, act in {
        "rows of setting": lambda one: one.add(Setting(key="reading_order", value="forged")),
        "through the session": lambda one: one.execute(update(Rating).values(score=5.0)),
        "never changes": rename,
        "ever deleted": lambda one: one.delete(one.exec(select(Authorship)).all()[0]),
    }.items():
        with pytest.raises(RuntimeError, match=said), transaction(small_study) as session:
            act(session)
    assert verify(small_study).findings == ()


@pytest.mark.parametrize("text", ["a\0b", "\0"])
def test_no_text_with_u_0000_is_stored_whoever_writes_it(small_study, text):
    for row in (
        Setting(key="per_response", value=text),
        Rater(kind="juror", handle="j", profile={"settings": [text]}),
    ):
        with pytest.raises(BadInput, match="U\\+0000"), transaction(small_study) as session:
            session.add(row)
    invite(small_study, ["dr_a"])
    assign(small_study, [Slot("dr_a", 1, 1)], seed=0, per_response=1)
    with pytest.raises(BadInput, match="U\\+0000"), transaction(small_study) as session:
        session.exec(select(Assignment)).all()[0].draft = {"by": [text]}
    with pytest.raises(BadInput, match="U\\+0000"), transaction(small_study) as session:
        record.update_unsealed(session, Assignment, draft={text: 1})
    for actor, reason in (("coordinator", text), (text, "")):
        with pytest.raises(BadInput, match="U\\+0000"), transaction(small_study) as session:
            record.log(session, actor, "unblinded", {"reason": reason})
    reply = Reply({"accuracy": 3}, {"accuracy": text})
    with pytest.raises(BadInput, match="U\\+0000"):
        RatingForm(read_rubric("generic")).refuse_impossible(reply)
    assert verify(small_study).findings == ()
