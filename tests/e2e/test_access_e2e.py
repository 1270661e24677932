"""A coordinator invites, a clinician comes and rates, and nobody gets further than their role."""

from collections.abc import Iterator

import httpx2
import pytest
from kit.browsers import TABLET, new_context, wait_for_count, wait_open
from kit.rating_study import build, in_browser, row, rubric, scores_of, session_of
from kit.servers import Server, free_port
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import Engine
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.util import calc_hash
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from annotate.navigation import SCREENS, Screen
from data.person import OPERATOR, Person
from data.schema import Role
from data.study.access import enter
from data.study.assignments import Slot, assign
from data.study.people import add_people, check_code, renew_access

pytestmark = pytest.mark.e2e
COORDINATOR = "Coordinator Lindqvist"
HIDDEN = ("Lindqvist", "dr-other", "Add people", "Manage", "researcher", "Researcher")


@pytest.fixture
def other(browser: Browser) -> Iterator[Page]:
    """Return a page of somebody else's browser."""
    context = new_context(browser, TABLET)
    yield context.new_page()
    context.close()


@pytest.fixture(scope="module")
def codes(study: Engine) -> dict[str, str]:
    rows = [row(1, "No fever."), row(2, "Mild pain.")]
    return build(study, rows, ["dr-one", "dr-other"], rubric())


@pytest.fixture(scope="module")
def coordinator(study: Engine, codes: dict[str, str]) -> str:
    return add_people(OPERATOR, study, [COORDINATOR], Role.COORDINATOR)[0].code


def signed_in(study: Engine, code: str) -> Person:
    """Return whom a code lets in."""
    found = check_code(study, code).person
    assert found is not None
    return enter(study, found).person


def test_an_invitation_leads_from_the_coordinator_to_a_rating(
    page: Page, other: Page, server: Server, study: Engine, coordinator: str
) -> None:
    page.goto(server.address)
    page.get_by_label("Your sign-in code").fill(coordinator)
    page.keyboard.press("Enter")
    page.get_by_role("tab", name="People").click()
    page.get_by_role("button", name="Add people").click()
    page.get_by_label("Names, one a line").fill("dr-invited")
    page.get_by_role("button", name="Add", exact=True).click()
    link = page.locator(".st-key-handed code").inner_text()
    assign(study, [Slot("dr-invited", 1, 0)], seed=0)
    asked: list[str] = []
    other.on("request", lambda request: asked.append(request.url))
    other.goto(link)
    other.get_by_role("button", name="Open the study").click()
    expect(other.get_by_text("Welcome, dr-invited")).to_be_visible()
    other.get_by_role("link", name="begin").click()
    wait_open(other)
    other.keyboard.type("425")
    other.keyboard.press("Control+Enter")
    other.get_by_role("heading", name="Thank you").wait_for()
    assert len(scores_of(study, "dr-invited")) == 3
    code = link.partition("#")[2]
    assert not [url for url in asked[1:] if code in url]
    page.get_by_role("button", name="Put away").click()
    expect(page.locator(".st-key-handed")).to_have_count(0)
    other.context.clear_cookies()
    other.goto("about:blank")
    other.goto(link)
    other.get_by_role("button", name="Open the study").click()
    expect(other.get_by_role("alert")).to_contain_text("used already")


def test_a_clinician_finds_nothing_of_the_coordinators_screen(
    page: Page, server: Server, study: Engine, coordinator: str
) -> None:
    token = session_of(study, signed_in(study, renew_access(OPERATOR, study, "dr-one").code))
    page.context.add_cookies([in_browser(token, server.address)])
    frames: list[bytes | str] = []
    page.on(
        "websocket", lambda opened: opened.on("framereceived", lambda data: frames.append(data))
    )
    page.goto(f"{server.address}/setup")
    wait_open(page)
    told = [one for one in frames if isinstance(one, bytes)]
    assert [one for one in HIDDEN if one.encode() in b"".join(told)] == []
    assert screens(told) == {"Rate"}


def screens(frames: list[bytes]) -> set[str]:
    """Return the titles of all pages that a browser was told of."""
    told = [ForwardMsg.FromString(one) for one in frames]
    return {
        page.page_name
        for one in told
        if one.WhichOneof("type") == "navigation"
        for page in one.navigation.app_pages
    }


def test_a_crafted_connection_gets_no_further(
    server: Server, study: Engine, coordinator: str
) -> None:
    clinician = signed_in(study, renew_access(OPERATOR, study, "dr-one").code)
    good = session_of(study, clinician)
    told = forced(server, good, "people")
    assert [one for one in HIDDEN if one.encode() in told] == []
    assert b"No fever." not in told  # the room alone sends it, to whom it is for
    asked = httpx2.get(f"{server.address}/room", headers={"Cookie": good})
    assert (asked.status_code, "No fever." in asked.text) == (200, True)
    for forged in (good[:-3] + "abc", "", "x=y.z"):
        with pytest.raises(InvalidStatus, match="403"):
            forced(server, forged, "people")
        asked = httpx2.get(f"{server.address}/room", headers={"Cookie": forged})
        assert (asked.status_code, "No fever." in asked.text) == (401, False)
    boss = session_of(study, signed_in(study, coordinator))
    told = forced(server, boss, "rate")
    assert b"Next: " in told
    assert b"No fever." not in told


