"""Whether a request comes from a page of ours, and what of Streamlit's own is for whom.

A cookie travels with what other pages on this machine ask too: another port is the same site to a
browser. So a WebSocket, and whatever changes anything, must come from our own address.
"""

from urllib.parse import urlsplit

from sqlalchemy import Engine
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from annotate import sessions
from annotate.headers import session_token
from data.errors import MedjuryError
from data.schema import Role

STEERING = frozenset({Role.RESEARCHER, Role.COORDINATOR})
# What Streamlit would take from or give to anybody, by the start of its path.
FOR_WHOM = {
    "/media/": frozenset(Role),
    "/_stcore/upload_file/": STEERING,
    "/_stcore/metrics": STEERING,
    "/_stcore/agent/": frozenset(),
}
POLICY_VIOLATION = 1008


def from_elsewhere(headers: Headers) -> bool:
    """Return whether another site's page asks: as the browser says, else by the page's origin."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is not None and not _is_ours(origin, headers)


def is_forwarded_https(headers: Headers) -> bool:
    """Return whether the browser speaks https to the proxy before us."""
    return headers.get("x-forwarded-proto", "").split(",")[0].strip() == "https"


class Origins:
    """Middleware that refuses WebSockets of other pages, and files to or from whom they are not for."""

    def __init__(self, app: ASGIApp, engine: Engine) -> None:
        self.app, self.engine = app, engine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it before Streamlit reads any of it."""
        headers = Headers(scope=scope) if scope["type"] in ("http", "websocket") else Headers()
        if scope["type"] == "websocket":
            origin = headers.get("origin")
            if origin is not None and not _is_ours(origin, headers):
                await send({"type": "websocket.close", "code": POLICY_VIOLATION})
                return
        elif scope["type"] == "http" and not await self._may(scope["path"], headers):
            await Response(status_code=403)(scope, receive, send)
            return
        await self.app(scope, receive, send)

    async def _may(self, path: str, headers: Headers) -> bool:
        for start, roles in FOR_WHOM.items():
            if path.startswith(start):
                return await run_in_threadpool(self._is_one_of, roles, session_token(headers))
        return True

    def _is_one_of(self, roles: frozenset[Role], token: str | None) -> bool:
        try:
            person = sessions.owner(self.engine, token)
        except MedjuryError:
            return False
        return person is not None and person.role in roles


def _is_ours(origin: str, headers: Headers) -> bool:
    """Return whether an origin is the address at which the browser asks us."""
    try:
        scheme, host = urlsplit(origin)[:2]
    except ValueError:
        return False
    in_clear = is_forwarded_https(headers) and scheme != "https"
    return host.lower() == headers.get("host", "").lower() and not in_clear
