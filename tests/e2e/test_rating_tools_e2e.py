"""Marks, flags, recusal, the way back and the pause, in a real browser."""

import pytest
from kit.browsers import sign_in, sign_in_by_keys, wait_for_count, wait_open, wait_saved
from kit.rating_study import build, row, rubric, scores_of
from kit.servers import Server
from playwright.sync_api import Page, expect
from sqlalchemy import Engine, text
from sqlmodel import Session, select

from data.schema import Assignment, Rating, Remark, Span
from data.study.settings import set_setting

pytestmark = pytest.mark.e2e

RATERS = ["dr-keys", "dr-mouse", "dr-back", "dr-low", "dr-none", "dr-pause", "dr-read", "dr-links"]
RATERS += ["dr-changes", "dr-remarks"]
# Emoji of two UTF-16 units, an accent that combines, a control character shown as its picture,
# returns that are not shown, and text from right to left.
ODD = "Ok 😀👩‍👩‍👧 cafe\u0301.\r\n\x07Bell rang \U0001d4b3 twice.\r\n\u202eRTL\u202c ends. <b>Last</b> 😀 word."
SOURCE = "CHIEF COMPLAINT\nKnee pain.\n\nAssessment:\nOsteoarthritis of the knee.\nPlan:\nRest."


@pytest.fixture(scope="module")
def codes(study: Engine) -> dict[str, str]:
    set_setting(study, "reference", "after_rating")
    rows = [row(1, ODD, context=SOURCE)]
    rows += [row(n, f"Note {n}. No fever. Knee pain.", context=SOURCE) for n in range(2, 6)]
    rows[4] = row(5, "Note 5.", reference="The gold note.")
    return build(study, rows, RATERS, rubric())


def marks(study: Engine, rater: int) -> list[tuple[str, str, str]]:
    """Return what a rater marked: criterion, error, and the stretch cut from the text as stored."""
    query = select(Span).join(Assignment).where(Assignment.rater == rater).order_by(text("span.id"))
    with Session(study) as session:
        found = list(session.exec(query))
    return [(one.criterion, one.error, ODD[one.start : one.end]) for one in found]


def remarks(study: Engine, rater: int) -> list[tuple[str, str]]:
    query = select(Remark.kind, Remark.text).join(Assignment).where(Assignment.rater == rater)
    with Session(study) as session:
        return [(kind, told) for kind, told in session.exec(query)]


def wait_highlighted(page: Page, name: str, *stretches: str) -> None:
    """Wait until just these stretches are painted with a highlight."""
    page.wait_for_function(
        """([name, stretches]) =>
        [...(CSS.highlights.get(name) ?? [])].map(String).join("|") === stretches.join("|")""",
        arg=[name, stretches],
    )


def test_three_responses_without_a_mouse_with_a_mark_a_flag_and_a_recusal(
    page: Page, server: Server, study: Engine, codes: dict[str, str]
) -> None:
    sign_in_by_keys(page, server, codes["dr-keys"])
    for key in ("2", "s", "ArrowDown", "w", "s", "ArrowRight", "Shift+ArrowRight", "o"):
        page.keyboard.press(key)
    page.keyboard.type("45f")
    page.keyboard.press("Control+Enter")
    wait_for_count(page, 1, 5)
    page.keyboard.press("r")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog").get_by_role("alert")).to_have_text("Please choose a reason")
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    wait_for_count(page, 1, 4)
    for number in (2, 3):
        page.keyboard.type("543")
        page.keyboard.press("Control+Enter")
        wait_for_count(page, number, 4)
    assert [scores[0] for scores in scores_of(study, "dr-keys")] == [1] * 3 + [3] * 3 + [4] * 3
    assert marks(study, 1) == [
        ("accuracy", "wrong", "\x07Bell rang \U0001d4b3 twice."),
        ("completeness", "unsupported", "RTL\u202c ends"),
    ]
    assert remarks(study, 1) == [("flag", ""), ("recused", "Outside my specialty")]


def test_a_stretch_selected_with_the_mouse_is_stored_as_python_counts_it(
    page: Page, server: Server, study: Engine, codes: dict[str, str]
) -> None:
    sign_in(page, server, codes["dr-mouse"])
    page.locator(".mj-response .mj-text").evaluate(
        """pane => { const words = pane.querySelector("p:last-of-type").lastChild, at = words.data.indexOf("Last");
        getSelection().setBaseAndExtent(words, at, words, at + 8); }"""  # half of the emoji
    )
    page.get_by_role("button", name="Missing").click()
    expect(page.get_by_role("list", name="Marked in the texts")).to_contain_text("</b> ")
    page.keyboard.press("u")
    expect(page.get_by_role("list", name="Marked in the texts")).to_be_hidden()
    page.locator(".mj-response .mj-text").evaluate(
        """pane => { const words = pane.querySelector("p:last-of-type").lastChild, at = words.data.lastIndexOf("\\u{1F600}");
        getSelection().setBaseAndExtent(words, at + 1, words, words.length); }"""
    )
    page.get_by_role("button", name="Missing").click()
    wait_saved(page)
    wait_highlighted(page, "mj-missing", "😀 word.")
    page.reload()
    wait_open(page)
    expect(page.get_by_role("list", name="Marked in the texts")).to_contain_text("😀 word.")
    wait_highlighted(page, "mj-missing", "😀 word.")
    page.keyboard.type("343")
    page.keyboard.press("Control+Enter")
    wait_for_count(page, 1, 5)
    assert marks(study, 2) == [("accuracy", "missing", "😀 word.")]


