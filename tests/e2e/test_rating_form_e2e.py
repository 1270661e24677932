"""Keys and targets of the rating room: none lands where it was not meant, all do for a shift, at every size."""

from collections.abc import Iterator
from itertools import product

import pytest
from kit.browsers import (
    LAPTOP,
    PATIENCE_MS,
    TABLET,
    chosen,
    sign_in,
    sign_in_by_keys,
    wait_for_count,
    wait_open,
)
from kit.rating_study import build, row, rubric, scores_of
from playwright.sync_api import Page, expect
from sqlmodel import Session, col, select

from data.schema import Remark, Span

pytestmark = pytest.mark.e2e

GAPS_MS = (0, 20, 50, 100)
APART_MS = (0, 160)
RATERS = ["dr-late", "dr-foreign", "dr-off"]
CRITERIA = ("accuracy", "completeness", "clarity")
SHIFT, FEW = 18, 6
# Emoji of two UTF-16 units, an accent that combines, a control character shown as its picture,
# returns that are not shown, and text from right to left.
ODD = "Ok 😀👩‍👩‍👧 cafe\u0301.\r\n\x07Bell rang \U0001d4b3 twice.\r\n\u202eRTL\u202c ends. <b>Last</b> 😀 word."
# Three keys, so far apart, so long after the next Enter, or after the response that follows is there. They are struck
# in the page: a driver on a busy machine strikes late.
STRIKE = """([moment, gap, apart]) => {
  const strike = () => [..."11f"].forEach((key, place) => setTimeout(() => {
    for (const kind of ["keydown", "keyup"])
      document.activeElement.dispatchEvent(new KeyboardEvent(kind, {
        key, code: key === "f" ? "KeyF" : "Digit1", bubbles: true, cancelable: true, composed: true,
      }));
  }, gap + place * apart));
  if (moment === "entered") {
    document.addEventListener("keydown", function entered(event) {
      if (event.key !== "Enter") return;
      document.removeEventListener("keydown", entered, true);
      strike();
    }, true);
    return;
  }
  const room = document.querySelector(".mj-room");
  const shown = new MutationObserver(() => {
    if (!room.hasAttribute("data-quiet")) return;
    shown.disconnect();
    strike();
  });
  shown.observe(room, { attributes: true, attributeFilter: ["data-quiet"] });
}"""
OUTSIDE = """kind => {
  const made = document.createElement(kind === "button" ? "button" : kind === "open" ? "dialog" : "div");
  if (kind === "role") made.setAttribute("role", "dialog");
  if (kind === "open") made.open = true;
  made.id = "theirs";
  made.style = "position: fixed; top: 0; z-index: 2000000; display: block";
  const inner = kind === "button" ? made : document.createElement("button");
  inner.textContent = "Theirs";
  if (inner !== made) made.append(inner);
  document.body.append(made);
  inner.focus();
}"""

# From a wide screen to a laptop at 200 %, and upright ones that are touched.
SIZES = ((1920, 1080), LAPTOP, (1024, 768), TABLET, (683, 384))
TOUCHED = (TABLET, (390, 844))
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
def codes(study):
    rows = [row(n, f"Note {n}. No fever. Knee pain since May.") for n in range(2, SHIFT + 1)]
    rows = [row(1, ODD), *rows]
    codes = build(study, rows, RATERS, rubric()) | build(study, rows[:FEW], ["dr-few"], rubric())
    scale = rubric(name="long_anchors")
    anchors = {"anchors": dict(enumerate(LONG, 1))}
    long = [one.model_copy(update=anchors) for one in scale.criterion]
    texts = [row(n, NOTE, context=SOURCE, benchmark="long") for n in range(50, 51 + len(SIZES))]
    scale = scale.model_copy(update={"criterion": tuple(long)})
    return codes | build(study, texts, ["dr-sizes", *map(str, TOUCHED)], scale)


def wait_quiet(page: Page) -> None:
    """Wait until a page that was just shown takes keys."""
    page.locator(".mj-room:not([data-quiet])").wait_for()


