"""Money: prices known and unknown, and a cap that holds."""

import asyncio
import socket
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.errors import BadPanel
from jury.budget import Budget
from jury.call import Usage
from jury.cost import (
    JurorEstimate,
    panel_usd,
    price,
    refuse_unpriced,
    unbilled,
    worst_case,
)
from jury.panel import Juror, Panel, read_panel

AT = datetime(2026, 11, 21, tzinfo=UTC)
BODY = {
    "name": "j",
    "provider": "openai",
    "model": "gpt-4o",
    "family": "gpt",
    "base_url": "https://api.openai.com/v1",
}


def juror(**settings: Any) -> Juror:
    return Juror.model_validate(BODY | settings)


OWN = juror(usd_per_million_in=2.0, usd_per_million_out=10.0, max_tokens=1000)


def test_the_panels_own_price_wins_and_is_named() -> None:
    found = price(OWN, Usage(1_000, 100), AT)
    assert found.usd == pytest.approx(0.003)
    assert found.source == "panel: 2 in, 10 out per million"


def test_a_listed_price_is_found_offline_with_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a price was fetched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    found = price(juror(), Usage(1_000_000, 0), AT)
    assert found.usd == pytest.approx(2.5)  # gpt-4o: 2.50 a million in, the paper's Table G5
    assert found.source.startswith("genai-prices 0.")
    assert found.source.endswith("openai/gpt-4o")


def test_every_juror_of_the_current_panel_has_a_price() -> None:
    refuse_unpriced(read_panel("current"), AT)


def test_cached_tokens_cost_less_and_are_not_counted_twice() -> None:
    whole = price(juror(), Usage(1_000_000, 0), AT).usd
    cached = price(juror(), Usage(1_000_000, 0, tokens_cached=1_000_000), AT).usd
    assert whole is not None
    assert cached is not None
    assert 0 < cached < whole


@pytest.mark.parametrize(
    "one",
    [juror(base_url="http://127.0.0.1:8000/v1"), juror(model="nobody-made-this")],
)
def test_a_model_nobody_has_a_price_for_costs_unknown_and_not_zero(one: Juror) -> None:
    assert price(one, Usage(10, 10), AT).usd is None
    assert unbilled(one, 500, AT).usd is None
    assert worst_case(one, "text", AT) is None
    with pytest.raises(BadPanel, match="usd_per_million_in"):
        refuse_unpriced(Panel(name="p", juror=(one,)), AT)


def test_an_answer_without_token_counts_costs_unknown() -> None:
    assert price(OWN, Usage(None, 5), AT).usd is None


def test_a_refused_request_costs_nothing_where_a_price_is_known() -> None:
    assert (unbilled(OWN, 429, AT).usd, unbilled(OWN, 429, AT).source) == (
        0.0,
        "HTTP 429: not billed",
    )


def test_a_simulated_juror_costs_nothing_and_says_so_whatever_its_made_up_price() -> None:
    steady = read_panel("simulated").juror[1]
    found = price(steady, Usage(1000, 100), AT)
    assert (found.usd, found.source) == (0.0, "simulated")
    # 1000 at 2 and 100 at 10 dollars a million: 0.002 + 0.001.
    assert panel_usd(steady, 1000, 100) == pytest.approx(0.003)
    assert panel_usd(juror(), 1000, 100) is None


def test_the_worst_case_counts_a_token_a_byte_and_a_full_answer() -> None:
    assert worst_case(OWN, "é" * 500, AT) == pytest.approx(2000 * 2e-6 + 1000 * 10e-6)


def test_an_estimate_adds_calls_and_stays_unknown_once_unknown() -> None:
    row = JurorEstimate("j").plus(OWN, "x" * 3500, 3, AT).plus(OWN, "x" * 3500, 3, AT)
    assert (row.calls, row.tokens_in) == (2, 2000)
    assert row.usd_likely == pytest.approx(2 * (0.002 + 0.003))
    assert row.usd_most == pytest.approx(2 * (0.002 + 0.01))
    assert row.plus(juror(model="nobody-made-this"), "x", 3, AT).usd_most is None


CALLS = st.lists(st.tuples(st.floats(0.01, 1), st.one_of(st.none(), st.floats(0, 1))), max_size=30)


@settings(max_examples=60, deadline=None)
@given(CALLS, st.floats(0, 3))
def test_the_cap_holds_whatever_calls_cost_and_however_they_overlap(
    calls: list[tuple[float, float | None]], cap: float
) -> None:
    spent = []

    async def call(budget: Budget, worst: float, share: float | None) -> None:
        if await budget.reserve(worst):
            await asyncio.sleep(0)
            usd = None if share is None else worst * share
            spent.append(worst if usd is None else usd)
            await budget.settle(worst, usd)

    async def all_at_once() -> None:
        budget = Budget(cap)
        await asyncio.gather(*(call(budget, *one) for one in calls))

    asyncio.run(all_at_once())
    assert sum(spent) <= cap + 1e-9


def test_a_cap_waits_for_what_calls_in_flight_really_cost() -> None:
    async def two() -> tuple[bool, bool]:
        budget = Budget(1.0)
        first = await budget.reserve(0.9)
        second = asyncio.create_task(budget.reserve(0.9))
        await asyncio.sleep(0)
        await budget.settle(0.9, 0.1)
        return first, await second

    assert asyncio.run(two()) == (True, True)
