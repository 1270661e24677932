"""How many responses and clinicians: `medjury study plan`, the plan of a design, one that goes on, and its pace."""

import json
import math
from collections.abc import Sequence
from random import Random
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kit.commands import json_of
from kit.composites import JURY, TWO_JURORS, drawn, grid_of, loading, points, verdicts
from kit.composites import Design as Simulated
from kit.rating_study import items, names, spread
from kit.studies import HEAD, Run, import_file, rated
from pandas import DataFrame
from scipy.optimize import linprog
from sqlalchemy import Engine, text
from sqlmodel import Session, select

from calibration import planning
from calibration.clinicians import like_for_like
from calibration.icc import f_interval
from calibration.intervals import jackknife_interval, left_out
from calibration.notes import note
from calibration.reliability import ReliabilityRow
from calibration.scope import AgreementRow
from calibration.values import PlanOptions
from calibration.weighted import scorer_iccs
from data.card import Reply
from data.pace import FEWEST_SHOWINGS, Pace, PaceSource, Timed, Work, measured, stated
from data.schema import Rater, Role
from data.study.assignments import (
    Assigned,
    Slot,
    assign,
    pace_of,
    timed_showings,
    words_left,
    work_of_names,
)
from data.study.ledger import compositions_tried
from data.study.people import check_code, invite
from data.study.ratings import submit
from data.study.room import next_task
from medjury.cli.people import first_coordinator
from medjury.services.design.assign import design, top_up
from medjury.services.design.plan import Design

FLAT = note("same_score", "same_score")


def planned(run: Run, *arguments: str) -> dict[str, Any]:
    return json_of(run, "study", "plan", *arguments)


def test_a_plan_from_an_assumption_makes_no_study_and_has_the_papers_beside(run, tmp_path):
    body = planned(run, "--single-icc", "0.31", "--width", "0.3")
    (row,) = body["rows"]
    assert 190 < row["n_for_width"] == row["n"] < 225
    assert (row["readings"], row["per_clinician"]) == (2 * row["n"], row["n"])
    assert [one["number"] for one in body["reliability"]] == [1, 2, 3, 4, 5, 6]
    assert body["reliability"][1]["consistency"] == pytest.approx(0.4733, abs=1e-4)
    assert body["reliability"][1]["agreement"] is None
    assert not list(tmp_path.iterdir())
    rows = planned(run, "--single-icc", "0.75", "--width", "0.35")["rows"]
    assert [row["basis"] for row in rows] == ["assumed", "paper obtained"]
    assert 2 * rows[0]["n_for_width"] < rows[1]["n_for_width"]
    assert len(planned(run, "--single-icc", "0.2")["rows"]) == 1


def test_both_ways_to_state_an_icc_are_one_plan(run):
    ways = (("--icc", "0.6"), ("--single-icc", str(3 / 7)))
    two, one = (planned(run, *way, "--per-response", "1")["rows"][0] for way in ways)
    assert two["icc_single"] == pytest.approx(3 / 7)
    assert (two["icc"], two["n"]) == (pytest.approx(0.6), one["n"])
    more = planned(run, "--icc", "0.6", "--per-response", "3")["rows"][0]
    assert more["icc"] == pytest.approx(0.6)
    assert more["icc_single"] < two["icc_single"]


def test_a_margin_says_how_many_responses_show_that_the_jury_is_no_worse(run):
    options = ("--single-icc", "0.3", "--margin", "0.1", "--responses", "500")
    body = planned(run, *options)
    row, *others = body["rows"]
    assert [(one["clinicians"], one["ceiling"]) for one in others] == [
        *((3, 0.0), (4, 0.0), (6, 0.0), (2, 0.7), (3, 0.7), (4, 0.7), (6, 0.7))
    ]
    assert (row["n"], row["per_response"], row["clinicians"]) == (500, 2, 2)
    assert 0.35 < row["power"] < 0.6
    assert row["n_for_power"] > 900
    sentence = f"80% with the former takes {row['n_for_power']} responses."
    assert sentence in " ".join(body["sentences"])
    assert planned(run, "--single-icc", "0.3")["rows"][0]["power"] is None
    options += ("--clinicians", "2", "--seed")
    again, other = (planned(run, *options, seed)["rows"] for seed in "01")
    assert [one for one in body["rows"] if one["clinicians"] == 2] == again != other


