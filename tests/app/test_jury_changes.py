"""Two juries side by side: what moved, by how much, what is said otherwise, and what failed."""

import pytest
from kit.rating_study import rubric
from sqlmodel import Session, select

from annotate.screens.agreement.second_jury import pairs
from data.card import Reply
from data.importers.rows import JurorRecord, Origin, RatingRow
from data.person import OPERATOR
from data.rubric import read_rubric
from data.schema import Attempt, Kind, Response, Status
from data.study.calls import Step, add_jurors, record_steps
from data.study.compare import (
    FAILED,
    OTHERWISE,
    Compared,
    JurorOn,
    JurySide,
    Side,
    SidesOn,
    TwoJuries,
    jurors_on,
    most_verdicts,
    on_both,
    rated_versions,
)
from data.study.ratings import import_ratings
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

GENERIC = read_rubric("generic")
WENT = tuple(What)[:7]


def row(number, first, second, *flags, comparable=True):
    sides = [Side(mean, 2 if mean is not None else 1, 2) for mean in (first, second)]
    gap = None if first is None or second is None or not comparable else second - first
    return Compared(number, f"r{number}", "b", *sides, gap, frozenset(flags))


def moved(change):
    """Return where a response's mean went."""
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
    wanted = {
        What.UP: [1, 5],
        What.DOWN: [3],
        What.SAME: [4, 6],
        What.BY_A_POINT: [3, 5],
        What.EXPLAINED_OTHERWISE: [6],
        What.ONLY_FIRST: [2, 7],
        What.NOW_FAILED: [7],
    }
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
    assert rows["a", "mean"]["Change"] == -0.25
    assert rows["b, only in the first", "x"]["Second"] is None
    assert rows["c, only in the second, simulated", "x"]["Second, in words"] == "refused"
    apart = SidesOn(first, second, ("x",), ("x",), same_scale=False)
    assert {row["Change"] for row in pairs(apart)} == {None}


def rate(engine, juror, scores, *, on=None, verdict=0, words=""):
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
    rate(small_study, "a", {"r11": (3, 3, 3), "r12": (2, 2, 2)})
    rate(small_study, "b", {"r11": (5, 5, 5), "r21": (1, 1, 1)})
    rate(small_study, "c", {"r11": (4, 4, 4)})
    asked = TwoJuries(JurySide(("a",)), JurySide(("b", "c")))
    rows = on_both(OPERATOR, small_study, asked)
    assert by_name(rows) == {"r11": (3, 4.5), "r12": (2, None), "r21": (None, None)}
    assert [(row.second.scored, row.second.of) for row in rows] == [(2, 2), (0, 2), (1, 2)]
    assert not any(OTHERWISE in row.flags for row in rows)  # no juror sits on both
    clarity = TwoJuries(asked.first, asked.second, criterion=GENERIC.criteria[2])
    assert by_name(on_both(OPERATOR, small_study, clarity))["r11"] == (3, 4.5)
    assert not on_both(OPERATOR, small_study, TwoJuries(asked.first, asked.second, "other"))


def test_a_verdict_of_one_run_stands_beside_that_of_another(small_study):
    rate(small_study, "a", {"r11": (3, 3, 3), "r12": (2, 2, 2)}, words="fair")
    rate(small_study, "a", {"r11": (4, 4, 4), "r12": (2, 2, 2)}, verdict=1, words="fair")
    rate(small_study, "a", {"r12": (2, 2, 2)}, verdict=1, words="poor")  # said anew
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
    rate(small_study, "a", {"r11": (3, 3, 1)})
    rate(small_study, "b", {"r11": (3, 3, 1)})
    rate(small_study, "a", {"r11": (4, 4, 5), "r12": (2, 2, 2)}, on=other)
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
    assert first
    assert second
    gaps = [difference(first.scores.get(name), second.scores.get(name)) for name in found.criteria]
    assert gaps == [-1, -1, None, None]
    assert difference(mean_of(first, found), mean_of(second, found)) == -1


def test_versions_on_other_scales_have_no_difference(small_study):
    other = rubric(*GENERIC.criteria, low=0, high=100, name="percent")
    rate(small_study, "a", {"r11": (3, 3, 3)})
    rate(small_study, "a", {"r11": (60, 60, 60)}, on=other)
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
    assert found is not None
    assert seats(found)["a"][1] is None
    assert (refused := seats(found)["b"][1]) is not None
    assert refused.failure == "refused"
