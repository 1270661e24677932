"""The paper's upper bound of a jury's cost: its own row, our prompts, and what is unknown."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.jurors import Stub
from kit.studies import RESPONSES, Run

from data.rubric import read_rubric
from jury.cost import JurorEstimate, Rates, rates, upper_bound
from jury.panel import read_panel

Write = Callable[[str, str], Path]
TODAY = datetime(2026, 11, 1, tzinfo=UTC)
PAPER = (Rates(2.50, 10.00), Rates(0.71, 0.71), Rates(3.00, 15.00))  # gpt-4o, llama, claude


def test_the_papers_row_of_claude_3_5_sonnet_comes_out() -> None:
    """medhelm.md section 7: data/costs.csv of som-shahlab/medhelm, 6352 responses of one author."""
    found = upper_bound([JurorEstimate("one", 6352, 19_850_691)] * 3, PAPER)
    assert (found.tokens_in, found.tokens_out) == (19_850_691, 26_017_792)
    assert found.tokens == 45_868_483
    assert found.usd is not None
    assert round(found.usd, 2) == 792.19


@given(st.integers(0, 10**8), st.integers(0, 10**5))
def test_three_jurors_alike_cost_what_the_papers_two_factors_say(tokens: int, calls: int) -> None:
    found = upper_bound([JurorEstimate("one", calls, tokens)] * 3, PAPER)
    assert found.usd == pytest.approx(tokens * 6.21e-6 + calls * 4096 * 25.71e-6)


def test_one_unknown_price_makes_the_whole_bound_unknown() -> None:
    assert upper_bound([JurorEstimate("one", 1, 1000)] * 2, [PAPER[0], None]).usd is None


def test_rates_come_from_the_panel_or_the_list_or_are_unknown() -> None:
    gpt, llama, claude = read_panel("medhelm").juror
    assert rates(claude, TODAY) == Rates(pytest.approx(3.0), pytest.approx(15.0))
    own = llama.model_copy(update={"usd_per_million_in": 0.71, "usd_per_million_out": 0.71})
    assert rates(own, TODAY) == Rates(pytest.approx(0.71), pytest.approx(0.71))
    assert rates(gpt.model_copy(update={"model": "nobodys-model"}), TODAY) is None


def panel_file(write: Write, stub: Stub, **settings: Any) -> str:
    lines = {"provider": "openai", "family": "gpt", "base_url": stub.openai_url} | settings
    juror = "\n".join(
        f"{key} = {json.dumps(value)}"
        for key, value in {"name": "a", "model": "m", **lines}.items()
    )
    return str(write("panel.toml", f'name = "p"\n[[juror]]\n{juror}\n'))


def test_the_estimate_and_the_run_show_the_bound_of_the_same_calls(
    run: Run, write: Write, stub: Stub
) -> None:
    run("study", "import", str(write("responses.csv", RESPONSES)))
    priced = {"usd_per_million_in": 2.0, "usd_per_million_out": 10.0}
    panel = panel_file(write, stub, **priced)
    code, out, err = run("jury", "run", panel, "--estimate", "--json", "-")
    body = json.loads(out)
    tokens = body["jurors"][0]["tokens_in"]
    assert code == 0
    assert body["paper_tokens_in"] == tokens > 4 * len(read_rubric("generic").prompt) / 4
    assert body["paper_tokens_out"] == 4 * 4096
    assert body["paper_usd"] == pytest.approx((tokens * 2 + 4 * 4096 * 10) / 1e6)
    assert f"the paper's upper bound for the same: ${body['paper_usd']:.4f}" in err
    code, out, err = run("jury", "run", panel, "--json", "-")
    assert json.loads(out)["paper_usd"] == body["paper_usd"]
    assert f"the paper's upper bound for the same: ${body['paper_usd']:.4f}" in err
    code, out, err = run("jury", "run", panel, "--json", "-")
    assert json.loads(out)["paper_usd"] == 0
    assert "upper bound" not in err
