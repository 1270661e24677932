"""Learning in the Jury lab in Chromium: started from a panel, seen to its end, listed, axe-clean."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit import screens
from kit.browsers import LAPTOP, TABLET, new_context
from kit.jurors import Stub
from kit.learning_study import fill, juror
from kit.screens import keep, panel, wait_settled
from kit.servers import Server
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import Engine

from data.person import OPERATOR
from data.queries.learning import improvements
from data.schema import Role
from data.store import add_people

pytestmark = pytest.mark.e2e
LONG_MS = 120_000
axe = screens.axe


@pytest.fixture(scope="module")
def stub() -> Iterator[Stub]:
    with Stub(juror) as running:
        yield running


@pytest.fixture(scope="module")
def codes(study: Engine, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    fill(study, tmp_path_factory.mktemp("study"), seed=1, count=60)
    return {"Rita": add_people(OPERATOR, study, ["Rita"], Role.RESEARCHER)[0].code}


def enter(browser: Browser, server: Server, code: str, size: tuple[int, int] = LAPTOP) -> Page:
    page = new_context(browser, size).new_page()
    page.goto(server.address)
    page.get_by_label("Your sign-in code").fill(code)
    page.get_by_role("button", name="Sign in").click()
    page.locator(".mj-head").wait_for()
    page.goto(f"{server.address}/lab")
    page.get_by_role("button", name="Run the jury").wait_for()
    return page


def test_a_researcher_lets_a_jury_learn_and_reads_what_came_of_it(
    browser: Browser, server: Server, study: Engine, codes: dict[str, str], stub: Stub, axe: str
) -> None:
    page = enter(browser, server, codes["Rita"])
    page.get_by_role("button", name="Edit a copy").click()
    keep(page, panel(stub))
    page.get_by_role("region", name="Jurors of the panel ours").wait_for()
    page.get_by_text("Let this jury learn from the clinicians").click()
    for label, value in (
        ("Proposals, at most", "1"),
        ("Rated examples to try", "0"),
        ("Cap for learning, US dollars", "5"),
    ):
        page.get_by_label(label).fill(value)
        page.get_by_label(label).press("Enter")
        wait_settled(page)
    page.get_by_role("button", name="Start learning").click()
    expect(page.get_by_text("Learning by the panel ours")).to_be_visible(timeout=LONG_MS)
    table = page.get_by_role("table", name="What juries learned")
    expect(table).to_contain_text("ours.v1", timeout=LONG_MS)
    [kept] = improvements(study)
    expect(table).to_contain_text(f"{kept.result['parts']['test']['gain']:.2f}")
    for size in (LAPTOP, TABLET):
        page.set_viewport_size({"width": size[0], "height": size[1]})
        if folder := os.environ.get("SHOTS"):
            page.screenshot(path=Path(folder) / f"lab-learned-{size[0]}.png", full_page=True)
        assert screens.violations(page, axe) == []
