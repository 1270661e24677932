"""A coordinator invites, a clinician comes and rates; who is signed out, or of a hospital, is led to where to go."""

from importlib.util import find_spec

import pytest
from kit.browsers import TABLET, new_context, wait_open
from kit.identity_servers import auth, hospital
from kit.rating_study import build, in_browser, person_of, row, rubric, scores_of, session_of
from kit.servers import Server, free_port
from playwright.sync_api import expect

from annotate.sessions import HOSPITAL_COOKIE, SESSION_COOKIE, cookie_name
from data.person import OPERATOR
from data.schema import Role
from data.study.access import enter
from data.study.assignments import Slot, assign
from data.study.people import add_people, renew_access

pytestmark = pytest.mark.e2e
COORDINATOR, RESEARCHER = "Coordinator Lindqvist", "Rita Okafor"


@pytest.fixture
def other(browser):
    """Return a page of somebody else's browser."""
    context = new_context(browser, TABLET)
    yield context.new_page()
    context.close()


@pytest.fixture(scope="module")
def codes(study):
    rows = [row(1, "No fever."), row(2, "Mild pain.")]
    return build(study, rows, ["dr-one", "dr-other"], rubric())


@pytest.fixture(scope="module")
def coordinator(study, codes):
    return add_people(OPERATOR, study, [COORDINATOR], Role.COORDINATOR)[0].code


def test_an_invitation_leads_from_the_coordinator_to_a_rating(
    page, other, server, study, coordinator
):
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


def test_a_page_whose_session_has_ended_meanwhile_leads_to_the_sign_in(page, server, study):
    [rita] = add_people(OPERATOR, study, [RESEARCHER], Role.RESEARCHER)
    session = session_of(study, enter(study, person_of(study, rita.code)).person)
    page.context.add_cookies([in_browser(session, server.address)])
    page.goto(server.address)
    page.get_by_role("heading", name="Home", level=1).wait_for()
    renew_access(OPERATOR, study, RESEARCHER)
    server.stop()  # its page comes back, and is refused a connection
    server.start()
    expect(page.get_by_label("Your sign-in code")).to_be_visible()


@pytest.mark.skipif(find_spec("authlib") is None, reason="the `auth` extra is not installed")
def test_a_hospital_account_signs_in_at_the_page(page, engine, tmp_path, monkeypatch):
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
