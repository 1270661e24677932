"""The real browser: Chromium, and what a clinician does in it."""

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from textwrap import indent
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from streamlit.testing.v1 import AppTest

from data.person import Person
from data.schema import Role
from kit.servers import Server

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

PATIENCE_MS = 30_000  # of every wait for something to be seen: the machines of CI are slow

LAPTOP, TABLET = (1366, 768), (820, 1180)


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


UNFOLDED = """() => document.getAnimations().every(one => one.playState !== "running"
    || one.effect.getComputedTiming().endTime === Infinity)"""


def wait_settled(page: Page) -> None:
    """Wait until the page is drawn to its end, so that what listens for keys is in place.

    What unfolds has unfolded then: a click meanwhile falls where its button is no longer.
    """
    unsettled = "[data-testid=stApp]:not([data-test-script-state=notRunning])"
    page.locator(unsettled).wait_for(state="detached", timeout=4 * PATIENCE_MS)  # it may compute
    page.wait_for_function(UNFOLDED)


def wait_saved(page: Page) -> None:
    """Wait until the page says that the draft is saved."""
    page.get_by_role("status").filter(has_text="Draft saved").wait_for()


SIZES = {"laptop": LAPTOP, "tablet": TABLET}


CARLA, RITA = Person(7, "Carla", Role.COORDINATOR), Person(8, "Rita", Role.RESEARCHER)
CLINICIAN = Person(9, "dr-a", Role.CLINICIAN, 1)


def drawn_page(script: str, seconds: float = 120) -> AppTest:
    """Return a page that a script draws; processes that compute for it pass the script by."""
    guarded = 'if __name__ == "__main__":\n' + indent(script, "    ")
    return AppTest.from_string(guarded, default_timeout=seconds)


SCREEN = """
from annotate.navigation import study
from annotate.screens.{place} import show
from data.person import Person
show(study(), Person({who.id}, {who.name!r}, {role!r}, {who.rater}))
"""


def screen_of(place: str, who: Person = CARLA, **address: str) -> AppTest:
    """Return the screen of a module of `annotate.screens` for somebody, not yet run."""
    page = drawn_page(SCREEN.format(place=place, who=who, role=who.role.value))
    for name, value in address.items():
        page.query_params[name] = value
    return page


def read(page: AppTest) -> str:
    """Return all that a page says, as somebody reads it: texts, alerts, and tables line by line."""
    lines = []
    for part in page.main:
        match part.type:
            case "dataframe":
                lines.append(part.value.to_csv(index=False, sep="|"))
            case "html":
                lines.append(part.proto.body)
            case "markdown" | "caption" | "header" | "success" | "info" | "warning" | "error":
                lines.append(re.sub(r"\\([^\w\s])", r"\1", part.value))
            case _:
                lines.append(str(part.proto))
    return "\n".join(lines)


def said(page: AppTest) -> str:
    """Run a page, which must draw without an error, and return all that it says."""
    page.run()
    assert not page.exception, [error.value for error in page.exception]
    return read(page)


def labelled(parts: Iterable[Any], label: str) -> Any:
    """Return the control of a drawn page with this label."""
    return next(one for one in parts if one.label == label)
