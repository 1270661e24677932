"""The juries screen in Chromium: sorted, weighed, compared in pairs, and counted."""

import json
from pathlib import Path

import pytest
from kit import agreement_screen, commands, screens
from kit.browsers import wait_settled
from kit.servers import Server
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import Engine

from data.study.ledger import compositions_tried

pytestmark = pytest.mark.e2e
VIEWS = ("Agreement and cost", "Two juries", "Ledger", "Ranking")
axe, served = screens.axe, agreement_screen.served


@pytest.mark.slow  # CI has 15 minutes
def test_juries_are_ranked_sorted_compared_and_counted(
    browser: Browser, served: tuple[Server, str], study: Engine, axe: str
) -> None:
    page = agreement_screen.opened(browser, served, "juries")
    told = json.loads(commands.command(study)("analyse", "juries", "--json", "-")[1])
    decision = page.locator(".mj-decision")
    expect(decision.get_by_role("heading")).to_have_text(told["decision"]["headline"])
    expect(decision).to_contain_text("Next:")
    table = page.get_by_role("table", name="Juries, the best first")
    first = table.get_by_role("rowheader").first
    expect(first).to_have_text(", ".join(told["rows"][0]["jurors"]))
    table.get_by_role("button", name="Jurors", exact=True).click()
    expect(table.get_by_role("columnheader", name="Jurors")).to_have_attribute(
        "aria-sort", "descending"
    )
    expect(first).to_contain_text(", ")
    with page.expect_download() as got:
        page.get_by_role("button", name="All juries as CSV").click()
    assert len(Path(got.value.path()).read_text("utf-8").splitlines()) == 1 + told["n_juries"]
    broken = {}
    for view in VIEWS:
        agreement_screen.view(page, view)
        if view == "Two juries":
            choose_two(page, study)
            row = page.get_by_role("rowheader", name=agreement_screen.MARKUP)
            row.wait_for(timeout=agreement_screen.FIRST_MS)
            expect(page.locator(".mj-decision")).to_have_count(2)
        if view == "Ledger":
            expect(page.get_by_role("table", name="different juries in")).to_be_visible()
        if view == "Agreement and cost":
            expect(page.locator(".mj-empty")).to_contain_text("known cost")
        wait_settled(page)
        broken[view] = screens.violations(page, axe)
    page.context.close()
    assert {view: found for view, found in broken.items() if found} == {}


def choose_two(page: Page, study: Engine) -> None:
    """Choose a juror for each jury; nothing is compared before that."""
    before = [one.times for one in compositions_tried(study)]
    expect(page.locator(".mj-empty")).to_contain_text("Choose two juries to compare")
    for label, name in (
        ("First jury", agreement_screen.JURORS[0]),
        ("Second jury", agreement_screen.MARKUP),
    ):
        screens.choose(page, label, name)
        page.keyboard.press("Escape")
    assert [one.times for one in compositions_tried(study)] == before
    page.get_by_role("button", name="Compare", exact=True).click()
