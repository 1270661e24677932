"""The agreement screen in Chromium: the command's figures, each response one click away."""

import json
import re

import pytest
from kit import screens
from kit.agreement_screen import FIRST_MS, MARKUP, downloaded, opened, view
from kit.agreement_screen import served as served
from kit.browsers import wait_settled
from kit.commands import command
from kit.servers import Server, serving
from kit.studies import AUTHOR
from playwright.sync_api import Browser, expect
from sqlalchemy import Engine

from data.person import OPERATOR
from data.schema import Role
from data.study.people import add_people

pytestmark = pytest.mark.e2e
VIEWS = (
    "Unsafe responses",
    "Subgroups",
    "Marks",
    "Errors",
    "Criteria",
    "Responses",
    "Comparisons",
    "Sensitivity",
    "Jurors",
    "Definitions",
    "Predictions",
    "Report",
    "Overview",
)
axe = screens.axe


def test_the_page_says_what_the_command_says(
    browser: Browser, served: tuple[Server, str], study: Engine
) -> None:
    page = opened(browser, served, "agreement?method=published&criterion=nonsense")
    told = json.loads(
        command(study)("analyse", "calibrate", "--method", "published", "--json", "-")[1]
    )
    jury = next(row for row in told["rows"] if row["scorer"] == "jury")
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name="Jury", exact=True))
    expect(row.first.get_by_role("cell").first).to_have_text(f"{jury['icc']:.3f}")
    expect(page.get_by_role("heading", level=2).first).to_contain_text("Not judged")
    expect(page.get_by_role("rowheader", name=MARKUP).first).to_be_visible()
    expect(page).to_have_url(re.compile("method=published"))
    assert "nonsense" not in page.url
    wait_settled(page)
    page.get_by_text("Figures as a table, and files").first.click()
    assert downloaded(page, "CSV").startswith("label,kind,value,low,high\nJury,")
    assert "<svg" in downloaded(page, "SVG")
    view(page, "Report")
    page.get_by_role("button", name="Make the report").click()
    page.get_by_role("button", name="Report to read and print").wait_for(timeout=FIRST_MS)
    assert "Content-Security-Policy" in downloaded(page, "Report to read and print")
    assert AUTHOR not in page.content()


def test_a_click_on_a_response_leads_to_the_workbench(
    browser: Browser, served: tuple[Server, str]
) -> None:
    page = opened(browser, served, "agreement?view=Responses")
    marks = page.locator("[data-testid=stVegaLiteChart]").first.locator(".mark-symbol path")
    marks.first.wait_for()
    marks.first.click()
    page.get_by_text("Responses you clicked on").wait_for()
    link = page.get_by_role("table", name="Responses you clicked on").get_by_role("link").first
    expect(link).to_have_attribute("href", re.compile(r"^/workbench\?response=r\d+$"))
    name = link.inner_text()
    link.click()
    expect(page.locator(".mj-at")).to_contain_text(name)
    page.context.close()


@pytest.mark.slow  # CI has 15 minutes
def test_back_and_forward_step_through_the_views_and_what_was_chosen_in_them(
    browser: Browser, served: tuple[Server, str]
) -> None:
    page = opened(browser, served, "agreement?view=nonsense")
    assert "view" not in page.url
    view(page, "Criteria")
    expect(page).to_have_url(re.compile(r"\?view=Criteria$"))
    view(page, "Definitions")
    expect(page).to_have_url(re.compile("view=Definitions"))
    page.get_by_label("Method", exact=True).click()
    page.get_by_role("option", name="published").click()
    expect(page).to_have_url(re.compile("method=published.*view=Definitions"))
    wait_settled(page)
    view(page, "Overview")
    expect(page).not_to_have_url(re.compile("view="))
    for step, name, method in (
        (page.go_back, "Definitions", "published"),
        (page.go_back, "Criteria", "paper"),
        (page.go_back, "Overview", "paper"),
        (page.go_forward, "Criteria", "paper"),
        (page.go_forward, "Definitions", "published"),
    ):
        step()
        expect(page.get_by_role("tab", selected=True)).to_have_text(name)
        expect(page.get_by_label("Method", exact=True)).to_have_value(method)
        assert ("method=published" in page.url) == (method == "published")
        wait_settled(page)
    page.reload()
    expect(page.get_by_role("tab", selected=True)).to_have_text("Definitions")
    page.context.close()


@pytest.mark.parametrize("size", ["laptop", pytest.param("tablet", marks=pytest.mark.slow)])
def test_no_view_of_agreement_breaks_wcag_22_aa(
    size: str, browser: Browser, served: tuple[Server, str], axe: str
) -> None:
    page = opened(browser, served, "agreement", size)
    page.get_by_role("tab", name="Overview").wait_for()
    found = {}
    for name in VIEWS:
        view(page, name)
        found[name] = screens.violations(page, axe)
    page.context.close()
    assert "\n".join(f"{name} {one}" for name, broken in found.items() for one in broken) == ""


def test_a_study_that_no_clinician_rated_says_what_to_do_next(
    browser: Browser, engine: Engine
) -> None:
    code = add_people(OPERATOR, engine, ["Rita"], Role.RESEARCHER)[0].code
    with serving(str(engine.url)) as server:
        page = opened(browser, (server, code), "agreement")
        expect(page.locator(".mj-empty")).to_contain_text("Let clinicians rate")
        page.context.close()
