"""The ward screen in Chromium: the commands' figures in each part, and nobody's name."""

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
from data.queries.record import acts
from data.queries.watch import alarms
from data.schema import Role
from data.store import add_people
from data.store.stopping import LOOKED
from data.store.watch import NewAlarm, raise_alarm

pytestmark = pytest.mark.e2e
axe = screens.axe
SHOTS = os.environ.get("SHOTS", "")  # a folder to keep pictures in
FIRST_MS = 240_000  # the figures are computed when they are first asked for
TALLEST = 1600  # of a part on a laptop, unfolded by nobody
TALL = "document.querySelector('[data-testid=stMain]').scrollHeight"
Served = tuple[Server, dict[Role, str]]


@pytest.fixture(scope="module")
def served(study: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve a ward's study; return the server, a researcher's and a coordinator's code."""
    fill(command(study), tmp_path_factory.mktemp("files"))
    roles = (Role.RESEARCHER, Role.COORDINATOR)
    codes = {role: add_people(OPERATOR, study, [f"Rita {role}"], role)[0].code for role in roles}
    with serving(str(study.url)) as server:
        yield server, codes


def at_ward(browser: Browser, served: Served, part: str, role: Role = Role.COORDINATOR) -> Page:
    """Sign in and open a part of the ward."""
    server, codes = served
    page = new_context(browser, SIZES["laptop"]).new_page()
    page.goto(server.address)
    page.get_by_label("Your sign-in code").fill(codes[role])
    page.get_by_role("button", name="Sign in").click()
    page.locator(".mj-head").wait_for()
    return at_part(page, served, part)


def at_part(page: Page, served: Served, part: str) -> Page:
    """Open a part of the ward by its address."""
    page.goto(f"{served[0].address}/ward?ward-part={part}")
    page.get_by_role("heading", name=part.replace("%20", " "), exact=True).wait_for()
    wait_settled(page)
    return page


def broken(page: Page, axe: str, name: str) -> list[str]:
    """Return what axe finds, light and dark, on a laptop and a tablet, and what is too tall."""
    found = []
    for size in ("laptop", "tablet"):
        width, height = SIZES[size]
        page.set_viewport_size({"width": width, "height": height})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            wait_settled(page)
            found += violations(page, axe)
            if SHOTS:
                page.screenshot(path=f"{SHOTS}/{name}-{width}-{scheme}.png")
        if size == "laptop" and (tall := page.evaluate(TALL)) > TALLEST:
            found.append(f"{tall} px high")
    page.set_viewport_size({"width": SIZES["laptop"][0], "height": SIZES["laptop"][1]})
    wait_settled(page)
    return found


def routed(page: Page, bound: str) -> None:
    """Ask for a bound, the first time or again, and wait for the verdict."""
    again = page.get_by_text("Another question")
    if again.count():
        again.click()
        wait_settled(page)
    page.get_by_role("spinbutton", name="Harmful among the passed, at most (%)").fill(bound)
    page.keyboard.press("Tab")
    wait_settled(page)
    page.get_by_role("button", name="Look for a rule", exact=True).click()
    page.locator(".mj-decision", has_text=f"at most {bound} %").wait_for(timeout=FIRST_MS)
    page.get_by_role("button", name="Decisions as CSV").wait_for()
    wait_settled(page)


def rows_of(page: Page, button: str) -> list[dict[str, str]]:
    """Return the rows of a file that a button saves."""
    text = downloaded(page, button).removeprefix("\N{BYTE ORDER MARK}")
    return list(csv.DictReader(text.splitlines()))


def test_a_rule_is_routed_by_kept_and_used_as_by_the_command(
    browser: Browser, served: Served, study: Engine, axe: str
) -> None:
    page = at_ward(browser, served, "Routing")
    routed(page, "1")
    expect(page.get_by_text("there is none to keep: nothing is passed")).to_be_visible()
    assert page.get_by_role("button", name="Keep this rule", exact=True).count() == 0
    routed(page, "20")
    told = json.loads(command(study)("route", "--at-most", "2", "--bound", "0.2", "--json", "-")[1])
    expect(
        page.get_by_text(f"Pass {told['passed']} responses, read {told['read']}")
    ).to_be_visible()
    rows = rows_of(page, "Decisions as CSV")
    assert sum(row["decision"] == "pass" for row in rows) == told["passed"]
    page.get_by_role("textbox", name="Name for this rule").fill("ward")
    page.get_by_role("button", name="Keep this rule", exact=True).click()
    expect(page.get_by_text("Kept as ward")).to_be_visible(timeout=FIRST_MS)
    wait_settled(page)
    page.get_by_role("button", name="Route by this rule").click()
    expect(page.get_by_text(f"read {told['read']} by the rule ward")).to_be_visible(
        timeout=FIRST_MS
    )
    by = {row["response_id"]: row["decision"] for row in rows_of(page, "Routes as CSV")}
    assert by == {row["response_id"]: row["decision"] for row in rows}
    assert broken(page, axe, "ward-routing") == []
    assert "secret" not in page.content()
    assert command(study)("route", "--by", "ward")[0] == 0
    page.context.close()


def test_a_researcher_is_told_who_keeps_a_rule(browser: Browser, served: Served) -> None:
    page = at_ward(browser, served, "Routing", Role.RESEARCHER)
    routed(page, "20")
    expect(page.get_by_text("A coordinator can keep this rule")).to_be_visible()
    assert page.get_by_role("button", name="Keep this rule", exact=True).count() == 0
    page.context.close()


def test_the_other_parts_say_what_their_commands_say(
    browser: Browser, served: Served, study: Engine, axe: str
) -> None:
    page = at_ward(browser, served, "Transport")
    page.get_by_role("button", name="Compare", exact=True).click()
    page.locator("table").nth(1).wait_for(timeout=FIRST_MS)
    assert broken(page, axe, "ward-transport") == []
    at_part(page, served, "Next%20to%20rate")
    page.get_by_role("combobox", name="Goal").click()
    page.get_by_role("option", name="an ICC of the jury").click()
    wait_settled(page)
    page.get_by_role("button", name="Look now").click()
    page.get_by_text("95 % interval").wait_for(timeout=FIRST_MS)
    wait_settled(page)
    told = json.loads(command(study)("rate", "next", "--icc", "0.6", "--json", "-")[1])
    expect(page.get_by_text(f"Estimate {told['estimate']:.3f}")).to_be_visible()
    assert told["looks"] == [told["rated"]], "the page's look is the command's"
    looks = len(acts(study, LOOKED))
    page.get_by_role("combobox", name="Goal").click()
    page.get_by_role("option", name="the goal of the protocol").click()
    wait_settled(page)
    assert len(acts(study, LOOKED)) == looks, "nobody pressed the button"
    assert broken(page, axe, "ward-next") == []
    figures = {"icc": 0.31, "low": 0.1, "high": 0.5, "period": "2026-10", "target": 0.6}
    alarm = NewAlarm("k1", "visits", "Dr Lee", "Rate anew.", 14, figures | {"below": "first 3"})
    assert raise_alarm(study, alarm)
    at_part(page, served, "Watch")
    expect(page.get_by_text("Dr Lee is to act by")).to_be_visible()
    assert broken(page, axe, "ward-watch") == []
    page.get_by_role("textbox", name="What was done about it").fill("Rated a new sample.")
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_text("No alarm is open.")).to_be_visible()
    assert alarms(study)[0].done == "Rated a new sample."
    assert "secret" not in page.content()
    page.context.close()
