"""axe-core finds nothing against WCAG 2.2 A and AA on any view of the rating room."""

import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from rating_server import Server, build, chromium, row, rubric, serving, sign_in, wait_for_count
from sqlalchemy import Engine

from data.database import open_study
from data.store.settings import set_setting

pytestmark = pytest.mark.e2e

AXE = "axe-core@4.14.1"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
SIZES = {"laptop": (1366, 768), "tablet": (820, 1180)}
SOURCE = "CHIEF COMPLAINT\nKnee pain.\nAssessment:\n" + "Osteoarthritis of the knee.\n" * 60


@pytest.fixture(scope="module")
def axe() -> str:
    """Return axe-core's script, from the registry once, kept outside the checkout."""
    cache = Path(tempfile.gettempdir()) / "medjury-axe" / AXE
    script = cache / "package" / "axe.min.js"
    if not script.exists():
        _fetch(cache)
    return script.read_text("utf-8")


def _fetch(cache: Path) -> None:
    """Pack axe-core with npm; without npm or the registry skip, but fail in CI."""
    npm = shutil.which("npm")
    cache.mkdir(parents=True, exist_ok=True)
    call = [npm or "npm", "pack", AXE, "--silent"]
    try:
        subprocess.run(call, cwd=cache, check=True, capture_output=True, timeout=120)
    except (OSError, subprocess.SubprocessError) as error:
        reason = f"npm cannot fetch {AXE}: {error}"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    with tarfile.open(next(cache.glob("*.tgz"))) as packed:
        packed.extract("package/axe.min.js", cache, filter="data")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = open_study(f"sqlite:///{tmp_path_factory.mktemp('axe') / 'study.db'}", create=True)
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def codes(engine: Engine) -> dict[str, str]:
    set_setting(engine, "reference", "after_rating")
    other = {"context": SOURCE, "reference": "The gold note.", "checklist": "Pain mentioned."}
    rows = [row(n, f"Note {n}. No fever.", **other) for n in (1, 2)]
    return build(engine, rows, list(SIZES), rubric())


@pytest.fixture(scope="module")
def server(engine: Engine, codes: dict[str, str]) -> Iterator[Server]:
    with serving(str(engine.url)) as server:
        yield server


@pytest.mark.parametrize("size", list(SIZES))
def test_no_view_of_the_rating_room_breaks_wcag_22_aa(
    size: str, browser: Browser, server: Server, codes: dict[str, str], axe: str
) -> None:
    width, height = SIZES[size]
    page = browser.new_page(viewport={"width": width, "height": height})
    found: dict[str, list[str]] = {}
    for view in _tour(page, server, codes[size]):
        page.wait_for_timeout(150)
        found[view] = _violations(page, axe)
    page.close()
    assert "\n".join(f"{view} {one}" for view, broken in found.items() for one in broken) == ""
    assert len(found) == 10


def _tour(page: Page, server: Server, code: str) -> Iterator[str]:
    """Go through every view, and name it once it is shown."""
    page.goto(server.address)
    yield "login"
    sign_in(page, server, code)
    yield "rating"
    page.keyboard.press("2")
    page.keyboard.press("s")
    yield "marking"
    page.keyboard.press("w")
    page.keyboard.type("34nf")
    yield "marked"
    page.keyboard.press("r")
    yield "recusal"
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    yield "keys"
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Enter")
    page.get_by_text("Submitted.").wait_for()
    yield "reference"
    page.evaluate("sessionStorage.setItem('medjury-worked', '1500')")
    page.keyboard.press("Enter")
    page.get_by_role("dialog").wait_for()
    yield "pause"
    page.keyboard.press("Enter")
    page.keyboard.press("p")
    page.get_by_text("You rated this on").wait_for()
    page.get_by_text("Show reference").click()
    yield "previous"
    page.keyboard.press("b")
    page.get_by_text("You rated this on").wait_for(state="detached")
    page.keyboard.type("345")
    page.keyboard.press("Control+Enter")
    wait_for_count(page, 2, 2)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Thank you").wait_for()
    yield "done"


def _violations(page: Page, axe: str) -> list[str]:
    """Return each rule that is broken, and where."""
    page.evaluate(axe)
    found: list[str] = page.evaluate(
        """tags => axe.run(document, {runOnly: {type: "tag", values: tags}}).then(told =>
        told.violations.flatMap(one => one.nodes.map(node =>
          `${one.id}: ${node.target.flat().at(-1)} ${node.failureSummary ?? ""}`.slice(0, 300))))""",
        TAGS,
    )
    return found
