"""A study to rate, the real server on it, and the real browser in front."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from sqlalchemy import Engine
from sqlmodel import Session, col, select

from annotate.cookies import SESSION, cookie_name
from annotate.sessions import issue
from data.importers.ratings import ExpertFile
from data.importers.rows import Origin, ResponseRow
from data.importers.table import TableFile
from data.person import Person
from data.queries import check_code
from data.rubric import Criterion, Rubric, Scale
from data.schema import Assignment, Rater, Rating, Response
from data.store import assign, import_responses, invite
from data.store.assignments import Slot
from data.store.training import import_experts

# The first draws no window of its own round the page.
BUILDS = ("chromium-headless-shell", "chromium")
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BUILDS)), BUILDS[-1])
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--js-flags=--max-lazy",  # each person's browser compiles the page anew: only what it calls
]
DIALOGUE = "[doctor] Any fever?\n[patient] No fever.\n[doctor] Pain?\n[patient] Mild, in the knee."
START_SECONDS = 90
PATIENCE_MS = 30_000  # of every wait for something to be seen: the machines of CI are slow
LAPTOP, TABLET = (1366, 768), (820, 1180)
FULL = {"accuracy": 4, "completeness": 2, "clarity": 5}


def rubric(*criteria: str, low: int = 1, high: int = 5, name: str = "house_rubric") -> Rubric:
    """Return a rubric with these criteria and an anchor for every point."""
    points = range(low, high + 1)
    return Rubric(
        name=name,
        version="1",
        audience="a clinician",
        gold="when_needed",
        scale=Scale(min=low, max=high),
        criterion=tuple(
            Criterion(
                name=one,
                question=f"How good is the {one}?",
                anchors={point: f"Point {point} of {one}: as good as {point}" for point in points},
            )
            for one in criteria or ("accuracy", "completeness", "clarity")
        ),
        prompt="{{context}} {{response}} {{criteria}} {{schema}}",
    )


def row(number: int, response: str, **other: str | None) -> ResponseRow:
    """Return a row to import; what is not given is made up."""
    values: dict[str, str | None] = {
        "instance_id": f"inst-hidden-{number}",
        "benchmark": "bench_hidden",
        "context": DIALOGUE,
        "prompt": "Write the note.",
        "reference": None,
        "response_id": f"resp-hidden-{number}",
        "model": ("gpt-9-secret", "llama-hidden")[number % 2],
    }
    return ResponseRow(Origin("made up", number), **(values | other), response=response)  # type: ignore[arg-type] # all are there


def build(
    engine: Engine, rows: Sequence[ResponseRow], raters: Sequence[str], scale: Rubric
) -> dict[str, str]:
    """Add rows to a study, each rated by each of these raters in order; return their codes."""
    import_responses(engine, rows, lambda _: scale)
    with Session(engine) as session:
        found = session.exec(select(Response.response_id, Response.id))
        keys = {name: key or 0 for name, key in found}
    codes = {one.handle: one.code for one in invite(engine, raters)}
    slots = [Slot(who, keys[one.response_id], n) for who in raters for n, one in enumerate(rows)]
    assign(engine, slots, seed=0)
    return codes


def train(
    engine: Engine, folder: Path, scale: Rubric, practice: Sequence[ResponseRow], experts: str
) -> None:
    """Give a study training: responses to practise on, and experts' scores, the text of a CSV file."""
    import_responses(engine, practice, lambda _: scale)
    path = folder / "experts.csv"
    path.write_text(experts, "utf-8")
    import_experts(engine, ExpertFile(TableFile(path)))


def person_of(engine: Engine, code: str) -> Person:
    """Return whom a sign-in code lets in."""
    person = check_code(engine, code).person
    assert person is not None
    return person


def cookie_with(engine: Engine, token: str, https: bool = False) -> str:
    """Return what a browser sends of a session: the cookie's name and value."""
    return f"{cookie_name(engine, SESSION, https)}={token}"


def session_of(engine: Engine, person: Person, https: bool = False) -> str:
    """Return a new session of a person, as a browser sends it."""
    return cookie_with(engine, issue(engine, person), https)


def in_browser(cookie: str, address: str) -> Any:
    """Return a session as Playwright puts it into a browser."""
    name, _, value = cookie.partition("=")
    return {"name": name, "value": value, "url": address, "secure": address.startswith("https")}


