"""Money, time and limits of a host: told ahead and afterwards, a cap that holds, and no minute's limit passed."""

import asyncio
import json
import socket
import time
from datetime import UTC, datetime
from statistics import median
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.jurors import Do, Seen, Stub, juror, slots_of
from kit.jury_runs import attempts, fill, many, panel_at, run, written
from kit.loopback import AsyncLoopback

from data.calls import TokenCosts, token_costs
from data.errors import BadPanel
from data.rubric import read_rubric
from data.study.costs import juror_costs
from jury.budget import Budget
from jury.call import Usage
from jury.cost import (
    JurorEstimate,
    Rates,
    panel_usd,
    price,
    rates,
    refuse_unpriced,
    unbilled,
    upper_bound,
    worst_case,
)
from jury.estimate import estimate, seconds_of_run
from jury.panel import Juror, Panel, read_panel
from jury.providers.registry import open_provider
from jury.run import run_panel
from jury.session import MINUTE, Allowance, HostLimits, Patience, RateLimiter, rate_limiters

AT = datetime(2026, 11, 21, tzinfo=UTC)


def priced(**settings: Any) -> Juror:
    one = {"model": "gpt-4o", "family": "gpt"} | settings
    return juror(
        one.pop("provider", "openai"), one.pop("base_url", "https://api.openai.com/v1"), **one
    )


OWN = priced(usd_per_million_in=2.0, usd_per_million_out=10.0, max_tokens=1000)


def test_the_panels_own_price_wins_and_a_simulated_juror_costs_nothing_whatever_its_price():
    found = price(OWN, Usage(1_000, 100), AT)
    assert found.usd == pytest.approx(0.003)
    assert found.source == "panel: 2 in, 10 out per million"
    steady = read_panel("simulated").juror[1]
    found = price(steady, Usage(1000, 100), AT)
    assert (found.usd, found.source) == (0.0, "simulated")
    # 1000 at 2 and 100 at 10 dollars a million: 0.002 + 0.001.
    assert panel_usd(steady, 1000, 100) == pytest.approx(0.003)
    assert panel_usd(priced(), 1000, 100) is None


