"""All bytes that reach a clinician's browser over a shift tell nothing of authors or others."""

from pathlib import Path

import pytest
from kit.browsers import wait_for_count, wait_open, wait_settled
from kit.rating_study import FULL, build, codes_of, row, rubric
from kit.servers import Server
from kit.wiretap import read, record
from playwright.sync_api import Page, expect
from sqlalchemy import Engine

from data.card import Reply
from data.description import Description, GuidelinePage
from data.importers.ratings import ExpertFile
from data.importers.rows import Origin, RatingRow
from data.importers.table import TableFile
from data.schema import Kind
from data.study.ratings import import_ratings, submit
from data.study.responses import import_responses
from data.study.settings import describe, set_setting
from data.study.training import import_experts

pytestmark = pytest.mark.e2e

TOLD = Description(
    "Notes of the knee clinic", "Why we ask", "Dr. L", "l@h.example", "I agree.", "Read first.",
    guideline=(GuidelinePage("Scores", "5 is best."),),
)  # fmt: skip
EXPERTS = "response_id,accuracy,completeness,clarity,why\ntrain-hidden-1,3,4,5,The dose is wrong.\n"
OTHERS = "dr-quiet"
ANOTHERS_REMARK = "said by somebody else"
ANOTHERS_SCORE = "3.27182"
JUROR = "juror-hidden"
COORDINATOR = "coordinator-hidden"


MODELS, BENCHMARK, RUBRIC = ("gpt-9-secret", "llama-hidden"), "bench_hidden", "rubric_hidden"
SECRETS = [  # what nobody who rates may read
    *(*MODELS, BENCHMARK, RUBRIC, "resp-hidden", "inst-hidden", "juror-h", "train-hidden", OTHERS),
    *("the coordinator's name", ANOTHERS_REMARK, ANOTHERS_SCORE),
]


def prepare(engine: Engine, folder: Path) -> str:
    """Fill a study; return the code of the clinician whose shift it is."""
    named = [{"benchmark": BENCHMARK, "model": MODELS[n % 2]} for n in range(5)]
    text = "No fever. Mild knee pain."
    rows = [row(n, f"Note {n}. {text}", reference="Gold note.", **named[n]) for n in range(4)]
    scale = rubric(name=RUBRIC)
    lesson = row(4, "Practice: mild pain.", response_id="train-hidden-1", **named[4])
    import_responses(engine, [lesson], lambda _: scale)
    code = build(engine, rows, [OTHERS, "dr-shift"], scale)["dr-shift"]
    spoken = Reply(FULL, dict.fromkeys(FULL, ANOTHERS_REMARK), ANOTHERS_REMARK, flags=("flag",))
    submit(engine, 1, codes_of(engine, OTHERS)[0], spoken)
    where = Origin("made up", 1)
    judged = RatingRow(where, "resp-hidden-1", JUROR, Kind.JUROR, "accuracy", ANOTHERS_SCORE)
    import_ratings(engine, [judged])
    experts = folder / "experts.csv"
    experts.write_text(EXPERTS, "utf-8")
    import_experts(engine, ExpertFile(TableFile(experts)))
    describe(engine, TOLD, COORDINATOR)
    set_setting(engine, "reference", "on_request")
    return code


def work_a_shift(page: Page, address: str, code: str, heard: list[bytes]) -> None:
    """Sign in, consent, train, rate with every tool, go back, give back, end and sign out."""
    page.goto(address)
    page.get_by_label("Your sign-in code").fill("AAAA-BBBB-CCCC-DDDD")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("alert").wait_for()
    page.get_by_label("Your sign-in code").fill(code)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="I have read this and consent").click()
    _train(page)
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
    page.reload()
    wait_open(page)
    page.keyboard.type("425")
    page.keyboard.press("Control+Enter")
    page.get_by_role("heading", name="Thank you").wait_for()
    heard.append(page.content().encode())
    wait_settled(page)
    page.get_by_role("link", name="Sign out").click()
    page.wait_for_url("**/login")
    heard.append(page.content().encode())


def _train(page: Page) -> None:
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


def found_in(told: bytes, secrets: list[str]) -> list[str]:
    """Return which secrets were told."""
    return [one for one in secrets if one.lower().encode() in told]


@pytest.fixture(scope="module")
def codes(study: Engine, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {"dr-shift": prepare(study, tmp_path_factory.mktemp("experts"))}


def test_no_byte_of_a_shift_tells_author_or_others(
    page: Page, server: Server, study: Engine, codes: dict[str, str]
) -> None:
    heard = record(page)
    work_a_shift(page, server.address, codes["dr-shift"], heard)
    told = read(heard)
    heard_at_all = ["mild knee pain", "gold note.", "practice: mild", "i agree.", "new_session {"]
    assert found_in(told, heard_at_all) == heard_at_all  # the recording works
    assert found_in(told, SECRETS) == []
    assert found_in(told, [str(study.url.database)]) == []
