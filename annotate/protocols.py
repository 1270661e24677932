"""Who gets a WebSocket, and how much a client may send before and after it has signed in.

uvicorn reads headers without an end, and a WebSocket's frames while the application still decides
whether to accept it. Here a request's head has a bound, nothing is read before a WebSocket is
accepted, and after that no message longer than it may be: what is longer is refused by its
header, code 1009, and never lies in memory.
"""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import uvicorn
from sqlalchemy import Engine
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame

from annotate import sessions
from annotate.middleware import STEERING, is_own_origin
from annotate.sessions import session_token
from data.errors import MedjuryError

if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent
    from websockets.http11 import Request

# A clinician's page asks for screens; what is rated goes over the room's own line, POST /room.
LARGEST_OF_A_CLINICIAN = 64 * 1024  # bytes of a message
LARGEST_OF_STEERING = 4_000_000  # rubrics, descriptions, panels: all that is entered on a screen
AT_ONCE = 20  # of one account: browser windows
LARGEST = "medjury.largest"  # under a scope's extensions: what sets how much a WebSocket may carry
POLICY_VIOLATION = 1008
REFUSED = {"type": "websocket.close", "code": POLICY_VIOLATION}  # before it is accepted: a 403


@dataclass(frozen=True, slots=True)
class Admitted:
    """Whose WebSocket it is, and how many bytes a message of theirs may have."""

    account: str
    largest: int


class WebSockets:
    """Middleware that gives a WebSocket to a session only, from our own page, 20 an account.

    Nothing that comes over another is read. How much a message may carry is told to the protocol
    (`annotate.protocols`), which reads no more than that.
    """

    def __init__(self, app: ASGIApp, engine: Engine) -> None:
        self.app, self.engine = app, engine
        self.open: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a WebSocket on, or refuse it before it is accepted."""
        if scope["type"] != "websocket":
            await self.app(scope, receive, send)
            return
        admitted = await self._admitted(HTTPConnection(scope))
        if admitted is None or self.open[admitted.account] >= AT_ONCE:
            await send(REFUSED)
            return
        self.open[admitted.account] += 1
        try:
            scope["extensions"][LARGEST]["allow"](admitted.largest)
            await self.app(scope, receive, send)
        finally:
            self.open[admitted.account] -= 1
            self.open += Counter()  # forgets who has none left

    async def _admitted(self, connection: HTTPConnection) -> Admitted | None:
        origin = connection.headers.get("origin")
        if origin is not None and not is_own_origin(origin, connection.headers):
            return None
        return await run_in_threadpool(admitted, self.engine, connection)


def admitted(engine: Engine, connection: HTTPConnection) -> Admitted | None:
    """Return whose session a connection carries, and what it may; None if it carries none.

    While the study cannot be reached, a session that was signed here gets as little as a
    clinician's: the page says so itself, and tries again.
    """
    try:
        token = session_token(engine, connection)
        try:
            person = sessions.owner(engine, token)
        except MedjuryError:
            way = sessions.way_in(engine, token)
            return None if way is None else Admitted(f"way in {way}", LARGEST_OF_A_CLINICIAN)
    except MedjuryError:  # so early that not even the key is known
        return None
    if person is None:
        return None
    steers = person.role in STEERING
    return Admitted(str(person.id), LARGEST_OF_STEERING if steers else LARGEST_OF_A_CLINICIAN)


LONGEST_HEAD = 64 * 1024  # bytes of a request's line and headers; nginx passes on half of it
MOST_FRAGMENTS = 1_000  # of one message: an empty one costs memory too
SECONDS_BETWEEN_PINGS = 30
TOO_LONG = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"Content-Length: 0\r\nConnection: close\r\n\r\n"
)


class BoundedHttp(HttpToolsProtocol):
    """HTTP, with a bound on what is no body: a request's line, its headers, what follows a body."""

    no_body = 0  # bytes of this message that are none, but for those that came with its first
    begun = False

    def data_received(self, data: bytes) -> None:
        """Take in what has come; close the line once too much of it is no body."""
        self.begun = False
        super().data_received(data)
        if not self.begun:
            self.no_body += len(data)
        if self.no_body > LONGEST_HEAD and not self.transport.is_closing():
            self.transport.write(TOO_LONG)
            self.transport.close()

    def on_message_begin(self) -> None:
        """Begin to count anew."""
        self.begun, self.no_body = True, 0
        super().on_message_begin()

    def on_body(self, body: bytes) -> None:
        """Take in a part of a body, which has bounds of its own."""
        self.no_body -= len(body)
        super().on_body(body)


class BoundedWebSocket(WebSocketsSansIOProtocol):
    """A WebSocket that is not read until it is accepted, and then as far as it may carry."""

    def handle_connect(self, event: "Request") -> None:
        """Stop reading while the application decides."""
        self.conn.max_message_size = 0
        self.transport.pause_reading()
        super().handle_connect(event)
        if not self.close_sent:
            self.scope["extensions"][LARGEST] = {"allow": self.allow}

    def allow(self, largest: int) -> None:
        """Let messages have up to so many bytes."""
        self.conn.max_message_size = largest

    async def send(self, message: "ASGISendEvent") -> None:
        """Send on; begin to read once the WebSocket is accepted."""
        await super().send(message)
        if message["type"] == "websocket.accept" and not self.transport.is_closing():
            self.transport.resume_reading()

    def handle_cont(self, event: Frame) -> None:
        """Take in a fragment, if its message does not have too many."""
        if len(self.frames) < MOST_FRAGMENTS:
            super().handle_cont(event)
        elif not self.close_sent:
            self.frames = []
            self.conn.fail(CloseCode.MESSAGE_TOO_BIG, "too many fragments")
            self.handle_parser_exception()


def run(app: ASGIApp, host: str, port: int) -> None:
    """Serve an application by these protocols until interrupted."""
    uvicorn.run(
        app,
        host=host,
        port=port,
        http=BoundedHttp,
        ws=BoundedWebSocket,
        ws_per_message_deflate=False,  # what is compressed is small as it comes, not as it lies here
        ws_ping_interval=SECONDS_BETWEEN_PINGS,
        ws_ping_timeout=SECONDS_BETWEEN_PINGS,
        ssl_certfile=config.get_option("server.sslCertFile"),
        ssl_keyfile=config.get_option("server.sslKeyFile"),
        use_colors=False,
        access_log=False,
        log_level="warning",  # or each WebSocket, refused ones too, puts its address into the log
    )
