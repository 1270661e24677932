"""A study of pairs in Chromium: imported in the app, judged by keys, its jury's preference for the first named."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from kit import screens, wiretap
from kit.browsers import LAPTOP, TABLET, new_context, sign_in, wait_for_count
from kit.jurors import Do, Seen, Stub, verdict
from kit.jury_runs import HASTY, panel_at
from kit.pair_study import MODELS, rows, write
from kit.servers import Server
from playwright.sync_api import Browser, Page, expect
from sqlmodel import Session, select

from data.person import OPERATOR
from data.schema import Rating, Role
from data.study.assignments import Slot, assign, design_items
from data.study.people import add_people
from data.study.verify import verify
from jury.run import run_panel

pytestmark = pytest.mark.e2e
axe = screens.axe
server = screens.server
CLINICIANS = ("dr-one", "dr-two", "dr-three")
WAIT_MS = 60_000


def juror(seen: Seen) -> Do:
    """Prefer the good note, and be vain: one of two prefers whatever is shown first."""
    sound_first = seen.prompt.index("Sound note") < seen.prompt.index("Poor note")
    return Do(verdict(seen, 2 if seen.model == "vain" or sound_first else -2))


@pytest.mark.parametrize("n", [8, pytest.param(60, marks=pytest.mark.slow)])
def test_a_study_of_pairs_from_import_to_verdict(browser, engine, server, axe, tmp_path, n):
    [boss] = add_people(OPERATOR, engine, ["Carla"], Role.COORDINATOR)
    codes = {
        one.handle: one.code for one in add_people(OPERATOR, engine, [*CLINICIANS], Role.CLINICIAN)
    }
    page = screens.signed_in(browser, server, boss.code, "laptop")
    screens.opened(page, server, "setup?part=Notes")
    text = write(tmp_path / "pairs.csv", rows(n)).read_text("utf-8")
    screens.upload(page, "pairs.csv", text)
    page.get_by_role("button", name="Import this file").click()
    page.get_by_text(f"pairs.csv: {2 * n} responses imported").wait_for()
    screens.opened(page, server, "setup?part=Goal")
    expect(page.get_by_role("spinbutton", name="Margin in share of pairs")).to_be_visible()
    keys = [item.response for item in design_items(engine)]
    slots = [Slot(name, key, at) for name in CLINICIANS for at, key in enumerate(keys)]
    assign(engine, slots, seed=0, per_response=3)
    broken = screens.violations(page, axe)
    for number, (name, code) in enumerate(codes.items()):
        broken += judged(browser, server, (name, code), n, axe if number == 0 else "")
    with Session(engine) as session:
        assert Counter(one.shown_first for one in session.exec(select(Rating))) == {
            "first": 3 * n // 2,
            "second": 3 * n // 2,
        }
    with Stub(juror) as stub, ThreadPoolExecutor(1) as beside:
        panel = panel_at(stub, "vain", "fair")
        beside.submit(run_panel, engine, panel, patience=HASTY).result()
    page.goto(server.address)
    page.get_by_text("share of pairs", exact=False).first.wait_for(timeout=WAIT_MS)
    screens.opened(page, server, "agreement")
    page.get_by_text("Pairs: agreement with the clinicians").first.wait_for(timeout=WAIT_MS)
    page.get_by_text("prefers the response that is shown first").first.wait_for(timeout=WAIT_MS)
    screens.settle(page)
    page.screenshot(path=tmp_path / "agreement.png", full_page=True)
    broken += screens.violations(page, axe)
    screens.opened(page, server, "agreement?view=Responses")
    page.get_by_text("notes", exact=False).first.wait_for()
    page.context.close()
    assert broken == []
    assert verify(engine).findings == ()


def judged(browser: Browser, server: Server, who: tuple[str, str], n: int, axe: str) -> list[str]:
    """Let a clinician judge all pairs by keys, the first on a tablet; return what axe finds."""
    page = new_context(browser, LAPTOP).new_page()
    heard = wiretap.record(page)
    sign_in(page, server, who[1])
    page.locator(".mj-second").wait_for()
    broken = in_tabs(page, axe) if axe else []
    for done in range(n):
        wait_for_count(page, done, n)
        good = page.locator(".mj-response").inner_text().startswith("Sound")
        page.keyboard.press("1" if good else "5")
        page.keyboard.press("Control+Enter")
    page.get_by_role("heading", name="Thank you").wait_for()
    page.context.close()
    told = b"".join(heard)
    assert [name for name in (*MODELS, "shown_first") if name.encode() in told] == []
    assert b"Sound note" in told
    return broken


def in_tabs(page: Page, axe: str) -> list[str]:
    """Look at both responses on a tablet upright, where one is in front; return what axe finds."""
    first, second = page.locator(".mj-response"), page.locator(".mj-second")
    boxes = [one.bounding_box() for one in (first, second)]
    assert boxes[0] is not None
    assert boxes[1] is not None
    assert abs(boxes[0]["width"] - boxes[1]["width"]) < 2
    page.set_viewport_size({"width": TABLET[0], "height": TABLET[1]})
    expect(first).to_be_visible()
    expect(second).to_be_hidden()
    page.keyboard.press("o")
    expect(second).to_be_visible()
    page.get_by_role("button", name="First response").click()
    expect(first).to_be_visible()
    broken = screens.violations(page, axe)
    page.set_viewport_size({"width": LAPTOP[0], "height": LAPTOP[1]})
    return broken
