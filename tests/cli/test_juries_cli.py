"""`medjury analyse juries`: its figures, its JSON, what the ledger keeps of it, and what verdicts cost."""

import json
import math
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from kit.studies import HEAD, THREE_JURORS, Run, rated_by_three
from kit.study_place import StudyIn, copy_study, only_reading
from sqlalchemy import Engine, event
from sqlmodel import select

from calibration.values import AnalysisOptions
from data.database import reading
from data.importers.rows import JurorRecord
from data.schema import Attempt, Response, Status
from data.study.calls import add_jurors, record_attempts
from data.study.costs import JurorCost, juror_costs
from data.study.ledger import EVALUATED, Evaluation, compositions_tried, record_evaluations
from data.study.standing import benchmarks
from data.study.verify import acts, verify
from medjury import main
from medjury.services.juries import RankingQuestion, rank_juries

Write = Callable[[str, str], Path]
KEYS = ["method", "criterion", "benchmark", "k_jurors", "n_juries", "reps"]
KEYS += ["seed", "n_responses", "n_juries_before", "n_tried_before", "n_unknown_cost"]
KEYS += ["usd_made_up", "winner", "by_size", "rows", "note", "notes", "decision"]
ROW = ["jurors", "size", "icc", "low", "high", "icc_honest", "honest_low", "honest_high", "rank"]
ROW += ["usd_per_response"]
ROW += ["on_front", "n_responses", "n_instances", "note", "notes"]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, study_in: StudyIn) -> str:
    """Make a study of 30 responses on two benchmarks that all tests copy."""
    folder = tmp_path_factory.mktemp("juries")
    url = study_in(folder)

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["--db", url, *arguments])
        return int(str(ended.value.code or 0)), "", ""

    rated_by_three(run, folder)
    return url


@pytest.fixture
def study(run: Run, filled: str, url: str) -> Run:
    """Return what runs a command on a copy of the filled study."""
    copy_study(filled, url)
    return run


def juries(run: Run, *options: str) -> dict[str, Any]:
    code, out, err = run("analyse", "juries", "--reps", "60", "--json", "-", *options)
    assert code == 0, err
    body: dict[str, Any] = json.loads(out)
    return body


def test_the_json_has_every_key_and_every_jury(study: Run) -> None:
    body = juries(study)
    assert list(body) == KEYS
    assert (body["benchmark"], body["k_jurors"], body["n_juries"]) == ("combined", 3, 7)
    assert (body["method"], body["criterion"]) == ("paper", None)
    assert all(list(row) == ROW for row in body["rows"])
    assert list(body["winner"]) == [*ROW, "optimism", "n_compared"]
    assert [one["size"] for one in body["by_size"]] == [1, 2, 3]
    assert {row["n_responses"] for row in body["rows"]} == {29}
    assert body["n_responses"] == 30
    assert "1 response that not all jurors rated left out" in body["note"]
    best = body["winner"]
    assert best["optimism"] == pytest.approx(best["icc"] - best["icc_honest"])


@pytest.mark.parametrize("method", ["paper", "published"])
def test_the_jury_of_all_jurors_is_as_calibrate_has_it(study: Run, method: str) -> None:
    found = {tuple(row["jurors"]): row for row in juries(study, "--method", method)["rows"]}
    code, out, _ = study("analyse", "calibrate", "--reps", "60", "--json", "-", "--method", method)
    rows = {row["scorer"]: row for row in json.loads(out)["rows"] if row["benchmark"] == "combined"}
    assert code == 0
    own, jury = found[THREE_JURORS], rows["jury"]
    assert own["icc"] == pytest.approx(jury["icc"], abs=1e-12)
    assert own["n_responses"] == jury["n_responses"]
    ends = [jury["low"], jury["high"]]
    assert [own["low"], own["high"]] == pytest.approx(ends, abs=1e-9)


def test_every_jury_is_in_the_ledger_once_with_one_event_and_the_record_is_whole(
    study: Run, engine: Engine
) -> None:
    assert juries(study)["n_tried_before"] == 0
    assert juries(study, "--seed", "1")["n_tried_before"] == 0
    entries = compositions_tried(engine)
    every = {one for size in (1, 2, 3) for one in combinations(THREE_JURORS, size)}
    assert {tuple(entry.jurors) for entry in entries} == every
    assert [entry.times for entry in entries] == [2] * 7
    assert [len(act.detail["juries"]) for act in acts(engine, EVALUATED)] == [7, 7]
    assert verify(engine).findings == ()


def test_other_responses_are_other_juries(study: Run, engine: Engine) -> None:
    juries(study)
    again = juries(study, "--jurors", "alpha,beta")
    tried = compositions_tried(engine)
    assert again["n_juries_before"] == 7
    assert len(tried) == 7 + len(again["rows"])
    assert {one.instances for one in tried} == {"rated by all of alpha, beta, gamma", ""}
    assert {one.method for one in compositions_tried(engine)} == {"paper"}


