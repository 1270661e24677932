"""What the browser keeps while the study is away: of whom, for how long, and nothing else."""

import json

import pytest
from kit.browsers import (
    chosen,
    sign_in,
    wait_for_count,
    wait_open,
    wait_saved,
)
from kit.cut_line import CutLine
from kit.rating_study import DIALOGUE, FULL, build, codes_of, row, rubric, scores_of
from playwright.sync_api import BrowserContext, Page, expect
from sqlalchemy import Engine
from sqlmodel import Session, select

from data.schema import Assignment
from data.study.assignments import recuse
from data.study.settings import lock
from data.study.verify import verify

pytestmark = pytest.mark.e2e

NOTES = """() => Object.entries(localStorage).filter(([key]) => key.startsWith("medjury"))
  .map(([, note]) => JSON.parse(note))"""
FILL = """() => { for (let size = 1 << 22; size > 0; size >>= 1)
  try { for (let n = 0; ; n += 1) localStorage.setItem(`${size}-${n}`, "x".repeat(size)); } catch {} }"""
REMARK = "the dose is 2 mg"
PORTALS = [
    ("503 Service Unavailable", b"", ""),
    ("200 OK", b"<html>Accept our terms</html>", "Content-Type: text/html\r\n"),
    ("302 Found", b"", "Location: http://127.0.0.1:9/portal\r\n"),
    ("403 Forbidden", b"Blocked", ""),
    ("404 Not Found", b"", ""),
    ("511 Network Authentication Required", b"", ""),
]
RATERS = [f"dr-{n}" for n in range(18)]


@pytest.fixture(scope="module")
def codes(study):
    rows = [row(n, f"Note {n}: no fever, knee pain.") for n in range(1, 4)]
    return build(study, rows, RATERS, rubric())


@pytest.fixture
def line(server):
    line = CutLine(server.port).start()
    yield line
    line.kill()


def write(page: Page, text: str) -> None:
    page.locator("form.likert textarea").focus()
    page.keyboard.press("Control+End")
    page.keyboard.type(text)


def comment(page: Page) -> str:
    return page.locator("form.likert textarea").input_value()


def open_tab(context: BrowserContext, line: CutLine) -> Page:
    page = context.new_page()
    page.goto(line.address)
    wait_open(page)
    return page


def wait_away(page: Page, text: str = "nothing you entered is lost") -> None:
    page.get_by_role("alert").filter(has_text=text).wait_for()


def drafted(study: Engine, rater: str) -> tuple[object, object]:
    with Session(study) as session:
        code = codes_of(study, rater)[0]
        kept = session.exec(select(Assignment.draft).where(Assignment.code == code)).one()
    return kept.get("scores", {}), kept.get("comment", "")


def test_two_tabs_keep_what_was_entered_in_each_while_the_line_was_cut(
    page, context, line, study, codes
):
    sign_in(page, line, codes["dr-0"])
    other = open_tab(context, line)
    line.kill()
    page.keyboard.type("42")
    write(page, "in the first")
    wait_away(page)
    write(other, "in the second")
    wait_away(other)
    page.close()
    line.start()
    wait_saved(other)
    assert drafted(study, "dr-0") == ({}, "in the second")
    other.reload()
    other.get_by_text("in the first").wait_for()
    assert comment(other) == "in the second"
    other.get_by_role("button", name="Use what I had entered here").click()
    wait_saved(other)
    expect(other.get_by_text("in the first")).to_have_count(0)
    other.wait_for_function(f"({NOTES})().length === 0")
    assert drafted(study, "dr-0") == ({"accuracy": 4, "completeness": 2}, "in the first")


def test_two_tabs_cut_in_turn_lose_neither_ones_entries(page, context, line, study, codes):
    sign_in(page, line, codes["dr-1"])
    other = open_tab(context, line)
    write(page, "one ")
    wait_saved(page)
    line.kill()
    write(other, "two ")
    line.start()
    other.get_by_role("button", name="Use what I had entered here").wait_for()
    assert drafted(study, "dr-1") == ({}, "one ")
    line.kill()
    other.get_by_role("button", name="Use what I had entered here").click()
    write(other, "four")
    line.start()
    wait_saved(other)
    assert drafted(study, "dr-1") == ({}, "two four")
    write(page, "five")
    page.get_by_text("“one five”").wait_for()
    page.get_by_role("button", name="Keep what is stored").click()
    assert comment(page) == "two four"


