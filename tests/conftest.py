"""Studies for the tests: real databases in a temporary folder, and the real page on them."""

import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import postgres
import pytest
from playwright.sync_api import Browser, BrowserContext, Page
from rating_server import Server, chromium, new_context, serving
from small import RESPONSES, Run
from sqlalchemy import Engine

from data.database import open_study
from data.importers.responses import ResponseFile
from data.importers.table import TableFile
from data.rubric import read_rubric
from data.store import import_responses
from medjury import (
    main,
    output,  # noqa: F401 rich reads COLUMNS once: before any test sets it
)

LEFT_OPEN = "<psycopg.Connection object .* was deleted while still open"


def pytest_configure(config: pytest.Config) -> None:
    """Let a command leave its connection to a server open, as a process that ends may."""
    config.addinivalue_line("filterwarnings", f"ignore:{LEFT_OPEN}:ResourceWarning")  # in a test
    warnings.filterwarnings("ignore", LEFT_OPEN, ResourceWarning)  # after the last one


@pytest.fixture
def url(tmp_path: Path) -> str:
    return postgres.new_database() if postgres.wanted() else f"sqlite:///{tmp_path / 'study.db'}"


@pytest.fixture(scope="session")
def empty_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make one empty study a process: a copy of it is there sooner than its migrations are."""
    path = tmp_path_factory.mktemp("empty") / "study.db"
    open_study(f"sqlite:///{path}", create=True).dispose()
    return path


@pytest.fixture
def engine(url: str, empty_study: Path) -> Iterator[Engine]:
    if not postgres.wanted():
        shutil.copy(empty_study, url.removeprefix("sqlite:///"))
    engine = open_study(url, create=True)
    yield engine
    engine.dispose()


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a file into the test's folder and return its path."""

    def put(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return put


@pytest.fixture
def small_study(engine: Engine, write: Callable[[str, str], Path]) -> Engine:
    """Two instances of one benchmark on the generic rubric, two responses each."""
    rows = ResponseFile(TableFile(write("responses.csv", RESPONSES)))
    import_responses(engine, rows, lambda _: read_rubric("generic"))
    return engine


@pytest.fixture
def run(url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run one command on the test's study and return its exit code, output and messages."""
    monkeypatch.setenv("MEDJURY_DB", url)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")  # rich takes a dumb one for 80 columns, whatever is set

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        said = capsys.readouterr()
        return int(str(ended.value.code or 0)), said.out, said.err

    return call


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Return an empty study that all tests of a module share, as its server does."""
    file = f"sqlite:///{tmp_path_factory.mktemp('e2e') / 'study.db'}"
    engine = open_study(postgres.new_database() if postgres.wanted() else file, create=True)
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def server(study: Engine, codes: dict[str, str]) -> Iterator[Server]:
    """Serve the module's study, which its fixture `codes` has filled."""
    with serving(str(study.url)) as server:
        yield server


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """Return a clinician's browser, on a laptop."""
    context = new_context(browser)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()