def test_a_listed_price_is_found_offline_and_every_juror_of_the_current_panel_has_one(monkeypatch):
    def refuse(*_: object) -> None:
        raise AssertionError("a price was fetched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    found = price(priced(), Usage(1_000_000, 0), AT)
    assert found.usd == pytest.approx(2.5)  # gpt-4o: 2.50 a million in, the paper's Table G5
    assert found.source.startswith("genai-prices 0.")
    assert found.source.endswith("openai/gpt-4o")
    refuse_unpriced(read_panel("current"), AT)


@pytest.mark.parametrize(
    "one", [priced(base_url="http://127.0.0.1:8000/v1"), priced(model="nobody-made-this")]
)
def test_a_model_nobody_has_a_price_for_costs_unknown_and_not_zero(one):
    assert price(one, Usage(10, 10), AT).usd is None is price(OWN, Usage(None, 5), AT).usd
    assert unbilled(OWN, 429, AT).usd == 0.0
    assert unbilled(one, 500, AT).usd is None
    assert worst_case(one, "text", AT) is None
    with pytest.raises(BadPanel, match="usd_per_million_in"):
        refuse_unpriced(Panel(name="p", juror=(one,)), AT)


def test_the_worst_case_is_a_token_a_byte_and_an_estimate_stays_unknown_once_unknown():
    assert worst_case(OWN, "é" * 500, AT) == pytest.approx(2000 * 2e-6 + 1000 * 10e-6)
    row = JurorEstimate("j").plus(OWN, "x" * 3500, 3, AT).plus(OWN, "x" * 3500, 3, AT)
    assert (row.calls, row.tokens_in) == (2, 2000)
    assert row.usd_likely == pytest.approx(2 * (0.002 + 0.003))
    assert row.usd_most == pytest.approx(2 * (0.002 + 0.01))
    assert row.plus(priced(model="nobody-made-this"), "x", 3, AT).usd_most is None


def test_a_cap_waits_for_what_calls_in_flight_really_cost():
    async def two() -> tuple[bool, bool]:
        budget = Budget(1.0)
        first = await budget.reserve(0.9)
        second = asyncio.create_task(budget.reserve(0.9))
        await asyncio.sleep(0)
        await budget.settle(0.9, 0.1)
        return first, await second

    assert asyncio.run(two()) == (True, True)


CACHED = Usage(10_000, 100, tokens_cached=8_000, tokens_cache_write=1_500, tokens_reasoning=30)


def claude(**settings: float) -> Juror:
    return juror("anthropic", "https://api.anthropic.com", model="claude-sonnet-4-5", **settings)


def test_each_kind_is_priced_at_its_own_rate_and_what_is_not_known_counts_as_nothing():
    def usd(costs: TokenCosts) -> tuple[float, ...]:
        return costs.usd_input, costs.usd_cached, costs.usd_cache_write, costs.usd_output

    costs = price(claude(), CACHED, AT).of(CACHED)
    assert (costs.input, costs.cached, costs.cache_write) == (500, 8_000, 1_500)
    assert (costs.output, costs.reasoning) == (100, 30)
    listed = (500 * 3 / 1e6, 8_000 * 0.3 / 1e6, 1_500 * 3.75 / 1e6, 100 * 15 / 1e6)
    assert usd(costs) == pytest.approx(listed)
    cost = price(claude(usd_per_million_in=4.0, usd_per_million_out=20.0), CACHED, AT)
    own = (500 * 4 / 1e6, 8_000 * 4 / 1e6, 1_500 * 5 / 1e6, 100 * 20 / 1e6)
    assert usd(cost.of(CACHED)) == pytest.approx(own)
    assert cost.usd == pytest.approx((8_500 * 4 + 1_500 * 5 + 100 * 20) / 1e6)
    assert price(claude(), Usage(), AT).of(Usage()) == TokenCosts()
    half = token_costs((100, None, None, 5, None), (0.5, None, None, 0.1))
    assert half.plus(half) == TokenCosts(200, 0, 0, 10, 0, usd_input=0.8, usd_output=0.2)


def test_a_run_tells_its_tokens_by_kind_with_their_cost(engine, write, stub):
    fill(engine, write, ("i", "One."), ("i", "Two."))
    panel = panel_at(stub, usd_per_million_in=2.0, usd_per_million_out=10.0)
    body = run(engine, panel).to_json()
    tokens = body["tokens"]
    kinds = ("input", "cached", "cache_write", "output")
    assert [tokens[name] for name in (*kinds, "reasoning")] == [1980, 20, 0, 200, 14]
    assert body["cached_tokens"] == 20
    assert sum(tokens[f"usd_{name}"] for name in kinds) == pytest.approx(body["usd"])
    assert juror_costs(engine)["a"].tokens.to_json() == pytest.approx(tokens)
    assert juror_costs(engine, since=2) == {}


def test_the_command_line_tells_what_was_shared_and_what_each_kind_cost(engine, write, stub, run):
    fill(engine, write, ("i", "Same."), ("i", "Same."), ("i", "Other."))
    panel = written(write, panel_at(stub, usd_per_million_in=2.0, usd_per_million_out=10.0))
    code, out, said = run("jury", "run", panel, "--json", "-")
    assert (code, json.loads(out)["shared_prompts"]) == (0, 1)
    kinds = "input 1,980 ($0.0040), input from a cache 20 ($0.0000), output 200 ($0.0020, of them"
    assert kinds in " ".join(said.replace("medjury: ", "").split())
    _, out, said = run("jury", "missing", "--json", "-")
    assert f"a: {kinds}" in " ".join(said.replace("medjury: ", "").split())
    assert json.loads(out)["tokens"]["a"]["cached"] == 20


PAPER = (Rates(2.50, 10.00), Rates(0.71, 0.71), Rates(3.00, 15.00))  # gpt-4o, llama, claude


def test_the_papers_row_of_claude_3_5_sonnet_comes_out():
    """medhelm.md section 7: data/costs.csv of som-shahlab/medhelm, 6352 responses of one author."""
    found = upper_bound([JurorEstimate("one", 6352, 19_850_691)] * 3, PAPER)
    assert (found.tokens_in, found.tokens_out) == (19_850_691, 26_017_792)
    assert found.tokens_in + found.tokens_out == 45_868_483
    assert round(found.usd or 0.0, 2) == 792.19


@given(st.integers(0, 10**8), st.integers(0, 10**5))
def test_three_jurors_alike_cost_what_the_papers_two_factors_say(tokens, calls):
    found = upper_bound([JurorEstimate("one", calls, tokens)] * 3, PAPER)
    assert found.usd == pytest.approx(tokens * 6.21e-6 + calls * 4096 * 25.71e-6)


def test_rates_come_from_the_panel_or_the_list_and_one_unknown_makes_the_whole_bound_unknown():
    assert upper_bound([JurorEstimate("one", 1, 1000)] * 2, [PAPER[0], None]).usd is None
    gpt, llama, claude = read_panel("medhelm").juror
    assert rates(claude, AT) == Rates(pytest.approx(3.0), pytest.approx(15.0))
    own = llama.model_copy(update={"usd_per_million_in": 0.71, "usd_per_million_out": 0.71})
    assert rates(own, AT) == Rates(pytest.approx(0.71), pytest.approx(0.71))
    assert rates(gpt.model_copy(update={"model": "nobodys-model"}), AT) is None


def test_the_estimate_and_the_run_show_the_bound_of_the_same_calls(small_study, run, write, stub):
    panel = written(write, panel_at(stub, usd_per_million_in=2.0, usd_per_million_out=10.0))
    words = ("jury", "run", panel, "--json", "-")
    code, out, err = run(*words, "--estimate")
    body = json.loads(out)
    tokens = body["jurors"][0]["tokens_in"]
    assert code == 0
    assert body["paper_tokens_in"] == tokens > 4 * len(read_rubric("generic").prompt) / 4
    assert body["paper_tokens_out"] == 4 * 4096
    assert body["paper_usd"] == pytest.approx((tokens * 2 + 4 * 4096 * 10) / 1e6)
    assert f"the paper's upper bound for the same: ${body['paper_usd']:.4f}" in err
    assert [json.loads(run(*words)[1])["paper_usd"] for _ in range(2)] == [body["paper_usd"], 0]


def test_an_estimate_tells_time_where_a_jurors_pace_is_known_alone(small_study, stub):
    panel = panel_at(stub, "a", "b")
    assert [row.seconds for row in estimate(small_study, panel)] == [None, None]
    run(small_study, panel_at(stub, "a"))
    pace = median(row.latency_seconds for row in attempts(small_study))
    a, b = estimate(small_study, panel, replicates=3)
    assert (a.calls, a.at_once, a.seconds, b.seconds) == (8, 1, 8 * pace, None)
    assert seconds_of_run(panel, [a, b]) is None
    run(small_study, panel)
    rows = estimate(small_study, panel, replicates=3)
    assert seconds_of_run(panel, rows) == sum(row.seconds or 0.0 for row in rows)
    (faster, _) = estimate(small_study, panel, replicates=3, concurrency=4)
    assert (faster.at_once, faster.seconds) == (4, 2 * pace)
    (own,) = estimate(small_study, panel_at(stub, "a", concurrency=2), replicates=3)
    assert (own.at_once, own.seconds) == (2, 4 * pace)


def test_jurors_of_vendors_take_the_time_of_all_their_calls_at_the_runs_places():
    jurors = priced(name="a"), priced(name="b", base_url="https://api.mistral.ai/v1")
    rows = [JurorEstimate(one, 80, at_once=8, seconds=n) for one, n in (("a", 20.0), ("b", 30.0))]
    assert seconds_of_run(Panel(name="p", juror=jurors), rows) == 50.0


class Clock:
    """A clock that only moves when someone naps."""

    now = 0.0

    def __call__(self) -> float:
        """Return the seconds."""
        return self.now

    async def nap(self, seconds: float, _: asyncio.Event) -> None:
        """Move on at once."""
        self.now += seconds


@pytest.mark.parametrize(
    ("limits", "amounts", "used", "times"),
    [
        (HostLimits(requests_per_minute=30), [1, 1, 1, 1], [1] * 4, [0, 2, 4, 6]),
        (HostLimits(None, None, 6000), [1000, 3000, 500, 1000], [None] * 4, [0, 10, 40, 45]),
        (HostLimits(None, 6, 6000), [2000, 100, 100], [None] * 3, [0, 20, 30]),
        (HostLimits(tokens_per_minute=600), [1200, 1], [None] * 2, [0, 119.1]),
        (HostLimits(tokens_per_minute=6000), [3000] * 3, [1000] * 3, [0, 10, 20]),
        (HostLimits(tokens_per_minute=6000), [3000] * 2, [None] * 2, [0, 30]),
    ],
    ids=["requests", "tokens", "the stricter", "more than a minute's", "given back", "unknown"],
)
def test_requests_go_out_evenly_at_the_rate_by_what_they_use(limits, amounts, used, times):
    clock, sent = Clock(), []
    gate = RateLimiter(limits, clock, clock.nap)

    async def in_turn() -> None:
        for amount, tokens in zip(amounts, used, strict=True):
            async with gate.slot(amount):
                sent.append(clock())
            gate.settle(amount, tokens)

    asyncio.run(in_turn())
    assert sent == pytest.approx(times)


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 100_000), st.lists(st.floats(1, 20_000), min_size=1, max_size=40))
def test_no_minute_takes_more_than_the_limit_one_second_of_it_and_one_request(limit, amounts):
    clock, sent = Clock(), []
    bucket = Allowance(limit, clock)
    for amount in amounts:
        while (seconds := bucket.wait(amount)) > 0:
            clock.now += seconds
        bucket.take(amount)
        sent.append((clock(), amount))
    bound = limit + max(1.0, limit / MINUTE) + max(amounts)
    for start, _ in sent:
        minute = [amount for at, amount in sent if start <= at < start + MINUTE]
        assert sum(minute) <= bound * (1 + 1e-6)


