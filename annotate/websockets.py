"""Decide, before the handshake is answered, who gets a WebSocket and how much it may carry."""

from collections import Counter
from dataclasses import dataclass

from sqlalchemy import Engine
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from annotate import sessions
from annotate.cookies import session_token
from annotate.headers import STEERING, is_own_origin
from data.errors import MedjuryError

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
