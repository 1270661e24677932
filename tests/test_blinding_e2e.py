"""No author in any byte, and no text that does anything but stand there."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Response, WebSocket
from rating_server import Server, build, chromium, row, rubric, serving, sign_in, wait_for_count
from sqlalchemy import Engine

from data.database import open_study
from data.importers.rows import Origin, RatingRow
from data.schema import Kind
from data.store import import_ratings
from data.store.settings import set_setting

pytestmark = pytest.mark.e2e

RATERS = ["dr-scan", "dr-other", "dr-third"]
HOSTILE = (
    "<script>window.broken = 1</script><img src=x onerror='window.broken = 2'>\n"
    "![chart](http://198.51.100.7/leak.png) <img src='http://198.51.100.7/leak2.png'>\n"
    "$5 to $10, $x^2$ and :red[red] :smile: A -> B >= C, *bold* __x__ `code` [l](http://a.example)\n"
    "left \u202eoverride\u202c right \u2066isolate\u2069 \x07bell \x1b[31m\n"
    "</div></div><style>*{display:none}</style><iframe src='http://198.51.100.7/'></iframe>\n"
    "&lt;b&gt; &amp;amp; {{response}}\n" + "x" * 200_000
)


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
def codes(engine: Engine) -> dict[str, str]:
    rows = [row(n, f"Note {n}: mild knee pain.", reference="Gold note.") for n in range(1, 5)]
    codes = build(engine, rows, RATERS, rubric(name="rubric_hidden"))
    hostile = row(5, HOSTILE + "\x00end", context=HOSTILE, prompt=HOSTILE, benchmark="hostile")
    codes |= build(engine, [hostile], ["dr-brave"], rubric("accuracy"))
    where = Origin("made up", 1)
    kind = Kind.JUROR
    judged = RatingRow(where, "resp-hidden-1", "juror-hidden", kind, "accuracy", "3.27182")
    import_ratings(engine, [judged])
    return codes


@pytest.fixture(scope="module")
def server(engine: Engine, codes: dict[str, str]) -> Iterator[Server]:
    with serving(str(engine.url)) as server:
        yield server


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    context.set_default_timeout(15_000)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()


def test_no_byte_tells_the_author_or_what_others_said(
    page: Page, server: Server, codes: dict[str, str]
) -> None:
    heard = _record(page)
    sign_in(page, server, codes["dr-scan"])
    for number in range(1, 4):
        page.get_by_text("Show reference").click()
        page.get_by_text("Gold note.").wait_for()
        page.keyboard.type("345")
        page.keyboard.press("Control+Enter")
        wait_for_count(page, number, 4)
        heard.append(page.content().encode())
    _see_the_other_views(page, heard)
    told = b"\n".join(heard).lower()
    assert b"mild knee pain" in told  # the recording works
    assert b'"scores"' in told
    secrets = ["gpt-9-secret", "llama-hidden", "resp-hidden", "inst-hidden", "bench_hidden"]
    secrets += ["rubric_hidden", "juror-hidden", "3.27182", *(set(RATERS) - {"dr-scan"})]
    assert [one for one in secrets if one.encode() in told] == []


def _see_the_other_views(page: Page, heard: list[bytes]) -> None:
    """Mark, flag, open each dialog, go back, submit again, recuse, end; keep each page's source."""
    for key in ("s", "w", "f", "?", "Escape", "r", "Escape", "p"):
        page.keyboard.press(key)
        heard.append(page.content().encode())
    page.get_by_text("You rated this on").wait_for()
    heard.append(page.content().encode())
    page.keyboard.type("3")
    page.keyboard.press("Control+Enter")
    page.get_by_text("You rated this on").wait_for(state="detached")
    page.keyboard.press("r")
    page.get_by_role("radio", name="I know this patient").check()
    page.get_by_role("button", name="Give it back").click()
    page.get_by_role("heading", name="Thank you").wait_for()
    heard.append(page.content().encode())


def test_after_rating_no_byte_tells_the_author_either(
    page: Page, server: Server, codes: dict[str, str], engine: Engine
) -> None:
    set_setting(engine, "reference", "after_rating")
    heard = _record(page)
    sign_in(page, server, codes["dr-third"])
    page.keyboard.type("345")
    assert b"gold note." not in b"".join(heard).lower()
    page.keyboard.press("Control+Enter")
    page.get_by_text("Gold note.").wait_for()
    told = b"".join([*heard, page.content().encode()]).lower()
    assert b"gold note." in told
    secrets = ["gpt-9-secret", "llama-hidden", "resp-hidden", "inst-hidden", "juror-hidden"]
    assert [one for one in [*secrets, "dr-scan", "3.27182"] if one.encode() in told] == []


def test_hostile_text_is_shown_verbatim_and_reaches_no_host(
    page: Page, server: Server, codes: dict[str, str]
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    sign_in(page, server, codes["dr-brave"])
    page.wait_for_timeout(500)
    # Control characters have no glyph: their Unicode pictures stand for them.
    shown = HOSTILE.replace("\x07", "\u2407").replace("\x1b", "\u241b")
    for name, text in (("response", shown + "\u2400end"), ("source", shown), ("task", shown)):
        pane = page.locator(f".mj-{name} .mj-text")
        assert pane.evaluate("pane => pane.textContent") == text
        assert pane.locator("*").count() == 0
    assert page.evaluate("window.broken") is None
    ours = (server.address, "data:", "blob:")
    assert [url for url in asked if not url.startswith(ours)] == []


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
