"""Hospital accounts: OpenID Connect through st.login, traded at once for a session of our own.

Streamlit keeps an identity for 30 days in a cookie that cannot be revoked. So the identity
is used a single time: the page hands the browser a ticket, /login takes it, opens a session
like that of a code, and deletes Streamlit's cookie.
"""

import importlib.util
import secrets
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import streamlit as st
from itsdangerous import BadSignature, URLSafeTimedSerializer
from sqlalchemy import Engine

from annotate.rating import text_html
from data import queries
from data.errors import BadFile, BadInput
from data.queries import Person
from data.store.access import Entered, enter_by_email, signing_key

COOKIES = "_streamlit_user"
TICKET_SECONDS = 60
FRESH_SECONDS = 600
NEEDED = ("client_id", "client_secret", "server_metadata_url")
UNVERIFIED = (
    "Your hospital account has no verified e-mail address, so it cannot be used here. "
    "Sign in with a code instead."
)
UNKNOWN = (
    "Nobody in this study has the e-mail address of your hospital account. "
    "Ask your coordinator to add it, or sign in with a code."
)
# A form is posted, not fetched: the browser then takes the cookie and follows to the page.
HANDOVER = """
export default function ({ parentElement, data }) {
  const form = document.createElement("form");
  form.method = "post";
  form.action = "/login";
  const field = document.createElement("input");
  field.type = "hidden";
  field.name = "ticket";
  field.value = data[0];
  form.append(field);
  parentElement.append(form);
  form.submit();
}
"""
_mount = st.components.v2.component("medjury_handover", js=HANDOVER)
OTHERWISE = (
    '<p style="text-align:center"><a href="/logout" target="_self">Sign in otherwise</a></p>'
)


def read_secrets(path: Path) -> dict[str, Any]:
    """Return what Streamlit is to know of hospital accounts: {} if [auth] is not configured.

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
        raise BadFile(f"{path}: [auth] lacks {', '.join(missing)}; docs/access.md has an example")
    if importlib.util.find_spec("authlib") is None:
        raise BadInput(f"{path} asks for hospital accounts: `pip install 'medjury[auth]'` first")
    return {"auth": auth}


def provider(auth: Mapping[str, Any]) -> str | None:
    """Return the name of the first provider that has a table of its own, None if there is none."""
    return next((name for name, one in auth.items() if isinstance(one, Mapping)), None)


def claimed() -> dict[str, Any] | None:
    """Return what a hospital says of the browser's user, None if it has said nothing yet."""
    return dict(st.user.to_dict()) if st.user.get("is_logged_in") else None


def ask_hospital() -> None:
    """Send the browser to the hospital's sign-in."""
    st.login(provider(st.secrets["auth"]))


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
    return queries.person_by_email(engine, email) or UNKNOWN


def ticket(engine: Engine, person: Person) -> str:
    """Return what opens a session for a person once, within a minute."""
    return _serializer(engine).dumps([person.id, person.name, secrets.token_urlsafe(9)])


def redeem(engine: Engine, given: str) -> Entered | None:
    """Let in whom a ticket names, once, whichever replica it comes to; None if it is no good.

    Raises
    ------
    NotAllowed
        If it was used before, or its account has ended meanwhile.
    """
    try:
        account, name, number = _serializer(engine).loads(given, max_age=TICKET_SECONDS)
    except (BadSignature, ValueError):
        return None
    person = queries.person_by_account(engine, account, name)
    return None if person is None else enter_by_email(engine, person, number)


def _serializer(engine: Engine) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(signing_key(engine), salt="medjury ticket")


def from_hospital(engine: Engine) -> bool:
    """Lead somebody without a session through the hospital's sign-in; False if not asked for."""
    claims = claimed()
    asked = "hospital" in st.query_params
    if claims is None or not is_fresh(claims):
        if asked:
            ask_hospital()
        return asked
    person = person_of(engine, claims)
    if isinstance(person, str):
        st.html(text_html.note("Not signed in", person))
        st.html(OTHERWISE)
        return True
    st.html(text_html.note("Signing you in", f"Welcome, {person.name}."))
    _mount(key="handover", data=[ticket(engine, person)])
    return True
