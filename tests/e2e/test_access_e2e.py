"""A coordinator invites, a clinician comes and rates, and nobody gets further than their role."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from kit.browsers import TABLET, new_context, wait_open
from kit.identity_servers import auth, hospital
from kit.rating_study import build, in_browser, row, rubric, scores_of, session_of
from kit.servers import Server, free_port
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import Engine
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.util import calc_hash
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from annotate.navigation import SCREENS
from annotate.sessions import HOSPITAL_COOKIE, SESSION_COOKIE, cookie_name
from data.person import OPERATOR, Person
from data.schema import Role
from data.study.access import enter
from data.study.assignments import Slot, assign
from data.study.people import add_people, check_code, renew_access

pytestmark = pytest.mark.e2e
COORDINATOR, RESEARCHER = "Coordinator Lindqvist", "Rita Okafor"
ENDED = "script_finished"


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


STUDY = ("Lindqvist", "Okafor", "dr-one", "dr-other", "bench_hidden", "house_rubric", "No fever.")
AUTHORS = ("gpt-9-secret", "llama-hidden")
SEEN_BY = {
    Role.CLINICIAN: ("dr-one",),  # the room alone sends texts, to whom they are for
    Role.RESEARCHER: ("Okafor", "dr-one", "dr-other", "bench_hidden", "house_rubric"),
    Role.COORDINATOR: ("Lindqvist", "dr-one", "dr-other", "bench_hidden", "house_rubric"),
}


@pytest.fixture(scope="module")
def tokens(study: Engine, coordinator: str) -> dict[Role, str]:
    """Return a session of somebody of each role."""
    reader = add_people(OPERATOR, study, [RESEARCHER], Role.RESEARCHER)[0].code
    clinician = renew_access(OPERATOR, study, "dr-one").code
    codes = {
        Role.CLINICIAN: clinician,
        Role.RESEARCHER: reader,
        Role.COORDINATOR: renew_access(OPERATOR, study, COORDINATOR).code,
    }
    return {role: session_of(study, signed_in(study, code)) for role, code in codes.items()}


@pytest.mark.parametrize("role", [*SEEN_BY])
def test_a_crafted_connection_gets_no_further(
    role: Role, server: Server, tokens: dict[Role, str]
) -> None:
    """A screen that is refused draws what the role may see anyway: its own first one, or none."""
    hidden = [*AUTHORS, *(word for word in STUDY if word not in SEEN_BY[role])]
    own = [one for one in SCREENS if role in one.roles]
    for screen in (*SCREENS, None):
        path = screen.path if screen else "no-such-screen"
        frames = forced(server, tokens[role], path)
        told = b"".join(frames)
        if path != "people" or role is not Role.COORDINATOR:  # who manages people sees them all
            assert (path, [word for word in hidden if word.encode() in told]) == (path, [])
        heads = {one.title for one in SCREENS if f"<h1>{one.title}".encode() in told}
        mine = screen if screen in own else own[0]
        assert (path, heads) == (path, {mine.title} - {"Rate"})
        assert (path, named(frames)) == (path, {one.title for one in own})


def named(frames: list[bytes]) -> set[str]:
    """Return the titles of all screens that a browser is told of."""
    told = [ForwardMsg.FromString(one) for one in frames]
    return {
        page.page_name
        for one in told
        if one.WhichOneof("type") == "navigation"
        for page in one.navigation.app_pages
    }


def forced(server: Server, token: str, path: str) -> list[bytes]:
    """Ask over a WebSocket of our own for a page by the name it would have; return all frames."""
    ask = BackMsg()
    ask.rerun_script.page_name = path
    ask.rerun_script.page_script_hash = calc_hash(path)  # as Streamlit names its pages
    frames: list[bytes] = []
    with connect(
        f"ws://127.0.0.1:{server.port}/_stcore/stream",
        origin=Origin(server.address),
        subprotocols=[Subprotocol("streamlit")],
        additional_headers={"Cookie": token},
        max_size=2**24,
    ) as wire:
        wire.send(ask.SerializeToString())
        while not frames or ForwardMsg.FromString(frames[-1]).WhichOneof("type") != ENDED:
            frames.append(bytes(wire.recv(timeout=30)))  # type: ignore[arg-type]
    return frames


def test_a_page_whose_session_has_ended_meanwhile_leads_to_the_sign_in(
    page: Page, server: Server, study: Engine, tokens: dict[Role, str]
) -> None:
    page.context.add_cookies([in_browser(tokens[Role.RESEARCHER], server.address)])
    page.goto(server.address)
    page.get_by_role("heading", name="Home", level=1).wait_for()
    renew_access(OPERATOR, study, RESEARCHER)
    server.stop()  # its page comes back, and is refused a connection
    server.start()
    expect(page.get_by_label("Your sign-in code")).to_be_visible()


@pytest.mark.skipif(find_spec("authlib") is None, reason="the `auth` extra is not installed")
def test_a_hospital_account_signs_in_at_the_page(
    page: Page, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(engine, [row(1, "No fever.")], ["dr-first"], rubric())
    add_people(OPERATOR, engine, ["dr-oidc"], email="dr.oidc@ward.example")
    assign(engine, [Slot("dr-oidc", 1, 0)], seed=0)
    monkeypatch.chdir(tmp_path)
    server = Server(str(engine.url), free_port())
    with hospital({"email": "Dr.Oidc@Ward.example", "email_verified": True}) as address:
        told = [f'{name} = "{value}"' for name, value in auth(address, server.address).items()]
        (tmp_path / ".streamlit").mkdir()
        (tmp_path / ".streamlit" / "secrets.toml").write_text("\n".join(["[auth]", *told]))
        server.start()
        try:
            page.goto(server.address)
            page.get_by_role("link", name="Sign in with your hospital account").click()
            wait_open(page)
            names = {one["name"] for one in page.context.cookies()}
            assert cookie_name(engine, SESSION_COOKIE) in names
            assert not [one for one in names if one.startswith("_streamlit_user")]
            assert cookie_name(engine, HOSPITAL_COOKIE) not in names
            renew_access(OPERATOR, engine, "dr-oidc")
            page.goto(server.address)
            expect(page.get_by_label("Your sign-in code")).to_be_visible()
        finally:
            server.stop()
