"""`medjury study plan`, the plan of a design, and the pace that gives its minutes."""

import json
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.rating_study import items, names
from kit.studies import HEAD, Run, import_file, rated
from sqlalchemy import Engine, text
from sqlmodel import Session, select

from calibration.icc import f_interval
from calibration.notes import note
from calibration.planning import Pilot, pilot_rows, single_of
from calibration.reliability import ReliabilityRow
from calibration.scope import AgreementRow
from calibration.values import PlanOptions
from data.card import Reply
from data.pace import FEWEST_SHOWINGS, Pace, PaceSource, Timed, Work, measured, stated
from data.schema import Rater, Role
from data.study.assignments import (
    Slot,
    assign,
    pace_of,
    timed_showings,
    words_left,
    work_of_responses,
)
from data.study.ledger import compositions_tried
from data.study.people import check_code, invite
from data.study.ratings import submit
from data.study.room import next_task
from medjury.cli.people import first_coordinator
from medjury.services.design.assign import design

FLAT = note("same_score", "same_score")


def planned(run: Run, *arguments: str) -> dict[str, Any]:
    code, out, _ = run("study", "plan", *arguments, "--json", "-")
    assert code == 0
    body: dict[str, Any] = json.loads(out)
    return body


def test_a_plan_from_an_assumption_makes_no_study(run: Run, tmp_path: Path) -> None:
    body = planned(run, "--single-icc", "0.31", "--width", "0.3")
    (row,) = body["rows"]
    assert 190 < row["n_for_width"] == row["n"] < 225
    assert (row["readings"], row["per_clinician"]) == (2 * row["n"], row["n"])
    assert [one["number"] for one in body["reliability"]] == [1, 2, 3, 4, 5, 6]
    assert body["reliability"][1]["consistency"] == pytest.approx(0.4733, abs=1e-4)
    assert body["reliability"][1]["agreement"] is None
    assert not list(tmp_path.iterdir())


def test_both_ways_to_state_an_icc_are_one_plan(run: Run) -> None:
    two = planned(run, "--icc", "0.6", "--per-response", "1")["rows"][0]
    one = planned(run, "--single-icc", str(3 / 7), "--per-response", "1")["rows"][0]
    assert two["icc_single"] == pytest.approx(3 / 7)
    assert (two["icc"], two["n"]) == (pytest.approx(0.6), one["n"])
    more = planned(run, "--icc", "0.6", "--per-response", "3")["rows"][0]
    assert more["icc"] == pytest.approx(0.6)
    assert more["icc_single"] < two["icc_single"]


def test_a_margin_says_how_many_responses_show_that_the_jury_is_no_worse(run: Run) -> None:
    options = ("--margin", "0.1", "--responses", "500")
    body = planned(run, "--single-icc", "0.3", *options)
    row, *others = body["rows"]
    assert [(one["clinicians"], one["ceiling"]) for one in others] == [
        *((3, 0.0), (4, 0.0), (6, 0.0), (2, 0.7), (3, 0.7), (4, 0.7), (6, 0.7))
    ]
    assert (row["n"], row["per_response"], row["clinicians"]) == (500, 2, 2)
    assert 0.35 < row["power"] < 0.6
    assert row["n_for_power"] > 900
    assert f"80% with the former takes {row['n_for_power']} responses." in " ".join(
        body["sentences"]
    )
    assert planned(run, "--single-icc", "0.3")["rows"][0]["power"] is None
    again, other = (
        planned(run, "--single-icc", "0.3", *options, "--seed", seed)["rows"] for seed in "01"
    )
    assert body["rows"] == again != other


def test_beside_a_hopeful_assumption_stands_what_the_paper_obtained(run: Run) -> None:
    rows = planned(run, "--single-icc", "0.75", "--width", "0.35")["rows"]
    assert [row["basis"] for row in rows] == ["assumed", "paper obtained"]
    assert 2 * rows[0]["n_for_width"] < rows[1]["n_for_width"]
    assert len(planned(run, "--single-icc", "0.2")["rows"]) == 1


