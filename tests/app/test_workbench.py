"""The workbench of responses: what is found, held to the statistics and shown of one, and what moved between two juries."""

import pytest
from kit.rating_study import rubric, task_of
from kit.screens import GOOD
from kit.studies import import_file, rated_by_three
from sqlmodel import Session, select

from annotate.screens.agreement.response import comments, marked_pane, numbered
from annotate.screens.agreement.second_jury import pairs, with_changes
from calibration.detection import detection
from calibration.protocol import Critical
from calibration.values import AnalysisOptions
from data.card import Reply
from data.importers.rows import JurorRecord, Origin, RatingRow
from data.person import OPERATOR, Person
from data.rubric import read_rubric
from data.schema import Attempt, Kind, Response, Role, Span, Status
from data.study.assignments import Slot, assign
from data.study.calls import Step, add_jurors, record_steps
from data.study.compare import (
    FAILED,
    OTHERWISE,
    Chosen,
    Compared,
    JurorOn,
    JurySide,
    Side,
    SidesOn,
    TwoJuries,
    compared,
    jurors_on,
    missed_unsafe,
    most_verdicts,
    on_both,
    opened_response,
    rated_versions,
    responses_with,
    simulated_among,
    snippets,
    workbench_clinicians,
)
from data.study.masks import MaskedText, mask_responses
from data.study.people import invite
from data.study.ratings import import_ratings, submit
from data.study.readings import Reading
from jury.panel import read_panel
from jury.run import run_panel
from medjury.services.confusion import cell_of, confusion
from medjury.services.jury_changes import (
    Order,
    What,
    changes,
    counts,
    difference,
    in_order,
    mean_of,
    seats,
)
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


GENERIC = read_rubric("generic")
WENT = tuple(What)[:7]


def row(number, first, second, *flags, comparable=True):
    sides = [Side(mean, 2 if mean is not None else 1, 2) for mean in (first, second)]
    gap = None if first is None or second is None or not comparable else second - first
    return Compared(number, f"r{number}", "b", *sides, gap, frozenset(flags))


def moved(change):
    return next(what for what in WENT if what in change.what)


def test_a_response_moves_up_or_down_by_its_means_and_floating_point_moves_nothing():
    rows = [
        *(row(1, 3, 4), row(2, 3, 2.1), row(3, 0.1 + 0.2, 0.3), row(4, 3, None), row(5, None, 3)),
        *(row(6, None, None), row(7, 3, 4, comparable=False), row(8, 3.0, 4.0 - 1e-12)),
    ]
    changed = changes(rows)
    assert [moved(one) for one in changed] == [
        *(What.UP, What.DOWN, What.SAME, What.ONLY_FIRST, What.ONLY_SECOND),
        *(What.NEITHER, What.APART, What.UP),
    ]
    assert [one.difference for one in changed[:3]] == [1, pytest.approx(-0.9), 0.0]
    assert [one.difference for one in changed[3:7]] == [None] * 4
    assert [one.row.response for one in changed if What.BY_A_POINT in one.what] == [1, 8]
    found = counts(changed)
    assert sum(found[what] for what in WENT) == len(rows)  # each response stands somewhere, once
    assert (found[What.UP], found[What.BY_A_POINT]) == (2, 2)


def test_a_list_is_filtered_and_sorted_by_what_changed():
    rows = [row(1, 3, 3.5), row(2, 3, None), row(3, 4, 2), row(4, 3, 3), row(5, 2, 3)]
    rows += [row(6, 3, 3, OTHERWISE), row(7, 3, None, FAILED)]
    changed = changes([*rows, row(8, None, None, FAILED)])
    assert counts(changed)[What.NOW_FAILED] == 1, "a failure is one only where there was a mean"
    wanted = {What.UP: [1, 5], What.DOWN: [3], What.SAME: [4, 6], What.BY_A_POINT: [3, 5]}
    wanted |= {What.EXPLAINED_OTHERWISE: [6], What.ONLY_FIRST: [2, 7], What.NOW_FAILED: [7]}
    for what, responses in wanted.items():
        assert [one.row.response for one in changed if what in one.what] == responses
    orders = {
        Order.LARGEST: [3, 5, 1, 4, 6, 2, 7, 8],
        Order.UP: [5, 1, 4, 6, 3, 2, 7, 8],
        Order.DOWN: [3, 4, 6, 1, 5, 2, 7, 8],
    }
    for order, responses in orders.items():
        assert [one.row.response for one in in_order(changed, order)] == responses


