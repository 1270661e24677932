"""Remove from Streamlit's messages to a browser what they reveal about the server.

Its first message names the application's file on the server, and where that lies under a folder
that is named after a study, the study's secret with it. And where its connection breaks, its page
opens a dialog that takes the focus: a clinician who types on types into that.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable

from sqlalchemy import Engine
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from annotate import sessions
from annotate.sessions import session_token
from data.errors import MedjuryError

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
