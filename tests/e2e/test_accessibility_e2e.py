"""axe-core finds nothing against WCAG 2.2 A and AA on any view of the rating room, at any size, light or dark."""

from collections.abc import Iterator

import pytest
from kit.browsers import LAPTOP, TABLET, wait_for_count, wait_open, wait_saved
from kit.rating_study import build, row, rubric, train
from kit.screens import axe as axe
from kit.screens import violations
from kit.servers import Server
from playwright.sync_api import Page, expect
from sqlmodel import Session, col, select

from data.description import Description, GuidelinePage
from data.schema import Submission
from data.study.settings import describe, lock, set_setting

pytestmark = pytest.mark.e2e
PHONE, ZOOMED = (390, 844), (683, 384)  # the second is a laptop at 200 %
LOOKS = ((TABLET, "light"), (ZOOMED, "dark"), (PHONE, "light"), (LAPTOP, "light"))
PAPER = {"light": "rgb(255, 255, 255)", "dark": "rgb(21, 24, 28)"}
EXPERTS = "response_id,accuracy,completeness,clarity\ntrain-8,4,4,4\ntrain-9,4,4,4\n"
TOLD = Description(
    title="Are visit notes safe?",
    purpose="To learn how often a note says what *nobody* said.",
    responsible="Dr. Rao",
    contact="<https://ward.example> or [write](mailto:rao@ward.example)",
    consent="# What you agree to\n\n- Your ratings are kept.\n- You may stop at any time.",
    instructions="Read the source first.",
    guideline=(GuidelinePage("Accuracy", "| score | means |\n| --- | --- |\n| 1 | harm |"),),
)
SOURCE = "CHIEF COMPLAINT\nKnee pain.\nAssessment:\n" + "Osteoarthritis of the knee.\n" * 60


@pytest.fixture(scope="module")
def codes(study, tmp_path_factory):
    set_setting(study, "reference", "after_rating")
    describe(study, TOLD, "coordinator")
    scale = rubric()
    practice = [row(n, f"Practice {n}.", response_id=f"train-{n}") for n in (8, 9)]
    train(study, tmp_path_factory.mktemp("experts"), scale, practice, EXPERTS)
    other = {"context": SOURCE, "reference": "The gold note.", "checklist": "Pain mentioned."}
    rows = [row(n, f"Note {n}. No fever.", **other) for n in (1, 2)]
    return build(study, rows, ["dr-tour"], scale)


def test_no_view_of_the_rating_room_breaks_wcag_22_aa(page, server, study, codes, axe):
    found = {state: looked_at(page, axe) for state in _tour(page, server, codes["dr-tour"])}
    assert {state: broken for state, broken in found.items() if broken} == {}
    assert len(found) == 19
    with Session(study) as session:
        shown = session.exec(select(Submission.appearance).order_by(col(Submission.id)))
        assert [*shown] == ["light", "dark"]
    lock(study, "coordinator")
    page.reload()
    page.get_by_text("This study is locked").wait_for()
    assert looked_at(page, axe) == []


def looked_at(page: Page, axe: str) -> list[str]:
    """Return what is broken on a page at every size, light and dark, and where it is too wide."""
    found = []
    for size, scheme in LOOKS:
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.emulate_media(color_scheme=scheme)
        room = page.locator(".mj-room")
        if room.count():
            expect(room).to_have_css("background-color", PAPER[scheme])
        if size != PHONE:
            found += [f"{size} {scheme}: {one}" for one in violations(page, axe)]
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found.append(f"{size}: wider than the screen")
    return found


