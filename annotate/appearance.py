"""Light or dark: as those who steer a study choose; whoever rates always has light.

Streamlit decides as a page loads, by a note in the browser under the page's path, else by the
system. So each page that is sent carries a script, first of all, that leaves this note; which
one, the server says by whose session it is.
"""

from collections.abc import Mapping
from importlib.resources import files

from sqlalchemy import Engine
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from annotate import sessions
from annotate.middleware import asks_for_page, from_elsewhere
from annotate.sessions import session_token
from data.errors import MedjuryError
from data.schema import Role

COOKIE = "medjury_appearance"
PATH, SCRIPT_PATH = "/appearance", "/appearance.js"
COLOURS = (files("annotate") / "appearance.css").read_text("utf-8")
SCRIPT = (files("annotate") / "appearance.js").read_text("utf-8")
# What stands in the cookie, and what Streamlit calls it.
CHOICES = {"system": "System", "light": "Light", "dark": "Dark"}
SECONDS_KEPT = 365 * 24 * 3600
HEAD = b"<head>"
# What would bring a page as it was, a part of one, or one that cannot be read here.
CONDITIONS = (b"if-none-match", b"if-modified-since", b"range", b"accept-encoding")


def chosen(cookies: Mapping[str, str]) -> str:
    """Return the appearance in a browser's cookie: "system", "light" or "dark"."""
    choice = cookies.get(COOKIE, "")
    return choice if choice in CHOICES else "system"


class Appearance:
    """Middleware that tells each page, before anything is drawn, whether it is light or dark."""

    def __init__(self, app: ASGIApp, engine: Engine) -> None:
        self.app, self.engine = app, engine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; a page comes back with the script in its head."""
        if not asks_for_page(scope) or scope["method"] != "GET":
            await self.app(scope, receive, send)
            return
        choice = await run_in_threadpool(self._choice, Request(scope))
        headers = [header for header in scope["headers"] if header[0] not in CONDITIONS]
        await self.app({**scope, "headers": headers}, receive, _Marked(send, choice))

    def _choice(self, request: Request) -> str:
        """Return the chosen appearance; light for clinicians, before signing in, and without a study."""
        try:
            person = sessions.owner(self.engine, session_token(self.engine, request))
        except MedjuryError:
            return "light"
        if person is None or person.role == Role.CLINICIAN:
            return "light"
        return chosen(request.cookies)


class _Marked:
    """A sender that adds the script to a page's head and passes on anything else unchanged."""

    def __init__(self, send: Send, choice: str) -> None:
        self.send = send
        self.tag = f'<script src="{SCRIPT_PATH}" data-theme="{CHOICES[choice]}"></script>'.encode()
        self.start: Message | None = None
        self.body = b""

    async def __call__(self, message: Message) -> None:
        """Hold a page back until it is whole."""
        if message["type"] == "http.response.start" and _is_page(message):
            self.start = message
        elif self.start is None:
            await self.send(message)
        else:
            self.body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._let_go(self.start)

    async def _let_go(self, start: Message) -> None:
        body = self.body.replace(HEAD, HEAD + self.tag, 1)
        headers = MutableHeaders(scope=start)
        for name in ("etag", "last-modified", "accept-ranges"):
            del headers[name]
        headers["content-length"] = str(len(body))
        headers["cache-control"] = "no-store"
        await self.send(start)
        await self.send({"type": "http.response.body", "body": body})


def routes() -> list[Route]:
    """Return the script, and where the choice is kept."""

    async def script(_: Request) -> Response:
        headers = {"Cache-Control": "no-cache"}
        return Response(SCRIPT, media_type="text/javascript", headers=headers)

    return [Route(SCRIPT_PATH, script), Route(PATH, _keep, methods=["POST"])]


async def _keep(request: Request) -> Response:
    """Keep a choice in a cookie; it is the page that loads itself again."""
    if from_elsewhere(request.headers):
        return Response(status_code=403)
    choice = request.query_params.get("choice", "")
    if choice not in CHOICES:
        return Response(status_code=400)
    answer = Response(status_code=204)
    answer.set_cookie(COOKIE, choice, max_age=SECONDS_KEPT, httponly=True, samesite="lax")
    return answer


def _is_page(message: Message) -> bool:
    """Return whether an answer is HTML that can be read."""
    headers = Headers(raw=message["headers"])
    kind = headers.get("content-type", "")
    return kind.startswith("text/html") and "content-encoding" not in headers
