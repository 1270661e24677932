"""Sessions: the signed cookie that says who is signed in, its name, and how long it lasts."""

import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import lru_cache
from threading import Lock
from weakref import WeakKeyDictionary

from itsdangerous import BadSignature, URLSafeTimedSerializer
from sqlalchemy import Engine
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import Response

from data.person import Person
from data.schema import now
from data.study import people
from data.study.access import SESSION_KEY, leave, study_key
from data.study.people import SessionState

MAX_AGE_SECONDS = 12 * 3600
MAX_AGE = timedelta(seconds=MAX_AGE_SECONDS)
DEVICE_SECONDS = 180 * 24 * 3600
IDLE_SECONDS = 60 * 60
KEPT = 20_000
DEVICE = "medjury device"  # signed for nothing else


class Sightings:
    """When each session was last used, and which were signed out; in bounded memory.

    When it was used is known to this process: after a restart, or at another replica, a
    session counts as used just now. Who signed out, and where, is read from the study's record.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.last: OrderedDict[str, float] = OrderedDict()
        self.heard: WeakKeyDictionary[Engine, int] = WeakKeyDictionary()
        self._lock = Lock()

    def alive(self, session: str) -> bool:
        """Note that a session is used; return whether it had not ended by then."""
        now = self.clock()
        with self._lock:
            alive = now - self.last.get(session, now) <= IDLE_SECONDS
            self.last[session] = now if alive else float("-inf")
            self.last.move_to_end(session)
            while len(self.last) > KEPT:
                self.last.popitem(last=False)
        return alive

    def end(self, session: str) -> None:
        """Note that a session was signed out."""
        with self._lock:
            self.last[session] = float("-inf")

    def hear(self, engine: Engine, sighting: SessionState) -> None:
        """Note which sessions were signed out since it was last asked, at whichever replica."""
        for session in sighting.left:
            self.end(session)
        with self._lock:
            self.heard[engine] = max(sighting.newest, self.heard.get(engine, 0))


_sightings = Sightings()


def issue(engine: Engine, person: Person) -> str:
    """Return the cookie's value for someone who has just come in by `person.access`."""
    return _serializer(engine).dumps([person.access, secrets.token_urlsafe(9)])


def owner(engine: Engine, token: str | None, sightings: Sightings = _sightings) -> Person | None:
    """Return whose session a cookie is, and note that it is used.

    None if it is forged, over 12 hours old, unused for an hour or signed out, if its way in
    was revoked, or if the account has ended. It costs one reading of short queries.
    """
    session = _read(engine, token)
    if session is None:
        return None
    # First: what a page asks while the study cannot be reached is use of the session too.
    if not sightings.alive(session[1]):
        return None
    sighting = people.session_state(engine, session[0], sightings.heard.get(engine, 0))
    sightings.hear(engine, sighting)
    return sighting.person if sightings.alive(session[1]) else None


def end(engine: Engine, token: str | None, sightings: Sightings = _sightings) -> Person | None:
    """Sign a session out at every replica, copies of its cookie too; return whose it was."""
    person = owner(engine, token, sightings)
    session = _read(engine, token)
    if session is not None:
        sightings.end(session[1])
        if person is not None:
            leave(engine, person, session[1])
    return person


def way_in(engine: Engine, token: str | None) -> str | None:
    """Return by which way in a session began, without asking the study; None if it is forged.

    For where the study cannot be reached: it may have ended since, of which only the study knows.
    """
    session = _read(engine, token)
    return session[0] if session is not None and _sightings.alive(session[1]) else None


def new_device(engine: Engine) -> str:
    """Return the cookie's value for a device that somebody has signed in from."""
    return _serializer(engine).dumps(secrets.token_urlsafe(9), salt=DEVICE)


def device(engine: Engine, cookie: str | None) -> str | None:
    """Return which device a cookie is of; None if it is forged, or older than 180 days."""
    try:
        return str(_serializer(engine).loads(cookie or "", max_age=DEVICE_SECONDS, salt=DEVICE))
    except BadSignature:
        return None


def _read(engine: Engine, token: str | None) -> tuple[str, str] | None:
    """Return (way in, session) of a cookie that is ours and not too old."""
    if not token:
        return None
    try:
        payload, issued = _serializer(engine).loads(token, return_timestamp=True)
    except BadSignature:
        return None
    if abs(now() - issued) > MAX_AGE:  # issued in the future: the clock was set back since
        return None
    match payload:
        case [str(access), str(session)]:
            return access, session
    return None


@lru_cache(maxsize=4)
def _serializer(engine: Engine) -> URLSafeTimedSerializer:
    """Return the signer of a study; its key lies in the study, so restarts keep sessions."""
    return URLSafeTimedSerializer(study_key(engine, SESSION_KEY), salt="medjury session")


SESSION_COOKIE = "medjury_session"
DEVICE_COOKIE = "medjury_device"
HOSPITAL_COOKIE = "medjury_hospital"
LETTERS_OF_A_STUDY = 8
ONLY_THIS_HOST = "__Host-"
ENCRYPTED = ("https", "wss")


def cookie_name(engine: Engine, kind: str, https: bool = False) -> str:
    """Return the name of a study's cookie; `https` is whether the browser connects by HTTPS."""
    return f"{ONLY_THIS_HOST if https else ''}{kind}_{_study(engine)}"


def cookie_of(engine: Engine, kind: str, connection: HTTPConnection) -> str | None:
    """Return a cookie that a request or WebSocket carries; over https no other than `__Host-`."""
    return connection.cookies.get(cookie_name(engine, kind, is_https(connection)))


def session_token(engine: Engine, connection: HTTPConnection) -> str | None:
    """Return the session cookie of a request or WebSocket, if it carries one."""
    return cookie_of(engine, SESSION_COOKIE, connection)


def session_of_page(engine: Engine, cookies: Mapping[str, str]) -> str | None:
    """Return the session cookie of a page whose WebSocket was let in by `session_token`."""
    names = (cookie_name(engine, SESSION_COOKIE, https) for https in (True, False))
    return next((cookies[name] for name in names if name in cookies), None)


def give_cookie(
    engine: Engine,
    kind: str,
    value: str,
    seconds: int,
    connection: HTTPConnection,
    answer: Response,
) -> None:
    """Have a browser keep a cookie that no script reads."""
    answer.set_cookie(
        cookie_name(engine, kind, is_https(connection)),
        value,
        max_age=seconds,
        httponly=True,
        samesite="lax",
        secure=is_https(connection),
    )


def take_cookie(engine: Engine, kind: str, connection: HTTPConnection, answer: Response) -> None:
    """Have a browser forget a cookie."""
    https = is_https(connection)
    name = cookie_name(engine, kind, https)
    answer.delete_cookie(name, httponly=True, samesite="lax", secure=https)


def is_https(connection: HTTPConnection) -> bool:
    """Return whether the browser speaks https, to us or to the proxy before us."""
    return connection.scope.get("scheme") in ENCRYPTED or is_forwarded_https(connection.headers)


def is_forwarded_https(headers: Headers) -> bool:
    """Return whether the browser speaks https to the proxy before us."""
    return headers.get("x-forwarded-proto", "").split(",")[0].strip() == "https"


@lru_cache(maxsize=4)
def _study(engine: Engine) -> str:
    """Return a study's short name: of a hash of its key, from which nobody finds the key."""
    digest = hashlib.sha256(b"medjury cookie " + study_key(engine, SESSION_KEY).encode())
    return digest.hexdigest()[:LETTERS_OF_A_STUDY]
