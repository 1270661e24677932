"""`medjury analyse juries` and `models`: figures, the ledger, the blind, costs, and what is refused."""

import json
from itertools import combinations
from typing import Any

import pytest
from kit.commands import command, json_of
from kit.studies import MODELS, THREE_JURORS, Run, model_ratings, model_responses, rated_by_three
from kit.study_place import fill, only_reading
from sqlalchemy import Engine, event
from sqlmodel import select

from calibration.values import AnalysisOptions
from data.database import open_study, reading
from data.errors import BadInput
from data.importers.rows import JurorRecord
from data.person import is_blind
from data.schema import Attempt, Response, Status
from data.study.calls import Step, add_jurors, record_steps
from data.study.costs import juror_costs
from data.study.ledger import EVALUATED, compositions_tried
from data.study.standing import benchmarks
from data.study.verify import acts, verify
from medjury.services.juries import RankingQuestion, rank_juries
from medjury.services.models import read_costs


@pytest.fixture(scope="module")
def filled(tmp_path_factory, study_in) -> Engine:
    """Make a study of 30 responses on two benchmarks that all tests copy."""
    folder = tmp_path_factory.mktemp("juries")
    engine = open_study(study_in(folder), create=True)
    rated_by_three(command(engine), folder)
    return engine


@pytest.fixture
def study(run, filled, engine) -> Run:
    fill(engine, filled)
    return run


def juries(run: Run, *options: str) -> dict[str, Any]:
    code, out, err = run("analyse", "juries", "--reps", "60", "--json", "-", *options)
    assert code == 0, err
    return json.loads(out)


def test_every_jury_has_its_row_and_what_not_all_jurors_rated_is_left_out(study):
    body = juries(study)
    assert (body["benchmark"], body["k_jurors"], body["n_juries"]) == ("combined", 3, 7)
    assert [one["size"] for one in body["by_size"]] == [1, 2, 3]
    assert {row["n_responses"] for row in body["rows"]} == {29}
    assert body["n_responses"] == 30
    assert "1 response that not all jurors rated left out" in body["note"]
    best = body["winner"]
    assert best["optimism"] == pytest.approx(best["icc"] - best["icc_honest"])


def test_every_jury_is_in_the_ledger_once_with_one_event_and_on_other_responses_anew(study, engine):
    assert juries(study)["n_tried_before"] == 0
    assert juries(study, "--seed", "1")["n_tried_before"] == 0
    entries = compositions_tried(engine)
    every = {one for size in (1, 2, 3) for one in combinations(THREE_JURORS, size)}
    assert {tuple(entry.jurors) for entry in entries} == every
    assert [entry.times for entry in entries] == [2] * 7
    assert [len(act.detail["juries"]) for act in acts(engine, EVALUATED)] == [7, 7]
    again = juries(study, "--jurors", "alpha,beta")
    tried = compositions_tried(engine)
    assert (again["n_juries_before"], len(tried)) == (7, 7 + len(again["rows"]))
    assert {one.instances for one in tried} == {"rated by all of alpha, beta, gamma", ""}
    assert {one.method for one in tried} == {"paper"}
    assert verify(engine).findings == ()


def test_a_study_that_cannot_be_written_to_is_ranked_and_says_that_it_was_not_noted(study, engine):
    engine.dispose()
    event.listen(engine, "connect", only_reading)
    ranked = rank_juries(engine, RankingQuestion(AnalysisOptions(reps=20)))
    assert len(ranked.ranking.rows) == 7
    assert "read" in ranked.unnoted
    assert compositions_tried(engine) == []


def test_a_verdict_costs_all_money_by_the_verdicts_it_yielded(small_study):
    keys = add_jurors(small_study, [JurorRecord(one, {}) for one in ("a", "b", "c")])
    rubric = benchmarks(small_study)[0].rubric
    with reading(small_study) as session:
        responses = [one.id or 0 for one in session.exec(select(Response))]

    def call(juror: str, response: int, status: Status, usd: float | None, number: int = 1) -> None:
        told = {"request_sha256": "0" * 64, "usd": usd, "number": number}
        place = {"rater": keys[juror], "response": responses[response], "status": status}
        record = Attempt(rubric_sha256=rubric.sha256, **place, **told)  # type: ignore[arg-type]  # as named
        record_steps(small_study, [Step(attempt=(record, rubric, None))])

    call("a", 0, Status.OK, 0.02)
    call("a", 1, Status.INVALID_JSON, 0.03)
    call("a", 1, Status.OK, 0.01, number=2)
    call("a", 2, Status.BUDGET_STOPPED, None, number=0)  # never sent
    call("b", 0, Status.OK, 0.5)
    call("b", 1, Status.TIMEOUT, None)
    call("c", 0, Status.REFUSED, 0.1)
    costs = juror_costs(small_study)
    a, b, c = (costs[name] for name in "abc")
    assert (a.usd, a.calls, a.unknown, a.verdicts) == (pytest.approx(0.06), 3, 0, 2)
    assert (b.usd, b.calls, b.unknown, b.verdicts) == (0.5, 2, 1, 1)
    assert [one.usd_per_verdict for one in (a, b, c)] == [pytest.approx(0.03), None, None]
    assert juror_costs(small_study, "visits") == costs
    assert juror_costs(small_study, "elsewhere") == {}


