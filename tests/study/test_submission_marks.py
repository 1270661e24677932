"""What a submission says of a text: marks with kind, side, severity and link, and comments."""

import csv
from pathlib import Path

import pytest
from kit.studies import Run
from sqlalchemy import Engine, event
from sqlmodel import Session, select

from data.card import Marked, Reply
from data.errors import BadInput
from data.schema import Rating, Span, Submission
from data.study.assignments import Slot, assign
from data.study.people import invite
from data.study.ratings import submit
from data.study.room import next_task
from data.study.settings import set_setting
from data.study.verify import verify

SCORES = {"accuracy": 2, "completeness": 3, "clarity": 5}
LINKED = (
    Marked("accuracy", 0, 4, "wrong", "not this drug", severity="critical", linked=1),
    Marked("completeness", 0, 6, "missing", side="source", severity="major", linked=0),
)


@pytest.fixture
def code(small_study: Engine) -> str:
    """Return the code of the one response that dr_a is to rate."""
    invite(small_study, ["dr_a"])
    assign(small_study, [Slot("dr_a", 1, 1)], seed=0, per_response=1)
    task = next_task(small_study, 1).task
    assert task is not None
    return task.card.code


@pytest.mark.parametrize(
    "span",
    [
        Marked("accuracy", 0, 4, "ugly"),
        Marked("accuracy", 0, 4, "Wrong"),
        Marked("accuracy", 0, 4, "wrong", severity="fatal"),  # type: ignore[arg-type]
        Marked("accuracy", 0, 4, "wrong", side="margin"),  # type: ignore[arg-type]
        Marked("accuracy", 0, 4, "wrong", linked=0),
        Marked("accuracy", 0, 4, "wrong", linked=1),
    ],
)
def test_a_mark_of_a_kind_that_the_study_does_not_have_is_refused(
    small_study: Engine, code: str, span: Marked
) -> None:
    with pytest.raises(BadInput, match="mark it again"):
        submit(small_study, 1, code, Reply(SCORES, spans=(span,)))
    with Session(small_study) as session:
        assert session.exec(select(Rating)).all() == []


def test_the_kinds_of_marks_are_those_that_the_study_lists(small_study: Engine, code: str) -> None:
    set_setting(small_study, "error_types", "dose, missing")
    with pytest.raises(BadInput, match="dose, missing"):
        submit(small_study, 1, code, Reply(SCORES, spans=(Marked("accuracy", 0, 4, "wrong"),)))
    assert submit(small_study, 1, code, Reply(SCORES, spans=(Marked("accuracy", 0, 4, "dose"),)))


@pytest.mark.parametrize("side", ["response", "source"])
@pytest.mark.parametrize("error", ["missing", "wrong"])
def test_any_kind_of_mark_may_stand_on_either_side(
    small_study: Engine, code: str, side: str, error: str
) -> None:
    mark = Marked("accuracy", 0, 4, error, side="source" if side == "source" else "response")
    assert submit(small_study, 1, code, Reply(SCORES, spans=(mark,)))


@pytest.mark.parametrize(("spans", "queries"), [((), 1), (LINKED, 2)])
def test_only_a_submission_with_marks_asks_what_a_mark_can_be_called(
    small_study: Engine, code: str, spans: tuple[Marked, ...], queries: int
) -> None:
    asked: list[str] = []

    def count(_: object, __: object, statement: str, *rest: object) -> None:
        if "FROM setting" in statement:
            asked.append(statement)

    event.listen(small_study, "before_cursor_execute", count)
    submit(small_study, 1, code, Reply(SCORES, spans=spans))
    event.remove(small_study, "before_cursor_execute", count)
    assert len(asked) == queries  # one for all else that holds, and that


def test_marks_and_comments_are_exported_each_once_and_the_record_vouches_for_them(
    run: Run, small_study: Engine, code: str, tmp_path: Path
) -> None:
    reply = Reply(SCORES, {"clarity": "-hard to read"}, "=all in all", LINKED, ("flag",))
    submit(small_study, 1, code, reply, 61.5)
    submit(small_study, 1, code, Reply(SCORES, comment="now fine"), 70)
    assert run("share", "export", str(tmp_path / "out"))[0] == 0
    spans, submissions, ratings = (
        table(tmp_path / "out" / f"{name}.csv") for name in ("spans", "submissions", "ratings")
    )
    assert [[one[name] for name in ("side", "severity", "linked", "counts")] for one in spans] == [
        ["response", "critical", "1", "0"],
        ["source", "major", "0", "0"],
    ]
    assert [*spans[0]][-3:] == ["side", "severity", "linked"]
    assert [(one["revision"], one["comment"], one["counts"]) for one in submissions] == [
        ("0", "'=all in all", "0"),
        ("1", "now fine", "1"),
    ]
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


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_a_comment_on_a_criterion_that_has_no_score_stays_with_the_submission(
    small_study: Engine, code: str
) -> None:
    said = Reply({}, {"clarity": "too short"}, "no source", flags=("not_enough_context",))
    assert submit(small_study, 1, code, said)
    assert not submit(small_study, 1, code, said)
    with Session(small_study) as session:
        [one] = session.exec(select(Submission)).all()
    assert one.comment == "no source\nclarity: too short"