def test_no_digit_typed_or_held_after_a_submission_lands_on_the_next_response(
    page, server, study, codes
):
    sign_in(page, server, codes["dr-late"])
    moments = [*product(("entered", "shown"), GAPS_MS, APART_MS)]
    for number, moment in enumerate(moments, 1):
        wait_quiet(page)
        page.keyboard.type("543")
        page.evaluate(STRIKE, moment)
        page.keyboard.press("Control+Enter")
        wait_for_count(page, number, SHIFT)
        page.wait_for_timeout(2 * moment[-1])  # until the last of them was struck
        assert (moment, chosen(page)) == (moment, {})
        expect(page.get_by_role("button", name="Flag")).to_have_attribute("aria-pressed", "false")
    page.keyboard.type("543")
    page.keyboard.press("Control+Enter")
    page.keyboard.down("1")
    wait_for_count(page, len(moments) + 1, SHIFT)
    for _ in range(5):  # as a keyboard repeats it
        page.keyboard.down("1")
    assert chosen(page) == {}
    page.keyboard.up("1")
    page.keyboard.press("1")
    expect(page.get_by_role("radio", name="1 Point 1 of accuracy")).to_be_checked()
    expected = [5, 4, 3] * (len(moments) + 1)
    assert [score for _, _, score in scores_of(study, "dr-late")] == expected


def test_keys_are_obeyed_neither_in_a_foreign_dialog_nor_outside_the_room(page, server, codes):
    sign_in(page, server, codes["dr-foreign"])
    for kind in ("role", "open", "button"):
        page.evaluate(OUTSIDE, kind)
        expect(page.locator("#theirs")).to_be_visible()
        for key in ("1", "n", "a", "f", "s", "Control+Enter", "p", "?", "/", "c", "r", "u"):
            page.keyboard.press(key)
        assert (kind, chosen(page)) == (kind, {})
        assert page.locator(".mj-room [aria-pressed=true], .mj-room dialog").count() == 0
        assert page.evaluate("document.activeElement.textContent") == "Theirs"
        if kind != "button":  # a dialog is obeyed alone, wherever the focus is
            page.evaluate("document.activeElement.blur()")
            page.keyboard.type("1n")
            assert chosen(page) == {}
        page.locator("#theirs").evaluate("one => one.remove()")
        page.keyboard.type("3")
        expect(page.get_by_role("radio", name="3 Point 3 of accuracy")).to_be_checked()
        page.keyboard.press("u")
        assert chosen(page) == {}


def test_single_keys_can_be_switched_off_and_the_form_still_obeys_tab_and_arrows(
    page, server, study, codes
):
    sign_in(page, server, codes["dr-off"])
    page.keyboard.press("?")
    page.get_by_label("Single keys are on").press("Space")
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
    page.keyboard.type("3nfas/")
    assert chosen(page) == {}
    assert page.locator(".mj-room [aria-pressed=true]").count() == 0
    page.locator(".mj-response").focus()
    for _ in CRITERIA:
        page.keyboard.press("Tab")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
    assert chosen(page) == dict.fromkeys(CRITERIA, 3)
    page.keyboard.press("Control+Enter")
    wait_for_count(page, 1, SHIFT)
    assert [score for _, _, score in scores_of(study, "dr-off")] == [3, 3, 3]


def test_a_shift_with_every_tool_needs_no_mouse(page, server, study, codes):
    sign_in_by_keys(page, server, codes["dr-few"])
    press(page, *"5u2", "s", "ArrowDown", "w", "s", "ArrowRight", "Shift+ArrowRight", "o")
    press(page, *"45f", "Control+Enter")
    wait_for_count(page, 1, FEW)
    give_back(page)
    for number, keys in enumerate(MARKING, 2):
        press(page, *"432", *keys, "Control+Enter")
        if number < FEW - 1:
            wait_for_count(page, number, FEW - 1)
    page.get_by_role("heading", name="Thank you").wait_for()
    wait_quiet(page)
    for _ in range(30):
        if page.evaluate("document.activeElement.textContent") == "Sign out":
            break
        page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/login")
    given = [score for _, _, score in scores_of(study, "dr-few")]
    assert given == [2, 4, 5] + [4, 3, 2] * len(MARKING)
    with Session(study) as session:
        spans = session.exec(select(Span).order_by(col(Span.id))).all()
        remarks = session.exec(select(Remark.kind, Remark.text).order_by(col(Remark.id))).all()
    first = [(one.criterion, one.error, ODD[one.start : one.end]) for one in spans[:2]]
    assert first == [
        ("accuracy", "wrong", "\x07Bell rang \U0001d4b3 twice."),
        ("completeness", "unsupported", "RTL\u202c ends"),
    ]
    assert len(spans) == 9
    assert sum(one.side == "source" for one in spans) == 2
    assert sum(one.linked is not None for one in spans) == 1
    assert [(one.severity, one.note) for one in spans if one.note] == [("major", "said twice")]
    assert [tuple(one) for one in remarks] == [("flag", ""), ("recused", "Outside my specialty")]


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press("Space" if key == " " else key)


