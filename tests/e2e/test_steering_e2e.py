"""Home in Chromium: a journey, and nothing of it breaks WCAG 2.2."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from kit import screens
from kit.browsers import LAPTOP, new_context
from kit.screens import WAIT_MS, at_study, choose, open_part
from kit.screens import server as server
from kit.servers import Server
from kit.studies import import_small
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import Engine

from data.card import Reply
from data.person import OPERATOR
from data.schema import Role
from data.study.adjudication import differences
from data.study.assignments import Slot, answers_for, assign
from data.study.people import add_people, invite, people
from data.study.ratings import submit
from data.study.room import next_task
from data.study.settings import set_setting
from data.study.verify import verify

axe = screens.axe
pytestmark = pytest.mark.e2e


@pytest.fixture
def boss(browser: Browser, server: Server, engine: Engine) -> Iterator[Page]:
    """Return the page of a coordinator who has just signed in."""
    [coordinator] = add_people(OPERATOR, engine, ["Boss Lindqvist"], Role.COORDINATOR)
    context = new_context(browser, LAPTOP)
    yield at_study(context.new_page(), server, coordinator.code)
    context.close()


@pytest.fixture
def differing(engine: Engine, tmp_path: Path) -> Engine:
    """Return a study with one difference between two clinicians, and one flag."""
    import_small(engine, tmp_path)
    invite(engine, ["dr_low", "dr_high", "dr_other"])
    assign(engine, [Slot("dr_low", 1, 0), Slot("dr_high", 1, 0)], seed=0)
    for rater, accuracy in ((1, 1), (2, 4)):
        shown = next_task(engine, rater).task
        assert shown is not None
        scores = {"accuracy": accuracy, "completeness": 3, "clarity": 3}
        flagged = Reply(scores, comment="is it <b>cut</b> off?", flags=("flag",))
        submit(engine, rater, shown.card.code, flagged if rater == 1 else Reply(scores), 30)
    set_setting(engine, "adjudicate_from", "2")
    return engine


def test_home_has_what_waits_and_who_takes_part(
    differing: Engine, boss: Page, browser: Browser, server: Server, axe: str
) -> None:
    boss.get_by_text("1 flag, 1 not answered").wait_for(timeout=WAIT_MS)
    expect(boss.get_by_text("is it <b>cut</b> off?")).to_be_visible()
    screens.settle(boss)
    broken = screens.violations(boss, axe)
    boss.get_by_role("button", name="Assign 1 third reading").click()
    boss.get_by_text("1 reading assigned, after each clinician's other work.").wait_for()
    [found] = differences(OPERATOR, differing, 2)
    assert found.reading == "third"
    screens.settle(boss)
    field = boss.get_by_role("textbox", name="Answer to dr_low on r11")
    field.fill("Ask model-one.")
    boss.get_by_role("button", name="Answer", exact=True).click()
    boss.get_by_text("names what may be a model").wait_for()
    screens.settle(boss)
    field.fill("It is whole.")
    boss.get_by_role("button", name="Answer", exact=True).click()
    boss.get_by_text("Answered; the clinician sees it").wait_for()
    assert [one.answer for one in answers_for(differing, 1)] == ["It is whole."]
    open_part(boss, "Progress")
    boss.get_by_text("readings are open").wait_for()
    screens.settle(boss)
    broken += screens.violations(boss, axe)
    _add_and_manage(boss, differing)
    broken += screens.violations(boss, axe)
    assert broken == []
    [rita] = add_people(OPERATOR, differing, ["Rita Okafor"], Role.RESEARCHER)
    page = screens.signed_in(browser, server, rita.code, "tablet")
    expect(page.get_by_role("tab")).to_have_text(["To do", "Progress"])
    assert page.get_by_role("button", name="Answer", exact=True).count() == 0
    screens.opened(page, server, "setup?part=Clinicians")
    expect(page.get_by_role("radio", name="Notes: done")).to_be_checked()
    assert page.locator("input[type=file]").count() == 0
    assert screens.violations(page, axe) == []
    page.context.close()
    assert verify(differing).findings == ()


def _add_and_manage(page: Page, study: Engine) -> None:
    """Add somebody, hand the code over, give an address, and shut the person out."""
    open_part(page, "People")
    page.get_by_role("button", name="Add people").click()
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("alert").filter(has_text="at least one name").wait_for()
    page.get_by_label("Names, one a line").fill("dr <i>Ng</i>")
    page.get_by_role("button", name="Add", exact=True).click()
    page.locator(".st-key-handed code").wait_for()
    page.get_by_role("button", name="Put away").click()
    choose(page, "Person", "dr <i>Ng</i>")
    for act in ("Hospital e-mail", "Shut out"):
        screens.settle(page)
        page.get_by_role("button", name="Manage", exact=True).click()
        page.get_by_role("dialog").get_by_text(act).click()
        screens.settle(page)
        if act == "Hospital e-mail":
            page.get_by_label("Address").fill("NG@ward.example")
            page.get_by_role("button", name="Save").click()
        else:
            page.get_by_role("dialog").get_by_role("button", name="Shut out").click()
        page.get_by_role("dialog").wait_for(state="detached")
    screens.settle(page)
    [ng] = [one for one in people(OPERATOR, study) if one.name == "dr <i>Ng</i>"]
    assert (ng.email, ng.way) == ("ng@ward.example", "ended")
