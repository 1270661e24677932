"""No author in any byte, and no text that does anything but stand there."""

import pytest
from kit.browsers import sign_in, wait_for_count, wait_open, wait_settled
from kit.rating_study import build, row, rubric
from kit.servers import Server
from kit.wiretap import record
from playwright.sync_api import Page
from sqlalchemy import Engine

from data.importers.rows import Origin, RatingRow
from data.schema import Kind
from data.study.ratings import import_ratings
from data.study.settings import set_setting

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

# Ends after the browser has asked for a picture of ours, so after it asked for any of the texts'.
LAID_OUT = {
    "p",
    "span",
    "ul",
    "li",
    "table",
    "tbody",
    "tr",
    "td",
    "th",
    "h3",
    "strong",
    "em",
    "code",
    "pre",
    "hr",
}
ANOTHER_PICTURE = """() => new Promise((done) => {
  const picture = new Image();
  picture.onload = picture.onerror = () => requestAnimationFrame(done);
  picture.src = `${location.origin}/another.png`;
})"""


@pytest.fixture(scope="module")
def codes(study: Engine) -> dict[str, str]:
    rows = [row(n, f"Note {n}: mild knee pain.", reference="Gold note.") for n in range(1, 5)]
    codes = build(study, rows, RATERS, rubric(name="rubric_hidden"))
    hostile = row(5, HOSTILE + "end", context=HOSTILE, prompt=HOSTILE, benchmark="hostile")
    codes |= build(study, [hostile], ["dr-brave"], rubric("accuracy"))
    where = Origin("made up", 1)
    kind = Kind.JUROR
    judged = RatingRow(where, "resp-hidden-1", "juror-hidden", kind, "accuracy", "3.27182")
    import_ratings(study, [judged])
    return codes


def test_no_byte_tells_the_author_or_what_others_said(
    page: Page, server: Server, codes: dict[str, str]
) -> None:
    heard = record(page)
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
    for key in "swf":
        page.keyboard.press(key)
        heard.append(page.content().encode())
    page.keyboard.press("Enter")
    for key in "?r":
        page.keyboard.press(key)
        page.get_by_role("dialog").wait_for()
        heard.append(page.content().encode())
        page.keyboard.press("Escape")
        page.get_by_role("dialog").wait_for(state="detached")
    page.keyboard.press("p")
    page.get_by_text("You rated this on").wait_for()
    wait_open(page)
    heard.append(page.content().encode())
    page.keyboard.type("3")
    page.keyboard.press("Control+Enter")
    page.get_by_text("You rated this on").wait_for(state="detached")
    wait_open(page)
    page.keyboard.press("r")
    page.get_by_role("radio", name="I know this patient").check()
    page.get_by_role("button", name="Give it back").click()
    page.get_by_role("heading", name="Thank you").wait_for()
    heard.append(page.content().encode())


def test_after_rating_no_byte_tells_the_author_either(
    page: Page, server: Server, codes: dict[str, str], study: Engine
) -> None:
    set_setting(study, "reference", "after_rating")
    heard = record(page)
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
    wait_settled(page)
    page.evaluate(ANOTHER_PICTURE)
    # Control characters have no glyph: their Unicode pictures stand for them.
    shown = HOSTILE.replace("\x07", "\u2407").replace("\x1b", "\u241b")
    for name, text in (
        ("response", shown + "end"),
        ("source", shown),
        ("task", shown),
    ):
        pane = page.locator(f".mj-{name} .mj-text")
        assert pane.evaluate("pane => pane.textContent") == text
        own = pane.locator("*").evaluate_all("all => [...new Set(all.map(one => one.localName))]")
        assert {*own} <= LAID_OUT
    assert page.evaluate("window.broken") is None
    ours = (server.address, "data:", "blob:")
    assert [url for url in asked if not url.startswith(ours)] == []
