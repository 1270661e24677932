"""The ward screen in Chromium: the command's figures, and nobody's name."""

import csv
import json
import os
from collections.abc import Iterator

import pytest
from kit import screens
from kit.agreement_screen import downloaded
from kit.browsers import SIZES, new_context, wait_settled
from kit.commands import command
from kit.screens import violations
from kit.servers import Server, serving
from kit.ward_study import fill
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import Engine

from data.person import OPERATOR
from data.schema import Role
from data.store import add_people

pytestmark = pytest.mark.e2e
axe = screens.axe
SHOTS = os.environ.get("MEDJURY_SHOTS", "")
FIRST_MS = 240_000  # the figures are computed when they are first asked for


@pytest.fixture(scope="module")
def served(study: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, str]]:
    """Serve a ward's study; return the server and a researcher's code."""
    fill(command(study), tmp_path_factory.mktemp("files"))
    code = add_people(OPERATOR, study, ["Rita"], Role.RESEARCHER)[0].code
    with serving(str(study.url)) as server:
        yield server, code


def at_ward(browser: Browser, served: tuple[Server, str], part: str) -> Page:
    """Sign in as the researcher and open a part of the ward."""
    server, code = served
    page = new_context(browser, SIZES["laptop"]).new_page()
    page.goto(server.address)
    page.get_by_label("Your sign-in code").fill(code)
    page.get_by_role("button", name="Sign in").click()
    page.locator(".mj-head").wait_for()
    page.goto(f"{server.address}/ward?ward-part={part}")
    page.get_by_role("heading", name="Ward", exact=True).wait_for()
    wait_settled(page)
    return page


def shot(page: Page, name: str) -> None:
    """Keep a picture of the page where a folder for pictures is named."""
    if SHOTS:
        page.screenshot(path=f"{SHOTS}/{name}.png", full_page=True)


def test_routing_shows_what_the_command_says(
    browser: Browser, served: tuple[Server, str], study: Engine, axe: str
) -> None:
    page = at_ward(browser, served, "Routing")
    page.get_by_role("spinbutton", name="Bound in %").fill("20")
    page.keyboard.press("Tab")
    wait_settled(page)
    page.get_by_role("button", name="Route", exact=True).click()
    page.get_by_role("button", name="Decisions as CSV").wait_for(timeout=FIRST_MS)
    told = json.loads(command(study)("route", "--at-most", "2", "--bound", "0.2", "--json", "-")[1])
    expect(
        page.get_by_text(f"pass {told['passed']} responses, read {told['read']}")
    ).to_be_visible()
    text = downloaded(page, "Decisions as CSV").removeprefix("\N{BYTE ORDER MARK}")
    rows = list(csv.DictReader(text.splitlines()))
    assert sum(row["decision"] == "pass" for row in rows) == told["passed"]
    assert "secret" not in page.content() + text
    assert violations(page, axe) == []
    shot(page, "ward_routing")
    page.context.close()
