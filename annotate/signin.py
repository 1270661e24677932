"""Sign people in with a code, an invitation or a hospital account, and out again; slow down guessing."""

import asyncio
import html
import importlib.resources
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address
from urllib.parse import parse_qs

from sqlalchemy import Engine
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from annotate import compute, oidc, sessions
from annotate.middleware import from_elsewhere
from annotate.sessions import (
    DEVICE_COOKIE,
    HOSPITAL_COOKIE,
    SESSION_COOKIE,
    cookie_of,
    give_cookie,
    session_token,
    take_cookie,
)
from data.errors import MedjuryError, NotAllowed
from data.person import Person
from data.schema import Role
from data.study import access, people
from data.study.access import Entered
from data.study.people import CodeCheck, CodeOutcome

LONGEST_BODY = 2048
LONGEST_FIELD = 512
CODES_AT_ONCE = 4  # each takes 64 MB while it is checked
KNOWN_DEVICE = "device "
WRONG = "This code is not valid. Check it against your invitation; every character counts."
SLOWER = "Too many attempts. Wait a minute, then try again."
BUSY = "The study cannot be reached just now. Try again in a moment."
REFUSED = {
    CodeOutcome.WRONG: WRONG,
    CodeOutcome.USED: "This invitation has been used already. Sign in with the personal code you got "
    "then, or ask your coordinator for a new invitation.",
    CodeOutcome.EXPIRED: "This invitation has expired. Ask your coordinator for a new one.",
}
HERE = importlib.resources.files("annotate")
STYLE = (HERE / "signin.css").read_text("utf-8")
JOIN_SCRIPT = (HERE / "join.js").read_text("utf-8")
BY_HOSPITAL = '<p class="or">or</p><a class="button plain" href="/hospital">Sign in with your hospital account</a>'


