"""`medjury analyse juries --compare`: the paired difference of two juries, counted like every other look."""

import json
from pathlib import Path

import pytest
from kit.studies import Run, rated_by_three
from sqlalchemy import Engine

from data.study.ledger import compositions_tried

AB, BC, AC = "alpha,beta", "beta,gamma", "alpha,gamma"


def compared(run: Run, *juries: str) -> dict:
    given = [part for one in juries for part in ("--compare", one)]
    code, told, said = run("analyse", "juries", *given, "--reps", "200", "--json", "-")
    assert code == 0, said
    return json.loads(told)


def icc_of(run: Run, jury: str) -> float:
    """Return a jury's ICC on all the responses that it has, as `calibrate` gives it."""
    rows = json.loads(
        run("analyse", "calibrate", "--jurors", jury, "--reps", "5", "--json", "-")[1]
    )["rows"]
    return next(
        row["icc"] for row in rows if (row["scorer"], row["benchmark"]) == ("jury", "combined")
    )


def test_both_iccs_are_on_the_responses_of_both_and_their_difference_is_the_difference(
    run: Run, tmp_path: Path
) -> None:
    rated_by_three(run, tmp_path, n=60, lost=0.5)
    found = compared(run, AB, BC)
    assert found["icc_a"] - found["icc_b"] == pytest.approx(found["difference"], abs=1e-12)
    assert found["n_responses"] < 40
    assert found["icc_a"] != pytest.approx(found["icc_first"], abs=0.001)
    assert found["low"] <= found["difference"] <= found["high"]


def test_each_jurys_own_icc_is_that_of_calibrate_and_is_not_shown_beside_the_difference(
    run: Run, tmp_path: Path
) -> None:
    rated_by_three(run, tmp_path, n=60, lost=0.5)
    found = compared(run, AB, BC)
    own = [found["icc_first"], found["icc_second"]]
    assert own == pytest.approx([icc_of(run, jury) for jury in (AB, BC)])
    code, told, _ = run("analyse", "juries", "--compare", AB, "--compare", BC, "--reps", "200")
    assert code == 0
    assert f"{found['icc_a']:.3f}" in told
    assert f"{found['icc_b']:.3f}" in told
    assert f"{own[0]:.3f}" not in told


def test_the_same_question_has_the_same_p_and_decision_whatever_was_looked_at_in_between(
    run: Run, tmp_path: Path
) -> None:
    rated_by_three(run, tmp_path, n=40)
    first = compared(run, "alpha", "gamma")
    assert first["decision"]["kind"] == "first_better"
    assert first["decision"]["p"] == first["p"] <= 0.05
    assert first["n_tried"] == 1
    assert run("analyse", "calibrate", "--details", "--reps", "20")[0] == 0
    for sizes in ("1-3", "1-2"):
        assert run("analyse", "juries", "--reps", "2", "--sizes", sizes)[0] == 0
    again = compared(run, "alpha", "gamma")
    same = ("difference", "low", "high", "p")
    assert [again[name] for name in same] == [first[name] for name in same]
    assert again["decision"]["kind"] == "first_better"
    # alpha with gamma; the jury of three with each of its jurors; and two juries of two looked at
    assert again["n_tried"] == 1 + 3 + 3
    assert "not corrected for the 7 different" in again["decision"]["reasons"][1]["words"]
    assert "holm" not in str(again).lower()


def test_both_juries_stand_in_the_ledger_and_count(
    run: Run, tmp_path: Path, engine: Engine
) -> None:
    rated_by_three(run, tmp_path)
    first, again = compared(run, AB, BC), compared(run, AC, BC)
    assert {tuple(one.jurors) for one in compositions_tried(engine)} == {
        tuple(one.split(",")) for one in (AB, BC, AC)
    }
    assert (first["n_tried"], again["n_tried"]) == (1, 2)


@pytest.mark.parametrize("juries", [(AB,), (AB, "beta,alpha"), ("alpha", "beta", "gamma")])
def test_anything_but_two_different_juries_is_refused(
    run: Run, tmp_path: Path, juries: tuple[str, ...]
) -> None:
    rated_by_three(run, tmp_path)
    given = [part for one in juries for part in ("--compare", one)]
    code, _, said = run("analyse", "juries", *given)
    assert code == 2
    assert "--compare: give it twice" in said
