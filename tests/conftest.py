"""Studies for the tests: real databases in a temporary folder, and the real page on them."""

import gc
import os
import shutil
import signal
import warnings
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest
from argon2 import PasswordHasher
from hypothesis import HealthCheck, settings
from kit import postgres, study_place
from kit.browsers import chromium, new_context
from kit.commands import demo_of_run
from kit.jurors import Stub
from kit.servers import serving
from kit.studies import import_small
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.util import LRUCache

from data import database
from data.database import open_study
from medjury import main
from medjury.cli import files, output  # noqa: F401 rich reads COLUMNS once: before any test sets it

LEFT_OPEN = "<psycopg.Connection object .* was deleted while still open"

MARKS = {
    "database": "works on a study, so it is worth a run on PostgreSQL too",
    "first": "the first browser test of its file",
}


def pytest_configure(config: pytest.Config) -> None:
    """Prepare a run: a command may be interrupted, and leave its connection to a server open."""
    gc.disable()  # until all is collected: what test files import stays
    # Else a shell's job in the background ignores it, and so do the commands that are interrupted.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("filterwarnings", f"ignore:{LEFT_OPEN}:ResourceWarning")  # in a test
    warnings.filterwarnings("ignore", LEFT_OPEN, ResourceWarning)  # after the last one
    # The first draw of a process reads tables from disk, however fast those that follow are.
    settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("busy")
    for name, meaning in MARKS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")
    if postgres.wanted() and not hasattr(config, "workerinput"):
        postgres.share()


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what asks for a study, and each file's first journey; put browsers' journeys first."""
    begun: set[Path] = set()
    for item in items:
        asked = getattr(item, "fixturenames", ())
        if "study_in" in asked:
            item.add_marker("database")
        if "study_file" in asked and postgres.wanted():
            item.add_marker(pytest.mark.skip("about the file of a SQLite study"))
        if item.get_closest_marker("e2e") and item.path not in begun:
            begun.add(item.path)
            item.add_marker("first")
    # The long files begin first, or one worker is left with them when the others have ended.
    items.sort(key=lambda item: not item.path.stem.endswith("_e2e"))


def pytest_collection_finish():
    """Let no garbage collection of the run go over all that was imported and collected."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def cheap_hashes():
    """Hash codes at once: a fifth of a second each is for those who guess. Commands of their own do not."""
    cheap = partial(PasswordHasher, time_cost=1, memory_cost=8, parallelism=1)
    with pytest.MonkeyPatch.context() as patch:
        for place in ("data.study.access", "data.study.people"):
            patch.setattr(import_module(place), "PasswordHasher", cheap)
        yield


class Same(SQLiteDialect_pysqlite):
    """What speaks to every SQLite study: for a cache of statements, all of them are one."""

    supports_statement_cache = True

    def __hash__(self):
        return hash(Same)

    def __eq__(self, other):
        return isinstance(other, Same)


@pytest.fixture(scope="session", autouse=True)
def statements_compiled_once():
    """Let the engines of all studies share what one of them has compiled: each compiles what it is first asked."""
    made, compiled = database.create_engine, LRUCache(2000)

    def create_engine(url, **settings):
        engine = made(url, **settings)
        if type(engine.dialect) is SQLiteDialect_pysqlite:
            engine.dialect.__class__ = Same
            engine.update_execution_options(compiled_cache=compiled)
        return engine

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "create_engine", create_engine)
        yield


@pytest.fixture(scope="session")
def study_in():
    """Say where the study of a folder is, in a file or on a server."""
    return study_place.study_in


@pytest.fixture
def url(tmp_path, study_in):
    yield study_in(tmp_path)
    study_place.leave(tmp_path)


@pytest.fixture
def study_file(url):
    """Return the SQLite file of the test's study; whoever asks for it skips on PostgreSQL."""
    return Path(url.removeprefix("sqlite:///"))


@pytest.fixture(scope="session")
def empty_study(tmp_path_factory):
    """Make one empty study a process: a copy of it is there sooner than its migrations are."""
    path = tmp_path_factory.mktemp("empty") / "study.db"
    open_study(f"sqlite:///{path}", create=True).dispose()
    return path


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """Return the demo study, made once for all processes of this run; tests work on copies."""
    own = tmp_path_factory.getbasetemp()
    return demo_of_run(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own)


@pytest.fixture
def engine(url, empty_study):
    if not postgres.wanted() and not Path(url.removeprefix("sqlite:///")).exists():
        shutil.copy(empty_study, url.removeprefix("sqlite:///"))
    engine = open_study(url, create=True)
    yield engine
    engine.dispose()


@pytest.fixture
def write(tmp_path):
    """Write a file into the test's folder and return its path."""

    def put(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return put


@pytest.fixture
def small_study(engine, tmp_path):
    """Two instances of one benchmark on the generic rubric, two responses each."""
    import_small(engine, tmp_path)
    return engine


@pytest.fixture
def run(url, capsys, monkeypatch):
    """Run one command on the test's study and return its exit code, output and messages."""
    monkeypatch.setenv("MEDJURY_DB", url)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")  # rich takes a dumb one for 80 columns, whatever is set

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        files.forget_streaming()  # a process would end here
        said = capsys.readouterr()
        return int(str(ended.value.code or 0)), said.out, said.err

    return call


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def study(tmp_path_factory, study_in):
    """Return an empty study that all tests of a module share, as its server does."""
    engine = open_study(study_in(tmp_path_factory.mktemp("e2e")), create=True)
    yield engine
    engine.dispose()


@pytest.fixture
def me(engine, study, invited):
    """Return who the module's `invited` is, in a study of the test's own that is as the module's."""
    study_place.fill(engine, study)
    return invited


@pytest.fixture(scope="module")
def server(study, codes):
    """Serve the module's study, which its fixture `codes` has filled."""
    with serving(str(study.url)) as server:
        yield server


@pytest.fixture
def context(browser):
    """Return a clinician's browser, on a laptop."""
    context = new_context(browser)
    yield context
    context.close()


@pytest.fixture
def page(context):
    return context.new_page()


@pytest.fixture
def stub():
    """Serve jurors on the loopback."""
    with Stub() as running:
        yield running
