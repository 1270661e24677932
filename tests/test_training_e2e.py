"""The training round in a real browser: fail, repeat, pass, and then the first response."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, Response, WebSocket, expect
from rating_server import (
    Server,
    build,
    chosen,
    chromium,
    row,
    rubric,
    scores_of,
    serving,
    sign_in,
    wait_saved,
)
from sqlalchemy import Engine

from data.database import open_study
from data.importers.experts import ExpertFile
from data.importers.table import TableFile
from data.store import import_responses
from data.store.experts import import_experts

pytestmark = pytest.mark.e2e

EXPERTS = """response_id,accuracy,completeness,clarity,why
train-hidden-1,2,4,5,The dose of the second drug is wrong.
train-hidden-2,4.5,4,4,Nothing of note is missing.
"""
SECRETS = ("gpt-9-secret", "llama-hidden", "resp-hidden", "inst-hidden", "bench_hidden")
SECRETS += ("rubric_hidden", "train-hidden", "dr-other")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = open_study(f"sqlite:///{tmp_path_factory.mktemp('e2e') / 'study.db'}", create=True)
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def codes(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    trained = [
        row(n + 7, f"Practice {n}: mild pain.", response_id=f"train-hidden-{n}") for n in (1, 2)
    ]
    scale = rubric(name="rubric_hidden")
    import_responses(engine, trained, lambda _: scale)
    codes = build(engine, [row(1, "Real note: mild knee pain.")], ["dr-learns", "dr-other"], scale)
    path = tmp_path_factory.mktemp("experts") / "experts.csv"
    path.write_text(EXPERTS, "utf-8")
    import_experts(engine, ExpertFile(TableFile(path)))
    return codes


@pytest.fixture(scope="module")
def server(engine: Engine, codes: dict[str, str]) -> Iterator[Server]:
    with serving(str(engine.url)) as server:
        yield server


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    context.set_default_timeout(15_000)
    yield context.new_page()
    context.close()


def test_a_clinician_fails_repeats_passes_and_then_rates_the_study(
    page: Page, server: Server, engine: Engine, codes: dict[str, str], browser: Browser
) -> None:
    heard = _record(page)
    sign_in(page, server, codes["dr-learns"])
    _answer(page, 1, "551")
    page.reload()
    _feedback(page).wait_for()  # it is shown until it has been left
    _next(page, "Next response")
    page.locator("form.likert").wait_for()
    page.keyboard.type("5")
    wait_saved(page)
    _goes_on_elsewhere(browser, server, codes["dr-learns"])
    page.keyboard.type("11")
    _answer(page, 2, "")
    _next(page, "See how the round went")
    expect(page.get_by_role("heading", name="Once more, please")).to_be_visible()
    expect(page.locator(".mj-note")).to_contain_text("up to 1.0 is fine")
    _next(page, "Start again")
    for number, label in ((1, "Next response"), (2, "See how the round went")):
        _answer(page, number, "345", again=True)
        heard.append(page.content().encode())
        _next(page, label)
    expect(page.get_by_role("heading", name="Training passed")).to_be_visible()
    _next(page, "Begin rating")
    page.get_by_text("Real note: mild knee pain.").wait_for()
    page.locator(".mj-count", has_text="0 of 1 rated").wait_for()
    assert scores_of(engine, "dr-learns") == []
    page.keyboard.type("435")
    page.keyboard.press("Control+Enter")
    page.get_by_role("heading", name="Thank you").wait_for()
    assert [one[1:] for one in scores_of(engine, "dr-learns")] == [
        ("accuracy", 4),
        ("completeness", 3),
        ("clarity", 5),
    ]
    told = b"\n".join(heard).lower()
    assert b"practice 1: mild pain." in told  # the recording works
    assert b"the dose of the second drug" in told
    assert [one for one in SECRETS if one.encode() in told] == []


def test_form_and_feedback_fit_a_laptop_and_a_tablet(
    browser: Browser, server: Server, codes: dict[str, str]
) -> None:
    context = browser.new_context(viewport={"width": 820, "height": 1180})
    page = context.new_page()
    sign_in(page, server, codes["dr-other"])
    assert _wide(page) <= 820
    _answer(page, 1, "245")
    assert _wide(page) <= 820
    expect(page.get_by_role("button", name="Next response")).to_be_in_viewport()
    page.set_viewport_size({"width": 1366, "height": 768})
    assert _wide(page) <= 1366
    page.get_by_placeholder("Find in the texts").click()
    page.keyboard.type("no need")  # the N of a search leaves the feedback where it is
    page.wait_for_timeout(500)
    expect(_feedback(page)).to_be_visible()
    context.close()


def _answer(page: Page, number: int, keys: str, again: bool = False) -> None:
    """Rate the training response shown and wait for the feedback."""
    part = ", round 2" if again else ""
    page.locator(".mj-count", has_text=f"Training{part}: response {number} of 2").wait_for()
    page.locator("form.likert:not([data-locked])").wait_for()
    page.keyboard.type(keys)
    page.keyboard.press("Control+Enter")
    _feedback(page).wait_for()


def _feedback(page: Page) -> Locator:
    return page.get_by_role("region", name="Your scores beside the expert's")


def _next(page: Page, label: str) -> None:
    button = page.get_by_role("button", name=label)
    button.wait_for()
    page.keyboard.press("Enter" if label in ("Start again", "Begin rating") else "n")
    button.wait_for(state="detached")


def _goes_on_elsewhere(browser: Browser, server: Server, code: str) -> None:
    """See on a second device that the round and the draft go on there."""
    context = browser.new_context()
    page = context.new_page()
    sign_in(page, server, code)
    assert chosen(page) == {"accuracy": 5}
    context.close()


def _wide(page: Page) -> int:
    found: int = page.evaluate("document.documentElement.scrollWidth")
    return found


def _record(page: Page) -> list[bytes]:
    """Collect every byte that a page sends or gets from here on."""
    heard: list[bytes] = []

    def keep(payload: str | bytes) -> None:
        heard.append(payload.encode() if isinstance(payload, str) else payload)

    def keep_body(response: Response) -> None:
        keep(response.url + str(response.all_headers()) + (response.request.post_data or ""))
        if response.status < 300:
            keep(response.body())

    def listen(socket: WebSocket) -> None:
        socket.on("framesent", keep)
        socket.on("framereceived", keep)

    page.on("websocket", listen)
    page.on("requestfinished", lambda request: keep_body(request.response()))  # type: ignore[arg-type] # finished
    return heard
