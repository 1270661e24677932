"""Limits of a host: never passed in any minute, shared by its jurors, and used as far as they go."""

import asyncio
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.jurors import Do, Seen, Stub, juror
from kit.jury_runs import many, panel_at, run
from kit.loopback import AsyncLoopback
from kit.studies import Write
from sqlalchemy import Engine

from jury.budget import Budget
from jury.panel import Juror, Panel
from jury.providers.registry import open_provider
from jury.run import run_panel
from jury.session import (
    MINUTE,
    Allowance,
    HostLimits,
    Patience,
    RateLimiter,
    rate_limiters,
)


class Clock:
    """A clock that only moves when someone naps."""

    def __init__(self) -> None:
        self.now = 0.0

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
def test_requests_go_out_evenly_at_the_rate_by_what_they_use(
    limits: HostLimits, amounts: list[float], used: list[int | None], times: list[float]
) -> None:
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
def test_no_minute_takes_more_than_the_limit_one_second_of_it_and_one_request(
    limit: int, amounts: list[float]
) -> None:
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


def test_jurors_at_one_address_share_its_strictest_limits_which_are_no_part_of_what_they_are() -> (
    None
):
    here = (
        local("a", concurrency=4, requests_per_minute=60),
        local("b", concurrency=2, tokens_per_minute=9000),
        local("c", port=2, concurrency=1),
        local("d", port=3),
    )
    of = rate_limiters(Panel(name="p", juror=here))
    assert of["a"] is of["b"]
    limits = [of[name].limits for name in "acd"]
    assert limits == [HostLimits(2, 60, 9000), HostLimits(1, None, None), HostLimits()]
    assert {str(one.profile()) for one in here} == {str(local().profile())}


def local(name: str = "a", port: int = 1, **settings: Any) -> Juror:
    return juror("openai", f"http://127.0.0.1:{port}/v1", name=name, **settings)


def test_a_run_keeps_to_the_concurrency_of_a_host_that_two_jurors_share(
    small_study: Engine,
) -> None:
    with Stub(lambda _: Do(seconds=0.02)) as stub:
        result = run_panel(small_study, panel_at(stub, "a", "b", concurrency=1), concurrency=8)
    assert (result.rated, result.calls, stub.peak) == (8, 8, 1)


def test_a_run_keeps_to_the_requests_a_minute_of_a_host(small_study: Engine, stub: Stub) -> None:
    began = time.perf_counter()
    run_panel(small_study, panel_at(stub, "a", "b", requests_per_minute=180))
    assert len(stub.seen) == 8
    assert time.perf_counter() - began >= 5 / 3  # three at once, then three a second


@pytest.mark.timeout(60)  # it would wait two minutes
def test_what_a_spent_cap_or_a_refused_key_keeps_from_being_sent_does_not_wait_for_the_rate(
    small_study: Engine, stub: Stub
) -> None:
    prices = {"usd_per_million_in": 1.0, "usd_per_million_out": 10.0, "max_tokens": 200}
    slow = panel_at(stub, "a", requests_per_minute=1, **prices)
    run_panel(small_study, slow, budget=Budget(0.0))
    assert stub.seen == []
    stub.script = lambda _: Do(status=401)
    run_panel(small_study, slow)
    assert len(stub.seen) == 1


@pytest.mark.parametrize("options", [{}, {"concurrency": 8}])
def test_jurors_at_one_address_in_the_house_are_asked_one_after_another(
    engine: Engine, write: Write, options: dict[str, int]
) -> None:
    many(engine, write, 12)
    with Stub(lambda seen: Do(seconds=0.002 * (seen.number % 7))) as stub:
        result = run(engine, panel_at(stub, "a", "b", "c"), **options)
    assert (result.rated, stub.peak > 2) == (36, True)
    names = [seen.model for seen in stub.seen]
    assert names == sorted(names)


def test_a_juror_that_is_stopped_lets_the_next_at_its_address_begin(small_study: Engine) -> None:
    with Stub(lambda seen: Do(status=401 if seen.model == "a" else 200)) as stub:
        result = run(small_study, panel_at(stub, "a", "b"))
    assert (result.rated, [*result.stopped]) == (4, ["a"])


def test_servers_at_two_addresses_and_vendors_are_asked_at_the_same_time(
    engine: Engine, write: Write
) -> None:
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
        vendors = tuple(juror("openai", "https://api.openai.com/v1", name=name) for name in "cd")
        run_panel(engine, Panel(name="v", juror=vendors), providers=lines)
    assert len(asked) == 24
    assert asked != sorted(asked)


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("slots", "run_at_once", "of_panel", "most"),
    [(3, None, None, 3), (3, 5, None, 5), (3, None, 6, 6), (3, 5, 2, 2), (40, None, None, 8)],
)
def test_a_server_in_the_house_gets_as_many_requests_as_it_has_slots_unless_the_user_says(
    engine: Engine,
    write: Write,
    vendor: str,
    slots: int,
    run_at_once: int | None,
    of_panel: int | None,
    most: int,
) -> None:
    many(engine, write, 30)
    with Stub(lambda _: Do(seconds=0.1), props={"total_slots": slots}) as stub:
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
def test_a_server_that_tells_no_slots_gets_one_request_at_a_time_and_nothing_is_said_of_it(
    small_study: Engine, props: Any
) -> None:
    with Stub(lambda _: Do(seconds=0.02), props=props) as stub:
        result = run(small_study, panel_at(stub, "a", "b"))
    assert (result.rated, result.calls, stub.peak, len(stub.asked_props)) == (8, 8, 1, 1)


def test_slots_are_asked_for_at_the_jurors_own_address_with_its_own_key_alone(
    small_study: Engine, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARD_KEY", "key-of-the-ward")
    run(small_study, panel_at(stub, "a", api_key_env="WARD_KEY"))
    (head,) = stub.asked_props
    assert head.startswith("GET /props HTTP/1.1\r\n")
    assert f"host: 127.0.0.1:{stub.port}\r\n" in head
    assert "authorization: Bearer key-of-the-ward\r\n" in head


def test_a_server_that_sends_on_who_asks_for_its_slots_is_not_followed(stub: Stub) -> None:
    with Redirect(stub.port) as moved:
        line = open_provider(local(port=moved.port), "none")

        async def asked() -> int:
            try:
                return await line.slots()
            finally:
                await line.close()

        slots = asyncio.run(asked())
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
def test_nothing_goes_to_a_host_in_the_second_that_it_asked_to_wait(
    engine: Engine, write: Write, names: tuple[str, ...], status: int
) -> None:
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
    told = at[20]
    # What had left before the answer was heard may arrive a moment after it.
    assert [one - told for one in at if HEARD < one - told < WAIT] == []
    assert len([one for one in at if one > told + WAIT]) > 20