class Desk:
    """Where people sign in and out of one study."""

    def __init__(self, engine: Engine, hospital: oidc.Hospital | None = None) -> None:
        self.engine, self.hospital = engine, hospital
        self.throttle = Throttle()
        self.checking = asyncio.Semaphore(CODES_AT_ONCE)

    async def login(self, request: Request) -> Response:
        """Show the form, or take in a code."""
        try:
            if request.method == "POST":
                return await self._take_in(request)
            person = await run_in_threadpool(self._owner, request)
        except MedjuryError:
            return self._form(BUSY, 503)
        return RedirectResponse("/", status_code=303) if person else self._form()

    async def logout(self, request: Request) -> Response:
        """End the session, here and wherever its cookie was copied to; not for another site."""
        if from_elsewhere(request.headers):
            return RedirectResponse("/", status_code=303)
        answer = RedirectResponse("/login", status_code=303)
        await run_in_threadpool(self._leave, request)
        with suppress(MedjuryError):
            take_cookie(self.engine, SESSION_COOKIE, request, answer)
        return answer

    async def to_hospital(self, request: Request) -> Response:
        """Lead to the hospital's sign-in; not for another site."""
        if self.hospital is None or from_elsewhere(request.headers):
            return RedirectResponse("/login", status_code=303)
        try:
            return await self.hospital.redirect(request)
        except oidc.NotVouched as error:
            return self._form(str(error), 502)
        except MedjuryError:
            return self._form(BUSY, 503)

    async def from_hospital(self, request: Request) -> Response:
        """Open a session for whom the hospital vouches; its word is taken once."""
        if self.hospital is None:
            return RedirectResponse("/login", status_code=303)
        try:
            guesser = await run_in_threadpool(self._guesser, request)
            if not self.throttle.allows(guesser):  # each asks the hospital, in our name
                return self._form(SLOWER, 429)
            answer = await self._vouched_for(self.hospital, request)
            if answer.status_code == HTTPStatus.UNAUTHORIZED:
                self.throttle.takes(guesser)
            take_cookie(self.engine, HOSPITAL_COOKIE, request, answer)
        except MedjuryError:
            return self._form(BUSY, 503)
        return answer

    async def _vouched_for(self, hospital: oidc.Hospital, request: Request) -> Response:
        """Answer somebody who comes back from the hospital: a session, or the form with the reason."""
        try:
            claims = await hospital.claims(request)
            entered = await run_in_threadpool(oidc.enter, self.engine, claims)
        except oidc.NotVouched as error:
            return self._form(str(error), 401)
        except NotAllowed:
            return self._form(oidc.STALE, 401)
        return (
            self._form(entered, 401)
            if isinstance(entered, str)
            else await self._open(request, entered)
        )

    async def _take_in(self, request: Request) -> Response:
        """Answer what was posted: a session, or the form again with the reason."""
        if from_elsewhere(request.headers):
            return self._form(WRONG, 403)
        fields = await _fields(request)
        return await self._try_code(request, fields.get("code", ""))

    async def _try_code(self, request: Request, code: str) -> Response:
        """Check a code; an attempt counts as failed from its turn on, until it has not.

        So a ward that signs in at once, from one address, waits for its turn and is let in. What
        begins as no code does is wrong without the costly check: strangers cannot make those
        wait who have a code.
        """
        guesser = await run_in_threadpool(self._guesser, request)
        opening = people.opening_of(code)
        if not self.throttle.allows(guesser):
            return self._form(SLOWER, 429)
        if not await run_in_threadpool(people.is_opening, self.engine, opening):
            takes = self.throttle.takes(guesser)
            return self._form(WRONG, 401) if takes else self._form(SLOWER, 429)
        is_known_device = guesser.startswith(KNOWN_DEVICE)
        async with self.checking:
            checked = await self._checked(
                code, guesser, *(() if is_known_device else (f"code {opening}",))
            )
        if checked is None:
            return self._form(SLOWER, 429)
        if checked.person is None:
            return self._form(REFUSED[checked.outcome], 401)
        entered = await run_in_threadpool(self._enter, checked.person)
        if entered is None:
            return self._form(REFUSED[CodeOutcome.USED], 401)
        return await self._open(request, entered)

    async def _checked(self, code: str, *guessers: str) -> CodeCheck | None:
        """Return what a code is; None where it may not be tried now."""
        if not all(self.throttle.allows(guesser) for guesser in guessers):
            return None
        for guesser in guessers:
            self.throttle.takes(guesser)
        checked = await run_in_threadpool(people.check_code, self.engine, code)
        for guesser in guessers if checked.person else ():
            self.throttle.succeeded(guesser)
        return checked

    def _guesser(self, request: Request) -> str:
        """Return who tries a code: a device that was signed in from before, or else a network."""
        device = sessions.device(self.engine, cookie_of(self.engine, DEVICE_COOKIE, request))
        if device is not None:
            return KNOWN_DEVICE + device
        return network(request.client.host if request.client else "")

    async def _open(self, request: Request, entered: Entered) -> Response:
        """Return the way to the page, or the personal code first, with a new session's cookie.

        The one that this browser had ends, and with it every copy of its cookie; a study that
        is busy just then must not cost a new code that is shown once.
        """
        answer: Response = RedirectResponse("/", status_code=303)
        if entered.code:
            answer = welcome_page(entered.person.name, entered.code)
        await run_in_threadpool(self._leave, request)
        await run_in_threadpool(self._give_cookies, request, answer, entered.person)
        if entered.person.role != Role.CLINICIAN:  # whose page is no other than the rating room
            await run_in_threadpool(compute.prepare, self.engine)
        return answer

    def _give_cookies(self, request: Request, answer: Response, person: Person) -> None:
        """Give the browser its session, and what it keeps an allowance of its own by: nobody's name."""
        session = sessions.issue(self.engine, person)
        give_cookie(self.engine, SESSION_COOKIE, session, sessions.MAX_AGE_SECONDS, request, answer)
        device = cookie_of(self.engine, DEVICE_COOKIE, request)
        if sessions.device(self.engine, device) is None:
            device = sessions.new_device(self.engine)
        give_cookie(
            self.engine, DEVICE_COOKIE, device or "", sessions.DEVICE_SECONDS, request, answer
        )

    def _enter(self, person: Person) -> Entered | None:
        """Record a sign-in; None if somebody else used the way in a moment before."""
        try:
            return access.enter(self.engine, person)
        except NotAllowed:
            return None

    def _owner(self, request: Request) -> Person | None:
        return sessions.owner(self.engine, session_token(self.engine, request))

    def _leave(self, request: Request) -> None:
        """End a session and record it; signing out works even if the study is not reachable."""
        with suppress(MedjuryError):
            sessions.end(self.engine, session_token(self.engine, request))

    def _form(self, message: str = "", status: int = 200) -> Response:
        return login_page(message, status, self.hospital is not None)