def test_what_is_rated_can_be_changed_and_the_earlier_rating_stays(
    page: Page, server: Server, study: Engine, codes: dict[str, str]
) -> None:
    sign_in(page, server, codes["dr-back"])
    for number in (1, 2):
        page.keyboard.type("345")
        page.keyboard.press("Control+Enter")
        wait_for_count(page, number, 5)
    page.keyboard.type("5")
    page.keyboard.press("p")
    page.get_by_text("You rated this on").wait_for()
    wait_open(page)
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".mj-response")).to_contain_text("Bell rang")
    wait_open(page)
    page.get_by_role("radio", name="1 Point 1 of clarity").check(force=True)
    expect(page.get_by_role("status").filter(has_text="Changed, not submitted")).to_be_visible()
    page.keyboard.press("Control+Enter")
    expect(page.locator(".mj-response")).to_contain_text("Note 3.")
    expect(page.get_by_role("radio", name="5 Point 5 of accuracy")).to_be_checked()
    found = [score for where, name, score in scores_of(study, "dr-back") if name == "clarity"]
    assert found == [5, 5, 1]
    assert page.url.rstrip("/") == server.address


def test_a_low_score_asks_why_at_once_and_before_it_is_taken(
    page: Page, server: Server, study: Engine, codes: dict[str, str]
) -> None:
    sign_in(page, server, codes["dr-low"])
    page.keyboard.type("2")
    asked = "Accuracy is low: write one line why (C), or mark where in the response (S)."
    expect(page.get_by_role("status").filter(has_text=asked)).to_be_visible()
    page.keyboard.type("33")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert")).to_have_text(asked)
    assert scores_of(study, "dr-low") == []
    page.keyboard.type("cdose wrong")
    page.keyboard.press("Control+Enter")
    wait_for_count(page, 1, 5)


def test_without_enough_context_no_score_is_needed(
    page: Page, server: Server, study: Engine, codes: dict[str, str]
) -> None:
    sign_in(page, server, codes["dr-none"])
    page.keyboard.press("n")
    page.keyboard.press("a")
    page.keyboard.press("Control+Enter")
    wait_for_count(page, 1, 5)
    assert scores_of(study, "dr-none") == []
    assert [one[0] for one in remarks(study, 5)] == ["not_enough_context", "names_author"]


def test_a_pause_is_offered_and_the_reference_comes_after_the_rating(
    page: Page, server: Server, study: Engine, codes: dict[str, str]
) -> None:
    sign_in(page, server, codes["dr-pause"])
    for number in range(1, 5):
        page.keyboard.type("345")
        if number == 2:
            page.evaluate("sessionStorage.setItem('medjury-worked', '1500')")
        page.keyboard.press("Control+Enter")
        wait_for_count(page, number, 5)
        if number == 2:
            expect(page.get_by_role("dialog", name="You have worked 25 minutes")).to_be_visible()
            page.keyboard.type("1")
            page.get_by_role("button", name="Continue").press("Enter")
            page.get_by_role("dialog").wait_for(state="detached")
    assert page.get_by_text("The gold note.").count() == 0
    page.keyboard.type("345")
    page.keyboard.press("Control+Enter")
    page.get_by_text("The gold note.").wait_for()
    expect(page.get_by_text("Submitted.")).to_be_visible()
    wait_open(page)
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Thank you").wait_for()
    page.get_by_role("button", name="Previous").click()
    expect(page.get_by_text("You rated this on")).to_be_visible()
    assert [one[2] for one in scores_of(study, "dr-pause")] == [3, 4, 5] * 5


