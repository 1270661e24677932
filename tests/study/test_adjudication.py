"""Differences between clinicians: found, given out, settled; and in figures only where asked for, and named."""

import csv
import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.scores import FIELDS, rated
from kit.studies import HEAD, bring_in
from sqlmodel import Session, select

from calibration.adjudicated import adjudicated, with_independent
from calibration.scores import RubricShape
from calibration.table import agreement_rows
from calibration.values import AnalysisOptions
from data.card import CONSENSUS, THIRD, Reply
from data.errors import BadInput, Conflict, NotAllowed
from data.person import OPERATOR
from data.schema import Assignment, Rater
from data.study.adjudication import differences, other_readings
from data.study.assignments import Slot, assign, assign_adjudication, recuse
from data.study.compare import Chosen, compared
from data.study.frames import adjudicated_frame, clinician_dates, ratings_frame
from data.study.people import invite
from data.study.ratings import submit
from data.study.room import next_task, task
from data.study.settings import set_setting
from data.study.standing import facts
from data.study.steering import readings_by_response
from data.study.verify import verify
from medjury.services.adjudication import dealt, others_shown, planned_settlement, settle
from medjury.services.design.assign import DesignRequest, designed

LOW = Reply({"accuracy": 1, "completeness": 3, "clarity": 4}, {"accuracy": "wrong dose"}, "no")
HIGH = Reply({"accuracy": 4, "completeness": 3, "clarity": 3}, comment="dr_low is too strict")
SETTLED = Reply({"accuracy": 2, "completeness": 2, "clarity": 2})
NAMES = ["dr_low", "dr_high", "dr_other", "dr_fourth"]
R11 = 1


def rater(engine, name):
    with Session(engine) as session:
        return session.exec(select(Rater.id).where(Rater.handle == name)).one() or 0


def shown_to(engine, name):
    task = next_task(engine, rater(engine, name)).task
    assert task is not None
    return task


def rate(engine, name, reply):
    """Rate what is next for somebody; return its code."""
    code = shown_to(engine, name).card.code
    assert submit(engine, rater(engine, name), code, reply, 30)
    return code


def give(engine, reading, name):
    assign_adjudication(engine, "coordinator", reading, {R11: name})


@pytest.fixture
def apart(small_study):
    """Make a study in which two clinicians are 3 points apart on one response, and agree on another."""
    invite(small_study, NAMES)
    slots = [Slot(name, one, one) for name in ("dr_low", "dr_high") for one in (R11, 2)]
    assign(small_study, slots, seed=0, per_response=2)
    for name, reply in (("dr_low", LOW), ("dr_low", HIGH), ("dr_high", HIGH), ("dr_high", HIGH)):
        rate(small_study, name, reply)
    set_setting(small_study, "adjudicate_from", "2")
    return small_study


def test_a_difference_is_the_largest_between_two_clinicians_on_any_criterion(apart):
    [found] = differences(OPERATOR, apart, 2)
    assert (found.response_id, found.points, found.criterion) == ("r11", 3, "accuracy")
    assert (found.clinicians, found.is_ready, found.reading) == (2, True, None)
    assert [one.response_id for one in differences(OPERATOR, apart, 3)] == ["r11"]
    assert differences(OPERATOR, apart, 3.5) == differences(OPERATOR, apart, 0) == []
    set_setting(apart, "adjudicate_from", "0")
    with pytest.raises(BadInput, match="settings adjudicate_from 2"):
        planned_settlement(OPERATOR, apart, "third")


def test_a_third_reading_goes_to_nobody_who_knows_the_response_or_sees_the_others(apart):
    plan = planned_settlement(OPERATOR, apart, "third")
    assert set(plan.places.values()) < {"dr_other", "dr_fourth"}
    for name in ("dr_low", "dr_high"):
        with pytest.raises(NotAllowed, match="third reading is another's"):
            give(apart, "third", name)
    only = planned_settlement(OPERATOR, apart, "third", ["dr_low"])
    assert (only.places, only.nobody) == ({}, ("r11",))
    give(apart, "third", "dr_other")
    task = shown_to(apart, "dr_other")
    assert task.reading == "third"
    assert other_readings(apart, rater(apart, "dr_other"), task.card.code) == ()