def pilot_of(clinicians: float, jury: float, low: float) -> planning.Pilot:
    own = ReliabilityRow("visits", "composite", "ICC(C,1)", clinicians, low, 0.6, notes=(FLAT,))
    row = AgreementRow("visits", "jury", jury, low, 0.8)
    return planning.Pilot("visits", ("gpt",), own, row, minutes=3.0, timed=80, told=())


def test_each_figure_of_a_pilot_is_planned_for_at_its_low_end_too_and_what_has_no_plan_says_why():
    rows = planning.pilot_rows(pilot_of(0.4, 0.6, 0.2), PlanOptions(responses=40))
    names = ["clinicians", "clinicians' low end", "jury", "jury's low end"]
    assert [row.basis for row in rows] == names
    singles = [0.4, 0.2, planning.single_of(0.6, 2), planning.single_of(0.2, 2)]
    assert [row.icc_single for row in rows] == pytest.approx(singles)
    rows = planning.pilot_rows(pilot_of(*[float("nan")] * 3), PlanOptions())
    assert [row.n for row in rows] == [None] * 4
    assert FLAT in rows[0].notes
    rows = planning.pilot_rows(pilot_of(0.4, 0.6, -0.2), PlanOptions(per_response=3, responses=40))
    assert [row.n is None for row in rows] == [False, True, False, True]
    assert rows[1].told("planned_beyond") == note("planned_beyond", "", icc=-0.2)
    assert rows[1].icc_single == -0.2


@pytest.fixture
def pilot(run, tmp_path) -> None:
    """Make a study of 24 responses that three clinicians and a juror rated."""
    rated(run, tmp_path, ("gpt",), n=24)


@pytest.mark.usefixtures("pilot")
def test_a_pilot_is_planned_from_and_its_jury_enters_the_ledger(run, engine):
    found = planned(run, "--pilot")["assumed"]["pilot"]
    rows = json_of(run, "analyse", "calibrate")["rows"]
    [jury] = [row for row in rows if row["scorer"] == "jury"]
    assert (found["jury"]["icc"], found["jury"]["low"]) == pytest.approx((jury["icc"], jury["low"]))
    assert found["minutes"] is None
    assert run("study", "verify")[0] == 0
    assert [(entry.jurors, entry.times) for entry in compositions_tried(engine)] == [(["gpt"], 2)]


@pytest.mark.usefixtures("pilot")
def test_minutes_are_those_measured_on_the_page_unless_they_are_given(run, engine):
    invite(engine, ["dr_c"])
    with Session(engine) as session:
        rater = session.exec(select(Rater.id).where(Rater.handle == "dr_c")).one() or 0
    assign(engine, [Slot("dr_c", number, number) for number in (1, 2, 3)], seed=0, per_response=1)
    for seconds in (60, 180, 600):
        task = next_task(engine, rater).task
        scores = dict.fromkeys(task.rubric.criteria, 3)
        submit(engine, rater, task.card.code, Reply(scores), seconds)
    body = planned(run, "--pilot", "--clinicians", "4")
    assert (body["assumed"]["pilot"]["minutes"], body["assumed"]["pilot"]["timed"]) == (3, 3)
    assert "hours at 3.0 minutes a response" in body["sentences"][0]
    given = planned(run, "--pilot", "--clinicians", "4", "--minutes-per-response", "10")
    assert "hours at 10.0 minutes a response" in given["sentences"][0]


