"""Middleware of the server: security headers, and who may ask for what."""

from collections import Counter
from urllib.parse import urlsplit

from sqlalchemy import Engine
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, RedirectResponse, Response
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
    "/media/": STEERING,  # files that a page offers; an address is a hash of what the file holds
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
# line, which asks for the session itself, and what tells nothing.
OPEN = frozenset(
    {
        *("/login", "/logout", "/join", "/join.js", "/hospital", "/oauth2callback"),
        *("/room", "/room/show", "/room/read", "/room/back", "/room/consent", "/room/seen"),
        *("/favicon.png", "/manifest.json", "/_stcore/health", "/_stcore/host-config"),
    }
)
FILES = ("/_stcore/", "/static/", "/component/", "/media/")  # Streamlit's own, no pages

# What Streamlit's page is told of whoever embeds it. Its dialog about a lost connection would take the
# focus from the rating room, which says itself what is kept while the connection is away.
HOST_CONFIG = "/_stcore/host-config"
EMBEDDED = {
    "allowedOrigins": [],
    "useExternalAuthToken": False,
    "enableCustomParentMessages": False,
    "enforceDownloadInNewTab": False,
    "metricsUrl": "",
    "blockErrorDialogs": True,
    "resourceCrossOriginMode": None,
}

# Where people arrive is at "/" for Streamlit, which knows no page under its own name.
ARRIVALS = frozenset({"/rate", "/home"})


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
        elif scope["type"] == "http" and scope["path"] == HOST_CONFIG:
            answer = JSONResponse(EMBEDDED, headers={"Cache-Control": "no-cache"})
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


AT_ONCE = 20  # WebSockets of one account: browser windows
POLICY_VIOLATION = 1008
REFUSED = {"type": "websocket.close", "code": POLICY_VIOLATION}  # before it is accepted: a 403


class WebSockets:
    """Middleware that gives a WebSocket to a session only, from our own page, 20 an account.

    Who has no session that was signed here is refused before the server reads on: nothing that a
    stranger sends behind the handshake lies in memory.
    """

    def __init__(self, app: ASGIApp, engine: Engine) -> None:
        self.app, self.engine = app, engine
        self.open: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a WebSocket on, or refuse it before it is accepted."""
        if scope["type"] != "websocket":
            await self.app(scope, receive, send)
            return
        account = await self._account(HTTPConnection(scope))
        if account is None or self.open[account] >= AT_ONCE:
            await send(REFUSED)
            return
        self.open[account] += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self.open[account] -= 1
            self.open += Counter()  # forgets who has none left

    async def _account(self, connection: HTTPConnection) -> str | None:
        """Return whose session a WebSocket carries; None if it carries none, or comes from elsewhere.

        While the study cannot be reached, a session that was signed here is let in: the page says so
        itself, and tries again.
        """
        origin = connection.headers.get("origin")
        if origin is not None and not is_own_origin(origin, connection.headers):
            return None
        try:
            token = session_token(self.engine, connection)
            way = sessions.way_in(self.engine, token)
        except MedjuryError:  # so early that not even the key is known
            return None
        if way is None:
            return None
        try:
            person = await run_in_threadpool(sessions.owner, self.engine, token)
        except MedjuryError:
            return f"way in {way}"
        return None if person is None else str(person.id)


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
