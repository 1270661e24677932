"""What is computed for the Models screen: nothing while blind, and only light values."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from kit import rating_files
from kit.studies import Run
from sqlalchemy import Engine

from annotate.figures import check_models, compared_models, models_costs
from calibration.values import AnalysisOptions
from data.errors import BadInput, NotAllowed, Unknown
from data.person import is_blind
from data.study.ledger import compositions_tried
from medjury.services.models import ModelsRequest, lift

REQUEST = ModelsRequest(AnalysisOptions(reps=50))


@pytest.fixture
def rated(run: Run, engine: Engine, write: Callable[[str, str], Path]) -> Engine:
    assert (
        run("study", "import", str(write("responses.csv", rating_files.model_responses())))[0] == 0
    )
    assert (
        run("rate", "ratings", str(write("ratings.csv", rating_files.model_ratings(lenient=3))))[0]
        == 0
    )
    return engine


def test_nothing_is_compared_while_the_study_is_blind(rated: Engine) -> None:
    with pytest.raises(NotAllowed) as refused:
        compared_models(rated, REQUEST)
    assert "model-one" not in str(refused.value)
    assert check_models(rated, REQUEST) is True
    assert is_blind(rated)
    assert not compositions_tried(rated)


def test_what_cannot_be_compared_is_known_before_the_blind_is_lifted(
    run: Run, engine: Engine
) -> None:
    with pytest.raises(BadInput, match="no clinician has rated anything"):
        check_models(engine, REQUEST)


def test_costs_say_nothing_of_the_models_while_the_study_is_blind(rated: Engine) -> None:
    for name in (b"model-one", b"no-such"):
        with pytest.raises(NotAllowed, match="open and blind"):
            models_costs(rated, (b"model,usd\n" + name + b",1\n", "csv"))


def test_a_file_of_costs_leaves_no_trace(rated: Engine) -> None:
    lift(rated, "analysis", "Dr Berg")
    before = {*Path(tempfile.gettempdir()).glob("medjury-costs-*")}
    found = models_costs(rated, (b"model,usd\nmodel-one,2.5\n", "csv"))
    assert found == {"model-one": 2.5}
    with pytest.raises(Unknown, match="the costs name no-such"):
        models_costs(rated, (b"model,usd\nno-such,1\n", "csv"))
    with pytest.raises(BadInput, match=r"costs\.toml"):
        models_costs(rated, (b"model-one\n", "toml"))
    assert {*Path(tempfile.gettempdir()).glob("medjury-costs-*")} == before