def test_the_plan_is_json_and_shows_what_must_be_known_before_anyone_is_invited():
    written = design(items(60), names(5), 2, seed=3).to_json(stated(3))
    plan = json.loads(json.dumps(written))["plan"]
    assert (written["seed"], written["per_response"], written["repeats"]) == (3, 2, 10)
    assert written["load"] == dict.fromkeys(names(5), 24)
    assert len(written["overlap"]) == 10
    assert written["overlap"]["dr_a|dr_b"] == 6
    assert plan["minutes"]["dr_a"] == (24 + 2) * 3
    assert (plan["overlap_min"], plan["overlap_max"], plan["adjacent"]) == (6, 6, 0)
    ends = f_interval(plan["icc_assumed"], 60)
    assert plan["icc_width"] == pytest.approx(ends.high - ends.low, abs=1e-4)
    assert plan["icc_width_by_instances"] > plan["icc_width"]
    one = design(items(1), names(2), 2).to_json()["plan"]
    assert one["icc_width"] is None  # an interval that does not exist
    plan = design(items(9), names(1), 1, repeats=0.5)
    written = plan.to_json()
    assert plan.repeats == 0
    assert written["plan"]["repeats_missing"] == 4
    assert any("too short" in note for note in written["plan"]["notes"])


def test_a_new_study_gets_one_coordinator_who_can_sign_in(engine):
    [invitation] = first_coordinator(engine)
    assert first_coordinator(engine) == []
    person = check_code(engine, invitation.code).person
    assert person.role == Role.COORDINATOR


SHORT = 'i1,visits,"one two\r\nthree",four five,,r1,a,"  six\n\n seven   eight "'
LONG = f"i2,visits,{'word ' * 100},ask,,r2,b,{'word ' * 37}"


@pytest.fixture
def study(engine, tmp_path) -> Engine:
    """Two responses of 8 and 138 words on a rubric of some criteria, both given to one clinician."""
    (tmp_path / "two.csv").write_text("\n".join([HEAD, SHORT, LONG, ""]), "utf-8")
    import_file(engine, tmp_path / "two.csv")
    invite(engine, ["dr_a"])
    assign(engine, [Slot("dr_a", 1, 0), Slot("dr_a", 2, 1)], seed=0)
    return engine


def submitted(engine: Engine, seconds: float) -> None:
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(
            text("UPDATE assignment SET state = 'done', seconds_active = :s WHERE position = 0"),
            {"s": seconds},
        )


def test_words_alone_give_minutes_at_the_published_reading_speed_unless_somebody_says_them():
    assert Pace().minutes(Work(showings=1, words=238)) == pytest.approx(1)
    assert Pace().minutes(Work(showings=1, words=238, criteria=3)) == pytest.approx(1.5)
    assert stated(3).minutes(Work(4, 10_000, 12)) == pytest.approx(12)
    assert stated(3).source == PaceSource.SAID


def test_the_measured_pace_is_the_median_of_seconds_per_word_of_those_who_can_have_read():
    timed = [Timed(100.0, 100, 20)] * 10 + [Timed(200.0, 100, 20)] * 11
    timed += [Timed(0.0, 100, 20), Timed(5.0, 0, 0)]
    pace = measured(timed)
    assert (pace.source, pace.timed, pace.seconds_per_word) == (PaceSource.MEASURED, 21, 2.0)
    assert pace.minutes(Work(2, 300, 6)) == pytest.approx(10)
    hasty, just = Timed(8.0, 900, 100), Timed(9.0, 900, 100)  # 600 words a minute, and a second
    assert (hasty.is_hasty, just.is_hasty) == (True, False)
    assert measured([hasty] * FEWEST_SHOWINGS) == Pace()
    mixed = measured([hasty] * 30 + [Timed(90.0, 900, 100)] * FEWEST_SHOWINGS)
    assert (mixed.timed, mixed.seconds_per_word) == (FEWEST_SHOWINGS, 0.1)


