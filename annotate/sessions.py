"""Signed sessions: a cookie that says who signed in and when, and that nobody can forge."""

from functools import lru_cache

from itsdangerous import BadSignature, URLSafeTimedSerializer
from sqlalchemy import Engine

from data import queries
from data.queries import Person
from data.store.people import signing_key

COOKIE = "medjury_session"
MAX_AGE_SECONDS = 12 * 3600


def issue(engine: Engine, person: Person) -> str:
    """Return the cookie's value for someone who has just shown a valid code."""
    return _serializer(engine).dumps(person.id)


def owner(engine: Engine, token: str | None) -> Person | None:
    """Return whose session a cookie is; None if forged, over 12 hours old, or revoked."""
    if not token:
        return None
    try:
        account = _serializer(engine).loads(token, max_age=MAX_AGE_SECONDS)
    except BadSignature:
        return None
    return queries.person(engine, account) if isinstance(account, int) else None


@lru_cache(maxsize=4)
def _serializer(engine: Engine) -> URLSafeTimedSerializer:
    """Return the signer of a study; its key lies in the study, so restarts keep sessions."""
    return URLSafeTimedSerializer(signing_key(engine), salt="medjury session")
