"""What the screens of figures are handed: the commands' values; nothing of models while blind."""

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from kit.commands import json_of
from kit.studies import model_ratings, model_responses, rated, rated_by_three

from annotate import figures
from calibration.decision import DecisionKind
from calibration.json_values import decision_json
from calibration.values import AnalysisOptions
from data.errors import BadInput, NotAllowed, Unknown
from data.person import is_blind
from data.rubric import read_rubric
from data.study.ledger import compositions_tried
from medjury.services.juries import ComparisonQuestion, RankingQuestion
from medjury.services.models import ModelsRequest, lift

QUESTION = figures.AgreementQuestion(AnalysisOptions())


def test_pairs_are_the_means_that_bias_is_of(run, tmp_path):
    rated(run, tmp_path)
    told = run("analyse", "calibrate", "--details", "--reps", "20", "--json", "-")[1]
    found = json.loads(told)
    [pair] = found["paired"]
    far = next(row for row in found["details"]["other_measures"] if row["scorer"] == "jury")
    gap = np.subtract(pair["jury"], pair["clinicians"])
    assert len(pair["responses"]) == 30
    assert gap.mean() == pytest.approx(far["bias"], abs=1e-6)
    assert [row["criterion"] for row in found["criteria"]] == [*read_rubric("generic").criteria]


def test_the_screen_is_handed_the_same_answer_first_and_then_all_behind_it(run, engine, tmp_path):
    rated(run, tmp_path)
    told = json_of(run, "analyse", "calibrate", "--details", "--reps", "2000")
    first, then = figures.agreement(engine, QUESTION), figures.agreement_details(engine, QUESTION)
    assert decision_json(first["decision"]) == told["decision"]
    assert first["jury"] == ("gpt", "llama")
    row = next(row for row in told["rows"] if row["scorer"] == "like_for_like")
    for side, names in (
        ("jury", ("jury_icc", "jury_low", "jury_high")),
        ("clinician", ("clinician_icc", "clinician_low", "clinician_high")),
        ("difference", ("icc", "low", "high")),
    ):
        assert first["held"][side] == pytest.approx([row[name] for name in names])
    assert {"2", "3", "4", "6", "table", "checked", "tried"} <= set(then)
    assert then["table"].columns[0] == "Scorer"


OPTIONS = AnalysisOptions(reps=60)


@pytest.fixture
def by_three(run, tmp_path, engine):
    rated_by_three(run, tmp_path, n=60)
    return engine


def test_the_screen_shows_what_the_command_says(by_three, run):
    shown = figures.jury_ranking(by_three, RankingQuestion(OPTIONS))
    body = json_of(run, "analyse", "juries", "--reps", "60")
    assert shown["decision"].headline == body["decision"]["headline"]
    assert shown["decision"].kind is DecisionKind.NO_PROTOCOL
    rows = shown["ranking"].groups[0].rows
    assert [one[0] for one in rows] == [", ".join(row["jurors"]) for row in body["rows"]]


def test_two_juries_are_shown_as_the_command_compares_them(by_three, run):
    shown = figures.jury_comparison(by_three, ComparisonQuestion(OPTIONS, ("alpha",), ("gamma",)))
    two = ("--compare", "alpha", "--compare", "gamma")
    body = json_of(run, "analyse", "juries", *two, "--reps", "60")
    assert shown["decision"].headline == body["decision"]["headline"]
    (row,) = shown["table"].groups[0].rows
    expected = [f"{body[name]:.3f}" for name in ("icc_a", "icc_b", "difference")]
    assert list(row[:4]) == ["gamma", *expected]


REQUEST = ModelsRequest(AnalysisOptions(reps=50))


@pytest.fixture
def by_models(run, engine, write):
    ratings = model_ratings(lenient=3)
    assert run("study", "import", str(write("r.csv", model_responses())))[0] == 0
    assert run("rate", "ratings", str(write("s.csv", ratings)))[0] == 0
    return engine


def test_nothing_is_compared_while_the_study_is_blind(by_models):
    with pytest.raises(NotAllowed) as refused:
        figures.compared_models(by_models, REQUEST)
    assert "model-one" not in str(refused.value)
    assert figures.check_models(by_models, REQUEST) is True
    assert is_blind(by_models)
    assert not compositions_tried(by_models)


def test_what_cannot_be_compared_is_known_before_the_blind_is_lifted(run, engine):
    with pytest.raises(BadInput, match="no clinician has rated anything"):
        figures.check_models(engine, REQUEST)


def test_costs_say_nothing_of_the_models_while_the_study_is_blind(by_models):
    for name in (b"model-one", b"no-such"):
        with pytest.raises(NotAllowed, match="open and blind"):
            figures.models_costs(by_models, (b"model,usd\n" + name + b",1\n", "csv"))


def test_a_file_of_costs_leaves_no_trace(by_models):
    lift(by_models, "analysis", "Dr Berg")
    before = {*Path(tempfile.gettempdir()).glob("medjury-costs-*")}
    found = figures.models_costs(by_models, (b"model,usd\nmodel-one,2.5\n", "csv"))
    assert found == {"model-one": 2.5}
    with pytest.raises(Unknown, match="the costs name no-such"):
        figures.models_costs(by_models, (b"model,usd\nno-such,1\n", "csv"))
    with pytest.raises(BadInput, match=r"costs\.toml"):
        figures.models_costs(by_models, (b"model-one\n", "toml"))
    assert {*Path(tempfile.gettempdir()).glob("medjury-costs-*")} == before
