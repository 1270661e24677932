"""The names of a study's cookies, and finding them in a request.

Every port of a host shares its cookies: a study's cookies carry a short name of the study, so that
two studies do not sign each other's people out. Behind https they begin with `__Host-`, which a
browser takes only from this very host, over https and for all its paths: no other host of the
hospital's domain can plant one.
"""

import hashlib
from collections.abc import Mapping
from functools import lru_cache

from sqlalchemy import Engine
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import Response

from data.store.access import signing_key

SESSION = "medjury_session"
DEVICE = "medjury_device"
HOSPITAL = "medjury_hospital"
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
    return cookie_of(engine, SESSION, connection)


def session_of_page(engine: Engine, cookies: Mapping[str, str]) -> str | None:
    """Return the session cookie of a page whose WebSocket was let in by `session_token`."""
    names = (cookie_name(engine, SESSION, https) for https in (True, False))
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
    digest = hashlib.sha256(b"medjury cookie " + signing_key(engine).encode())
    return digest.hexdigest()[:LETTERS_OF_A_STUDY]
