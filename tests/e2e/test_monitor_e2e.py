"""The monitor in Chromium: what the command finds, frozen and withdrawn by who may."""

import pytest
from kit import screens
from kit.browsers import PATIENCE_MS
from kit.screens import codes as codes
from kit.screens import opened, settle, sheet, signed_in
from kit.screens import server as server
from kit.studies import monthly_ratings, monthly_responses
from playwright.sync_api import expect

from data.person import OPERATOR
from data.schema import Role
from data.study.rubrics import frozen_reports

pytestmark = pytest.mark.e2e
axe = screens.axe


@pytest.fixture
def watched(run, write):
    """Fill a study with five months, in the last two of which the jury guesses."""
    responses = write("responses.csv", monthly_responses(100))
    assert run("study", "import", str(responses))[0] == 0
    ratings = write("ratings.csv", monthly_ratings(5, 20, 3))
    assert run("rate", "ratings", str(ratings))[0] == 0


@pytest.mark.usefixtures("watched")
@pytest.mark.slow  # CI has 15 minutes
def test_a_coordinator_sees_the_fall_freezes_reports_compares_and_withdraws_them(
    browser, server, codes, engine, axe
):
    page = signed_in(browser, server, codes[Role.COORDINATOR])
    opened(page, server, "monitor")
    expect(page.get_by_text("Agreement has fallen.")).to_be_visible()
    table = sheet(page, "visits: agreement by month")
    expect(table).to_contain_text("2025-05")
    expect(table).to_contain_text("ALARM")
    expect(page.get_by_text("No report is frozen yet")).to_be_visible()
    for name in ("before <i>all</i>", "after"):
        settle(page)  # what was frozen before is drawn anew, and takes the button with it
        page.get_by_role("textbox", name="Name of the report").fill(name)
        page.get_by_role("button", name="Freeze a report", exact=True).click()
        expect(page.get_by_text(f"{name} is frozen")).to_be_visible(timeout=4 * PATIENCE_MS)
    names = [one.body["name"] for one in frozen_reports(OPERATOR, engine)]
    assert names == ["before <i>all</i>", "after"]
    expect(sheet(page, "0 of")).to_contain_text("Rubric of visits")
    settle(page)
    assert screens.violations(page, axe) == []
    page.get_by_role("button", name="Undo", exact=True).click()
    withdrawn = sheet(page, "Withdrawn reports")
    expect(withdrawn).to_contain_text("undone at once", timeout=4 * PATIENCE_MS)
    settle(page)
    page.get_by_text("Withdraw a report", exact=True).click()
    page.get_by_label("Why it is withdrawn").fill("wrong jury")
    page.get_by_role("button", name="Withdraw the report").click()
    expect(withdrawn).to_contain_text("wrong jury", timeout=4 * PATIENCE_MS)
    assert frozen_reports(OPERATOR, engine) == []
    page.context.close()
    reader = signed_in(browser, server, codes[Role.RESEARCHER], "tablet")
    opened(reader, server, "monitor?least_icc=-1&method=published&benchmark=nonsense")
    expect(sheet(reader, "method published")).to_be_visible()
    expect(reader.get_by_role("button", name="Freeze a report", exact=True)).to_have_count(0)
    assert "nonsense" not in reader.url
    assert screens.violations(reader, axe) == []
    reader.context.close()