def pilot_of(clinicians: float, jury: float, low: float) -> Pilot:
    own = ReliabilityRow("visits", "composite", "ICC(C,1)", clinicians, low, 0.6, notes=(FLAT,))
    row = AgreementRow("visits", "jury", jury, low, 0.8)
    return Pilot("visits", ("gpt",), own, row, minutes=3.0, timed=80, told=())


def test_each_figure_of_a_pilot_is_planned_for_at_its_low_end_too() -> None:
    rows = pilot_rows(pilot_of(0.4, 0.6, 0.2), PlanOptions(responses=40))
    names = ["clinicians", "clinicians' low end", "jury", "jury's low end"]
    assert [row.basis for row in rows] == names
    singles = [0.4, 0.2, single_of(0.6, 2), single_of(0.2, 2)]
    assert [row.icc_single for row in rows] == pytest.approx(singles)


def test_a_pilot_without_an_icc_is_undefined_with_its_reason() -> None:
    found = pilot_of(float("nan"), float("nan"), float("nan"))
    rows = pilot_rows(found, PlanOptions())
    assert [row.n for row in rows] == [None] * 4
    assert FLAT in rows[0].notes


def test_a_low_end_below_0_is_no_plan_and_says_what_to_do() -> None:
    rows = pilot_rows(pilot_of(0.4, 0.6, -0.2), PlanOptions(per_response=3, responses=40))
    assert [row.n is None for row in rows] == [False, True, False, True]
    assert rows[1].told("planned_beyond") == note("planned_beyond", "", icc=-0.2)
    assert rows[1].icc_single == -0.2


@pytest.fixture
def pilot(run: Run, tmp_path: Path) -> None:
    """Make a study of 24 responses that three clinicians and a juror rated."""
    rated(run, tmp_path, ("gpt",), n=24)


@pytest.mark.usefixtures("pilot")
def test_a_pilot_is_planned_from_and_its_jury_enters_the_ledger(run: Run, engine: Engine) -> None:
    found = planned(run, "--pilot")["assumed"]["pilot"]
    rows = json.loads(run("analyse", "calibrate", "--json", "-")[1])["rows"]
    [jury] = [row for row in rows if row["scorer"] == "jury"]
    assert [found["jury"][end] for end in ("icc", "low")] == pytest.approx(
        [jury["icc"], jury["low"]]
    )
    assert found["minutes"] is None
    assert run("study", "verify")[0] == 0
    entries = compositions_tried(engine)
    assert [(entry.jurors, entry.times) for entry in entries] == [(["gpt"], 2)]


@pytest.mark.usefixtures("pilot")
def test_minutes_are_those_measured_on_the_page_unless_they_are_given(
    run: Run, engine: Engine
) -> None:
    invite(engine, ["dr_c"])
    with Session(engine) as session:
        rater = session.exec(select(Rater.id).where(Rater.handle == "dr_c")).one() or 0
    assign(engine, [Slot("dr_c", number, number) for number in (1, 2, 3)], seed=0, per_response=1)
    for seconds in (60, 180, 600):
        task = next_task(engine, rater).task
        assert task is not None
        submit(
            engine, rater, task.card.code, Reply(dict.fromkeys(task.rubric.criteria, 3)), seconds
        )
    body = planned(run, "--pilot", "--clinicians", "4")
    assert (body["assumed"]["pilot"]["minutes"], body["assumed"]["pilot"]["timed"]) == (3, 3)
    assert "hours at 3.0 minutes a response" in body["sentences"][0]
    given = planned(run, "--pilot", "--clinicians", "4", "--minutes-per-response", "10")
    assert "hours at 10.0 minutes a response" in given["sentences"][0]


def test_the_plan_is_json_and_shows_what_must_be_known_before_anyone_is_invited() -> None:
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


def test_a_list_too_short_for_repeats_gets_none_and_the_plan_says_so() -> None:
    plan = design(items(9), names(1), 1, repeats=0.5)
    written = plan.to_json()
    assert plan.repeats == 0
    assert written["plan"]["repeats_missing"] == 4
    assert any("too short" in note for note in written["plan"]["notes"])