def forced(server: Server, token: str, path: str) -> bytes:
    """Ask over a WebSocket of our own for a page by the name it would have; return all frames."""
    ask = BackMsg()
    ask.rerun_script.page_name = path
    ask.rerun_script.page_script_hash = calc_hash(path)  # as Streamlit names its pages
    with connect(
        f"ws://127.0.0.1:{server.port}/_stcore/stream",
        origin=Origin(server.address),
        subprotocols=[Subprotocol("streamlit")],
        additional_headers={"Cookie": token},
        max_size=2**24,
    ) as wire:
        wire.send(ask.SerializeToString())
        told = b""
        while True:
            frame = bytes(wire.recv(timeout=30))  # type: ignore[arg-type]
            told += frame
            if ForwardMsg.FromString(frame).WhichOneof("type") == "script_finished":
                return told


STUDY = ("Lindqvist", "Okafor", "dr-one", "dr-other", "bench_hidden", "house_rubric", "No fever.")
AUTHORS = ("gpt-9-secret", "llama-hidden")
SEEN_BY = {
    Role.CLINICIAN: ("dr-one", "No fever."),
    Role.RESEARCHER: ("Okafor", "dr-one", "dr-other", "bench_hidden", "house_rubric"),
    Role.COORDINATOR: ("Lindqvist", "dr-one", "dr-other", "bench_hidden", "house_rubric"),
}


@pytest.fixture(scope="module")
def tokens(study: Engine, coordinator: str) -> dict[Role, str]:
    """Return a session of somebody of each role."""
    reader = add_people(OPERATOR, study, ["Rita Okafor"], Role.RESEARCHER)[0].code
    clinician = renew_access(OPERATOR, study, "dr-one").code
    codes = {
        Role.CLINICIAN: clinician,
        Role.RESEARCHER: reader,
        Role.COORDINATOR: renew_access(OPERATOR, study, COORDINATOR).code,
    }
    return {role: session_of(study, signed_in(study, code)) for role, code in codes.items()}


@pytest.mark.parametrize("role", [*SEEN_BY])
def test_every_screen_asked_for_by_name_is_given_to_its_roles_and_refused_to_all_others(
    role: Role, server: Server, tokens: dict[Role, str]
) -> None:
    """One that is refused draws what the role may see anyway: its own first screen, or none."""
    hidden = [*AUTHORS, *(word for word in STUDY if word not in SEEN_BY[role])]
    first = next((one for one in SCREENS if role in one.roles), None)
    for screen in (*SCREENS, "no-such-screen"):
        path = screen if isinstance(screen, str) else screen.path
        is_mine = isinstance(screen, Screen) and role in screen.roles
        mine = screen if is_mine else first
        told = forced(server, tokens[role], path)
        if path != "people" or role is not Role.COORDINATOR:  # who manages people sees them all
            assert (path, [word for word in hidden if word.encode() in told]) == (path, [])
        heads = {one.title for one in SCREENS if f"<h1>{one.title}".encode() in told}
        shown = {mine.title} if mine and mine.path != "rate" else set()
        assert (path, heads) == (path, shown)


@pytest.mark.parametrize("path", ["", *(one.path for one in SCREENS), "login", "join", "draft"])
def test_who_is_not_signed_in_gets_no_word_of_the_study_over_http(
    path: str, server: Server, codes: dict[str, str]
) -> None:
    answer = httpx2.get(f"{server.address}/{path}", follow_redirects=True)
    told = answer.text + str(answer.headers) + str(answer.history)
    assert [word for word in (*STUDY, *AUTHORS) if word in told] == []
    assert path in ("join", "draft") or answer.url.path == "/login"


def test_shutting_out_ends_an_open_page(page: Page, server: Server, study: Engine) -> None:
    code = renew_access(OPERATOR, study, "dr-one").code
    page.goto(server.address)
    page.get_by_label("Your sign-in code").fill(code)
    page.keyboard.press("Enter")
    wait_for_count(page, 0, 2)
    renew_access(OPERATOR, study, "dr-one")
    page.keyboard.type("4")
    expect(page.get_by_role("alert").filter(has_text="You are signed out")).to_be_visible()
    page.keyboard.type("34")
    page.keyboard.press("Control+Enter")
    with page.expect_response(lambda one: one.url.endswith("/room")) as answer:
        pass  # it is sent again and again
    assert answer.value.status == 401
    assert scores_of(study, "dr-one") == []
    page.goto(f"{server.address}/rate")
    page.wait_for_url("**/login")


def test_a_page_whose_session_has_ended_meanwhile_leads_to_the_sign_in(
    browser: Browser, study: Engine, codes: dict[str, str]
) -> None:
    assert codes
    code = add_people(OPERATOR, study, ["Rolf Berg"], Role.RESEARCHER)[0].code
    server = Server(str(study.url), free_port()).start()
    context = new_context(browser, TABLET)
    try:
        session = session_of(study, signed_in(study, code))
        context.add_cookies([in_browser(session, server.address)])
        page = context.new_page()
        page.goto(server.address)
        page.get_by_role("heading", name="Home", level=1).wait_for()
        renew_access(OPERATOR, study, "Rolf Berg")
        server.stop()  # its page comes back, and is refused a connection
        server.start()
        expect(page.get_by_label("Your sign-in code")).to_be_visible()
    finally:
        context.close()
        server.stop()
