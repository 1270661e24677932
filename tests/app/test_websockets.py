"""Whose WebSocket is let in, with the study there and without."""

import asyncio

import pytest
from kit.rating_study import session_of
from sqlalchemy import Engine
from starlette.requests import HTTPConnection
from starlette.types import Message, Receive, Scope, Send

from annotate.middleware import STREAM, Doors
from data.errors import NoStudy
from data.person import OPERATOR, Person
from data.schema import Role
from data.study import people
from data.study.people import add_people, renew_access


def asking(cookie: str, scheme: str = "ws") -> HTTPConnection:
    """Return a WebSocket that carries a cookie."""
    return HTTPConnection(
        {
            "type": "websocket",
            "scheme": scheme,
            "path": STREAM,
            "headers": [(b"cookie", cookie.encode())],
        }
    )


def person(engine: Engine, name: str, role: Role) -> Person:
    """Return somebody of a role who has just come in."""
    found = people.check_code(engine, add_people(OPERATOR, engine, [name], role)[0].code).person
    assert found is not None
    return found


def let_in(engine: Engine, asking: HTTPConnection) -> bool:
    """Tell whether a WebSocket reaches the application."""
    reached = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        reached.append(scope)

    async def silent(_: Message | None = None) -> Message:
        return {}

    asyncio.run(Doors(application, engine)(asking.scope, silent, silent))  # type: ignore[arg-type] # sends nothing
    return bool(reached)


@pytest.mark.parametrize("role", [Role.CLINICIAN, Role.RESEARCHER, Role.COORDINATOR])
def test_a_session_has_its_websocket_until_it_ends(engine: Engine, role: Role) -> None:
    somebody = person(engine, "somebody", role)
    cookie = session_of(engine, somebody)
    assert let_in(engine, asking(cookie))
    assert not let_in(engine, asking(cookie, "wss"))  # not the cookie's name over https
    assert let_in(engine, asking(session_of(engine, somebody, https=True), "wss"))
    renew_access(OPERATOR, engine, "somebody")
    assert not let_in(engine, asking(cookie))


def test_while_the_study_is_away_who_signed_in_here_is_let_in_and_nobody_else(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cookie = session_of(engine, person(engine, "somebody", Role.RESEARCHER))

    def unreachable(*_: object) -> None:
        raise NoStudy("study x: database is locked")

    monkeypatch.setattr(people, "session_state", unreachable)
    assert let_in(engine, asking(cookie))
    for forged in (cookie[:-2], "", cookie.partition("=")[0] + "=eyJ.a.b"):
        assert not let_in(engine, asking(forged))
