"""Every screen of those who steer: names and texts that are code, light and dark."""

import pytest
from kit import screens
from kit.agreement_screen import FIRST_MS
from kit.browsers import SIZES, wait_settled
from kit.commands import command
from kit.rating_study import build, row, rubric
from kit.screens import at_rest, settle, signed_in
from kit.servers import serving
from kit.studies import rated
from playwright.sync_api import Page, expect

from data.database import open_study
from data.importers.rows import Origin, RatingRow
from data.person import OPERATOR
from data.schema import Kind, Role
from data.study.people import add_people
from data.study.ratings import import_ratings
from data.study.settings import unblind

pytestmark = pytest.mark.e2e
axe = screens.axe
# Each as HTML and as Markdown; a person's name has at most 80 signs.
RUNS = "<img src=x onerror=broken=1><b id=evil>"
LINKS = "![p](http://elsewhere.example/p)[go](http://elsewhere.example)"
NAMES = [f"{end} {RUNS}" for end in ("dr-a", "dr-b")] + [LINKS]
OF_FIGURES = ("agreement", "jury", "monitor")  # computed first: they take their time
QUICK = ("", "setup", "export", "?view=People", "setup?part=Notes")
QUICK += ("agreement?view=Responses", "jury?view=Ranking")
IN_THE_DARK = QUICK[:4]
SHOWN = {"agreement?view=Responses": "b <img", "?view=People": "boss <img"}
FOREIGN = "img[src=x], #evil, [href*='elsewhere.example'], [src*='elsewhere.example'], iframe"
LIGHT, DARK = "rgb(255, 255, 255)", "rgb(21, 24, 28)"
INK = {LIGHT: "rgb(23, 37, 43)", DARK: "rgb(230, 233, 236)"}


@pytest.fixture(scope="module")
def codes(study):
    evil = f"{RUNS}{LINKS}<script>broken=2</script>"
    rows = [
        row(n, f"{evil} {n}", model=f"m{n % 2} {evil}", benchmark=f"b {RUNS}{LINKS}", prompt=evil)
        for n in range(1, 7)
    ]
    codes = build(study, rows, NAMES, rubric("accuracy", "clarity"))
    given = [
        RatingRow(Origin("f", 1), one.response_id, who, kind, criterion, str(1 + n % 5), evil)
        for n, one in enumerate(rows)
        for who, kind in [*((name, Kind.CLINICIAN) for name in NAMES), (f"j {RUNS}", Kind.JUROR)]
        for criterion in ("accuracy", "clarity")
    ]
    import_ratings(study, given)
    unblind(study, "coordinator", evil)
    return codes | {"boss": add_people(OPERATOR, study, [f"boss {RUNS}"], Role.COORDINATOR)[0].code}


@pytest.mark.parametrize("paths", [QUICK, pytest.param(OF_FIGURES, marks=pytest.mark.slow)])
def test_no_name_or_text_becomes_an_element_a_link_or_a_request(paths, browser, server, codes):
    page = signed_in(browser, server, codes["boss"])
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for path in paths:
        page.goto(f"{server.address}/{path}")
        page.get_by_role("heading", level=1).first.wait_for(timeout=FIRST_MS)
        at_rest(page, FIRST_MS)
        if path in SHOWN:
            page.get_by_text(SHOWN[path]).first.wait_for()
        assert page.locator(".mj-out", has_text="boss <img").count() == 1
        drawn = page.locator(FOREIGN).evaluate_all("all => all.map(one => one.outerHTML)")
        assert (path, drawn) == (path, [])
        assert page.evaluate("window.broken") is None
    page.context.close()
    assert [url for url in asked if not url.startswith((server.address, "data:", "blob:"))] == []


def is_shown(page: Page, paper: str) -> None:
    """Expect a page on this paper, of Streamlit's and of our own making."""
    expect(page.get_by_test_id("stApp")).to_have_css("background-color", paper)
    expect(page.locator(".mj-head h1")).to_have_css("color", INK[paper])
    expect(page.locator("html")).to_have_css("background-color", paper)


@pytest.mark.parametrize("size", ["laptop", pytest.param("tablet", marks=pytest.mark.slow)])
def test_screens_turn_dark_with_the_system_and_break_no_wcag_22_aa(
    size, browser, server, codes, axe
):
    page = signed_in(browser, server, codes["boss"], size)
    for scheme, paper in (("light", LIGHT), ("dark", DARK)):
        page.emulate_media(color_scheme=scheme)
        is_shown(page, paper)
    found: dict[str, list[str]] = {}
    for path in IN_THE_DARK:
        page.goto(f"{server.address}/{path}")
        page.locator(".mj-head").wait_for()
        wait_settled(page)
        is_shown(page, DARK)
        found[path] = screens.violations(page, axe)
    expect(page.get_by_test_id("stMainMenu")).to_have_count(0)  # Streamlit's own choice
    page.get_by_role("button", name="Add people").click()
    page.get_by_role("dialog").wait_for()
    wait_settled(page)
    found["dialog"] = screens.violations(page, axe)
    page.context.close()
    assert {path: broken for path, broken in found.items() if broken} == {}


@pytest.fixture(scope="module")
def figured(tmp_path_factory, empty_study):
    """Serve a study with figures; return the server and a coordinator's code."""
    engine = open_study(f"sqlite:///{tmp_path_factory.mktemp('dark') / 'study.db'}", create=True)
    rated(command(engine), tmp_path_factory.mktemp("files"))
    code = add_people(OPERATOR, engine, ["Rita"], Role.COORDINATOR)[0].code
    with serving(str(engine.url)) as server:
        yield server, code
    engine.dispose()


@pytest.mark.slow
@pytest.mark.parametrize("size", list(SIZES))
def test_no_screen_of_figures_breaks_wcag_22_aa_in_the_dark(size, browser, figured, axe):
    server, code = figured
    page = signed_in(browser, server, code, size)
    page.emulate_media(color_scheme="dark")
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
    page.context.close()
    assert {view: broken for view, broken in found.items() if broken} == {}
    assert len(found) > len(OF_FIGURES)
