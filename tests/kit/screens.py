"""The other screens in Chromium: opened, filled in, and searched by axe-core."""

import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from data.person import OPERATOR
from data.schema import Role
from data.study.people import add_people
from kit.browsers import PATIENCE_MS, SIZES, new_context, wait_settled
from kit.jurors import Stub
from kit.servers import Server, serving
from kit.studies import RESPONSES

AXE = "axe-core@4.14.1"
DRAWING = "[data-testid=stApp]:not([data-test-script-state=notRunning])"
LATENCY_MS = 200  # from a click until the page says that it runs
PARTS = {
    **{part: f"?view={part}" for part in ("Progress", "People")},
    **{part: f"export?view={part}" for part in ("Rubric prompt", "Report", "Files", "Record")},
}

TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")


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


def violations(page: Page, axe: str, tags: Sequence[str] = TAGS) -> list[str]:
    """Return each rule that is broken, and where.

    What fades while the page is drawn anew has little contrast for a moment: what is found counts if
    it is still there on the page that has come to rest.
    """
    if not page.evaluate("!!window.axe"):
        page.evaluate(axe)
    found = _broken(page, tags)
    for _ in range(LOOKS - 1):
        if found:
            page.wait_for_timeout(REST_MS)
            wait_settled(page)
            found = _broken(page, tags)
    return found


def _broken(page: Page, tags: Sequence[str]) -> list[str]:
    found: list[str] = page.evaluate(
        """tags => axe.run(document, {runOnly: {type: "tag", values: tags}}).then(told =>
        told.violations.flatMap(one => one.nodes.map(node =>
          `${one.id}: ${node.target.flat().at(-1)} ${node.failureSummary ?? ""}`.slice(0, 300))))""",
        [*tags],
    )
    return found


CHOICES = 5

LOOKS, REST_MS = 3, 500

HOSTILE = (
    "<img src='https://elsewhere.example/x.png'> ![x](https://elsewhere.example/y.png) $5 to $6"
)

GOOD = RESPONSES.replace("Patient has fever.", HOSTILE)


def at_study(page: Page, server: Server, code: str) -> Page:
    page.goto(server.address)
    page.get_by_label("Your sign-in code").fill(code)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Home", exact=True).wait_for()
    return page


def open_part(page: Page, part: str) -> None:
    """Open a part of Set up, or a tab of Home or Export, from wherever the page is."""
    address = urlsplit(page.url)
    page.goto(f"{address.scheme}://{address.netloc}/{PARTS.get(part, f'setup?part={part}')}")
    page.locator(".mj-head").wait_for()
    wait_settled(page)
    page.wait_for_timeout(REST_MS)  # what the address chose is drawn in a second go
    wait_settled(page)


def unfold(page: Page, label: str) -> None:
    """Open what is folded, and wait until it is: what is below it moves meanwhile."""
    wait_settled(page)
    page.get_by_text(label).click()
    wait_settled(page)


def upload(page: Page, name: str, text: str) -> None:
    wait_settled(page)
    file = {"name": name, "mimeType": "text/csv", "buffer": text.encode()}
    page.locator("input[type=file]").set_input_files(file)  # type: ignore[arg-type]
    page.get_by_role("button", name=f"Remove {name}").wait_for()
    wait_settled(page)


def choose(page: Page, label: str, option: str) -> None:
    """Choose from a list; again where it was drawn anew while it was open."""
    wanted = page.get_by_role("option", name=option, exact=True)
    for _ in range(CHOICES):
        wait_settled(page)
        page.get_by_label(label, exact=True).click()
        try:
            wanted.click(timeout=PATIENCE_MS / CHOICES)
        except PlaywrightTimeout:
            page.keyboard.press("Escape")
            continue
        return
    pytest.fail(f"{label}: no option {option} after {CHOICES} tries")


WAIT_MS = 120_000  # for a command line to start on a busy machine and end


def panel(stub: Stub) -> str:
    one = f"""
[[juror]]
name = "NAME"
provider = "openai"
model = "NAME-model"
family = "x"
base_url = "{stub.openai_url}"
schema = "json_schema"
usd_per_million_in = 2.0
usd_per_million_out = 10.0
"""
    return 'name = "ours"\n' + one.replace("NAME", "a") + one.replace("NAME", "b")


def keep(page: Page, text: str) -> None:
    """Write a panel and try to keep it."""
    page.get_by_label("Panel, as TOML").fill(text)
    page.get_by_label("Panel, as TOML").press("Control+Enter")
    wait_settled(page)
    page.get_by_role("button", name="Save panel").click()


def start(page: Page) -> None:
    page.get_by_label("Cap, US dollars").fill("5")
    page.get_by_label("Cap, US dollars").press("Enter")
    wait_run(page)
    page.get_by_role("button", name="Stop", exact=True).wait_for()


def wait_run(page: Page) -> None:
    """Press the button once the page has taken in what was typed."""
    wait_settled(page)
    page.get_by_role("button", name="Run the jury").click()


def sheet(page: Page, name: str) -> Locator:
    """Return a table by a part of its name; its cells are its text."""
    return page.get_by_test_id("stDataFrame").filter(has=page.locator(f'[aria-label*="{name}"]'))


def signed_in(browser: Browser, server: Server, code: str, size: str = "laptop") -> Page:
    """Return the page of somebody just signed in; the first screen is drawn."""
    page = new_context(browser, SIZES[size]).new_page()
    page.goto(server.address)
    page.get_by_label("Your sign-in code").fill(code)
    page.get_by_role("button", name="Sign in").click()
    page.locator("[data-testid=stApp]").wait_for()
    settle(page)
    return page


def opened(page: Page, server: Server, path: str) -> None:
    """Go to a screen and wait until it is drawn to its end."""
    page.goto(f"{server.address}/{path}")
    page.locator(".mj-head").wait_for()
    settle(page)


def settle(page: Page, patience_ms: float = 4 * PATIENCE_MS) -> None:
    page.locator(DRAWING).wait_for(state="detached", timeout=patience_ms)


def at_rest(page: Page, patience_ms: float) -> None:
    """Wait until a page is computed and drawn to its end."""
    page.locator("[data-testid=stApp]").wait_for()
    page.wait_for_timeout(LATENCY_MS)
    settle(page, patience_ms)


@pytest.fixture
def codes(engine) -> dict[Role, str]:
    """Return the code of one person of each role."""
    return {role: add_people(OPERATOR, engine, [f"one {role}"], role)[0].code for role in Role}


@pytest.fixture
def server(engine) -> Iterator[Server]:
    with serving(str(engine.url)) as server:
        yield server
