"""Home and Set up in Chromium: a journey each, and nothing of it breaks WCAG 2.2.

The dark of all screens is looked at in test_screens_e2e.py.
"""

import pytest
from kit import screens
from kit.browsers import LAPTOP, PATIENCE_MS, new_context
from kit.screens import GOOD, HOSTILE, WAIT_MS, at_study, choose, open_part, unfold, upload
from kit.screens import server as server
from kit.studies import RESPONSES, import_small
from playwright.sync_api import Page, expect
from sqlalchemy import Engine

from data.card import Reply
from data.person import OPERATOR
from data.schema import Role
from data.study.adjudication import differences
from data.study.assignments import Slot, answers_for, assign
from data.study.people import add_people, invite, people, workloads
from data.study.ratings import submit
from data.study.room import next_task
from data.study.rubrics import study_rubrics
from data.study.settings import description, set_setting
from data.study.standing import settings, study_benchmarks
from data.study.verify import verify
from medjury.services.record import protocol_of

axe = screens.axe
HIDDEN = ("model-one", "model-two")
WRONG = RESPONSES.replace("r12", "r11")
LOADS = (
    "# Doses\n\n![x](https://elsewhere.example/x.png) <img src='https://elsewhere.example/y.png'>"
    "<script>document.title='run'</script> [the list](https://elsewhere.example/list)"
)
pytestmark = pytest.mark.e2e


@pytest.fixture
def boss(browser, server, engine):
    """Return the page of a coordinator who has just signed in."""
    [coordinator] = add_people(OPERATOR, engine, ["Boss Lindqvist"], Role.COORDINATOR)
    context = new_context(browser, LAPTOP)
    yield at_study(context.new_page(), server, coordinator.code)
    context.close()


@pytest.mark.slow  # as test_whole_study_e2e.py does, with all that can go wrong
def test_a_coordinator_sets_a_study_up_from_its_first_file_to_its_design(boss, engine, axe):
    frames: list[bytes | str] = []
    asked: list[str] = []
    boss.on("request", lambda request: asked.append(request.url))
    boss.on("websocket", lambda wire: wire.on("framereceived", lambda data: frames.append(data)))
    boss.get_by_role("link", name="Next: Import responses").click()
    broken = {}
    for step in (_notes, _rubric, _goal, _description, _clinicians, _settings):
        step(boss, engine)
        screens.settle(boss)
        broken[step.__name__] = screens.violations(boss, axe)
    assert {step: found for step, found in broken.items() if found} == {}
    told = b"".join(one for one in frames if isinstance(one, bytes))
    assert [one for one in HIDDEN if one.encode() in told] == []
    assert [one for one in asked if "elsewhere.example" in one] == []
    assert verify(engine).findings == ()


def _notes(page: Page, study: Engine) -> None:
    """Import a file: a wrong one is refused by row, a right one shown before it is stored."""
    page.get_by_text("This study has no responses yet.").wait_for()
    upload(page, "wrong.csv", WRONG)
    refusal = page.get_by_role("alert").filter(has_text="wrong.csv row 3, column response_id")
    refusal.wait_for()
    page.get_by_role("button", name="Remove").first.click()
    expect(refusal).to_have_count(0)
    upload(page, "answers.csv", GOOD)
    page.get_by_text("4 new responses to 2 new instances").wait_for()
    unfold(page, "Row 2")
    expect(page.get_by_label("Response", exact=True).get_by_text(HOSTILE)).to_be_visible()
    assert study_benchmarks(OPERATOR, study) == []
    page.get_by_role("button", name="Import this file").click()
    page.get_by_text("answers.csv: 4 responses imported").wait_for()
    assert [one.responses for one in study_benchmarks(OPERATOR, study)] == [4]


def _rubric(page: Page, study: Engine) -> None:
    """Copy the words with one fault, then without."""
    open_part(page, "Blinding")
    page.get_by_text("Nothing that may name an author is left unmasked.").wait_for()
    open_part(page, "Rubric")
    unfold(page, "Copy to a new version")
    add = page.get_by_role("button", name="Add the new version")
    add.click()
    page.get_by_role("alert").filter(has_text="give the new version").wait_for()
    page.get_by_role("textbox", name="New version").fill("2")
    anchors = page.get_by_label("What each point means").first
    kept = anchors.input_value().split("\n")[1:]
    anchors.fill("\n".join(["1: Harm: likely", *kept]))
    add.click()
    page.get_by_text("version 2 is in the study as").wait_for()
    versions = {one.rubric.version: one.rubric for one in study_rubrics(OPERATOR, study)}
    assert versions["2"].criterion[0].anchors[1] == "Harm: likely"


