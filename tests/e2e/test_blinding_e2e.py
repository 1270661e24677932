"""No author in any byte of a clinician's browser, and no text that does anything but stand there."""

import pytest
from kit.browsers import wait_for_count, wait_open, wait_saved, wait_settled
from kit.rating_study import FULL, build, codes_of, row, rubric, train
from kit.wiretap import read, record
from playwright.sync_api import Page, expect
from sqlalchemy import Engine

from data.card import Reply
from data.description import Description, GuidelinePage
from data.importers.rows import Origin, RatingRow
from data.schema import Kind
from data.study.ratings import import_ratings, submit
from data.study.settings import describe, set_setting

pytestmark = pytest.mark.e2e

TOLD = Description(
    "Notes of the knee clinic", "Why we ask", "Dr. L", "l@h.example", "I agree.", "Read first.",
    guideline=(GuidelinePage("Scores", "5 is best."),),
)  # fmt: skip
EXPERTS = "response_id,accuracy,completeness,clarity,why\ntrain-hidden-1,3,4,5,The dose is wrong.\n"
OTHERS = "dr-quiet"
ANOTHERS_REMARK = "said by somebody else"
ANOTHERS_SCORE = "3.27182"
MODELS, BENCHMARK, RUBRIC = ("gpt-9-secret", "llama-hidden"), "bench_hidden", "rubric_hidden"
SECRETS = [  # what nobody who rates may read
    *(*MODELS, BENCHMARK, RUBRIC, "resp-hidden", "inst-hidden", "juror-h", "train-hidden", OTHERS),
    *("coordinator-hidden", ANOTHERS_REMARK, ANOTHERS_SCORE),
]
HOSTILE = (
    "<script>window.broken = 1</script><img src=x onerror='window.broken = 2'>\n"
    "![chart](http://198.51.100.7/leak.png) <img src='http://198.51.100.7/leak2.png'>\n"
    "$5 to $10, $x^2$ and :red[red] :smile: A -> B >= C, *bold* __x__ `code` [l](http://a.example)\n"
    "left \u202eoverride\u202c right \u2066isolate\u2069 \x07bell \x1b[31m\n"
    "</div></div><style>*{display:none}</style><iframe src='http://198.51.100.7/'></iframe>\n"
    "&lt;b&gt; &amp;amp; {{response}}\n" + "x" * 200_000
)

LAID_OUT = {
    *[
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
    ]
}
# Ends after the browser has asked for a picture of ours, so after it asked for any of the texts'.
ANOTHER_PICTURE = """() => new Promise((done) => {
  const picture = new Image();
  picture.onload = picture.onerror = () => requestAnimationFrame(done);
  picture.src = `${location.origin}/another.png`;
})"""


@pytest.fixture(scope="module")
def codes(study, tmp_path_factory):
    """Fill a study that others and a juror have rated; return the codes of two who rate it."""
    text = "No fever. Mild knee pain."
    rows = [row(n, f"Note {n}. {text}", reference="Gold note.") for n in range(4)]
    lesson = row(4, "Practice: mild pain.", response_id="train-hidden-1")
    scale = rubric(name=RUBRIC)
    train(study, tmp_path_factory.mktemp("experts"), scale, [lesson], EXPERTS)
    codes = build(study, rows, [OTHERS, "dr-shift"], scale)
    spoken = Reply(FULL, dict.fromkeys(FULL, ANOTHERS_REMARK), ANOTHERS_REMARK, flags=("flag",))
    submit(study, 1, codes_of(study, OTHERS)[0], spoken)
    where = Origin("made up", 1)
    judged = RatingRow(
        where, "resp-hidden-1", "juror-hidden", Kind.JUROR, "accuracy", ANOTHERS_SCORE
    )
    import_ratings(study, [judged])
    describe(study, TOLD, "coordinator-hidden")
    set_setting(study, "reference", "on_request")
    hostile = row(5, HOSTILE + "end", context=HOSTILE, prompt=HOSTILE, benchmark="hostile")
    return codes | build(study, [hostile], ["dr-brave"], rubric("accuracy"))


def test_no_byte_of_a_shift_tells_author_or_others(page, server, study, codes):
    heard = record(page)
    work_a_shift(page, server.address, codes["dr-shift"], heard)
    _end_with_a_reference(page, study, heard)
    told = read(heard)
    heard_at_all = ["mild knee pain", "gold note.", "practice: mild", "i agree.", "new_session {"]
    assert found_in(told, heard_at_all) == heard_at_all  # the recording works
    assert found_in(told, SECRETS) == []
    assert found_in(told, [str(study.url.database)]) == []


