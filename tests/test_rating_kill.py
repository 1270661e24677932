"""The server is killed at random moments under load: what was acknowledged is there, once."""

import asyncio
import contextlib
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from page_client import GONE, Page, Shown, entered, sign_in
from rating_server import Server, build, row, rubric, serving
from sqlalchemy import Engine
from sqlmodel import Session, select

from data.database import open_study
from data.queries.record import verify
from data.schema import Assignment, Rating, State

CLINICIANS = 8
RESPONSES = 400
CRITERIA = ("accuracy", "completeness", "clarity")
TURN_SECONDS = 30


@dataclass
class Clinician:
    """Someone who rates without a pause, and remembers what the page acknowledged.

    Attributes
    ----------
    rated, drafted
        Code -> scores, of what the page said is submitted or kept as draft.
    pending
        What was sent last, if it was not answered: the page sends it again.
    """

    name: str
    cookie: str
    rated: dict[str, dict[str, int]] = field(default_factory=dict)
    drafted: dict[str, dict[str, int]] = field(default_factory=dict)
    pending: dict[str, Any] | None = None

    async def rate(self, address: str) -> None:
        """Open the page, send what is pending again, and rate until the server is gone."""
        async with await Page.open(address, self.cookie) as page:
            shown = await page.run()
            assert shown.code not in self.rated, "a rated response is shown as open"
            self.assert_kept(shown)
            if self.pending is not None:
                again = self.pending | {"attempt": self.pending["attempt"] + 1}
                shown = await self.tell(page, shown, again)
            while shown.code:
                shown = await self.rate_one(page, shown)

    async def rate_one(self, page: Page, shown: Shown) -> Shown:
        """Score every criterion on top of what is shown, each kept as a draft, and submit."""
        wanted = scores_for(self.name, shown.code)
        for count in range(1, len(CRITERIA) + 1):
            some = shown.form["scores"] | dict(list(wanted.items())[:count])
            shown = await self.tell(page, shown, entered(shown, "page", shown.seq + 1, some))
        return await self.tell(
            page, shown, entered(shown, "page", shown.seq + 1, wanted, submit=True)
        )

    async def tell(self, page: Page, shown: Shown, message: dict[str, Any]) -> Shown:
        """Send a message and note what was acknowledged."""
        self.pending = message
        answered = await (page.run if message["submit"] else page.keep)(shown, message)
        assert answered.acknowledges(message), (message, answered.form)
        self.pending = None
        (self.rated if message["submit"] else self.drafted)[message["code"]] = message["scores"]
        return answered

    def assert_kept(self, shown: Shown) -> None:
        """Assert that the page shows every score that it once said it keeps."""
        kept = shown.form.get("scores", {})
        missing = self.drafted.get(shown.code, {}).items() - kept.items()
        assert not missing, f"{self.name} on {shown.code}: {missing} was acknowledged and is gone"


def scores_for(who: str, code: str) -> dict[str, int]:
    """Return what a clinician thinks of a response, always the same."""
    draw = random.Random(f"{who} {code}")  # noqa: S311 seeded on purpose
    return {name: draw.randint(1, 5) for name in CRITERIA}


def assert_whole(engine: Engine, clinicians: list[Clinician]) -> None:
    """Assert that the database holds what was acknowledged, and nothing twice."""
    with Session(engine) as session:
        given = {one.code: one for one in session.exec(select(Assignment))}
        rows = session.exec(select(Rating)).all()
    found: dict[tuple[int, int], dict[str, float]] = {}
    for one in rows:
        found.setdefault((one.rater, one.response), {})[one.criterion] = one.score
    many = Counter((one.rater, one.response, one.criterion) for one in rows)
    assert set(many.values()) <= {1}, "a rating is there twice"
    assert {tuple(one) for one in found.values()} <= {CRITERIA}, "half a rating is there"
    for who in clinicians:
        for code, scores in who.rated.items():
            one = given[code]
            assert found.get((one.rater, one.response)) == scores, f"the rating of {code} is lost"
            assert (one.state, one.revision) == (State.DONE, 1)
        for code, scores in who.drafted.items():
            assert not scores.items() - given[code].draft["scores"].items(), f"{code}: draft lost"
    assert verify(engine).findings == ()


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


def kill_and_check(url: str, kills: int, seed: int) -> None:
    """Kill the server so many times and look at everything after each."""
    draw = random.Random(seed)  # noqa: S311 seeded on purpose
    engine = open_study(url, create=True)
    rows = [row(n, f"Note {n}.") for n in range(1, RESPONSES + 1)]
    codes = build(engine, rows, [f"dr-{n}" for n in range(CLINICIANS)], rubric(*CRITERIA))
    with serving(url) as server:
        clinicians = asyncio.run(admitted(server, codes))
        for number in range(kills):
            if number:
                server.start()
            asyncio.run(killed(server, clinicians, draw.uniform(0.0, 1.2)))
            assert_whole(engine, clinicians)
    assert sum(len(who.rated) for who in clinicians) >= kills, "hardly anything was rated"
    engine.dispose()


def test_three_kills_under_load_lose_nothing_and_double_nothing(url: str) -> None:
    kill_and_check(url, kills=3, seed=0)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_fifty_kills_under_load_lose_nothing_and_double_nothing(url: str) -> None:
    kill_and_check(url, kills=50, seed=1)