AB, BC, AC = "alpha,beta", "beta,gamma", "alpha,gamma"


def compared(run: Run, *juries: str) -> dict:
    given = [part for one in juries for part in ("--compare", one)]
    code, told, said = run("analyse", "juries", *given, "--reps", "200", "--json", "-")
    assert code == 0, said
    return json.loads(told)


def test_a_difference_is_on_the_responses_of_both_and_each_own_icc_is_calibrates(run, tmp_path):
    rated_by_three(run, tmp_path, n=60, lost=0.5)
    found = compared(run, AB, BC)
    assert found["icc_a"] - found["icc_b"] == pytest.approx(found["difference"], abs=1e-12)
    assert found["n_responses"] < 40
    assert found["icc_a"] != pytest.approx(found["icc_first"], abs=0.001)
    assert found["low"] <= found["difference"] <= found["high"]
    for jury, own in ((AB, "icc_first"), (BC, "icc_second")):
        asked = ("--jurors", jury, "--reps", "5", "--json", "-")
        rows = json.loads(run("analyse", "calibrate", *asked)[1])["rows"]
        by_scorer = {row["scorer"]: row["icc"] for row in rows if row["benchmark"] == "combined"}
        assert found[own] == pytest.approx(by_scorer["jury"])


def test_the_same_question_has_the_same_p_whatever_was_looked_at_in_between(run, tmp_path):
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


def test_both_juries_stand_in_the_ledger_and_count(study, engine):
    first, again = compared(study, AB, BC), compared(study, AC, BC)
    tried = {",".join(one.jurors) for one in compositions_tried(engine)}
    assert tried == {AB, BC, AC}
    assert (first["n_tried"], again["n_tried"]) == (1, 2)


LIFT = ("--unblind", "--reason", "analysis")


@pytest.fixture
def rated(run, engine, write) -> Engine:
    assert run("study", "import", str(write("responses.csv", model_responses())))[0] == 0
    assert run("rate", "ratings", str(write("ratings.csv", model_ratings(lenient=3))))[0] == 0
    return engine


def figures(run: Run, *arguments: str) -> dict[str, Any]:
    return json_of(run, "analyse", "models", "--reps", "50", *arguments)


def test_an_open_study_stays_blind_unless_somebody_says_why(run, rated):
    code, out, err = run("analyse", "models")
    assert code == 2
    assert "this study is open and blind" in err
    assert "model-one" not in out + err
    assert not acts(rated, "unblinded")
    assert run("analyse", "models", "--unblind")[0] == 2
    assert run("analyse", "models", "--reason", "curious")[0] == 2
    code, out, _ = run("analyse", "models", "--reps", "20", *LIFT, "--who", "Dr Berg")
    assert code == 0
    assert "by Dr Berg: analysis" in out
    assert "by Dr Berg: analysis" in run("analyse", "calibrate", "--reps", "10")[1]
    assert run("analyse", "models", "--reps", "20")[0] == 0
    assert len(acts(rated, "unblinded")) == 1


def test_a_locked_study_is_compared_in_the_record_and_blind_again_once_reopened(run, rated):
    run("study", "lock")
    assert run("analyse", "models", "--reps", "20")[0] == 0
    (act,) = acts(rated, "unblinded")
    assert "medjury analyse models" in act.detail["reason"]
    assert "medjury analyse models" in run("analyse", "calibrate", "--reps", "10")[1]
    assert run("study", "verify")[0] == 0
    run("study", "lock", "--reopen", "--reason", "more ratings")
    assert is_blind(rated)
    assert run("analyse", "models")[0] == 2