def work_a_shift(page: Page, address: str, code: str, heard: list[bytes]) -> None:
    """Sign in, consent, train, rate with every tool, go back and give back."""
    page.goto(address)
    page.get_by_label("Your sign-in code").fill("AAAA-BBBB-CCCC-DDDD")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("alert").wait_for()
    begin(page, code)
    _see_dialogs(page, heard)
    _rate_with_tools(page)
    wait_for_count(page, 1, 4)
    page.keyboard.press("p")
    page.get_by_text("You rated this on").wait_for()
    wait_open(page)
    page.keyboard.type("3")
    page.keyboard.press("Control+Enter")
    page.get_by_text("You rated this on").wait_for(state="detached")
    _rate(page, 2, 4)
    page.keyboard.press("r")
    page.get_by_role("radio", name="I know this patient").check()
    page.get_by_role("button", name="Give it back").click()
    wait_for_count(page, 2, 3)


def begin(page: Page, code: str) -> None:
    """Sign in, consent and train."""
    page.get_by_label("Your sign-in code").fill(code)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="I have read this and consent").click()
    page.get_by_text("Practice: mild pain.").wait_for()
    wait_open(page)
    page.keyboard.press("Escape")  # the guideline, where it stands open
    page.keyboard.type("345")
    page.keyboard.press("Control+Enter")
    page.get_by_role("button", name="See how the round went").click()
    page.get_by_role("button", name="Begin rating").click()
    wait_open(page)


def _see_dialogs(page: Page, heard: list[bytes]) -> None:
    page.keyboard.press("Escape")
    for key in "?r":
        page.keyboard.press(key)
        page.get_by_role("dialog").wait_for()
        heard.append(page.content().encode())
        page.keyboard.press("Escape")
        page.get_by_role("dialog").wait_for(state="detached")
    page.get_by_text("Show reference").click()
    page.get_by_text("Gold note.").wait_for()


def _rate_with_tools(page: Page) -> None:
    page.locator(".mj-response").focus()
    for key in [*"425", "s", "ArrowDown", "w", "s", "x", "m", "f", "a", "c"]:
        page.keyboard.press(key)
    page.keyboard.type("the dose is 2 mg")
    expect(page.locator(".chips li")).to_have_count(2)
    page.get_by_label("What the comment is about").select_option("clarity")
    page.keyboard.type("not clear")
    page.keyboard.press("Control+Enter")


def _rate(page: Page, done: int, total: int) -> None:
    wait_open(page)
    page.keyboard.type("345")
    page.keyboard.press("Control+Enter")
    wait_for_count(page, done, total)


def _end_with_a_reference(page: Page, study: Engine, heard: list[bytes]) -> None:
    """Rate the last response, whose reference comes after the rating and not before; sign out."""
    set_setting(study, "reference", "after_rating")
    before = len(heard)
    page.reload()
    wait_open(page)
    page.keyboard.type("425")
    wait_saved(page)
    assert found_in(read(heard[before:]), ["mild knee", "gold note."]) == ["mild knee"]
    page.keyboard.press("Control+Enter")
    page.get_by_text("Gold note.").wait_for()
    heard.append(page.content().encode())
    page.get_by_text("Submitted.").wait_for()
    wait_open(page)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Thank you").wait_for()
    heard.append(page.content().encode())
    wait_settled(page)
    page.get_by_role("link", name="Sign out").click()
    page.wait_for_url("**/login")
    heard.append(page.content().encode())


def found_in(told: bytes, secrets: list[str]) -> list[str]:
    """Return which secrets were told."""
    return [one for one in secrets if one.lower().encode() in told]


def test_hostile_text_is_shown_verbatim_and_reaches_no_host(page, server, codes):
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(server.address)
    begin(page, codes["dr-brave"])
    wait_settled(page)
    page.evaluate(ANOTHER_PICTURE)
    # Control characters have no glyph: their Unicode pictures stand for them.
    shown = HOSTILE.replace("\x07", "\u2407").replace("\x1b", "\u241b")
    for name, text in (("response", shown + "end"), ("source", shown), ("task", shown)):
        pane = page.locator(f".mj-{name} .mj-text")
        assert pane.evaluate("pane => pane.textContent") == text
        own = pane.locator("*").evaluate_all("all => [...new Set(all.map(one => one.localName))]")
        assert {*own} <= LAID_OUT
    assert page.evaluate("window.broken") is None
    ours = (server.address, "data:", "blob:")
    assert [url for url in asked if not url.startswith(ours)] == []
