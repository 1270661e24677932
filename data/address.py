"""Where a study is: what its URL says, and what of it may be printed."""

import re

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from data.errors import NoStudy

ENCODED = "in a password write @ as %40, : as %3A, / as %2F and # as %23"
AFTER_USER = re.compile(r"(://[^:/]*):.*@", re.DOTALL)  # to the last "@": a password may hold one
SECRETS = re.compile(r"([?&](?:password|passwd|sslpassword)=)[^&]*", re.IGNORECASE)


def shown(url: str | URL) -> str:
    """Return a database URL as it may be printed: without its passwords."""
    whole = _written(url)
    hidden = SECRETS.sub(r"\1***", AFTER_USER.sub(r"\1:***@", whole))
    try:
        make_url(url)
    except (ArgumentError, ValueError):
        return hidden.rpartition("@")[2]
    return hidden


def refuse_unclear(url: str | URL) -> None:
    """Raise NoStudy where a part of the password would be taken for a host, and be shown as one."""
    if make_url(url).password is not None and _written(url).count("@") > 1:
        raise NoStudy(f"--db {shown(url)}: holds more than one @; {ENCODED}")


def _written(url: str | URL) -> str:
    return url if isinstance(url, str) else url.render_as_string(hide_password=False)