def test_a_consensus_reader_is_shown_what_the_others_said_and_never_who(apart):
    give(apart, "consensus", "dr_other")
    who, other = rater(apart, "dr_other"), rater(apart, "dr_fourth")
    shown = shown_to(apart, "dr_other")
    code = shown.card.code
    assert shown.reading == "consensus"
    said = other_readings(apart, who, code)
    low, high = sorted(said, key=lambda one: one.scores["accuracy"])
    assert (low.scores["accuracy"], high.scores["accuracy"]) == (1, 4)
    assert (dict(low.comments), low.comment) == ({"accuracy": "wrong dose"}, "no")
    assert high.comment == "[a clinician] is too strict"
    assert said == other_readings(apart, who, code)
    assert not any(name in repr(said) for name in NAMES)
    assert other_readings(apart, other, code) == ()  # of whom it is not
    assert task(apart, other, code) is None


def test_one_of_the_raters_can_read_for_consensus_and_sees_the_others_alone(apart):
    give(apart, "consensus", "dr_low")
    code = shown_to(apart, "dr_low").card.code
    [other] = other_readings(apart, rater(apart, "dr_low"), code)
    assert other.scores == HIGH.scores


@pytest.mark.parametrize("given", [False, True])
def test_a_comment_that_names_a_model_keeps_a_response_out_of_consensus_or_is_masked(apart, given):
    if given:
        give(apart, "consensus", "dr_other")
    with Session(apart) as session:
        query = select(Assignment.code).join(Rater).where(Rater.handle == "dr_low")
        code = session.exec(query.where(Assignment.response == R11)).one()
    naming = Reply(LOW.scores, comment="Reads like ChatGPT to me")
    submit(apart, rater(apart, "dr_low"), code, naming, 40)
    if given:
        shown = shown_to(apart, "dr_other").card.code
        assert "ChatGPT" not in repr(others_shown(apart, rater(apart, "dr_other"), shown))
        return
    plan = planned_settlement(OPERATOR, apart, "consensus")
    assert (plan.places, plan.naming) == ({}, ("r11",))
    assert planned_settlement(OPERATOR, apart, "third").places


def test_what_is_given_out_or_settled_is_not_given_out_again(apart):
    plan = planned_settlement(OPERATOR, apart, "third")
    assert settle(OPERATOR, apart, plan) == 1
    assert planned_settlement(OPERATOR, apart, "third").places == {}
    with pytest.raises(Conflict, match="given out"):
        settle(OPERATOR, apart, plan)
    [name] = plan.places.values()
    rate(apart, name, SETTLED)
    [found] = differences(OPERATOR, apart, 2)
    assert (found.reading, found.is_done) == ("third", True)
    with pytest.raises(Conflict, match="settled already"):
        give(apart, "consensus", "dr_low")


def test_a_response_that_somebody_has_still_to_rate_waits(apart):
    assign(apart, [Slot("dr_other", R11, 9)], seed=0)
    [found] = differences(OPERATOR, apart, 2)
    assert (found.waits_for, found.is_ready) == (1, False)
    assert planned_settlement(OPERATOR, apart, "third").waiting == ("r11",)
    with pytest.raises(Conflict, match="still to be rated"):
        give(apart, "third", "dr_fourth")


def test_settling_comes_after_all_other_work_and_stays_in_the_record(apart):
    assign(apart, [Slot("dr_other", one, one) for one in (3, 4)], seed=0)
    assign_adjudication(apart, "account 1", "third", {R11: "dr_other"})
    readings = []
    while shown := next_task(apart, rater(apart, "dr_other")).task:
        readings.append(shown.reading)
        rate(apart, "dr_other", SETTLED)
    assert readings == ["independent", "independent", "third"]
    assert verify(apart).findings == ()


