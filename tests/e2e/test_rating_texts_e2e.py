"""How texts are shown, what a flag says, and keyboards of other countries, in a browser."""

import pytest
from kit.browsers import chosen, sign_in, wait_for_count, wait_open, wait_saved
from kit.rating_study import build, row, rubric
from kit.servers import Server
from playwright.sync_api import Page, expect
from sqlalchemy import Engine
from sqlmodel import Session, select

from data.person import OPERATOR
from data.schema import Remark, Span
from data.study.assignments import answer_flag, flags
from data.study.settings import set_setting

pytestmark = pytest.mark.e2e

NOTE = "**Plan**\n\n| Drug | Dose |\n|---|---|\n| Aspirin | 100 mg |\n\nCome back **soon**. Bye."
ARABIC = "المريض يتناول Aspirin 100 mg.\n- ضغط الدم 120/80"
STRUCK = """([key, code, shiftKey]) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {
  key, code, shiftKey, bubbles: true, cancelable: true, composed: true}))"""


@pytest.fixture(scope="module")
def codes(study: Engine) -> dict[str, str]:
    rows = [row(n, NOTE, context=ARABIC) for n in range(1, 4)]
    return build(study, rows, ["dr-text", "dr-flag", "dr-keys", "dr-tabs"], rubric())


def test_a_text_is_laid_out_and_its_marks_and_findings_hold_as_typed(
    page: Page, server: Server, study: Engine, codes: dict[str, str]
) -> None:
    sign_in(page, server, codes["dr-text"])
    response = page.locator(".mj-response")
    assert "|" not in response.inner_text()
    assert "**" not in response.inner_text()
    expect(response.get_by_role("cell", name="100 mg")).to_be_visible()
    page.locator(".mj-response td", has_text="Aspirin").dblclick()
    page.get_by_role("button", name="Wrong").click()
    expect(page.get_by_role("list", name="Marked in the texts")).to_contain_text("“Aspirin”")
    page.keyboard.press("v")
    expect(page.locator(".mj-response .mj-syntax").first).to_be_visible()
    assert response.text_content() == NOTE
    painted = page.evaluate("() => [...CSS.highlights.get('mj-wrong')].map(String)")
    assert painted == ["Aspirin"]
    page.keyboard.press("v")
    wait_saved(page)
    page.keyboard.type("333")
    page.keyboard.press("Control+Enter")
    wait_for_count(page, 1, 3)
    with Session(study) as session:
        span = session.exec(select(Span)).one()
    assert NOTE[span.start : span.end] == "Aspirin"


def test_a_text_from_right_to_left_stands_on_the_right(
    page: Page, server: Server, codes: dict[str, str]
) -> None:
    sign_in(page, server, codes["dr-text"])
    line = page.locator(".mj-source p").first
    assert line.evaluate("one => getComputedStyle(one).direction") == "rtl"
    assert (
        page.locator(".mj-response p").first.evaluate("one => getComputedStyle(one).direction")
        == "ltr"
    )


def test_a_flag_asks_what_is_odd_and_its_answer_leads_back(
    page: Page, server: Server, study: Engine, codes: dict[str, str]
) -> None:
    sign_in(page, server, codes["dr-flag"])
    page.keyboard.press("f")
    page.keyboard.type("No dose of 1 mg exists.")
    page.keyboard.press("Enter")
    page.keyboard.type("444")
    page.keyboard.press("Control+Enter")
    wait_for_count(page, 1, 3)
    with Session(study) as session:
        assert [one.text for one in session.exec(select(Remark))] == ["No dose of 1 mg exists."]
    flag = flags(OPERATOR, study)[0]
    answer_flag(study, "coordinator", flag.id, "It does: see the label.")
    page.reload()
    wait_open(page)
    expect(page.get_by_role("status").filter(has_text="It does")).to_contain_text("No dose of 1 mg")
    page.keyboard.press("j")
    expect(page.get_by_text("You rated this on")).to_be_visible()
    assert chosen(page) == {"accuracy": 4, "completeness": 4, "clarity": 4}


@pytest.mark.parametrize(
    ("keys", "given"),
    [
        ([('"', "Digit3"), ("'", "Digit4"), ("(", "Digit5")], [3, 4, 5]),  # AZERTY
        ([("š", "Digit3"), ("č", "Digit4"), ("ř", "Digit5")], [3, 4, 5]),  # Czech
        ([("٢", "Digit2"), ("۳", "Digit3"), ("5", "Digit5")], [2, 3, 5]),  # Arabic, Persian, wide
    ],
)
def test_digits_rate_on_keyboards_of_other_countries(
    page: Page, server: Server, codes: dict[str, str], keys: list[tuple[str, str]], given: list[int]
) -> None:
    sign_in(page, server, codes["dr-keys"])
    for key, code in keys:
        page.evaluate(STRUCK, [key, code, False])
    assert list(chosen(page).values()) == given
    page.evaluate(STRUCK, ["!", "Digit1", True])  # with Shift it is no digit
    assert list(chosen(page).values()) == given


def test_a_second_tab_renews_itself_when_it_is_looked_at(
    page: Page, server: Server, codes: dict[str, str]
) -> None:
    sign_in(page, server, codes["dr-tabs"])
    other = page.context.new_page()
    other.goto(page.url)
    wait_open(other)
    other.keyboard.type("444")
    other.keyboard.press("Control+Enter")
    wait_for_count(other, 1, 3)
    page.evaluate("() => window.dispatchEvent(new Event('focus'))")
    wait_for_count(page, 1, 3)
    assert chosen(page) == {}


def test_the_room_speaks_the_language_of_the_study(
    page: Page, server: Server, study: Engine, codes: dict[str, str]
) -> None:
    set_setting(study, "language", "de")
    sign_in(page, server, codes["dr-tabs"])
    expect(page.get_by_role("button", name="Absenden und weiter")).to_be_visible()
    expect(page.locator(".mj-count")).to_contain_text("von 3 bewertet")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("bewerten und zum nächsten Kriterium")
    set_setting(study, "language", "en")
