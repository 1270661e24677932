"""The rating room in a real browser: texts, marks, scores and the way back; two tabs, a device, a power cut."""

import pytest
from kit.browsers import chosen, sign_in, wait_for_count, wait_open, wait_saved
from kit.rating_study import build, row, rubric, scores_of
from playwright.sync_api import Page, expect
from sqlmodel import Session, col, select

from data.importers.ratings import PointRow
from data.importers.rows import Origin
from data.person import OPERATOR
from data.points import CANNOT_TELL, MET, NOT_MET, Point, points_rubric
from data.schema import Remark, Span
from data.study.assignments import answer_flag, flags
from data.study.points import add_points
from data.study.settings import set_setting

pytestmark = pytest.mark.e2e

RATERS = ["dr-stale", "dr-writes", "dr-mouse", "dr-power", "dr-back", "dr-low", "dr-flag"]
CRITERIA = ("accuracy", "completeness", "clarity")
SEVEN = [f"criterion_{letter}" for letter in "abcdefg"]
STEPPED = [(-2, 2), (0, 10)]
POINTED = points_rubric()
POINTS = (
    "Says that the patient has no fever",
    "Says that the knee hurts mildly",
    "Recommends an antibiotic",
    "Asks for the temperature to be taken again if chills occur",
    "Names the day of the visit",
    "States that there is no injury, such as a fall or a twist of the knee in the last weeks",
    "Gives a diagnosis that the talk does not support",
    "Is written as a note for the record",
)
NOTE = "**Plan**\n\n| Drug | Dose |\n|---|---|\n| Aspirin | 100 mg |\n\nCome back **soon**. Bye 😀 word."
ARABIC = "المريض يتناول Aspirin 100 mg.\n- ضغط الدم 120/80"
SOURCE = "CHIEF COMPLAINT\nKnee pain.\n\nAssessment:\nOsteoarthritis of the knee.\nPlan:\nRest."
STRUCK = """([key, code, shiftKey]) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {
  key, code, shiftKey, bubbles: true, cancelable: true, composed: true}))"""
KEYBOARDS = [
    ([('"', "Digit3"), ("'", "Digit4"), ("(", "Digit5")], [3, 4, 5]),  # AZERTY
    ([("š", "Digit3"), ("č", "Digit4"), ("ř", "Digit5")], [3, 4, 5]),  # Czech
    ([("٢", "Digit2"), ("۳", "Digit3"), ("5", "Digit5")], [2, 3, 5]),  # Arabic, Persian, wide
]
# From the last place of some words, so many units on: half of an emoji may be left out.
SELECT = """(pane, [words, from, length]) => {
  const nodes = document.createTreeWalker(pane, NodeFilter.SHOW_TEXT);
  while (nodes.nextNode()) {
    const node = nodes.currentNode, at = node.data.lastIndexOf(words);
    if (at >= 0) getSelection().setBaseAndExtent(node, at + from, node, at + from + length);
  }
}"""


@pytest.fixture(scope="module")
def codes(study):
    rows = [row(n, f"Note {n}: no fever, mild knee pain.") for n in range(1, 4)]
    codes = build(study, rows, RATERS, rubric())
    for number, (low, high) in enumerate(STEPPED, 7):
        wide = row(number, "Short note.", benchmark=f"wide{number}")
        scale = rubric(*SEVEN, low=low, high=high, name=f"wide{number}")
        codes |= build(study, [wide], [f"dr-wide{low}"], scale)
    cases = [row(n, "Note.", benchmark="cases") for n in (9, 10)]
    build(study, cases, [], POINTED)
    points = [
        PointRow(
            Origin("points.csv", n),
            case.instance_id,
            Point(point=text, weight=7.125 + n, kind=kind, critical=n < 2),
        )
        for case in cases
        for n, (text, kind) in enumerate(zip(POINTS, ("must", "must_not") * 4, strict=True))
    ]
    add_points(study, "cases", points, POINTED, "operator")
    codes |= build(study, cases, ["dr-points"], POINTED)
    texts = [row(11, NOTE, context=ARABIC), row(12, NOTE, context=SOURCE)]
    return codes | build(study, texts, ["dr-text", "dr-changes", "dr-read", "dr-keys"], rubric())


