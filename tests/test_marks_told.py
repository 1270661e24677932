"""Marks from the rating room to where they are read: JSON, terminal, report."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from kit.studies import Run, bring_in
from sqlalchemy import Engine
from sqlmodel import Session, select

from data.card import Marked, Reply
from data.queries.frames import marks_frame, readers
from data.schema import Assignment, Rater, Response
from data.store import Slot, assign, invite, submit

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


def calibrated(run: Run, *arguments: str) -> Any:
    code, out, err = run("analyse", "calibrate", "--reps", "200", "--json", "-", *arguments)
    assert code == 0, err
    return json.loads(out)


def test_the_newest_marks_of_first_readings_are_read_and_who_could_have_marked(
    marked: Engine,
) -> None:
    marks, who = marks_frame(marked), readers(marked)
    assert len(marks) == 2 * 2 * 8
    assert set(marks["side"]) == {"response", "source"}
    assert who["r1"] == frozenset(PEOPLE)  # and not who rated elsewhere
    assert "r23" not in who


def test_the_details_say_whether_the_jury_saw_what_was_marked(run: Run, marked: Engine) -> None:
    rows = calibrated(run, "--details")["details"]["evidence"]
    every = rows[0]
    assert [every[name] for name in ("criterion", "error", "severity")] == [None, None, None]
    assert (every["n_read"], every["n_marked"], every["n_clinicians"]) == (23, 8, 2)
    assert (every["n_read_twice"], every["n_places"], every["n_shared"]) == (23, 16, 16)
    assert (every["f1"], every["places"]) == (1.0, {"2": 16})
    assert every["high"] < 0
    assert every["difference"] == pytest.approx(every["jury_with"] - every["jury_without"])
    kinds = [(one["criterion"], one["error"], one["severity"]) for one in rows[1:]]
    assert kinds == [
        *((None, None, "critical or major"), ("accuracy", None, None)),
        *(("completeness", None, None), ("accuracy", "wrong", "critical")),
        ("completeness", "missing", "major"),
    ]
    assert calibrated(run).get("details") is None


def test_the_terminal_and_the_report_show_the_table_of_marks(
    run: Run, marked: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    page = tmp_path / "report.html"
    code, out, err = run("analyse", "calibrate", "--reps", "200", "--details", "--html", str(page))
    assert code == 0, err
    assert "visits: What clinicians marked, and what the jury scored there" in out
    assert re.search(
        r"accuracy, wrong, critical +8 of 23 +-\d\.\d\d +-\d\.\d\d to -\d\.\d\d +1\.00", out
    )
    told = page.read_text("utf-8")
    assert "What clinicians marked, and whether the jury saw it" in told
    assert "accuracy, wrong, critical" in told
    assert "insulin" not in told  # a report quotes no text
