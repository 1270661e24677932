"""Points of the case: files, scores, clinicians and jurors who answer them, and agreement on them."""

import json
import re
from fractions import Fraction
from itertools import chain

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as some
from kit.jurors import Do, Seen
from kit.jury_runs import attempts, panel_at
from kit.jury_runs import run as run_jury
from kit.rating_study import rubric, task_of
from sqlmodel import select
from statsmodels.stats.inter_rater import cohens_kappa

from annotate.screens.agreement import response as shown
from calibration import points as on_points
from calibration.chance_corrected import gwet_ac2
from data.card import Reply
from data.database import reading
from data.errors import BadInput, BadPanel
from data.person import OPERATOR
from data.points import (
    CANNOT_TELL,
    FOLDER,
    MET,
    NOT_MET,
    Point,
    case_rubric,
    case_score,
    points_of,
    points_rubric,
)
from data.rubric import Rubric, read_rubric, write_rubrics
from data.schema import Kind, Rater, Rating, Response
from data.study.assignments import Slot, assign
from data.study.calls import missing_verdicts
from data.study.compare import opened_response
from data.study.people import invite
from data.study.ratings import submit
from data.study.room import next_task
from data.study.settings import set_setting
from data.study.verify import verify
from medjury.services.adjudication import planned_settlement, settle

HEAD = "instance_id,point,weight,kind,critical"
POINTS = f"""{HEAD}
i1,Says that the patient has no fever,5,must,yes
i1,Says that the patient has fever,8,must_not,yes
i1,Names the source of the finding,2,nice,
i2,Says that the pain is mild,3,must,no
"""
RUBRIC = points_rubric()
EACH = [
    Point(point="Does a", weight=5),
    Point(point="Does b", weight=8, kind="must_not", critical=True),
    Point(point="Does c", weight=2.5, kind="nice"),
]


@pytest.fixture
def add(small_study, run, write):
    """Return what puts the small study's benchmark on points, and what was said, in one line."""

    def added(text: str = POINTS, *options: str) -> tuple[int, str, str]:
        path = str(write("points.csv", text))
        code, out, err = run("study", "points", path, "--benchmark", "visits", *options)
        return code, " ".join(out.split()), " ".join(err.split())

    return added


@pytest.fixture
def pointed(small_study, add):
    assert add()[0] == 0
    return small_study


def answers_of(case, *given):
    return dict(zip(case.criteria, map(float, given), strict=True))


def test_a_case_s_score_is_what_its_points_earn():
    case = case_rubric(RUBRIC, EACH)
    assert points_of(case) == tuple(EACH)
    assert case_score(case, answers_of(case, MET, NOT_MET, MET)) == 100
    assert case_score(case, answers_of(case, MET, NOT_MET, NOT_MET)) == 100 * (5 / 7.5)
    assert case_score(case, answers_of(case, NOT_MET, MET, NOT_MET)) == 0  # clipped
    assert case_score(case, answers_of(case, MET, NOT_MET, CANNOT_TELL)) is None
    assert case_score(case, {"point_1": MET}) is None  # nothing is guessed


def unclipped(low=-200):
    body = RUBRIC.model_dump() | {"points": "unclipped"}
    body["scale"] = {"min": low, "max": 100}
    body["criterion"][0]["anchors"] = {low: "The worst", 100: "The best"}
    return Rubric(**body)


KINDS = some.sampled_from(["must", "must_not", "nice"])
DRAWN = some.lists(
    some.tuples(some.integers(1, 50), KINDS, some.booleans()), min_size=1, max_size=20
)


@given(DRAWN.filter(lambda all_: any(kind != "must_not" for _, kind, _ in all_)))
def test_the_score_is_healthbench_s_in_exact_arithmetic(points):
    made = [Point(point=f"p{n}", weight=w, kind=kind) for n, (w, kind, _) in enumerate(points)]
    signed = [-w if kind == "must_not" else w for w, kind, _ in points]
    got = sum(p for p, (_, _, met) in zip(signed, points, strict=True) if met)
    exact = Fraction(got, sum(p for p in signed if p > 0))
    lowest = Fraction(sum(p for p in signed if p < 0), sum(p for p in signed if p > 0))
    case = case_rubric(unclipped(int(100 * lowest) - 2), made)
    score = case_score(case, answers_of(case, *(MET if met else NOT_MET for *_, met in points)))
    assert score == pytest.approx(float(100 * exact), rel=1e-12, abs=1e-12)