def rate(page: Page, keys: str, done: int, total: int = 3) -> None:
    page.keyboard.type(keys)
    page.keyboard.press("Control+Enter")
    wait_for_count(page, done, total)


def test_a_second_tab_that_is_stale_replaces_no_submitted_score_without_a_word(
    page, context, server, study, codes
):
    sign_in(page, server, codes["dr-stale"])
    other = context.new_page()
    other.goto(server.address)
    wait_open(other)
    rate(page, "444", 1)
    other.evaluate("() => window.dispatchEvent(new Event('focus'))")  # it renews itself
    wait_for_count(other, 1, 3)
    assert chosen(other) == {}
    rate(page, "543", 2)
    other.keyboard.type("111")
    told = other.get_by_role("alert").filter(has_text="was changed in another window")
    expect(told).to_contain_text("Accuracy 1, Completeness 1, Clarity 1")
    other.keyboard.type("2nu")
    other.keyboard.press("Control+Enter")
    expect(other.get_by_role("alert").filter(has_text="Choose first")).to_be_visible()
    assert chosen(other) == {"accuracy": 5, "completeness": 4, "clarity": 3}
    other.get_by_role("button", name="Keep what is stored").click()
    expect(told).to_have_count(0)
    expected = zip(CRITERIA * 2, (4, 4, 4, 5, 4, 3), strict=True)
    assert [one[1:] for one in scores_of(study, "dr-stale")] == [*expected]


def test_a_comment_that_is_overruled_while_it_is_written_goes_on_and_can_be_kept(
    page, context, server, codes
):
    sign_in(page, server, codes["dr-writes"])
    other = context.new_page()
    other.goto(server.address)
    wait_open(other)
    page.keyboard.type("54")
    wait_saved(page)
    other.keyboard.type("cthe dose of insulin")
    told = other.get_by_role("alert").filter(has_text="was changed in another window")
    expect(told).to_contain_text("the dose")
    other.keyboard.type(" is 5 mg")
    expect(other.get_by_label("Comment (")).to_have_value("the dose of insulin is 5 mg")
    assert chosen(other) == {"accuracy": 5, "completeness": 4}
    other.reload()
    expect(told).to_contain_text("the dose of insulin is 5 mg")
    other.get_by_role("button", name="Use what I had entered here").click()
    expect(other.get_by_label("Comment (")).to_have_value("the dose of insulin is 5 mg")
    assert chosen(other) == {}
    wait_saved(other)


def test_with_the_mouse_and_something_missing_nothing_is_sent(page, server, study, codes):
    sign_in(page, server, codes["dr-mouse"])
    page.get_by_role("radio", name="2 Point 2 of completeness").check(force=True)
    page.get_by_role("button", name="Submit and next").click()
    expect(page.get_by_role("alert")).to_have_text("Not rated yet: Accuracy, Clarity")
    assert scores_of(study, "dr-mouse") == []
    page.keyboard.type("45")
    page.get_by_role("button", name="Submit and next").click()
    wait_for_count(page, 1, 3)
    expected = [("accuracy", 4), ("completeness", 2), ("clarity", 5)]
    assert sorted(s[1:] for s in scores_of(study, "dr-mouse")) == sorted(expected)


def test_a_power_cut_loses_nothing_and_the_page_goes_on(page, server, study, codes):
    sign_in(page, server, codes["dr-power"])
    page.keyboard.type("4")
    page.get_by_label("Comment (").fill("dose missing")
    wait_saved(page)
    page.reload()
    wait_open(page)
    assert chosen(page) == {"accuracy": 4}
    expect(page.get_by_label("Comment (")).to_have_value("dose missing")
    server.stop()
    page.keyboard.type("35")
    page.keyboard.press("Control+Enter")
    server.start()
    wait_for_count(page, 1, 3)
    scores = zip(CRITERIA, (4, 3, 5), strict=True)
    assert scores_of(study, "dr-power") == [(1, c, s) for c, s in scores]


