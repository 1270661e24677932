"""The rating room's HTTP requests: each stores its entries and returns what to show next."""

import gzip
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from sqlalchemy import Engine
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from annotate import sessions
from annotate.middleware import from_elsewhere
from annotate.rating import room
from annotate.rating.answers import (
    Answer,
    refused,
    take_in,
    take_in_training,
)
from annotate.sessions import session_token
from data.errors import Conflict, MedjuryError, NotAllowed
from data.person import Person
from data.study import room as study_room
from data.study.assignments import answer_seen
from data.study.settings import give_consent
from data.study.training import leave_feedback, leave_outcome

PATH = "/room"
LONGEST_BODY = 2_000_000  # 200 marks with notes and comments of 20,000 characters, in UTF-8
CONSENT_FIRST = (
    "What you are asked to agree to has changed. Nothing was saved yet, and nothing is lost: reload "
    "the page to read it."
)
PERSON = "Medjury-Person"  # whose page asks: another may have signed in in the same browser since
WORTH_PACKING, LIGHTLY = 1000, 1  # bytes, and gzip's level
FRESH = {"Cache-Control": "no-store"}
Payload = Mapping[str, Any]


def routes(engine: Engine) -> list[Route]:
    """Return the room's routes.

    GET /room answers with what the clinician is shown; POST /room takes a message of the form,
    POST /room/show a wish to see a text, POST /room/read that feedback was read, POST /room/back
    the way back from the end, POST /room/consent that the clinician agrees,
    POST /room/seen that an answer was seen. 401 without a
    clinician's session, 403 from another site, 400 for what is none of these, 503 where the study
    cannot be reached.
    """
    acts = {PATH: _message, f"{PATH}/show": _show, f"{PATH}/read": _read, f"{PATH}/back": _back}
    acts |= {f"{PATH}/consent": _consent, f"{PATH}/seen": _seen}

    def posted(act: Callable[[Engine, Person, Payload], Response]) -> Any:
        async def endpoint(request: Request) -> Response:
            if from_elsewhere(request.headers):
                return Response(status_code=403)
            person = await run_in_threadpool(_clinician, engine, request)
            if isinstance(person, Response):  # before a byte of what it carries is read
                return person
            payload = await _payload(request)
            if payload is None:
                return Response(status_code=400)
            return await run_in_threadpool(_answered, engine, request, person, act, payload)

        return endpoint

    async def arrive(request: Request) -> Response:
        return await run_in_threadpool(_arrived, engine, request)

    return [
        Route(PATH, arrive, methods=["GET"]),
        *(Route(path, posted(act), methods=["POST"]) for path, act in acts.items()),
    ]


def _clinician(engine: Engine, request: Request) -> Person | Response:
    """Return the clinician whose session it is, or the answer to anybody else."""
    try:
        person = sessions.owner(engine, session_token(engine, request))
    except MedjuryError:
        return Response(status_code=503)
    page_of = request.headers.get(PERSON)
    if person is None or person.rater is None or page_of not in (None, str(person.id)):
        return Response(status_code=401)
    return person


def _arrived(engine: Engine, request: Request) -> Response:
    """Answer a clinician who arrives."""
    person = _clinician(engine, request)
    if isinstance(person, Response):
        return person
    return _answered(engine, request, person, _arrive, {})


def _answered(
    engine: Engine,
    request: Request,
    person: Person,
    act: Callable[[Engine, Person, Payload], Response],
    payload: Payload,
) -> Response:
    """Act for a clinician."""
    try:
        return _packed(request, act(engine, person, payload))
    except MedjuryError:
        return Response(status_code=503)


def _packed(request: Request, answer: Response) -> Response:
    """Return an answer compressed, lightly: Streamlit would do it in its event loop, and slowly."""
    accepts = "gzip" in request.headers.get("accept-encoding", "")
    if not accepts or len(answer.body) < WORTH_PACKING:
        return answer
    packed = gzip.compress(answer.body, LIGHTLY)
    headers = FRESH | {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    return Response(packed, answer.status_code, headers, answer.media_type)


def _arrive(engine: Engine, person: Person, _: Payload) -> Response:
    """Return what the clinician is shown, and what holds while they are here."""
    return JSONResponse(room.arrival(engine, person), headers=FRESH)


def _message(engine: Engine, person: Person, payload: Payload) -> Response:
    """Take in a message of the form; return what became of it, and what is shown next."""
    rater = person.rater or 0
    now = study_room.situation(engine, rater)
    if not now.consents:
        answer = refused(payload, CONSENT_FIRST)
    elif now.stage is None:
        answer = take_in(engine, person, payload, now)
    else:
        answer = take_in_training(engine, rater, payload, now)
    reply: dict[str, Any] = about(answer)
    if answer.moved:
        situation = now if now.stage is None else None
        reply["shown"] = room.shown(engine, person, answer, situation)
    elif answer.stale:
        reply["stored"] = room.stored(engine, person, answer.code)
    return JSONResponse(reply, headers=FRESH)


def _show(engine: Engine, person: Person, payload: Payload) -> Response:
    """Return a text that is shown on request."""
    code, name = str(payload.get("code", "")), str(payload.get("name", ""))
    text = room.opened(engine, person, code, name)
    return Response(status_code=404) if text is None else JSONResponse(text, headers=FRESH)


def _read(engine: Engine, person: Person, payload: Payload) -> Response:
    """Note that feedback, or how a round went, was read; return what is shown next."""
    rater, number = person.rater or 0, payload.get("read")
    leave = {"feedback": leave_feedback, "outcome": leave_outcome}.get(str(payload.get("stage")))
    if leave is None or type(number) is not int or abs(number) >= 2**31:
        return Response(status_code=400)
    leave(engine, rater, number)
    return _shown(room.shown(engine, person))


def _back(engine: Engine, person: Person, payload: Payload) -> Response:
    """Return to a response that was rated."""
    answer = Answer("", 0, 0, at=str(payload.get("code", "")))
    return _shown(room.shown(engine, person, answer))


def _consent(engine: Engine, person: Person, payload: Payload) -> Response:
    """Keep that a clinician agrees; return what is shown next, which is the text if it changed."""
    with suppress(Conflict):
        give_consent(engine, person.rater or 0, str(payload.get("sha256", "")))
    return _shown(room.shown(engine, person))


def _seen(engine: Engine, person: Person, payload: Payload) -> Response:
    """Note that a coordinator's answer was seen."""
    number = payload.get("answer")
    if type(number) is not int or abs(number) >= 2**31:
        return Response(status_code=400)
    try:
        answer_seen(engine, person.rater or 0, number)
    except NotAllowed:
        return Response(status_code=404)
    return JSONResponse({}, headers=FRESH)


def _shown(shown: Mapping[str, Any]) -> Response:
    """Answer with what is shown next."""
    return JSONResponse({"shown": shown}, headers=FRESH)


def about(answer: Answer) -> dict[str, Any]:
    """Return what the page is told of an answer."""
    return {
        "code": answer.code,
        "seq": answer.seq,
        "version": answer.version,
        "error": answer.error,
        "busy": answer.busy,
        "stale": answer.stale,
    }


async def _payload(request: Request) -> Payload | None:
    """Return the object a request carries; None if it is too long, cut off or none."""
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > LONGEST_BODY:
                return None
    except ClientDisconnect:
        return None
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None
