"""Limits of a host: never passed in any minute, shared by its jurors, and used as far as they go."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit import jury_runs
from kit.jurors import Do, Seen, Stub
from kit.loopback import AsyncLoopback
from sqlalchemy import Engine

from jury.budget import Budget
from jury.call import Call, Turn, Usage
from jury.panel import Juror, Panel
from jury.providers.registry import open_provider
from jury.run import run_panel
from jury.session import (
    MINUTE,
    Allowance,
    HostLimits,
    Patience,
    RateLimiter,
    estimated_tokens,
    rate_limiters,
    tokens_used,
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


def juror(name: str = "a", **settings: Any) -> Juror:
    one = {"name": name, "provider": "openai", "model": "m", "family": "f"}
    return Juror.model_validate(one | {"base_url": "http://127.0.0.1:1/v1"} | settings)


def sent_at(limits: HostLimits, amounts: list[float]) -> list[float]:
    """Return the times at which requests of these sizes are let through, all asked for at once."""
    clock, times = Clock(), []
    gate = RateLimiter(limits, clock, clock.nap)

    async def one(amount: float) -> None:
        async with gate.slot(amount):
            times.append(clock())

    async def everything() -> None:
        await asyncio.gather(*(one(amount) for amount in amounts))

    asyncio.run(everything())
    return times


def most_in_a_minute(times: list[float], amounts: list[float]) -> float:
    """Return the most that went out in any minute."""
    pairs = list(zip(times, amounts, strict=True))
    return max(
        sum(amount for at, amount in pairs if start <= at < start + MINUTE) for start in times
    )


def test_requests_go_out_evenly_at_the_rate() -> None:
    assert sent_at(HostLimits(requests_per_minute=30), [1.0] * 4) == pytest.approx([0, 2, 4, 6])


def test_tokens_are_paced_by_the_size_of_each_request() -> None:
    times = sent_at(HostLimits(tokens_per_minute=6000), [1000.0, 3000.0, 500.0, 1000.0])
    assert times == pytest.approx([0, 10, 40, 45])


def test_the_stricter_of_the_two_limits_a_minute_holds() -> None:
    both = HostLimits(requests_per_minute=6, tokens_per_minute=6000)
    assert sent_at(both, [2000.0, 100.0, 100.0]) == pytest.approx([0, 20, 30])


def test_a_request_larger_than_a_minutes_tokens_goes_out_and_the_next_waits_for_it() -> None:
    assert sent_at(HostLimits(tokens_per_minute=600), [1200.0, 1.0]) == pytest.approx([0, 119.1])


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 100_000),
    st.lists(st.floats(1, 20_000), min_size=1, max_size=40),
)
def test_no_minute_takes_more_than_the_limit_one_second_of_it_and_one_request(
    limit: int, amounts: list[float]
) -> None:
    clock, times = Clock(), []
    bucket = Allowance(limit, clock)
    for amount in amounts:
        while (seconds := bucket.wait(amount)) > 0:
            clock.now += seconds
        bucket.take(amount)
        times.append(clock())
    bound = limit + max(1.0, limit / MINUTE) + max(amounts)
    assert most_in_a_minute(times, amounts) <= bound * (1 + 1e-6)


def test_tokens_that_were_not_used_are_given_back() -> None:
    clock = Clock()
    gate = RateLimiter(HostLimits(tokens_per_minute=6000), clock, clock.nap)

    async def three() -> None:
        for _ in range(3):
            async with gate.slot(3000.0):
                pass
            gate.settle(3000.0, 1000)

    asyncio.run(three())
    assert clock() == pytest.approx(20)


def test_unknown_usage_leaves_the_estimate() -> None:
    clock = Clock()
    gate = RateLimiter(HostLimits(tokens_per_minute=6000), clock, clock.nap)

    async def two() -> None:
        for _ in range(2):
            async with gate.slot(3000.0):
                pass
            gate.settle(3000.0, None)

    asyncio.run(two())
    assert clock() == pytest.approx(30)
    assert tokens_used(Usage(5, None)) is tokens_used(Usage(None, 5)) is None
    assert tokens_used(Usage(5, 6)) == 11


def test_no_more_than_its_concurrency_is_open_at_a_host() -> None:
    gate, peak, now = RateLimiter(HostLimits(concurrency=3)), 0, 0

    async def one() -> None:
        nonlocal peak, now
        async with gate.slot(1.0):
            now += 1
            peak = max(peak, now)
            await asyncio.sleep(0.001)
            now -= 1

    async def everything() -> None:
        await asyncio.gather(*(one() for _ in range(20)))

    asyncio.run(everything())
    assert peak == 3


def test_nobody_waits_at_the_gate_once_the_run_is_stopped() -> None:
    clock = Clock()
    gate = RateLimiter(HostLimits(requests_per_minute=1), clock, clock.nap)

    async def two() -> None:
        async with gate.slot(1.0) as counted:
            assert counted
        async with gate.slot(1.0, lambda: clock() >= 3.0) as counted:
            assert not counted

    asyncio.run(two())
    assert clock() == pytest.approx(3.0)


def test_jurors_at_one_address_share_its_strictest_limits() -> None:
    here = [
        juror("a", concurrency=4, requests_per_minute=60),
        juror("b", concurrency=2, tokens_per_minute=9000),
        juror("c", base_url="http://127.0.0.1:2/v1", concurrency=1),
        juror("d", base_url="http://127.0.0.1:3/v1"),
    ]
    of = rate_limiters(Panel(name="p", juror=tuple(here)))
    assert of["a"] is of["b"]
    assert of["a"].limits == HostLimits(2, 60, 9000)
    assert of["c"].limits == HostLimits(1, None, None)
    assert of["d"].limits == HostLimits()


def test_a_request_is_estimated_by_its_length_and_the_longest_answer() -> None:
    call = Call((Turn("user", "x" * 350), Turn("assistant", "y" * 35)), {})
    assert estimated_tokens(juror(max_tokens=500), call) == 100 + 10 + 500


def panel_at(stub: Stub, **settings: Any) -> Panel:
    shared = {"base_url": stub.openai_url, "schema": "json_schema"} | settings
    return Panel(name="p", juror=(juror("a", **shared), juror("b", **shared)))


def test_a_run_keeps_to_the_concurrency_of_a_host_that_two_jurors_share(
    small_study: Engine,
) -> None:
    with Stub(lambda _: Do(seconds=0.02)) as stub:
        result = run_panel(small_study, panel_at(stub, concurrency=1), concurrency=8)
    assert (result.rated, result.calls, stub.peak) == (8, 8, 1)


def test_a_run_keeps_to_the_requests_a_minute_of_a_host(small_study: Engine) -> None:
    with Stub() as stub:
        seconds = _seconds(lambda: run_panel(small_study, panel_at(stub, requests_per_minute=180)))
    assert len(stub.seen) == 8
    assert seconds >= 5 / 3  # three at once, then three a second


@pytest.mark.timeout(60)  # it would wait two minutes
def test_what_a_spent_cap_keeps_from_being_sent_does_not_wait_for_the_rate(
    small_study: Engine,
) -> None:
    prices = {"usd_per_million_in": 1.0, "usd_per_million_out": 10.0, "max_tokens": 200}
    with Stub() as stub:
        slow = panel_at(stub, requests_per_minute=1, **prices)
        run_panel(small_study, slow, budget=Budget(0.0))
    assert stub.seen == []


@pytest.mark.timeout(60)  # it would wait two minutes
def test_a_refused_key_ends_the_wait_of_all_who_stand_at_the_gate(small_study: Engine) -> None:
    with Stub(lambda _: Do(status=401)) as stub:
        slow = panel_at(stub, requests_per_minute=1)
        run_panel(small_study, Panel(name="p", juror=slow.juror[:1]))
    assert len(stub.seen) == 1


def in_turn(names: list[str]) -> bool:
    """Return whether each name comes in one piece."""
    return names == sorted(names)


@pytest.mark.parametrize("options", [{}, {"concurrency": 8}])
def test_jurors_at_one_address_in_the_house_are_asked_one_after_another(
    engine: Engine, write: Callable[[str, str], Path], options: dict[str, int]
) -> None:
    jury_runs.many(engine, write, 12)
    with Stub(lambda seen: Do(seconds=0.002 * (seen.number % 7))) as stub:
        result = jury_runs.run(engine, jury_runs.panel_at(stub, "a", "b", "c"), **options)
    assert (result.rated, stub.peak > 2) == (36, True)
    assert in_turn([seen.model for seen in stub.seen])


def test_a_juror_that_is_stopped_lets_the_next_at_its_address_begin(small_study: Engine) -> None:
    with Stub(lambda seen: Do(status=401 if seen.model == "a" else 200)) as stub:
        result = jury_runs.run(small_study, jury_runs.panel_at(stub, "a", "b"))
    assert (result.rated, [*result.stopped]) == (4, ["a"])


def test_servers_at_two_addresses_and_vendors_are_asked_at_the_same_time(
    engine: Engine, write: Callable[[str, str], Path]
) -> None:
    jury_runs.many(engine, write, 12)
    asked: list[str] = []

    def script(seen: Seen) -> Do:
        asked.append(seen.model)
        return Do(seconds=0.02)

    with Stub(script) as one, Stub(script) as two:
        jurors = [jury_runs.panel_at(at, name).juror[0] for at, name in ((one, "a"), (two, "b"))]
        jury_runs.run(engine, Panel(name="p", juror=tuple(jurors)))
        assert not in_turn(asked)
        asked.clear()
        jurors = [juror(name, base_url="https://api.openai.com/v1") for name in "cd"]
        lines = {
            name: open_provider(jury_runs.panel_at(one, name).juror[0], "none") for name in "cd"
        }
        run_panel(engine, Panel(name="v", juror=tuple(jurors)), providers=lines)
    assert (len(asked), in_turn(asked)) == (24, False)


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("slots", "run_at_once", "of_panel", "most"),
    [(3, None, None, 3), (3, 5, None, 5), (3, None, 6, 6), (3, 5, 2, 2), (40, None, None, 8)],
)
def test_a_server_in_the_house_gets_as_many_requests_as_it_has_slots_unless_the_user_says(
    engine: Engine,
    write: Callable[[str, str], Path],
    vendor: str,
    slots: int,
    run_at_once: int | None,
    of_panel: int | None,
    most: int,
) -> None:
    jury_runs.many(engine, write, 30)
    with Stub(lambda _: Do(seconds=0.1), props={"total_slots": slots}) as stub:
        panel = jury_runs.panel_at(stub, "a", vendor=vendor, concurrency=of_panel)
        result = jury_runs.run(engine, panel, concurrency=run_at_once)
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
        result = jury_runs.run(small_study, jury_runs.panel_at(stub, "a", "b"))
    assert (result.rated, result.calls, stub.peak, len(stub.asked_props)) == (8, 8, 1, 1)


def test_slots_are_asked_for_at_the_jurors_own_address_with_its_own_key_alone(
    small_study: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARD_KEY", "key-of-the-ward")
    with Stub() as stub:
        jury_runs.run(small_study, jury_runs.panel_at(stub, "a", api_key_env="WARD_KEY"))
    (head,) = stub.asked_props
    assert head.startswith("GET /props HTTP/1.1\r\n")
    assert f"host: 127.0.0.1:{stub.port}\r\n" in head
    assert "authorization: Bearer key-of-the-ward\r\n" in head


def test_a_server_that_sends_on_who_asks_for_its_slots_is_not_followed(small_study: Engine) -> None:
    with Stub() as elsewhere:
        moved = Redirect(elsewhere.port)
        with moved:
            line = open_provider(juror(base_url=f"http://127.0.0.1:{moved.port}/v1"), "none")

            async def asked() -> int:
                try:
                    return await line.slots()
                finally:
                    await line.close()

            slots = asyncio.run(asked())
    assert (slots, elsewhere.asked_props, moved.asked) == (1, [], 1)


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


def test_a_limit_is_no_part_of_what_a_juror_is() -> None:
    limited = juror(concurrency=1, requests_per_minute=2, tokens_per_minute=3)
    assert limited.profile() == juror().profile()


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


WAIT = 1.5
HEARD = 0.4  # seconds that a busy machine takes to hear an answer
PATIENT = Patience(first_wait=0.01, longest_wait=0.02, bound=5.0)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("names", [("a",), ("a", "b", "c")])
def test_nothing_goes_to_a_host_in_the_second_that_it_asked_to_wait(
    engine: Engine, write: Callable[[str, str], Path], names: tuple[str, ...], status: int
) -> None:
    jury_runs.many(engine, write, 100)
    at: list[float] = []

    def script(seen: Seen) -> Do:
        at.append(time.monotonic())
        if seen.number == 20:
            return Do(status=status, headers={"retry-after": str(WAIT)})
        return Do(seconds=0.02)

    with Stub(script) as stub:
        result = jury_runs.run(
            engine, jury_runs.panel_at(stub, *names), concurrency=16, patience=PATIENT
        )
    assert result.missing == 0
    told = at[20]
    # What had left before the answer was heard may arrive a moment after it.
    assert [one - told for one in at if HEARD < one - told < WAIT] == []
    assert len([one for one in at if one > told + WAIT]) > 20