def test_what_is_rated_can_be_changed_and_the_earlier_rating_stays(page, server, study, codes):
    sign_in(page, server, codes["dr-back"])
    rate(page, "345", 1)
    rate(page, "345", 2)
    page.keyboard.type("5")
    page.keyboard.press("p")
    page.get_by_text("You rated this on").wait_for()
    wait_open(page)
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".mj-response")).to_contain_text("Note 1")
    wait_open(page)
    page.get_by_role("radio", name="1 Point 1 of clarity").check(force=True)
    expect(page.get_by_role("status").filter(has_text="Changed, not submitted")).to_be_visible()
    page.keyboard.press("Control+Enter")
    expect(page.locator(".mj-response")).to_contain_text("Note 3")
    expect(page.get_by_role("radio", name="5 Point 5 of accuracy")).to_be_checked()
    found = [score for where, name, score in scores_of(study, "dr-back") if name == "clarity"]
    assert found == [5, 5, 1]
    assert page.url.rstrip("/") == server.address


def test_a_low_score_asks_why_and_without_enough_context_no_score_is_needed(
    page, server, study, codes
):
    sign_in(page, server, codes["dr-low"])
    page.keyboard.type("2")
    asked = page.get_by_text("Accuracy is low: write one line why (C), or mark where")
    expect(asked).to_be_visible()
    page.keyboard.type("33")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert").filter(has=asked)).to_be_visible()
    assert scores_of(study, "dr-low") == []
    rate(page, "cdose wrong", 1)
    rate(page, "na", 2)
    assert len(scores_of(study, "dr-low")) == len(CRITERIA)
    with Session(study) as session:
        kinds = session.exec(select(Remark.kind).order_by(col(Remark.id)))
        assert [*kinds] == ["not_enough_context", "names_author"]


def test_a_flag_asks_what_is_odd_and_its_answer_leads_back(page, server, study, codes):
    sign_in(page, server, codes["dr-flag"])
    page.keyboard.press("f")
    page.keyboard.type("No dose of 1 mg exists.")
    page.keyboard.press("Enter")
    rate(page, "444", 1)
    [flag] = [one for one in flags(OPERATOR, study) if one.text == "No dose of 1 mg exists."]
    answer_flag(study, "coordinator", flag.id, "It does: see the label.")
    page.reload()
    wait_open(page)
    expect(page.get_by_role("status").filter(has_text="It does")).to_contain_text("No dose of 1 mg")
    page.keyboard.press("j")
    expect(page.get_by_text("You rated this on")).to_be_visible()
    assert chosen(page) == dict.fromkeys(CRITERIA, 4)


@pytest.mark.parametrize(("low", "high"), STEPPED)
def test_a_scale_without_digits_takes_numbers_and_steps_and_seven_criteria_fit(
    low, high, page, server, study, codes
):
    sign_in(page, server, codes[f"dr-wide{low}"])
    expect(page.get_by_role("button", name="Submit and next")).to_be_in_viewport()
    page.keyboard.type(f"{low + 1}")
    page.keyboard.press("Enter")
    for _ in SEVEN[1:]:
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
    page.keyboard.press("c")
    expect(page.get_by_label("Comment (")).to_be_focused()
    page.keyboard.type("low")
    page.keyboard.press("Control+Enter")
    page.get_by_role("heading", name="Thank you").wait_for()
    assert [s[1:] for s in scores_of(study, f"dr-wide{low}")] == [(c, low + 1) for c in SEVEN]


