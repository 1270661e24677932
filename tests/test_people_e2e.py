"""The coordinator's screen in Chromium: a real table, e-mail addresses, nothing against WCAG 2.2."""

from collections.abc import Iterator

import pytest
from kit import screens
from kit.rating_study import build, row, rubric
from kit.screens import server as server
from kit.servers import Server
from playwright.sync_api import Browser, Locator, Page, expect
from sqlalchemy import Engine

from data.person import OPERATOR
from data.schema import Role
from data.study.people import add_people, end_access, people

pytestmark = pytest.mark.e2e
BOSS = "Coordinator Lindqvist"
MARKUP = "dr <i>Ng</i> & Co"
SIZES = {"laptop": (1366, 768), "tablet": (820, 1180)}
axe = screens.axe


@pytest.fixture
def boss(engine: Engine) -> str:
    """Return the code of the only coordinator."""
    return add_people(OPERATOR, engine, [BOSS], Role.COORDINATOR)[0].code


@pytest.fixture
def everybody(engine: Engine, boss: str) -> None:
    """Fill the study with people of every kind."""
    build(engine, [row(n, "No fever.") for n in (1, 2)], ["dr-a", "dr-out", MARKUP], rubric())
    add_people(OPERATOR, engine, ["Rita"], Role.RESEARCHER, "rita@ward.example")
    end_access(OPERATOR, engine, "dr-out")


@pytest.fixture
def page(
    request: pytest.FixtureRequest, browser: Browser, server: Server, boss: str
) -> Iterator[Page]:
    """Return the screen, signed in as the coordinator; a size's name is a parameter."""
    width, height = SIZES[getattr(request, "param", "laptop")]
    context = browser.new_context(viewport={"width": width, "height": height})
    context.set_default_timeout(30_000)
    page = context.new_page()
    page.goto(server.address)
    page.get_by_label("Your sign-in code").fill(boss)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="Study").first.wait_for()
    page.goto(f"{server.address}/people")
    page.get_by_role("table", name="Everybody in this study").wait_for()
    yield page
    context.close()


@pytest.mark.parametrize("page", list(SIZES), indirect=True)
def test_no_state_of_the_people_screen_breaks_wcag_22_aa(
    page: Page, engine: Engine, axe: str
) -> None:
    found = {}
    for state in _tour(page):
        _settle(page)
        found[state] = screens.violations(page, axe)
    assert "\n".join(f"{state} {one}" for state, broken in found.items() for one in broken) == ""
    assert len(found) == 10
    assert [one.name for one in people(OPERATOR, engine) if one.way == "ended"] == ["dr-new"]


def _tour(page: Page) -> Iterator[str]:
    """Go through every state of the screen, from an empty study on."""
    dialog = page.get_by_role("dialog")
    yield "empty"
    page.get_by_role("button", name="Add people").click()
    page.get_by_label("Names, one a line").wait_for()
    yield "adding"
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("alert").wait_for()
    yield "nobody named"
    page.get_by_label("Names, one a line").fill("dr-new\ndr-two")
    page.get_by_role("button", name="Add", exact=True).click()
    page.locator(".st-key-handed code").nth(1).wait_for()
    yield "invitations"
    page.get_by_role("button", name="Put away").click()
    page.locator(".st-key-handed").wait_for(state="detached")
    yield "several people"
    _manage(page, "dr-new")
    yield "managing"
    dialog.get_by_text("New personal code").click()
    page.get_by_role("button", name="Give a new code").click()
    page.locator(".st-key-handed code").wait_for()
    yield "code"
    _manage(page, "dr-new", "Hospital e-mail")
    page.get_by_label("Address").fill("nonsense")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("alert").wait_for()
    yield "no address"
    dialog.get_by_text("Shut out").click()
    page.get_by_role("button", name="Shut out").wait_for()
    yield "shutting out"
    page.get_by_role("button", name="Shut out").click()
    _row(page, "dr-new").get_by_text("shut out").wait_for()
    yield "shut out"


