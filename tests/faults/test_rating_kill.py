"""The server is killed at random moments under load: what was acknowledged is there, once."""

import asyncio
import contextlib
import random

import pytest
from kit.page_client import CRITERIA, GONE, Clinician, assert_whole, sign_in
from kit.rating_study import build, comparing, row, rubric
from kit.servers import Server, serving

from data.database import open_study

CLINICIANS = 8
RESPONSES = 400
TURN_SECONDS = 30


async def killed(server: Server, clinicians: list[Clinician], seconds: float) -> None:
    """Let everyone rate, kill the server so many seconds after a first rating; all notice."""
    before = sum(len(who.rated) for who in clinicians)

    async def one(who: Clinician) -> None:
        with contextlib.suppress(*GONE):
            await who.rate(server.address)

    async with asyncio.timeout(TURN_SECONDS), asyncio.TaskGroup() as group:
        for who in clinicians:
            group.create_task(one(who))
        while sum(len(who.rated) for who in clinicians) == before:
            await asyncio.sleep(0.05)
        await asyncio.sleep(seconds)
        server.stop()


async def admitted(server: Server, codes: dict[str, str]) -> list[Clinician]:
    """Sign everyone in; their sessions outlive the server."""
    return [Clinician(name, await sign_in(server.address, code)) for name, code in codes.items()]


def kill_and_check(url, kills, seed, scale):
    """Kill the server so many times and look at everything after each."""
    draw = random.Random(seed)  # noqa: S311 seeded on purpose
    engine = open_study(url, create=True)
    rows = [row(n, f"Note {n}.") for n in range(1, RESPONSES + 1)]
    codes = build(engine, rows, [f"dr-{n}" for n in range(CLINICIANS)], scale)
    with serving(url) as server:
        clinicians = asyncio.run(admitted(server, codes))
        for who in clinicians:
            who.low = scale.scale.min
        for number in range(kills):
            if number:
                server.start()
            asyncio.run(killed(server, clinicians, draw.uniform(0.0, 1.2)))
            assert_whole(engine, clinicians)
    assert sum(len(who.rated) for who in clinicians) >= kills, "hardly anything was rated"
    engine.dispose()


@pytest.mark.parametrize(
    "scale",
    [
        pytest.param(rubric(*CRITERIA), id="one"),
        pytest.param(comparing(*CRITERIA), id="pairs", marks=pytest.mark.slow),
    ],
)
def test_three_kills_under_load_lose_nothing_and_double_nothing(url, scale):
    kill_and_check(url, 3, 0, scale)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("scale", [rubric(*CRITERIA), comparing(*CRITERIA)], ids=["one", "pairs"])
def test_fifty_kills_under_load_lose_nothing_and_double_nothing(url, scale):
    kill_and_check(url, 50, 1, scale)