def routes(engine: Engine, hospital: oidc.Hospital | None = None) -> list[Route]:
    """Return the routes of a study's sign-in; `hospital` offers hospital accounts."""
    desk = Desk(engine, hospital)

    async def join(_: Request) -> Response:
        return join_page()

    async def script(_: Request) -> Response:
        return Response(JOIN_SCRIPT, media_type="text/javascript")

    return [
        Route("/login", desk.login, methods=["GET", "POST"]),
        Route("/logout", desk.logout),
        Route("/hospital", desk.to_hospital),
        Route(oidc.WAY_BACK, desk.from_hospital),
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


def login_page(message: str = "", status: int = 200, hospital: bool = False) -> HTMLResponse:
    """Return the sign-in page, with what went wrong; `hospital` offers the hospital account."""
    alert = f'<p role="alert" id="wrong">{html.escape(message)}</p>' if message else ""
    described = ' aria-invalid="true" aria-describedby="wrong"' if message else ""
    parts = {"alert": alert, "described": described, "hospital": BY_HOSPITAL if hospital else ""}
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


PREFIX_OF_A_HOUSEHOLD = 64  # bits of an IPv6 address that whoever holds it cannot choose
GUESSERS_KEPT = 20_000


@dataclass(frozen=True, slots=True)
class AttemptLimit:
    """`burst` failures at once, then one more every `seconds_each`."""

    burst: int
    seconds_each: float


FAILURES = AttemptLimit(10, 30.0)


class Bucket:
    """Tokens that failures take and time gives back."""

    def __init__(self, allowance: AttemptLimit, now: float) -> None:
        self.allowance, self.tokens, self.at = allowance, float(allowance.burst), now

    def refill(self, now: float) -> float:
        """Return the tokens there are at `now`."""
        earned = (now - self.at) / self.allowance.seconds_each
        self.tokens, self.at = min(self.allowance.burst, self.tokens + earned), now
        return self.tokens


class Throttle:
    """Counts failed sign-ins by whoever makes them, in bounded memory.

    Whoever may fail 10 times at once and then once in 30 seconds: a network (`network`), a device
    that somebody has signed in from, or all who try one code. There is no allowance that all
    share, which a stranger could use up for everybody; guessing codes of 59 bits does not need
    one. It lives in the memory of one process: a restart forgets it. Who has failed longest ago
    is dropped beyond 20,000.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def allows(self, guesser: str) -> bool:
        """Return whether a code may be tried now."""
        return self._bucket(guesser).refill(self.clock()) >= 1

    def takes(self, guesser: str) -> bool:
        """Return whether a code may be tried now, and count it as wrong until it is not.

        So a hundred attempts at once are no more than as many one after the other.
        """
        if not self.allows(guesser):
            return False
        bucket = self._bucket(guesser)
        bucket.tokens = max(0.0, bucket.tokens - 1)
        return True

    def succeeded(self, guesser: str) -> None:
        """Take back that an attempt was counted: its code was right."""
        bucket = self._bucket(guesser)
        bucket.tokens = min(bucket.allowance.burst, bucket.tokens + 1)

    def _bucket(self, guesser: str) -> Bucket:
        bucket = self._buckets.get(guesser) or Bucket(FAILURES, self.clock())
        self._buckets[guesser] = bucket
        self._buckets.move_to_end(guesser)
        while len(self._buckets) > GUESSERS_KEPT:
            self._buckets.popitem(last=False)
        return bucket


def network(address: str) -> str:
    """Return what one guesser holds of the network: an IPv4 address, or an IPv6 prefix of 64 bits."""
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:  # a socket of this machine
        return f"address {address}"
    if not isinstance(ip, IPv6Address):
        return f"address {ip}"
    if ip.ipv4_mapped is not None:
        return f"address {ip.ipv4_mapped}"
    hidden = 128 - PREFIX_OF_A_HOUSEHOLD
    return f"network {IPv6Address(int(ip) >> hidden << hidden)}"