@given(st.lists(st.floats(1, 1e4), min_size=41, max_size=81), st.floats(1e5, 1e9))
def test_a_few_showings_left_open_over_night_move_the_pace_within_the_others(seconds, night):
    usual = measured([Timed(one, 100, 0) for one in seconds])
    disturbed = measured([Timed(one, 100, 0) for one in [*seconds, night, night]])
    assert usual.seconds_per_word == median(one / 100 for one in seconds)
    assert disturbed.seconds_per_word <= max(seconds) / 100


def test_words_left_counts_source_task_and_response_of_open_showings(study):
    work = [*work_of_names(study).values()]
    assert [one.words for one in work] == [8, 138]
    each = work[0].criteria
    assert each > 0
    assert words_left(study, 1) == Work(2, 146, 2 * each)
    submitted(study, 40)
    assert words_left(study, 1) == Work(1, 138, each)
    assert words_left(study, 99) == Work()


def test_a_masked_response_counts_as_it_is_shown(study):
    with study.execution_options(writes=True).begin() as connection:
        connection.execute(text("UPDATE response SET shown = 'one two' WHERE id = 2"))
    assert words_left(study, 1).words == 8 + 101 + 2


def test_submitted_showings_are_timed_and_those_of_simulated_raters_are_not(study):
    assert (pace_of(study), pace_of(study, 2.5)) == (Pace(), stated(2.5))
    submitted(study, 40)
    assert timed_showings(study) == timed_showings(study, 1) == [Timed(40.0, 8, 3)]
    assert timed_showings(study, 2) == []
    with study.execution_options(writes=True).begin() as connection:
        connection.execute(text("UPDATE rater SET simulated = true"))
    assert timed_showings(study) == []


QUICK = settings(max_examples=20, deadline=None)


def as_stored(plan: Design, done: set[tuple[str, int, int]]) -> list[Assigned]:
    return [
        Assigned(s.rater, s.response, s.pass_, (s.rater, s.response, s.pass_) in done, s.position)
        for s in plan.slots
    ]


CHANGES = st.tuples(
    st.integers(1, 40),  # responses at first
    st.integers(0, 20),  # new ones
    st.integers(2, 7),  # clinicians at first
    st.integers(0, 2),  # who leave
    st.integers(0, 2),  # who join
    st.integers(1, 3),  # readings
    st.randoms(use_true_random=False),
)
Change = tuple[int, int, int, int, int, int, Random]


def staffed(change: Change) -> tuple[int, int, list[str], list[str], int, Random]:
    """Return a change with names: responses, new ones, clinicians before and after, readings, the dice."""
    n, new, raters, leaving, joining, k, rng = change
    old, staff = names(raters), names(raters + joining)[leaving:]
    assume(staff)
    return n, new, old, staff, min(k, raters, len(staff)), rng


@QUICK
@given(CHANGES)
def test_a_top_up_keeps_what_is_done_and_completes_every_response(change):
    n, new, old, staff, k, rng = staffed(change)
    plan = design(items(n), old, k, repeats=0.2)
    slots = [(s.rater, s.response, s.pass_) for s in plan.slots]
    stored = as_stored(plan, set(rng.sample(slots, rng.randint(0, len(slots)))))
    more = top_up(stored, items(n + new), staff, k, seed=1, repeats=0.2)
    assert all(one in more.kept for one in stored if one.done)
    assert set(more.kept) | set(more.dropped) == set(stored)
    assert not any(one.done for one in more.dropped)
    assert all(len(set(them)) == len(them) == k for them in more.readers.values())
    assert {one.rater for one in more.slots} <= set(staff)
    assert not {(s.rater, s.response, s.pass_) for s in more.slots} & {
        (one.rater, one.response, one.pass_) for one in more.kept
    }
    for one in more.slots:
        line = [(shown.response, shown.pass_) for shown in more.orders[one.rater]]
        if one.pass_:
            assert line.index((one.response, 1)) >= line.index((one.response, 0)) + 10


