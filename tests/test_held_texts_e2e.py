"""A long source in a real browser: sent once to a page, and shown with each of its responses."""

import pytest
from kit.browsers import sign_in, wait_for_count, wait_open
from kit.rating_study import build, row, rubric
from kit.servers import Server
from playwright.sync_api import Page, Response, expect
from sqlalchemy import Engine

from annotate.rating.requests import PATH
from annotate.rating.room import LONG

pytestmark = pytest.mark.e2e

NEEDLE = "needle in the letter"
SOURCE = f"{NEEDLE}. " + "The discharge letter. " * (LONG // 20)


def sent(answers: list[Response]) -> int:
    """Return how often the source reached the page, and forget the answers."""
    texts = [answer.text() for answer in answers]
    answers.clear()
    return sum(NEEDLE in text for text in texts)


@pytest.fixture(scope="module")
def codes(study: Engine) -> dict[str, str]:
    case = {"instance_id": "case", "context": SOURCE}
    rows = [row(n, f"Note {n}.", **case) for n in range(1, 4)]
    return build(study, rows, ["dr-long"], rubric())


def test_a_long_source_reaches_a_page_once_and_stands_beside_each_response(
    page: Page, server: Server, codes: dict[str, str]
) -> None:
    answers: list[Response] = []
    page.on("response", lambda one: answers.append(one) if one.url.endswith(PATH) else None)
    sign_in(page, server, codes["dr-long"])
    for number in range(1, 3):
        page.keyboard.type("345")
        page.keyboard.press("Control+Enter")
        wait_for_count(page, number, 3)
        expect(page.locator(".mj-response")).to_contain_text(f"Note {number + 1}.")
        expect(page.locator(".mj-source")).to_contain_text(NEEDLE)
    assert sent(answers) == 1
    page.reload()
    wait_open(page)
    expect(page.locator(".mj-source")).to_contain_text(NEEDLE)
    assert sent(answers) == 1, "nothing is kept where it would outlive the page"
    kept = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
    assert "discharge letter" not in kept
