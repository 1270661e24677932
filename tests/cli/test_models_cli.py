"""`medjury analyse models` as its user meets it: the blind, the ledger, costs, and what is refused."""

import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from kit.rating_files import MODELS, model_ratings, model_responses
from kit.studies import Run
from sqlalchemy import Engine

from data.errors import BadInput
from data.person import is_blind
from data.study.ledger import compositions_tried
from data.study.verify import acts
from medjury.services.models import read_costs

Write = Callable[[str, str], Path]
LIFT = ("--unblind", "--reason", "analysis")


@pytest.fixture
def rated(run: Run, engine: Engine, write: Write) -> Engine:
    assert run("study", "import", str(write("responses.csv", model_responses())))[0] == 0
    assert run("rate", "ratings", str(write("ratings.csv", model_ratings(lenient=3))))[0] == 0
    return engine


def figures(run: Run, *arguments: str) -> dict[str, Any]:
    code, out, err = run("analyse", "models", "--reps", "50", "--json", "-", *arguments)
    assert code == 0, err
    body: dict[str, Any] = json.loads(out)
    return body


def order(body: dict[str, Any], by: str) -> list[str]:
    return [row["model"] for row in body["rows"] if row["by"] == by]


def test_an_open_study_stays_blind_unless_somebody_says_why(run: Run, rated: Engine) -> None:
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


def test_a_locked_study_is_compared_and_the_record_has_it(run: Run, rated: Engine) -> None:
    run("study", "lock")
    assert run("analyse", "models", "--reps", "20")[0] == 0
    (act,) = acts(rated, "unblinded")
    assert "medjury analyse models" in act.detail["reason"]
    assert "medjury analyse models" in run("analyse", "calibrate", "--reps", "10")[1]
    assert run("study", "verify")[0] == 0


def test_a_reopened_study_is_blind_again(run: Run, rated: Engine) -> None:
    figures(run, *LIFT)
    assert not is_blind(rated)
    run("study", "lock")
    run("study", "lock", "--reopen", "--reason", "more ratings")
    assert is_blind(rated)
    assert run("analyse", "models")[0] == 2
    figures(run, *LIFT)


def test_a_jury_kind_to_one_model_misleads_and_is_corrected(run: Run, rated: Engine) -> None:
    body = figures(run, *LIFT)
    assert order(body, "clinicians") == list(MODELS)
    assert order(body, "jury")[0] == "model-three"
    assert order(body, "corrected") == list(MODELS)
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


def test_one_way_of_scoring_and_one_criterion_can_be_asked_for(run: Run, rated: Engine) -> None:
    body = figures(run, *LIFT, "--by", "clinicians", "--criterion", "accuracy")
    assert {row["by"] for row in body["rows"]} == {"clinicians"}
    assert [row["macro_average"] for row in body["rows"]] == [0.75, 0.5, 0.25]
    assert body["jury"] == []


def test_a_benchmark_without_the_criterion_is_not_counted_among_those_compared(
    run: Run, rated: Engine, write: Write
) -> None:
    plans = (
        model_responses("chw_care_plan").replace(",,model", ",,plan-model").replace("\ni", "\nj")
    )
    assert run("study", "import", str(write("plans.csv", plans)))[0] == 0
    asked = ("--by", "clinicians", "--criterion", "completeness")
    assert figures(run, *LIFT, *asked)["benchmarks"] == ["aci_bench"]
    _, out, _ = run("analyse", "models", "--reps", "20", *asked)
    assert "no such criterion: chw_care_plan left out" in " ".join(out.split())
    assert "of 2 benchmarks" not in out


def test_a_jury_seen_beside_clinicians_is_in_the_ledger(run: Run, rated: Engine) -> None:
    figures(run, *LIFT, "--by", "clinicians")
    figures(run, "--by", "jury")
    assert not compositions_tried(rated)
    figures(run)
    figures(run, "--by", "corrected")
    (entry,) = compositions_tried(rated)
    assert (entry.jurors, entry.method, entry.times) == (["gpt"], "models", 2)
    assert (entry.icc, entry.n_responses, entry.benchmark) == (None, 18, "aci_bench")
    assert run("study", "verify")[0] == 0


def test_without_a_jury_models_are_compared_by_clinicians(
    run: Run, engine: Engine, write: Write
) -> None:
    run("study", "import", str(write("responses.csv", model_responses())))
    run("rate", "ratings", str(write("ratings.csv", model_ratings(juror=False))))
    code, out, _ = run("analyse", "models", "--reps", "20", *LIFT)
    assert code == 0
    assert "by clinicians alone" in out
    code, _, err = run("analyse", "models", "--by", "jury")
    assert code == 2
    assert "there is no jury" in err


def test_responses_of_the_training_round_take_no_part(
    run: Run, rated: Engine, write: Write
) -> None:
    more = model_responses(n=9)
    experts = "response_id,accuracy,completeness,clarity\nmodel-one-8,5,5,5\n"
    assert run("study", "import", str(write("more.csv", more)))[0] == 0
    assert run("rate", "training", str(write("experts.csv", experts)))[0] == 0
    rows = [row for row in figures(run, *LIFT)["rows"] if row["by"] == "jury"]
    total = {row["model"]: row["n_responses"] + row["n_missing"] for row in rows}
    assert total == {"model-one": 8, "model-two": 9, "model-three": 9}


def test_costs_stand_beside_win_rates(run: Run, rated: Engine, write: Write) -> None:
    path = write("costs.csv", "model,usd\nmodel-one,2.5\nmodel-two,0\n")
    rows = figures(run, *LIFT, "--costs", str(path))["rows"]
    given = {"model-one": 2.5, "model-three": None, "model-two": 0.0}
    assert {row["model"]: row["usd"] for row in rows} == given
    toml = write("costs.toml", '"model-one" = 2.5\n')
    rows = figures(run, "--costs", str(toml))["rows"]
    assert {row["usd"] for row in rows} == {2.5, None}
    shown = run("analyse", "models", "--reps", "9", "--costs", str(path))[1]
    assert "USD" in shown
    assert "USD" not in run("analyse", "models", "--reps", "9")[1]


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
def test_wrong_costs_are_refused(write: Write, name: str, body: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        read_costs(write(name, body))


def test_bad_input_ends_with_two_and_lifts_no_blind(run: Run, rated: Engine, write: Write) -> None:
    nine = str(write("costs.csv", "model,usd\nmodel-nine,1\n"))
    for arguments, said in (
        (["--by", "experts"], "experts"),
        (["--jurors", "gpt,nobody"], "nobody"),
        (["--criterion", "wit"], "no rubric has the criterion wit"),
        (["--seed", "-1"], "greater than or equal to 0"),
        (["--costs", "nowhere.toml"], "nowhere.toml"),
        (["--costs", nine], "the costs name model-nine"),
        (["--json", "nowhere/models.json"], "nowhere"),
    ):
        code, _, err = run("analyse", "models", *LIFT, *arguments)
        assert code == 2
        assert said in err
        assert "model-two" not in err
    assert not acts(rated, "unblinded")
