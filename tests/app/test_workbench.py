"""The workbench of responses: what is found, held to the statistics, and what is shown of one."""

import pytest
from kit.rating_study import task_of
from kit.screens import GOOD
from kit.studies import import_file, rated_by_three

from annotate.screens.agreement.response import comments, marked_pane, numbered
from annotate.screens.agreement.second_jury import with_changes
from calibration.detection import detection
from calibration.protocol import Critical
from calibration.values import AnalysisOptions
from data.card import Reply
from data.person import OPERATOR, Person
from data.schema import Kind, Role, Span
from data.study.assignments import Slot, assign
from data.study.compare import (
    Chosen,
    Compared,
    Side,
    compared,
    missed_unsafe,
    opened_response,
    responses_with,
    simulated_among,
    snippets,
    workbench_clinicians,
)
from data.study.masks import MaskedText, mask_responses
from data.study.people import invite
from data.study.ratings import submit
from data.study.readings import Reading
from jury.panel import read_panel
from jury.run import run_panel
from medjury.services.confusion import cell_of, confusion
from medjury.services.jury_changes import Order, changes
from medjury.services.scores import scores_of

SCORES = {"accuracy": 2, "completeness": 3, "clarity": 5}
R21 = 3  # the key of the third response of the small study


def test_words_are_found_as_they_stand_in_texts_ids_and_comments_whatever_their_case(small_study):
    reply = Reply(SCORES, {"clarity": "Überlang"}, "50% of it is wrong", flags=("flag",))
    rate(small_study, reply, R21)
    for words, responses in (
        *(("  FEVER ", {1, 2}), ("r2", {R21, 4}), ("überlang", {R21}), ("ÜBERLANG", {R21})),
        *(("50% of", {R21}), ("%%", set()), ("__", set()), ("f", set())),  # too short to search
    ):
        assert responses_with(OPERATOR, small_study, words) == responses, words
    [found] = snippets(OPERATOR, small_study, [R21], "50% of").values()
    assert (found.text, found.of_comment) == ("50% of it is wrong", True)


def test_what_is_masked_is_neither_found_nor_shown(small_study):
    mask_responses(small_study, [MaskedText(R21, "[...] pain.", [(0, 4, "[...]")])])
    assert responses_with(OPERATOR, small_study, "mild") == frozenset()
    [found] = snippets(OPERATOR, small_study, [R21], "mild").values()
    assert found.text == "[...] pain."


def test_a_snippet_begins_before_the_words_that_were_searched(engine, tmp_path):
    path = tmp_path / "long.csv"
    path.write_text(GOOD.replace("Mild pain.", "a " * 400 + "Needle " + "z " * 400), "utf-8")
    import_file(engine, path)
    [plain] = snippets(OPERATOR, engine, [R21]).values()
    assert (plain.text[:3], plain.text[-1]) == ("a a", "\N{HORIZONTAL ELLIPSIS}")
    [found] = snippets(OPERATOR, engine, [R21], "needle").values()
    assert ("Needle z" in found.text, found.text[0]) == (True, "\N{HORIZONTAL ELLIPSIS}")


def test_missed_unsafe_responses_and_pairs_are_those_of_the_statistics(engine, run, tmp_path):
    rated_by_three(run, tmp_path, n=40)
    critical = [Critical(name, 2.0) for name in SCORES]
    rows = {
        (row.benchmark, row.criterion): row
        for row in detection(scores_of(engine), AnalysisOptions(reps=20), critical)
        if row.scorer == "jury"
    }
    checked = 0
    for benchmark in ("visits", "notes"):
        for criterion in SCORES:
            row = rows[benchmark, criterion]
            asked = Chosen(benchmark, criterion)
            missed = missed_unsafe(OPERATOR, engine, asked, {(benchmark, criterion): row.threshold})
            assert len(missed) == row.n_missed
            matrix = confusion(compared(OPERATOR, engine, asked), 1, 5)
            assert matrix.both == sum(matrix.counts.values()) == row.n
            checked += row.n_missed
    assert checked  # or nothing was held to anything


def of(clinicians, jury):
    both = clinicians is not None and jury is not None
    difference = (jury or 0) - (clinicians or 0) if both else None
    return Compared(1, "r", "b", Side(clinicians, 2, 2), Side(jury, 2, 2), difference, frozenset())


