"""Give the files that Streamlit keeps, such as exports and pictures, only to the session they are for.

It gives them by an address that holds a hash of the content, to anybody who has the address. Here
they are given to the session that was told the address over its WebSocket, and to no other.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable

from sqlalchemy import Engine
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from annotate.cookies import session_token
from data.errors import MedjuryError

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
