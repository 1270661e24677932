"""A long source in a real browser: sent once to a page, and shown with each of its responses."""

import pytest
from kit.browsers import sign_in, wait_for_count, wait_open
from kit.rating_study import build, row, rubric
from kit.servers import Server
from kit.wiretap import record
from playwright.sync_api import Page, expect
from sqlalchemy import Engine

from annotate.rating.room import LONG

pytestmark = pytest.mark.e2e

NEEDLE = "needle in the letter"
SOURCE = f"{NEEDLE}. " + "The discharge letter. " * (LONG // 20)


def sent(heard: list[bytes]) -> int:
    """Return how often the source reached the browser."""
    return sum(NEEDLE.encode() in payload for payload in heard)


@pytest.fixture(scope="module")
def codes(study: Engine) -> dict[str, str]:
    case = {"instance_id": "case", "context": SOURCE}
    rows = [row(n, f"Note {n}.", **case) for n in range(1, 4)]
    return build(study, rows, ["dr-long"], rubric())


def test_a_long_source_reaches_a_page_once_and_stands_beside_each_response(
    page: Page, server: Server, codes: dict[str, str]
) -> None:
    heard = record(page)
    sign_in(page, server, codes["dr-long"])
    for number in range(1, 3):
        page.keyboard.type("345")
        page.keyboard.press("Control+Enter")
        wait_for_count(page, number, 3)
        expect(page.locator(".mj-response")).to_contain_text(f"Note {number + 1}.")
        expect(page.locator(".mj-source")).to_contain_text(NEEDLE)
    page.wait_for_load_state("networkidle")
    assert sent(heard) == 1
    page.reload()
    wait_open(page)
    expect(page.locator(".mj-source")).to_contain_text(NEEDLE)
    page.wait_for_load_state("networkidle")
    assert sent(heard) == 2, "nothing is kept where it would outlive the page"
    kept = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
    assert "discharge letter" not in kept
