"""The rating page in a real browser against the real server."""

from pathlib import Path

import pytest
from kit.browsers import (
    chosen,
    new_context,
    sign_in,
    sign_in_by_keys,
    wait_for_count,
    wait_open,
    wait_saved,
)
from kit.rating_study import build, row, rubric, scores_of
from kit.servers import Server
from playwright.sync_api import Browser, BrowserContext, Page, expect
from sqlalchemy import Engine

pytestmark = pytest.mark.e2e

RATERS = ["dr-alpha", "dr-keys", "dr-fast", "dr-draft", "dr-two", "dr-mouse", "dr-power"]
RATERS += ["dr-stale", "dr-writes"]
CRITERIA = ("accuracy", "completeness", "clarity")
SEVEN = [f"criterion_{letter}" for letter in "abcdefg"]
STEPPED = [(-2, 2), (0, 10)]


@pytest.fixture(scope="module")
def codes(study: Engine) -> dict[str, str]:
    rows = [row(n, f"Note {n}: no fever, mild knee pain.") for n in range(1, 7)]
    codes = build(study, rows, RATERS, rubric(name="rubric_hidden"))
    for number, (low, high) in enumerate(STEPPED, 7):
        wide = row(number, "Short note.", benchmark=f"wide{number}")
        scale = rubric(*SEVEN, low=low, high=high, name=f"wide{number}")
        codes |= build(study, [wide], [f"dr-wide{low}"], scale)
    return codes


def test_a_wrong_code_is_refused_in_words(page: Page, server: Server) -> None:
    page.goto(server.address)
    page.get_by_label("Your sign-in code").fill("AAAA-BBBB-CCCC-DDDD")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("not valid")
    assert page.url.endswith("/login")


def test_signing_out_closes_the_page(page: Page, server: Server, codes: dict[str, str]) -> None:
    sign_in(page, server, codes["dr-alpha"])
    page.get_by_role("link", name="Sign out").click()
    page.wait_for_url("**/login")
    page.goto(server.address)
    page.wait_for_url("**/login")


def test_three_responses_are_rated_by_keyboard_alone(
    page: Page, server: Server, study: Engine, codes: dict[str, str]
) -> None:
    sign_in_by_keys(page, server, codes["dr-keys"])
    for number in range(3):
        assert chosen(page) == {}
        page.keyboard.type("54")
        page.keyboard.press("u")
        page.keyboard.type("23")
        page.keyboard.press("c")
        expect(page.get_by_label("Comment (")).to_be_focused()
        page.keyboard.type("seen at 4 pm")
        page.keyboard.press("Control+Enter")
        wait_for_count(page, number + 1, 6)
    expected = [(n, c, s) for n in (1, 2, 3) for c, s in zip(CRITERIA, (5, 2, 3), strict=True)]
    assert scores_of(study, "dr-keys") == expected


def test_no_key_is_lost_or_misplaced_however_fast_they_come(
    page: Page, server: Server, study: Engine, codes: dict[str, str]
) -> None:
    sign_in(page, server, codes["dr-fast"])
    strokes = ["435", "321", "552", "314", "443", "515"]
    for number, keys in enumerate(strokes, 1):
        page.keyboard.type(keys)
        page.keyboard.press("Control+Enter")
        page.keyboard.type("1")  # before the next response is there: belongs to none
        if number < len(strokes):
            wait_for_count(page, number, 6)
            for _ in chosen(page):
                page.keyboard.press("u")
    page.get_by_role("heading", name="Thank you").wait_for()
    expected = [
        (n, criterion, int(key))
        for n, keys in enumerate(strokes, 1)
        for criterion, key in zip(CRITERIA, keys, strict=True)
    ]
    assert scores_of(study, "dr-fast") == expected


def test_a_draft_goes_on_after_a_reload_and_on_a_second_device(
    page: Page, browser: Browser, server: Server, codes: dict[str, str]
) -> None:
    sign_in(page, server, codes["dr-draft"])
    page.keyboard.type("42")
    page.get_by_label("Comment (").fill("dose missing")
    wait_saved(page)
    page.reload()
    wait_open(page)
    assert chosen(page) == {"accuracy": 4, "completeness": 2}
    elsewhere = new_context(browser)
    second = elsewhere.new_page()
    sign_in(second, server, codes["dr-draft"])
    assert chosen(second) == {"accuracy": 4, "completeness": 2}
    expect(second.get_by_label("Comment (")).to_have_value("dose missing")
    elsewhere.close()


