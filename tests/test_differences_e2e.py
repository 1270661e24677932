"""The part of the Study screen on differences and flags, in Chromium, without a WCAG 2.2 fault."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from kit import screens
from kit.browsers import LAPTOP, PATIENCE_MS, new_context, wait_settled
from kit.screens import at_study
from kit.servers import Server
from kit.studies import import_small
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import Engine

from data.card import Reply
from data.person import OPERATOR
from data.schema import Role
from data.study.adjudication import differences
from data.study.assignments import Slot, answers_for, assign, flags
from data.study.people import add_people, invite
from data.study.ratings import submit
from data.study.room import next_task
from data.study.settings import set_setting
from data.study.verify import verify

pytestmark = pytest.mark.e2e
axe = screens.axe


@pytest.fixture(scope="module")
def codes(study: Engine, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Make a study with one difference and one flag; return its coordinator's code."""
    folder: Path = tmp_path_factory.mktemp("small")
    import_small(study, folder)
    invite(study, ["dr_low", "dr_high", "dr_other"])
    assign(study, [Slot("dr_low", 1, 0), Slot("dr_high", 1, 0)], seed=0)
    for rater, accuracy in ((1, 1), (2, 4)):
        shown = next_task(study, rater).task
        assert shown is not None
        scores = {"accuracy": accuracy, "completeness": 3, "clarity": 3}
        flagged = Reply(scores, comment="is it cut off?", flags=("flag",))
        submit(study, rater, shown.card.code, flagged if rater == 1 else Reply(scores), 30)
    set_setting(study, "adjudicate_from", "2")
    [boss] = add_people(OPERATOR, study, ["Boss Lindqvist"], Role.COORDINATOR)
    return {boss.handle: boss.code}


@pytest.fixture
def boss(browser: Browser, server: Server, codes: dict[str, str]) -> Iterator[Page]:
    context = new_context(browser, LAPTOP)
    yield at_study(context.new_page(), server, codes["Boss Lindqvist"])
    context.close()


def test_a_coordinator_assigns_a_third_reading_and_answers_a_flag(
    boss: Page, server: Server, study: Engine, axe: str
) -> None:
    frames: list[bytes | str] = []
    boss.on("websocket", lambda wire: wire.on("framereceived", lambda data: frames.append(data)))
    boss.goto(f"{server.address}/study?part=Differences")
    expect(boss.get_by_text("1 responses, 1 of them not settled.")).to_be_visible(
        timeout=PATIENCE_MS
    )
    wait_settled(boss)
    broken = screens.violations(boss, axe)
    boss.get_by_role("button", name="Assign 1 third reading").click()
    done = boss.get_by_text("1 reading assigned, after each clinician's other work.")
    expect(done).to_be_visible(timeout=PATIENCE_MS)
    [found] = differences(OPERATOR, study, 2)
    assert found.reading == "third"
    wait_settled(boss)
    boss.get_by_label("Answer", exact=True).fill("Ask model-one.")
    boss.get_by_role("button", name="Answer", exact=True).click()
    refused = boss.get_by_text("names what may be a model")
    expect(refused).to_be_visible(timeout=PATIENCE_MS)
    wait_settled(boss)
    boss.get_by_label("Answer", exact=True).fill("It is whole.")
    boss.get_by_role("button", name="Answer", exact=True).click()
    expect(boss.get_by_text("Answered; the clinician sees it")).to_be_visible(timeout=PATIENCE_MS)
    wait_settled(boss)
    assert broken + screens.violations(boss, axe) == []
    assert [one.answer for one in answers_for(study, 1)] == ["It is whole."]
    assert [one.answers for one in flags(OPERATOR, study)] == [("It is whole.",)]
    told = b"".join(one for one in frames if isinstance(one, bytes))
    assert b"names what may be a model" in told  # what was typed, and nothing of the other one
    assert b"model-two" not in told
    assert verify(study).findings == ()
