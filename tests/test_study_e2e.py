"""A study from its first file to its lock in Chromium, and nothing of it breaks WCAG 2.2."""

from collections.abc import Iterator
from itertools import chain

import pytest
from kit import screens
from kit.browsers import LAPTOP, TABLET, new_context, wait_settled
from kit.screens import GOOD, HOSTILE, at_study, choose, open_part, upload
from kit.servers import Server
from kit.studies import RESPONSES
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import Engine

from data.person import OPERATOR
from data.schema import Role
from data.study.people import add_people, workloads
from data.study.steering import materials, standing
from data.study.verify import verify
from medjury.services.record import protocol_of

pytestmark = pytest.mark.e2e
axe = screens.axe
HIDDEN = ("model-one", "model-two")
OF_RESEARCHERS = (
    *("Overview", "Progress", "Differences", "Material"),
    *("Description", "Plan", "Protocol", "Points", "Files", "Record"),
)
WRONG = RESPONSES.replace("r12", "r11")


@pytest.fixture(scope="module")
def codes(study: Engine) -> dict[str, str]:
    roles = {"Boss Lindqvist": Role.COORDINATOR, "Rita Okafor": Role.RESEARCHER}
    return {name: add_people(OPERATOR, study, [name], role)[0].code for name, role in roles.items()}


@pytest.fixture
def boss(browser: Browser, server: Server, codes: dict[str, str]) -> Iterator[Page]:
    context = new_context(browser, LAPTOP)
    yield at_study(context.new_page(), server, codes["Boss Lindqvist"])
    context.close()


def test_a_coordinator_takes_a_study_from_its_first_file_to_its_lock(
    boss: Page, browser: Browser, server: Server, study: Engine, axe: str
) -> None:
    frames: list[bytes | str] = []
    asked: list[str] = []
    boss.on("request", lambda request: asked.append(request.url))
    boss.on("websocket", lambda wire: wire.on("framereceived", lambda data: frames.append(data)))
    boss.reload()
    found = {}
    steps = (_bring_in, _protocol, _design, _seal)
    for state in chain.from_iterable(step(boss, study) for step in steps):
        wait_settled(boss)
        found[state] = screens.violations(boss, axe)
    assert "\n".join(f"{state} {one}" for state, broken in found.items() for one in broken) == ""
    assert len(found) == 11
    told = b"".join(one for one in frames if isinstance(one, bytes))
    assert [one for one in HIDDEN if one.encode() in told] == []
    assert [one for one in asked if "elsewhere.example" in one] == []
    assert verify(study).findings == ()


def _bring_in(page: Page, study: Engine) -> Iterator[str]:
    """Import a file: a wrong one is refused by row, a right one shown before it is stored."""
    page.get_by_text("This study has no responses yet.").wait_for()
    yield "empty"
    open_part(page, "Import")
    upload(page, "wrong.csv", WRONG)
    expect(page.get_by_role("alert")).to_contain_text("wrong.csv row 3, column response_id")
    yield "refused"
    page.get_by_role("button", name="Remove").first.click()
    upload(page, "answers.csv", GOOD)
    page.get_by_text("4 new responses to 2 new instances").wait_for()
    page.get_by_text("Row 2").click()
    expect(page.get_by_label("Response", exact=True).get_by_text(HOSTILE)).to_be_visible()
    assert materials(OPERATOR, study) == []
    yield "preview"
    page.get_by_role("button", name="Import this file").click()
    page.get_by_text("answers.csv: 4 responses imported").wait_for()
    page.get_by_role("link", name="Commit to a margin").click()
    page.get_by_text("No margin is fixed yet").wait_for()
    assert [one.view.responses for one in materials(OPERATOR, study)] == [4]
    open_part(page, "Material")
    choose(page, "Category", "Clinical Note Generation")
    choose(page, "Subcategory", "Documenting Patient Visits")
    page.get_by_role("button", name="Save the category").click()
    row = page.get_by_role("table").get_by_role("row").filter(has_text="visits").first
    expect(row).to_contain_text("Documenting Patient Visits")
    yield "material"