def test_what_an_unclipped_score_could_come_to_is_on_the_scale_or_refused():
    case = case_rubric(unclipped(), EACH)
    lowest = case_score(case, answers_of(case, NOT_MET, MET, NOT_MET))
    assert lowest == pytest.approx(-100 * 8 / 7.5)
    with pytest.raises(BadInput, match=r"come to -106.667, and the scale of .* is -100 to 100"):
        case_rubric(unclipped(-100), EACH)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("i1,Says it,,must,", "points.csv row 2, column weight: '': must not be empty"),
        ("i1,Says it,much,must,", "row 2, column weight"),
        ("i1,Says it,0,must,", "must be above 0 and at most 1,000"),
        ("i1,Says it,nan,must,", "must be above 0 and at most 1,000"),
        ("i1,Says it,-3,must,", "must be above 0"),
        ("i1,Says it,3,maybe,", "must be must, must_not or nice"),
        ("i1,Says it,3,must,perhaps", "must be yes or no"),
        ("i1,,3,must,", "row 2, column point: '': must not be empty"),
        ("i9,Says it,3,must,", "'i9': the benchmark visits has no such instance"),
        ("i1,Says it,3,must_not,", "instance i1: points: nothing can be earned"),
        ("i1,Says it,3,,\ni1,says  IT,2,,", "number 2 says the same as number 1"),
        ("", "has a header and no rows"),
    ],
)
def test_points_that_cannot_be_are_refused_by_row_and_nothing_is_written(
    small_study, run, add, lines, said
):
    code, _, err = add(f"{HEAD}\n{lines}\n")
    assert (code, said in err) == (2, True), err
    assert run("study", "points", "--benchmark", "visits")[0] == 2
    assert "generic" in run("study", "rubric", "show")[1]
    assert not verify(small_study).findings


def test_points_are_versioned_until_somebody_has_rated_by_them(pointed, add, stub):
    assert json.loads(add(POINTS, "--json", "-")[1])["unchanged"] == 2
    body = json.loads(add(POINTS.replace("pain is mild,3", "pain is mild,4"), "--json", "-")[1])
    assert (body["changed"], body["unchanged"], body["without"]) == (1, 1, [])
    stub.script = point_script()
    run_jury(pointed, panel_at(stub))
    code, _, err = add()
    assert (code, "instance i2: has been rated by its points" in err) == (2, True), err
    assert not verify(pointed).findings


def test_a_benchmark_that_was_rated_otherwise_is_not_put_on_points(small_study, add, stub):
    run_jury(small_study, panel_at(stub))
    code, _, err = add()
    assert (code, "has ratings on generic" in err) == (2, True), err


def test_nobody_rates_before_every_case_has_points(small_study, run, add, stub):
    code, out, err = add("\n".join(POINTS.splitlines()[:-1]))
    assert (code, "1 instance of visits without points yet, such as i2" in out) == (0, True), err
    with pytest.raises(BadInput, match="1 of its instances have no points yet, such as i2"):
        run_jury(small_study, panel_at(stub))
    code, _, err = run("rate", "assign", "--raters", "3", "--per-response", "2")
    assert (code, "no points yet" in err) == (2, True), err


def point_script(seen_by=None, answer=MET):
    """Answer every point of a prompt, with evidence."""

    def script(seen: Seen) -> Do:
        if seen_by is not None:
            seen_by.append(seen)
        names = re.findall(r'^  "(point_\d+)": \{"evidence"', seen.prompt, re.MULTILINE)
        told = {name: {"evidence": "no fever", "score": answer} for name in names}
        return Do(json.dumps(told))

    return script


