"""Middleware of the server: security headers, and who may ask for what."""

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from urllib.parse import urlsplit

from sqlalchemy import Engine
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from annotate import sessions
from annotate.sessions import is_forwarded_https, session_token
from data.errors import MedjuryError
from data.person import Person
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


STEERING = frozenset({Role.RESEARCHER, Role.COORDINATOR})
EVERYBODY = frozenset(Role)
ANYBODY, SIGNED, PAGE = "anybody", "signed", "page"
Who = str | frozenset[Role]
# Who may ask for what; all else is not there. HEAD counts as GET. Anybody: the way in and out, the
# rating room's line, which asks for the session itself, and what tells nothing. Signed: whoever has
# a session that was signed here, which costs no question to the study. A path that ends in "/"
# stands for all that begin with it, the first that fits for itself.
DOORS: Mapping[tuple[str, str], Who] = {
    **{("GET", path): ANYBODY for path in ("/login", "/logout", "/join", "/join.js")},
    **{("GET", path): ANYBODY for path in ("/hospital", "/oauth2callback", "/favicon.png")},
    **{("GET", f"/_stcore/{name}"): ANYBODY for name in ("health", "host-config")},
    ("POST", "/login"): ANYBODY,
    ("GET", "/room"): ANYBODY,
    ("POST", "/room"): ANYBODY,
    **{("POST", f"/room/{act}"): ANYBODY for act in ("show", "read", "back", "consent", "seen")},
    ("GET", "/_stcore/metrics"): STEERING,
    ("GET", "/media/"): STEERING,  # files that a page offers
    **{(method, "/_stcore/upload_file/"): STEERING for method in ("PUT", "DELETE", "OPTIONS")},
    ("GET", "/_stcore/agent/"): frozenset(),
    ("GET", "/_stcore/"): SIGNED,
    ("GET", "/static/"): SIGNED,
    ("GET", "/component/"): SIGNED,
    ("GET", "/manifest.json"): SIGNED,  # tells Streamlit's version
    ("GET", "/"): PAGE,
    ("GET", "/index.html"): PAGE,
}
STREAM = "/_stcore/stream"

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
AT_ONCE = 20  # WebSockets of one account: browser windows
POLICY_VIOLATION = 1008
REFUSED = {"type": "websocket.close", "code": POLICY_VIOLATION}  # before it is accepted: a 403


class Doors:
    """Middleware that lets in by the table above, and refuses all else before any of it is read.

    `pages` are the paths of screens: who asks for one without a session is led to sign in. A
    WebSocket is given to a session only, from our own page, 20 an account. While the study cannot
    be reached, pages and WebSockets of a session that was signed here are let in: the page says so
    itself, and tries again.
    """

    def __init__(self, app: ASGIApp, engine: Engine, pages: Iterable[str] = ()) -> None:
        self.app, self.engine = app, engine
        self.doors = {**DOORS, **{("GET", f"/{path}"): PAGE for path in pages}}
        self.open: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request or a WebSocket on, or refuse it."""
        if scope["type"] == "websocket":
            await self._stream(scope, receive, send)
        elif scope["type"] == "http":
            answer = await self._answer(scope)
            with suppress(ClientDisconnect):  # who breaks off is told nothing, and fills no log
                await (answer or self.app)(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _answer(self, scope: Scope) -> Response | None:
        """Return the answer of the door; None for whom it lets in."""
        path, who = scope["path"], self._who(scope)
        if path == HOST_CONFIG:
            return JSONResponse(EMBEDDED, headers={"Cache-Control": "no-cache"})
        if who is None:
            return Response(status_code=404)
        if who == ANYBODY:
            return None
        if who == SIGNED:
            return None if self._way_in(HTTPConnection(scope)) else Response(status_code=403)
        try:
            person = await run_in_threadpool(self._person, HTTPConnection(scope))
        except MedjuryError:
            return None if who == PAGE else Response(status_code=403)
        if isinstance(who, frozenset):
            return None if person and person.role in who else Response(status_code=403)
        if person is None:
            return RedirectResponse("/login", status_code=303)
        if path in ARRIVALS:
            query = scope["query_string"].decode("latin-1")
            return RedirectResponse(f"/?{query}", status_code=303)
        return None

    def _who(self, scope: Scope) -> Who | None:
        """Return who may ask for what a request asks for; None where nothing is there."""
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        found = self.doors.get((method, scope["path"]))
        starts = (
            who
            for (of, start), who in self.doors.items()
            if of == method
            and len(start) > 1
            and start.endswith("/")
            and scope["path"].startswith(start)
        )
        return found if found is not None else next(starts, None)

    def _person(self, connection: HTTPConnection) -> Person | None:
        return sessions.owner(self.engine, session_token(self.engine, connection))

    def _way_in(self, connection: HTTPConnection) -> str | None:
        """Return by which way in a session that was signed here began, without asking the study."""
        try:
            return sessions.way_in(self.engine, session_token(self.engine, connection))
        except MedjuryError:  # so early that not even the key is known
            return None

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a WebSocket on; nothing that a stranger sends behind the handshake lies in memory."""
        account = await self._account(scope)
        if account is None or self.open[account] >= AT_ONCE:
            await send(REFUSED)
            return
        self.open[account] += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self.open[account] -= 1
            self.open += Counter()  # forgets who has none left

    async def _account(self, scope: Scope) -> str | None:
        """Return whose session a WebSocket carries; None if it carries none, or comes from elsewhere."""
        connection = HTTPConnection(scope)
        origin = connection.headers.get("origin")
        if scope["path"] != STREAM or (origin and not is_own_origin(origin, connection.headers)):
            return None
        way = self._way_in(connection)
        if way is None:
            return None
        try:
            person = await run_in_threadpool(self._person, connection)
        except MedjuryError:
            return f"way in {way}"
        return None if person is None else str(person.id)


def from_elsewhere(headers: Headers) -> bool:
    """Return whether another site's page asks: as the browser says, else by the page's origin."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is not None and not is_own_origin(origin, headers)


def is_own_origin(origin: str, headers: Headers) -> bool:
    """Return whether an origin is the address at which the browser asks us."""
    try:
        scheme, host = urlsplit(origin)[:2]
    except ValueError:
        return False
    in_clear = is_forwarded_https(headers) and scheme != "https"
    return host.lower() == headers.get("host", "").lower() and not in_clear
