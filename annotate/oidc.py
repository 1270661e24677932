"""Hospital accounts: OpenID Connect, by plain requests, traded at once for a session of our own.

`/hospital` leads to the hospital's sign-in, `/oauth2callback` comes back from it. What is known of
somebody on the way (state, nonce, verifier) lies in a signed cookie for ten minutes, nowhere here.
"""

import hashlib
import importlib.util
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from itsdangerous import BadSignature, URLSafeTimedSerializer
from sqlalchemy import Engine
from starlette.requests import Request
from starlette.responses import Response

from annotate.sessions import HOSPITAL_COOKIE, cookie_of, give_cookie
from data.errors import BadFile, BadInput, Conflict
from data.person import Person
from data.study import people
from data.study.access import Entered, enter_by_email

WAY_BACK = "/oauth2callback"
FRESH_SECONDS = 600
NEEDED = ("client_id", "client_secret", "server_metadata_url")
ASKED = {"scope": "openid email profile", "code_challenge_method": "S256"}
SIGNED_AS = "medjury hospital sign-in"
UNVERIFIED = (
    "Your hospital account has no verified e-mail address, so it cannot be used here. "
    "Sign in with a code instead."
)
UNKNOWN = (
    "Nobody in this study has the e-mail address of your hospital account. "
    "Ask your coordinator to add it, or sign in with a code."
)
UNREACHED = "The hospital's sign-in cannot be reached just now. Try again, or sign in with a code."
ANOTHER = (
    "Another hospital account has signed in to this study by your e-mail address before. Ask your "
    "coordinator to enter the address anew if it is yours now, or sign in with a code."
)
STALE = "Signing in took too long, or was interrupted. Try again."


class NotVouched(Exception):
    """Signing in with a hospital account failed; the text tells the person why."""


class Hospital:
    """One hospital's sign-in, for one study."""

    def __init__(self, engine: Engine, auth: Mapping[str, Any]) -> None:
        from authlib.integrations.starlette_client import OAuth  # an extra: only if asked for

        name = provider(auth)
        chosen = auth if name is None else auth[name]
        self.engine, self.redirect_uri = engine, str(auth["redirect_uri"])
        self.signer = URLSafeTimedSerializer(str(auth["cookie_secret"]), salt=SIGNED_AS)
        parameters = {"prompt": "select_account"} | ASKED | dict(chosen.get("client_kwargs", {}))
        self.client: Any = OAuth().register(
            "hospital", **{key: chosen[key] for key in NEEDED}, client_kwargs=parameters
        )

    async def redirect(self, request: Request) -> Response:
        """Return the way to the hospital's sign-in, with a cookie that knows somebody again.

        Raises
        ------
        NotVouched
            If the hospital cannot be reached.
        """
        on_the_way: dict[str, Any] = {}
        kept_in = _with_session(request, on_the_way)
        try:
            answer: Response = await self.client.authorize_redirect(kept_in, self.redirect_uri)
        except _failures() as error:
            raise NotVouched(UNREACHED) from error
        signed = str(self.signer.dumps(on_the_way))
        give_cookie(self.engine, HOSPITAL_COOKIE, signed, FRESH_SECONDS, request, answer)
        return answer

    async def claims(self, request: Request) -> dict[str, Any]:
        """Return the hospital's claims about a person who returns from its sign-in.

        Raises
        ------
        NotVouched
            If nobody left from this browser within ten minutes, with this state; if the hospital
            refused, or cannot be reached; if its word is not signed by it, for us, for this time.
        """
        kept_in = _with_session(request, self._on_the_way(request))
        try:
            token = await self.client.authorize_access_token(
                kept_in, claims_options=await self._expected()
            )
        except _refusals() as error:
            raise NotVouched(STALE) from error
        except _failures() as error:
            raise NotVouched(UNREACHED) from error
        claims = dict(token.get("userinfo") or {})
        if not is_fresh(claims):
            raise NotVouched(STALE)
        return claims

    async def _expected(self) -> dict[str, Any]:
        """Return the issuer and audience that a token must have."""
        metadata = await self.client.load_server_metadata()
        return {
            "iss": {"essential": True, "value": metadata["issuer"]},
            "aud": {"essential": True, "value": self.client.client_id},
        }

    def _on_the_way(self, request: Request) -> dict[str, Any]:
        cookie = cookie_of(self.engine, HOSPITAL_COOKIE, request)
        try:
            state = self.signer.loads(cookie or "", max_age=FRESH_SECONDS)
        except BadSignature as error:
            raise NotVouched(STALE) from error
        return dict(state)