def test_jurors_are_paired_by_name_with_the_difference_of_each_criterion():
    first = (
        JurorOn("a", False, {"x": 3, "y": 4, "old": 5}, {"x": ("fair",)}),
        JurorOn("b", False, {"x": 3}),
    )
    second = (
        JurorOn("a", False, {"x": 2.5, "y": 4}, {"x": ("poor",)}),
        JurorOn("c", True, {}, {}, "refused"),
    )
    sides = SidesOn(first, second, ("x", "y", "old"), ("x", "y"), same_scale=True)
    found = seats(sides)
    sits = {name: [bool(one) for one in both] for name, both in found.items()}
    assert sits == {"a": [True, True], "b": [True, False], "c": [False, True]}
    assert [mean_of(said, sides) for said in found["a"]] == [3.5, 3.25]
    assert mean_of(found["b"][0], sides) is None  # a criterion is missing
    rows = {(row["Juror"], row["Criterion"]): row for row in pairs(sides)}
    named = {"a", "b, only in the first", "c, only in the second, simulated"}
    assert {juror for juror, _ in rows} == named
    assert [*rows["a", "x"].values()] == ["a", "x", 3, 2.5, -0.5, "fair", "poor"]
    assert (rows["a", "mean"]["Change"], rows["b, only in the first", "x"]["Second"]) == (
        -0.25,
        None,
    )
    assert rows["c, only in the second, simulated", "x"]["Second, in words"] == "refused"
    apart = SidesOn(first, second, ("x",), ("x",), same_scale=False)
    assert {row["Change"] for row in pairs(apart)} == {None}


def score_by(engine, juror, scores, *, on=None, verdict=0, words=""):
    """Store a juror's scores: response -> points, one a criterion of the rubric."""
    criteria = (on or GENERIC).criteria
    rows = [
        RatingRow(
            Origin("made up", 1), name, juror, Kind.JUROR, criterion, str(point), words,
            replicate=verdict,
        )
        for name, points in scores.items()
        for criterion, point in zip(criteria, points, strict=True)
    ]  # fmt: skip
    import_ratings(engine, rows, on)


def key_of(engine, name):
    with Session(engine) as session:
        return session.exec(select(Response.id).where(Response.response_id == name)).one() or 0


def by_name(rows):
    return {row.response_id: (row.first.mean, row.second.mean) for row in rows}


def test_other_jurors_stand_beside_the_first(small_study):
    score_by(small_study, "a", {"r11": (3, 3, 3), "r12": (2, 2, 2)})
    score_by(small_study, "b", {"r11": (5, 5, 5), "r21": (1, 1, 1)})
    score_by(small_study, "c", {"r11": (4, 4, 4)})
    asked = TwoJuries(JurySide(("a",)), JurySide(("b", "c")))
    rows = on_both(OPERATOR, small_study, asked)
    assert by_name(rows) == {"r11": (3, 4.5), "r12": (2, None), "r21": (None, None)}
    assert [(row.second.scored, row.second.of) for row in rows] == [(2, 2), (0, 2), (1, 2)]
    assert not any(OTHERWISE in row.flags for row in rows)  # no juror sits on both
    clarity = TwoJuries(asked.first, asked.second, criterion=GENERIC.criteria[2])
    assert by_name(on_both(OPERATOR, small_study, clarity))["r11"] == (3, 4.5)
    assert not on_both(OPERATOR, small_study, TwoJuries(asked.first, asked.second, "other"))


def test_a_verdict_of_one_run_stands_beside_that_of_another(small_study):
    score_by(small_study, "a", {"r11": (3, 3, 3), "r12": (2, 2, 2)}, words="fair")
    score_by(small_study, "a", {"r11": (4, 4, 4), "r12": (2, 2, 2)}, verdict=1, words="fair")
    score_by(small_study, "a", {"r12": (2, 2, 2)}, verdict=1, words="poor")  # said anew
    assert most_verdicts(OPERATOR, small_study) == 2
    asked = TwoJuries(JurySide(verdict=0), JurySide(verdict=1))
    rows = on_both(OPERATOR, small_study, asked)
    assert by_name(rows) == {"r11": (3, 4), "r12": (2, 2)}
    assert [row.response_id for row in rows if OTHERWISE in row.flags] == ["r12"]
    both = on_both(OPERATOR, small_study, TwoJuries(JurySide(), JurySide(verdict=1)))
    assert by_name(both)["r11"] == (3.5, 4)
    same = on_both(OPERATOR, small_study, TwoJuries(JurySide(), JurySide()))
    assert not any(OTHERWISE in row.flags for row in same)