def test_no_design_gives_a_response_to_whoever_settled_it(apart):
    give(apart, "consensus", "dr_other")
    rate(apart, "dr_other", SETTLED)
    found = designed(apart, DesignRequest(tuple(NAMES), 4, 0.0, 0))
    assert ("dr_other", R11) in {(one.rater, one.response) for one in found.slots}
    assign(apart, found.slots, 0, per_response=4)
    with Session(apart) as session:
        query = select(Assignment.pass_).where(Assignment.rater == rater(apart, "dr_other"))
        assert session.exec(query.where(Assignment.response == R11)).all() == [101]


def test_both_are_kept_and_every_figure_is_of_the_independent_ones(apart, run, tmp_path):
    def figures():
        known = facts(apart)
        states = known.clinicians, known.repeats, known.states
        shown = compared(OPERATOR, apart, Chosen()), readings_by_response(OPERATOR, apart)
        return [ratings_frame(apart).to_csv(), clinician_dates(apart), states, *shown]

    before = figures()
    give(apart, "third", "dr_other")
    rate(apart, "dr_other", SETTLED)
    assert figures() == before
    assert facts(apart).adjudicated == {"third": 1, "consensus": 0}
    kept = adjudicated_frame(apart)
    assert kept[["rater", "pass_"]].drop_duplicates().values.tolist() == [["dr_other", 100]]
    assert run("share", "export", str(tmp_path / "out"))[0] == 0
    for name, counts in (("ratings", (12, 3)), ("readings", (4, 1))):
        with (tmp_path / "out" / f"{name}.csv").open(encoding="utf-8-sig", newline="") as file:
            exported = Counter(one["reading"] for one in csv.DictReader(file))
        assert exported == dict(zip(("independent", "third"), counts, strict=True))
    code, said, _ = run("rate", "ratings", str(tmp_path / "out" / "ratings.csv"))
    assert (code, "nothing changed" in said) == (0, True)


@pytest.mark.parametrize(
    ("kind", "cells", "told"),
    [
        ("clinician", ",fourth", "must be independent, third or consensus"),
        ("clinician", "0,third", "pass 0 is independent"),
        ("clinician", "7,", "must be 0, 1, 100 or 101"),
        ("juror", "100,", "only clinicians settle differences"),
    ],
)
def test_a_reading_that_cannot_be_is_refused_by_name(small_study, run, tmp_path, kind, cells, told):
    path = tmp_path / "made.csv"
    head = "response_id,rater,kind,criterion,score,pass,reading"
    path.write_text(f"{head}\nr11,somebody,{kind},clarity,3,{cells}\n", "utf-8")
    code, _, said = run("rate", "ratings", str(path))
    assert code == 2
    assert told in said


SOME = st.sets(st.sampled_from("abcde"), min_size=1)


@given(
    able=st.dictionaries(st.integers(0, 30), SOME, max_size=14),
    had=st.fixed_dictionaries({one: st.integers(0, 3) for one in "abcde"}),
    seed=st.integers(0, 9),
)
def test_settling_is_dealt_as_evenly_as_who_may_have_it_allows(able, had, seed):
    may = {key: sorted(names) for key, names in able.items()}
    found = dealt(may, {one: (number, 0) for one, number in had.items()}, seed)
    assert found.keys() == able.keys()
    assert all(name in able[key] for key, name in found.items())
    load = {one: had[one] + list(found.values()).count(one) for one in had}
    best = min(sum((had[one] + extra[one]) ** 2 for one in had) for extra in every_deal(may))
    assert sum(one**2 for one in load.values()) == best


def every_deal(may):
    """Return the loads of every way to deal."""
    ways = {(0,) * 5}
    for names in may.values():
        ways = {
            tuple(number + ("abcde"[place] == name) for place, number in enumerate(one))
            for one in ways
            for name in names
        }
    return [Counter(dict(zip("abcde", one, strict=True))) for one in ways]


