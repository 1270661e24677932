"""`medjury study plan`: what it prints, what it writes, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.studies import HEAD, Run
from sqlmodel import Session, select

from calibration.notes import note
from calibration.planning import Pilot, pilot_rows, single_of
from calibration.reliability import ReliabilityRow
from calibration.scope import AgreementRow
from calibration.values import PlanOptions
from data.card import Reply
from data.database import open_study
from data.schema import Rater
from data.study.assignments import Slot, assign
from data.study.ledger import compositions_tried
from data.study.people import invite
from data.study.ratings import submit
from data.study.room import next_task

ROW = [
    *("basis", "icc_single", "per_response", "clinicians", "ceiling", "icc", "n_for_width", "n"),
    *("readings", "per_clinician", "width_expected", "width_assured", "power"),
    *("power_like_these", "n_for_power", "note", "notes"),
]
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
    assert list(row) == ROW
    assert list(body) == ["assumed", "rows", "reliability", "sentences"]
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
    first, again, other = (
        planned(run, "--single-icc", "0.3", *options, "--seed", seed)["rows"] for seed in "001"
    )
    assert first == again != other
    code, _, err = run("study", "plan", "--icc", "0.5", "--margin", "0.1", "--per-response", "1")
    assert (code, "--per-response 2 or more" in err) == (2, True)


def test_beside_a_hopeful_assumption_stands_what_the_paper_obtained(run: Run) -> None:
    rows = planned(run, "--single-icc", "0.75", "--width", "0.35")["rows"]
    assert [row["basis"] for row in rows] == ["assumed", "paper obtained"]
    assert 2 * rows[0]["n_for_width"] < rows[1]["n_for_width"]
    assert len(planned(run, "--single-icc", "0.2")["rows"]) == 1


def test_what_can_be_afforded_gives_width_and_load(run: Run) -> None:
    options = ("--responses", "100", "--clinicians", "8", "--minutes-per-response", "4")
    body = planned(run, "--icc", "0.6", *options)
    row = body["rows"][0]
    assert (row["n"], row["readings"], row["per_clinician"]) == (100, 200, 25)
    assert row["width_expected"] == pytest.approx(0.33, abs=0.04)
    load = "each rated by 2 of 8 clinicians (200 readings, up to 25 for each, about 1.7 hours"
    assert any(load in sentence for sentence in body["sentences"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give one of --icc"),
        (("--icc", "0.5", "--single-icc", "0.3"), "give one of --icc"),
        (("--icc", "0.5", "--pilot"), "give one of --icc"),
        (("--icc", "1.2"), "--icc"),
        (("--icc", "0.5", "--width", "0"), "--width"),
        (("--icc", "0.5", "--clinicians", "1"), "--clinicians 1"),
        (("--icc", "0.5", "--benchmark", "b"), "--benchmark"),
        (("--pilot", "--db", "absent.db"), "there is no study at"),
        (("--icc", "0.5", "--json", "absent/x.json"), "not a file in a folder that exists"),
    ],
)
def test_wrong_input_has_one_message_and_code_two(
    run: Run, arguments: tuple[str, ...], said: str
) -> None:
    code, out, err = run("study", "plan", *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err


def pilot_of(clinicians: float, jury: float, low: float) -> Pilot:
    return Pilot(
        benchmark="visits",
        jurors=("gpt",),
        clinicians=ReliabilityRow(
            "visits", "composite", "ICC(C,1)", clinicians, low, 0.6, notes=(FLAT,)
        ),
        jury=AgreementRow("visits", "jury", jury, low, 0.8),
        minutes=3.0,
        timed=80,
        told=(),
    )


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


def ratings(n: int = 24) -> str:
    """Return ratings of two clinicians and a juror who see one quality."""
    random = np.random.default_rng(0)
    lines = ["response_id,rater,kind,accuracy,completeness,clarity"]
    for i in range(n):
        quality = 3 + random.normal()
        for who, kind in (("dr_a", "clinician"), ("dr_b", "clinician"), ("gpt", "juror")):
            scores = np.clip(np.round(quality + random.normal(size=3)), 1, 5).astype(int)
            lines.append(f"r{i},{who},{kind}," + ",".join(map(str, scores)))
    return "\n".join(lines)


@pytest.fixture
def pilot(run: Run, tmp_path: Path) -> None:
    """Make a study of 24 responses that two clinicians and a juror rated."""
    rows = [f"i{n},visits,talk {n},write,ref {n},r{n},model-{n % 2},answer {n}" for n in range(24)]
    (tmp_path / "responses.csv").write_text("\n".join([HEAD, *rows]), encoding="utf-8")
    (tmp_path / "ratings.csv").write_text(ratings(), encoding="utf-8")
    assert run("study", "import", str(tmp_path / "responses.csv"))[0] == 0
    assert run("rate", "ratings", str(tmp_path / "ratings.csv"))[0] == 0
    assert run("analyse", "measure", "rouge-l")[0] == 0


@pytest.mark.usefixtures("pilot")
def test_a_pilot_is_planned_from_and_its_jury_enters_the_ledger(
    run: Run, tmp_path: Path, url: str
) -> None:
    body = planned(run, "--pilot")
    table = tmp_path / "table.json"
    assert run("analyse", "calibrate", "--json", str(table))[0] == 0
    rows = {row["scorer"]: row for row in json.loads(table.read_text())["rows"]}
    jury = body["assumed"]["pilot"]["jury"]
    assert jury["icc"] == pytest.approx(rows["jury"]["icc"])
    assert jury["low"] == pytest.approx(rows["jury"]["low"])
    assert body["assumed"]["pilot"]["minutes"] is None
    with_ledger = run("study", "verify")
    assert with_ledger[0] == 0

    entries = compositions_tried(open_study(url))
    assert [(entry.jurors, entry.times) for entry in entries] == [(["gpt"], 2)]


@pytest.mark.usefixtures("pilot")
def test_minutes_are_those_measured_on_the_page_unless_they_are_given(
    run: Run, tmp_path: Path, url: str
) -> None:
    engine = open_study(url)
    invite(engine, ["dr_c"])
    with Session(engine) as session:
        rater = session.exec(select(Rater.id).where(Rater.handle == "dr_c")).one()
    assign(engine, [Slot("dr_c", number, number) for number in (1, 2, 3)], seed=0, per_response=1)
    for seconds in (60, 180, 600):
        task = next_task(engine, rater or 0).task
        assert task is not None
        reply = Reply({"accuracy": 3, "completeness": 3, "clarity": 4})
        submit(engine, rater or 0, task.card.code, reply, seconds)
    body = planned(run, "--pilot", "--clinicians", "4")
    assert (body["assumed"]["pilot"]["minutes"], body["assumed"]["pilot"]["timed"]) == (3, 3)
    assert "hours at 3.0 minutes a response" in body["sentences"][0]
    given = planned(run, "--pilot", "--clinicians", "4", "--minutes-per-response", "10")
    assert "hours at 10.0 minutes a response" in given["sentences"][0]


@pytest.mark.usefixtures("pilot")
def test_a_pilots_benchmark_must_be_in_the_study(run: Run) -> None:
    assert "the study has visits" in run("study", "plan", "--pilot", "--benchmark", "ward")[2]