def test_a_rubrics_versions_are_compared_over_the_criteria_that_both_have(small_study):
    other = rubric(*GENERIC.criteria[:2], "tone", name="generic_two")
    score_by(small_study, "a", {"r11": (3, 3, 1)})
    score_by(small_study, "b", {"r11": (3, 3, 1)})
    score_by(small_study, "a", {"r11": (4, 4, 5), "r12": (2, 2, 2)}, on=other)
    versions = rated_versions(OPERATOR, small_study)
    assert {one.sha256: names for one, names in versions} == {
        GENERIC.sha256: frozenset({"visits"}),
        other.sha256: frozenset({"visits"}),
    }
    asked = TwoJuries(JurySide(("a",), other.sha256), JurySide(("a",)))
    rows = on_both(OPERATOR, small_study, asked)
    assert by_name(rows) == {"r11": (4, 3), "r12": (2, None)}
    whole = on_both(OPERATOR, small_study, TwoJuries(JurySide(rubric=other.sha256), JurySide()))
    assert by_name(whole)["r11"] == (None, 3)  # b, who sits too, never rated on the other version
    tone = TwoJuries(asked.first, asked.second, criterion="tone")
    assert not on_both(OPERATOR, small_study, tone)  # the second has no such criterion
    found = jurors_on(OPERATOR, small_study, asked, key_of(small_study, "r11"))
    assert found.criteria == (*GENERIC.criteria[:2], "tone", GENERIC.criteria[2])
    [first, second] = seats(found)["a"]
    gaps = [difference(first.scores.get(name), second.scores.get(name)) for name in found.criteria]
    assert gaps == [-1, -1, None, None]
    assert difference(mean_of(first, found), mean_of(second, found)) == -1


def test_versions_on_other_scales_have_no_difference(small_study):
    other = rubric(*GENERIC.criteria, low=0, high=100, name="percent")
    score_by(small_study, "a", {"r11": (3, 3, 3)})
    score_by(small_study, "a", {"r11": (60, 60, 60)}, on=other)
    asked = TwoJuries(JurySide(), JurySide(rubric=other.sha256))
    [change] = changes(on_both(OPERATOR, small_study, asked))
    assert (change.row.first.mean, change.row.second.mean) == (3, 60)
    assert (moved(change), change.difference) == (What.APART, None)


def test_a_call_that_failed_last_is_why_the_second_jury_has_no_mean(small_study):
    keys = add_jurors(small_study, [JurorRecord(name, {"provider": "x"}) for name in ("a", "b")])
    r11, r12 = (key_of(small_study, name) for name in ("r11", "r12"))
    for juror, response, status in (
        *(("a", r11, Status.OK), ("a", r12, Status.OK), ("b", r12, Status.REFUSED)),
        *(("b", r11, Status.REFUSED), ("b", r12, Status.OK)),
    ):
        attempt = Attempt(
            rater=keys[juror], response=response, rubric_sha256=GENERIC.sha256,
            request_sha256="0" * 64, status=status,
        )  # fmt: skip
        reply = Reply(dict.fromkeys(GENERIC.criteria, 3) if status == Status.OK else {}, {})
        record_steps(small_study, [Step(attempt=(attempt, GENERIC, reply))])
    asked = TwoJuries(JurySide(("a",)), JurySide(("b",)))
    changed = changes(on_both(OPERATOR, small_study, asked))
    told = {one.row.response_id: (moved(one), What.NOW_FAILED in one.what) for one in changed}
    assert told == {"r11": (What.ONLY_FIRST, True), "r12": (What.SAME, False)}
    found = jurors_on(OPERATOR, small_study, asked, r11)
    assert seats(found)["a"][1] is None
    assert seats(found)["b"][1].failure == "refused"