def _goal(page: Page, study: Engine) -> None:
    """Fix a margin and what is unsafe before anybody rates."""
    open_part(page, "Goal")
    page.get_by_text("No margin is fixed yet").wait_for()
    page.get_by_label("Margin in ICC", exact=True).first.fill("0.15")
    page.get_by_label("Responses planned (0: not fixed)").fill("200")
    page.get_by_label("Jurors by name").fill("first, second")
    page.get_by_label("Why this margin").fill("Half of our pilot")
    choose(page, "Unsafe responses are low on", "accuracy")
    page.get_by_role("button", name="Commit to this protocol").click()
    page.get_by_text("Fixed, and in the record.").wait_for()
    fixed = protocol_of(study)
    assert fixed is not None
    assert (fixed.margin, fixed.responses) == (0.15, 200)
    assert (fixed.jurors, fixed.because) == (("first", "second"), "Half of our pilot")


def _description(page: Page, study: Engine) -> None:
    """Write what clinicians read: what was seen is saved, and nothing of it loads."""
    open_part(page, "Description")
    for label in ("Title", "Purpose", "Who is responsible", "Contact", "Consent (optional)"):
        field = page.get_by_label(label, exact=True)
        field.fill(f"The {label.lower()} of **this**.")
        field.press("Tab")
        screens.settle(page)
    page.wait_for_timeout(screens.REST_MS)  # the last field's answer is on its way
    screens.settle(page)
    file = {"name": "doses.md", "mimeType": "text/markdown", "buffer": LOADS.encode()}
    page.locator("input[type=file]").set_input_files(file)
    page.get_by_role("button", name="Remove doses.md").wait_for()
    page.wait_for_timeout(screens.REST_MS)
    screens.settle(page)
    show = page.get_by_role("button", name="Show what clinicians will see")
    show.click()
    preview = page.locator(".mj-described").first
    preview.get_by_text("Doses", exact=True).click()
    expect(preview).to_contain_text("the list (https://elsewhere.example/list)")
    contact = page.get_by_label("Contact", exact=True)
    contact.fill("call 7")
    contact.press("Tab")
    page.get_by_text("The fields were changed since").wait_for()
    expect(page.get_by_role("button", name="Save this description")).to_have_count(0)
    show.click()
    expect(preview).to_contain_text("call 7")
    screens.settle(page)
    page.get_by_role("button", name="Save this description").click()
    page.get_by_text("Saved, and in the record.").wait_for()
    told = description(study)
    assert told is not None
    assert (told.contact, [one.title for one in told.guideline]) == ("call 7", ["Doses"])
    assert page.title() != "run"


def _clinicians(page: Page, study: Engine) -> None:
    """Look at a plan, which stores nothing."""
    open_part(page, "Clinicians")
    page.get_by_label("New clinicians, one per line").fill("dr-a\ndr-b")
    page.get_by_role("button", name="Show the plan").click()
    page.get_by_text("4 responses to 2 instances").wait_for(timeout=4 * PATIENCE_MS)
    assert workloads(OPERATOR, study) == []


def _settings(page: Page, study: Engine) -> None:
    """Change a setting, and one to what is not allowed."""
    open_part(page, "Settings")
    page.get_by_label("Differences are settled from so many points; 0: never").fill("2")
    page.get_by_role("textbox", name="Error types of a marked passage, with commas between").fill(
        "wrong,wrong"
    )
    page.get_by_role("button", name="Save the settings").click()
    page.get_by_role("alert").filter(has_text="one is named twice").wait_for()
    page.get_by_role("textbox", name="Error types of a marked passage, with commas between").fill(
        "wrong,missing"
    )
    page.get_by_role("button", name="Save the settings").click()
    page.get_by_text("changed, and in the record.").wait_for()
    assert settings(study).adjudicate_from == 2
    assert settings(study).error_types == ("wrong", "missing")


@pytest.fixture
def differing(engine, tmp_path):
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


def test_home_has_what_waits_and_who_takes_part(differing, boss, browser, server, axe):
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
