"""PostgreSQL goes away and comes back while a clinician types, in the real browser."""

import pytest
from kit.browsers import chosen, sign_in, wait_for_count, wait_saved
from kit.postgres import killable
from kit.rating_study import FULL, build, codes_of, row, rubric, scores_of
from kit.wiretap import record
from playwright.sync_api import expect
from sqlalchemy import Engine

from data.database import open_study
from data.study import room
from data.study.verify import verify

pytestmark = pytest.mark.e2e

AUTHORS = (b"gpt-9-secret", b"llama-hidden", b"bench_hidden", b"inst-hidden")
RATERS = ["dr-types", "dr-submits"]
REMARK = "The dose of metoprolol is not in the dialogue."
LATER = " It is 25 mg."


@pytest.fixture(scope="module")
def database():
    with killable() as server:
        yield server


@pytest.fixture(scope="module")
def study(database):
    engine = open_study(database.url, create=True)
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def codes(study):
    rows = [row(n, f"Note {n}: no fever.", reference="Mild pain.") for n in (1, 2)]
    return build(study, rows, RATERS, rubric(name="rubric_hidden"))


def stored(study: Engine, rater: str) -> list[float]:
    return [score for _, _, score in scores_of(study, rater)]


def test_what_is_typed_while_the_study_is_away_stays_and_is_rated_once_when_it_is_back(
    page, server, study, database, codes
):
    heard = record(page)
    sign_in(page, server, codes["dr-types"])
    page.keyboard.type("4")
    wait_saved(page)
    database.stop()
    page.keyboard.type("25c" + REMARK)
    told = page.get_by_role("alert")
    expect(told).to_contain_text("cannot be reached just now, but nothing you entered is lost")
    page.keyboard.type(LATER)
    assert chosen(page) == FULL
    notes = "JSON.stringify(Object.values(localStorage))"
    assert (REMARK + LATER)[:30] in page.evaluate(notes)  # a closed browser would lose nothing
    assert "no fever" not in page.evaluate(notes)  # only what was entered is kept
    database.start()
    wait_saved(page)
    expect(told).to_have_count(0)
    page.wait_for_function(f"() => !{notes}.includes('dose')")  # the study has it now
    task = room.task(study, 1, codes_of(study, "dr-types")[0])
    assert task is not None
    assert (task.draft["scores"], task.draft["comment"]) == (FULL, REMARK + LATER)
    page.keyboard.press("Control+Enter")
    wait_for_count(page, 1, 2)
    assert stored(study, "dr-types") == [*FULL.values()]
    assert verify(study).findings == ()
    assert [one for one in AUTHORS if one in b"".join(heard)] == []


def test_what_is_submitted_or_asked_for_while_the_study_is_away_is_told_and_goes_on_later(
    page, server, study, database, codes
):
    sign_in(page, server, codes["dr-submits"])
    page.keyboard.type("42")
    wait_saved(page)
    database.kill()
    page.keyboard.type("5")
    page.get_by_role("button", name="Show reference").click()
    page.get_by_role("button", name="Show reference (cannot be reached just now)").wait_for()
    page.keyboard.press("Control+Enter")
    told = page.get_by_role("alert").filter(has_text="Not stored yet")
    expect(told).to_contain_text("as the study cannot be reached")
    expect(page.locator(".mj-count")).to_contain_text("0 of 2")
    assert chosen(page) == FULL
    database.start()
    wait_for_count(page, 1, 2)
    assert stored(study, "dr-submits") == [*FULL.values()]
    page.get_by_role("button", name="Show reference").click()
    page.get_by_text("Mild pain.").wait_for()
