"""A heading's meaning in Chromium: on focus, on hover, and on the page that it links to."""

import os
from pathlib import Path

import pytest
from kit import screens
from kit.agreement_screen import opened
from kit.agreement_screen import served as served
from kit.browsers import wait_settled
from kit.servers import Server
from playwright.sync_api import Browser, Page, expect

from calibration.tables.meanings import MEANINGS

pytestmark = pytest.mark.e2e
axe = screens.axe
TOLD = "(node) => getComputedStyle(node, '::before').content"


def shown(page: Page, name: str) -> str:
    """Return what is shown beside a heading now."""
    return str(page.locator("a.mj-term", has_text=name).first.evaluate(TOLD))


def test_a_heading_tells_its_meaning_where_one_stands_and_leads_to_all_of_them(
    browser: Browser, served: tuple[Server, str], axe: str
) -> None:
    page = opened(browser, served, "agreement")
    wait_settled(page)
    heading = page.locator("a.mj-term", has_text="Spearman").first
    heading.wait_for()
    wait_settled(page)
    assert shown(page, "Spearman") == "none"

    heading.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    assert MEANINGS["Spearman"].sentence in shown(page, "Spearman")
    if folder := os.environ.get("SHOTS"):
        page.screenshot(path=Path(folder) / "meaning.png")
    assert screens.violations(page, axe) == []
    heading.evaluate("(node) => node.blur()")
    heading.hover()
    assert MEANINGS["Spearman"].sentence in shown(page, "Spearman")

    with page.expect_popup() as opening:
        heading.click()
    meanings = opening.value
    expect(meanings.get_by_role("heading", name="What the figures mean")).to_be_visible()
    expect(meanings.locator("dt:target")).to_have_text("Spearman")
    for scheme in ("light", "dark"):
        meanings.emulate_media(color_scheme=scheme)
        assert screens.violations(meanings, axe) == []


def test_the_page_of_meanings_asks_who_comes(browser: Browser, served: tuple[Server, str]) -> None:
    page = browser.new_page()
    page.goto(f"{served[0].address}/meanings")
    expect(page.get_by_label("Your sign-in code")).to_be_visible()
