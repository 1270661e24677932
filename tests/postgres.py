"""A PostgreSQL server of the tests' own, and an empty database of it for whoever asks.

Its programs come with the development package `pgserver`, or from the system.
"""

import atexit
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from functools import lru_cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

VARIABLE = "MEDJURY_TEST_DB"
SECONDS = 30
ZONE = "Asia/Kathmandu"  # far from UTC, and no whole hours
LOCALE = ("--encoding=UTF8", "--no-locale")
NO_DISK = (
    "-F",
    "-c",
    "full_page_writes=off",
    "-c",
    "listen_addresses=",
    "-c",
    f"timezone={ZONE}",
)
_numbers = count(1)


def wanted() -> bool:
    """Tell whether the fixtures are to run on PostgreSQL."""
    return os.environ.get(VARIABLE, "") == "postgres"


def new_database() -> str:
    """Return the URL of a new, empty database; skips where no server can be had."""
    name = f"study_{next(_numbers)}"
    control = create_engine(f"{_server()}&dbname=postgres", isolation_level="AUTOCOMMIT")
    with control.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    control.dispose()
    socket = _server().partition("?")[2]
    return f"postgresql+psycopg://postgres@/{name}?{socket}"


@lru_cache(maxsize=1)
def _server() -> str:
    """Start a server on a socket of its own, once a process; return its URL without a database."""
    programs = _programs()
    if programs is None:
        pytest.skip("no PostgreSQL: neither pgserver nor initdb is installed")
    folder = Path(tempfile.mkdtemp(prefix="medjury-postgres-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    user = _user()
    if user:
        shutil.chown(folder, user)
    folder.chmod(0o755)
    made = ("--username=postgres", "--auth=trust", "--no-sync", *LOCALE)
    _run([programs / "initdb", "-D", folder / "data", *made], user)
    with (folder / "log").open("wb") as log:
        started = subprocess.Popen(
            [programs / "postgres", "-D", folder / "data", "-k", folder, *NO_DISK],
            user=user,
            stdout=log,
            stderr=log,
            cwd="/",
        )
    atexit.register(_stop, started)
    url = f"postgresql+psycopg://postgres@/?host={folder}"
    _wait(url, folder / "log")
    return url


def _programs() -> Path | None:
    """Return the folder with initdb and postgres that this user may run."""
    package = find_spec("pgserver")
    places = [
        Path(one) / "pginstall/bin"
        for one in (package and package.submodule_search_locations) or ()
    ]
    found = shutil.which("initdb")
    places += [Path(found).parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for place in places:
        if (place / "initdb").exists() and _runs(place / "postgres"):
            return place
    return None


def _runs(program: Path) -> bool:
    try:
        _run([program, "--version"], _user())
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def _user() -> str | None:
    """Return whom to run the server as: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return None
    names = {one.pw_name for one in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)


def _run(command: list[object], user: str | None) -> None:
    subprocess.run(
        [str(one) for one in command], user=user, cwd="/", check=True, capture_output=True
    )


def _wait(url: str, log: Path) -> None:
    control = create_engine(f"{url}&dbname=postgres")
    until = time.monotonic() + SECONDS
    while True:
        try:
            control.connect().close()
        except Exception as error:
            if time.monotonic() > until:
                pytest.skip(f"PostgreSQL did not start: {error} {log.read_text()[-500:]}")
            time.sleep(0.05)
        else:
            control.dispose()
            return


def _stop(started: subprocess.Popen[bytes]) -> None:
    started.send_signal(signal.SIGINT)
    started.wait(SECONDS)
