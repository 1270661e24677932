"""Clinicians correct claims in a real browser: the way there, a cell left just before Store, nothing of jurors."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from kit import screens
from kit.browsers import sign_in, wait_for_count, wait_open, wait_settled
from kit.claims_study import judged_run, juror, notes, panel_of
from kit.jurors import Stub
from kit.rating_study import build, row
from kit.screens import violations
from kit.servers import Server
from playwright.sync_api import Page, expect
from sqlalchemy import Engine

from data.person import OPERATOR
from data.queries.claims import JudgedClaims, claims_on
from data.queries.record import verify
from data.rubric import read_rubric
from data.schema import ClaimOrigin

pytestmark = pytest.mark.e2e
axe = screens.axe
RATED, PUT_RIGHT = 1, "Finding 0 is put right"


@pytest.fixture(scope="module")
def codes(study: Engine) -> dict[str, str]:
    rows = [row(n, note.text, context=note.source) for n, note in enumerate(notes(1, 3), 1)]
    made = build(study, rows, ["dr-claims"], read_rubric("generic"))
    with (
        Stub(juror) as stub,
        ThreadPoolExecutor() as beside,
    ):  # the browser's loop runs in this thread
        panel = panel_of(stub, "juror-unseen", "judge-unseen")
        beside.submit(judged_run, study, panel).result()
    return made


def counting_list(study: Engine) -> JudgedClaims:
    [counts] = claims_on(OPERATOR, study, RATED)
    return counts


def test_the_room_leads_to_claims_of_what_one_has_rated(
    page: Page, server: Server, codes: dict[str, str], axe: str
) -> None:
    sign_in(page, server, codes["dr-claims"])
    expect(page.get_by_role("link", name="Claims")).to_be_hidden()
    page.keyboard.type("444")
    page.keyboard.press("Control+Enter")
    wait_for_count(page, 1, 3)
    page.reload()
    wait_open(page)
    page.get_by_role("link", name="Claims").click()
    page.get_by_role("heading", name="Claims", exact=True).wait_for()
    expect(page.get_by_role("row").filter(has_text="Finding 0 is")).to_have_count(1)
    wait_settled(page)
    seen = page.content()
    for secret in ("juror-unseen", "judge-unseen", "gpt-9-secret", "llama-hidden"):
        assert secret not in seen
    assert violations(page, axe) == []


def test_a_cell_that_is_left_by_pressing_store_is_stored(
    page: Page, server: Server, study: Engine, codes: dict[str, str]
) -> None:
    before = counting_list(study)
    sign_in(page, server, codes["dr-claims"])
    page.goto(f"{server.address}/claims")
    write_into_first_cell(page, PUT_RIGHT)
    page.get_by_role("button", name="Store these claims").click()
    expect(page.get_by_text("The corrected claims are stored.")).to_be_visible()
    after = counting_list(study)
    assert (after.origin, after.versions) == (ClaimOrigin.PEOPLE, before.versions + 1)
    assert after.claims[0].claim == PUT_RIGHT
    assert after.claims[1:] == before.claims[1:]
    expect(page.get_by_role("row").filter(has_text=PUT_RIGHT)).to_have_count(1)
    assert verify(study).findings == ()


def write_into_first_cell(page: Page, text: str) -> None:
    """Write over the first cell, and leave it open: what is pressed next leaves it."""
    grid = page.get_by_test_id("stDataFrame")
    grid.wait_for()
    wait_settled(page)
    grid.click(position={"x": 120, "y": 52})  # under the head, right of the boxes that choose rows
    page.keyboard.press("Enter")  # opens it
    page.locator("#portal textarea").fill(text)