def _tour(page: Page, server: Server, code: str) -> Iterator[str]:
    """Go through every view, by keys, and name it once it is shown."""
    page.goto(server.address)
    page.locator("input[name=code]:focus").wait_for()
    yield "login"
    page.keyboard.type(code)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Before you begin").wait_for()
    yield "consent"
    _press(page, "I have read this and consent")
    wait_open(page)
    yield "training"
    page.keyboard.type("543")
    page.keyboard.press("Control+Enter")
    page.get_by_role("region", name="Your scores beside the expert's").wait_for()
    yield "feedback"
    _press(page, "Next response")
    wait_open(page)
    page.keyboard.type("444")
    page.keyboard.press("Control+Enter")
    _press(page, "See how the round went")
    page.get_by_role("heading", name="Training passed").wait_for()
    yield "outcome"
    _press(page, "Begin rating")
    wait_open(page)
    yield "rating"
    page.keyboard.press("g")
    page.get_by_role("complementary", name="About the study").wait_for()
    yield "guide"
    page.keyboard.press("Escape")
    page.get_by_role("complementary").wait_for(state="detached")
    page.keyboard.press("2")
    wait_saved(page)
    page.keyboard.press("s")
    yield "marking"
    page.keyboard.type("wsx")
    page.get_by_label("Goes with").wait_for()
    yield "marking the source"
    page.keyboard.type("m34nf")
    page.keyboard.press("Enter")  # out of the line that says what is odd
    wait_saved(page)
    yield "marked"
    dialog = page.get_by_role("dialog")
    for view, key in (("recusal", "r"), ("keys", "?")):
        page.keyboard.press(key)
        dialog.wait_for()
        yield view
        page.keyboard.press("Escape")
        dialog.wait_for(state="detached")
    yield from _overruled(page)
    yield from _out_of_reach(page)
    page.keyboard.press("Control+Enter")
    page.get_by_text("Submitted.").wait_for()
    wait_open(page)
    page.get_by_text("The gold note.").wait_for()
    yield "reference"
    page.evaluate("sessionStorage.setItem('medjury-worked', '1500')")
    page.keyboard.press("Enter")
    dialog.wait_for()
    yield "pause"
    page.keyboard.type("1")  # rates nothing
    page.keyboard.press("Enter")
    dialog.wait_for(state="detached")
    wait_open(page)
    page.keyboard.press("p")
    page.get_by_text("You rated this on").wait_for()
    page.get_by_text("Show reference").click()
    page.get_by_text("The gold note.").wait_for()
    yield "previous"
    page.keyboard.press("b")
    page.get_by_text("You rated this on").wait_for(state="detached")
    wait_open(page)
    page.keyboard.type("3")
    page.keyboard.press("Control+Enter")
    page.get_by_text("Not rated yet").wait_for()
    yield "something missing"
    page.keyboard.type("45")
    page.emulate_media(color_scheme="dark")
    page.keyboard.press("Control+Enter")
    wait_for_count(page, 2, 2)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Thank you").wait_for()
    yield "done"


def _press(page: Page, name: str) -> None:
    """Reach a button by Tab and press it."""
    button = page.get_by_role("button", name=name)
    button.wait_for()
    page.locator(".mj-room:not([data-quiet])").wait_for()
    for _ in range(40):
        if button.evaluate("one => one === document.activeElement"):
            break
        page.keyboard.press("Tab")
    expect(button).to_be_focused()
    page.keyboard.press("Enter")


def _overruled(page: Page) -> Iterator[str]:
    """Change the response in another window, and settle what is told of it here."""
    other = page.context.new_page()
    other.goto(page.url)
    wait_open(other)
    other.keyboard.press("a")
    wait_saved(other)
    other.close()
    page.keyboard.press("f")
    page.get_by_text("was changed in another window").wait_for()
    yield "overruled"
    _press(page, "Use what I had entered here")
    page.get_by_text("was changed in another window").wait_for(state="detached")
    wait_saved(page)


def _out_of_reach(page: Page) -> Iterator[str]:
    """Lose the study for a while."""
    page.context.set_offline(True)
    page.keyboard.press("a")
    page.get_by_text("The study cannot be reached just now").wait_for()
    yield "out of reach"
    page.context.set_offline(False)
    wait_saved(page)