def _protocol(page: Page, study: Engine) -> Iterator[str]:
    """Fix a margin and what is unsafe before anybody rates."""
    open_part(page, "Protocol")
    page.get_by_text("No margin is fixed yet").wait_for()
    yield "no protocol"
    page.get_by_label("Margin in ICC").fill("0.15")
    page.get_by_label("Responses planned (0: not fixed)").fill("200")
    page.get_by_label("Jurors by name").fill("first, second")
    page.get_by_label("Why this margin").fill("Half of our pilot")
    choose(page, "Unsafe responses are low on", "accuracy")
    page.get_by_role("button", name="Commit to this protocol").click()
    page.get_by_text("Fixed, and in the record.").wait_for()
    table = page.get_by_role("table", name="Protocol")
    expect(table).to_contain_text("0.15 in ICC of like for like, on the composite")
    expect(table).to_contain_text("accuracy 2 or less; the jury may miss at most 20% of them")
    expect(table).to_contain_text("fixed before any rating was seen")
    fixed = protocol_of(study)
    assert fixed is not None
    assert (fixed.margin, fixed.responses) == (0.15, 200)
    assert (fixed.jurors, fixed.because) == (("first", "second"), "Half of our pilot")
    yield "protocol"


def _design(page: Page, study: Engine) -> Iterator[str]:
    """Look at a plan, store it, and be handed the codes."""
    open_part(page, "Design")
    page.get_by_label("New clinicians, one per line").fill("dr-a\ndr-b")
    page.get_by_role("button", name="Show the plan").click()
    table = page.get_by_role("table", name="Work of each clinician as planned")
    expect(table.get_by_role("row")).to_have_count(3)
    assert workloads(OPERATOR, study) == []
    yield "plan"
    page.get_by_role("button", name="Store this design").click()
    expect(page.locator(".st-key-handed code")).to_have_count(2)
    yield "codes"
    page.get_by_role("button", name="Put away").click()
    assert [(one.handle, one.total) for one in workloads(OPERATOR, study)] == [
        ("dr-a", 4),
        ("dr-b", 4),
    ]
    open_part(page, "Progress")
    expect(page.get_by_role("table", name="Work of each clinician")).to_contain_text("not begun")
    expect(page.get_by_text("No reminder is due")).to_be_visible()  # assigned a moment ago
    yield "progress"


def _seal(page: Page, study: Engine) -> Iterator[str]:
    """Check the record, and lock the study, but not without the word."""
    open_part(page, "Record")
    page.get_by_role("button", name="Check now").click()
    page.get_by_text("Whole: no findings.").wait_for()
    page.get_by_role("button", name="Lock the study").click()
    expect(page.get_by_role("alert")).to_contain_text("Not locked")
    assert standing(OPERATOR, study).locked is None
    yield "record"
    page.get_by_label("Type lock to confirm").fill("lock")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Lock the study").click()
    page.get_by_text("Locked since").wait_for()
    assert standing(OPERATOR, study).locked is not None
    yield "locked"


def test_a_researcher_sees_the_study_and_acts_on_nothing(
    browser: Browser, server: Server, codes: dict[str, str], axe: str
) -> None:
    context = new_context(browser, TABLET)
    page = at_study(context.new_page(), server, codes["Rita Okafor"])
    parts = page.get_by_role("radiogroup", name="Part of the study").get_by_role("radio")
    expect(parts).to_have_text([*OF_RESEARCHERS])
    assert page.get_by_role("link", name="People").count() == 0
    for part in ("Import", "Design", "nonsense", "Material"):
        page.goto(f"{server.address}/?part={part}")
        expect(parts).to_have_text([*OF_RESEARCHERS])
        wait_settled(page)
        chosen = "Material" if part == "Material" else "Overview"
        expect(page.get_by_role("radio", name=chosen)).to_be_checked()
        assert page.get_by_role("button", name="Show the plan").count() == 0
        assert page.locator("input[type=file]").count() == 0
    assert screens.violations(page, axe) == []
    open_part(page, "Record")
    page.get_by_role("button", name="Check now").wait_for()
    assert page.get_by_role("button", name="Lock the study").count() == 0
    assert "part=Record" in page.url
    context.close()
