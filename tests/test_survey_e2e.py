"""Eight clinicians place the taxonomy in Chromium: by keys, by touch, without a line, in two sittings."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from kit import screens
from kit.browsers import LAPTOP, PATIENCE_MS
from kit.rating_study import in_browser, person_of, session_of
from kit.servers import Server
from kit.wiretap import record
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import Engine

from data.person import Person
from data.queries.record import verify
from data.queries.surveys import surveys
from data.store.people import invite
from data.store.surveys import ask_clinicians, open_survey
from data.taxonomy import shipped_taxonomy
from medjury.services.surveys import survey_results

pytestmark = pytest.mark.e2e
axe = screens.axe
NAMES = tuple(f"dr_{letter}" for letter in "abcdefgh")
PHONE = (390, 844)
TAXONOMY = shipped_taxonomy()
CATEGORIES = [category.name for category in TAXONOMY.categories]
PLACE = {at.path[-1]: CATEGORIES.index(at.category) + 1 for at in TAXONOMY.leaves()}
SLIP = "Documenting Care Plans"  # what dr_a and dr_b put under decision support
KEYS, TOUCH = ("dr_a", "dr_b", "dr_c"), ("dr_d", "dr_e")
OFFLINE, RESUMED, CLICKS = "dr_f", "dr_g", "dr_h"
TAKES_KEYS = ".mj-room:not([data-quiet]) .mj-survey"


@pytest.fixture(scope="module")
def codes(study: Engine) -> Mapping[str, Person]:
    codes = {one.handle: one.code for one in invite(study, NAMES)}
    open_survey(study, TAXONOMY, "subcategories", 3, "coordinator")
    ask_clinicians(study, NAMES, "coordinator")
    return {name: person_of(study, code) for name, code in codes.items()}


@contextmanager
def at_the_survey(
    browser: Browser, server: Server, study: Engine, person: Person, *, touch: bool = False
) -> Iterator[Page]:
    """Open the survey as a clinician, on a laptop or a phone that is touched."""
    width, height = PHONE if touch else LAPTOP
    size = {"width": width, "height": height}
    context = browser.new_context(viewport=size, has_touch=touch, is_mobile=touch)
    context.set_default_timeout(PATIENCE_MS)
    context.add_cookies([in_browser(session_of(study, person), server.address)])
    page = context.new_page()
    page.goto(server.address)
    page.locator(TAKES_KEYS).wait_for()
    box = page.locator(".mj-survey").bounding_box()
    assert box is not None
    assert box["width"] > 0.75 * width  # it fills the page
    assert page.evaluate("document.querySelector('.mj-body').scrollWidth") <= width
    yield page
    context.close()


def place_next(page: Page, name: str, way: str) -> str:
    """Place the card that is shown; return what it says."""
    card = page.locator(".mj-card h2").inner_text()
    number = 1 if card == SLIP and name in KEYS[:2] else PLACE[card]
    button = page.locator(f".mj-category[data-place='{number}']")
    if way == "keys":
        page.keyboard.press(f"{number}")
    elif way == "touch":
        button.tap()
        expect(page.locator(".mj-card")).to_be_in_viewport()
    else:
        button.click()
    expect(page.locator(".mj-card h2")).not_to_have_text(card)
    return card


def finish(page: Page, way: str, comprehensiveness: int) -> None:
    """Rate both on the whole and submit."""
    for name, point in (("comprehensiveness", comprehensiveness), ("clarity", 5)):
        cell = page.locator(f"[data-whole={name}] input[value='{point}']")
        if way == "keys":
            cell.focus()
            page.keyboard.press("Space")
        elif way == "touch":
            cell.tap()
        else:
            cell.check(force=True)
    if way == "keys":
        page.keyboard.press("Control+Enter")
    elif way == "touch":
        page.get_by_role("button", name="Submit").tap()
    else:
        page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("heading", name="Thank you")).to_be_visible()


def sort_all(page: Page, name: str, way: str, left: int = 22) -> list[str]:
    cards = [place_next(page, name, way) for _ in range(left)]
    expect(page.locator(".mj-placed")).to_have_text("22 of 22 placed")
    return cards


def shot(page: Page, name: str) -> None:
    if folder := os.environ.get("SHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=False)


def test_eight_clinicians_answer_the_survey_each_in_their_way(
    browser: Browser, server: Server, study: Engine, codes: Mapping[str, Person], axe: str
) -> None:
    orders = []
    for name in KEYS:
        with at_the_survey(browser, server, study, codes[name]) as page:
            heard = record(page)
            page.reload()
            page.locator(TAKES_KEYS).wait_for()
            shot(page, f"survey-{name}")
            orders.append(tuple(sort_all(page, name, "keys")))
            page.keyboard.press("u")
            expect(page.locator(".mj-placed")).to_have_text("21 of 22 placed")
            place_next(page, name, "keys")
            shot(page, f"survey-{name}-placed")
            assert screens.violations(page, axe) == []
            finish(page, "keys", 4)
            told = b"\n".join(heard)
            assert b"intended" not in told.lower()
            assert b"Clinical Note Generation / " not in told
    assert len({*orders}) == len(KEYS)
    for name in TOUCH:
        with at_the_survey(browser, server, study, codes[name], touch=True) as page:
            shot(page, f"survey-{name}")
            sort_all(page, name, "touch")
            shot(page, f"survey-{name}-placed")
            assert screens.violations(page, axe) == []
            finish(page, "touch", 5)
    with at_the_survey(browser, server, study, codes[OFFLINE]) as page:
        loses_the_line(page)
    resumes(browser, server, study, codes[RESUMED])
    with at_the_survey(browser, server, study, codes[CLICKS]) as page:
        comments_and_changes(page)
    assert_whole(study)


def loses_the_line(page: Page) -> None:
    """Go on without a connection; all of it is stored once there is one."""
    for _ in range(5):
        place_next(page, OFFLINE, "clicks")
    expect(page.get_by_role("status").filter(has_text="Draft saved")).to_be_visible()
    page.context.set_offline(True)
    for _ in range(9):
        place_next(page, OFFLINE, "clicks")
    expect(page.get_by_role("alert").filter(has_text="cannot be reached")).to_be_visible()
    shot(page, "survey-offline")
    page.context.set_offline(False)
    expect(page.get_by_role("status").filter(has_text="Draft saved")).to_be_visible()
    sort_all(page, OFFLINE, "clicks", 8)
    finish(page, "clicks", 4)


def resumes(browser: Browser, server: Server, study: Engine, person: Person) -> None:
    """Place some cards, come back in another browser, and go on."""
    with at_the_survey(browser, server, study, person) as page:
        for _ in range(10):
            place_next(page, RESUMED, "clicks")
        expect(page.get_by_role("status").filter(has_text="Draft saved")).to_be_visible()
    with at_the_survey(browser, server, study, person) as page:
        expect(page.locator(".mj-placed")).to_have_text("10 of 22 placed")
        sort_all(page, RESUMED, "clicks", 12)
        finish(page, "clicks", 3)


def comments_and_changes(page: Page) -> None:
    """Comment on a card, submit too early, put a card elsewhere and back, and answer anew after all."""
    page.locator(".mj-on-card").fill("Could be two of them.")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("alert").filter(has_text="22 cards, Comprehensiveness")).to_be_visible()
    sort_all(page, CLICKS, "clicks")
    page.get_by_role("button", name=SLIP).click()
    expect(page.locator(".mj-card h2")).to_have_text(SLIP)
    page.locator(".mj-category[data-place='5']").click()
    page.get_by_role("button", name=SLIP).click()
    page.locator(f".mj-category[data-place='{PLACE[SLIP]}']").click()
    finish(page, "clicks", 4)
    page.get_by_role("button", name="Previous").click()
    page.get_by_label("Comment on the whole (optional)").fill("Complete.")
    page.get_by_role("button", name="Submit again").click()
    expect(page.get_by_role("heading", name="Thank you")).to_be_visible()


def assert_whole(study: Engine) -> None:
    """Every answer is stored as it was given, and the figures are those of the answers."""
    [view] = surveys(study)
    assert [one.clinician for one in view.answers] == [*NAMES]
    for one in view.answers:
        wrong = {key for key, category in one.placed.items() if not key.startswith(category)}
        expected = {f"Clinical Note Generation / {SLIP}"} if one.clinician in KEYS[:2] else set()
        assert wrong == expected
    assert view.answers[-1].comment == "Complete."
    assert [*view.answers[-1].comments.values()] == ["Could be two of them."]
    [found] = survey_results(study, reps=20).rounds
    assert found.overall is not None
    assert (found.overall.hits, found.overall.trials) == (8 * 22 - 2, 8 * 22)
    assert found.comprehensiveness is not None
    assert found.comprehensiveness.mean == (4 * 3 + 5 * 2 + 4 + 3 + 4) / 8
    assert not verify(study).findings
    assert json.dumps(dict(view.answers[0].placed))
