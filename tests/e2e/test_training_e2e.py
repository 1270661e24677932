"""The training round in a real browser: fail, repeat, pass, and then the first response."""

import pytest
from kit.browsers import chosen, new_context, sign_in, wait_for_count, wait_open, wait_saved
from kit.rating_study import build, row, rubric, scores_of, train
from kit.servers import Server
from kit.wiretap import record
from playwright.sync_api import Browser, Locator, Page, expect

pytestmark = pytest.mark.e2e

EXPERTS = """response_id,accuracy,completeness,clarity,why
train-hidden-1,2,4,5,The dose of the second drug is wrong.
train-hidden-2,4.5,4,4,Nothing of note is missing.
"""
SECRETS = ["gpt-9-secret", "llama-hidden", "resp-hidden", "inst-hidden", "bench_hidden"]
SECRETS += ["rubric_hidden", "train-hidden", "dr-other"]


@pytest.fixture(scope="module")
def codes(study, tmp_path_factory):
    trained = [
        row(n + 7, f"Practice {n}: mild pain.", response_id=f"train-hidden-{n}") for n in (1, 2)
    ]
    scale = rubric(name="rubric_hidden")
    train(study, tmp_path_factory.mktemp("experts"), scale, trained, EXPERTS)
    return build(study, [row(1, "Real note: mild knee pain.")], ["dr-learns", "dr-other"], scale)


def test_a_clinician_fails_repeats_passes_and_then_rates_the_study(
    page, server, study, codes, browser
):
    heard = record(page)
    sign_in(page, server, codes["dr-learns"])
    _answer(page, 1, "551")
    _is_shown_elsewhere_too(browser, server, codes["dr-learns"])
    page.get_by_placeholder("Find in the texts").click()
    page.keyboard.type("no need")  # the N of a search leaves the feedback where it is
    expect(page.get_by_role("search").get_by_role("status")).to_have_text("none")
    page.reload()  # and the server was not told to go on
    _feedback(page).wait_for()
    _next(page, "Next response")
    wait_open(page)
    page.keyboard.type("5")
    wait_saved(page)
    _goes_on_elsewhere(browser, server, codes["dr-learns"])
    page.keyboard.type("11")
    _answer(page, 2, "")
    _next(page, "See how the round went")
    expect(page.get_by_role("heading", name="Once more, please")).to_be_visible()
    expect(page.get_by_role("region", name="Message")).to_contain_text("up to 1.0 is fine")
    _next(page, "Start again")
    for number, label in ((1, "Next response"), (2, "See how the round went")):
        _answer(page, number, "345", again=True)
        heard.append(page.content().encode())
        _next(page, label)
    expect(page.get_by_role("heading", name="Training passed")).to_be_visible()
    _next(page, "Begin rating")
    page.get_by_text("Real note: mild knee pain.").wait_for()
    wait_for_count(page, 0, 1)
    assert scores_of(study, "dr-learns") == []
    page.keyboard.type("435")
    page.keyboard.press("Control+Enter")
    page.get_by_role("heading", name="Thank you").wait_for()
    assert [one[1:] for one in scores_of(study, "dr-learns")] == [
        ("accuracy", 4),
        ("completeness", 3),
        ("clarity", 5),
    ]
    told = b"\n".join(heard).lower()
    assert b"practice 1: mild pain." in told  # the recording works
    assert b"the dose of the second drug" in told
    assert [one for one in SECRETS if one.encode() in told] == []


def _answer(page: Page, number: int, keys: str, again: bool = False) -> None:
    """Rate the training response shown and wait for the feedback."""
    part = ", round 2" if again else ""
    page.locator(".mj-count", has_text=f"Training{part}: response {number} of 2").wait_for()
    wait_open(page)
    page.keyboard.type(keys)
    page.keyboard.press("Control+Enter")
    _feedback(page).wait_for()


def _feedback(page: Page) -> Locator:
    return page.get_by_role("region", name="Your scores beside the expert's")


def _next(page: Page, label: str) -> None:
    button = page.get_by_role("button", name=label)
    button.wait_for()
    page.locator(".mj-room:not([data-quiet])").wait_for()
    page.keyboard.press("Enter" if label in ("Start again", "Begin rating") else "n")
    button.wait_for(state="detached")


def _is_shown_elsewhere_too(browser: Browser, server: Server, code: str) -> None:
    """See on a second device that feedback is shown until it has been left."""
    context = new_context(browser)
    page = context.new_page()
    page.goto(server.address)
    page.get_by_label("Your sign-in code").fill(code)
    page.get_by_role("button", name="Sign in").click()
    _feedback(page).wait_for()
    context.close()


def _goes_on_elsewhere(browser: Browser, server: Server, code: str) -> None:
    """See on a second device that the round and the draft go on there."""
    context = new_context(browser)
    page = context.new_page()
    sign_in(page, server, code)
    assert chosen(page) == {"accuracy": 5}
    context.close()