def test_who_signs_out_with_entries_not_stored_is_asked_and_else_they_are_stored_first(
    page, line, study, codes
):
    sign_in(page, line, codes["dr-3"])
    line.kill()
    write(page, REMARK)
    page.get_by_role("link", name="Sign out").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Stay").click()
    assert comment(page) == REMARK
    line.start()
    wait_saved(page)
    assert drafted(study, "dr-3") == ({}, REMARK)
    line.kill()
    write(page, " twice")
    page.get_by_role("link", name="Sign out").click()
    dialog.get_by_role("button", name="Sign out and lose it").wait_for()
    line.start()
    dialog.get_by_role("button", name="Sign out and lose it").click()
    page.wait_for_url("**/login")
    assert page.evaluate(NOTES) == []
    sign_in(page, line, codes["dr-3"])
    write(page, " more")
    page.get_by_role("link", name="Sign out").click()
    page.wait_for_url("**/login")
    assert str(drafted(study, "dr-3")[1]).endswith(" more")
    assert page.evaluate(NOTES) == []


def test_another_clinician_in_the_same_browser_neither_sees_nor_sends_the_firsts_notes(
    page, context, line, study, codes
):
    sign_in(page, line, codes["dr-4"])
    page.keyboard.type("4")
    wait_saved(page)
    context.clear_cookies()
    write(page, REMARK)
    wait_away(page, "You are signed out")
    other = context.new_page()
    taken: list[int] = []
    context.on(
        "response",
        lambda one: taken.append(one.status) if REMARK in (one.request.post_data or "") else None,
    )
    sign_in(other, line, codes["dr-5"])
    page.keyboard.type(".")
    other.keyboard.type("5")
    wait_saved(other)
    page.wait_for_timeout(3500)  # the first page asks again
    assert set(taken) == {401}
    assert REMARK not in other.content()
    assert drafted(study, "dr-5") == ({"accuracy": 5}, "")
    assert drafted(study, "dr-4") == ({"accuracy": 4}, "")
    page.close()
    other.get_by_role("link", name="Sign out").click()
    other.wait_for_url("**/login")
    sign_in(other, line, codes["dr-4"])
    assert comment(other) == REMARK + "."
    wait_saved(other)
    assert drafted(study, "dr-4") == ({"accuracy": 4}, REMARK + ".")
    assert other.evaluate(NOTES) == []


def test_signing_in_again_in_another_tab_stores_what_was_typed_since_the_session_ended(
    page, context, line, study, codes
):
    sign_in(page, line, codes["dr-6"])
    context.clear_cookies()
    page.keyboard.type("425")
    write(page, REMARK)
    page.keyboard.press("Control+Enter")
    wait_away(page, "You are signed out")
    line.reset()
    page.wait_for_timeout(3000)  # Streamlit's own line comes back
    wait_away(page, "You are signed out")
    other = context.new_page()
    sign_in(other, line, codes["dr-6"])
    other.close()
    wait_for_count(page, 1, 3)
    assert [score for _, _, score in scores_of(study, "dr-6")] == [*FULL.values()]


def test_a_full_browser_keeps_the_page_and_says_that_it_must_stay_open(page, line, study, codes):
    sign_in(page, line, codes["dr-7"])
    page.evaluate(FILL)
    line.kill()
    page.keyboard.type("4")
    write(page, REMARK)
    wait_away(page, "do not close or reload this page")
    page.wait_for_timeout(1000)
    line.start()
    wait_saved(page)
    assert drafted(study, "dr-7") == ({"accuracy": 4}, REMARK)


def test_what_a_page_sent_and_arrives_after_it_was_loaded_again_is_no_other_pages(
    page, line, study, codes
):
    sign_in(page, line, codes["dr-16"])
    page.keyboard.type("42")
    wait_saved(page)
    line.hold()
    write(page, "held ")
    page.wait_for_timeout(400)
    write(page, "and more")
    page.reload()
    wait_open(page)
    page.wait_for_timeout(400)
    assert len(line.held) >= 2
    line.release()
    wait_saved(page)
    write(page, ".")
    wait_saved(page)
    assert page.get_by_role("button", name="Use what I had entered here").count() == 0
    page.wait_for_function(f"({NOTES})().length === 0")
    scores = {"accuracy": 4, "completeness": 2}
    assert drafted(study, "dr-16") == (scores, "held and more.")


@pytest.mark.slow
def test_a_line_that_swallows_everything_is_given_up_and_all_is_sent_over_another(
    page, line, study, codes
):
    sign_in(page, line, codes["dr-17"])
    line.hang()
    page.keyboard.type("425")
    write(page, REMARK)
    wait_away(page)
    line.start()
    wait_saved(page)
    assert drafted(study, "dr-17") == (FULL, REMARK)


