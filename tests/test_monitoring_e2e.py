"""The monitoring screen in Chromium: what the command finds, told to who may see it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from kit import rating_files, screens
from kit.browsers import PATIENCE_MS
from kit.screens import codes as codes
from kit.screens import opened, settle, signed_in
from kit.screens import server as server
from kit.servers import Server
from kit.studies import Run
from playwright.sync_api import Browser, expect
from sqlalchemy import Engine

from data.person import OPERATOR
from data.schema import Role
from data.study.rubrics import frozen_reports

pytestmark = pytest.mark.e2e
axe = screens.axe


@pytest.fixture
def watched(run: Run, write: Callable[[str, str], Path]) -> None:
    """Fill a study with five months, in the last two of which the jury guesses."""
    assert (
        run("study", "import", str(write("responses.csv", rating_files.monthly_responses(100))))[0]
        == 0
    )
    assert (
        run("rate", "ratings", str(write("ratings.csv", rating_files.monthly_ratings(5, 20, 3))))[0]
        == 0
    )


@pytest.mark.usefixtures("watched")
@pytest.mark.slow  # CI has 15 minutes
def test_a_coordinator_sees_the_fall_freezes_a_report_and_compares_two(
    browser: Browser, server: Server, codes: dict[Role, str], engine: Engine, axe: str
) -> None:
    page = signed_in(browser, server, codes[Role.COORDINATOR])
    opened(page, server, "monitoring?every=quarter")
    expect(page.get_by_role("table", name="visits: agreement by quarter")).to_be_visible()
    opened(page, server, "monitoring")
    expect(page.get_by_role("heading", name="Agreement has fallen.")).to_be_visible()
    table = page.get_by_role("table", name="visits: agreement by month")
    expect(table.get_by_role("rowheader")).to_have_text([f"2025-0{n}" for n in (1, 2, 3, 4, 5)])
    expect(table.get_by_role("row", name="2025-05")).to_contain_text("ALARM")
    expect(page.get_by_text("No report is frozen yet")).to_be_visible()
    for name in ("before <i>all</i>", "after"):
        settle(page)  # what was frozen before is drawn anew, and takes the button with it
        page.get_by_role("textbox", name="Name of the report").fill(name)
        page.get_by_role("button", name="Freeze a report", exact=True).click()
        expect(page.get_by_text(f"{name} is frozen")).to_be_visible(timeout=4 * PATIENCE_MS)
    assert [one.body["name"] for one in frozen_reports(OPERATOR, engine)] == [
        "before <i>all</i>",
        "after",
    ]
    compared = page.get_by_role("table", name="0 of")
    expect(compared.get_by_role("row", name="Rubric of visits")).to_be_visible()
    settle(page)
    assert screens.violations(page, axe) == []
    page.get_by_role("button", name="Undo", exact=True).click()
    withdrawn = page.get_by_role("table", name="Withdrawn reports")
    expect(withdrawn).to_contain_text("undone at once", timeout=4 * PATIENCE_MS)
    settle(page)
    page.get_by_text("Withdraw a report", exact=True).click()
    page.get_by_label("Why it is withdrawn").fill("wrong jury")
    page.get_by_role("button", name="Withdraw the report").click()
    expect(withdrawn).to_contain_text("wrong jury", timeout=4 * PATIENCE_MS)
    assert frozen_reports(OPERATOR, engine) == []
    settle(page)
    if folder := os.environ.get("SHOTS"):
        page.screenshot(path=f"{folder}/withdrawn.png", full_page=True)
    assert screens.violations(page, axe) == []
    page.context.close()


@pytest.mark.usefixtures("watched")
@pytest.mark.slow  # CI has 15 minutes
def test_a_researcher_reads_the_same_and_freezes_nothing_a_clinician_has_no_such_screen(
    browser: Browser, server: Server, codes: dict[Role, str], axe: str
) -> None:
    page = signed_in(browser, server, codes[Role.RESEARCHER], "tablet")
    opened(page, server, "monitoring?least_icc=-1&method=published&benchmark=nonsense")
    expect(page.get_by_text("method published", exact=False)).to_be_visible()
    expect(page.get_by_text("End dates of the jurors' models")).to_be_visible()
    expect(page.get_by_role("button", name="Freeze a report", exact=True)).to_have_count(0)
    assert "nonsense" not in page.url
    assert screens.violations(page, axe) == []
    page.context.close()
    page = signed_in(browser, server, codes[Role.CLINICIAN])
    page.goto(f"{server.address}/monitoring")
    settle(page)
    expect(page.locator(".mj-head")).to_have_count(0)
    assert "Agreement" not in page.content()
    page.context.close()


def test_without_a_jury_the_screen_says_what_to_do(
    browser: Browser, server: Server, codes: dict[Role, str]
) -> None:
    page = signed_in(browser, server, codes[Role.RESEARCHER])
    opened(page, server, "monitoring")
    expect(page.get_by_text("No juror has rated a response of this study yet.")).to_be_visible()
    page.context.close()
