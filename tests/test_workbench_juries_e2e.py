"""Two juries side by side and reviews, in Chromium: chosen, listed by what changed, tagged, noted."""

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from kit import screens
from kit.browsers import LAPTOP, TABLET, new_context, wait_settled
from kit.rating_study import build, row, rubric
from kit.servers import Server
from playwright.sync_api import Browser, Locator, Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from sqlalchemy import Engine

from data.importers.rows import Origin, RatingRow
from data.person import OPERATOR
from data.schema import Kind, Role
from data.study.people import add_people
from data.study.ratings import import_ratings
from data.study.reviews import tag_counts
from data.study.verify import verify

pytestmark = pytest.mark.e2e
HOSTILE = "<b>bold</b> ![x](http://evil.example/a.png) $5"
N = 4
axe = screens.axe
VIEWS = {"laptop": (LAPTOP, "light"), "tablet": (TABLET, "dark")}


@pytest.fixture(scope="module")
def codes(study: Engine) -> dict[str, str]:
    """Fill the study: a clinician, a juror of two verdicts, and one who scores three responses."""
    rows = [row(n, f"Note {n}. No fever.") for n in range(1, N + 1)]
    codes = build(study, rows, ["dr-b"], rubric())
    rate(study, "dr-b", Kind.CLINICIAN, lambda n: 3)
    rate(study, "old", Kind.JUROR, lambda n: 3)
    rate(study, "old", Kind.JUROR, lambda n: 3 if n > 1 else 5, verdict=1)
    rate(study, "new", Kind.JUROR, lambda n: {1: 1, 2: 4, 3: 3}.get(n))
    return codes | {"Rita": add_people(OPERATOR, study, ["Rita"], Role.RESEARCHER)[0].code}


def rate(
    study: Engine, rater: str, kind: Kind, score: Callable[[int], int | None], verdict: int = 0
) -> None:
    rows = [
        RatingRow(
            *(Origin("made up", 1), f"resp-hidden-{n}", rater, kind, name, str(points)),
            comment=f"{name} by {rater} {verdict} {HOSTILE}",
            replicate=verdict,
        )
        for n in range(1, N + 1)
        for name in rubric().criteria
        if (points := score(n)) is not None
    ]
    import_ratings(study, rows)


@pytest.fixture(params=VIEWS)
def rita(
    request: pytest.FixtureRequest, browser: Browser, server: Server, codes: dict[str, str]
) -> Iterator[Page]:
    """Return the workbench, open before a researcher."""
    size, scheme = VIEWS[request.param]
    context = new_context(browser, size)
    page = context.new_page()
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(server.address)
    page.get_by_label("Your sign-in code").fill(codes["Rita"])
    page.get_by_role("button", name="Sign in").click()
    page.locator(".mj-head").wait_for()
    page.goto(f"{server.address}/workbench?jury=old&first-verdict=verdict+1")
    page.locator(".mj-list").wait_for(state="attached")
    yield page
    context.close()


def chosen(page: Page, label: str, option: str) -> None:
    """Choose from a list in the popover of the second jury."""
    wait_settled(page)
    page.get_by_label(label, exact=True).click()
    page.get_by_role("option", name=option, exact=True).click()
    wait_settled(page)


def listed(page: Page) -> Locator:
    """Return the lines of the list, unfolded where the window is narrow."""
    wait_settled(page)
    if not page.locator("details.mj-fold").evaluate("part => part.open"):
        page.locator("details.mj-fold > summary").click()
    return page.locator(".mj-list li")


