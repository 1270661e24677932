"""What calls took and cost is told by kind of token: read anew, from a cache, written to one, output."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from kit.jurors import Do, Stub
from kit.jury_runs import fill, panel_at
from kit.jury_runs import run as run_jury
from kit.studies import Run
from sqlalchemy import Engine

from data.calls import TokenCosts, added, token_costs
from data.study.costs import token_costs_by_juror
from jury.call import Usage
from jury.cost import batch_price, price
from jury.panel import Juror

AT = datetime(2026, 11, 22, tzinfo=UTC)
CACHED = Usage(10_000, 100, tokens_cached=8_000, tokens_cache_write=1_500, tokens_reasoning=30)


def claude(**settings: float) -> Juror:
    return Juror.model_validate(
        {
            "name": "j",
            "provider": "anthropic",
            "model": "claude-sonnet-4-5",
            "family": "claude",
            "base_url": "https://api.anthropic.com",
            "api_key_env": "K",
        }
        | settings
    )


def test_each_kind_is_priced_at_its_own_listed_rate_and_they_add_up() -> None:
    costs = price(claude(), CACHED, AT).of(CACHED)
    assert (costs.input, costs.cached, costs.cache_write) == (500, 8_000, 1_500)
    assert (costs.output, costs.reasoning) == (100, 30)
    assert costs.usd_input == pytest.approx(500 * 3 / 1e6)
    assert costs.usd_cached == pytest.approx(8_000 * 0.3 / 1e6)
    assert costs.usd_cache_write == pytest.approx(1_500 * 3.75 / 1e6)
    assert costs.usd_output == pytest.approx(100 * 15 / 1e6)


def test_in_a_batch_each_kind_is_priced_at_its_own_rate_for_batches() -> None:
    live, batch = (
        price(claude(), CACHED, AT).of(CACHED),
        batch_price(claude(), CACHED, AT).of(CACHED),
    )
    for name in ("usd_input", "usd_cached", "usd_cache_write", "usd_output"):
        assert getattr(batch, name) == pytest.approx(getattr(live, name) / 2)


def test_at_a_panels_price_a_cached_token_counts_in_full_and_a_written_one_a_quarter_more() -> None:
    own = claude(usd_per_million_in=4.0, usd_per_million_out=20.0)
    cost = price(own, CACHED, AT)
    costs = cost.of(CACHED)
    assert costs.usd_cached == pytest.approx(8_000 * 4 / 1e6)
    assert costs.usd_cache_write == pytest.approx(1_500 * 5 / 1e6)
    assert costs.usd_input == pytest.approx(500 * 4 / 1e6)
    assert cost.usd == pytest.approx((8_500 * 4 + 1_500 * 5 + 100 * 20) / 1e6)


def test_what_is_not_known_counts_as_nothing_and_is_never_negative() -> None:
    unknown = price(claude(), Usage(), AT).of(Usage())
    assert unknown == TokenCosts()
    assert added([]) == TokenCosts()
    half = token_costs((100, None, None, 5, None), (0.5, None, None, 0.1))
    assert added([half, half]) == TokenCosts(200, 0, 0, 10, 0, usd_input=0.8, usd_output=0.2)


def test_a_run_tells_its_tokens_by_kind_with_their_cost(
    engine: Engine, write: Callable[[str, str], Path], stub: Stub
) -> None:
    fill(engine, write, ("i", "One."), ("i", "Two."))
    panel = panel_at(stub, usd_per_million_in=2.0, usd_per_million_out=10.0)
    body = run_jury(engine, panel).to_json()
    assert body["cached_tokens"] == 20
    tokens = body["tokens"]
    assert (tokens["input"], tokens["cached"], tokens["cache_write"]) == (1980, 20, 0)
    assert (tokens["output"], tokens["reasoning"]) == (200, 14)
    kinds = ("usd_input", "usd_cached", "usd_cache_write", "usd_output")
    assert sum(tokens[name] for name in kinds) == pytest.approx(body["usd"])
    stored = token_costs_by_juror(engine)["a"].to_json()
    assert stored == pytest.approx(tokens)
    assert token_costs_by_juror(engine, since=2) == {}


PANEL = """
name = "ours"
[[juror]]
name = "j"
provider = "openai"
model = "m"
family = "f"
base_url = "{url}"
api_key_env = ""
usd_per_million_in = 2.0
usd_per_million_out = 10.0
"""


def test_the_command_line_tells_what_was_shared_and_what_each_kind_cost(
    engine: Engine, write: Callable[[str, str], Path], stub: Stub, run: Run
) -> None:
    stub.script = lambda _: Do()
    fill(engine, write, ("i", "Same."), ("i", "Same."), ("i", "Other."))
    panel = write("ours.toml", PANEL.format(url=stub.openai_url))
    code, out, said = run("jury", "run", str(panel), "--estimate", "--json", "-")
    assert code == 0
    code, out, said = run("jury", "run", str(panel), "--json", "-")
    assert code == 0
    assert json.loads(out)["shared_prompts"] == 1
    assert "1 verdict without a call: the very same prompt was rated before" in one_line(said)
    kinds = (
        "input 1,980 ($0.0040), input from a cache 20 ($0.0000), output 200 ($0.0020, of them 14"
    )
    assert kinds in one_line(said)
    code, out, said = run("jury", "missing", "--json", "-")
    assert f"j: {kinds}" in one_line(said)
    assert json.loads(out)["tokens"]["j"]["cached"] == 20


def one_line(said: str) -> str:
    return " ".join(said.replace("medjury: ", "").split())