def read_secrets(path: Path) -> dict[str, Any]:
    """Return the configuration of hospital accounts: {} without [auth].

    Raises
    ------
    BadFile
        If the file cannot be read, or [auth] in it is not complete.
    BadInput
        If the `auth` extra is not installed.
    """
    try:
        auth = tomllib.loads(path.read_text("utf-8")).get("auth")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadFile(f"{path}: cannot be read as TOML ({error})") from error
    if auth is None:
        return {}
    missing = [name for name in ("redirect_uri", "cookie_secret") if not auth.get(name)]
    name = provider(auth)
    missing += [key for key in NEEDED if not (auth if name is None else auth[name]).get(key)]
    if missing:
        raise BadFile(f"{path}: [auth] lacks {', '.join(missing)}; docs/rate.md has an example")
    if urlsplit(auth["redirect_uri"]).path != WAY_BACK:
        raise BadFile(f"{path}: [auth] redirect_uri must end with {WAY_BACK}, right after the host")
    if importlib.util.find_spec("authlib") is None:
        raise BadInput(f"{path} asks for hospital accounts: `pip install 'medjury[auth]'` first")
    return {"auth": auth}


def provider(auth: Mapping[str, Any]) -> str | None:
    """Return the name of the first provider that has a table of its own, None if there is none."""
    tables = (name for name, value in auth.items() if isinstance(value, Mapping))
    return next((name for name in tables if name != "client_kwargs"), None)


def is_fresh(claims: Mapping[str, Any], now: float | None = None) -> bool:
    """Return whether a hospital vouched for its user within the last ten minutes."""
    issued = claims.get("iat")
    age = (time.time() if now is None else now) - float(issued if issued else 0)
    return -FRESH_SECONDS <= age <= FRESH_SECONDS


def person_of(engine: Engine, claims: Mapping[str, Any]) -> Person | str:
    """Return whom a hospital's claims name, or the sentence that refuses them.

    Only an address that the hospital itself calls verified is taken.
    """
    email = claims.get("email")
    if claims.get("email_verified") is not True or not isinstance(email, str):
        return UNVERIFIED
    return people.person_by_email(engine, email) or UNKNOWN


def enter(engine: Engine, claims: Mapping[str, Any]) -> Entered | str:
    """Let in whom a hospital's claims name, or return the sentence that refuses them.

    Raises
    ------
    NotAllowed
        If the same word of the hospital was taken before, at whichever replica, or the account
        has ended meanwhile.
    """
    person = person_of(engine, claims)
    if isinstance(person, str):
        return person
    number = hashlib.sha256(str(claims["nonce"]).encode()).hexdigest()[:24]
    subject = hashlib.sha256(f"{claims['iss']}\0{claims['sub']}".encode()).hexdigest()
    try:
        return enter_by_email(engine, person, number, subject)
    except Conflict:
        return ANOTHER


def _with_session(request: Request, session: dict[str, Any]) -> Request:
    """Return a request with what authlib keeps of somebody on the way; Streamlit's stays as it is."""
    return Request({**request.scope, "session": session})


def _refusals() -> tuple[type[Exception], ...]:
    """Return the errors of an invalid response: of another state, forged, or too old."""
    from authlib.common.errors import AuthlibBaseError
    from joserfc.errors import JoseError

    return AuthlibBaseError, JoseError


def _failures() -> tuple[type[Exception], ...]:
    """Return the errors of a hospital that cannot be reached or does not speak OpenID Connect."""
    import httpx2  # which authlib prefers to httpx

    return httpx2.HTTPError, httpx2.InvalidURL, ValueError, KeyError, RuntimeError
