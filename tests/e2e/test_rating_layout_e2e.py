"""The rating room at every size: nothing is cut, what is clicked can be hit, texts use their panes."""

from collections.abc import Iterator

import pytest
from kit.browsers import LAPTOP, PATIENCE_MS, TABLET, new_context, sign_in
from kit.rating_study import build, row
from kit.servers import Server
from playwright.sync_api import Browser, BrowserContext, Page, expect
from sqlalchemy import Engine

from data.rubric import Criterion, Rubric, Scale

pytestmark = pytest.mark.e2e

WIDE, ZOOMED = (1920, 1080), (683, 384)  # the second is a laptop at 200 %
SIZES = {"laptop": LAPTOP, "wide": WIDE, "tablet": TABLET, "zoomed": ZOOMED}
SMALLEST, FINGER = 24, 44  # pixels
FEWEST_LINES = 3
LONG = (
    "Could cause harm if relied on: a wrong drug, dose, side or result, or an invented diagnosis",
    "An important fact is wrong or was never said, such as an examination finding that was made up",
    "A fact is distorted, such as a duration, a negation or who said what; the plan is still safe",
    "Faithful in all that matters; one trivial imprecision",
    "Every statement can be traced to the visit, and none is changed in its meaning",
)
SOURCE = (
    "[doctor] How long has the knee hurt?\n"
    "[patient_guest] Since May, when she fell on the stairs at home, in the dark, with the laundry.\n"
    "[patient] Yes, since May.\n" * 12
)
NOTE = (
    "The patient has had pain in the left knee since a fall on the stairs in May of this year. " * 9
)

CUT = """() => [...document.querySelectorAll("fieldset[data-active] .face")].filter(face => {
  const [box, all] = [face.getBoundingClientRect(), document.createRange()];
  all.selectNodeContents(face);
  return [...all.getClientRects()].some(line => line.width > 0 && (line.bottom > box.bottom + 1
    || line.right > box.right + 1 || line.top < box.top - 1 || line.left < box.left - 1))
    || face.scrollHeight > face.clientHeight + 1;
}).map(face => face.textContent)"""
ANCHORS = """() => [...document.querySelectorAll(".anchor")].filter(one =>
  one.getClientRects().length > 0).map(one => one.textContent)"""
SMALL = """smallest => [...document.querySelectorAll(`.mj-room :is(button, a, select, summary, label,
  textarea, input[type=text], fieldset:not([data-active]) legend)`)]
  .filter(one => one.checkVisibility({visibilityProperty: true}) && one.getClientRects().length > 0)
  .filter(one => {
    const {width, height} = one.getBoundingClientRect();
    return width < smallest - .5 || height < smallest - .5;
  }).map(one => `${one.outerHTML.slice(0, 80)} ${JSON.stringify(one.getBoundingClientRect())}`)"""
WHOLE_LINES = """() => {
  const pane = document.querySelector(".mj-response"), box = pane.getBoundingClientRect();
  const text = document.createRange();
  text.selectNodeContents(pane);
  const bottom = Math.min(box.bottom, innerHeight);
  const lines = new Set([...text.getClientRects()].filter(line => line.width > 0
    && line.top >= box.top && line.bottom <= bottom).map(line => line.top));
  return lines.size;
}"""
USED = """() => {
  const pane = document.querySelector(".mj-response"), box = pane.getBoundingClientRect();
  const text = document.createRange();
  text.selectNodeContents(pane);
  return (Math.max(...[...text.getClientRects()].map(line => line.right)) - box.left) / box.width;
}"""
BROKEN_NAMES = """() => [...document.querySelectorAll(".mj-who")].filter(one => {
  const name = document.createRange();
  name.selectNodeContents(one);
  const rows = [...name.getClientRects()].filter(line => line.width > 0);
  return new Set(rows.map(line => line.top)).size > 1;
}).map(one => one.textContent)"""


@pytest.fixture(scope="module")
def codes(study: Engine) -> list[str]:
    """Return sign-in codes, one for each test to take: what one enters, no other finds."""
    criterion = [
        Criterion(name=one, question=f"How is its {one}?", anchors=dict(enumerate(LONG, 1)))
        for one in ("accuracy", "completeness", "clarity")
    ]
    scale = Rubric(
        name="long_anchors",
        version="1",
        audience="a clinician",
        gold="when_needed",
        scale=Scale(min=1, max=5),
        criterion=tuple(criterion),
        prompt="{{context}} {{response}} {{criteria}} {{schema}}",
    )
    raters = [f"dr-{n}" for n in range(30)]
    rows = [row(n, NOTE, context=SOURCE) for n in (1, 2)]
    return list(build(study, rows, raters, scale).values())


