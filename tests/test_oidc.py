"""Hospital accounts: whom they let in, once, and that Streamlit's own cookie is gone."""

import importlib.util
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_hospital import CLIENT, SECRET, hospital
from playwright.sync_api import Page, expect
from rating_server import Server, build, chromium, row, rubric
from sqlalchemy import Engine

from annotate import oidc, sessions
from data import queries
from data.errors import BadInput, NotAllowed
from data.person import OPERATOR, Person
from data.store import Slot, add_people, assign, end_access, renew_access


@pytest.fixture
def page() -> Iterator[Page]:
    with chromium() as browser:
        page = browser.new_page()
        page.set_default_timeout(20_000)
        yield page


def test_claims_let_in_only_a_verified_known_address(engine: Engine) -> None:
    add_people(OPERATOR, engine, ["dr-a"], email="a@ward.example")
    known = {"email": "A@Ward.Example", "email_verified": True}
    found = oidc.person_of(engine, known)
    assert isinstance(found, Person)
    assert found.name == "dr-a"
    for wrong in (False, "true", 1, None):
        assert oidc.person_of(engine, known | {"email_verified": wrong}) == oidc.UNVERIFIED
    assert oidc.person_of(engine, {"email_verified": True}) == oidc.UNVERIFIED
    assert oidc.person_of(engine, known | {"email": "b@ward.example"}) == oidc.UNKNOWN
    end_access(OPERATOR, engine, "dr-a")
    assert oidc.person_of(engine, known) == oidc.UNKNOWN
    assert oidc.is_fresh({"iat": 1000}, now=1500)
    assert not oidc.is_fresh({"iat": 1000}, now=2000)
    assert not oidc.is_fresh({}, now=2000)


def test_a_ticket_opens_one_session(engine: Engine) -> None:
    add_people(OPERATOR, engine, ["dr-a"], email="a@ward.example")
    person = queries.person_by_email(engine, "a@ward.example")
    assert person is not None
    given = oidc.ticket(engine, person)
    found = oidc.redeem(engine, given)
    assert found is not None
    with pytest.raises(NotAllowed, match="used before"):
        oidc.redeem(engine, given)
    assert oidc.redeem(engine, given[:-2]) is None
    token = sessions.issue(engine, found.person)
    assert sessions.owner(engine, token) == person
    renew_access(OPERATOR, engine, "dr-a")
    assert sessions.owner(engine, token) is None


def test_secrets_that_are_not_complete_are_refused_before_serving(tmp_path: Path) -> None:
    path = tmp_path / "secrets.toml"
    assert oidc.read_secrets(path) == {}
    path.write_text("[other]\nx = 1\n")
    assert oidc.read_secrets(path) == {}
    path.write_text('[auth]\nredirect_uri = "http://x/oauth2callback"\n')
    with pytest.raises(BadInput, match="cookie_secret, client_id"):
        oidc.read_secrets(path)
    path.write_text("[auth")
    with pytest.raises(BadInput, match="cannot be read"):
        oidc.read_secrets(path)


@pytest.mark.e2e
@pytest.mark.skipif(
    importlib.util.find_spec("authlib") is None, reason="the `auth` extra is not installed"
)
@pytest.mark.parametrize("verified", [True, False])
def test_a_hospital_account_signs_in_only_with_a_verified_address(
    page: Page, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verified: bool
) -> None:
    study = engine
    build(study, [row(1, "No fever.")], ["dr-first"], rubric())
    add_people(OPERATOR, study, ["dr-oidc"], email="dr.oidc@ward.example")
    assign(study, [Slot("dr-oidc", 1, 0)], seed=0)
    monkeypatch.chdir(tmp_path)
    with hospital({"email": "Dr.Oidc@Ward.example", "email_verified": verified}) as address:
        server = Server(str(study.url), free_port())
        write_secrets(tmp_path, server, address)
        server.start()
        try:
            enter_by_hospital(page, server, study, verified)
        finally:
            server.stop()
    study.dispose()


def enter_by_hospital(page: Page, server: Server, study: Engine, verified: bool) -> None:
    """Sign in as the hospital's user, and find the form again once that has ended."""
    page.goto(server.address)
    page.get_by_role("link", name="Sign in with your hospital account").click()
    if verified:
        page.locator("form.likert").wait_for()
        names = {one["name"] for one in page.context.cookies()}
        assert sessions.COOKIE in names
        assert not [one for one in names if one.startswith("_streamlit_user")]
        renew_access(OPERATOR, study, "dr-oidc")
        page.goto(server.address)
    else:
        expect(page.get_by_text("no verified e-mail address")).to_be_visible()
        page.get_by_role("link", name="Sign in otherwise").click()
    expect(page.get_by_label("Your sign-in code")).to_be_visible()


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def write_secrets(folder: Path, server: Server, address: str) -> None:
    """Tell the server of a hospital, as an administrator would."""
    (folder / ".streamlit").mkdir()
    (folder / ".streamlit" / "secrets.toml").write_text(
        f"[auth]\nredirect_uri = '{server.address}/oauth2callback'\n"
        "cookie_secret = 'thirty-two characters for a test'\n"
        f"client_id = '{CLIENT}'\nclient_secret = '{SECRET}'\n"
        f"server_metadata_url = '{address}/.well-known/openid-configuration'\n"
    )