@QUICK
@given(CHANGES)
def test_a_top_up_makes_loads_as_equal_as_any_design_could(change):
    n, new, old, staff, k, rng = staffed(change)
    plan = design(items(n), old, k, repeats=0)
    busy = rng.choice(old)
    slots = [(s.rater, s.response, s.pass_) for s in plan.slots]
    done = {slot for slot in slots if slot[0] == busy or rng.random() < 0.3}
    more = top_up(as_stored(plan, done), items(n + new), staff, k, repeats=0)
    assert sum(load**2 for load in more.load.values()) == least_squares(done, n + new, staff, k)


def least_squares(
    done: set[tuple[str, int, int]], responses: int, staff: Sequence[str], k: int
) -> int:
    """Return the least sum of squared loads that any design could have, by linear programming.

    Each reading that is missing goes to one of a clinician's places, of which the next always costs
    more: what it adds to the square of the load. The matrix is that of a flow: whole numbers are best.
    """
    read = np.array([[(name, one + 1, 0) in done for name in staff] for one in range(responses)])
    by_others = [sum(slot[1] == one + 1 for slot in done) for one in range(responses)]
    held, people = read.sum(axis=0), len(staff)
    places = 1 + 2 * (held[:, None] + np.arange(responses))
    to_whom = np.eye(people)
    each = np.repeat(np.eye(responses), people, axis=1)
    rows = np.hstack([each, np.zeros((responses, places.size))])
    columns = np.hstack([np.tile(to_whom, responses), -np.repeat(to_whom, responses, axis=1)])
    found = linprog(
        np.concatenate([np.zeros(read.size), places.ravel()]),
        A_eq=np.vstack([rows, columns]),
        b_eq=np.concatenate([[k - min(k, one) for one in by_others], np.zeros(people)]),
        bounds=[*((0, 1 - one) for one in read.ravel()), *((0, 1) for _ in places.ravel())],
    )
    return int((held**2).sum()) + round(found.fun)


def test_new_work_follows_on_what_a_clinician_has_and_a_finished_response_gets_no_more():
    plan = design(items(40), names(4), 2, seed=4)
    again = top_up(as_stored(plan, set()), items(40), names(4), 2, seed=9)
    assert (again.slots, again.dropped, again.overlap) == ((), (), plan.overlap)
    more = top_up(as_stored(plan, set()), items(60), names(4), 2)
    last = {name: len(line) - 1 for name, line in plan.orders.items()}
    assert min(slot.position - last[slot.rater] for slot in more.slots) == 1
    assert more.adjacent == 0
    assert spread(list(more.load.values())) <= 1
    stored = [Assigned("a", 1, done=True), Assigned("b", 1, done=True), Assigned("c", 1)]
    more = top_up(stored, items(1), ["a", "b", "c"], 2)
    assert more.slots == ()
    assert more.dropped == (Assigned("c", 1),)


def raters(single, clinicians, studies, n, seed=0):
    """Return scores of clinicians and of a jury like them, shape (studies, n, clinicians + 1)."""
    random = np.random.default_rng(seed)
    worth = np.sqrt(single) * random.normal(size=(studies, n, 1))
    return worth + np.sqrt(1 - single) * random.normal(size=(studies, n, clinicians + 1))


def calibrated(scores):
    """Return the jury's ICC, then without each response, of one study as calibrate computes them."""
    table = DataFrame(scores[:, :-1], columns=[f"dr{i}" for i in range(scores.shape[1] - 1)])
    grid = grid_of(table.assign(**dict.fromkeys(JURY.members, scores[:, -1])), jurors=3)
    return scorer_iccs(grid, [JURY], "paper", left_out(len(scores)))[:, 0]


@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_icc_with_the_mean_of_clinicians_is_that_of_a_large_study(k):
    (large,) = raters(0.4, k, 1, 200_000)
    z = (large - large.mean(axis=0)) / large.std(axis=0)
    cov = np.cov(z[:, :-1].mean(axis=1), z[:, -1])
    assert planning.icc_with_mean(0.4, k) == pytest.approx(4 * cov[0, 1] / cov.sum(), abs=0.01)
    assert planning.single_of(planning.icc_with_mean(0.4, k), k) == pytest.approx(0.4)