def test_jurors_at_one_address_share_its_strictest_limits_which_are_no_part_of_what_they_are():
    first = local("a", concurrency=4, requests_per_minute=60)
    second = local("b", concurrency=2, tokens_per_minute=9000)
    here = (first, second, local("c", port=2, concurrency=1), local("d", port=3))
    of = rate_limiters(Panel(name="p", juror=here))
    assert of["a"] is of["b"]
    limits = [of[name].limits for name in "acd"]
    assert limits == [HostLimits(2, 60, 9000), HostLimits(1, None, None), HostLimits()]
    assert {str(one.profile()) for one in here} == {str(local().profile())}


def local(name: str = "a", port: int = 1, **settings: Any) -> Juror:
    return juror("openai", f"http://127.0.0.1:{port}/v1", name=name, **settings)


def test_a_run_keeps_to_the_requests_a_minute_of_a_host(small_study, stub):
    began = time.perf_counter()
    run_panel(small_study, panel_at(stub, "a", "b", requests_per_minute=180))
    assert len(stub.seen) == 8
    assert time.perf_counter() - began >= 5 / 3  # three at once, then three a second


@pytest.mark.timeout(60)  # it would wait two minutes
def test_what_a_spent_cap_or_a_refused_key_keeps_back_waits_for_no_rate(small_study, stub):
    prices = {"usd_per_million_in": 1.0, "usd_per_million_out": 10.0, "max_tokens": 200}
    slow = panel_at(stub, "a", requests_per_minute=1, **prices)
    run_panel(small_study, slow, budget=Budget(0.0))
    assert stub.seen == []
    stub.script = lambda _: Do(status=401)
    run_panel(small_study, slow)
    assert len(stub.seen) == 1


