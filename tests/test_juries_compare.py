"""`medjury juries --compare`: the paired difference of two juries, counted like every other look."""

import json
from pathlib import Path

import pytest
from report_study import rated
from small import Run
from sqlalchemy import Engine

from data.queries.ledger import tried

JURORS = ("a", "b", "c")


def compared(run: Run, *juries: str) -> dict:
    given = [part for one in juries for part in ("--compare", one)]
    code, told, said = run("juries", *given, "--reps", "200", "--json", "-")
    assert code == 0, said
    return json.loads(told)


def test_it_is_the_difference_of_the_two_iccs_of_calibrate(run: Run, tmp_path: Path) -> None:
    rated(run, tmp_path, JURORS)
    found = compared(run, "a,b", "b,c")
    alone = []
    for jury in ("a,b", "b,c"):
        rows = json.loads(run("calibrate", "--jurors", jury, "--reps", "5", "--json", "-")[1])
        alone.append(next(row["icc"] for row in rows["rows"] if row["scorer"] == "jury"))
    assert found["difference"] == pytest.approx(alone[0] - alone[1], abs=1e-9)
    assert [found["icc_first"], found["icc_second"]] == pytest.approx(alone)
    assert found["low"] <= found["difference"] <= found["high"]


def test_it_stands_opposite_when_turned_round(run: Run, tmp_path: Path) -> None:
    rated(run, tmp_path, JURORS)
    one, other = compared(run, "a,b", "b,c"), compared(run, "b,c", "a,b")
    assert one["difference"] == pytest.approx(-other["difference"])
    assert (one["low"], one["high"]) == pytest.approx((-other["high"], -other["low"]))


def test_both_juries_stand_in_the_ledger_and_count(
    run: Run, tmp_path: Path, engine: Engine
) -> None:
    rated(run, tmp_path, JURORS)
    first, again = compared(run, "a,b", "b,c"), compared(run, "a,c", "b,c")
    assert {one.jurors for one in tried(engine)} == {("a", "b"), ("b", "c"), ("a", "c")}
    assert (first["n_tried"], again["n_tried"]) == (1, 2)
    assert again["p_holm"] >= again["p"]


@pytest.mark.parametrize("juries", [("a,b",), ("a,b", "b,a"), ("a", "b", "c")])
def test_anything_but_two_different_juries_is_refused(
    run: Run, tmp_path: Path, juries: tuple[str, ...]
) -> None:
    rated(run, tmp_path, JURORS)
    given = [part for one in juries for part in ("--compare", one)]
    code, _, said = run("juries", *given)
    assert code == 2
    assert "--compare: give it twice" in said