def test_the_command_lists_differences_looks_first_and_gives_out(apart, run, tmp_path):
    def told(*options):
        code, said, _ = run("rate", "adjudicate", *options, "--json", str(tmp_path / "found.json"))
        assert code == 0
        return json.loads((tmp_path / "found.json").read_text("utf-8")), said

    body, _ = told()
    assert [one["response_id"] for one in body["differences"]] == ["r11"]
    assert "response" not in body["differences"][0]
    assert (body["plan"], body["assigned"]) == (None, 0)
    planned, said = told("--assign", "third", "--plan")
    assert (planned["assigned"], list(planned["plan"]["places"])) == (0, ["r11"])
    given, _ = told("--assign", "third")
    assert (given["plan"], given["assigned"], "model-" in said) == (planned["plan"], 1, False)
    [found] = differences(OPERATOR, apart, 2)
    assert (found.reading, found.is_done) == ("third", False)


def test_a_settling_reading_given_back_goes_to_somebody_else(apart):
    give(apart, "consensus", "dr_other")
    who, code = rater(apart, "dr_other"), shown_to(apart, "dr_other").card.code
    recuse(apart, who, code, "my own patient")
    assert other_readings(apart, who, code) == ()
    [found] = differences(OPERATOR, apart, 2)
    assert found.is_ready
    for reading in ("third", "consensus"):
        assert "dr_other" not in planned_settlement(OPERATOR, apart, reading).places.values()
    with pytest.raises(NotAllowed, match="gave this response back"):
        give(apart, "consensus", "dr_other")


N = 40


def study(seed=0):
    """Return scores of three clinicians and two jurors, whole points."""
    random = np.random.default_rng(seed)
    quality = random.normal(3, 1, (N, 1))
    points = np.clip(np.round(quality + random.normal(0, 0.9, (N, 5))), 1, 5)
    return rated(points[:, :3], points[:, 3:])


def settling(scores, score_of, pass_=THIRD, rater="dr9", criterion="safety"):
    """Return the readings that settle some responses: response_id -> score."""
    instances = scores.responses.set_index("response_id")["instance_id"]
    rows = [
        (name, instances[name], "visits", rater, "clinician", criterion, score)
        for name, score in score_of.items()
    ]
    return pd.DataFrame(rows, columns=FIELDS).assign(pass_=pass_, replicate=0)


def rows_of(scores, method="published"):
    asked = AnalysisOptions(method=method, reps=20, seed=0, further=False)
    return {one.scorer: one for one in agreement_rows(scores, asked)}


def test_the_settling_reading_stands_in_the_place_of_the_clinicians_mean():
    scores = study()
    first = list(scores.responses["response_id"])[:12]
    given = {name: float(1 + place % 5) for place, name in enumerate(first)}
    found = adjudicated(scores, settling(scores, given))
    assert (found.responses, found.third, found.consensus) == (12, 12, 0)
    wide = scores.ratings.pivot(index="response_id", columns="rater", values="score")
    people = wide[["dr0", "dr1", "dr2"]].mean(axis=1)
    people.update(pd.Series(given))
    jury = wide[["j0", "j1"]].mean(axis=1)
    r = np.corrcoef(people, jury)[0, 1]
    assert rows_of(found.scores)["jury"].icc == pytest.approx(2 * r / (1 + r), abs=1e-12)


def test_a_consensus_goes_before_a_third_reading_and_half_a_reading_before_none():
    scores = study(3)
    one, two = list(scores.responses["response_id"])[:2]
    third = settling(scores, {one: 1.0})
    both = pd.concat([third, settling(scores, {one: 5.0}, CONSENSUS, "dr8")])
    found = adjudicated(scores, both)
    own = found.scores.ratings.query("response_id == @one and kind == 'clinician'")
    assert own[["rater", "score", "pass_"]].values.tolist() == [["dr8", 5.0, 0]]
    assert (found.third, found.consensus) == (0, 1)
    shapes = {"visits": RubricShape(("safety", "another"), 1, 5)}
    lacking = settling(scores, {two: 2.0}, criterion="another")
    assert adjudicated(replace(scores, rubrics=shapes), lacking).responses == 0
    nothing = adjudicated(scores, settling(scores, {}))
    assert (nothing.scores is scores, nothing.responses) == (True, 0)


