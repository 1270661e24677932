"""Middleware of the server: security headers, who may ask for what, and what Streamlit sends to whom."""

import re
from collections import OrderedDict
from collections.abc import Iterable
from urllib.parse import urlsplit

from sqlalchemy import Engine
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

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
# line, which asks for the session itself, and what tells nothing.
OPEN = frozenset(
    {
        *("/login", "/logout", "/join", "/join.js", "/hospital", "/oauth2callback"),
        *("/room", "/room/show", "/room/read", "/room/back", "/room/consent", "/room/seen"),
        *("/favicon.png", "/manifest.json", "/_stcore/health", "/_stcore/host-config"),
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


HOST_CONFIG = "/_stcore/host-config"
GIT = "git_info_changed"
NEW_SESSION = "new_session"
LONGEST_OF_THESE = 1 << 16  # both kinds are short; what is longer draws something


class Outgoing:
    """Middleware that takes the server's place out of Streamlit's messages, and its dialogs away."""

    def __init__(self, app: ASGIApp, engine: Engine) -> None:
        self.app, self.engine = app, engine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on, its answers looked through."""
        if scope["type"] == "http" and scope["path"] == HOST_CONFIG:
            rates = await run_in_threadpool(self._rates, HTTPConnection(scope))
            await host_config(rates)(scope, receive, send)
            return

        async def send_without_place(message: Message) -> None:
            sent = message.get("bytes") if message["type"] == "websocket.send" else None
            if sent is None or len(sent) > LONGEST_OF_THESE:
                await send(message)
            elif (allowed := without_place(sent)) is not None:
                await send({**message, "bytes": allowed})

        await self.app(scope, receive, send_without_place if scope["type"] == "websocket" else send)

    def _rates(self, connection: HTTPConnection) -> bool:
        """Return whether the session is a clinician's, and nobody else's if that cannot be asked."""
        try:
            person = sessions.owner(self.engine, session_token(self.engine, connection))
        except MedjuryError:
            return True
        return person is None or person.rater is not None


def host_config(rates: bool) -> JSONResponse:
    """Return what Streamlit's page is told of whoever embeds it: nobody does.

    A clinician's page says itself what is kept while the connection is away.
    """
    settings = {
        "allowedOrigins": [],
        "useExternalAuthToken": False,
        "enableCustomParentMessages": False,
        "enforceDownloadInNewTab": False,
        "metricsUrl": "",
        "blockErrorDialogs": rates,
        "resourceCrossOriginMode": None,
    }
    return JSONResponse(settings, headers={"Cache-Control": "no-cache"})


def without_place(sent: bytes) -> bytes | None:
    """Return a message without the place of the application's file; None for its repository's.

    To parse one takes 1 microsecond where it has 2 kB, 20 at most: less than Streamlit takes to
    make it, and surer than to look for a kind in the bytes.
    """
    message = ForwardMsg()
    message.ParseFromString(sent)
    kind = message.WhichOneof("type")
    if kind == GIT:
        return None
    if kind != NEW_SESSION:
        return sent
    message.new_session.main_script_path = ""
    return bytes(message.SerializeToString())


START = "/media/"
ADDRESS = re.compile(rb"/media/([0-9a-f]{16,128})")
SESSIONS_KEPT = 2_000
FILES_KEPT = 500  # of a session: a screen has some ten, and anew whenever a figure changes


class Told:
    """The addresses of files that each session was sent, in bounded memory."""

    def __init__(self) -> None:
        self._files: OrderedDict[str, OrderedDict[str, None]] = OrderedDict()

    def add(self, session: str, files: Iterable[str]) -> None:
        """Note that a session was sent the addresses of files."""
        own_files = self._files.setdefault(session, OrderedDict())
        self._files.move_to_end(session)
        for file in files:
            own_files[file] = None
            own_files.move_to_end(file)
        while len(own_files) > FILES_KEPT:
            own_files.popitem(last=False)
        while len(self._files) > SESSIONS_KEPT:
            self._files.popitem(last=False)

    def has(self, session: str, file: str) -> bool:
        """Return whether a session was sent the address of a file."""
        return file in self._files.get(session, ())


class Downloads:
    """Middleware that gives a file only to a session whose page was sent its address."""

    def __init__(self, app: ASGIApp, engine: Engine) -> None:
        self.app, self.engine, self.told = app, engine, Told()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse requests for another session's file, pass on all others, and note sent addresses."""
        if scope["type"] == "websocket":
            session = self._session(scope)
            await self.app(scope, receive, send if session is None else self._noted(session, send))
            return
        if scope["type"] == "http" and scope["path"].startswith(START) and not self._may(scope):
            await Response(status_code=403)(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def _noted(self, session: str, send: Send) -> Send:
        """Return what sends on and notes which files' addresses are in it."""

        async def noted(message: Message) -> None:
            sent = message.get("bytes") or b""
            if files := [address.decode() for address in ADDRESS.findall(sent)]:
                self.told.add(session, files)
            await send(message)

        return noted

    def _may(self, scope: Scope) -> bool:
        session = self._session(scope)
        file = scope["path"].removeprefix(START).partition(".")[0]
        return session is not None and self.told.has(session, file)

    def _session(self, scope: Scope) -> str | None:
        try:
            return session_token(self.engine, HTTPConnection(scope))
        except MedjuryError:
            return None
