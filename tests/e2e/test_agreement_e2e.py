"""The agreement screen in Chromium: every view, and each response one click away."""

import re

import pytest
from kit import screens
from kit.agreement_screen import FIRST_MS, MARKUP, opened, view
from kit.agreement_screen import served as served
from kit.browsers import wait_settled
from kit.rating_study import build, codes_of, person_of, row, rubric
from kit.servers import serving
from kit.studies import AUTHOR
from playwright.sync_api import Page, expect

from data.card import Marked, Reply
from data.database import open_study
from data.importers.rows import Origin, RatingRow
from data.person import OPERATOR
from data.schema import Kind, Role
from data.study.people import add_people
from data.study.ratings import import_ratings, submit
from data.study.reviews import tag_counts

pytestmark = pytest.mark.e2e
VIEWS = ("Criteria", "Unsafe", "Subgroups", "Errors", "Jurors", "Models", "Responses", "Result")
HOSTILE = "![x](http://evil.example/a.png) costs $5 <b>bold</b>"
axe = screens.axe


@pytest.mark.slow  # test_installed_e2e.py looks at each view of the demo
@pytest.mark.parametrize("size", ["laptop", "tablet"])
def test_no_view_of_agreement_breaks_wcag_22_aa_or_names_an_author(size, browser, served, axe):
    page = opened(browser, served, "agreement?method=published&criterion=nonsense", size)
    expect(page).to_have_url(re.compile("method=published"))
    assert "nonsense" not in page.url
    expect(page.get_by_text("Next:")).to_be_visible(timeout=FIRST_MS)
    found = {}
    for name in VIEWS:
        view(page, name)
        if name == "Jurors":
            table = screens.sheet(page, "Agreement with the clinicians")
            expect(table).to_contain_text(MARKUP, timeout=FIRST_MS)
        screens.settle(page)
        for scheme in ("dark", "light"):
            page.emulate_media(color_scheme=scheme)
            wait_settled(page)
            found[name, scheme] = screens.violations(page, axe)
        assert AUTHOR not in page.content()
    page.context.close()
    assert {name: broken for name, broken in found.items() if broken} == {}


@pytest.fixture(scope="module")
def read(tmp_path_factory, empty_study):
    """Serve a study with a marked response, hostile words, and two jurors; for a researcher."""
    engine = open_study(f"sqlite:///{tmp_path_factory.mktemp('read') / 'study.db'}", create=True)
    rows = [row(n, f"Note {n}. No fever. {HOSTILE}") for n in (1, 2, 3)]
    codes = build(engine, rows, ["dr-real-name"], rubric())
    person = person_of(engine, codes["dr-real-name"])
    for code in codes_of(engine, "dr-real-name")[:2]:
        marks = (Marked("accuracy", 8, 16, "wrong", severity="critical"),)
        scores = dict.fromkeys(("accuracy", "completeness", "clarity"), 5)
        reply = Reply(scores, {"clarity": "Hard <i>words</i>"}, f"Doubtful {HOSTILE}", marks)
        assert submit(engine, person.rater or 0, code, reply)
    given = [
        RatingRow(
            *(Origin("f", 1), f"resp-hidden-{n}", juror, Kind.JUROR, name, str(points)),
            comment=f"by {juror} {HOSTILE}",
        )
        for juror, points in (("old", 3), ("new", 4))
        for n in (1, 2, 3)
        for name in ("accuracy", "completeness", "clarity")
    ]
    import_ratings(engine, given)
    code = add_people(OPERATOR, engine, ["Rita"], Role.RESEARCHER)[0].code
    with serving(str(engine.url)) as server:
        yield engine, server, code
    engine.dispose()


def test_a_researcher_finds_a_disagreement_reads_it_and_tags_it(browser, read, axe):
    engine, server, code = read
    page = screens.signed_in(browser, server, code)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{server.address}/agreement?view=Responses&first-jury=old&response=nobody")
    expect(page.get_by_text("Response nobody is not in this study")).to_be_visible()
    listed = screens.sheet(page, "Responses by disagreement")
    expect(listed).to_contain_text("resp-hidden-1-2")
    shown = page.get_by_role("region", name="Response", exact=True)
    expect(shown.locator("mark.mj-wrong")).to_have_text("No fever1")
    expect(page.get_by_label("Marked passages")).to_contain_text("wrong, critical, accuracy")
    words = page.locator(".mj-words").first
    expect(words.locator("dd")).to_have_text([f"Doubtful {HOSTILE}", "Hard <i>words</i>"])
    expect(page.get_by_text("The jury is 2.00 lower")).to_be_visible()
    screens.settle(page)
    for key, place in (("j", "2 of 3"), ("j", "3 of 3"), ("k", "2 of 3")):
        page.keyboard.press(key)
        expect(page.get_by_text(place)).to_be_visible()
        screens.settle(page)
    assert "response=resp-hidden-" in page.url
    page.get_by_label("Tags", exact=True).fill("odd")
    page.get_by_role("option", name="Add: odd").wait_for()
    page.keyboard.press("Enter")
    for _ in range(100):
        if tag_counts(OPERATOR, engine):
            break
        page.wait_for_timeout(200)
    assert tag_counts(OPERATOR, engine) == {"odd": 1}
    second(page)
    assert screens.violations(page, axe) == []
    assert not [url for url in asked if "evil" in url]
    assert "dr-real-name" not in page.content()
    page.context.close()


def second(page: Page) -> None:
    """Set a second jury beside the first: what moved stands above the list and beside the texts."""
    page.goto(f"{page.url}&second=new")
    expect(page.get_by_text("From the first jury to the second: 3 moved up")).to_be_visible()
    both = screens.sheet(page, "Scores and explanations of both juries")
    expect(both).to_contain_text("new, only in the second")
    wait_settled(page)
