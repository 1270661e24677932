"""Signing in at the real server, and what its answers say to the browser."""

import re
import socket
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import product

import pytest
from kit.rating_study import build, row, rubric
from kit.servers import ask, post, serving

from annotate.middleware import ARRIVALS
from annotate.navigation import SCREENS, study
from annotate.server import serve
from annotate.signin import FAILURES, SLOWER, WRONG
from data.database import open_study, transaction
from data.errors import BadInput, NoStudy
from data.person import OPERATOR
from data.schema import Role
from data.study.access import Way
from data.study.people import add_people


@pytest.fixture(scope="module")
def engine(tmp_path_factory, study_in):
    engine = open_study(study_in(tmp_path_factory.mktemp("signin")), create=True)
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def code(engine):
    return build(engine, [row(1, "No fever.")], ["dr-a"], rubric())["dr-a"]


@pytest.fixture(scope="module")
def server(engine, code):
    with serving(str(engine.url)) as server:
        yield server


def test_a_code_opens_a_session_that_only_http_can_read(server, code):
    answer = post(server, f" {code.lower()} ")
    cookie = answer.headers["set-cookie"]
    assert (answer.status, answer.headers["location"]) == (303, "/")
    assert {"HttpOnly", "SameSite=lax", "Max-Age=43200"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    session = cookie.split(";")[0]
    assert ask(server, "GET", "/", Cookie=session).status == 200
    assert ask(server, "GET", "/login", Cookie=session).headers["location"] == "/"
    name = session.partition("=")[0]
    assert f'{name}=""' in ask(server, "GET", "/logout").headers["set-cookie"]


def test_behind_https_the_cookie_never_travels_in_clear(server, code):
    given = post(server, code, X_Forwarded_Proto="https").headers.get_all("set-cookie") or []
    assert len(given) == 2
    for cookie in given:
        assert cookie.startswith("__Host-medjury_")
        assert {"Secure", "Path=/", "HttpOnly"} <= set(cookie.split("; "))
        assert "domain" not in cookie.lower()
    session = given[0].partition(";")[0]
    assert ask(server, "GET", "/", Cookie=session, X_Forwarded_Proto="https").status == 200


def test_over_https_a_cookie_that_another_host_may_have_planted_opens_nothing(server, code):
    planted = post(server, code).headers["set-cookie"].partition(";")[0]
    assert ask(server, "GET", "/", Cookie=planted).status == 200
    assert ask(server, "GET", "/", Cookie=planted, X_Forwarded_Proto="https").status == 303


def test_two_studies_of_one_host_do_not_sign_each_others_people_out(
    server, code, tmp_path, study_in
):
    other = open_study(study_in(tmp_path), create=True)
    beside = build(other, [row(1, "No fever.")], ["dr-a"], rubric())["dr-a"]
    jar: dict[str, str] = {}  # what a browser keeps: every port of a host has the same cookies

    def sent() -> str:
        return "; ".join(f"{name}={value}" for name, value in jar.items())

    with serving(str(other.url)) as second:
        for one, its_code in ((server, code), (second, beside)):
            for given in post(one, its_code, Cookie=sent()).headers.get_all("set-cookie") or []:
                name, _, value = given.partition(";")[0].partition("=")
                jar[name] = value
        assert [ask(one, "GET", "/", Cookie=sent()).status for one in (server, second)] == [200] * 2
        ask(second, "GET", "/logout", Cookie=sent())
        found = [ask(one, "GET", "/", Cookie=sent()).status for one in (server, second)]
        assert found == [200, 303]
    other.dispose()


def test_without_a_session_the_page_leads_to_the_form(server):
    paths = ("/", "/rate", "/home", "/setup", "/index.html", "/hospital", "/oauth2callback")
    for path, cookie in product(
        paths, ("", "medjury_session=forged", "medjury_session=eyJ.a.b; ;;=")
    ):
        answer = ask(server, "GET", path, Cookie=cookie)
        assert (answer.status, answer.headers["location"]) == (303, "/login")


def test_the_screen_one_arrives_at_opens_under_its_own_name_too(server, code):
    first = {next(one.path for one in SCREENS if role in one.roles) for role in Role}
    assert first == {path.strip("/") for path in ARRIVALS}
    session = post(server, code).headers["set-cookie"].split(";")[0]
    for path in ARRIVALS:
        answer = ask(server, "GET", f"{path}?benchmark=a%20b", Cookie=session)
        assert (answer.status, answer.headers["location"]) == (303, "/?benchmark=a%20b")


def test_signing_out_ends_copies_of_the_cookie_too(server, code):
    session = post(server, code).headers["set-cookie"].split(";")[0]
    other = post(server, code).headers["set-cookie"].split(";")[0]
    forced = ask(server, "GET", "/logout", Cookie=session, Sec_Fetch_Site="cross-site")
    assert (forced.status, forced.headers["location"]) == (303, "/")
    assert forced.headers["set-cookie"] is None
    assert ask(server, "GET", "/", Cookie=session).status == 200
    ask(server, "GET", "/logout", Cookie=session)
    assert ask(server, "GET", "/", Cookie=session).status == 303
    assert ask(server, "GET", "/", Cookie=other).status == 200


def test_an_invitation_opens_once_and_shows_the_code_to_come_back(server, engine):
    way = Way(once=True, days=14)
    [made] = add_people(OPERATOR, engine, ["dr <b>"], way=way)
    page = ask(server, "GET", "/join")
    assert (page.status, page.headers["cache-control"]) == (200, "no-store")
    assert "location.hash" in ask(server, "GET", "/join.js").body
    first = post(server, made.code)
    assert (first.status, "Welcome, dr &lt;b&gt;" in first.body) == (200, True)
    assert first.headers["set-cookie"].startswith("medjury_session_")
    [personal] = re.findall(r"[2-9A-Z]{4}(?:-[2-9A-Z]{4}){3}", first.body)
    again = post(server, made.code)
    assert (again.status, "used already" in again.body) == (401, True)
    assert post(server, personal).status == 303


def test_hospital_accounts_are_offered_only_where_configured(server):
    assert "hospital" not in ask(server, "GET", "/login").body
    for path in ("/hospital", "/oauth2callback?code=a&state=b"):
        answer = ask(server, "GET", path)
        assert (answer.status, answer.headers["location"]) == (303, "/login")
        assert answer.headers["set-cookie"] is None


def test_every_answer_carries_the_security_headers(server):
    for path in ("/login", "/", "/_stcore/health"):
        headers = ask(server, "GET", path).headers
        policy = headers["content-security-policy"]
        assert ("frame-ancestors 'none'" in policy, "http" in policy) == (True, False)
        sent = [headers[name] for name in ("x-content-type-options", "referrer-policy")]
        assert sent == ["nosniff", "same-origin"]


def device_of(answer):
    """Return the cookie by which a device is known again."""
    given = answer.headers.get_all("set-cookie") or []
    return next(one for one in given if one.startswith("medjury_device")).partition(";")[0]


def test_wrong_codes_are_told_and_then_slowed(engine):
    with serving(str(engine.url)) as server:
        tried = ["", "AAAA-BBBB-CCCC-DDDD", "\0\ud83d\ude00" * 9, "x" * 9000, *["WRONG"] * 6]
        for code in tried:
            answer = post(server, code.encode("utf-16", "surrogatepass").decode("utf-16"))
            assert (answer.status, WRONG in answer.body) == (401, True)
        answer = post(server, "AAAA")
        assert (answer.status, SLOWER in answer.body) == (429, True)


def test_of_many_guesses_at_once_no_more_are_checked_than_one_after_the_other(engine, code):
    with serving(str(engine.url)) as server, ThreadPoolExecutor(60) as pool:
        found = list(pool.map(lambda n: post(server, f"AAAA-{n:04}").status, range(60)))
        assert Counter(found) == {401: FAILURES.burst, 429: 60 - FAILURES.burst}
        assert post(server, code).status == 429


def test_strangers_from_ever_new_addresses_lock_nobody_out(engine, code):
    def guess(n: int) -> int:
        address = f"198.51.{n // 250}.{n % 250}"
        return post(server, f"WRONG-{n:04}", X_Forwarded_For=address).status

    with serving(str(engine.url)) as server, ThreadPoolExecutor(24) as pool:
        wrong = [pool.submit(guess, n) for n in range(2_000)]
        wait(wrong[:150])
        right = [
            post(server, code, X_Forwarded_For=f"203.0.113.{n}").status
            for n in range(FAILURES.burst + 10)
        ]
        assert not wrong[-1].done(), "the guessers ended too early to show anything"
        assert {one.result() for one in wrong} == {401}
    assert Counter(right) == {303: FAILURES.burst + 10}


def test_a_device_that_was_signed_in_from_keeps_its_own_allowance(engine, code):
    with serving(str(engine.url)) as server:
        device = device_of(post(server, code))
        for n in range(FAILURES.burst + 1):
            slowed = post(server, f"AAAA-{n:04}")
        assert (slowed.status, post(server, code).status) == (429, 429)
        assert post(server, code, Cookie=device).status == 303
        assert post(server, code, Cookie=f"{device}x").status == 429
        for n in range(FAILURES.burst + 1):
            slowed = post(server, f"AAAA-{n:04}", Cookie=device)
        assert slowed.status == 429


def test_guesses_at_one_code_from_ever_new_addresses_are_slowed(engine, code):
    with serving(str(engine.url)) as server:
        opening, device = code[:5], device_of(post(server, code))
        found = [
            post(server, f"{opening}AAAA-AAAA-{n:04}", X_Forwarded_For=f"192.0.2.{n}").status
            for n in range(FAILURES.burst + 5)
        ]
        assert Counter(found) == {401: FAILURES.burst, 429: 5}
        assert post(server, code, X_Forwarded_For="192.0.2.99").status == 429
        assert post(server, code, Cookie=device).status == 303


def test_a_ward_that_signs_in_at_once_from_one_address_is_let_in(server, engine, code):
    with ThreadPoolExecutor(25) as pool:
        with transaction(engine):  # as an import would hold it: nobody can be written in
            asked = [pool.submit(post, server, code) for _ in range(25)]
            wait(asked, timeout=3)
        found = Counter(one.result().status for one in asked)
    assert found == {303: 25}


def test_an_absent_study_or_a_taken_port_is_refused_before_serving(tmp_path, engine, monkeypatch):
    monkeypatch.setenv("MEDJURY_DB", "")  # serve() sets it: put back what was there
    with pytest.raises(NoStudy):
        serve(f"sqlite:///{tmp_path / 'none.db'}")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(BadInput, match="choose another"):
            serve(str(engine.url), taken.getsockname()[1])
    study().dispose()
