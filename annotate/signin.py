"""Signing in with a code, an invitation or a hospital account, out again, and the pages for it."""

import asyncio
import html
import importlib.resources
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import parse_qs

from sqlalchemy import Engine
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from annotate import oidc, sessions
from annotate.headers import cookie_of, from_elsewhere, is_forwarded_https, session_token
from annotate.throttle import Throttle, network
from data import queries, store
from data.errors import MedjuryError, NotAllowed
from data.queries import Checked, Outcome
from data.store import Entered

T = TypeVar("T")
LONGEST_BODY = 2048
LONGEST_FIELD = 512
CODES_AT_ONCE = 4  # each takes 64 MB while it is checked
DEVICE = "device "
LIKE_A_CHECK = 0.1  # seconds that one takes, about
WRONG = "This code is not valid. Check it against your invitation; every character counts."
SLOWER = "Too many attempts. Wait a minute, then try again."
BUSY = "The study cannot be reached just now. Try again in a moment."
STALE = "Signing in took too long. Try again."
REFUSED = {
    Outcome.WRONG: WRONG,
    Outcome.USED: "This invitation has been used already. Sign in with the personal code you got "
    "then, or ask your coordinator for a new invitation.",
    Outcome.EXPIRED: "This invitation has expired. Ask your coordinator for a new one.",
}
HERE = importlib.resources.files("annotate")
STYLE = (HERE / "signin.css").read_text("utf-8")
JOIN_SCRIPT = (HERE / "join.js").read_text("utf-8")
HOSPITAL = '<p class="or">or</p><a class="button plain" href="/?hospital">Sign in with your hospital account</a>'


class Desk:
    """Where people sign in and out of one study."""

    def __init__(self, engine: Engine, hospital: bool = False) -> None:
        self.engine, self.hospital = engine, hospital
        self.throttle = Throttle()
        self.checking = asyncio.Semaphore(CODES_AT_ONCE)

    async def login(self, request: Request) -> Response:
        """Show the form, or take in a code or a hospital account's ticket."""
        try:
            if request.method == "POST":
                return await self._take_in(request)
            token = session_token(request.headers)
            known = await run_in_threadpool(sessions.owner, self.engine, token)
        except MedjuryError:
            return self._form(BUSY, 503)
        return RedirectResponse("/", status_code=303) if known else self._form()

    async def logout(self, request: Request) -> Response:
        """End the session, here and wherever its cookie was copied to; not for another site."""
        if from_elsewhere(request.headers):
            return RedirectResponse("/", status_code=303)
        await run_in_threadpool(self._leave, session_token(request.headers))
        answer = RedirectResponse("/login", status_code=303)
        answer.delete_cookie(sessions.COOKIE, httponly=True, samesite="lax")
        _forget_hospital_account(request, answer)
        return answer

    async def _take_in(self, request: Request) -> Response:
        """Answer what was posted: a session, or the form again with the reason."""
        if from_elsewhere(request.headers):
            return self._form(WRONG, 403)
        fields = await _fields(request)
        if "ticket" in fields:
            return await self._try_ticket(request, fields["ticket"])
        return await self._try_code(request, fields.get("code", ""))

    async def _try_code(self, request: Request, code: str) -> Response:
        """Check a code; an attempt counts as failed from its turn on, until it has not.

        So a ward that signs in at once, from one address, waits for its turn and is let in. What
        begins as no code does is wrong without the costly check: strangers cannot make those
        wait who have a code.
        """
        guesser = await run_in_threadpool(self._guesser, request)
        opening = queries.opening_of(code)
        if not self.throttle.allows(guesser):
            return self._form(SLOWER, 429)
        if not await run_in_threadpool(queries.is_opening, self.engine, opening):
            return await self._refuse_unknown(guesser)
        known = guesser.startswith(DEVICE)
        async with self.checking:
            checked = await self._checked(code, guesser, *(() if known else (f"code {opening}",)))
        if checked is None:
            return self._form(SLOWER, 429)
        if checked.person is None:
            return self._form(REFUSED[checked.outcome], 401)
        entered = await run_in_threadpool(self._enter, store.enter, checked.person)
        if entered is None:
            return self._form(REFUSED[Outcome.USED], 401)
        return await self._open(request, entered)

    async def _refuse_unknown(self, guesser: str) -> Response:
        """Answer a code of nobody's, in about the time of a check."""
        if not self.throttle.takes(guesser):
            return self._form(SLOWER, 429)
        await asyncio.sleep(LIKE_A_CHECK)
        return self._form(WRONG, 401)

    async def _checked(self, code: str, *guessers: str) -> Checked | None:
        """Return what a code is; None where it may not be tried now."""
        if not all(self.throttle.allows(one) for one in guessers):
            return None
        for one in guessers:
            self.throttle.takes(one)
        checked = await run_in_threadpool(queries.check_code, self.engine, code)
        for one in guessers if checked.person else ():
            self.throttle.succeeded(one)
        return checked

    def _guesser(self, request: Request) -> str:
        """Return who tries a code: a device that was signed in from before, or else a network."""
        known = sessions.device(self.engine, cookie_of(request.headers, sessions.DEVICE_COOKIE))
        if known is not None:
            return DEVICE + known
        return network(request.client.host if request.client else "")

    async def _try_ticket(self, request: Request, ticket: str) -> Response:
        """Let in whom a ticket names, and forget the hospital's own cookie."""
        entered = await run_in_threadpool(self._enter, oidc.redeem, ticket)
        return await self._open(request, entered) if entered else self._form(STALE, 401)

    async def _open(self, request: Request, entered: Entered) -> Response:
        """Return the way to the page, or the personal code first, with a new session's cookie.

        The one that this browser had ends, and with it every copy of its cookie; a study that
        is busy just then must not cost a new code that is shown once.
        """
        await run_in_threadpool(self._leave, session_token(request.headers))
        answer: Response = RedirectResponse("/", status_code=303)
        if entered.code:
            answer = welcome_page(entered.person.name, entered.code)
        answer.set_cookie(
            sessions.COOKIE,
            await run_in_threadpool(sessions.issue, self.engine, entered.person),
            max_age=sessions.MAX_AGE_SECONDS,
            httponly=True,
            samesite="lax",
            secure=_is_https(request),
        )
        await run_in_threadpool(self._remember_device, request, answer)
        _forget_hospital_account(request, answer)
        return answer

    def _remember_device(self, request: Request, answer: Response) -> None:
        """Give the browser a cookie by which it keeps an allowance of its own; nobody's name is in it."""
        cookie = cookie_of(request.headers, sessions.DEVICE_COOKIE)
        if sessions.device(self.engine, cookie) is None:
            cookie = sessions.new_device(self.engine)
        answer.set_cookie(
            sessions.DEVICE_COOKIE,
            cookie or "",
            max_age=sessions.DEVICE_SECONDS,
            path="/login",
            httponly=True,
            samesite="lax",
            secure=_is_https(request),
        )

    def _enter(self, act: Callable[[Engine, T], Entered | None], way: T) -> Entered | None:
        """Record a sign-in; None if somebody else used the way in a moment before."""
        try:
            return act(self.engine, way)
        except NotAllowed:
            return None

    def _leave(self, token: str | None) -> None:
        """End a session and record it; signing out works even if the study is not reachable."""
        try:
            sessions.end(self.engine, token)
        except MedjuryError:
            return

    def _form(self, message: str = "", status: int = 200) -> Response:
        return login_page(message, status, self.hospital)