def test_a_new_study_gets_one_coordinator_who_can_sign_in(engine: Engine) -> None:
    [invitation] = first_coordinator(engine)

    assert first_coordinator(engine) == []
    person = check_code(engine, invitation.code).person
    assert person is not None
    assert person.role == Role.COORDINATOR


SHORT = 'i1,visits,"one two\r\nthree",four five,,r1,a,"  six\n\n seven   eight "'
LONG = f"i2,visits,{'word ' * 100},ask,,r2,b,{'word ' * 37}"


@pytest.fixture
def study(engine: Engine, tmp_path: Path) -> Engine:
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


def test_words_alone_give_minutes_at_the_published_reading_speed() -> None:
    assert Pace().minutes(Work(showings=1, words=238)) == pytest.approx(1)
    assert Pace().minutes(Work(showings=1, words=238, criteria=3)) == pytest.approx(1.5)


def test_what_somebody_says_holds_whatever_the_length() -> None:
    assert stated(3).minutes(Work(4, 10_000, 12)) == pytest.approx(12)
    assert stated(3).source == PaceSource.SAID


def test_the_measured_pace_is_the_median_of_seconds_per_word_by_hand() -> None:
    timed = [Timed(100.0, 100, 20)] * 10 + [Timed(200.0, 100, 20)] * 11
    timed += [Timed(0.0, 100, 20), Timed(5.0, 0, 0)]
    pace = measured(timed)
    assert (pace.source, pace.timed, pace.seconds_per_word) == (PaceSource.MEASURED, 21, 2.0)
    assert pace.minutes(Work(2, 300, 6)) == pytest.approx(10)


def test_who_is_faster_than_a_response_can_be_scanned_is_in_no_pace() -> None:
    hasty, just = Timed(8.0, 900, 100), Timed(9.0, 900, 100)  # 600 words a minute, and a second
    assert (hasty.is_hasty, just.is_hasty) == (True, False)
    assert measured([hasty] * FEWEST_SHOWINGS) == Pace()
    mixed = measured([hasty] * 30 + [Timed(90.0, 900, 100)] * FEWEST_SHOWINGS)
    assert (mixed.timed, mixed.seconds_per_word) == (FEWEST_SHOWINGS, 0.1)


@given(st.lists(st.floats(1, 1e4), min_size=41, max_size=81), st.floats(1e5, 1e9))
def test_a_few_showings_left_open_over_night_move_the_pace_within_the_others(
    seconds: list[float], night: float
) -> None:
    usual = measured([Timed(one, 100, 0) for one in seconds])
    disturbed = measured([Timed(one, 100, 0) for one in [*seconds, night, night]])
    assert usual.seconds_per_word == median(one / 100 for one in seconds)
    assert disturbed.seconds_per_word <= max(seconds) / 100


def test_words_left_counts_source_task_and_response_of_open_showings(study: Engine) -> None:
    work = work_of_responses(study)
    assert [one.words for one in work.values()] == [8, 138]
    each = work[1].criteria
    assert each > 0
    assert words_left(study, 1) == Work(2, 146, 2 * each)
    submitted(study, 40)
    assert words_left(study, 1) == Work(1, 138, each)
    assert words_left(study, 99) == Work()


def test_a_masked_response_counts_as_it_is_shown(study: Engine) -> None:
    with study.execution_options(writes=True).begin() as connection:
        connection.execute(text("UPDATE response SET shown = 'one two' WHERE id = 2"))
    assert words_left(study, 1).words == 8 + 101 + 2


def test_submitted_showings_are_timed_and_those_of_simulated_raters_are_not(study: Engine) -> None:
    submitted(study, 40)
    assert timed_showings(study) == timed_showings(study, 1) == [Timed(40.0, 8, 3)]
    assert timed_showings(study, 2) == []
    with study.execution_options(writes=True).begin() as connection:
        connection.execute(text("UPDATE rater SET simulated = true"))
    assert timed_showings(study) == []


def test_a_study_without_times_is_estimated_from_words_unless_minutes_are_said(
    study: Engine,
) -> None:
    assert pace_of(study) == pace_of(study, rater=1) == Pace()
    assert pace_of(study, 2.5) == stated(2.5)