def test_a_jury_kind_to_one_model_misleads_and_is_corrected(run, rated):
    body = figures(run, *LIFT)
    ways = {row["by"] for row in body["rows"]}
    order = {by: [row["model"] for row in body["rows"] if row["by"] == by] for by in ways}
    assert order["clinicians"] == list(MODELS)
    assert order["jury"][0] == "model-three"
    assert order["corrected"] == list(MODELS)
    rows = {(row["model"], row["by"]): row for row in body["rows"]}
    assert rows["model-one", "clinicians"]["n_missing"] == 2
    assert rows["model-one", "jury"]["n_responses"] == 8
    assert rows["model-one", "corrected"]["shared_rank_low"] == 1
    pairs = [row for row in body["differences"] if row["by"] == "clinicians"]
    assert [(row["first"], row["second"]) for row in pairs] == [*combinations(MODELS, 2)]
    (both, *_) = [row for row in pairs if row["p"] is not None]
    assert both["p"] <= both["p_holm"]
    # Points of model-two by clinicians: 3, 3 and 3 or 4, every other time: mean 3 1/6.
    assert rows["model-two", "clinicians"]["macro_average"] == pytest.approx((3 + 1 / 6 - 1) / 4)


def test_one_way_of_scoring_and_one_criterion_can_be_asked_for(run, rated):
    body = figures(run, *LIFT, "--by", "clinicians", "--criterion", "accuracy")
    assert {row["by"] for row in body["rows"]} == {"clinicians"}
    assert [row["macro_average"] for row in body["rows"]] == [0.75, 0.5, 0.25]
    assert body["jury"] == []


def test_a_jury_seen_beside_clinicians_is_in_the_ledger(run, rated):
    figures(run, *LIFT, "--by", "clinicians")
    figures(run, "--by", "jury")
    assert not compositions_tried(rated)
    figures(run)
    figures(run, "--by", "corrected")
    (entry,) = compositions_tried(rated)
    assert (entry.jurors, entry.method, entry.times) == (["gpt"], "models", 2)
    assert (entry.icc, entry.n_responses, entry.benchmark) == (None, 18, "aci_bench")
    assert run("study", "verify")[0] == 0


def test_responses_of_the_training_round_take_no_part(run, rated, write):
    more = model_responses(n=9)
    experts = "response_id,accuracy,completeness,clarity\nmodel-one-8,5,5,5\n"
    assert run("study", "import", str(write("more.csv", more)))[0] == 0
    assert run("rate", "training", str(write("experts.csv", experts)))[0] == 0
    rows = [row for row in figures(run, *LIFT)["rows"] if row["by"] == "jury"]
    total = {row["model"]: row["n_responses"] + row["n_missing"] for row in rows}
    assert total == {"model-one": 8, "model-two": 9, "model-three": 9}


def test_costs_stand_beside_win_rates(run, rated, write):
    path = write("costs.csv", "model,usd\nmodel-one,2.5\nmodel-two,0\n")
    rows = figures(run, *LIFT, "--costs", str(path))["rows"]
    given = {"model-one": 2.5, "model-three": None, "model-two": 0.0}
    assert {row["model"]: row["usd"] for row in rows} == given
    toml = write("costs.toml", '"model-one" = 2.5\n')
    rows = figures(run, "--costs", str(toml))["rows"]
    assert {row["usd"] for row in rows} == {2.5, None}


@pytest.mark.parametrize(
    ("name", "body", "said"),
    [
        ("c.csv", "model,usd\nmodel-one,-1\n", "0 or more"),
        ("c.csv", "model,usd\nmodel-one,much\n", "c.csv row 2"),
        ("c.csv", "model,usd\nmodel-one,inf\n", "0 or more"),
        ("c.csv", "model,usd\nmodel-one,1\nmodel-one,2\n", "stands twice"),
        ("c.csv", "model,price\nmodel-one,1\n", "'usd' is missing"),
        ("c.toml", "model-one = true\n", "0 or more"),
        ("c.toml", "model-one\n", "not TOML"),
        ("c.toml", "", "names no model"),
    ],
)
def test_wrong_costs_are_refused(write, name, body, said):
    with pytest.raises(BadInput, match=said):
        read_costs(write(name, body))


def test_bad_input_ends_with_two_and_lifts_no_blind(run, rated, write):
    nine = str(write("costs.csv", "model,usd\nmodel-nine,1\n"))
    for arguments, said in (
        (["--by", "experts"], "experts"),
        (["--jurors", "gpt,nobody"], "nobody"),
        (["--criterion", "wit"], "no rubric has the criterion wit"),
        (["--costs", "nowhere.toml"], "nowhere.toml"),
        (["--costs", nine], "the costs name model-nine"),
        (["--json", "nowhere/models.json"], "nowhere"),
    ):
        code, _, err = run("analyse", "models", *LIFT, *arguments)
        assert code == 2
        assert said in err
        assert "model-two" not in err
    assert not acts(rated, "unblinded")
