"""A heading's meaning in Chromium: on focus and on hover."""

import os
from pathlib import Path

import pytest
from kit import screens
from kit.agreement_screen import opened
from kit.agreement_screen import served as served
from kit.browsers import wait_settled
from kit.servers import Server
from playwright.sync_api import Browser, Page

from calibration.tables.agreement import SPEARMAN

pytestmark = pytest.mark.e2e
axe = screens.axe
TOLD = "(node) => getComputedStyle(node, '::before').content"


def shown(page: Page, name: str) -> str:
    """Return what is shown beside a heading now."""
    return str(page.locator("span.mj-term", has_text=name).first.evaluate(TOLD))


def test_a_heading_tells_its_meaning_where_one_stands(
    browser: Browser, served: tuple[Server, str], axe: str
) -> None:
    page = opened(browser, served, "agreement")
    wait_settled(page)
    heading = page.locator("span.mj-term", has_text="Spearman").first
    heading.wait_for()
    wait_settled(page)
    assert shown(page, "Spearman") == "none"

    heading.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    assert SPEARMAN in shown(page, "Spearman")
    if folder := os.environ.get("SHOTS"):
        page.screenshot(path=Path(folder) / "meaning.png")
    assert screens.violations(page, axe) == []
    heading.evaluate("(node) => node.blur()")
    heading.hover()
    assert SPEARMAN in shown(page, "Spearman")
