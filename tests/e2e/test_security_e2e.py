"""Names and texts that are code, in every screen of those who steer a study."""

from collections.abc import Iterator

import pytest
from kit.browsers import LAPTOP, new_context
from kit.rating_study import build, in_browser, row, rubric, session_of
from kit.servers import Server
from playwright.sync_api import Browser, Page
from sqlalchemy import Engine

from annotate import navigation
from data.importers.rows import Origin, RatingRow
from data.person import OPERATOR
from data.schema import Kind, Role
from data.study import people
from data.study.people import add_people
from data.study.ratings import import_ratings
from data.study.settings import unblind

pytestmark = pytest.mark.e2e
# Each as HTML and as Markdown; a person's name has at most 80 signs.
RUNS = "<img src=x onerror=broken=1><b id=evil>"
LINKS = "![p](http://elsewhere.example/p)[go](http://elsewhere.example)"
NAMES = [f"{end} {RUNS}" for end in ("dr-a", "dr-b")] + [LINKS]
FIGURES = ("agreement", "jury", "monitor")  # computed first: they take their time
SCREENS = [
    pytest.param(one.path, marks=[pytest.mark.slow] if one.path in FIGURES else [])
    for one in navigation.SCREENS
    if Role.COORDINATOR in one.roles
] + ["setup?part=Notes", "?view=People", "agreement?view=Responses", "jury?view=Ranking"]
SHOWN = {"agreement?view=Responses": ["b <img"], "?view=People": ["boss <img"]}
PATIENCE_MS = 240_000
FOREIGN = "img[src=x], #evil, [href*='elsewhere.example'], [src*='elsewhere.example'], iframe"


@pytest.fixture(scope="module")
def codes(study: Engine) -> dict[str, str]:
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


@pytest.fixture(scope="module")
def boss(
    browser: Browser, server: Server, study: Engine, codes: dict[str, str]
) -> Iterator[tuple[Page, list[str]]]:
    person = people.check_code(study, codes["boss"]).person
    assert person is not None
    context = new_context(browser, LAPTOP)
    context.add_cookies([in_browser(session_of(study, person), server.address)])
    page, asked = context.new_page(), []
    page.on("request", lambda request: asked.append(request.url))
    yield page, asked
    context.close()


@pytest.mark.parametrize("path", SCREENS)
def test_no_name_or_text_becomes_an_element_a_link_or_a_request(
    boss: tuple[Page, list[str]], server: Server, path: str
) -> None:
    page, asked = boss
    page.goto(f"{server.address}/{path}")
    page.get_by_role("heading", level=1).first.wait_for(timeout=PATIENCE_MS)
    unsettled = "[data-testid=stApp]:not([data-test-script-state=notRunning])"
    page.locator(unsettled).wait_for(state="detached", timeout=PATIENCE_MS)
    for one in SHOWN.get(path, ()):
        page.get_by_text(one).first.wait_for()
    assert page.locator(".mj-out", has_text="boss <img").count() == 1
    assert page.locator(FOREIGN).count() == 0, page.locator(FOREIGN).first.evaluate(
        "e => e.outerHTML"
    )
    assert page.evaluate("window.broken") is None
    assert [url for url in asked if not url.startswith((server.address, "data:", "blob:"))] == []
