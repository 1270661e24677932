"""What a WebSocket of whose session may carry, with the study there and without."""

import pytest
from kit.rating_study import session_of
from sqlalchemy import Engine
from starlette.requests import HTTPConnection

from annotate.protocols import LARGEST_OF_A_CLINICIAN, LARGEST_OF_STEERING, Admitted, admitted
from data import queries
from data.errors import NoStudy
from data.person import OPERATOR, Person
from data.schema import Role
from data.store import add_people, renew_access


def asking(cookie: str, scheme: str = "ws") -> HTTPConnection:
    """Return a WebSocket that carries a cookie."""
    return HTTPConnection(
        {"type": "websocket", "scheme": scheme, "headers": [(b"cookie", cookie.encode())]}
    )


def person(engine: Engine, name: str, role: Role) -> Person:
    """Return somebody of a role who has just come in."""
    found = queries.check_code(engine, add_people(OPERATOR, engine, [name], role)[0].code).person
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("role", "largest"),
    [
        (Role.CLINICIAN, LARGEST_OF_A_CLINICIAN),
        (Role.RESEARCHER, LARGEST_OF_STEERING),
        (Role.COORDINATOR, LARGEST_OF_STEERING),
    ],
)
def test_a_role_may_carry_what_its_screens_need(engine: Engine, role: Role, largest: int) -> None:
    somebody = person(engine, "somebody", role)
    cookie = session_of(engine, somebody)
    assert admitted(engine, asking(cookie)) == Admitted(str(somebody.id), largest)
    assert admitted(engine, asking(cookie, "wss")) is None  # not the cookie's name over https
    assert admitted(engine, asking(session_of(engine, somebody, https=True), "wss")) is not None
    renew_access(OPERATOR, engine, "somebody")
    assert admitted(engine, asking(cookie)) is None


def test_while_the_study_is_away_who_signed_in_here_is_let_in_with_little_and_nobody_else(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    somebody = person(engine, "somebody", Role.RESEARCHER)
    cookie = session_of(engine, somebody)

    def unreachable(*_: object) -> None:
        raise NoStudy("study x: database is locked")

    monkeypatch.setattr(queries, "session_state", unreachable)
    account = f"way in {somebody.access}"
    assert admitted(engine, asking(cookie)) == Admitted(account, LARGEST_OF_A_CLINICIAN)
    for forged in (cookie[:-2], "", cookie.partition("=")[0] + "=eyJ.a.b"):
        assert admitted(engine, asking(forged)) is None
