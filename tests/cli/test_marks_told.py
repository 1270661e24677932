"""Marks from the rating room to where they are read."""

import json
from pathlib import Path

import pytest
from kit.studies import Run, bring_in
from sqlalchemy import Engine
from sqlmodel import Session, select

from data.card import Marked, Reply
from data.schema import Assignment, Rater, Response
from data.study.assignments import Slot, assign
from data.study.frames import marks_frame, readers
from data.study.people import invite
from data.study.ratings import submit

TEXT = "Give insulin 10 units at night and call again."
PEOPLE = ("dr_a", "dr_b")
N = 24


@pytest.fixture
def marked(run: Run, engine: Engine, tmp_path: Path) -> Engine:
    """Make a study of 24 responses, every third of which both clinicians mark and jurors score low."""
    texts = ["instance_id,benchmark,context,prompt,response_id,model,response"]
    texts += [f"i{n},visits,Pain. Dose 1 unit.,Write.,r{n},m{n % 2},{TEXT}" for n in range(N)]
    scores = ["response_id,rater,kind,accuracy,completeness,clarity"]
    scores += [
        f"r{n},{name},juror,{2 if n % 3 == 0 else 4},{2 + (n + at) % 3},{1 + n % 5}"
        for n in range(N)
        for at, name in enumerate(("gpt", "llama"))
    ]
    scores.append("r1,dr_elsewhere,clinician,3,3,3")
    bring_in(run, tmp_path, texts, scores)
    invite(engine, PEOPLE)
    slots = [Slot(name, n + 1, n) for n in range(N - 1) for name in PEOPLE]
    repeats = [Slot("dr_a", 1, N, pass_=1)]
    assign(engine, [*slots, *repeats], seed=0, per_response=2)
    for rater, code, place, again in showings(engine):
        submit(engine, rater, code, reply(place, again), 5.0)
    first = next(one for one in showings(engine) if one[2:] == (3, 0))
    assert submit(engine, first[0], first[1], reply(3, 0, "clearer"), 9.0)  # marks as before
    return engine


def showings(engine: Engine) -> list[tuple[int, str, int, int]]:
    """Return rater, code, number of the response, and 1 of a hidden repeat, of every assignment."""
    with Session(engine) as session:
        found = session.exec(
            select(Assignment.rater, Assignment.code, Response.response_id, Assignment.pass_)
            .join(Response)
            .join(Rater)
            .order_by(Rater.handle, Assignment.position)
        ).all()
    return [(rater, code, int(name[1:]), again) for rater, code, name, again in found]


def reply(place: int, again: int, comment: str = "") -> Reply:
    """Return what is said of a response: a wrong dose in every third, and only the first time."""
    low = place % 3 == 0
    scores = {"accuracy": 1 if low else 5, "completeness": 1 + place % 5, "clarity": 3 + place % 2}
    spans = (
        Marked("accuracy", 13, 21, "wrong", severity="critical", linked=1),
        Marked("completeness", 6, 17, "missing", side="source", severity="major", linked=0),
    )
    return Reply(scores, comment=comment, spans=spans if low and not again else ())


def test_the_newest_marks_of_first_readings_are_read_and_who_could_have_marked(
    marked: Engine,
) -> None:
    marks, who = marks_frame(marked), readers(marked)
    assert len(marks) == 2 * 2 * 8
    assert set(marks["side"]) == {"response", "source"}
    assert who["r1"] == frozenset(PEOPLE)  # and not who rated elsewhere
    assert "r23" not in who


def test_errors_say_how_far_clinicians_mark_the_same_places(run: Run, marked: Engine) -> None:
    code, out, err = run("analyse", "errors", "--json", "-")
    assert code == 0, err
    (benchmark,) = json.loads(out)["benchmarks"]
    groups = {(one["group"], one["error"]): one for one in benchmark["groups"]}
    every = groups["marked", ""]
    assert (every["n_read"], every["n_responses"], every["n_marks"]) == (23, 8, 32)
    assert (every["n_places"], every["n_shared"]) == (16, 16)
    assert (groups["error", "wrong"]["n_places"], groups["unmarked", ""]["n_places"]) == (8, 0)
    assert every["jury"] < groups["unmarked", ""]["jury"]
