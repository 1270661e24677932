"""Who gets in, for how long, by page and by WebSocket, and what each role can reach: without a browser."""

import ast
import asyncio
import inspect
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from importlib import import_module
from pathlib import Path

import pytest
from kit.rating_study import session_of
from kit.study_place import all_rows, behind_the_record
from starlette.requests import HTTPConnection
from starlette.types import Message, Receive, Scope, Send

from annotate import navigation, sessions
from annotate.middleware import STREAM, Doors
from annotate.sessions import IDLE_SECONDS, Sightings
from annotate.signin import FAILURES, GUESSERS_KEPT, Throttle, network
from data.database import open_study
from data.errors import BadInput, Conflict, NoStudy, NotAllowed, Unknown
from data.person import OPERATOR
from data.schema import Access, Role
from data.study import access, people
from data.study.access import Way, enter
from data.study.verify import acts, verify

CONTROLS = Path(navigation.__file__).parent / "screens" / "controls.py"  # of several screens
ONCE = Way(once=True, days=14)


def added(engine, name, way=Way(), role=Role.CLINICIAN):  # noqa: B008 frozen
    return people.add_people(OPERATOR, engine, [name], role, None, way)[0].code


def entered(engine, code):
    found = people.check_code(engine, code).person
    assert found is not None
    return found


def test_only_hashes_of_codes_are_stored(engine):
    codes = [added(engine, "dr-a"), added(engine, "dr-b", ONCE)]
    dump = str(all_rows(engine))
    secrets = [*codes, *(code.partition("-")[2].replace("-", "") for code in codes)]
    assert ([one for one in secrets if one in dump], dump.count("$argon2id$")) == ([], 2)


def test_a_link_lets_one_in_once_and_gives_a_code_to_come_back(engine):
    link = added(engine, "dr-a", ONCE)
    code = enter(engine, entered(engine, link)).code
    assert people.check_code(engine, link).outcome == people.CodeOutcome.USED
    assert (
        people.check_code(engine, link[:-1] + "2X"[link[-1] == "2"]).outcome
        == people.CodeOutcome.WRONG
    )
    assert entered(engine, code).name == "dr-a"
    assert enter(engine, entered(engine, code)).code == ""


def test_of_many_who_use_one_link_at_once_one_gets_in(engine):
    person = entered(engine, added(engine, "dr-a", ONCE))
    start = threading.Barrier(8)

    def use(_: int) -> bool:
        start.wait()
        try:
            enter(engine, person)
        except NotAllowed:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(use, range(8))) == 1


def test_an_expired_link_says_so_but_a_session_it_opened_goes_on(engine):
    link = added(engine, "dr-a", Way(once=True, days=1))
    person = entered(engine, link)
    token = sessions.issue(engine, enter(engine, person).person)
    late = added(engine, "dr-b", Way(once=True, days=1))
    with behind_the_record(engine) as session:
        for lookup in (link[:4], late[:4]):
            one = session.get_one(Access, lookup)
            one.expires = one.created - timedelta(days=1)
            session.add(one)
    assert people.check_code(engine, late).outcome == people.CodeOutcome.EXPIRED
    assert sessions.owner(engine, token) == person


def test_a_new_code_ends_the_old_one_and_its_sessions(engine):
    old = added(engine, "dr-a")
    token = sessions.issue(engine, entered(engine, old))
    assert sessions.owner(engine, token) is not None
    new = people.renew_access(OPERATOR, engine, "dr-a").code
    assert sessions.owner(engine, token) is None
    assert people.check_code(engine, old).outcome == people.CodeOutcome.WRONG
    assert entered(engine, new).name == "dr-a"


def test_who_is_shut_out_stays_out_until_renewed(engine):
    code = added(engine, "dr-a")
    token = sessions.issue(engine, entered(engine, code))
    assert people.end_access(OPERATOR, engine, "dr-a")
    assert not people.end_access(OPERATOR, engine, "dr-a")
    assert sessions.owner(engine, token) is None
    assert people.check_code(engine, code).person is None
    assert people.invite(engine, ["dr-a"]) == []
    assert [one.way for one in people.people(OPERATOR, engine)] == ["ended"]
    assert entered(engine, people.renew_access(OPERATOR, engine, "dr-a").code).name == "dr-a"


