"""Describing a study on its screen in Chromium: what was seen is saved, and nothing of it loads."""

from collections.abc import Iterator

import pytest
from kit import screens
from kit.browsers import LAPTOP, TABLET, new_context, wait_settled
from kit.screens import at_study, open_part
from kit.servers import Server
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import Engine

from data.description import GuidelinePage
from data.person import OPERATOR
from data.schema import Role
from data.study.people import add_people
from data.study.settings import description, give_consent, lock
from data.study.verify import acts, verify

pytestmark = pytest.mark.e2e
axe = screens.axe
LOADS = (
    "# Doses\n\n![x](https://elsewhere.example/x.png) <img src='https://elsewhere.example/y.png'>"
    "<script>document.title='run'</script> [the list](https://elsewhere.example/list)"
)


@pytest.fixture(scope="module")
def codes(study: Engine) -> dict[str, str]:
    roles = {
        "Boss Lindqvist": Role.COORDINATOR,
        "Rita Okafor": Role.RESEARCHER,
        "dr-a": Role.CLINICIAN,
        "dr-b": Role.CLINICIAN,
    }
    return {name: add_people(OPERATOR, study, [name], role)[0].code for name, role in roles.items()}


@pytest.fixture(params=[LAPTOP, TABLET], ids=["laptop", "tablet"], scope="module")
def size(request: pytest.FixtureRequest) -> tuple[int, int]:
    found: tuple[int, int] = request.param
    return found


@pytest.fixture
def boss(
    browser: Browser, server: Server, codes: dict[str, str], size: tuple[int, int]
) -> Iterator[Page]:
    context = new_context(browser, size)
    page = at_study(context.new_page(), server, codes["Boss Lindqvist"])
    yield page
    context.close()


def test_a_coordinator_saves_exactly_what_was_shown_and_nothing_of_it_loads(
    boss: Page, study: Engine, axe: str, size: tuple[int, int]
) -> None:
    asked: list[str] = []
    boss.on("request", lambda request: asked.append(request.url))
    broken = []
    open_part(boss, "Description")
    if description(study) is not None:
        boss.get_by_text("Change the description").click()
    title = f"Notes at {size[0]}"
    _fill(boss, "Title", title)
    for name in ("Purpose", "Who is responsible", "Contact"):
        _fill(boss, name, f"The {name.lower()} in **bold**.")
    _fill(boss, "Consent (optional)", f"I agree, at {size[0]}.")
    _upload(boss, {"doses.md": LOADS, "b-side.md": "Other."})
    for page in ("Doses", "b side"):  # one of two files may be there first
        expect(boss.get_by_role("button", name=f"Remove {page}")).to_be_visible()
    wait_settled(boss)
    show = boss.get_by_role("button", name="Show what clinicians will see")
    show.click()
    preview = boss.locator(".mj-described").first
    expect(preview).to_contain_text(title)
    preview.get_by_text("Doses", exact=True).click()
    expect(preview).to_contain_text("the list (https://elsewhere.example/list)")
    wait_settled(boss)
    broken += screens.violations(boss, axe)
    save = boss.get_by_role("button", name="Save this description")
    _fill(boss, "Contact", "call 7")
    boss.get_by_text("The fields were changed since").wait_for()
    expect(save).to_have_count(0)
    show.click()
    expect(preview).to_contain_text("call 7")
    wait_settled(boss)
    save.click()
    boss.get_by_text("Saved, and in the record.").wait_for()
    told = description(study)
    assert told is not None
    assert (told.title, told.contact, told.consent) == (title, "call 7", f"I agree, at {size[0]}.")
    assert [one.title for one in told.guideline] == ["Doses", "b side"]
    assert told.guideline[0] == GuidelinePage("Doses", LOADS.removeprefix("# Doses\n\n"))
    assert acts(study, "study described")[-1].actor.startswith("account ")
    expect(boss.get_by_text("0 of 2 clinicians. Not yet: dr-a, dr-b")).to_be_visible()
    wait_settled(boss)
    broken += screens.violations(boss, axe)
    assert broken == []
    assert boss.title() != "run"
    assert [one for one in asked if "elsewhere.example" in one] == []
    assert verify(study).findings == ()


def test_pages_are_left_out_and_a_wrong_file_is_refused_by_name(boss: Page, study: Engine) -> None:
    before = description(study)
    assert before is not None
    open_part(boss, "Description")
    boss.get_by_text("Change the description").click()
    wait_settled(boss)
    boss.get_by_role("button", name="Remove Doses").click()
    expect(boss.get_by_role("button", name="Remove Doses")).to_have_count(0)
    wait_settled(boss)
    show = boss.get_by_role("button", name="Show what clinicians will see")
    show.click()
    preview = boss.locator(".mj-described").first
    expect(preview).to_contain_text("b side")
    expect(preview).not_to_contain_text("Doses")
    _upload(boss, {"empty.md": ""})
    expect(boss.get_by_role("alert")).to_contain_text("empty.md: guideline page empty: is empty")
    expect(boss.get_by_role("button", name="Save this description")).to_have_count(0)
    assert description(study) == before


def test_who_gave_consent_is_seen_here_and_with_the_people(
    boss: Page, server: Server, study: Engine
) -> None:
    told = description(study)
    assert told is not None
    give_consent(study, 1, told.consent_sha256)
    open_part(boss, "Description")
    expect(boss.get_by_text("1 of 2 clinicians. Not yet: dr-b")).to_be_visible()
    boss.goto(f"{server.address}/people")
    expect(boss.get_by_role("row").filter(has_text="dr-a")).to_contain_text("consent given on 20")
    expect(boss.get_by_role("row").filter(has_text="dr-b")).to_contain_text("consent not yet")


def test_a_researcher_reads_it_and_nobody_changes_it_once_the_study_is_locked(
    browser: Browser, server: Server, codes: dict[str, str], study: Engine
) -> None:
    lock(study, "coordinator")
    for name in ("Rita Okafor", "Boss Lindqvist"):
        context = new_context(browser, LAPTOP)
        page = at_study(context.new_page(), server, codes[name])
        open_part(page, "Description")
        expect(page.locator(".mj-described")).to_contain_text("Notes at")
        assert page.get_by_text("Change the description").count() == 0
        context.close()


def _fill(page: Page, label: str, text: str) -> None:
    wait_settled(page)
    field = page.get_by_label(label, exact=True)
    field.fill(text)
    field.press("Tab")
    wait_settled(page)


def _upload(page: Page, files: dict[str, str]) -> None:
    wait_settled(page)
    given = [
        {"name": name, "mimeType": "text/markdown", "buffer": text.encode()}
        for name, text in files.items()
    ]
    page.locator("input[type=file]").set_input_files(given)  # type: ignore[arg-type]
    wait_settled(page)