def test_jurors_answer_each_point_with_evidence_and_the_case_s_score_is_stored(pointed, stub):
    seen: list[Seen] = []
    stub.script = point_script(seen)
    result = run_jury(pointed, panel_at(stub, "a", "b"))
    assert (result.to_json()["rated"], result.to_json()["missing"]) == (8, 0)
    prompts = {one.prompt for one in seen}
    assert len(prompts) == 4
    for prompt in map(str.lower, prompts):
        is_first = "any fever" in prompt
        assert ("point_1: says that the patient has no fever" in prompt) == is_first
        assert [one for one in ("weight", "must_not") if one in prompt] == []
    sent = seen[0].body["response_format"]["json_schema"]["schema"]
    point = sent["properties"]["point_1"]["properties"]
    assert (list(point), point["score"]["enum"]) == (
        *(["evidence", "score"], [MET, NOT_MET, CANNOT_TELL]),
    )
    with reading(pointed) as session:
        rows = session.exec(select(Rating)).all()
    of_case = [(row.criterion, row.score) for row in rows if row.rubric_sha256 == RUBRIC.sha256]
    assert ({*of_case}, len(of_case)) == ({("points", 0.0), ("points", 100.0)}, 8)
    evidence = {row.comment for row in rows if row.criterion.startswith("point_")}
    assert evidence == {"no fever"}
    calls = len(attempts(pointed))
    run_jury(pointed, panel_at(stub, "a", "b"))
    assert len(attempts(pointed)) == calls  # nothing is asked twice
    assert (missing_verdicts(pointed), verify(pointed).findings) == ([], ())


def test_a_juror_that_cannot_tell_has_answered_and_has_no_score(pointed, stub):
    stub.script = point_script(answer=CANNOT_TELL)
    run_jury(pointed, panel_at(stub))
    with reading(pointed) as session:
        rows = session.exec(select(Rating)).all()
    assert len(rows) == 2 * 3 + 2 * 1
    assert not [row for row in rows if row.rubric_sha256 == RUBRIC.sha256]
    assert missing_verdicts(pointed) == []


def test_a_mean_of_answers_is_refused(pointed, stub):
    panel = panel_at(stub, scores="expected", schema="json_object")
    with pytest.raises(BadPanel, match="the answers to a point have no mean"):
        run_jury(pointed, panel)


def clinician(engine):
    """Give all responses to one clinician; return the primary key."""
    invite(engine, ["dr-a"])
    with reading(engine) as session:
        keys = session.exec(select(Response.id).order_by(Response.id)).all()
        [rater] = session.exec(select(Rater.id).where(Rater.handle == "dr-a"))
    assign(engine, [Slot("dr-a", key or 0, n) for n, key in enumerate(keys)], seed=0)
    return rater or 0


def test_clinicians_answer_the_points_of_the_case_and_the_same_again_changes_nothing(pointed):
    rater = clinician(pointed)
    while (task := next_task(pointed, rater).task) is not None:
        names = task.rubric.criteria
        assert names[0] == "point_1"
        assert task.rubric.scale.points == range(MET, CANNOT_TELL + 1)
        with pytest.raises(BadInput, match="not rated yet"):
            submit(pointed, rater, task.card.code, Reply({}))
        reply = Reply(dict.fromkeys(names, float(MET)), {"point_1": "clear"})
        assert submit(pointed, rater, task.card.code, reply, ask_why=True)
        assert not submit(pointed, rater, task.card.code, reply, ask_why=True)
    with reading(pointed) as session:
        scores = [row.score for row in session.exec(select(Rating)) if row.criterion == "points"]
    assert sorted(scores) == [0, 0, 100, 100]
    assert not verify(pointed).findings


def answers_by(rater, met, points, is_juror=True):
    """Return a rater's answers, 1, 0 or 2 (cannot tell), to (instance, number, kind) of a response each."""
    return [
        (instance, number, instance, f"i{instance}", f"p{number}", kind, True, rater, is_juror, one)
        for one, (instance, number, kind) in zip(map(float, met), points, strict=True)
    ]


def arranged(*answers):
    return on_points.Answers.of(pd.DataFrame([*chain(*answers)], columns=[*on_points.COLUMNS]))


