"""Every part of every screen of the demo study is short, and who waits is told what for and how far it is."""

import shutil
from collections.abc import Iterator

import pytest
from kit.agreement_screen import FIRST_MS
from kit.browsers import LAPTOP, new_context
from kit.demo_study import Demo
from kit.screens import WAIT_MS
from kit.servers import Server, serving
from playwright.sync_api import Browser, Page, expect

from annotate.navigation import SCREENS
from data.database import open_study
from data.person import OPERATOR
from data.schema import Role
from data.study.people import add_people

pytestmark = pytest.mark.e2e
LATENCY_MS = 200  # from a click until the page says that it runs
TALLEST = 1600  # px at 1366 px wide, all that is folded closed
HEIGHT = "document.querySelector('[data-testid=stMain]').scrollHeight"


@pytest.fixture(scope="module")
def demo_served(
    demo: Demo, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, str]]:
    """Serve a copy of the demo study; return the server and a coordinator's code."""
    copy = tmp_path_factory.mktemp("demo") / "medjury.db"
    shutil.copy(demo.study, copy)
    engine = open_study(f"sqlite:///{copy}")
    code = add_people(OPERATOR, engine, ["Carla"], Role.COORDINATOR)[0].code
    engine.dispose()
    with serving(f"sqlite:///{copy}") as server:
        yield server, code


def test_who_waits_for_figures_sees_what_is_done_and_then_the_figures(
    browser: Browser, demo_served: tuple[Server, str]
) -> None:
    page = signed_in_soon(browser, *demo_served)
    page.get_by_text("Computed again without each instance").wait_for(timeout=WAIT_MS)
    page.get_by_text("Why, and on how much data").wait_for(timeout=WAIT_MS)
    expect(page.get_by_test_id("stProgress")).to_have_count(0)
    page.context.close()


@pytest.mark.slow  # every figure of every screen is computed
def test_no_part_of_a_screen_is_taller_than_somebody_scrolls(
    browser: Browser, demo_served: tuple[Server, str]
) -> None:
    server, code = demo_served
    page = signed_in_soon(browser, server, code)
    page.locator(".mj-head").wait_for()
    at_rest(page)
    heights: dict[str, int] = {}
    for screen in SCREENS:
        if Role.COORDINATOR in screen.roles:
            page.goto(f"{server.address}/{screen.path}")
            page.locator(".mj-head").wait_for()
            at_rest(page)
            for part in chosen_in_turn(page):
                heights[f"{screen.title}: {part}"] = page.evaluate(HEIGHT)
    page.context.close()
    assert {name: height for name, height in heights.items() if height > TALLEST} == {}
    assert len(heights) >= 30


def signed_in_soon(browser: Browser, server: Server, code: str) -> Page:
    """Sign in, and do not wait until the first screen is drawn to its end."""
    page = new_context(browser, LAPTOP).new_page()
    page.goto(server.address)
    page.get_by_label("Your sign-in code").fill(code)
    page.get_by_role("button", name="Sign in").click()
    return page


def at_rest(page: Page) -> None:
    """Wait until a screen is computed and drawn to its end."""
    running = "[data-testid=stApp]:not([data-test-script-state=notRunning])"
    page.wait_for_timeout(LATENCY_MS)
    page.locator(running).wait_for(state="detached", timeout=FIRST_MS)


def chosen_in_turn(page: Page) -> Iterator[str]:
    """Choose each part of a screen, and yield its name once it is drawn; "" where there are none."""
    parts = page.locator("[data-testid=stButtonGroup]").first.get_by_role("radio")
    places = page.get_by_role("tab")
    parts = places if places.count() else parts
    for number in range(max(parts.count(), 1)):
        if parts.count():
            parts.nth(number).click()
        at_rest(page)
        yield parts.nth(number).inner_text() if parts.count() else ""