def give_back(page: Page) -> None:
    """Give a response back; not without a reason."""
    page.keyboard.press("r")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog").get_by_role("alert")).to_have_text("Please choose a reason")
    press(page, "Space", "ArrowDown", "Enter")
    wait_for_count(page, 1, FEW - 1)


EXTENDED = ("s", "ArrowRight", "Shift+ArrowRight", "o")
# Most by two keys, some with all that can be said.
MARKING = (
    ["s", "x", "ArrowDown", "m", "s", "w"],
    ["s", "Tab", "Tab", "m", "a", "Tab", *"said twice", "Tab", "Enter", *EXTENDED],
    ["s", "w", "s", "x", *["Tab"] * 3, "ArrowDown", *["Tab"] * 4, "Enter"],
    ["s", "ArrowDown", "w"],
)


def test_nothing_is_cut_or_too_small_to_be_hit_at_any_size(page, server, codes):
    sign_in(page, server, codes["dr-sizes"])
    for done, (width, height) in enumerate(SIZES):
        page.set_viewport_size({"width": width, "height": height})
        first_screen(page)
        anchors(page)
        page.keyboard.press("Escape")
        for state in states(page, done):
            assert (width, state, page.evaluate(SMALL, SMALLEST)) == (width, state, [])


@pytest.mark.parametrize("size", TOUCHED)
def test_every_target_is_as_large_as_a_finger_where_there_is_no_mouse(size, browser, server, codes):
    view = {"width": size[0], "height": size[1]}
    context = browser.new_context(viewport=view, has_touch=True, is_mobile=True)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    sign_in(page, server, codes[str(size)])
    for state in states(page):
        assert (state, page.evaluate(SMALL, FINGER)) == (state, [])
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()


def first_screen(page: Page) -> None:
    """Expect the response, the points and the button on the first screen, and whole lines of text."""
    expect(page.get_by_role("button", name="Submit and next")).to_be_in_viewport(ratio=1)
    for one in page.locator("fieldset[data-active] .face").all():
        expect(one).to_be_in_viewport(ratio=1)
    assert page.evaluate(WHOLE_LINES) >= FEWEST_LINES
    assert page.evaluate(USED) > 0.85
    expect(page.locator(".mj-who").filter(has_text="[patient_guest]").first).to_be_attached()
    assert page.evaluate(BROKEN_NAMES) == []
    page.keyboard.press("2")  # asks why
    expect(page.get_by_role("status").filter(has_text="Accuracy is low")).to_be_in_viewport()
    page.keyboard.type("sws")
    assert page.evaluate(WHOLE_LINES) >= FEWEST_LINES - 1  # scrolled to a mark: the first is cut
    expect(page.get_by_role("button", name="Wrong", exact=False).first).to_be_in_viewport()
    page.keyboard.press("Escape")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for _ in "uu":
        page.keyboard.press("u")
    assert chosen(page) == {}


def anchors(page: Page) -> None:
    """Expect every anchor of what is rated to be shown whole, and those of others on demand."""
    for _ in range(3):
        assert page.evaluate(ANCHORS) == list(LONG)
        assert page.evaluate(CUT) == []
        expect(page.locator("fieldset[data-active] .face").first).to_be_in_viewport(ratio=1)
        page.keyboard.press("4")
    assert page.evaluate(ANCHORS) == list(LONG)  # those of the last, still there
    page.locator("legend", has_text="Completeness").click()
    expect(page.locator("fieldset[data-active]")).to_contain_text("Completeness")
    assert page.evaluate(ANCHORS) == list(LONG)
    page.get_by_role("radio", checked=True).last.focus()
    expect(page.locator("fieldset[data-active]")).to_contain_text("Clarity")
    assert page.evaluate(ANCHORS) == list(LONG)
    assert page.evaluate(CUT) == []
    for _ in range(3):
        page.keyboard.press("u")


def states(page: Page, done: int = 0) -> Iterator[str]:
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
    page.locator(".mj-count", has_text=f"{done + 1} of {len(SIZES) + 1} rated").wait_for()
    page.locator(".mj-room:not([data-quiet])").wait_for()
    page.keyboard.press("p")
    page.get_by_text("You rated this on").wait_for()
    yield "rated before"
    wait_open(page)
    page.keyboard.press("b")
    page.get_by_text("You rated this on").wait_for(state="detached")
    wait_open(page)