def test_a_stale_window_shows_what_is_stored_and_can_put_its_own_back(
    page: Page, browser: Browser, server: Server, study: Engine, codes: dict[str, str]
) -> None:
    """The other window is on another device: two of one browser are tried below."""
    elsewhere = new_context(browser)
    other = elsewhere.new_page()
    for one in (page, other):
        sign_in(one, server, codes["dr-two"])
    page.keyboard.type("43")
    wait_saved(page)
    other.keyboard.type("5")
    other.get_by_label("Comment (").fill("from the other window")
    told = other.get_by_role("alert").filter(has_text="was changed in another window")
    expect(told).to_contain_text("Accuracy 5")
    expect(told).to_contain_text("from the other window")
    assert chosen(other) == {"accuracy": 4, "completeness": 3}
    other.get_by_role("button", name="Use what I had entered here").click()
    expect(told).to_have_count(0)
    wait_saved(other)
    page.reload()
    wait_open(page)
    assert chosen(page) == {"accuracy": 5}
    expect(page.get_by_label("Comment (")).to_have_value("from the other window")
    assert scores_of(study, "dr-two") == []
    elsewhere.close()


def test_a_second_tab_that_is_stale_replaces_no_submitted_score_without_a_word(
    page: Page, context: BrowserContext, server: Server, study: Engine, codes: dict[str, str]
) -> None:
    sign_in(page, server, codes["dr-stale"])
    other = context.new_page()
    other.goto(server.address)
    wait_open(other)
    page.keyboard.type("543")
    page.keyboard.press("Control+Enter")
    wait_for_count(page, 1, 6)
    other.keyboard.type("111")
    told = other.get_by_role("alert").filter(has_text="was changed in another window")
    expect(told).to_contain_text("Accuracy 1, Completeness 1, Clarity 1")
    other.keyboard.type("2nu")
    other.keyboard.press("Control+Enter")
    expect(other.get_by_role("alert").filter(has_text="Choose first")).to_be_visible()
    assert chosen(other) == {"accuracy": 5, "completeness": 4, "clarity": 3}
    other.get_by_role("button", name="Keep what is stored").click()
    expect(told).to_have_count(0)
    expected = [(1, c, s) for c, s in zip(CRITERIA, (5, 4, 3), strict=True)]
    assert scores_of(study, "dr-stale") == expected


def test_a_comment_that_is_overruled_while_it_is_written_goes_on_and_can_be_kept(
    page: Page, context: BrowserContext, server: Server, codes: dict[str, str]
) -> None:
    sign_in(page, server, codes["dr-writes"])
    other = context.new_page()
    other.goto(server.address)
    wait_open(other)
    page.keyboard.type("54")
    wait_saved(page)
    other.keyboard.type("cthe dose of insulin")
    told = other.get_by_role("alert").filter(has_text="was changed in another window")
    expect(told).to_contain_text("the dose of insulin")
    other.keyboard.type(" is 5 mg")
    expect(other.get_by_label("Comment (")).to_have_value("the dose of insulin is 5 mg")
    assert chosen(other) == {"accuracy": 5, "completeness": 4}
    other.reload()
    expect(told).to_contain_text("the dose of insulin is 5 mg")
    other.get_by_role("button", name="Use what I had entered here").click()
    expect(other.get_by_label("Comment (")).to_have_value("the dose of insulin is 5 mg")
    assert chosen(other) == {}
    wait_saved(other)


def test_with_the_mouse_and_something_missing_nothing_is_sent(
    page: Page, server: Server, study: Engine, codes: dict[str, str]
) -> None:
    sign_in(page, server, codes["dr-mouse"])
    page.get_by_role("radio", name="2 Point 2 of completeness").check(force=True)
    page.get_by_role("button", name="Submit and next").click()
    expect(page.get_by_role("alert")).to_have_text("Not rated yet: Accuracy, Clarity")
    assert scores_of(study, "dr-mouse") == []
    page.keyboard.type("45")
    page.get_by_role("button", name="Submit and next").click()
    wait_for_count(page, 1, 6)
    expected = [("accuracy", 4), ("completeness", 2), ("clarity", 5)]
    assert sorted(s[1:] for s in scores_of(study, "dr-mouse")) == sorted(expected)


def test_a_power_cut_loses_nothing_and_the_page_goes_on(
    page: Page, server: Server, study: Engine, codes: dict[str, str]
) -> None:
    sign_in(page, server, codes["dr-power"])
    page.keyboard.type("4")
    wait_saved(page)
    server.stop()
    page.keyboard.type("35")
    page.keyboard.press("Control+Enter")
    server.start()
    wait_for_count(page, 1, 6)
    scores = zip(CRITERIA, (4, 3, 5), strict=True)
    assert scores_of(study, "dr-power") == [(1, c, s) for c, s in scores]


@pytest.mark.parametrize(("low", "high"), STEPPED)
def test_a_scale_without_digits_takes_numbers_and_steps_and_seven_criteria_fit(
    low: int, high: int, page: Page, server: Server, study: Engine, codes: dict[str, str]
) -> None:
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


def test_the_serving_process_carries_no_pandas(server: Server) -> None:
    maps = Path(f"/proc/{server.process.pid}/maps")
    if not maps.exists():
        pytest.skip("needs /proc")
    loaded = maps.read_text()
    assert [one for one in ("/pandas/", "/scipy/", "/pyarrow/") if one in loaded] == []
