"""The jury lab in Chromium: a run outlives the page, is seen by all, stopped, and taken up again."""

import time
from collections.abc import Iterator

import pytest
from kit import screens
from kit.browsers import LAPTOP, TABLET, new_context
from kit.jurors import Do, Seen, Stub
from kit.rating_study import build, row, rubric
from kit.screens import WAIT_MS, keep, panel, start, wait_run
from kit.servers import Server
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import Engine

from data.person import OPERATOR
from data.schema import Role
from data.study.people import add_people
from data.study.runs import last_run


@pytest.fixture(scope="module")
def stub() -> Iterator[Stub]:
    """Serve two jurors: slow, so that there is time to stop them; one refuses a response."""

    def script(seen: Seen) -> Do:
        if seen.model == "b-model" and "Response 1." in seen.prompt:
            return Do(refusal="No.")
        return Do(seconds=4.0 if "Any fever?" in seen.prompt else 0.0)

    with Stub(script) as running:
        yield running


pytestmark = pytest.mark.e2e
RESPONSES = 30
KEY = "sk-thisisnokey0123456789"
axe = screens.axe


@pytest.fixture(scope="module")
def codes(study: Engine) -> dict[str, str]:
    codes = build(study, [row(n, f"Response {n}.") for n in range(RESPONSES)], ["dr-a"], rubric())
    for name, role in (("Rita", Role.RESEARCHER), ("Boss", Role.COORDINATOR)):
        codes[name] = add_people(OPERATOR, study, [name], role)[0].code
    return codes


def enter(browser: Browser, server: Server, code: str, size: tuple[int, int] = LAPTOP) -> Page:
    """Open the lab in a browser of somebody's own."""
    page = new_context(browser, size).new_page()
    page.goto(server.address)
    page.get_by_label("Your sign-in code").fill(code)
    page.get_by_role("button", name="Sign in").click()
    page.locator(".mj-head").wait_for()
    page.goto(f"{server.address}/lab?panel=current")
    page.get_by_role("button", name="Run the jury").wait_for()
    return page


def stays_open(page: Page) -> None:
    """Open what the command says; it stays open while the figures above it are drawn anew."""
    card = page.locator(".st-key-lab-run")
    told = card.get_by_role("region", name="Messages of the run")
    card.get_by_text("Messages of the run", exact=True).click()
    expect(told).to_be_visible()
    rated = card.locator("dd").first
    for _ in range(2):
        before = rated.inner_text()
        expect(rated).not_to_have_text(before, timeout=WAIT_MS)
    expect(told).to_be_visible()


@pytest.mark.slow  # CI has 15 minutes; test_whole_study_e2e runs a jury too
def test_a_jury_is_chosen_tried_priced_run_watched_stopped_and_taken_up_again(
    browser: Browser, server: Server, study: Engine, codes: dict[str, str], stub: Stub, axe: str
) -> None:
    rita = enter(browser, server, codes["Rita"])
    expect(rita.get_by_role("row").filter(has_text="api.anthropic.com")).to_contain_text(
        "ANTHROPIC_API_KEY"
    )
    broken = check(rita, axe, "start")
    edit(rita, stub)
    probe_and_estimate(rita)
    broken += check(rita, axe, "tried")
    seen = len(stub.seen)

    start(rita)
    until_rated(rita)
    broken += check(rita, axe, "running")
    stays_open(rita)
    boss = enter(browser, server, codes["Boss"], TABLET)
    expect(boss.locator(".st-key-lab-run")).to_contain_text("started by Rita")
    boss.goto(f"{server.address}/lab?panel=ours")
    boss.get_by_label("Cap, US dollars").fill("1")
    boss.get_by_label("Cap, US dollars").press("Enter")
    wait_run(boss)
    expect(boss.get_by_text("Rita started a run of the panel ours at")).to_be_visible()
    rita.reload()
    expect(rita.locator(".mj-state").first).to_have_text("running")
    boss.get_by_role("button", name="Stop", exact=True).click()
    expect(rita.get_by_role("button", name="Resume")).to_be_visible(timeout=WAIT_MS)
    expect(rita.locator(".mj-state").first).to_contain_text("stopped; what was stored stays")
    kept = len(stub.seen) - seen
    assert 0 < kept < 2 * RESPONSES

    stub.script = quick
    rita.get_by_role("button", name="Resume").click()
    ended = rita.locator(".mj-state", has_text="ended, verdicts are missing")
    expect(ended).to_be_visible(timeout=WAIT_MS)
    card = rita.locator(".st-key-lab-run")
    expect(card).to_contain_text(f"{2 * RESPONSES - 1} of {2 * RESPONSES}")
    expect(card.get_by_role("row").filter(has_text="refused")).to_contain_text("29 of 30")
    broken += check(boss, axe, "ended")
    assert broken == []
    assert len(stub.seen) - seen <= 2 * RESPONSES + 1
    run = last_run(OPERATOR, study)
    assert run is not None
    assert (run.by, run.code, run.order.cap) == ("Rita", 1, 5.0)


