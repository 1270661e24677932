"""What the worker process answers the Models screen: nothing while blind, and only light values."""

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from kit import rating_files
from kit.studies import Run
from sqlalchemy import Engine

from annotate.analyses import check_models, compared_models, models_costs
from annotate.results import CostsRequest
from calibration.decision import DecisionKind
from calibration.values import AnalysisOptions
from data.errors import BadInput, NotAllowed, Unknown
from data.person import is_blind
from data.queries.ledger import compositions_tried
from medjury.services.models import ModelsRequest, lift

REQUEST = ModelsRequest(AnalysisOptions(reps=50))
HEAVY = ("numpy", "pandas", "scipy", "altair")


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


def test_the_table_that_decides_comes_first(rated: Engine) -> None:
    lift(rated, "analysis", "Dr Berg")
    found = compared_models(rated, REQUEST)
    assert [table.caption for table in found.models] == [
        "Models by the jury, corrected with the clinicians' ratings",
        "Models by clinicians",
        "Models by the jury, uncorrected",
    ]
    assert found.decision.kind is DecisionKind.TOO_FEW
    assert found.jury == ("gpt",)
    assert len(compositions_tried(rated)) == 1


def test_a_comparison_that_the_screen_asks_for_can_be_remembered() -> None:
    assert hash(ModelsRequest(measured={"exam": "medcalc"})) == hash(ModelsRequest())
    assert ModelsRequest(measured={"exam": "medcalc"}) != ModelsRequest()


def test_an_answer_is_read_without_what_made_it(rated: Engine, tmp_path: Path) -> None:
    lift(rated, "analysis", "Dr Berg")
    answers = compared_models(rated, REQUEST), models_costs(rated, CostsRequest(jury=("gpt",)))
    path = tmp_path / "answer"
    path.write_bytes(pickle.dumps(answers))
    read = (
        "import pathlib, pickle, sys; "
        f"pickle.loads(pathlib.Path({str(path)!r}).read_bytes()); "
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", read],
        cwd=Path(__file__).parents[1],
        env=os.environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == "[]"


def test_costs_say_nothing_of_the_models_while_the_study_is_blind(rated: Engine) -> None:
    for name in (b"model-one", b"no-such"):
        with pytest.raises(NotAllowed, match="open and blind"):
            models_costs(rated, CostsRequest(b"model,usd\n" + name + b",1\n", "csv"))


def test_a_file_of_costs_leaves_no_trace(rated: Engine) -> None:
    lift(rated, "analysis", "Dr Berg")
    before = {*Path(tempfile.gettempdir()).glob("medjury-costs-*")}
    found = models_costs(rated, CostsRequest(b"model,usd\nmodel-one,2.5\n", "csv", ("gpt",)))
    assert found.prices == {"model-one": 2.5}
    assert found.jury is not None
    assert found.jury.groups == ()  # its ratings were made elsewhere
    assert "no recorded call of gpt: rated elsewhere" in [one.text for one in found.jury.notes]
    with pytest.raises(Unknown, match="the costs name no-such"):
        models_costs(rated, CostsRequest(b"model,usd\nno-such,1\n", "csv"))
    with pytest.raises(BadInput, match=r"costs\.toml"):
        models_costs(rated, CostsRequest(b"model-one\n", "toml"))
    assert {*Path(tempfile.gettempdir()).glob("medjury-costs-*")} == before
    assert models_costs(rated, CostsRequest()).prices == {}