@pytest.fixture(params=list(SIZES))
def sized(
    request: pytest.FixtureRequest, browser: Browser, server: Server, codes: list[str]
) -> Iterator[Page]:
    """Return the first response of somebody with a screen of this size."""
    context = new_context(browser, SIZES[request.param])
    page = context.new_page()
    sign_in(page, server, codes.pop())
    yield page
    context.close()


def test_every_anchor_of_what_is_rated_is_shown_whole_and_those_of_others_on_demand(
    sized: Page,
) -> None:
    for _ in range(3):
        assert sized.evaluate(ANCHORS) == list(LONG)
        assert sized.evaluate(CUT) == []
        expect(sized.locator("fieldset[data-active] .face").first).to_be_in_viewport(ratio=1)
        sized.keyboard.press("4")
    assert sized.evaluate(ANCHORS) == list(LONG)  # those of the last, still there
    sized.locator("legend", has_text="Completeness").click()
    expect(sized.locator("fieldset[data-active]")).to_contain_text("Completeness")
    assert sized.evaluate(ANCHORS) == list(LONG)
    sized.get_by_role("radio", checked=True).last.focus()
    expect(sized.locator("fieldset[data-active]")).to_contain_text("Clarity")
    assert sized.evaluate(ANCHORS) == list(LONG)
    assert sized.evaluate(CUT) == []


def test_the_first_screen_shows_the_response_the_points_and_the_button(sized: Page) -> None:
    expect(sized.get_by_role("button", name="Submit and next")).to_be_in_viewport(ratio=1)
    for one in sized.locator("fieldset[data-active] .face").all():
        expect(one).to_be_in_viewport(ratio=1)
    assert sized.evaluate(WHOLE_LINES) >= FEWEST_LINES
    sized.keyboard.press("2")  # asks why
    expect(sized.get_by_role("status").filter(has_text="Accuracy is low")).to_be_in_viewport()
    sized.keyboard.type("sws")
    assert sized.evaluate(WHOLE_LINES) >= FEWEST_LINES - 1  # scrolled to a mark: the first is cut
    expect(sized.get_by_role("button", name="Wrong", exact=False).first).to_be_in_viewport()
    sized.keyboard.press("Escape")
    assert sized.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_text_uses_its_pane_and_no_speakers_name_is_broken(sized: Page) -> None:
    assert sized.evaluate(USED) > 0.85
    expect(sized.locator(".mj-who").filter(has_text="[patient_guest]").first).to_be_attached()
    assert sized.evaluate(BROKEN_NAMES) == []


def test_every_target_is_as_large_as_wcag_asks(sized: Page) -> None:
    for state in states(sized):
        assert (state, sized.evaluate(SMALL, SMALLEST)) == (state, [])


@pytest.mark.parametrize("size", [TABLET, (390, 844)])
def test_every_target_is_as_large_as_a_finger_where_there_is_no_mouse(
    size: tuple[int, int], browser: Browser, server: Server, codes: list[str]
) -> None:
    context = touched(browser, size)
    page = context.new_page()
    sign_in(page, server, codes.pop())
    for state in states(page):
        assert (state, page.evaluate(SMALL, FINGER)) == (state, [])
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()


def touched(browser: Browser, size: tuple[int, int]) -> BrowserContext:
    """Return a browser on a screen that is touched."""
    view = {"width": size[0], "height": size[1]}
    context = browser.new_context(viewport=view, has_touch=True, is_mobile=True)  # type: ignore[arg-type] # its own names
    context.set_default_timeout(PATIENCE_MS)
    return context


def states(page: Page) -> Iterator[str]:
    """Go through the states of a form, and name each once it is shown."""
    yield "rating"
    page.keyboard.type("2s")
    yield "marking"
    page.keyboard.type("wsx")
    yield "marking the source"
    page.keyboard.type("m45")
    yield "marked"
    dialog = page.get_by_role("dialog")
    for state, key in (("recusal", "r"), ("keys", "?")):
        page.keyboard.press(key)
        dialog.wait_for()
        yield state
        page.keyboard.press("Escape")
        dialog.wait_for(state="detached")
    page.keyboard.press("Control+Enter")
    page.locator(".mj-count", has_text="1 of 2 rated").wait_for()
    page.locator(".mj-room:not([data-quiet])").wait_for()
    page.keyboard.press("p")
    page.get_by_text("You rated this on").wait_for()
    yield "rated before"
