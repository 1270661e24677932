"""Security headers of every HTTP response, and which requests are allowed.

A cookie travels with what other pages on this machine ask too: another port is the same site to a
browser. So a WebSocket, and whatever changes anything, must come from our own address.
"""

from urllib.parse import urlsplit

from sqlalchemy import Engine
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from annotate import sessions
from annotate.sessions import is_forwarded_https, session_token
from data.errors import MedjuryError
from data.schema import Role

# blob: is how Streamlit loads a component's script; no host but our own appears.
POLICY = "; ".join(
    [
        "default-src 'self'",
        "script-src 'self' blob:",
        "img-src 'self' data: blob:",
        "style-src 'self' 'unsafe-inline'",
        "font-src 'self' data:",
        "connect-src 'self'",
        "object-src 'none'",
        "base-uri 'self'",
        "frame-ancestors 'none'",
        "form-action 'self'",
    ]
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
STEERING = frozenset({Role.RESEARCHER, Role.COORDINATOR})
# What Streamlit would take from or give to anybody, by the start of its path.
FOR_WHOM = {
    "/_stcore/upload_file/": STEERING,
    "/_stcore/metrics": STEERING,
    "/_stcore/agent/": frozenset(),
    "/auth/": frozenset(),  # its own sign-in, whose cookie could not be ended
}


class SecurityHeaders:
    """Middleware that puts the headers above on every HTTP answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and its answer back with the headers."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        await self.app(scope, receive, send_with_headers if scope["type"] == "http" else send)


# What is answered without a session: the doors, a hospital's way there and back, the rating room's
# line, which asks for the session itself, light or dark, and what tells nothing.
OPEN = frozenset(
    {
        *("/login", "/logout", "/join", "/join.js", "/hospital", "/oauth2callback"),
        *("/room", "/room/show", "/room/read", "/room/back", "/room/consent", "/room/seen"),
        *("/appearance", "/appearance.js", "/favicon.png", "/manifest.json"),
        *("/_stcore/health", "/_stcore/host-config"),
    }
)
FILES = ("/_stcore/", "/static/", "/component/", "/media/")  # Streamlit's own, no pages

# Where people arrive is at "/" for Streamlit, which knows no page under its own name.
ARRIVALS = frozenset({"/rate", "/study"})


class Gate:
    """Middleware that sends whoever asks for a page without a session to sign in.

    Streamlit answers what it does not have with its page, so its files ask for a session too: for
    one that was signed here, which costs no question to the study.
    """

    def __init__(self, app: ASGIApp, engine: Engine) -> None:
        self.app, self.engine = app, engine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with the way to sign in."""
        answer: Response | None = None
        if asks_for_page(scope) and not await run_in_threadpool(self._knows, scope):
            answer = RedirectResponse("/login", status_code=303)
        elif asks_for_file(scope) and not self._signed(scope):
            answer = Response(status_code=403)
        elif scope["type"] == "http" and scope["path"] in ARRIVALS:
            query = scope["query_string"].decode("latin-1")
            answer = RedirectResponse(f"/?{query}", status_code=303)
        await (answer or self.app)(scope, receive, send)

    def _knows(self, scope: Scope) -> bool:
        """Return whether the page may be sent; if the study is unreachable, the page says so."""
        try:
            token = session_token(self.engine, HTTPConnection(scope))
            return sessions.owner(self.engine, token) is not None
        except MedjuryError:
            return True

    def _signed(self, scope: Scope) -> bool:
        try:
            token = session_token(self.engine, HTTPConnection(scope))
            return sessions.way_in(self.engine, token) is not None
        except MedjuryError:
            return False


def asks_for_page(scope: Scope) -> bool:
    """Return whether a request is for one of our screens: for whatever is nothing else."""
    path = scope.get("path", "")
    return scope["type"] == "http" and path not in OPEN and not path.startswith(FILES)


def asks_for_file(scope: Scope) -> bool:
    """Return whether a request is for a file of Streamlit's that not everybody is given."""
    path = scope.get("path", "")
    return scope["type"] == "http" and path not in OPEN and path.startswith(FILES)


def from_elsewhere(headers: Headers) -> bool:
    """Return whether another site's page asks: as the browser says, else by the page's origin."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is not None and not is_own_origin(origin, headers)


class Roles:
    """Middleware that refuses requests which Streamlit would answer for anybody."""

    def __init__(self, app: ASGIApp, engine: Engine) -> None:
        self.app, self.engine = app, engine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it before Streamlit reads any of it."""
        if scope["type"] == "http" and not await self._may(scope):
            await Response(status_code=403)(scope, receive, send)
            return
        await self.app(scope, receive, send)

    async def _may(self, scope: Scope) -> bool:
        for start, roles in FOR_WHOM.items():
            if scope["path"].startswith(start):
                return await run_in_threadpool(self._is_one_of, roles, HTTPConnection(scope))
        return True

    def _is_one_of(self, roles: frozenset[Role], connection: HTTPConnection) -> bool:
        try:
            person = sessions.owner(self.engine, session_token(self.engine, connection))
        except MedjuryError:
            return False
        return person is not None and person.role in roles


def is_own_origin(origin: str, headers: Headers) -> bool:
    """Return whether an origin is the address at which the browser asks us."""
    try:
        scheme, host = urlsplit(origin)[:2]
    except ValueError:
        return False
    in_clear = is_forwarded_https(headers) and scheme != "https"
    return host.lower() == headers.get("host", "").lower() and not in_clear
