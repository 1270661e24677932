"""Signing in with a code, and out again."""

import html
import importlib.resources
from urllib.parse import parse_qs

from sqlalchemy import Engine
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from annotate import sessions
from annotate.headers import session_token
from annotate.throttle import Throttle
from data import queries
from data.errors import MedjuryError

LONGEST_BODY = 2048
LONGEST_CODE = 64
WRONG = "This code is not valid. Check it against your invitation; every character counts."
SLOWER = "Too many attempts. Wait a minute, then try again."
BUSY = "The study cannot be reached just now. Try again in a moment."
TEMPLATE = (importlib.resources.files("annotate") / "login.html").read_text("utf-8")


def routes(engine: Engine) -> list[Route]:
    """Return /login and /logout for a study."""
    throttle = Throttle()

    async def login(request: Request) -> Response:
        if request.method == "POST":
            return await _try_code(engine, throttle, request)
        token = session_token(request.headers)
        known = await run_in_threadpool(sessions.owner, engine, token)
        return RedirectResponse("/", status_code=303) if known else _form("")

    async def logout(_: Request) -> Response:
        answer = RedirectResponse("/login", status_code=303)
        answer.delete_cookie(sessions.COOKIE, httponly=True, samesite="lax")
        return answer

    return [Route("/login", login, methods=["GET", "POST"]), Route("/logout", logout)]


async def _try_code(engine: Engine, throttle: Throttle, request: Request) -> Response:
    """Answer a submitted code: a session, or the form again with the reason."""
    address = request.client.host if request.client else ""
    if request.headers.get("sec-fetch-site") == "cross-site":
        return _form(WRONG, 403)
    if not throttle.allows(address):
        return _form(SLOWER, 429)
    code = await _code(request)
    try:
        person = await run_in_threadpool(queries.person_by_code, engine, code)
        token = await run_in_threadpool(sessions.issue, engine, person) if person else None
    except MedjuryError:
        return _form(BUSY, 503)
    if token is None:
        throttle.failed(address)
        return _form(WRONG, 401)
    answer = RedirectResponse("/", status_code=303)
    answer.set_cookie(
        sessions.COOKIE,
        token,
        max_age=sessions.MAX_AGE_SECONDS,
        httponly=True,
        samesite="lax",
        secure=_is_https(request),
    )
    return answer


async def _code(request: Request) -> str:
    """Return the code in a form's body; nothing longer than a form of ours is read."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LONGEST_BODY:
            return ""
    fields = parse_qs(body.decode("utf-8", "replace"))
    return fields.get("code", [""])[0][:LONGEST_CODE]


def _is_https(request: Request) -> bool:
    """Return whether the browser speaks https, to us or to the proxy before us."""
    forwarded = request.headers.get("x-forwarded-proto", "")
    return request.url.scheme == "https" or forwarded.split(",")[0].strip() == "https"


def _form(message: str, status: int = 200) -> HTMLResponse:
    """Return the sign-in page, with what went wrong."""
    alert = f'<p role="alert" id="wrong">{html.escape(message)}</p>' if message else ""
    described = ' aria-invalid="true" aria-describedby="wrong"' if message else ""
    page = TEMPLATE.replace("{{alert}}", alert).replace("{{described}}", described)
    return HTMLResponse(page, status, headers={"Cache-Control": "no-store"})
