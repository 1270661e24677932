"""What is shown of one response: every comment and every mark, each of them once."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from kit.studies import Run
from sqlalchemy import Engine

from annotate.screens.agreement.response import comments, marked_pane, numbered
from annotate.screens.agreement.second_jury import with_changes
from data.card import Reply
from data.person import OPERATOR
from data.schema import Kind, Span
from data.study.assignments import Slot, assign
from data.study.compare import (
    Chosen,
    Compared,
    OnBoth,
    Opened,
    Side,
    compared,
    opened_response,
    simulated_among,
)
from data.study.people import invite
from data.study.ratings import submit
from data.study.readings import Reading
from data.study.room import next_task
from jury.panel import read_panel
from jury.run import run_panel
from medjury.services.jury_changes import JuryChange, Order, changes

SCORES = {"accuracy": 2, "completeness": 3, "clarity": 5}


@pytest.fixture
def code(small_study: Engine) -> str:
    """Return the code of the one response that dr_a is to rate."""
    invite(small_study, ["dr_a"])
    assign(small_study, [Slot("dr_a", 1, 1)], seed=0, per_response=1)
    task = next_task(small_study, 1).task
    assert task is not None
    return task.card.code


def opened(engine: Engine) -> Opened:
    found = opened_response(OPERATOR, engine, 1)
    assert found is not None
    return found


def test_a_comment_on_the_whole_and_those_on_criteria_stand_once_each(
    small_study: Engine, code: str
) -> None:
    reply = Reply(SCORES, {"clarity": "too long"}, "sound", flags=("flag",))
    submit(small_study, 1, code, reply)
    told = comments(opened(small_study).opinions)
    assert "<dt>on the whole</dt><dd>sound</dd><dt>clarity</dt><dd>too long</dd>" in told
    assert told.count("sound") == 1
    assert told.count("<dt>") == 2


@pytest.mark.parametrize(("comment", "heads"), [("copied", 1), ("", 0)])
def test_a_comment_that_was_copied_to_every_criterion_stands_once(
    run: Run, small_study: Engine, tmp_path: Path, comment: str, heads: int
) -> None:
    path = tmp_path / "old.csv"
    cells = f"r11,dr_old,clinician,{comment},2,3,5"
    path.write_text(f"response_id,rater,kind,comment,{','.join(SCORES)}\n{cells}\n", "utf-8")
    assert run("rate", "ratings", str(path))[0] == 0
    told = comments(opened(small_study).opinions)
    assert told.count("<dt>on the whole</dt><dd>copied</dd>") == heads
    assert told.count("<dt>") == heads


def mark(criterion: str, start: int, end: int, error: str, **other: object) -> Span:
    values = {"criterion": criterion, "start": start, "end": end, "error": error} | other
    return Span(assignment=1, text="", **values)


def marked(rater: int, spans: Sequence[Span]) -> Reading:
    """Return a clinician's reading that has marks alone."""
    who = (1, rater, f"dr{rater}", Kind.CLINICIAN, False, 0, 0, None)
    return Reading(*who, spans=list(spans))


def test_linked_marks_name_each_other_through_the_marks_of_all_clinicians() -> None:
    first = mark("accuracy", 0, 1, "wrong")
    pair = (
        mark("accuracy", 4, 6, "missing", side="source", linked=1),
        mark("accuracy", 2, 3, "unsafe", severity="critical", linked=0),
    )
    broken = mark("clarity", 0, 1, "unclear", linked=9)  # of a package that somebody else made
    opinions = [
        marked(place, stretches) for place, stretches in enumerate(((first,), pair, (broken,)))
    ]
    found = numbered(opinions)
    assert [(one.number, one.linked) for one in found] == [(1, None), (2, 3), (3, 2), (4, None)]


def test_each_side_shows_its_own_marks_and_every_character_of_its_text() -> None:
    stretches = (
        mark("accuracy", 0, 3, "wrong"),
        mark("accuracy", 2, 5, "my own kind", severity="critical"),
        mark("accuracy", 1, 99, "missing", side="source"),
    )
    marks = numbered([marked(1, stretches)])
    response = marked_pane("a<b>c", marks, "response", "Response")
    source = marked_pane("a<b>c", marks, "source", "Source")
    assert '<mark class="mj-marked mj-wrong">a&lt;</mark>' in response
    assert '<mark class="mj-marked mj-critical mj-wrong">b<sup>1</sup></mark>' in response
    assert '<mark class="mj-marked mj-critical">&gt;c<sup>2</sup></mark>' in response
    assert "mj-missing" not in response
    assert source.count("<mark") == 1
    assert 'aria-label="Source"' in source


REAL = """response_id,rater,kind,accuracy,completeness,clarity
r11,dr,clinician,4,4,4
r11,real,juror,2,2,2
r11,other,juror,1,1,1
"""


def test_simulated_jurors_sit_only_while_no_real_one_was_heard(
    small_study: Engine, run: Run, write: Callable[[str, str], Path]
) -> None:
    simulated = sorted(one.name for one in read_panel("simulated").juror)
    run_panel(small_study, read_panel("simulated"))
    assert {one.jury.of for one in compared(OPERATOR, small_study, Chosen())} == {3}
    assert simulated_among(OPERATOR, small_study, Chosen()) == simulated
    assert run("rate", "ratings", str(write("ratings.csv", REAL)))[0] == 0
    [only] = compared(OPERATOR, small_study, Chosen())
    assert (only.jury.mean, only.jury.of, only.difference) == (1.5, 2, -2.5)
    assert simulated_among(OPERATOR, small_study, Chosen()) == []
    named = Chosen(jurors=tuple(simulated))
    assert simulated_among(OPERATOR, small_study, named) == simulated
    assert len(compared(OPERATOR, small_study, named)) == 4


def of_change(key: int, first: float | None, second: float | None) -> JuryChange:
    sides = [Side(mean, int(mean is not None), 1) for mean in (first, second)]
    return changes([OnBoth(key, f"r{key}", "b", *sides)])[0]


def test_the_list_is_of_what_either_jury_scored_in_the_order_asked_for() -> None:
    nobody = Side(None, 0, 0)
    rows = [Compared(n, f"r{n}", "b", nobody, nobody, None, frozenset()) for n in (3, 1, 7)]
    found = {n: of_change(n, 3, 3 + n) for n in (2, 1, 3)}
    assert [row.response for row in with_changes(rows, found, Order.LARGEST)] == [2, 1, 3]
    assert [row.response for row in with_changes(rows, found, None)] == [3, 1, 2]
