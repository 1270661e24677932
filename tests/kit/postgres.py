"""A PostgreSQL server of the tests' own, databases of it for whoever asks, and a server to kill."""

import atexit
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from data.database import open_study

VARIABLE = "MEDJURY_TEST_DB"

SHARED = "MEDJURY_TEST_POSTGRES"  # the server that the run's first process has started

EMPTY = "empty_study"

SECONDS = 30

ZONE = "Asia/Kathmandu"  # far from UTC, and no whole hours

LOCALE = ("--encoding=UTF8", "--no-locale")

NO_DISK = (
    *("-F", "-c", "full_page_writes=off", "-c", "listen_addresses="),
    *("-c", f"timezone={ZONE}", "-c", "max_connections=300"),
)

MEMORY, ROOM = Path("/dev/shm"), 2 << 30  # noqa: S108 Linux's own name for it

_numbers = count(1)


def wanted() -> bool:
    """Tell whether the fixtures are to run on PostgreSQL."""
    return os.environ.get(VARIABLE, "") == "postgres"


def share() -> None:
    """Start the server of a whole run, and make the study that all new ones are copied from."""
    try:
        server = _server()
        _empty()
    except pytest.skip.Exception as absent:
        raise pytest.UsageError(f"{VARIABLE}=postgres: {absent}") from None
    os.environ[SHARED] = server


def new_database() -> str:
    """Return the URL of a new, empty database; skips where no server can be had."""
    url = _url(_name())
    _control(f"CREATE DATABASE {_database(url)}")
    return url


def new_study(like: str = "") -> str:
    """Return the URL of a new study, an empty one or a copy of another."""
    url = _url(_name())
    copy(like or _url(_empty()), url)
    return url


def drop(url: str) -> None:
    """Take a study away, whoever still has it open."""
    _control(f"DROP DATABASE IF EXISTS {_database(url)} WITH (FORCE)")


def copy(like: str, to: str) -> None:
    """Make `to` a copy of the study `like`, whoever still has one of them open."""
    old, new = _database(like), _database(to)
    ended = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{old}'"  # noqa: S608 our name
    drop = f"DROP DATABASE IF EXISTS {new} WITH (FORCE)"
    _control(ended, drop, f"CREATE DATABASE {new} TEMPLATE {old} STRATEGY FILE_COPY")


@lru_cache(maxsize=1)
def _empty() -> str:
    """Make the study without a row that new ones are copied from, once; return its name."""
    if SHARED not in os.environ:
        _control(f"CREATE DATABASE {EMPTY}")
        open_study(_url(EMPTY), create=True).dispose()
    return EMPTY


def _name() -> str:
    return f"study_{os.getpid()}_{next(_numbers)}"


def _url(name: str) -> str:
    return f"postgresql+psycopg://postgres@/{name}?{_server().partition('?')[2]}"


def _database(url: str) -> str:
    return make_url(url).database or ""


def _control(*statements: str) -> None:
    """Run statements that no transaction may hold."""
    control = create_engine(f"{_server()}&dbname=postgres", isolation_level="AUTOCOMMIT")
    with control.connect() as connection:
        for one in statements:
            connection.execute(text(one))
    control.dispose()


@lru_cache(maxsize=1)
def _server() -> str:
    """Start a server on a socket of its own, once a process; return its URL without a database."""
    if SHARED in os.environ:
        return os.environ[SHARED]
    server = _started(_fastest(), *NO_DISK)
    atexit.register(shutil.rmtree, server.folder, ignore_errors=True)
    atexit.register(server.stop)
    return server.url_of_none


def _fastest() -> Path | None:
    """Return a folder in memory with room for the databases: on a disk, each takes ten times as long."""
    room = shutil.disk_usage(MEMORY).free if MEMORY.is_dir() else 0
    return MEMORY if room > ROOM else None


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


class Database:
    """A PostgreSQL server that can be killed and started again, with one study on it."""

    def __init__(self, folder: Path, programs: Path, *options: str) -> None:
        self.folder, self.user = folder, _user()
        self.url_of_none = f"postgresql+psycopg://postgres@/?host={folder}"
        self.url = self.url_of_none.replace("/?", "/postgres?")
        place = (str(folder / "data"), "-k", str(folder))
        self.call = [str(programs / "postgres"), "-D", *place, *options]
        made = ("--username=postgres", "--auth=trust", "--no-sync", *LOCALE)
        _run([programs / "initdb", "-D", folder / "data", *made], self.user)
        self.start()

    def another(self, name: str) -> str:
        """Return the URL of another database on it, a new one."""
        with create_engine(self.url, isolation_level="AUTOCOMMIT").connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        return self.url.replace("/postgres?", f"/{name}?")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self.call, user=self.user, stdout=log, stderr=log, cwd="/"
            )
        _wait(self.url_of_none, self.folder / "log")

    def kill(self) -> None:
        """Kill it and all it has started, as a power cut would."""
        self.process.kill()
        self.process.wait(SECONDS)

    def restart(self) -> None:
        """Stop it, and start it again."""
        self.stop()
        self.start()

    def stop(self) -> None:
        """Shut it down, as whoever updates it does: it ends its connections and waits for nobody."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(SECONDS)


def _started(place: Path | None, *options: str) -> Database:
    """Start a server in a new folder of its own; skip where there is none."""
    programs = _programs()
    if programs is None:
        pytest.skip("no PostgreSQL: neither pgserver nor initdb is installed")
    folder = Path(tempfile.mkdtemp(prefix="medjury-postgres-", dir=place))
    if user := _user():
        shutil.chown(folder, user)
    folder.chmod(0o755)
    return Database(folder, programs, *options)


@contextmanager
def killable() -> Iterator[Database]:
    """Start a PostgreSQL server to kill; skip where there is none."""
    server = _started(None, "-c", "listen_addresses=")
    try:
        yield server
    finally:
        server.kill()
        shutil.rmtree(server.folder, ignore_errors=True)
