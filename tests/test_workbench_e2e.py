"""The workbench in Chromium: jury beside clinicians, raw answers and prompts, authors hidden."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from kit import screens
from kit.browsers import LAPTOP, TABLET, new_context, sign_in, wait_settled
from kit.jurors import Do, Seen, Stub, verdict
from kit.rating_study import build, codes_of, person_of, row, rubric
from kit.servers import Server
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import Engine

from annotate.screens import workbench_response
from data.card import Marked, Reply
from data.person import OPERATOR
from data.schema import Role
from data.study.compare import Chosen, compared, opened_response
from data.study.people import add_people
from data.study.ratings import submit
from jury.panel import Panel
from jury.run import run_panel
from jury.task import Patience

pytestmark = pytest.mark.e2e
RATINGS = (
    {"accuracy": 5, "completeness": 5, "clarity": 5},
    {"accuracy": 2, "completeness": 3, "clarity": 1},
)
IMAGE = "![x](http://evil.example/a.png) costs $5 or $6 <b>bold</b>"
axe = screens.axe


def script(seen: Seen) -> Do:
    """Answer in prose first, refuse once, and give threes otherwise."""
    if seen.model == "b-model" and "Note two" in seen.prompt:
        return Do(refusal="No.")
    if len(seen.body["messages"]) == 1 and "Note one" in seen.prompt:
        return Do(text=f"Rather good. {IMAGE}")
    return Do(text=verdict(seen))


@pytest.fixture(scope="module")
def codes(study: Engine) -> dict[str, str]:
    """Fill the study: two clinicians, two jurors of whom one fails once, one marked stretch."""
    rows = [row(1, "Note one. No fever."), row(2, "Note two. No pain."), row(3, "Note three.")]
    codes = build(study, rows, ["dr-real-name", "dr-b"], rubric())
    person = person_of(study, codes["dr-real-name"])
    spans = (
        Marked("accuracy", 10, 18, "wrong", severity="critical", linked=1),
        Marked("completeness", 0, 4, "missing", f"left out {IMAGE}", side="source", linked=0),
    )
    replies = (
        Reply(RATINGS[0], {"clarity": "Hard <i>words</i>"}, f"Doubtful {IMAGE}", spans, ("flag",)),
        Reply(RATINGS[1], comment="Thin."),
    )
    codes_of_first = codes_of(study, "dr-real-name")[:2]
    for code, reply in zip(codes_of_first, replies, strict=True):
        assert submit(study, person.rater or 0, code, reply)
    codes["Rita"] = add_people(OPERATOR, study, ["Rita"], Role.RESEARCHER)[0].code
    with Stub(script) as stub:
        one = {"provider": "openai", "family": "x", "base_url": stub.openai_url}
        jurors = [one | {"name": name, "model": f"{name}-model"} for name in ("a", "b")]
        panel = Panel.model_validate({"name": "p", "juror": jurors})
        patience = Patience(first_wait=0.01, longest_wait=0.02)
        with ThreadPoolExecutor(1) as thread:  # in this one the browser's loop may run already
            thread.submit(run_panel, study, panel, patience=patience).result()
    return codes


@pytest.fixture(params=[LAPTOP, TABLET], ids=["laptop", "tablet"])
def rita(
    request: pytest.FixtureRequest, browser: Browser, server: Server, codes: dict[str, str]
) -> Iterator[Page]:
    """Return the workbench, open before a researcher."""
    context = new_context(browser, request.param)
    page = context.new_page()
    enter(page, server, codes["Rita"])
    page.goto(f"{server.address}/workbench")
    page.locator(".mj-list").wait_for(state="attached")
    yield page
    context.close()


def enter(page: Page, server: Server, code: str) -> None:
    page.goto(server.address)
    page.get_by_label("Your sign-in code").fill(code)
    page.get_by_role("button", name="Sign in").click()
    page.locator(".mj-head").wait_for()


def test_disagreement_is_jury_less_clinicians_and_a_jury_is_all_its_jurors(
    study: Engine, codes: dict[str, str]
) -> None:
    first, second, third = compared(OPERATOR, study, Chosen())
    assert (first.response_id, first.difference) == ("resp-hidden-1", -2.0)
    assert (first.clinicians.mean, first.jury.mean) == (5.0, 3.0)
    assert (second.jury.scored, second.jury.of, second.difference) == (1, 2, None)
    assert (third.clinicians.mean, third.jury.mean) == (None, 3.0)
    alone = compared(OPERATOR, study, Chosen(jurors=("a",)))
    assert [one.difference for one in alone] == [-2.0, 1.0, None]
    clarity = compared(OPERATOR, study, Chosen(jurors=("a",), criterion="clarity"))
    assert [one.difference for one in clarity] == [-2.0, 2.0, None]
    z = compared(OPERATOR, study, Chosen(measure="z"))
    assert [one.difference for one in z] == [None, None]  # jurors that give only threes have no z
    assert first.flags == {"marked", "critical", "flag"}
    assert second.flags == {"failed"}


def test_every_prompt_made_again_has_the_hash_that_is_stored(
    study: Engine, codes: dict[str, str]
) -> None:
    seen = 0
    for one in compared(OPERATOR, study, Chosen()):
        opened = opened_response(OPERATOR, study, one.response)
        assert opened is not None
        for place, call in enumerate(opened.calls):
            before = [other for other in opened.calls[:place] if other.juror == call.juror]
            prompt = workbench_response.prompt_of(call, before)
            assert prompt.exact
            assert len(prompt.turns) == call.attempt.sent["turns"]
            seen += 1
    assert seen == 8


def test_a_researcher_finds_a_disagreement_and_reads_all_that_was_said(
    rita: Page, axe: str
) -> None:
    asked: list[str] = []
    rita.on("request", lambda request: asked.append(request.url))
    unfold(rita)
    expect(rita.locator(".mj-list li").first).to_contain_text("\N{MINUS SIGN}2.00")
    expect(rita.locator(".mj-list li").first).to_contain_text("Note one. No fever")
    rita.get_by_role("link", name="resp-hidden-1").click()
    response = rita.get_by_role("region", name="Response", exact=True)
    expect(response).to_contain_text("Note one. No fever")
    expect(response.locator("mark.mj-wrong")).to_have_text("No fever1")
    marks = rita.get_by_label("Marked stretches").locator("li")
    expect(marks).to_have_count(2)
    expect(marks.first).to_contain_text("wrong, critical, accuracy, goes with 2")
    expect(marks.last).to_contain_text("missing, completeness, in the source, goes with 1")
    expect(marks.last).to_contain_text(f"left out {IMAGE}")
    source = rita.get_by_role("region", name="Source", exact=True)
    expect(source.locator("mark.mj-missing")).to_have_count(1)
    words = rita.locator(".mj-words").first
    expect(words.locator("dt")).to_have_text(["on the whole", "clarity"])
    expect(words.locator("dd")).to_have_text([f"Doubtful {IMAGE}", "Hard <i>words</i>"])
    seen_together(rita)
    calls_shown(rita)
    broken = check(rita, axe, "response")
    stepped_by_keys(rita)
    filtered(rita)
    link = rita.url
    rita.goto(f"{link.split('?')[0]}?where=a+juror+failed&jury=a&criterion=nonsense&response=999")
    unfold(rita)
    expect(rita.locator(".mj-list li")).to_have_count(1)
    expect(rita.locator(".mj-list")).to_contain_text("+1.00")
    expect(rita.get_by_text("Response 999 is not in this study")).to_be_visible()
    assert broken == []
    assert not [url for url in asked if "evil" in url]
    told = rita.content()
    assert "gpt-9-secret" not in told
    assert "dr-real-name" not in told


def unfold(page: Page) -> None:
    """Open the list, which is folded where the window is narrow."""
    page.locator("details.mj-fold").wait_for()
    wait_settled(page)
    if page.viewport_size == {"width": TABLET[0], "height": TABLET[1]}:
        page.locator("details.mj-fold > summary").click()
        page.locator("details.mj-matrix > summary").click()


def seen_together(page: Page) -> None:
    """Hold a laptop to it: the response and the scores of both sides are seen without scrolling."""
    if page.viewport_size == {"width": LAPTOP[0], "height": LAPTOP[1]}:
        for seen in (page.locator(".mj-answer"), page.locator(".mj-scores")):
            box = seen.bounding_box()
            assert box is not None
            assert box["y"] + box["height"] < LAPTOP[1]


def calls_shown(page: Page) -> None:
    """Unfold the calls and read what was sent and answered."""
    page.get_by_text("Calls to jurors").click()
    expect(page.get_by_role("region", name="Answer of a, call 1")).to_contain_text(IMAGE)
    again = page.get_by_role("region", name="Prompt of a, call 2")
    expect(again).to_contain_text("This answer cannot be used")
    expect(page.get_by_text("Word for word what was sent")).to_have_count(2)


def stepped_by_keys(page: Page) -> None:
    """Go on and back by j and k, and type both into the search, where they are letters."""
    for key, place in (("j", "2 of 3"), ("j", "3 of 3"), ("k", "2 of 3")):
        wait_settled(page)
        page.keyboard.press(key)
        expect(page.locator(".mj-at")).to_contain_text(place)
    assert "response=resp-hidden-" in page.url
    wait_settled(page)
    page.locator(".st-key-calls").get_by_text("b", exact=True).click()
    expect(page.locator(".mj-call")).to_contain_text("refused")
    wait_settled(page)
    page.keyboard.press("/")
    page.keyboard.type("jk")
    expect(page.get_by_label("Search")).to_have_value("jk")
    expect(page.locator(".mj-at")).to_contain_text("2 of 3")
    page.get_by_label("Search").fill("hard <I>")
    page.get_by_label("Search").press("Enter")
    expect(page.locator(".mj-at")).to_contain_text("1 of 1")
    expect(page.locator(".mj-list")).to_contain_text("in a comment: Hard <i>words</i>")
    page.get_by_label("Search").fill("")
    page.get_by_label("Search").press("Enter")
    expect(page.locator(".mj-at")).to_contain_text("of 3")


def filtered(page: Page) -> None:
    """Click a pair of the matrix; the address has it, and a second click takes it away."""
    wait_settled(page)
    page.get_by_role("link", name="clinicians 5, jury 3: 1").click()
    expect(page.locator(".mj-at")).to_contain_text("1 of 1")
    assert "cell=5_3" in page.url
    wait_settled(page)
    page.get_by_role("link", name="clinicians 1, jury 1: 0").click()
    expect(page.get_by_text("No response has this pair of scores.")).to_be_visible()
    wait_settled(page)
    page.get_by_role("link", name="clinicians 1, jury 1: 0").click()
    expect(page.locator(".mj-at")).to_contain_text("of 3")


def test_a_clinician_cannot_open_it(
    browser: Browser, server: Server, codes: dict[str, str]
) -> None:
    context = new_context(browser)
    page = context.new_page()
    sign_in(page, server, codes["dr-b"])
    for path in ("workbench?response=1", "lab"):
        page.goto(f"{server.address}/{path}")
        page.locator("form.likert").wait_for()
        wait_settled(page)
        assert not page.get_by_text("Workbench").count()
        assert not page.locator(".mj-head").count()
    context.close()


def check(page: Page, axe: str, view: str) -> list[str]:
    """Return what axe-core finds on a view."""
    wait_settled(page)
    return [f"{view} {one}" for one in screens.violations(page, axe)]
