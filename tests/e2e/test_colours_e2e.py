"""Light and dark in Chromium: every screen and the rating room, as the system is."""

from collections.abc import Iterator

import pytest
from kit import screens
from kit.browsers import LAPTOP, PATIENCE_MS, TABLET, sign_in, wait_for_count, wait_settled
from kit.commands import command
from kit.rating_study import build, row, rubric
from kit.screens import settle
from kit.servers import Server, serving
from kit.studies import rated
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect
from sqlalchemy import Engine
from sqlmodel import col, select

from data.person import OPERATOR
from data.schema import Role, Submission
from data.study.people import add_people

pytestmark = pytest.mark.e2e
axe = screens.axe
SIZES = {"laptop": LAPTOP, "tablet": TABLET}
LIGHT, DARK = "rgb(255, 255, 255)", "rgb(21, 24, 28)"
SCREENS = ("", "setup", "export", "?view=People")
OF_FIGURES = ("agreement", "jury", "monitor")
FIRST_MS = 240_000  # the figures are computed when they are first asked for


@pytest.fixture(scope="module")
def codes(study: Engine) -> dict[str, str]:
    rows = [row(n, f"Note {n}. No fever.", reference="Gold.") for n in (1, 2)]
    codes = build(study, rows, ["dr-a"], rubric())
    codes["Rita"] = add_people(OPERATOR, study, ["Rita"], Role.COORDINATOR)[0].code
    return codes


@pytest.fixture
def night(browser: Browser) -> Iterator[BrowserContext]:
    """Return a browser on a system that is dark."""
    context = of_system(browser, "dark")
    yield context
    context.close()


def of_system(browser: Browser, scheme: str, size: tuple[int, int] = LAPTOP) -> BrowserContext:
    view = {"width": size[0], "height": size[1]}
    context = browser.new_context(viewport=view, color_scheme=scheme)  # type: ignore[arg-type] # its own names
    context.set_default_timeout(PATIENCE_MS)
    return context


def enter(page: Page, server: Server, code: str) -> None:
    """Sign in as somebody who steers the study."""
    page.goto(server.address)
    page.get_by_label("Your sign-in code").fill(code)
    page.get_by_role("button", name="Sign in").click()
    page.locator(".mj-head").wait_for()


def app(page: Page) -> Locator:
    return page.get_by_test_id("stApp")


def is_shown(page: Page, paper: str) -> None:
    """Expect a page on this paper, of Streamlit's and of our own making."""
    expect(app(page)).to_have_css("background-color", paper)
    expect(page.locator(".mj-head h1")).to_have_css(
        "color", {LIGHT: "rgb(23, 37, 43)", DARK: "rgb(230, 233, 236)"}[paper]
    )
    expect(page.locator("html")).to_have_css("background-color", paper)


def test_screens_are_dark_where_the_system_is_and_turn_with_it(
    night: BrowserContext, server: Server, codes: dict[str, str]
) -> None:
    page = night.new_page()
    enter(page, server, codes["Rita"])
    is_shown(page, DARK)
    page.emulate_media(color_scheme="light")
    is_shown(page, LIGHT)
    page.emulate_media(color_scheme="dark")
    is_shown(page, DARK)
    page.get_by_role("link", name="Export").click()
    page.get_by_role("heading", name="Export").wait_for()
    is_shown(page, DARK)
    page.reload()
    is_shown(page, DARK)
    expect(page.get_by_test_id("stMainMenu")).to_have_count(0)  # Streamlit's own choice


def test_the_rating_room_is_dark_where_the_system_is_and_each_submission_says_which(
    night: BrowserContext, server: Server, study: Engine, codes: dict[str, str]
) -> None:
    page = night.new_page()
    sign_in(page, server, codes["dr-a"])
    room = page.locator(".mj-room")
    expect(room).to_have_css("background-color", DARK)
    page.keyboard.type("345")
    page.keyboard.press("Control+Enter")
    wait_for_count(page, 1, 2)
    page.emulate_media(color_scheme="light")
    expect(room).to_have_css("background-color", LIGHT)
    page.keyboard.type("345")
    page.keyboard.press("Control+Enter")
    page.get_by_role("heading", name="Thank you").wait_for()
    with study.connect() as connection:
        shown = connection.scalars(select(Submission.appearance).order_by(col(Submission.id)))
        assert [*shown] == ["dark", "light"]


@pytest.mark.parametrize("size", ["laptop", pytest.param("tablet", marks=pytest.mark.slow)])
def test_no_screen_breaks_wcag_22_aa_in_the_dark(
    size: str, browser: Browser, server: Server, codes: dict[str, str], axe: str
) -> None:
    context = of_system(browser, "dark", SIZES[size])
    page = context.new_page()
    enter(page, server, codes["Rita"])
    found: dict[str, list[str]] = {}
    for path in SCREENS:
        page.goto(f"{server.address}/{path}")
        page.locator(".mj-head").wait_for()
        wait_settled(page)
        is_shown(page, DARK)
        found[path] = screens.violations(page, axe)
    page.get_by_role("button", name="Add people").click()
    page.get_by_role("dialog").wait_for()
    wait_settled(page)
    found["dialog"] = screens.violations(page, axe)
    context.close()
    assert "\n".join(f"{path} {one}" for path, broken in found.items() for one in broken) == ""


@pytest.fixture(scope="module")
def figured(
    tmp_path_factory: pytest.TempPathFactory, empty_study: object
) -> Iterator[tuple[Server, str]]:
    """Serve a study with figures; return the server and a coordinator's code."""
    from data.database import open_study

    engine = open_study(f"sqlite:///{tmp_path_factory.mktemp('dark') / 'study.db'}", create=True)
    rated(command(engine), tmp_path_factory.mktemp("files"))
    code = add_people(OPERATOR, engine, ["Rita"], Role.COORDINATOR)[0].code
    with serving(str(engine.url)) as server:
        yield server, code
    engine.dispose()


@pytest.mark.slow
@pytest.mark.parametrize("size", list(SIZES))
def test_no_screen_of_figures_breaks_wcag_22_aa_in_the_dark(
    size: str, browser: Browser, figured: tuple[Server, str], axe: str
) -> None:
    server, code = figured
    context = of_system(browser, "dark", SIZES[size])
    page = context.new_page()
    enter(page, server, code)
    found: dict[str, list[str]] = {}
    for path in OF_FIGURES:
        page.goto(f"{server.address}/{path}")
        settle(page)
        for tab in page.get_by_role("tab").all_inner_texts() or [""]:
            if tab:
                page.get_by_role("tab", name=tab, exact=True).click()
            settle(page)
            is_shown(page, DARK)
            found[f"{path} {tab}"] = screens.violations(page, axe)
    context.close()
    assert "\n".join(f"{view} {one}" for view, broken in found.items() for one in broken) == ""
    assert len(found) > len(OF_FIGURES)