def test_agreement_on_points_is_that_of_the_known_coefficients():
    random = np.random.default_rng(3)
    truth = random.random(600) < 0.7
    said = np.where(random.random(600) < 0.85, truth, ~truth)
    points = [(n // 20, n % 20, "must") for n in range(600)]
    answers = arranged(answers_by("dr", truth, points, False), answers_by("j", said, points))

    clinicians, jury, juror = on_points.agreement_rows(answers, reps=300)

    assert (clinicians.n_pairs, np.isnan(clinicians.kappa)) == (0, True)
    assert (jury.scorer, juror.scorer) == ("jury", "juror:j")
    table = [
        [int(((truth == a) & (said == b)).sum()) for b in (True, False)] for a in (True, False)
    ]
    assert jury.kappa == pytest.approx(cohens_kappa(np.array(table)).kappa)
    both = np.column_stack([truth, said]).astype(float)
    assert jury.ac1 == pytest.approx(gwet_ac2(both, np.arange(2.0), np.eye(2)))
    assert jury.kappa_low < jury.kappa < jury.kappa_high
    assert jury.ac1_low < jury.ac1 < jury.ac1_high
    assert (jury.n_pairs, jury.n_instances, jury.cannot_tell) == (600, 30, 0)
    one = on_points.point_rows(answers)[7]
    assert (one.instance_id, one.text, one.n_pairs) == ("i0", "p7", 1)
    assert (one.clinicians_met, one.jury_met) == (truth[7], said[7])
    assert one.agreement == (truth[7] == said[7])


def test_two_clinicians_are_pairs_of_which_neither_is_the_measure():
    points = [(n, 0, "must") for n in range(4)]
    answers = arranged(
        answers_by("a", [1, 1, 0, 0], points, False), answers_by("b", [1, 0, 0, 2], points, False)
    )
    [row] = on_points.agreement_rows(answers, reps=10)
    assert (row.n_pairs, row.n_instances, row.cannot_tell) == (3, 3, 1)
    assert row.agreement == pytest.approx(2 / 3)
    assert row.kappa == pytest.approx(1 / 3)  # both orders: half of the answers are yes
    assert on_points.majority(answers.clinicians).tolist() == [1, 2, 0, 2]


def test_who_cannot_tell_is_counted_and_left_out_and_a_split_jury_says_nothing():
    points = [(0, 0, "must"), (1, 0, "must_not")]
    answers = arranged(
        answers_by("dr", [0, 1], points, False),
        answers_by("a", [1, 1], points),
        answers_by("b", [0, 2], points),
    )
    assert answers.scorers[on_points.JURY].tolist() == [2, 2]
    rows = {row.scorer: row for row in on_points.agreement_rows(answers, reps=10) if row.kind == ""}
    assert (rows["jury"].n_pairs, rows["jury"].cannot_tell) == (0, 2)
    assert (rows["juror:b"].n_pairs, rows["juror:b"].cannot_tell) == (1, 1)
    jury, a, b = (
        {row.scorer: row for row in on_points.detection_rows(answers)}[name]
        for name in ("jury", "juror:a", "juror:b")
    )
    assert (jury.failed, jury.open, np.isnan(jury.sensitivity), b.open) == (0, 2, True, 1)
    assert (a.failed, a.caught, a.sensitivity) == (2, 1, 0.5)


def test_the_command_tells_agreement_and_critical_points_missed(pointed, run, stub):
    code, out, err = run("study", "points")
    assert (code, "no clinician has answered a point" in out) == (0, True), err
    stub.script = point_script()
    run_jury(pointed, panel_at(stub, "a"))
    rater = clinician(pointed)
    while (task := next_task(pointed, rater).task) is not None:
        submit(pointed, rater, task.card.code, Reply(dict.fromkeys(task.rubric.criteria, NOT_MET)))
    code, out, err = run("study", "points", "--reps", "20", "--json", "-")
    assert code == 0, err
    [benchmark] = json.loads(out)["benchmarks"]
    jury = next(row for row in benchmark["rows"] if row["scorer"] == "jury" and not row["kind"])
    detected = next(row for row in benchmark["detection"] if row["scorer"] == "jury")
    assert (jury["agreement"], jury["n_pairs"]) == (0, 8)
    assert [detected[name] for name in ("failed", "caught", "alarmed")] == [2, 0, 2]
    assert {one["instance_id"] for one in benchmark["points"]} == {"i1", "i2"}
    assert run("study", "points", "--jurors", "nobody")[0] == 2


def test_a_rubric_that_is_not_of_points_takes_none(add, tmp_path):
    folder = tmp_path / "rubrics"
    write_rubrics(folder, {"own": rubric("accuracy"), "mine": unclipped()})
    code, _, err = add(POINTS, "--rubric", str(folder / "own"))
    assert (code, "is not of points" in err) == (2, True), err
    assert read_rubric(folder / "mine") == unclipped()
    assert add(POINTS, "--rubric", str(folder / "mine"))[0] == 0


@pytest.mark.usefixtures("pointed")
def test_other_tools_and_learning_refuse_points_plainly(run, tmp_path):
    to = ("--to", "inspect", "--panel", "current", "--out", str(tmp_path / "out"))
    for command in (
        ("share", "rubric", str(FOLDER), *to),
        ("jury", "improve", "current", "--benchmark", "visits", "--estimate"),
    ):
        code, _, err = run(*command)
        assert (code, "points of the case" in " ".join(err.split())) == (2, True), err


def test_the_workbench_has_the_answers_of_both_sides_and_says_where_they_differ(pointed, stub):
    stub.script = point_script()
    run_jury(pointed, panel_at(stub, "a"))
    rater = clinician(pointed)
    task = task_of(pointed, rater)
    submit(pointed, rater, task.card.code, Reply(dict.fromkeys(task.rubric.criteria, NOT_MET)))
    each = [opened_response(OPERATOR, pointed, key) for key in (1, 2, 3, 4)]
    opened = next(one for one in each if one and len(one.opinions) == 2)
    given = {one.kind: set(one.answers.values()) for one in opened.opinions}
    assert given == {Kind.CLINICIAN: {NOT_MET}, Kind.JUROR: {MET}}
    rows = shown.point_rows(opened, opened.case.criterion)
    assert {(row["Sides"], row["a"]) for row in rows} == {("jury and clinicians differ", "yes")}
    assert "no fever" in shown.comments(opened.opinions)
    unrated = each[3]
    assert {row["Sides"] for row in shown.point_rows(unrated, unrated.case.criterion)} == {""}
    assert [call.rubric.case is not None for call in unrated.calls] == [True]


def test_a_third_reading_settles_points_and_a_consensus_is_not_given_out(pointed):
    invite(pointed, ["dr-a", "dr-b", "dr-c"])
    assign(pointed, [Slot(name, 1, 1) for name in ("dr-a", "dr-b")], seed=0)
    set_setting(pointed, "adjudicate_from", "20")
    with reading(pointed) as session:
        keys = {name: key or 0 for name, key in session.exec(select(Rater.handle, Rater.id))}
    for name, answer in (("dr-a", MET), ("dr-b", NOT_MET)):
        task = task_of(pointed, keys[name])
        good = {"point_1": answer, "point_2": NOT_MET, "point_3": answer}
        submit(pointed, keys[name], task.card.code, Reply(good))
    refused = planned_settlement(OPERATOR, pointed, "consensus")
    assert (refused.places, refused.of_points) == ({}, ("r11",))
    third = planned_settlement(OPERATOR, pointed, "third")
    assert (third.places, third.of_points) == ({1: "dr-c"}, ())
    assert settle(OPERATOR, pointed, third) == 1
    task = task_of(pointed, keys["dr-c"])
    assert task.rubric.criteria == ("point_1", "point_2", "point_3")
    submit(pointed, keys["dr-c"], task.card.code, Reply(good | {"point_1": MET}))
    with reading(pointed) as session:
        rows = session.exec(select(Rating).where(Rating.pass_ == 100)).all()
    assert {row.criterion for row in rows} == {"point_1", "point_2", "point_3", "points"}
    assert not verify(pointed).findings


def test_points_that_nobody_has_answered_have_no_figures():
    answers = on_points.Answers.of(pd.DataFrame([], columns=[*on_points.COLUMNS]))
    assert (len(answers.points), answers.scorers) == (0, {})
    rows = on_points.agreement_rows(answers, 20, 0)
    assert all(np.isnan(row.kappa) for row in rows)
    assert [*on_points.detection_rows(answers), *on_points.point_rows(answers)] == []