@pytest.mark.parametrize("k", [1, 2])
def test_the_widths_are_those_of_the_intervals_that_calibrate_computes(k):
    scores = raters(0.4, k, 60, 80)
    every = np.ones((80, k), dtype=bool)
    studies = planning.SimulatedStudies(scores[:, :, :-1], scores[:, :, -1], every)
    ends = [jackknife_interval(calibrated(one)) for one in scores]
    widths = np.array([end.high - end.low for end in ends])
    mean, assured = studies.widths(80, 0.8)
    assert mean == pytest.approx(widths.mean(), rel=0.03)
    assert assured == pytest.approx(np.quantile(widths, 0.8), rel=0.04)


@pytest.mark.slow
@pytest.mark.parametrize(("single", "k"), [(0.31, 1), (0.31, 2), (0.5, 2), (0.4, 3)])
@pytest.mark.parametrize("width", [0.2, 0.3])
def test_the_numbers_give_the_width_as_assured_and_the_intervals_hold_the_truth(single, k, width):
    n = planning.n_for_width(single, k, 0.0, width)
    row = planning.PlanRow("", single, k, k)
    studies = planning.SimulatedStudies.of(row, n, seed=1)
    found = [jackknife_interval(calibrated(one)) for one in raters(single, k, 200, n, seed=1)]
    widths = np.array([end.high - end.low for end in found])
    truth = planning.icc_with_mean(single, k)
    assert np.mean(widths <= width) >= 0.72
    assert studies.widths(n, 0.8)[1] == pytest.approx(width, rel=0.05)
    assert np.mean([end.low <= truth <= end.high for end in found]) >= 0.9


def test_a_narrower_interval_more_assurance_or_a_ceiling_take_more_responses():
    few = planning.n_for_width(0.5, 2, 0.0, 0.3)
    assert planning.n_for_width(0.5, 2, 0.0, 0.15) > 2.5 * few
    assert planning.n_for_width(0.5, 2, 0.0, 0.3, assurance=0.95) > few
    assert planning.n_for_width(0.5, 2, 0.7, 0.3) > 1.3 * few


def shown(single, responses, margin=0.1, clinicians=2, per_response=2, ceiling=0.0):
    row = planning.PlanRow("assumed", single, per_response, clinicians, ceiling, n=responses)
    return planning.with_power(row, planning.SimulatedStudies.of(row, responses, 0), margin, 0.8)


def closed_form_sd(rho, n):
    """Return the SD of like for like with two clinicians and a jury like them, all crossed.

    The correlations of three raters with rho in common have variance v = (1 - rho^2)^2 / n and,
    sharing a rater, covariance k (Olkin & Siotani 1976); the difference is of the mean of two and
    the third, 1.5 (v - k), by the delta method for 2 r / (1 + r).
    """
    v = (1 - rho**2) ** 2
    k = (2 * rho - rho**2) * (1 - 3 * rho**2) / 2 + rho**3
    return 2 / (1 + rho) ** 2 * math.sqrt(1.5 * (v - k) / n)


@pytest.fixture
def alike(monkeypatch):
    """Let no clinician agree better than another."""
    monkeypatch.setattr(planning, "SPREAD", 0.0)


@pytest.mark.usefixtures("alike")
@pytest.mark.parametrize("rho", [0.4, 0.7])
def test_the_spread_between_studies_is_that_of_the_closed_form(rho):
    studies = planning.SimulatedStudies.of(planning.PlanRow("", rho, 2, 2), 300, 0)
    jury, clinician = studies.iccs([0, 1])
    assert (jury - clinician).std() == pytest.approx(closed_form_sd(rho, 300), rel=0.08)