def test_what_compares_clinicians_with_one_another_is_of_independent_readings():
    scores = study(4)
    people = scores.ratings[scores.ratings["kind"] == "clinician"]
    spread = people.groupby("response_id")["score"].agg(np.ptp)
    given = dict.fromkeys(spread[spread >= 2].index, 3.0)
    found = adjudicated(scores, settling(scores, given))
    alone, settled = rows_of(scores), rows_of(found.scores)
    assert settled["clinicians"].icc > alone["clinicians"].icc + 0.05  # the worst are gone
    both = {one.scorer: one for one in with_independent([*settled.values()], [*alone.values()])}
    assert list(both) == list(alone)
    for scorer in ("clinicians", "like_for_like"):
        assert both[scorer].icc == alone[scorer].icc
        assert both[scorer].told("independent_readings")
    assert both["jury"] == settled["jury"]


@pytest.fixture
def judged(run, tmp_path):
    """Make a study of 24 responses, two clinicians and two jurors, with six differences settled."""
    random = np.random.default_rng(5)
    responses = [HEAD, *(f"i{n},b,context,prompt,,r{n},m{n % 2},text {n}" for n in range(24))]
    ratings = ["response_id,rater,kind,criterion,score,pass"]
    names = ("accuracy", "completeness", "clarity")
    for n in range(24):
        quality = random.normal(3, 1)
        for who in ("dr0", "dr1", "j0", "j1"):
            kind = "clinician" if who.startswith("dr") else "juror"
            for name in names:
                score = int(np.clip(np.round(quality + random.normal(0, 0.9)), 1, 5))
                ratings.append(f"r{n},{who},{kind},{name},{score},0")
        if n < 6:
            pass_ = THIRD if n < 4 else CONSENSUS
            ratings += [f"r{n},dr2,clinician,{name},{1 + n % 5},{pass_}" for name in names]
    bring_in(run, tmp_path, responses, ratings)
    return run


def asked(run, folder, *options):
    to = folder / "out.json"
    code, _, told = run("analyse", "calibrate", "--reps", "50", "--json", str(to), *options)
    assert code == 0, told
    return json.loads(to.read_text("utf-8"))


def test_figures_are_of_independent_readings_unless_asked_and_say_so(judged, tmp_path):
    alone = asked(judged, tmp_path)
    settled = asked(judged, tmp_path, "--use", "adjudicated")
    for found, reading in ((alone, "independent"), (settled, "adjudicated")):
        assert found["reading"] == reading
        assert found["adjudicated"] == {"responses": 6, "third": 4, "consensus": 2}
    own, other = ({row["scorer"]: row for row in one["rows"]} for one in (alone, settled))
    assert own.keys() == other.keys()
    assert own["jury"]["icc"] != other["jury"]["icc"]
    assert own["jury"]["n_responses"] == other["jury"]["n_responses"] == 24
    for scorer in ("clinicians", "like_for_like"):
        assert own[scorer]["icc"] == other[scorer]["icc"]
        assert "independent_readings" in {one["code"] for one in other[scorer]["notes"]}
    assert alone["reliability"] == settled["reliability"]
    for options in (("--use", "both"), ("--use", "adjudicated", "--freeze")):
        assert judged("analyse", "calibrate", *options)[0] == 2
    assert judged("study", "protocol", "set", "--margin", "0.1")[0] == 0  # of independent ones
    assert asked(judged, tmp_path)["decision"]["kind"] != "no_protocol"
    assert asked(judged, tmp_path, "--use", "adjudicated")["decision"]["kind"] == "no_protocol"
