"""Files that were made for somebody's page are given to that session."""

from collections.abc import Iterator

import pytest
from kit.rating_study import session_of
from sqlalchemy import Engine
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket

from annotate.middleware import FILES_KEPT, SESSIONS_KEPT, Downloads, Told
from data.person import OPERATOR
from data.queries import check_code
from data.schema import Role
from data.store import add_people

FILE = "0123456789abcdef" * 3
ADDRESS = f"/media/{FILE}.csv"


async def file(_: Request) -> Response:
    return PlainTextResponse("figures")


async def page(socket: WebSocket) -> None:
    """Tell a page of a file, as Streamlit does: in the middle of a message."""
    await socket.accept()
    await socket.send_bytes(b"\x12\x40" + ADDRESS.encode() + b"\x1a\x00")
    await socket.close()


@pytest.fixture
def client(engine: Engine) -> Iterator[TestClient]:
    served = Starlette(
        routes=[Route("/media/{name}", file), WebSocketRoute("/page", page)],
        middleware=[Middleware(Downloads, engine=engine)],
    )
    with TestClient(served) as client:
        yield client


@pytest.fixture
def people(engine: Engine) -> dict[str, str]:
    """Return a session of two researchers, two of the first."""
    found = {}
    for name in ("rita", "rolf"):
        code = add_people(OPERATOR, engine, [name], Role.RESEARCHER)[0].code
        person = check_code(engine, code).person
        assert person is not None
        found |= {one: session_of(engine, person) for one in (name, f"{name} elsewhere")}
    return found


def test_a_file_is_given_only_to_the_session_whose_page_was_told_of_it(
    client: TestClient, people: dict[str, str]
) -> None:
    def given(cookie: str) -> int:
        return client.get(ADDRESS, headers={"Cookie": cookie}).status_code

    assert given(people["rita"]) == 403
    with client.websocket_connect("/page", headers={"Cookie": people["rita"]}) as opened:
        opened.receive_bytes()
    assert {who: given(cookie) for who, cookie in people.items()} == {
        "rita": 200,
        "rita elsewhere": 403,
        "rolf": 403,
        "rolf elsewhere": 403,
    }
    assert given("") == 403
    assert (
        client.get(ADDRESS.replace("0", "1"), headers={"Cookie": people["rita"]}).status_code == 403
    )


def test_what_is_kept_of_who_was_told_has_an_end() -> None:
    told = Told()
    told.add("first", ["first"])
    told.add("first", [str(number) for number in range(FILES_KEPT)])
    assert not told.has("first", "first")
    assert told.has("first", "0")
    for number in range(SESSIONS_KEPT):
        told.add(str(number), ["a"])
    assert not told.has("first", "0")
    assert told.has("0", "a")