def test_a_mark_in_the_source_goes_with_one_in_the_response_and_says_how_bad_it_is(
    page: Page, server: Server, study: Engine, codes: dict[str, str]
) -> None:
    sign_in_by_keys(page, server, codes["dr-links"])
    page.keyboard.type("25s")  # the mark is for what is low
    for key in ("Tab", "Tab", "m", "a", "j", "Tab"):
        page.keyboard.press(key)
    expect(page.get_by_label("Note on the mark")).to_be_focused()
    page.keyboard.type("5 mg was said")
    page.get_by_role("button", name="Wrong").press("Enter")
    page.keyboard.press("s")
    page.keyboard.press("x")
    page.keyboard.press("ArrowDown")
    for _ in range(3):
        page.keyboard.press("Tab")
    expect(page.get_by_label("Goes with")).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.get_by_role("button", name="Missing").press("Enter")
    wait_highlighted(page, "mj-missing", "Knee pain.")
    listed = page.get_by_role("list", name="Marked in the texts").get_by_role("listitem")
    expect(listed).to_contain_text(
        ["Wrong Accuracy (major, 5 mg was said)", "Missing Clarity (in the source, with 1)"]
    )
    wait_saved(page)
    page.reload()
    wait_open(page)
    expect(listed).to_contain_text(["5 mg was said", "in the source, with 1"])
    page.keyboard.type("4")
    page.keyboard.press("Control+Enter")
    wait_for_count(page, 1, 5)
    query = select(Span).join(Assignment).where(Assignment.rater == 8).order_by(text("span.id"))
    with Session(study) as session:
        first, second = session.exec(query)
    assert (first.side, first.severity, first.note) == ("response", "major", "5 mg was said")
    assert (second.side, second.error, second.criterion) == ("source", "missing", "clarity")
    assert SOURCE[second.start : second.end] == "Knee pain."
    assert (first.linked, second.linked) == (None, 0)


def test_a_mark_can_be_changed_and_removed_and_links_to_it_follow(
    page: Page, server: Server, codes: dict[str, str]
) -> None:
    sign_in(page, server, codes["dr-changes"])
    page.keyboard.type("swswsx")
    page.get_by_label("Goes with").select_option(index=2)
    page.get_by_role("button", name="Missing").click()
    listed = page.get_by_role("list", name="Marked in the texts").get_by_role("listitem")
    expect(listed).to_have_count(3)
    expect(listed.last).to_contain_text("with 2")
    page.get_by_role("button", name="Change mark 2").click()
    page.get_by_label("Severity of the mark").select_option("minor")
    page.get_by_role("button", name="Unclear").click()
    expect(listed.nth(1)).to_contain_text("Unclear Accuracy (minor)")
    page.get_by_role("button", name="Remove mark: Wrong").first.click()
    expect(listed).to_have_count(2)
    expect(listed.last).to_contain_text("with 1")
    page.get_by_role("button", name="Remove mark: Unclear").click()
    expect(listed.last).not_to_contain_text("with")


def test_what_is_said_of_a_criterion_is_kept_apart_from_what_is_said_of_the_whole(
    page: Page, server: Server, study: Engine, codes: dict[str, str]
) -> None:
    sign_in(page, server, codes["dr-remarks"])
    page.get_by_label("Comment (").fill("good on the whole")
    page.get_by_label("What the comment is about").select_option("On clarity")
    expect(page.get_by_label("Comment on clarity")).to_be_focused()
    page.keyboard.type("long-winded")
    wait_saved(page)
    page.reload()
    wait_open(page)
    expect(page.get_by_label("Comment (")).to_have_value("good on the whole")
    page.keyboard.type("452")
    page.keyboard.press("Control+Enter")
    wait_for_count(page, 1, 5)
    query = select(Rating.criterion, Rating.comment).where(Rating.rater == 10)
    with Session(study) as session:
        said = dict(list(session.exec(query)))
    assert said == {"accuracy": "", "completeness": "", "clarity": "long-winded"}


def test_texts_are_searched_folded_and_enlarged_without_being_changed(
    page: Page, server: Server, codes: dict[str, str]
) -> None:
    sign_in(page, server, codes["dr-read"])
    source = page.locator(".mj-source")
    assert source.evaluate("pane => pane.textContent") == SOURCE
    headings = ["CHIEF COMPLAINT\n", "Assessment:\n", "Plan:\n"]
    assert source.locator("summary").all_text_contents() == headings
    source.locator("summary").nth(1).press("Enter")
    expect(source.get_by_text("Osteoarthritis")).to_be_hidden()
    page.keyboard.press("/")
    expect(page.get_by_placeholder("Find in the texts")).to_be_focused()
    page.keyboard.type("knee")
    count = page.get_by_role("search").get_by_role("status")
    expect(count).to_have_text("1 of 2")
    page.keyboard.press("Enter")
    expect(count).to_have_text("2 of 2")
    expect(source.get_by_text("Osteoarthritis")).to_be_visible()
    wait_highlighted(page, "mj-here", "knee")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Larger text").click()
    page.reload()
    wait_open(page)
    page.wait_for_function(
        "() => parseFloat(getComputedStyle(document.querySelector('.mj-response')).fontSize) > 15"
    )