def test_points_of_a_case_are_whole_at_every_size_and_take_a_key_each(page, server, study, codes):
    sent: list[str] = []
    page.on("response", lambda one: sent.append(one.text()) if "/room" in one.url else None)
    sign_in(page, server, codes["dr-points"])
    for width, height in ((820, 1180), (390, 844), (1366, 768)):
        page.set_viewport_size({"width": width, "height": height})
        for text in POINTS:
            expect(page.get_by_text(text)).to_have_count(1)
        button = page.get_by_role("button", name="Submit and next")
        button.scroll_into_view_if_needed()
        expect(button).to_be_in_viewport()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator(".mj-response").focus()
    given = "11231121"
    rate(page, given, 1, 2)
    page.keyboard.type(given.replace("3", "1"))
    page.keyboard.press("Control+Enter")
    page.get_by_role("heading", name="Thank you").wait_for()
    found = scores_of(study, "dr-points")
    first = {criterion: score for case, criterion, score in found if case == found[0][0]}
    assert [first[f"point_{n}"] for n in range(1, 9)] == [float(key) for key in given]
    assert {MET, NOT_MET, CANNOT_TELL} == set(map(int, given))
    assert "points" not in first  # a point nobody could tell
    for text in sent:
        for secret in ("7.125", "must_not", '"weight', '"worth', POINTED.name):
            assert secret not in text


def wait_highlighted(page: Page, name: str, *stretches: str) -> None:
    """Wait until just these stretches are painted with a highlight."""
    page.wait_for_function(
        """([name, stretches]) =>
        [...(CSS.highlights.get(name) ?? [])].map(String).join("|") === stretches.join("|")""",
        arg=[name, stretches],
    )


def test_a_text_is_laid_out_and_what_is_marked_in_it_is_stored_as_python_counts_it(
    page, server, study, codes
):
    sign_in(page, server, codes["dr-text"])
    response = page.locator(".mj-response")
    assert "|" not in response.inner_text()
    assert "**" not in response.inner_text()
    expect(response.get_by_role("cell", name="100 mg")).to_be_visible()
    for side, direction in (("source", "rtl"), ("response", "ltr")):
        line = page.locator(f".mj-{side} p").first
        assert line.evaluate("one => getComputedStyle(one).direction") == direction
    listed = page.get_by_role("list", name="Marked in the texts")
    response.locator("td", has_text="Aspirin").dblclick()
    page.get_by_role("button", name="Wrong").click()
    expect(listed).to_contain_text("“Aspirin”")
    text = response.locator(".mj-text")
    text.evaluate(SELECT, ["Bye 😀", 0, 5])  # half of the emoji
    page.get_by_role("button", name="Missing").click()
    expect(listed).to_contain_text("Bye ")
    page.keyboard.press("u")
    expect(listed).not_to_contain_text("Bye ")
    text.evaluate(SELECT, ["😀 word.", 1, 7])
    page.get_by_role("button", name="Missing").click()
    wait_highlighted(page, "mj-missing", "😀 word.")
    page.keyboard.press("v")
    expect(response.locator(".mj-syntax").first).to_be_visible()
    assert response.text_content() == NOTE
    wait_highlighted(page, "mj-wrong", "Aspirin")
    page.keyboard.press("v")
    wait_saved(page)
    page.reload()
    wait_open(page)
    expect(listed).to_contain_text("😀 word.")
    wait_highlighted(page, "mj-missing", "😀 word.")
    rate(page, "333", 1, 2)
    with Session(study) as session:
        spans = session.exec(select(Span)).all()
    assert [NOTE[one.start : one.end] for one in spans] == ["Aspirin", "😀 word."]


def test_a_mark_can_be_changed_and_removed_and_links_to_it_follow(page, server, codes):
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


def test_texts_are_searched_folded_and_enlarged_without_being_changed(page, server, codes):
    sign_in(page, server, codes["dr-read"])
    rate(page, "333", 1, 2)
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


def test_digits_rate_on_keyboards_of_other_countries_and_the_room_speaks_the_studys_language(
    page, server, study, codes
):
    set_setting(study, "language", "de")
    sign_in(page, server, codes["dr-keys"])
    for keys, given in KEYBOARDS:
        for key, code in keys:
            page.evaluate(STRUCK, [key, code, False])
        assert list(chosen(page).values()) == given
        page.evaluate(STRUCK, ["!", "Digit1", True])  # with Shift it is no digit
        assert list(chosen(page).values()) == given
        for _ in given:
            page.keyboard.press("u")
    expect(page.get_by_role("button", name="Absenden und weiter")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("bewerten und zum nächsten Kriterium")
    set_setting(study, "language", "en")
