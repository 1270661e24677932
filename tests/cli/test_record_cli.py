"""verify, lock, unblind and settings at the command line."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.studies import Run
from sqlalchemy import Engine, text

ACTS = ("rating", "response", "remark", "span", "submission", "subgroup")
Write = Callable[[str, str], Path]
RATINGS = "response_id,rater,kind,accuracy,completeness,clarity\n" + "".join(
    f"{name},{who},clinician,{a},{b},3\n"
    for who in ("dr_a", "dr_b")
    for name, a, b in (("r11", 1, 2), ("r12", 4, 4), ("r21", 2, 5), ("r22", 5, 5))
)


@pytest.fixture
def rated(run: Run, small_study: Engine, write: Write) -> Engine:
    assert run("rate", "ratings", str(write("ratings.csv", RATINGS)))[0] == 0
    return small_study


def test_verify_prints_what_is_vouched_for_and_ends_with_zero(run: Run, rated: Engine) -> None:
    code, out, _ = run("study", "verify", "--json", "-")
    body = json.loads(out)
    assert code == 0
    assert list(body) == ["events", "head", "rows", "findings", "authors_withheld", "since"]
    assert body["authors_withheld"] is False
    assert {name: number for name, number in body["rows"].items() if name in ACTS} == {
        "rating": 24,
        "response": 4,
        "remark": 0,
        "span": 0,
        "submission": 0,
        "subgroup": 0,
    }
    said = run("study", "verify")[1]
    assert "keep this hash elsewhere" in said
    assert f"head {body['head']}" in said
    assert run("study", "verify", "--head", body["head"])[0] == 0


def test_verify_ends_with_one_and_a_line_for_each_finding(run: Run, rated: Engine) -> None:
    with rated.execution_options(writes=True).begin() as connection:
        connection.execute(text("UPDATE rating SET score = 5 WHERE id = 1"))
    code, out, _ = run("study", "verify")
    assert code == 1
    assert "FINDING rating 1, 2, 3, 4, 5 and 19 more: some of them changed since event" in out
    assert run("study", "verify", "--head", "0" * 63 + "1")[1].count("FINDING") == 2


def test_a_locked_study_refuses_ratings_until_it_is_reopened_with_a_reason(
    run: Run, rated: Engine, write: Write
) -> None:
    code, out, _ = run("study", "lock", "--who", "Dr Berg")
    assert code == 0
    head = next(line for line in out.splitlines() if line.startswith("head ")).split()[1]
    more = str(write("more.csv", RATINGS.replace("dr_a", "dr_c")))
    code, _, err = run("rate", "ratings", more)
    assert code == 2
    assert "by Dr Berg" in err
    assert run("study", "lock", "--reopen")[0] == 2
    assert run("study", "lock", "--reopen", "--reason", "late form")[0] == 0
    assert run("rate", "ratings", more)[0] == 0
    assert run("study", "verify")[0] == 0
    code, out, _ = run("study", "verify", "--head", head)
    assert (code, out.count("FINDING")) == (1, 2)
    assert "since the head that was kept: 1 reopened, 1 ratings imported" in out


def test_every_later_report_says_that_the_blind_was_lifted_or_the_study_reopened(
    run: Run, rated: Engine
) -> None:
    assert "unblinded" not in run("analyse", "calibrate", "--reps", "10")[1]
    run("study", "lock")
    run("study", "lock", "--reopen", "--reason", "late form")
    code, out, _ = run("study", "unblind", "--reason", "final analysis", "--who", "Dr Berg")
    assert (code, out.splitlines()[:2]) == (0, ["response_id,model", "r11,model-one"])
    said = run("analyse", "calibrate", "--reps", "10")[1]
    assert "by Dr Berg: final analysis" in said
    assert "by coordinator: late form" in said


def test_lifting_the_blind_needs_a_reason_and_a_new_file(
    run: Run, rated: Engine, tmp_path: Path
) -> None:
    out = tmp_path / "authors.csv"
    assert run("study", "unblind", "--out", str(out))[0] == 2
    assert not out.exists()
    assert run("study", "unblind", "--reason", "analysis", "--out", str(out))[0] == 0
    assert out.read_text("utf-8").splitlines()[1] == "r11,model-one"
    assert run("study", "unblind", "--reason", "analysis", "--out", str(out))[0] == 2


@pytest.mark.usefixtures("rated")
def test_a_head_with_a_slip_of_the_pen_is_no_finding(run: Run) -> None:
    code, _, error = run("study", "verify", "--head", "abc")
    assert code == 2
    assert "64 characters" in error


@pytest.mark.usefixtures("rated")
def test_settings_are_shown_set_and_checked(run: Run, rated: Engine) -> None:
    assert "on_request" in run("study", "settings")[1]
    assert run("study", "settings", "reference", "hidden")[0] == 0
    assert json.loads(run("study", "settings", "--json", "-")[1])["reference"] == "hidden"
    for wrong in (["reference", "always"], ["colour", "red"], ["reference"]):
        assert run("study", "settings", *wrong)[0] == 2