def test_a_second_jury_is_chosen_and_the_list_is_of_what_changed(rita: Page, axe: str) -> None:
    asked: list[str] = []
    rita.on("request", lambda request: asked.append(request.url))
    rita.get_by_role("button", name="Second jury").click()
    chosen(rita, "Jurors of the second", "new")
    rita.keyboard.press("Escape")  # the list of jurors
    rita.keyboard.press("Escape")  # and what it stands in
    rita.get_by_role("dialog").wait_for(state="detached")
    moved = rita.locator(".mj-moved")
    expect(moved).to_contain_text("1 moved up, 1 moved down, 1 unchanged, 1 only in the first, 0")
    expect(moved).to_contain_text("1 point or more: 2; explanation changed: 0; now a failure: 0")
    lines = listed(rita)
    expect(lines.nth(0)).to_contain_text("\N{MINUS SIGN}2.00")
    expect(lines.nth(0)).to_contain_text("3.00 \N{RIGHTWARDS ARROW} 1.00")
    expect(lines.nth(3)).to_contain_text("3.00 \N{RIGHTWARDS ARROW} none")
    both = rita.get_by_role("region", name="Both juries")
    expect(both.locator("tbody").nth(0)).to_contain_text("new only in the second")
    expect(both.locator("q").first).to_have_text(f"accuracy by new 0 {HOSTILE}")
    broken = [f"pairs {one}" for one in screens.violations(rita, axe)]
    rita.get_by_role("button", name="Second jury").click()
    chosen(rita, "List only what", "moved up")
    broken += [f"popover {one}" for one in screens.violations(rita, axe)]
    rita.keyboard.press("Escape")
    expect(listed(rita)).to_have_count(1)
    expect(rita.locator(".mj-at")).to_contain_text("resp-hidden-2")
    assert "second=new" in rita.url
    assert "changed=moved+up" in rita.url
    rita.reload()
    rita.locator(".mj-list").wait_for(state="attached")
    expect(listed(rita)).to_have_count(1)
    assert broken == []
    assert not [url for url in asked if "evil" in url]


def test_the_verdicts_of_two_runs_stand_side_by_side(rita: Page, server: Server) -> None:
    rita.goto(f"{rita.url}&second-verdict=verdict+2")
    expect(rita.locator(".mj-moved")).to_contain_text("1 moved up, 0 moved down, 3 unchanged")
    expect(rita.locator(".mj-moved")).to_contain_text("explanation changed: 4")
    cells = rita.get_by_role("region", name="Both juries").locator("tr.mj-changed").first
    expect(cells.locator("td")).to_have_text(
        [f"3accuracy by old 0 {HOSTILE}", f"5accuracy by old 1 {HOSTILE}", "+2"]
    )
    expect(rita.locator(".mj-both").first).to_have_text(
        "First 3.00 (1 of 1 jurors), second 5.00 (1 of 1 jurors): +2."
    )


def test_a_response_is_tagged_and_noted_and_found_again(
    rita: Page, study: Engine, server: Server, axe: str
) -> None:
    size = rita.viewport_size or {"width": 0}
    tag, note = f"odd {size['width']}", f"Ask dr-b. {HOSTILE}"
    review = rita.locator(".st-key-workbench-scores")
    wait_settled(rita)
    offered = rita.get_by_role("option", name=f"Add: {tag}")
    for _ in range(5):  # a page that is drawn anew meanwhile forgets what is typed
        review.get_by_label("Tags", exact=True).fill(tag)
        with suppress(PlaywrightTimeout):
            offered.wait_for(timeout=6_000)
            break
    rita.keyboard.press("Enter")
    wait_settled(rita)
    rita.keyboard.press("Escape")
    expect(listed(rita).first.locator(".mj-tag").last).to_have_text(tag)
    assert tag_counts(OPERATOR, study)[tag] == 1
    wait_settled(rita)
    review.locator("summary", has_text="note").last.click()
    for words in ("First thought.", note):
        rita.get_by_label("Note", exact=True).fill(words)
        wait_settled(rita)
        rita.get_by_role("button", name="Keep the note").click()
        expect(review.locator(".mj-note-line p").first).to_have_text(words)
        wait_settled(rita)
        if words != note:
            review.locator("summary", has_text="Change the note").click()
    expect(review.locator(".mj-earlier summary").first).to_contain_text("earlier note")
    broken = screens.violations(rita, axe)
    rita.goto(f"{server.address}/workbench?tag={tag.replace(' ', '+')}&noted=true")
    expect(listed(rita)).to_have_count(1)
    expect(rita.get_by_role("button", name="More filters (2)")).to_be_visible()
    rita.goto(
        f"{server.address}/workbench?tag={tag.replace(' ', '+')}&where=lenient:+jury+above+clinicians"
    )
    expect(rita.get_by_text("No response fits.")).to_be_visible()
    assert broken == []
    assert verify(study).findings == ()