def routes(engine: Engine, hospital: bool = False) -> list[Route]:
    """Return /login, /logout and /join for a study; `hospital` offers hospital accounts."""
    desk = Desk(engine, hospital)

    async def join(_: Request) -> Response:
        return join_page()

    async def script(_: Request) -> Response:
        return Response(JOIN_SCRIPT, media_type="text/javascript")

    return [
        Route("/login", desk.login, methods=["GET", "POST"]),
        Route("/logout", desk.logout),
        Route("/join", join),
        Route("/join.js", script),
    ]


async def _fields(request: Request) -> dict[str, str]:
    """Return a form's fields; nothing longer than a form of ours is read."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LONGEST_BODY:
            return {}
    fields = parse_qs(body.decode("utf-8", "replace"))
    return {name: values[0][:LONGEST_FIELD] for name, values in fields.items()}


def _is_https(request: Request) -> bool:
    """Return whether the browser speaks https, to us or to the proxy before us."""
    return request.url.scheme == "https" or is_forwarded_https(request.headers)


def _forget_hospital_account(request: Request, answer: Response) -> None:
    """Delete Streamlit's cookies of a hospital account, which would last 30 days."""
    for name in request.cookies:
        if name.startswith(oidc.COOKIES):
            answer.delete_cookie(name, httponly=True, samesite="lax")


def login_page(message: str = "", status: int = 200, hospital: bool = False) -> HTMLResponse:
    """Return the sign-in page, with what went wrong; `hospital` offers the hospital account."""
    alert = f'<p role="alert" id="wrong">{html.escape(message)}</p>' if message else ""
    described = ' aria-invalid="true" aria-describedby="wrong"' if message else ""
    parts = {"alert": alert, "described": described, "hospital": HOSPITAL if hospital else ""}
    return _page("login.html", parts, status)


def join_page() -> HTMLResponse:
    """Return the page an invitation's link opens; the code in the link never reaches us here."""
    return _page("join.html", {})


def welcome_page(name: str, code: str) -> HTMLResponse:
    """Return the page that shows the personal code of somebody who came by an invitation."""
    return _page("welcome.html", {"name": html.escape(name), "code": html.escape(code)})


def _page(template: str, parts: dict[str, str], status: int = 200) -> HTMLResponse:
    """Return a page that no cache keeps."""
    text = (HERE / template).read_text("utf-8")
    for name, value in ({"style": STYLE} | parts).items():
        text = text.replace("{{" + name + "}}", value)
    return HTMLResponse(text, status, headers={"Cache-Control": "no-store"})
