"""What every HTTP answer says to the browser about security, and who may ask for what.

A cookie travels with what other pages on this machine ask too: another port is the same site to a
browser. So a WebSocket, and whatever changes anything, must come from our own address.
"""

from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from sqlalchemy import Engine
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from annotate import oidc, sessions
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
    "/media/": frozenset(Role),
    "/_stcore/upload_file/": STEERING,
    "/_stcore/metrics": STEERING,
    "/_stcore/agent/": frozenset(),
}
POLICY_VIOLATION = 1008


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


# What is not a page: the doors, a hospital's way back, the rating room's line, which asks for the
# session itself, light or dark, and Streamlit's own files.
DOORS = frozenset(
    {
        *("/login", "/logout", "/join", "/join.js", "/oauth2callback", "/auth/login"),
        *("/room", "/room/show", "/room/read", "/room/back", "/room/consent", "/room/seen"),
        *("/appearance", "/appearance.js"),
    }
)
FILES = ("/_stcore/", "/static/", "/component/", "/media/", "/favicon", "/manifest")

# Where people arrive is at "/" for Streamlit, which knows no page under its own name.
ARRIVALS = frozenset({"/rate", "/study"})


class Gate:
    """Middleware that sends whoever asks for a page without a session to sign in.

    The WebSocket is a door of its own: the page script asks for the session again. Where
    hospital accounts are configured (`hospital`), the page itself leads through their sign-in.
    """

    def __init__(self, app: ASGIApp, engine: Engine, hospital: bool = False) -> None:
        self.app, self.engine, self.hospital = app, engine, hospital

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with the way to sign in."""
        if asks_for_page(scope) and not await run_in_threadpool(self._knows, scope):
            await RedirectResponse("/login", status_code=303)(scope, receive, send)
            return
        if scope["type"] == "http" and scope["path"] in ARRIVALS:
            query = scope["query_string"].decode("latin-1")
            await RedirectResponse(f"/?{query}", status_code=303)(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def _knows(self, scope: Scope) -> bool:
        """Return whether the page may be sent; if the study is unreachable, the page says so."""
        headers = Headers(scope=scope)
        if self.hospital and _is_on_the_way(scope, headers):
            return True
        try:
            token = session_token(headers)
            return sessions.owner(self.engine, token) is not None
        except MedjuryError:
            return True


def asks_for_page(scope: Scope) -> bool:
    """Return whether a request is for one of our screens: for whatever is nothing else."""
    path = scope.get("path", "")
    return scope["type"] == "http" and path not in DOORS and not path.startswith(FILES)


def _is_on_the_way(scope: Scope, headers: Headers) -> bool:
    """Return whether a browser is on its way to a hospital's sign-in, or comes back from it."""
    return scope["query_string"] == b"hospital" or f"{oidc.COOKIES}=" in headers.get("cookie", "")


def session_token(headers: Headers) -> str | None:
    """Return the session cookie of a request, if it carries one."""
    return cookie_of(headers, sessions.COOKIE)


def cookie_of(headers: Headers, name: str) -> str | None:
    """Return a cookie of a request, if it carries it."""
    try:
        morsel = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return None
    return None if morsel is None else morsel.value


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