@pytest.mark.usefixtures("everybody")
def test_everybody_stands_in_a_table_with_headed_rows_and_columns(page: Page) -> None:
    table = page.get_by_role("table", name="Everybody in this study")
    heads = table.get_by_role("columnheader")
    expect(heads).to_have_text(["Name", "Role", "Rated", "Last active", "Manage"])
    names = table.get_by_role("rowheader")
    expect(names).to_contain_text([BOSS, "Rita", MARKUP, "dr-a", "dr-out"])
    assert {one.get_attribute("scope") for one in heads.all()} == {"col"}
    assert {one.get_attribute("scope") for one in names.all()} == {"row"}
    expect(_row(page, "dr-a").get_by_role("cell")).to_contain_text(
        ["clinician", "0 of 2", "never", "Manage"]
    )
    expect(page.get_by_role("button", name=f"Manage {MARKUP}")).to_be_visible()


@pytest.mark.usefixtures("everybody")
def test_an_email_is_given_refused_and_taken_away_on_the_screen(page: Page, engine: Engine) -> None:
    _manage(page, "dr-a", "Hospital e-mail")
    page.get_by_label("Address").fill("Rita@ward.example")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("belongs to Rita")
    assert _emails(engine) == {"Rita": "rita@ward.example"}
    page.get_by_label("Address").fill("A@ward.example")
    page.get_by_role("button", name="Save").click()
    expect(_row(page, "dr-a")).to_contain_text("a@ward.example")
    assert _emails(engine) == {"Rita": "rita@ward.example", "dr-a": "a@ward.example"}
    _manage(page, "Rita", "Hospital e-mail")
    page.get_by_role("button", name="Remove the address").click()
    expect(_row(page, "Rita")).not_to_contain_text("rita@ward.example")
    assert _emails(engine) == {"dr-a": "a@ward.example"}


@pytest.mark.usefixtures("everybody")
def test_coordinators_change_only_the_email_of_their_own_account(
    page: Page, engine: Engine
) -> None:
    _manage(page, BOSS)
    expect(page.get_by_role("dialog").get_by_role("radio")).to_have_count(1)
    page.get_by_label("Address").fill("boss@ward.example")
    page.get_by_role("button", name="Save").click()
    expect(_row(page, BOSS)).to_contain_text("boss@ward.example")
    assert _emails(engine)[BOSS] == "boss@ward.example"


@pytest.mark.usefixtures("everybody")
def test_the_focus_comes_back_to_the_button_and_nothing_typed_stays(page: Page) -> None:
    button = page.get_by_role("button", name="Manage dr-a", exact=True)
    _manage(page, "dr-a", "Hospital e-mail")
    page.get_by_label("Address").fill("typed@ward.example")
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    expect(button).to_be_focused()
    _settle(page)
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_role("radiogroup").first.wait_for()
    _settle(page)
    acts = page.get_by_role("dialog").get_by_role("radiogroup", name="What to do")
    acts.get_by_text("Hospital e-mail").click()
    expect(page.get_by_label("Address")).to_have_value("")
    page.get_by_label("Address").fill("a@ward.example")
    page.get_by_role("button", name="Save").click()
    expect(_row(page, "dr-a")).to_contain_text("a@ward.example")
    expect(button).to_be_focused()


def _manage(page: Page, name: str, act: str = "") -> None:
    """Open what can be done about somebody, and choose something of it."""
    _settle(page)
    page.get_by_role("button", name=f"Manage {name}", exact=True).click()
    page.get_by_role("dialog").get_by_role("radiogroup").wait_for()
    if act:
        page.get_by_role("dialog").get_by_text(act).click()


def _row(page: Page, name: str) -> Locator:
    """Return somebody's row."""
    return page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=name))


def _settle(page: Page) -> None:
    """Wait until the page is drawn to its end."""
    unsettled = "[data-testid=stApp]:not([data-test-script-state=notRunning])"
    page.locator(unsettled).wait_for(state="detached")


def _emails(engine: Engine) -> dict[str, str]:
    return {one.name: one.email for one in people(OPERATOR, engine) if one.email}
