"""What the README installs works: every page, tab and segment; test_docs.py runs its commands.

`.ci/run` makes the environment of the README's first command, `uv run --no-dev`, and names its Python in
MEDJURY_PYTHON; elsewhere the Python of the tests stands in for it.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from kit import screens
from kit.browsers import LAPTOP, new_context, wait_open
from kit.servers import CODE, Server, free_port
from kit.surfaces import surfaces, wrong
from playwright.sync_api import Page

RESPONSES = """instance_id,benchmark,context,prompt,response_id,model,response
case-1,cases,The knee has hurt since Monday.,Write the note.,case-1-a,m,Knee pain since Monday.
case-1,cases,The knee has hurt since Monday.,Write the note.,case-1-b,n,The patient is well.
visit-1,visits,The knee has hurt since Monday.,Write the note.,visit-1-a,m,Knee pain since Monday.
visit-1,visits,The knee has hurt since Monday.,Write the note.,visit-1-b,n,The patient is well.
"""
POINTS = """instance_id,point,weight,kind,critical
case-1,Says that the knee hurts,2,must,true
case-1,Says since when it hurts,1,must,false
"""
SETTING_UP = (
    "study import responses.csv",
    "study points points.csv --benchmark cases",
    "jury run simulated --benchmark visits",
)
INVITING = (
    "rate assign --raters raters.csv --per-response 1",
    "rate people add coordinator --role coordinator",
)
axe = screens.axe


@dataclass(frozen=True)
class Begun:
    """The folder of a study, and what was said of it: the codes to sign in with."""

    folder: Path
    printed: str


@pytest.fixture(scope="session")
def python():
    """Return the Python whose environment is tested."""
    named = os.environ.get("MEDJURY_PYTHON", "")
    if not named and os.environ.get("CI"):
        pytest.fail("MEDJURY_PYTHON names no Python of the README's environment")
    return named or sys.executable


@pytest.fixture(scope="module")
def demo(python, tmp_path_factory):
    """Make the demo study as the README does, and unblind it: it has what most screens show."""
    folder = tmp_path_factory.mktemp("demo")
    printed = medjury(python, folder, "demo", "--no-serve")
    medjury(python, folder, "study", "unblind", "--reason", "done", "--out", "authors.csv")
    return Begun(folder, printed)


@pytest.fixture(scope="module")
def own(python, tmp_path_factory):
    """Begin a study with points of the case, to be rated by a guest."""
    folder = tmp_path_factory.mktemp("own")
    for name, text in {"responses": RESPONSES, "points": POINTS, "raters": "guest\n"}.items():
        (folder / f"{name}.csv").write_text(text, "utf-8")
    for words in SETTING_UP:
        medjury(python, folder, *words.split())
    printed = (medjury(python, folder, *words.split()) for words in INVITING)
    return Begun(folder, "".join(printed))


@pytest.mark.e2e
@pytest.mark.timeout(900)
# One is unblinded, one blind.
@pytest.mark.parametrize("study", ["demo", pytest.param("own", marks=pytest.mark.slow)])
def test_no_page_tab_or_segment_shows_or_logs_an_error(study, browser, python, axe, request):
    begun: Begun = request.getfixturevalue(study)
    seen: dict[str, list[str]] = {"guest": [], "coordinator": []}
    errors: list[str] = []
    with served(python, begun.folder) as server:
        for who, opened in seen.items():  # in this order: of what somebody has rated
            page = new_context(browser, LAPTOP).new_page()
            page.emulate_media(color_scheme="dark")
            page.on("pageerror", lambda error: errors.append(str(error)))
            sign_in(page, server, begun, who)
            if study == "own" and who == "guest":
                rate(page, RESPONSES.count("\n") - 1)
            for surface in surfaces(page):
                opened.append(surface)
                errors.extend(f"{surface}: {text}" for text in wrong(page))
                if re.match(r"/(setup|agreement) \w+$", surface):
                    errors.extend(f"{surface}: {one}" for one in screens.violations(page, axe))
            page.context.close()
    logged = (begun.folder / "log").read_text("utf-8")
    assert "\n".join([*errors, logged]) == ""
    assert (len(seen["guest"]) > 0, len(seen["coordinator"]) > 50) == (True, True), seen


def sign_in(page: Page, server: Server, begun: Begun, who: str) -> None:
    """Sign in as what was printed says: by the demo's links, or by a code."""
    if links := re.findall(r"/join#\S+", begun.printed):
        page.goto(f"{server.address}{links[who == 'coordinator']}")
        page.get_by_role("button", name="Open the study").click()
        page.goto(server.address)
        return
    [code] = re.findall(rf"(?m)^{who}\s+({CODE.pattern})", begun.printed)
    page.goto(server.address)
    page.get_by_label("Your sign-in code").fill(code)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{server.address}/")


def rate(page: Page, number: int) -> None:
    """Rate so many responses as well as can be: some pages are of what somebody has rated."""
    for done in range(number):
        wait_open(page)
        for group in page.locator("form.likert fieldset").all():
            group.locator("label").last.click()
        page.get_by_role("button", name=re.compile("Submit")).click()
        page.locator(".mj-count", has_text=f"{done + 1} of ").wait_for()


def medjury(python: str, folder: Path, *words: str) -> str:
    """Return what a command prints on the study of a folder; it must succeed."""
    code, said = ended(python, folder, *words)
    assert code == 0, said
    return said


def ended(python: str, folder: Path, *words: str) -> tuple[int, str]:
    """Run a command on the study of a folder; return its exit code, and all that it says."""
    ran = subprocess.run(
        [python, "-m", "medjury", *words],
        cwd=folder,
        env=os.environ | own_study(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return ran.returncode, f"{' '.join(words)}: {ran.stdout}"


def own_study(folder: Path) -> dict[str, str]:
    return {"MEDJURY_DB": f"sqlite:///{folder / 'medjury.db'}"}


@contextmanager
def served(python: str, folder: Path) -> Iterator[Server]:
    """Serve the study of a folder by another Python; what it logs is in the folder's `log`."""
    server = Server(own_study(folder)["MEDJURY_DB"], free_port())
    call = [python, "-m", "medjury", "serve", "--port", f"{server.port}"]
    with (folder / "log").open("w") as log:
        server.process = subprocess.Popen(
            call,
            cwd=folder,
            env=os.environ | own_study(folder),
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
    try:
        yield server.ready()
    finally:
        server.end()
