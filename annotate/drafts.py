"""Keeping drafts: the form sends what is entered by a plain request, and no page is drawn for it."""

import json

from sqlalchemy import Engine
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotate import sessions
from annotate.headers import from_elsewhere, session_token
from annotate.replies import about, take_in
from data import queries
from data.errors import MedjuryError

PATH = "/draft"
LONGEST_BODY = 512_000  # 200 marks and a comment of 20,000 characters, in UTF-8


def routes(engine: Engine) -> list[Route]:
    """Return the route that keeps the drafts of a study.

    A POST is answered 200 with what is stored now, whether or not this message is it; 4xx where
    the page itself must be asked: without a session, or for anything but a draft. A GET, answered
    204 or 401, asks only whether a page can be had now. 503 where the study cannot be reached.
    """

    async def knock(request: Request) -> Response:
        return await run_in_threadpool(_knock, engine, session_token(request.headers))

    async def keep(request: Request) -> Response:
        if from_elsewhere(request.headers):
            return Response(status_code=403)
        payload = await _payload(request)
        if payload is None or payload.get("submit") is not False or payload.get("go"):
            return Response(status_code=400)
        return await run_in_threadpool(_keep, engine, session_token(request.headers), payload)

    return [Route(PATH, keep, methods=["POST"]), Route(PATH, knock, methods=["GET"])]


def _knock(engine: Engine, token: str | None) -> Response:
    """Say whether the study can be reached, and whether this is a session of a clinician's."""
    try:
        person = sessions.owner(engine, token)
    except MedjuryError:
        return Response(status_code=503)
    return Response(status_code=401 if person is None or person.rater is None else 204)


def _keep(engine: Engine, token: str | None, payload: dict[str, object]) -> Response:
    """Save a draft for whoever's session it is; answer with the newest state that is stored."""
    try:
        person = sessions.owner(engine, token)
        if person is None or person.rater is None:
            return Response(status_code=401)
        answer = take_in(engine, person, payload)
        kept = queries.kept(engine, person.rater, answer.code)
    except MedjuryError:
        return Response(status_code=503)
    return JSONResponse({"code": answer.code, "answer": about(answer)} | kept)


async def _payload(request: Request) -> dict[str, object] | None:
    """Return the object a request carries; None if it is too long or none."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LONGEST_BODY:
            return None
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
