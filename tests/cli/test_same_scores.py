"""A jury, a juror or a criterion with one and the same score everywhere is named where the decision stands."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kit.studies import HEAD, Run

Write = Callable[[str, str], Path]
N = 39


def rated(run: Run, write: Write, **raters: str) -> None:
    """Import 39 responses and scores: of each rater and criterion "a+b", for a + n % b of response n."""
    texts = "".join(f"i{n},visits,c{n},p,,r{n},m,said {n}\n" for n in range(N))
    assert run("study", "import", str(write("r.csv", f"{HEAD}\n{texts}")))[0] == 0
    lines = ["response_id,rater,kind,accuracy,completeness,clarity"]
    for name, formulas in raters.items():
        kind = "clinician" if name.startswith("dr") else "juror"
        for n in range(N):
            parts = [[int(part) for part in one.split("+")] for one in formulas.split(";")]
            scores = [str(least + n % (points[0] if points else 1)) for least, *points in parts]
            lines.append(f"r{n},{name},{kind},{','.join(scores)}")
    assert run("rate", "ratings", str(write("ratings.csv", "\n".join(lines))))[0] == 0


def calibrated(run: Run, *options: str) -> dict[str, Any]:
    code, out, err = run("analyse", "calibrate", "--reps", "200", "--json", "-", *options)
    assert code == 0, err
    body: dict[str, Any] = json.loads(out)
    return body


DOCTORS = {"dr_a": "1+5;1+4;3+2", "dr_b": "1+5;1+5;3+3"}


@pytest.mark.parametrize("method", ["paper", "published"])
def test_a_jury_that_gives_every_response_the_same_score_is_told_as_that(
    run: Run, write: Write, method: str
) -> None:
    rated(run, write, **DOCTORS, flat="4;4;4")
    body = calibrated(run, "--method", method)
    decision = body["decision"]
    assert decision["kind"] == "undefined"
    assert decision["reasons"][0]["words"] == (
        "undefined: the jury gave all 39 responses the same score: it tells no response from another"
    )
    basis = {name: decision["basis"][0][name] for name in ("responses", "instances", "clinicians")}
    assert basis == {"responses": N, "instances": N, "clinicians": 2}
    assert decision["next"]["code"] == "do_jury_that_differs"
    assert "two clinicians" not in json.dumps(body["rows"])
    assert [row["n_responses"] for row in body["rows"] if "j" in row["scorer"]] == [N, N]


def test_clinicians_who_give_every_response_the_same_score_leave_nothing_to_agree_with(
    run: Run, write: Write
) -> None:
    rated(run, write, dr_a="3;3;3", dr_b="4;4;4", judge="1+5;1+4;3")
    decision = calibrated(run)["decision"]
    assert decision["reasons"][0]["words"] == (
        "undefined: the clinicians gave all 39 responses the same score: they tell no response from "
        "another"
    )
    assert decision["basis"][0]["clinicians"] == 2
    assert decision["next"]["code"] == "do_varied"


def test_a_jury_that_scored_nothing_of_what_clinicians_rated_is_sent_to_score_it(
    run: Run, write: Write
) -> None:
    rated(run, write, **DOCTORS)
    lines = ["response_id,rater,kind,accuracy,completeness,clarity"]
    lines += [f"r{n},part,juror,{1 + n % 5},{1 + n % 4}," for n in range(N)]
    assert run("rate", "ratings", str(write("part.csv", "\n".join(lines))))[0] == 0
    decision = calibrated(run)["decision"]
    assert "scores of 1 of the jurors" in decision["reasons"][0]["words"]
    assert decision["basis"][0]["words"] == "no response that both scored; the jury scored 0 of 39"
    assert decision["next"]["words"] == "run the jury on the 39 responses that it has not scored"