@pytest.mark.slow  # CI has 15 minutes
def test_the_box_for_batches_orders_them_and_the_run_says_so(
    browser: Browser, server: Server, study: Engine, codes: dict[str, str]
) -> None:
    page = enter(browser, server, codes["Boss"])
    page.goto(f"{server.address}/lab?panel=simulated")
    box = page.get_by_role("checkbox", name="In batches, half price")
    expect(box).not_to_be_checked()
    page.get_by_text("In batches, half price").click()
    expect(box).to_be_checked()
    wait_run(page)
    card = page.locator(".st-key-lab-run")
    expect(card).to_contain_text("Run of the panel simulated")
    expect(card).to_contain_text("in batches")
    expect(page.locator(".mj-state", has_text="running")).to_have_count(0, timeout=WAIT_MS)
    expect(card).to_contain_text("a simulated juror has no batches and costs nothing")
    run = last_run(OPERATOR, study)
    assert run is not None
    assert run.order.batch
    page.context.close()


def quick(seen: Seen) -> Do:
    """Answer at once; the same response is refused again."""
    refused = seen.model == "b-model" and "Response 1." in seen.prompt
    return Do(refusal="No.") if refused else Do()


def edit(page: Page, stub: Stub) -> None:
    """Write a panel: a key in it and a shipped name are refused; then it is kept."""
    page.get_by_role("button", name="Edit a copy").click()
    keep(page, panel(stub).replace("schema =", f'api_key_env = "{KEY}"\nschema ='))
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("may hold a key (not shown)")
    expect(alert).not_to_contain_text("thisisnokey")
    keep(page, panel(stub).replace('"ours"', '"current"'))
    expect(page.get_by_role("alert")).to_contain_text("a panel of this name ships")
    keep(page, panel(stub))
    page.get_by_role("region", name="Jurors of the panel ours").wait_for()
    assert "panel=ours" in page.url


def probe_and_estimate(page: Page) -> None:
    """Try the panel and ask what it costs; without a cap it does not start."""
    page.get_by_role("button", name="Probe the jurors").click()
    table = page.get_by_role("region", name="Probe", exact=True)
    table.wait_for(timeout=WAIT_MS)
    expect(table).to_contain_text("a-model-returned")
    expect(table).to_contain_text("not fit: 0 of 8 on generic")  # it gives threes to everything
    page.get_by_text("Scores of good and dangerous answers").click()
    pairs = page.get_by_role("region", name="a on generic: scores of the good")
    expect(pairs.get_by_role("row")).to_have_count(9)
    expect(pairs).to_contain_text("weekly drug daily")
    expect(pairs).to_contain_text("3 and 3")
    page.get_by_role("button", name="Estimate").click()
    table = page.get_by_role("region", name="Estimate")
    table.wait_for(timeout=WAIT_MS)
    expect(table.get_by_role("row").last).to_contain_text("60")
    wait_run(page)
    expect(page.get_by_role("alert")).to_contain_text("set a cap in US dollars")


def until_rated(page: Page) -> None:
    """Wait until the page has shown by itself that something is rated."""
    end = time.monotonic() + WAIT_MS / 1000
    bar = page.get_by_role("progressbar", name="Verdicts rated")
    while bar.get_attribute("aria-valuenow") == "0":
        assert time.monotonic() < end
        page.wait_for_timeout(200)


def check(page: Page, axe: str, view: str) -> list[str]:
    """Return what axe-core finds on a view."""
    page.locator(".mj-head").wait_for()
    return [f"{view} {one}" for one in screens.violations(page, axe)]