def test_instances_that_no_juror_saw_make_no_sample_of_juries(
    run: Run, tmp_path: Path, write: Write
) -> None:
    texts = "".join(f"i{n},visits,c{n},p,,r{n},m,said {n}\n" for n in range(40))
    assert run("study", "import", str(write("r.csv", f"{HEAD}\n{texts}")))[0] == 0
    lines = ["response_id,rater,kind,accuracy,completeness,clarity"]
    for who in ("dr_a", "dr_b"):
        lines += [f"r{n},{who},clinician,{1 + n % 5},{1 + n % 4},{3 + n % 2}" for n in range(40)]
    for who in ("x", "y"):
        lines += [f"r{n},{who},juror,{1 + n % 5},{1 + n % 4},{3 + n % 3}" for n in range(11)]
    assert run("rate", "ratings", str(write("ratings.csv", "\n".join(lines))))[0] == 0
    body = juries(run)
    assert {row["n_instances"] for row in body["rows"]} == {11}
    assert body["decision"]["kind"] == "too_few"
    assert (
        body["decision"]["reasons"][0]["words"] == "11 instances: choosing a jury takes at least 20"
    )
    assert body["decision"]["basis"][0]["instances"] == 11
    assert (
        body["decision"]["next"]["words"]
        == "run the jury on the 29 responses that it has not scored"
    )


def test_a_study_that_cannot_be_written_to_is_ranked_and_says_that_it_was_not_noted(
    study: Run, engine: Engine
) -> None:
    engine.dispose()
    event.listen(engine, "connect", only_reading)
    ranked = rank_juries(engine, RankingQuestion(AnalysisOptions(reps=20)))
    assert len(ranked.ranking.rows) == 7
    assert "read" in ranked.unnoted
    assert compositions_tried(engine) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--sizes", "2-9"], "there are 3 jurors to choose from"),
        (["--sizes", "3-2"], "the first is at least 1"),
        (["--sizes", "2-"], "give one size or two as 1-5"),
        (["--sizes", "a few"], "give one size or two as 1-5"),
        (["--jurors", "alpha,nobody"], "no ratings by a juror nobody"),
        (["--benchmark", "wards"], "this study has notes, visits, combined"),
        (["--criterion", "wit"], "no rubric has the criterion wit"),
        (["--json", "no/such/folder.json"], "not a file in a folder that exists"),
    ],
)
def test_bad_options_get_one_message_and_nothing_is_noted(
    study: Run, engine: Engine, options: list[str], said: str
) -> None:
    code, out, err = study("analyse", "juries", *options)
    assert (code, out) == (2, "")
    assert said in " ".join(err.split()).replace("│ ", "")
    assert compositions_tried(engine) == []


def test_a_verdict_costs_all_money_by_the_verdicts_it_yielded(small_study: Engine) -> None:
    keys = add_jurors(small_study, [JurorRecord(one, {}) for one in ("a", "b", "c")])
    rubric = benchmarks(small_study)[0].rubric
    with reading(small_study) as session:
        responses = [one.id or 0 for one in session.exec(select(Response))]

    def call(juror: str, response: int, status: Status, usd: float | None, number: int = 1) -> None:
        told = {"request_sha256": "0" * 64, "usd": usd, "number": number}
        place = {"rater": keys[juror], "response": responses[response], "status": status}
        record = Attempt(rubric_sha256=rubric.sha256, **place, **told)  # type: ignore[arg-type]  # as named
        record_attempts(small_study, [(record, rubric, None)])

    call("a", 0, Status.OK, 0.02)
    call("a", 1, Status.INVALID_JSON, 0.03)
    call("a", 1, Status.OK, 0.01, number=2)
    call("a", 2, Status.BUDGET_STOPPED, None, number=0)  # never sent
    call("b", 0, Status.OK, 0.5)
    call("b", 1, Status.TIMEOUT, None)
    call("c", 0, Status.REFUSED, 0.1)
    costs = juror_costs(small_study)
    assert costs["a"] == JurorCost(pytest.approx(0.06), 3, 0, 2)
    assert costs["a"].usd_per_verdict == pytest.approx(0.03)
    assert costs["b"] == JurorCost(0.5, 2, 1, 1)
    assert costs["b"].usd_per_verdict is None
    assert costs["c"].usd_per_verdict is None
    assert juror_costs(small_study, "visits") == costs
    assert juror_costs(small_study, "elsewhere") == {}


def test_1585_juries_are_remembered_and_counted_again_and_twice_in_one_go(engine: Engine) -> None:
    names = [f"j{n}" for n in range(12)]
    add_jurors(engine, [JurorRecord(one, {}) for one in names])
    every = [
        Evaluation(one, "b", "paper", "f" * 64, 56, math.nan)
        for size in range(1, 6)
        for one in combinations(names, size)
    ]
    record_evaluations(engine, [*every, every[0]])
    record_evaluations(engine, every)
    entries = compositions_tried(engine)
    assert len(entries) == 1585
    assert sorted({entry.times for entry in entries}) == [2, 3]
    assert verify(engine).findings == ()