@pytest.mark.parametrize("options", [{}, {"concurrency": 8}])
def test_jurors_at_one_address_in_the_house_are_asked_one_after_another(engine, write, options):
    many(engine, write, 12)
    with Stub(lambda seen: Do(seconds=0.01 * (seen.number % 7))) as stub:
        result = run(engine, panel_at(stub, "a", "b", "c"), **options)
    assert (result.rated, stub.peak > 2) == (36, True)
    names = [seen.model for seen in stub.seen]
    assert names == sorted(names)


def test_a_juror_that_is_stopped_lets_the_next_at_its_address_begin(small_study):
    with Stub(lambda seen: Do(status=401 if seen.model == "a" else 200)) as stub:
        result = run(small_study, panel_at(stub, "a", "b"))
    assert (result.rated, [*result.stopped]) == (4, ["a"])


def test_servers_at_two_addresses_and_vendors_are_asked_at_the_same_time(engine, write):
    many(engine, write, 12)
    asked: list[str] = []

    def script(seen: Seen) -> Do:
        asked.append(seen.model)
        return Do(seconds=0.02)

    with Stub(script) as one, Stub(script) as two:
        jurors = (*panel_at(one, "a").juror, *panel_at(two, "b").juror)
        run(engine, Panel(name="p", juror=jurors))
        assert asked != sorted(asked)
        asked.clear()
        lines = {name: open_provider(panel_at(one, name).juror[0], "none") for name in "cd"}
        vendors = tuple(priced(name=name) for name in "cd")
        run_panel(engine, Panel(name="v", juror=vendors), providers=lines)
    assert (len(asked), asked == sorted(asked)) == (24, False)


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("slots", "run_at_once", "of_panel", "most"),
    [(3, None, None, 3), (3, 5, None, 5), (3, None, 6, 6), (3, 5, 2, 2), (40, None, None, 8)],
)
def test_a_server_in_the_house_gets_as_many_requests_as_it_has_slots_unless_the_user_says(
    engine, write, vendor, slots, run_at_once, of_panel, most
):
    many(engine, write, 30)

    def script(seen: Seen) -> Do:
        return Do(seconds=1.0 if seen.number < most else 0.0)  # all that may be are open meanwhile

    with Stub(script, props={"total_slots": slots}) as stub:
        panel = panel_at(stub, "a", vendor=vendor, concurrency=of_panel)
        result = run(engine, panel, concurrency=run_at_once)
    assert (result.rated, stub.peak) == (30, most)
    assert len(stub.asked_props) == (run_at_once is None and of_panel is None)


