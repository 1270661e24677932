"""Where a study is: what its URL says, and what of it may be printed."""

import os
import re
from contextlib import suppress
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from data.errors import BadInput, NoStudy

OWNERS = 0o600  # a study holds patients' texts and who wrote what
ENCODED = "in a password write @ as %40, : as %3A, / as %2F and # as %23"
AFTER_USER = re.compile(r"(://[^:/]*):.*@", re.DOTALL)  # to the last "@": a password may hold one
A_URL = re.compile(r"([a-z][\w+]+):/", re.IGNORECASE)
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
    """Raise NoStudy where a part of the password would be shown as a host, and of `postgres://`."""
    if _written(url).startswith("postgres://"):
        raise NoStudy(f"--db {shown(url)}: begin it with postgresql+psycopg://, not postgres://")
    if make_url(url).password is not None and _written(url).count("@") > 1:
        raise NoStudy(f"--db {shown(url)}: holds more than one @; {ENCODED}")


def refuse_as_file(command: str, file: Path) -> None:
    """Raise BadInput if a database URL stands where a file belongs; its password is not shown."""
    found = A_URL.match(str(file))  # of which a path has made "//" to "/"
    if found:
        url = f"{found[1]}://{str(file)[found.end() :].lstrip('/')}"
        raise BadInput(
            f"{command} {shown(url)}: is a database, and a file belongs there; name the study's "
            "database by MEDJURY_DB or --db"
        )


def make_room(url: URL, create: bool) -> None:
    """Make the file of a new SQLite study its owner's alone; refuse an absent one if not `create`."""
    path = url.database
    if url.get_backend_name() != "sqlite" or not path or path == ":memory:":
        return
    if not create and not (Path(path).exists() and Path(path).stat().st_size):
        raise absent(url)
    if not Path(path).parent.is_dir():
        raise NoStudy(f"study {path}: the folder {Path(path).parent} does not exist")
    if create and not path.startswith("file:"):
        with suppress(OSError):  # SQLite says why, or there is one already, which keeps its mode
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWNERS))


def absent(url: URL) -> NoStudy:
    """Return the error that there is no study there."""
    place = url.database if url.get_backend_name() == "sqlite" else shown(url)
    return NoStudy(
        f"there is no study at {place}: `medjury demo` makes a demo study, "
        "`medjury study import FILE` starts your own; --db or MEDJURY_DB names another place"
    )


def _written(url: str | URL) -> str:
    return url if isinstance(url, str) else url.render_as_string(hide_password=False)
