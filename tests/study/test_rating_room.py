"""Storing what clinicians do: submissions, codes, the events behind them, and no more waiting for who has rated much."""

from contextlib import contextmanager

import pytest
from kit.commands import csv_rows
from kit.rating_study import build, codes_of, person_of, row, rubric, task_of
from sqlalchemy import event, text
from sqlmodel import Session, select

from data.card import Marked, Reply
from data.schema import Assignment, Rating, Span, Submission
from data.study.assignments import Slot, assign
from data.study.people import invite
from data.study.ratings import submit
from data.study.room import Progress, next_task, rated_codes
from data.study.verify import verify

FULL = Reply({"accuracy": 4, "completeness": 3, "clarity": 5}, comment="fine")
SLOTS = [*(Slot("dr_a", one, place) for place, one in enumerate((3, 1, 2))), Slot("dr_b", 4, 0)]


@pytest.fixture
def dr_a(small_study):
    """Return a clinician with the first three responses to rate, and another with one."""
    invite(small_study, ["dr_a", "dr_b"])
    assign(small_study, SLOTS, seed=0)
    with small_study.connect() as connection:
        return int(connection.scalar(text("SELECT id FROM rater WHERE handle = 'dr_a'")) or 0)


def test_the_next_response_follows_the_clinicians_own_order(small_study, dr_a):
    seen = []
    while task := next_task(small_study, dr_a).task:
        seen.append(task.card.response)
        assert submit(small_study, dr_a, task.card.code, FULL, 10)
    assert seen == ["Mild pain.", "Patient denies fever.", "Patient has fever."]
    assert next_task(small_study, dr_a).progress == Progress(3, 3)


def test_hidden_repeats_are_not_told_by_the_count(small_study, dr_a):
    assert next_task(small_study, dr_a).progress.repeats == 0
    assign(small_study, [*SLOTS, Slot("dr_a", 3, 9, pass_=1)], seed=1)
    assert next_task(small_study, dr_a).progress == Progress(0, 4, 1)


SCORES = {"accuracy": 2, "completeness": 3, "clarity": 5}
LINKED = (
    Marked("accuracy", 0, 4, "wrong", "not this drug", severity="critical", linked=1),
    Marked("completeness", 0, 6, "missing", side="source", severity="major", linked=0),
)


@pytest.fixture
def code(small_study):
    """Return the code of the one response that dr_a is to rate."""
    invite(small_study, ["dr_a"])
    assign(small_study, [Slot("dr_a", 1, 1)], seed=0, per_response=1)
    return task_of(small_study, 1).card.code


def test_marks_and_comments_are_exported_each_once_and_the_record_vouches_for_them(
    run, small_study, code, tmp_path
):
    reply = Reply(SCORES, {"clarity": "-hard to read"}, "=all in all", LINKED, ("flag",))
    submit(small_study, 1, code, reply, 61.5)
    submit(small_study, 1, code, Reply(SCORES, comment="now fine"), 70)
    assert run("share", "export", str(tmp_path / "out"))[0] == 0
    files = (tmp_path / "out" / f"{name}.csv" for name in ("spans", "submissions", "ratings"))
    spans, submissions, ratings = map(csv_rows, files)
    marks = [[one[name] for name in ("side", "severity", "linked", "counts")] for one in spans]
    assert marks == [["response", "critical", "1", "0"], ["source", "major", "0", "0"]]
    assert [*spans[0]][-3:] == ["side", "severity", "linked"]
    told = [(one["revision"], one["comment"], one["counts"]) for one in submissions]
    assert told == [("0", "'=all in all", "0"), ("1", "now fine", "1")]
    assert [one["seconds"] for one in submissions] == ["61.5", "70.0"]
    assert {one["appearance"] for one in submissions} == {"light"}
    assert {one["study_text"] for one in submissions} == {""}
    assert [one["comment"] for one in ratings] == ["", "", ""]  # of the newest
    found = verify(small_study)
    assert found.findings == ()
    assert (found.rows["span"], found.rows["submission"]) == (2, 2)
    with Session(small_study) as session:
        kept = [one.comment for one in session.exec(select(Rating))]
        assert kept == ["", "", "-hard to read", "", "", ""]
        assert len(session.exec(select(Span)).all()) == 2
        assert len(session.exec(select(Submission)).all()) == 2


def test_what_cannot_be_rated_has_no_score_and_keeps_its_comments(small_study, code):
    said = Reply({}, {"clarity": "too short"}, "no source", flags=("not_enough_context",))
    assert submit(small_study, 1, code, said)
    assert not submit(small_study, 1, code, said)
    assert next_task(small_study, 1).task is None
    with Session(small_study) as session:
        [one] = session.exec(select(Submission)).all()
        assert session.exec(select(Rating)).all() == []
        assert session.exec(select(Assignment.state)).all() == ["unrated"]
    assert one.comment == "no source\nclarity: too short"


RESPONSES, FEW, MANY = 330, 30, 300
STEPS = 100  # of SQLite's own machine, at each of which it tells that it is at work


@pytest.fixture
def busy(engine):
    """Return a clinician with many responses to rate."""
    rows = [row(n, f"note {n}") for n in range(RESPONSES)]
    codes = build(engine, rows, ["dr-a"], rubric("accuracy"))
    return person_of(engine, codes["dr-a"]).rater or 0


@contextmanager
def counted(engine):
    """Count the hundreds of steps that SQLite takes, whatever the machine's speed."""
    found = [0]

    def tell():
        found[0] += 1
        return 0

    def listen(connection, *_):
        connection.set_progress_handler(tell, STEPS)

    event.listen(engine, "checkout", listen)
    yield found
    event.remove(engine, "checkout", listen)


def rate(engine, rater, upto):
    """Rate in order until so many are rated."""
    for code in codes_of(engine, "dr-a")[len(rated_codes(engine, rater)) : upto]:
        submit(engine, rater, code, Reply({"accuracy": 3}, comment="checked"), 1)


def test_the_300th_rating_costs_as_the_30th_and_the_way_back_in_proportion(
    engine, busy, study_file
):
    codes, found = codes_of(engine, "dr-a"), []
    for rated in (FEW, MANY):
        rate(engine, busy, rated)
        with counted(engine) as looking_back:
            assert rated_codes(engine, busy) == codes[:rated]
        with counted(engine) as rating:
            submit(engine, busy, task_of(engine, busy).card.code, Reply({"accuracy": 4}), 1)
            next_task(engine, busy)
        found.append((rating[0], looking_back[0]))
    (few, few_back), (many, many_back) = found
    assert 0 < many < 1.5 * few
    assert 0 < many_back < 1.5 * MANY / FEW * few_back