def test_a_session_ends_after_an_hour_without_use_and_when_signed_out(engine):
    time = [0.0]
    seen = Sightings(lambda: time[0])
    person = entered(engine, added(engine, "dr-a"))
    token, other = sessions.issue(engine, person), sessions.issue(engine, person)
    assert sessions.MAX_AGE_SECONDS <= 12 * 3600
    for forged in (token[:-2] + "xx", None):
        assert sessions.owner(engine, forged, seen) is None
    for _ in range(3):
        time[0] += IDLE_SECONDS - 1
        assert sessions.owner(engine, token, seen) == person
    assert sessions.end(engine, other, seen) == person
    assert sessions.owner(engine, other, seen) is None
    time[0] += IDLE_SECONDS + 1
    assert [sessions.owner(engine, token, seen) for _ in range(2)] == [None, None]


def test_a_page_that_asks_again_while_the_study_is_away_keeps_its_session(engine, study_file):
    time = [0.0]
    seen = Sightings(lambda: time[0])
    person = entered(engine, added(engine, "dr-a"))
    token = sessions.issue(engine, person)
    assert sessions.owner(engine, token, seen) == person
    engine.dispose()
    away = study_file.rename(study_file.with_name("away.db"))
    for _ in range(3):
        time[0] += IDLE_SECONDS - 1
        with pytest.raises(NoStudy):
            sessions.owner(engine, token, seen)
        engine.dispose()
        study_file.unlink()  # SQLite has begun an empty one
    away.rename(study_file)
    time[0] += IDLE_SECONDS - 1
    assert sessions.owner(engine, token, seen) == person


def test_signing_out_holds_at_other_servers_and_after_a_restart(engine):
    person, other = entered(engine, added(engine, "dr-a")), Sightings()
    token, kept = sessions.issue(engine, person), sessions.issue(engine, person)
    assert sessions.owner(engine, token, other) == person
    sessions.end(engine, token)
    for server in (other, Sightings()):
        assert sessions.owner(engine, token, server) is None
        assert sessions.owner(engine, kept, server) == person


def test_a_cookie_of_another_study_opens_nothing(engine, tmp_path, study_in):
    foreign = open_study(study_in(tmp_path, "other.db"), create=True)
    token = sessions.issue(foreign, entered(foreign, added(foreign, "dr-a")))
    added(engine, "dr-a")
    assert sessions.owner(foreign, token) is not None
    assert sessions.owner(engine, token) is None
    foreign.dispose()


def test_a_hundred_attempts_at_once_are_no_more_than_ten_and_slow_nobody_else():
    now = 0.0
    throttle = Throttle(lambda: now)
    assert sum(throttle.takes("a") for _ in range(100)) == FAILURES.burst
    assert throttle.allows("b")
    now = FAILURES.seconds_each
    assert [throttle.takes("a"), throttle.takes("a")] == [True, False]
    throttle.succeeded("a")
    assert [throttle.takes("a"), throttle.takes("a")] == [True, False]


def test_any_number_of_guessers_use_up_nobody_elses_allowance():
    throttle = Throttle(lambda: 0.0)
    for guesser in range(2 * GUESSERS_KEPT):
        throttle.takes(f"{guesser}")
    assert throttle.allows("somebody else")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("fe80::1%eth0", "fe80::2", True),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("", "192.0.2.1", False),
    ],
)
def test_who_holds_a_network_is_one_guesser(one, other, same):
    assert (network(one) == network(other)) is same


