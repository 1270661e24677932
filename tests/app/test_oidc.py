"""Hospital accounts: whom they let in, once, and who comes back as somebody else."""

import html
import importlib.util
import re
import time
from contextlib import contextmanager

import httpx2
import pytest
from itsdangerous import TimestampSigner
from kit.identity_servers import auth, hospital
from starlette.applications import Starlette
from starlette.testclient import TestClient

from annotate import oidc, sessions
from annotate.sessions import DEVICE_COOKIE, HOSPITAL_COOKIE, SESSION_COOKIE, cookie_name
from annotate.signin import FAILURES, routes
from data.errors import BadInput
from data.person import OPERATOR
from data.study.people import add_people, end_access, renew_access, set_email
from data.study.verify import verify

HERE = "http://medjury.test"
NO_AUTHLIB = importlib.util.find_spec("authlib") is None
pytestmark = pytest.mark.skipif(NO_AUTHLIB, reason="the `auth` extra is not installed")


@pytest.fixture
def study(engine):
    add_people(OPERATOR, engine, ["dr-a"], email="a@ward.example")
    return engine


@contextmanager
def arriving(study, forged=False, **claims):
    """Give a browser whose hospital says these claims of everybody, at a study's sign-in."""
    said = {"email": "A@Ward.Example", "email_verified": True} | claims
    with hospital(said, forged) as address:
        desk = routes(study, oidc.Hospital(study, auth(address, HERE)))
        with TestClient(Starlette(routes=desk), HERE) as browser:
            yield browser


def way_back(browser):
    """Leave for the hospital, sign in there, and return where it sends the browser."""
    there = browser.get("/hospital", follow_redirects=False).headers["location"]
    return httpx2.get(there).headers["location"]


def session_in(study, browser):
    return sessions.owner(study, browser.cookies.get(cookie_name(study, SESSION_COOKIE)))


def refused(study, browser, address, said=oidc.STALE):
    """Expect that coming back to an address is refused in these words and opens no session."""
    answer = browser.get(address, follow_redirects=False)
    assert (answer.status_code, html.escape(said) in answer.text) == (401, True)
    assert session_in(study, browser) is None


def test_a_hospitals_word_opens_one_session(study):
    with arriving(study) as browser:
        back = way_back(browser)
        on_the_way = dict(browser.cookies)
        answer = browser.get(back, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        first = session_in(study, browser)
        assert first.name == "dr-a"
        assert sessions.device(study, browser.cookies.get(cookie_name(study, DEVICE_COOKIE)))
        assert cookie_name(study, HOSPITAL_COOKIE) not in browser.cookies

        for _ in range(2):  # with the cookie that was copied on the way, at any replica
            browser.cookies.clear()
            browser.cookies.update(on_the_way)
            refused(study, browser, back)
        renew_access(OPERATOR, study, "dr-a")
        assert sessions.owner(study, answer.cookies.get(cookie_name(study, SESSION_COOKIE))) is None


def test_an_address_that_passes_to_another_hospital_account_opens_nothing(study):
    with arriving(study, sub="u1") as browser:
        assert browser.get(way_back(browser), follow_redirects=False).status_code == 303
    with arriving(study, sub="u2") as browser:
        refused(study, browser, way_back(browser), oidc.ANOTHER)
    set_email(OPERATOR, study, "dr-a", "b@ward.example")
    set_email(OPERATOR, study, "dr-a", "a@ward.example")  # a coordinator vouches for it anew
    with arriving(study, sub="u2") as browser:
        assert browser.get(way_back(browser), follow_redirects=False).status_code == 303
    assert verify(study).findings == ()


def test_who_did_not_leave_from_this_browser_is_not_signed_in_by_coming_back(study):
    with arriving(study) as browser:
        back = way_back(browser)
        mine = dict(browser.cookies)
        for cookies, address in (
            ({}, back),  # an attacker's link, followed by somebody else
            ({name: value[:-2] for name, value in mine.items()}, back),
            (mine, re.sub("state=[^&]+", "state=other", back)),
            (mine, back.partition("?")[0]),
            (mine, f"{back.partition('?')[0]}?error=access_denied&state=x"),
        ):
            browser.cookies.clear()
            browser.cookies.update(cookies)
            refused(study, browser, address)


def test_who_was_on_the_way_for_longer_than_ten_minutes_begins_anew(study, monkeypatch):
    with arriving(study) as browser:
        with monkeypatch.context() as then:
            then.setattr(TimestampSigner, "get_timestamp", lambda _: int(time.time()) - 660)
            back = way_back(browser)
        refused(study, browser, back)


@pytest.mark.parametrize(
    "claims",
    [
        *({"iat": 1_000_000_000}, {"exp": 1_000_000_000}, {"aud": "another application"}),
        *({"iss": "https://evil.example"}, {"nonce": "of another sign-in"}, {"forged": True}),
    ],
    ids=lambda claims: next(iter(claims)),
)
def test_a_hospitals_word_that_is_old_for_others_or_not_its_own_is_refused(study, claims):
    with arriving(study, **claims) as browser:
        refused(study, browser, way_back(browser))


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        *(({"email_verified": wrong}, oidc.UNVERIFIED) for wrong in (False, "true", 1, None)),
        ({"email": None}, oidc.UNVERIFIED),
        ({"email": "b@ward.example"}, oidc.UNKNOWN),
    ],
)
def test_an_account_without_a_verified_known_address_is_told_so(study, claims, said):
    with arriving(study, **claims) as browser:
        refused(study, browser, way_back(browser), said)


def test_an_account_whose_access_has_ended_is_unknown(study):
    end_access(OPERATOR, study, "dr-a")
    with arriving(study) as browser:
        refused(study, browser, way_back(browser), oidc.UNKNOWN)


def test_who_comes_back_with_nothing_again_and_again_is_slowed(study):
    with arriving(study) as browser:
        came = [browser.get("/oauth2callback?code=a&state=b").status_code for _ in range(12)]
        assert came == [401] * FAILURES.burst + [429] * (12 - FAILURES.burst)


def test_a_hospital_that_cannot_be_reached_is_told_in_words(study):
    desk = routes(study, oidc.Hospital(study, auth("http://127.0.0.1:1", HERE)))
    with TestClient(Starlette(routes=desk), HERE) as browser:
        answer = browser.get("/hospital", follow_redirects=False)
        assert answer.status_code == 502
        assert html.escape(oidc.UNREACHED) in answer.text


def test_another_sites_page_sends_nobody_to_the_hospital(study):
    with arriving(study) as browser:
        headers = {"Sec-Fetch-Site": "cross-site"}
        answer = browser.get("/hospital", headers=headers, follow_redirects=False)
        assert (answer.headers["location"], dict(browser.cookies)) == ("/login", {})


def test_secrets_that_are_not_complete_are_refused_before_serving(tmp_path):
    path = tmp_path / "secrets.toml"
    assert oidc.read_secrets(path) == {}
    path.write_text("[other]\nx = 1\n")
    assert oidc.read_secrets(path) == {}
    whole = "\n".join(f'{name} = "{value}"' for name, value in auth("http://x", HERE).items())
    for text, said in (
        ('[auth]\nredirect_uri = "http://x/oauth2callback"\n', "cookie_secret, client_id"),
        ("[auth", "cannot be read"),
        (f"[auth]\n{whole}".replace("/oauth2callback", "/elsewhere"), "must end with /oauth2call"),
    ):
        path.write_text(text)
        with pytest.raises(BadInput, match=said):
            oidc.read_secrets(path)