@pytest.mark.parametrize(
    "props",
    [
        *({"role": "router"}, {"total_slots": None}, {"total_slots": -3}, {"total_slots": "many"}),
        *("<html>", "[" * 100_000, '{"total_slots": 1e999}', " " * 3_000_000, [], 4),
    ],
    ids=lambda props: f"{props}"[:20],
)
def test_a_server_that_tells_no_slots_gets_one_request_at_a_time(small_study, props):
    with Stub(lambda _: Do(seconds=0.02), props=props) as stub:
        result = run(small_study, panel_at(stub, "a", "b"))
    assert (result.rated, result.calls, stub.peak, len(stub.asked_props)) == (8, 8, 1, 1)


def test_slots_are_asked_for_at_a_jurors_own_address_with_its_key(small_study, stub, monkeypatch):
    monkeypatch.setenv("WARD_KEY", "key-of-the-ward")
    run(small_study, panel_at(stub, "a", api_key_env="WARD_KEY"))
    (head,) = stub.asked_props
    assert head.startswith("GET /props HTTP/1.1\r\n")
    assert f"host: 127.0.0.1:{stub.port}\r\n" in head
    assert "authorization: Bearer key-of-the-ward\r\n" in head


def test_a_server_that_sends_on_who_asks_for_its_slots_is_not_followed(stub):
    with Redirect(stub.port) as moved:
        slots = slots_of(local(port=moved.port))
    assert (slots, stub.asked_props, moved.asked) == (1, [], 1)


class Redirect(AsyncLoopback):
    """A server that sends everybody on to another port."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self.to, self.asked = port, 0

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        await reader.readuntil(b"\r\n\r\n")
        self.asked += 1
        where = f"http://127.0.0.1:{self.to}/props"
        writer.write(f"HTTP/1.1 307 X\r\nlocation: {where}\r\ncontent-length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()


WAIT = 1.5
HEARD = 0.4  # seconds that a busy machine takes to hear an answer
PATIENT = Patience(first_wait=0.01, longest_wait=0.02, bound=5.0)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("names", [("a",), ("a", "b", "c")])
def test_nothing_goes_to_a_host_in_the_second_that_it_asked_to_wait(engine, write, names, status):
    many(engine, write, 100)
    at: list[float] = []

    def script(seen: Seen) -> Do:
        at.append(time.monotonic())
        if seen.number == 20:
            return Do(status=status, headers={"retry-after": str(WAIT)})
        return Do(seconds=0.02)

    with Stub(script) as stub:
        result = run(engine, panel_at(stub, *names), concurrency=16, patience=PATIENT)
    assert result.missing == 0
    since = [one - at[20] for one in at]
    # What had left before the answer was heard may arrive a moment after it.
    assert [one for one in since if HEARD < one < WAIT] == []
    assert len([one for one in since if one > WAIT]) > 20


CALLS = st.lists(st.tuples(st.floats(0.01, 1), st.one_of(st.none(), st.floats(0, 1))), max_size=30)


@settings(max_examples=60, deadline=None)
@given(CALLS, st.floats(0, 3))
def test_the_cap_holds_whatever_calls_cost_and_however_they_overlap(calls, cap):
    spent = []

    async def call(budget: Budget, worst: float, share: float | None) -> None:
        if await budget.reserve(worst):
            await asyncio.sleep(0)
            spent.append(worst if share is None else worst * share)
            await budget.settle(worst, None if share is None else spent[-1])

    async def all_at_once() -> None:
        budget = Budget(cap)
        await asyncio.gather(*(call(budget, *one) for one in calls))

    asyncio.run(all_at_once())
    assert sum(spent) <= cap + 1e-9
