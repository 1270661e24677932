"""The jury screen in Chromium: a run outlives the page, is stopped and taken up, and juries are ranked."""

import re
from dataclasses import replace

import pytest
from kit import screens
from kit.browsers import wait_settled
from kit.jurors import Do, Seen, Stub, verdict
from kit.rating_study import build, row, rubric
from kit.screens import WAIT_MS, keep, panel, sheet, start, wait_run
from kit.servers import Server
from playwright.sync_api import Page, expect
from sqlalchemy import Engine

from data.importers.rows import Origin, RatingRow
from data.person import OPERATOR
from data.schema import Kind, Role
from data.study.ledger import compositions_tried
from data.study.people import add_people
from data.study.ratings import import_ratings
from data.study.runs import last_run

pytestmark = pytest.mark.e2e
RESPONSES = 12
KEY = "sk-thisisnokey0123456789"
axe = screens.axe


@pytest.fixture(scope="module")
def stub():
    """Serve two jurors: slow, so that there is time to stop them; one refuses a response."""

    def script(seen: Seen) -> Do:
        return replace(quick(seen), seconds=4.0 if "Any fever?" in seen.prompt else 0.0)

    with Stub(script) as running:
        yield running


@pytest.fixture(scope="module")
def codes(study):
    codes = build(study, [row(n, f"Response {n}.") for n in range(RESPONSES)], ["dr-a"], rubric())
    given = [
        RatingRow(Origin("f", 1), f"resp-hidden-{n}", who, Kind.CLINICIAN, name, str(1 + n % 5))
        for n in range(RESPONSES)
        for who in ("dr-a", "dr-b")
        for name in ("accuracy", "completeness", "clarity")
    ]
    import_ratings(study, given)
    for name, role in (("Rita", Role.RESEARCHER), ("Boss", Role.COORDINATOR)):
        codes[name] = add_people(OPERATOR, study, [name], role)[0].code
    return codes


@pytest.mark.slow  # CI has 15 minutes; test_whole_study_e2e runs a jury too
def test_a_jury_is_written_probed_priced_run_stopped_taken_up_ranked_and_compared(
    browser, server, study, codes, stub, axe
):
    rita = screens.signed_in(browser, server, codes["Rita"])
    screens.opened(rita, server, "jury?panel=current")
    expect(sheet(rita, "Jurors of the panel current")).to_contain_text("ANTHROPIC_API_KEY")
    broken = screens.violations(rita, axe)
    edit(rita, stub)
    probe_and_estimate(rita)
    seen = len(stub.seen)
    start(rita)
    boss = screens.signed_in(browser, server, codes["Boss"], "tablet")
    screens.opened(boss, server, "jury")
    card = boss.locator(".st-key-run-card")
    expect(card).to_contain_text("started by Rita")
    boss.get_by_role("button", name="Stop", exact=True).click()
    expect(rita.get_by_role("button", name="Resume")).to_be_visible(timeout=WAIT_MS)
    expect(rita.locator(".st-key-run-card")).to_contain_text("stopped; what was stored stays")
    stub.script = quick
    rita.get_by_role("button", name="Resume").click()
    card = rita.locator(".st-key-run-card")
    expect(card).to_contain_text("ended, verdicts are missing", timeout=WAIT_MS)
    expect(card).to_contain_text(f"{2 * RESPONSES - 1} of {2 * RESPONSES}")
    expect(sheet(rita, "Jurors in this run")).to_contain_text("1 refused")
    expect(sheet(rita, "Jurors in this run")).to_contain_text("Usable at first asking")
    assert len(stub.seen) - seen <= 2 * RESPONSES + 1
    run = last_run(OPERATOR, study)
    assert run is not None
    assert (run.by, run.code, run.order.cap) == ("Rita", 1, 5.0)
    broken += screens.violations(rita, axe)
    broken += ranked_and_compared(rita, server, study, axe)
    assert broken == []


def quick(seen: Seen) -> Do:
    """Answer at once: one response is refused, and each juror is a point off on every other one."""
    about = re.search(r"Response (\d+)\.", seen.prompt)
    if about is None:  # a probe
        return Do()
    number, is_b = int(about[1]), seen.model == "b-model"
    if is_b and number == 1:
        return Do(refusal="No.")
    return Do(verdict(seen, min(1 + number % 5 + (number % 2 == is_b), 5)))


def edit(page: Page, stub: Stub) -> None:
    """Write a panel: a key in it and a shipped name are refused; then it is kept."""
    page.get_by_role("button", name="Edit a copy").click()
    keep(page, panel(stub).replace("schema =", f'api_key_env = "{KEY}"\nschema ='))
    refused = page.get_by_test_id("stAlert").filter(has_text="may hold a key (not shown)")
    expect(refused).to_be_visible()
    expect(refused).not_to_contain_text("thisisnokey")
    keep(page, panel(stub).replace('"ours"', '"current"'))
    expect(page.get_by_text("a panel of this name ships")).to_be_visible()
    keep(page, panel(stub))
    sheet(page, "Jurors of the panel ours").wait_for()
    assert "panel=ours" in page.url


def probe_and_estimate(page: Page) -> None:
    """Try the panel and ask what it costs; without a cap it does not start."""
    page.get_by_role("button", name="Probe the jurors").click()
    table = sheet(page, "Probe")
    expect(table).to_contain_text("a-model-returned", timeout=WAIT_MS)
    expect(table).to_contain_text("not fit: 0 of 8 on generic")  # it gives threes to everything
    screens.settle(page)
    page.get_by_role("button", name="Estimate").click()
    expect(sheet(page, "Estimate")).to_contain_text(f"all{2 * RESPONSES}", timeout=WAIT_MS)
    wait_run(page)
    expect(page.get_by_text("set a cap in US dollars")).to_be_visible()


def ranked_and_compared(page: Page, server: Server, study: Engine, axe: str) -> list[str]:
    """Read the ranking and the cost; two juries are compared once both are chosen."""
    broken = []
    for view, shown in (("Ranking", "Juries, the best first"), ("Cost", "No cheaper jury")):
        page.goto(f"{server.address}/jury?view={view}")
        expect(sheet(page, shown)).to_contain_text("a, b", timeout=WAIT_MS)
        screens.settle(page)
        broken += screens.violations(page, axe)
    before = [one.times for one in compositions_tried(study)]
    page.goto(f"{server.address}/jury?view=Two+juries&first=a&second=b")
    expect(sheet(page, "of two juries")).to_be_visible(timeout=WAIT_MS)
    wait_settled(page)
    assert [one.times for one in compositions_tried(study)] != before
    return broken + screens.violations(page, axe)