def test_a_half_is_rounded_up_and_who_lacks_a_side_is_counted_apart():
    rows = [of(2.5, 2.4999999), of(0.1 + 2.4, 4.49), of(None, 3), of(3, None), of(None, None)]
    matrix = confusion(rows, 1, 5)
    assert matrix.points == (1, 2, 3, 4, 5)
    assert matrix.counts == {(3, 2): 1, (3, 4): 1}
    assert (matrix.both, matrix.only_clinicians, matrix.only_jury, matrix.neither) == (2, 1, 1, 1)
    assert matrix.agreeing() == 0
    assert cell_of(rows[2]) is None


def test_one_clinician_can_stand_for_all_under_a_name_that_tells_nobody(engine, run, tmp_path):
    rated_by_three(run, tmp_path, n=10)
    researcher = Person(9, "Rita", Role.RESEARCHER)
    names = workbench_clinicians(researcher, engine)
    known = workbench_clinicians(OPERATOR, engine)
    assert names == dict(zip(known, known, strict=True))
    assert {*known.values()} == {"dr_a", "dr_b"}
    for name in names:
        rows = compared(researcher, engine, Chosen(clinician=name))
        assert {row.first.of for row in rows} == {1}


def rate(engine, reply, response=1):
    """Let dr_a rate a response."""
    invite(engine, ["dr_a"])
    assign(engine, [Slot("dr_a", response, 1)], seed=0, per_response=1)
    task = task_of(engine, 1)
    assert submit(engine, 1, task.card.code, reply)


@pytest.mark.parametrize(("comment", "heads"), [("copied", 1), ("", 0)])
def test_a_comment_that_was_copied_to_every_criterion_stands_once(
    run, small_study, tmp_path, comment, heads
):
    path = tmp_path / "old.csv"
    cells = f"r11,dr_old,clinician,{comment},2,3,5"
    path.write_text(f"response_id,rater,kind,comment,{','.join(SCORES)}\n{cells}\n", "utf-8")
    assert run("rate", "ratings", str(path))[0] == 0
    found = opened_response(OPERATOR, small_study, 1)
    told = comments(found.opinions)
    assert told.count("<dt>on the whole</dt><dd>copied</dd>") == heads
    assert told.count("<dt>") == heads


def mark(criterion, start, end, error, **other):
    values = {"criterion": criterion, "start": start, "end": end, "error": error} | other
    return Span(assignment=1, text="", **values)


def marked(rater, spans):
    """Return a clinician's reading that has marks alone."""
    who = (1, rater, f"dr{rater}", Kind.CLINICIAN, False, 0, 0, None)
    return Reading(*who, spans=list(spans))


def test_linked_marks_name_each_other_through_the_marks_of_all_clinicians():
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


def test_each_side_shows_its_own_marks_and_every_character_of_its_text():
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
    assert ("mj-missing" in response, source.count("<mark")) == (False, 1)
    assert 'aria-label="Source"' in source


REAL = """response_id,rater,kind,accuracy,completeness,clarity
r11,dr,clinician,4,4,4
r11,real,juror,2,2,2
r11,other,juror,1,1,1
"""


def test_simulated_jurors_sit_only_while_no_real_one_was_heard(small_study, run, write):
    simulated = sorted(one.name for one in read_panel("simulated").juror)
    run_panel(small_study, read_panel("simulated"))
    assert {one.second.of for one in compared(OPERATOR, small_study, Chosen())} == {3}
    assert simulated_among(OPERATOR, small_study, Chosen()) == simulated
    assert run("rate", "ratings", str(write("ratings.csv", REAL)))[0] == 0
    [only] = compared(OPERATOR, small_study, Chosen())
    assert (only.second.mean, only.second.of, only.difference) == (1.5, 2, -2.5)
    assert simulated_among(OPERATOR, small_study, Chosen()) == []
    named = Chosen(jurors=tuple(simulated))
    assert simulated_among(OPERATOR, small_study, named) == simulated
    assert len(compared(OPERATOR, small_study, named)) == 4


def of_change(key, first, second):
    sides = [Side(mean, int(mean is not None), 1) for mean in (first, second)]
    gap = None if first is None or second is None else second - first
    return changes([Compared(key, f"r{key}", "b", *sides, gap)])[0]


def test_the_list_is_of_what_either_jury_scored_in_the_order_asked_for():
    nobody = Side(None, 0, 0)
    rows = [Compared(n, f"r{n}", "b", nobody, nobody, None, frozenset()) for n in (3, 1, 7)]
    found = {n: of_change(n, 3, 3 + n) for n in (2, 1, 3)}
    assert [row.response for row in with_changes(rows, found, Order.LARGEST)] == [2, 1, 3]
    assert [row.response for row in with_changes(rows, found, None)] == [3, 1, 2]