def test_what_cannot_be_added_is_refused_and_nobody_is(engine):
    people.add_people(OPERATOR, engine, ["boss"], Role.COORDINATOR, "Boss@Ward.Example")
    for error, names, email in (
        (Conflict, ["new", "boss"], None),
        (BadInput, ["new", "new"], None),
        (BadInput, ["new", "other"], "a@b.example"),
        (BadInput, ["new"], "not an address"),
        (Conflict, ["new"], "boss@ward.example"),
        (BadInput, ["new\n"], None),
        (BadInput, [" "], None),
    ):
        with pytest.raises(error):
            people.add_people(OPERATOR, engine, names, Role.CLINICIAN, email)
    with pytest.raises(BadInput):
        people.invite(engine, ["boss"])
    with pytest.raises(Unknown):
        people.renew_access(OPERATOR, engine, "nobody")
    assert [one.name for one in people.people(OPERATOR, engine)] == ["boss"]
    boss = people.person_by_email(engine, "BOSS@ward.example")
    assert boss is not None
    with pytest.raises(BadInput, match="cannot shut yourself out"):
        people.end_access(boss, engine, "boss")


def test_every_act_stands_in_the_record_without_a_name_or_a_code(engine):
    link = added(engine, "dr-secretname", ONCE)
    person = enter(engine, entered(engine, link)).person
    access.leave(engine, person, "1")
    access.enter_by_email(engine, person)
    people.end_access(OPERATOR, engine, "dr-secretname")
    people.renew_access(OPERATOR, engine, "dr-secretname")
    kinds = {"person added", "code issued", "signed in", "signed out", "person shut out"}
    found = acts(engine, *(kinds := kinds | {"person let back in"}))
    assert {one.action for one in found} == kinds
    told = str([(one.actor, one.detail) for one in found])
    assert [one for one in ("secretname", link[5:]) if one in told] == []
    assert verify(engine).findings == ()


def test_a_screen_that_is_not_a_clinicians_reads_only_what_asks_for_the_role():
    for screen in navigation.SCREENS:
        if Role.CLINICIAN in screen.roles:
            continue
        folder = Path(navigation.__file__).parent / "screens"
        paths = [*folder.glob(f"{screen.path}*.py"), *folder.glob(f"{screen.path}/*.py"), CONTROLS]
        called = [one for path in paths for one in used(path)]
        assert called, screen.path
        for one in called:
            asks = getattr(one, "roles", frozenset(Role))
            assert asks <= screen.roles, one


def used(path):
    """Return every function of the study's modules that a file calls by its module."""
    tree = ast.parse(path.read_text())
    modules = {
        name.asname or name.name: import_module(f"{node.module}.{name.name}")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "data.study"
        for name in node.names
    }
    found = [
        getattr(modules[node.value.id], node.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in modules
    ]
    return [one for one in found if inspect.isfunction(one)]


def asking(cookie, scheme="ws"):
    """Return a WebSocket that carries a cookie."""
    scope = {"type": "websocket", "scheme": scheme, "path": STREAM}
    return HTTPConnection(scope | {"headers": [(b"cookie", cookie.encode())]})


def let_in(engine, asking):
    """Tell whether a WebSocket reaches the application."""
    reached = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        reached.append(scope)

    async def silent(_: Message | None = None) -> Message:
        return {}

    asyncio.run(Doors(application, engine)(asking.scope, silent, silent))  # type: ignore[arg-type] # sends nothing
    return bool(reached)


@pytest.mark.parametrize("role", [Role.CLINICIAN, Role.RESEARCHER, Role.COORDINATOR])
def test_a_session_has_its_websocket_until_it_ends(engine, role):
    somebody = entered(engine, added(engine, "somebody", role=role))
    cookie = session_of(engine, somebody)
    assert let_in(engine, asking(cookie))
    assert not let_in(engine, asking(cookie, "wss"))  # not the cookie's name over https
    assert let_in(engine, asking(session_of(engine, somebody, https=True), "wss"))
    people.renew_access(OPERATOR, engine, "somebody")
    assert not let_in(engine, asking(cookie))


def test_while_the_study_is_away_who_signed_in_here_is_let_in_and_nobody_else(engine, monkeypatch):
    cookie = session_of(engine, entered(engine, added(engine, "somebody")))

    def unreachable(*_: object) -> None:
        raise NoStudy("study x: database is locked")

    monkeypatch.setattr(people, "session_state", unreachable)
    assert let_in(engine, asking(cookie))
    for forged in (cookie[:-2], "", cookie.partition("=")[0] + "=eyJ.a.b"):
        assert not let_in(engine, asking(forged))
