"""`medjury analyse route`: what it prints and writes, and one message for bad input."""

import csv
import json
import shutil
from pathlib import Path

import pytest
from kit.demo_study import Demo
from kit.routed_study import fill
from kit.studies import Run

KEYS = [
    *("harm", "bound", "confidence", "certified", "rule", "threshold", "p", "passed"),
    *("expected_missed", "caught_at_20", "read", "not_scored", "hours", "hours_of"),
    *("n_train", "n_certify", "rated", "harmful", "jury", "silent"),
    "simulated",
]
ASKED = ("analyse", "route", "--at-most", "2", "--bound", "0.2")


@pytest.fixture
def study(run: Run, tmp_path: Path) -> None:
    fill(run, tmp_path)


@pytest.mark.usefixtures("study")
def test_the_command_passes_what_holds_the_bound_and_writes_every_decision(
    run: Run, tmp_path: Path
) -> None:
    js, to = tmp_path / "r.json", tmp_path / "routes.csv"

    code, out, _ = run(*ASKED, "--json", str(js), "--csv", str(to))

    assert code == 0
    found = json.loads(js.read_text())
    assert list(found) == KEYS
    assert found["certified"]
    assert found["harm"] == {"kind": "low", "points": 2.0, "criterion": "composite"}
    assert (found["passed"] + found["read"], found["not_scored"]) == (200, 1)
    assert out.startswith(
        f"pass {found['passed']} responses, read {found['read']}: at most 20 % of"
    )
    assert (found["n_train"], found["n_certify"], found["rated"]) == (60, 89, 149)
    rows = list(csv.DictReader(to.read_text().splitlines()))
    assert len(rows) == 200
    assert list(rows[0]) == [
        *("response_id", "decision", "score", "rated_by_clinicians", "benchmark", "instance_id")
    ]
    passed = [row for row in rows if row["decision"] == "pass"]
    assert len(passed) == found["passed"]
    assert max(float(row["score"]) for row in passed) <= found["threshold"]
    [lost] = [row for row in rows if row["response_id"] == "r7"]
    assert (lost["decision"], lost["score"]) == ("read", "")
    left = [row for row in rows if row["decision"] == "read" and row["rated_by_clinicians"] == "0"]
    assert found["hours_of"] == len(left)
    assert (found["hours"] > 0) == bool(left)
    assert "secret" not in out + to.read_text() + js.read_text()


@pytest.mark.usefixtures("study")
def test_a_bound_beyond_reach_passes_nothing(run: Run, tmp_path: Path) -> None:
    js, to = tmp_path / "r.json", tmp_path / "routes.csv"

    code, out, _ = run(
        "analyse",
        "route",
        "--off-by",
        "0.3",
        "--bound",
        "0.01",
        "--json",
        str(js),
        "--csv",
        str(to),
    )

    assert code == 0
    found = json.loads(js.read_text())
    assert out.startswith("read all: no rule reaches this bound with these ratings")
    assert (found["certified"], found["passed"], found["expected_missed"]) == (False, 0, None)
    assert 0 <= found["caught_at_20"]["share"] <= 1
    assert ",pass," not in to.read_text()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "say which responses are harmful"),
        (("--at-most", "2", "--off-by", "1"), "one of the two"),
        (("--at-most", "2", "--bound", "1"), "--bound 1: give a share"),
        (("--at-most", "2", "--confidence", "0"), "--confidence 0: give a share"),
        (("--off-by", "-1"), "--off-by -1: give points"),
        (("--at-most", "nan"), "nan"),
        (("--at-most", "2", "--jurors", "nobody"), "no ratings by a juror nobody"),
        (("--at-most", "2", "--min-jurors", "3"), "the jury has 2 jurors"),
        (("--at-most", "2", "--benchmark", "nowhere"), "nowhere"),
        (("--at-most", "2", "--criterion", "tone"), "tone"),
    ],
)
@pytest.mark.usefixtures("study")
def test_bad_input_gets_one_message_and_nothing_is_written(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    to = tmp_path / "routes.csv"

    code, out, err = run("analyse", "route", *arguments, "--csv", str(to))

    assert code == 2
    assert told in err
    assert (out, to.exists()) == ("", False)


@pytest.mark.usefixtures("study")
def test_a_file_that_is_there_stays(run: Run, tmp_path: Path) -> None:
    to = tmp_path / "routes.csv"
    to.write_text("mine")
    assert run(*ASKED, "--csv", str(to))[0] == 2
    assert to.read_text() == "mine"


def test_too_few_rated_instances_are_refused(run: Run, tmp_path: Path) -> None:
    fill(run, tmp_path, rated=20)
    code, _, err = run(*ASKED)
    assert code == 2
    assert "19 instances rated by clinicians and by the whole jury" in err


def test_a_simulated_jury_says_so(
    run: Run, demo: Demo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(demo.study, tmp_path / "own.db")
    monkeypatch.setenv("MEDJURY_DB", f"sqlite:///{tmp_path / 'own.db'}")

    code, out, _ = run(
        "analyse", "route", "--at-most", "2", "--bound", "0.3", "--json", str(tmp_path / "r.json")
    )

    assert code == 0
    assert out.startswith("simulated, no judgement: pass ")
    assert "simulated-strict" in json.loads((tmp_path / "r.json").read_text())["simulated"]