@pytest.mark.slow
@pytest.mark.usefixtures("alike")
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("design", "beside"),
    [
        (Simulated(2, 0.4, 300), 0.12),
        (Simulated(3, 0.4, 300), 0.12),
        (Simulated(6, 0.4, 300, readers=2), 0.12),
        (Simulated(4, 0.4, 300, ceiling=True), 0.2),  # its interval is wider where scores pile up
    ],
)
def test_the_power_is_how_often_the_verdict_itself_says_no_worse(design, beside):
    random = np.random.default_rng(3)
    found = verdicts(drawn(design, loading(design, 0.0), random) for _ in range(200))
    readers, top = design.readers or design.clinicians, 0.7 if design.ceiling else 0.0
    row = shown(0.4, 300, 0.1, design.clinicians, readers, top)
    assert row.power == pytest.approx(found["non_inferior"] / 200, abs=beside)
    if design.clinicians > 2:
        share = found["clinicians_like_these"] / 200
        assert row.power_like_these == pytest.approx(share, abs=0.08)


def test_more_responses_readers_a_wider_margin_and_no_ceiling_show_more():
    def power(margin=0.1, **changed):
        return shown(0.4, margin=margin, **{"responses": 300} | changed).power

    assert power() < power(responses=600)
    assert power() < power(0.15)
    assert power(clinicians=3, per_response=2) < power(clinicians=3, per_response=3)
    assert power(ceiling=0.7) < power() - 0.1
    few, many = (shown(0.4, 600, 0.1, clinicians, clinicians) for clinicians in (3, 6))
    assert math.isnan(shown(0.4, 600).power_like_these)
    assert few.power_like_these < many.power_like_these - 0.2
    assert few.power_like_these <= few.power


def test_as_many_as_are_needed_show_it_as_often_as_wanted_and_none_a_margin_above_half():
    needed = shown(0.5, 300).n_for_power
    assert 0.72 < shown(0.5, needed).power < 0.88
    found = shown(0.1, 2000)  # 2 r / (1 + r) is 0.18, below twice 0.1
    assert (found.power, found.n_for_power) == (0.0, None)


@pytest.mark.parametrize("clinicians", [2, 4])
def test_what_is_simulated_is_the_agreement_tables_like_for_like(clinicians):
    random = np.random.default_rng(clinicians)
    raters = random.normal(size=(80, 1)) + random.normal(size=(80, clinicians + 1))
    read = random.random((80, clinicians)) < 0.8
    table = np.column_stack([np.where(read, raters[:, :-1], np.nan), raters[:, -1], raters[:, -1]])
    studies = planning.SimulatedStudies(raters[None, :, :-1], raters[None, :, -1], read)
    jury, clinician = studies.iccs(range(clinicians))
    expected = like_for_like(grid_of(table), TWO_JURORS, "paper").iccs
    assert (float(jury[0]), float(clinician[0])) == pytest.approx(expected, abs=1e-12)


def test_scores_at_a_ceiling_have_the_icc_that_is_planned_for():
    rho, random = planning.latent_icc(0.4, 0.7), np.random.default_rng(0)
    worth = math.sqrt(rho) * random.normal(size=400_000)
    both = points(worth + math.sqrt(1 - rho) * random.normal(size=(2, 400_000)))
    assert np.corrcoef(both)[0, 1] == pytest.approx(0.4, abs=0.01)
    assert planning.latent_icc(0.4, 0.0) == 0.4


def test_a_plan_has_a_row_for_each_number_of_clinicians_and_each_kind_of_scores():
    def designs(top=None, **options):
        chosen = PlanOptions(responses=60, margin=0.1, **options)
        rows = planning._rows("assumed", 0.3, chosen, top)
        return [(row.clinicians, row.ceiling) for row in rows]

    assert designs() == [(number, top) for top in (0.0, 0.7) for number in (2, 3, 4, 6)]
    assert designs(clinicians=5, ceiling=0.5) == [(5, 0.5)]
    assert [ceiling for _, ceiling in designs(0.6)] == [0.6] * 4
    assert [ceiling for _, ceiling in designs(0.1)] == [0.0] * 4
    (without,) = planning.assumed_rows(PlanOptions(responses=60), None, 0.3)
    assert (without.clinicians, math.isnan(without.power)) == (2, True)
