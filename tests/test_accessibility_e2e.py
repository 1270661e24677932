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
from rating_server import (
    LAPTOP,
    TABLET,
    Server,
    build,
    new_context,
    row,
    rubric,
    sign_in,
    wait_for_count,
    wait_open,
    wait_saved,
    wait_settled,
)
from sqlalchemy import Engine

from data.store.settings import set_setting

pytestmark = pytest.mark.e2e

AXE = "axe-core@4.14.1"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
SIZES = {"laptop": LAPTOP, "tablet": TABLET}
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
def codes(study: Engine) -> dict[str, str]:
    set_setting(study, "reference", "after_rating")
    other = {"context": SOURCE, "reference": "The gold note.", "checklist": "Pain mentioned."}
    rows = [row(n, f"Note {n}. No fever.", **other) for n in (1, 2)]
    return build(study, rows, list(SIZES), rubric())


@pytest.mark.parametrize("size", list(SIZES))
def test_no_view_of_the_rating_room_breaks_wcag_22_aa(
    size: str, browser: Browser, server: Server, codes: dict[str, str], axe: str
) -> None:
    context = new_context(browser, SIZES[size])
    page = context.new_page()
    found: dict[str, list[str]] = {}
    for view in _tour(page, server, codes[size]):
        wait_settled(page)
        found[view] = _violations(page, axe)
    context.close()
    assert "\n".join(f"{view} {one}" for view, broken in found.items() for one in broken) == ""
    assert len(found) == 10


def _tour(page: Page, server: Server, code: str) -> Iterator[str]:
    """Go through every view, and name it once it is shown."""
    page.goto(server.address)
    yield "login"
    sign_in(page, server, code)
    yield "rating"
    page.keyboard.press("2")
    wait_saved(page)
    page.keyboard.press("s")
    yield "marking"
    page.keyboard.press("w")
    page.keyboard.type("34nf")
    wait_saved(page)
    yield "marked"
    dialog = page.get_by_role("dialog")
    for view, key in (("recusal", "r"), ("keys", "?")):
        page.keyboard.press(key)
        dialog.wait_for()
        yield view
        page.keyboard.press("Escape")
        dialog.wait_for(state="detached")
    page.keyboard.press("Control+Enter")
    page.get_by_text("Submitted.").wait_for()
    yield "reference"
    page.evaluate("sessionStorage.setItem('medjury-worked', '1500')")
    page.keyboard.press("Enter")
    dialog.wait_for()
    yield "pause"
    page.keyboard.press("Enter")
    dialog.wait_for(state="detached")
    page.keyboard.press("p")
    page.get_by_text("You rated this on").wait_for()
    page.get_by_text("Show reference").click()
    yield "previous"
    page.keyboard.press("b")
    page.get_by_text("You rated this on").wait_for(state="detached")
    wait_open(page)
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
