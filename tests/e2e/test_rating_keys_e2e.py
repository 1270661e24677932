"""Keys in the rating room: whose they are, and that none lands where it was not meant."""

from collections.abc import Iterator
from itertools import product

import pytest
from kit.browsers import chosen, sign_in, sign_in_by_keys, wait_for_count, wait_open
from kit.rating_study import build, row, rubric, scores_of, train
from kit.servers import Server
from playwright.sync_api import Page, expect
from sqlalchemy import Engine
from sqlmodel import Session, select

from data.schema import Assignment, Span

pytestmark = pytest.mark.e2e

GAPS_MS = (0, 20, 50, 100)
APART_MS = (0, 160)
RATERS = ["dr-late", "dr-held", "dr-foreign", "dr-off", "dr-shift"]
CRITERIA = ("accuracy", "completeness", "clarity")
EXPERTS = "response_id,accuracy,completeness,clarity\ntrain-1,4,4,4\n"
SHIFT = 20
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


@pytest.fixture(scope="module")
def codes(study: Engine, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    scale = rubric()
    practice = row(99, "Practice: mild pain.", response_id="train-1")
    train(study, tmp_path_factory.mktemp("experts"), scale, [practice], EXPERTS)
    rows = [row(n, f"Note {n}. No fever. Knee pain since May.") for n in range(1, SHIFT + 1)]
    return build(study, rows, RATERS, scale)


def practise(page: Page) -> None:
    """Go through the training round, by keys."""
    wait_open(page)
    page.keyboard.type("444")
    page.keyboard.press("Control+Enter")
    page.get_by_role("region", name="Your scores beside the expert's").wait_for()
    wait_quiet(page)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Training passed").wait_for()
    wait_quiet(page)
    page.keyboard.press("Enter")
    wait_for_count(page, 0, SHIFT)


def wait_quiet(page: Page) -> None:
    """Wait until a page that was just shown takes keys."""
    page.locator(".mj-room:not([data-quiet])").wait_for()


def begin(page: Page, server: Server, code: str) -> None:
    """Sign in and come to the first response of the study."""
    sign_in(page, server, code)
    practise(page)


def test_no_digit_typed_after_a_submission_lands_on_the_next_response(
    page: Page, server: Server, study: Engine, codes: dict[str, str]
) -> None:
    begin(page, server, codes["dr-late"])
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
    expected = [5, 4, 3] * len(moments)
    assert [score for _, _, score in scores_of(study, "dr-late")] == expected


def test_a_key_held_down_over_a_submission_rates_nothing(
    page: Page, server: Server, study: Engine, codes: dict[str, str]
) -> None:
    begin(page, server, codes["dr-held"])
    page.keyboard.type("543")
    page.keyboard.press("Control+Enter")
    page.keyboard.down("1")
    wait_for_count(page, 1, SHIFT)
    for _ in range(5):  # as a keyboard repeats it
        page.keyboard.down("1")
    assert chosen(page) == {}
    page.keyboard.up("1")
    page.keyboard.press("1")
    expect(page.get_by_role("radio", name="1 Point 1 of accuracy")).to_be_checked()


def test_keys_are_obeyed_neither_in_a_foreign_dialog_nor_outside_the_room(
    page: Page, server: Server, codes: dict[str, str]
) -> None:
    begin(page, server, codes["dr-foreign"])
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
    page: Page, server: Server, study: Engine, codes: dict[str, str]
) -> None:
    begin(page, server, codes["dr-off"])
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


def test_a_shift_of_twenty_responses_needs_no_mouse(
    page: Page, server: Server, study: Engine, codes: dict[str, str]
) -> None:
    sign_in_by_keys(page, server, codes["dr-shift"])
    practise(page)
    for number, keys in enumerate(marking(), 1):
        page.keyboard.type("432")
        for key in keys:
            page.keyboard.press("Space" if key == " " else key)
        page.keyboard.press("Control+Enter")
        wait_quiet(page) if number == SHIFT else wait_for_count(page, number, SHIFT)
    page.get_by_role("heading", name="Thank you").wait_for()
    wait_quiet(page)
    for _ in range(30):
        if page.evaluate("document.activeElement.textContent") == "Sign out":
            break
        page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/login")
    assert len(scores_of(study, "dr-shift")) == 3 * SHIFT
    with Session(study) as session:
        spans = list(session.exec(select(Span).join(Assignment).where(Assignment.rater == 5)))
    assert len(spans) == SHIFT + 3
    assert sum(one.side == "source" for one in spans) == 2
    assert sum(one.linked is not None for one in spans) == 1
    assert [(one.severity, one.note) for one in spans if one.note] == [("major", "said twice")]


def marking() -> Iterator[list[str]]:
    """Yield how each response is marked: most by two keys, some with all that can be said."""
    for number in range(1, SHIFT + 1):
        if number == 2:
            yield ["s", "x", "ArrowDown", "m", "s", "w"]
        elif number == 3:
            into_note = ["Tab", "Tab", "m", "a", "Tab", *"said twice"]
            yield ["s", *into_note, "Tab", "Enter", "s", "ArrowRight", "Shift+ArrowRight", "o"]
        elif number == 4:
            to_links = ["Tab", "Tab", "Tab"]
            yield ["s", "w", "s", "x", *to_links, "ArrowDown", "Tab", "Tab", "Tab", "Tab", "Enter"]
        else:
            yield ["s", "ArrowDown", "w"]