def message(code: str, seq: int = 1, **other: object) -> dict[str, object]:
    """Return a message as the form sends it."""
    entered = {"scores": FULL, "comment": "", "seconds": 3, "submit": False}
    return {"code": code, "seq": seq, "attempt": 0, "by": "page1"} | entered | other


def codes_of(engine: Engine, rater: str) -> list[str]:
    """Return the assignment codes of a rater, in their order."""
    query = select(Assignment.code).join(Rater, col(Rater.id) == col(Assignment.rater))
    with Session(engine) as session:
        mine = query.where(Rater.handle == rater).order_by(col(Assignment.position))
        return list(session.exec(mine))


def scores_of(engine: Engine, rater: str) -> list[tuple[int, str, float]]:
    """Return every rating row of a rater: response, criterion, score."""
    query = select(Rating).join(Rater, col(Rater.id) == col(Rating.rater))
    with Session(engine) as session:
        rows = session.exec(query.where(Rater.handle == rater).order_by(col(Rating.id)))
        return [(one.response, one.criterion, one.score) for one in rows]


@dataclass
class Server:
    """The real server in a process of its own."""

    db_url: str
    port: int
    process: subprocess.Popen[bytes] = field(init=False)

    def start(self) -> "Server":
        """Start it and wait until it answers."""
        call = f"from annotate.server import serve; serve({self.db_url!r}, {self.port})"
        self.process = subprocess.Popen([sys.executable, "-c", call], stdout=subprocess.DEVNULL)
        return self.ready()

    def ready(self) -> "Server":
        """Wait until its process answers: it names its address before it listens there."""
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            try:
                with urlopen(f"{self.address}/_stcore/health", timeout=1):  # noqa: S310 loopback
                    return self
            except (URLError, OSError):
                time.sleep(0.05)
        self.process.kill()
        raise RuntimeError(f"the server did not start: {self.process.wait()}")

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        """Kill it, as a power cut would."""
        self.process.kill()
        self.process.wait(10)


def free_port() -> int:
    """Return a port at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(db_url: str) -> Iterator[Server]:
    """Serve a study on a free port."""
    server = Server(db_url, free_port()).start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def chromium() -> Iterator[Browser]:
    """Open Chromium; where there is none, skip, but fail in CI."""
    if not shutil.which(CHROMIUM):
        reason = f"no Chromium at {CHROMIUM}; set CHROMIUM to its path"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


def new_context(browser: Browser, size: tuple[int, int] = LAPTOP) -> BrowserContext:
    """Return a browser of somebody's own, signed in nowhere."""
    context = browser.new_context(viewport={"width": size[0], "height": size[1]})
    context.set_default_timeout(PATIENCE_MS)
    return context


def sign_in(page: Page, server: Server, code: str) -> None:
    """Sign in by the form and wait for the first response."""
    page.goto(server.address)
    page.get_by_label("Your sign-in code").fill(code)
    page.get_by_role("button", name="Sign in").click()
    wait_open(page)


def sign_in_by_keys(page: Page, server: Server, code: str) -> None:
    """Sign in without a mouse: the browser gives the field the focus some time after loading."""
    page.goto(server.address)
    page.locator("input[name=code]:focus").wait_for()
    page.keyboard.type(code)
    page.keyboard.press("Enter")
    wait_open(page)


def chosen(page: Page) -> Mapping[str, int]:
    """Return what is chosen on the page: criterion -> point."""
    found: dict[str, int] = page.locator("form.likert").evaluate(
        """form => Object.fromEntries([...form.querySelectorAll("fieldset")]
        .filter(f => f.querySelector("input:checked"))
        .map(f => [f.dataset.name, Number(f.querySelector("input:checked").value)]))"""
    )
    return found


def wait_for_count(page: Page, done: int, total: int) -> None:
    """Wait until the page says that so many are rated and the next form takes keys."""
    page.locator(".mj-count", has_text=f"{done} of {total} rated").wait_for()
    wait_open(page)


def wait_open(page: Page) -> None:
    """Wait until a form is there that takes keys: not that of a response just submitted or left."""
    page.locator(".mj-room:not([data-quiet]) form.likert:not([data-locked])").wait_for()


def wait_settled(page: Page) -> None:
    """Wait until the page is drawn to its end, so that what listens for keys is in place."""
    unsettled = "[data-testid=stApp]:not([data-test-script-state=notRunning])"
    page.locator(unsettled).wait_for(state="detached")


def wait_saved(page: Page) -> None:
    """Wait until the page says that the draft is saved."""
    page.get_by_role("status").filter(has_text="Draft saved").wait_for()
