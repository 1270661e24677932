"""The agreement screen in Chromium, on a study that is rated."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from sqlalchemy import Engine

from data.person import OPERATOR
from data.schema import Role
from data.study.people import add_people
from kit.browsers import SIZES, new_context, wait_settled
from kit.commands import command
from kit.servers import Server, serving
from kit.studies import rated

MARKUP = "llama <i>4</i> & $x$"

JURORS = ("gpt", MARKUP)

FIRST_MS = 240_000  # the figures are computed when they are first asked for

TRIES = 8


@pytest.fixture(scope="module")
def served(study: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, str]]:
    """Serve a study that is rated; return the server and a researcher's code."""
    rated(command(study), tmp_path_factory.mktemp("files"), JURORS)
    code = add_people(OPERATOR, study, ["Rita"], Role.RESEARCHER)[0].code
    with serving(str(study.url)) as server:
        yield server, code


def opened(browser: Browser, served: tuple[Server, str], path: str, size: str = "laptop") -> Page:
    """Sign in as the researcher and open a page."""
    server, code = served
    page = new_context(browser, SIZES[size]).new_page()
    page.goto(server.address)
    page.get_by_label("Your sign-in code").fill(code)
    page.get_by_role("button", name="Sign in").click()
    page.locator(".mj-head").wait_for()
    page.goto(f"{server.address}/{path}")
    shown = page.locator("[data-testid=stAlert], [data-testid=stDataFrame]")
    shown.first.wait_for(timeout=FIRST_MS)
    return page


def view(page: Page, name: str) -> None:
    """Choose a view; again where the page was drawn anew under the click."""
    tab = page.get_by_role("tab", name=name, exact=True)
    for _ in range(TRIES):
        wait_settled(page)
        tab.click()
        wait_settled(page)
        if tab.get_attribute("aria-selected") == "true":
            return
    raise AssertionError(f"{name} was not to be chosen")


def downloaded(page: Page, name: str) -> bytes:
    """Return a file; asked for again where the page was drawn anew under the click."""
    for _ in range(TRIES):
        wait_settled(page)
        try:
            with page.expect_download(timeout=FIRST_MS / TRIES) as got:
                page.get_by_role("button", name=name, exact=True).click()
            return Path(got.value.path()).read_bytes()
        except PlaywrightTimeout:
            continue
    pytest.fail(f"{name}: no file after {TRIES} clicks")