def test_giving_back_outlives_a_reload_and_what_is_given_back_meanwhile_is_not_rated(
    page, line, study, codes
):
    sign_in(page, line, codes["dr-10"])
    line.kill()
    page.keyboard.press("r")
    page.get_by_role("radio", name="I know this patient").check()
    page.get_by_role("button", name="Give it back").click()
    wait_away(page)
    line.start()
    page.reload()
    wait_for_count(page, 0, 2)
    assert page.evaluate(NOTES) == []
    line.kill()
    page.keyboard.type("425")
    page.keyboard.press("Control+Enter")
    wait_away(page, "Not stored yet")
    recuse(study, RATERS.index("dr-10") + 1, codes_of(study, "dr-10")[1], "on the phone")
    line.start()
    page.get_by_role("alert").filter(has_text="not assigned to you").wait_for()
    assert scores_of(study, "dr-10") == []
    page.reload()
    wait_open(page)
    assert chosen(page) == {}


def test_a_note_holds_what_was_entered_and_nothing_of_the_texts(page, line, study, codes):
    sign_in(page, line, codes["dr-12"])
    line.kill()
    for key in ["4", "s", "ArrowDown", "w", "f"]:
        page.keyboard.press(key)
    write(page, REMARK)
    wait_away(page)
    stored = json.dumps(page.evaluate("({...localStorage})")) + json.dumps(
        page.evaluate("({...sessionStorage})")
    )
    assert REMARK in stored
    words = ["fever", "knee", "Write the note", *DIALOGUE.split("\n")]
    assert [one for one in words if one in stored] == []
    (note,) = page.evaluate(NOTES)
    assert note.keys() == {"tag", "at", "told", "aside"}
    page.clock.set_fixed_time("2001-01-01")  # a clock that is set back loses nothing
    write(page, "!")
    page.wait_for_function(f"JSON.stringify(({NOTES})()).includes({json.dumps(REMARK + '!')})")
    line.start()
    page.reload()
    wait_open(page)
    assert (chosen(page), comment(page)) == ({"accuracy": 4}, REMARK + "!")
    wait_saved(page)
    assert drafted(study, "dr-12") == ({"accuracy": 4}, REMARK + "!")


def test_what_somebody_in_between_answers_is_no_answer(page, line, study, codes):
    sign_in(page, line, codes["dr-13"])
    written = ""
    for status, body, headers in PORTALS:
        line.say(status, body, headers)
        write(page, status)
        wait_away(page)
        page.wait_for_timeout(500)
        line.recover()
        wait_saved(page)
        written += status
        assert (status, drafted(study, "dr-13")) == (status, ({}, written))


def test_a_study_that_is_away_while_all_is_typed_and_submitted_gets_it_once(
    page, line, study, codes
):
    sign_in(page, line, codes["dr-14"])
    page.keyboard.type("4")
    wait_saved(page)
    line.say("503 Service Unavailable")
    page.keyboard.type("25c" + REMARK)
    wait_away(page)
    assert chosen(page) == FULL
    page.keyboard.press("Control+Enter")
    wait_away(page, "Not stored yet")
    line.recover()
    wait_for_count(page, 1, 3)
    assert [score for _, _, score in scores_of(study, "dr-14")] == [*FULL.values()]
    assert drafted(study, "dr-14") == (FULL, REMARK)


def test_keys_struck_while_a_late_response_appears_rate_nothing(page, line, study, codes):
    sign_in(page, line, codes["dr-15"])
    line.kill()
    page.keyboard.type("425c")
    page.keyboard.press("Control+Enter")
    page.wait_for_timeout(1500)
    line.start()
    for _ in range(60):
        page.keyboard.type("f4")
        page.wait_for_timeout(60)
    wait_for_count(page, 1, 3)
    assert chosen(page) == {}
    assert page.locator("[data-flag][aria-pressed=true]").count() == 0
    assert len(scores_of(study, "dr-15")) == len(FULL)
    assert verify(study).findings == ()


def test_a_study_locked_meanwhile_takes_nothing_and_the_page_says_so(page, line, study, codes):
    """It comes last: from here on nothing can be rated."""
    sign_in(page, line, codes["dr-8"])
    line.kill()
    page.keyboard.type("425")
    write(page, REMARK)
    page.keyboard.press("Control+Enter")
    wait_away(page, "Not stored yet")
    lock(study, "the coordinator")
    line.start()
    page.get_by_role("alert").filter(has_text="The study is locked").wait_for()
    assert comment(page) == REMARK
    assert scores_of(study, "dr-8") == []
    page.reload()
    page.get_by_text("can no longer be made or changed").wait_for()
