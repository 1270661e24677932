"""The screen Hand over in Chromium: the files of a guideline, and what prints."""

import os
from pathlib import Path

import pytest
from kit import screens
from kit.browsers import SIZES
from kit.screens import choose, settle, signed_in
from kit.servers import serving
from kit.studies import import_small
from playwright.sync_api import Browser, Page
from sqlalchemy import Engine, text

from calibration.dossier import SIMULATED
from data.guidelines import guideline
from data.importers.rows import Origin, RatingRow
from data.person import OPERATOR
from data.schema import Kind, Role
from data.study.people import add_people
from data.study.ratings import import_ratings

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
axe = screens.axe
FIRST_MS = 240_000  # the figures are computed when they are first asked for
CRITERIA = ("accuracy", "completeness", "clarity")
SHOTS = os.environ.get("SHOTS")  # a folder to keep pictures in


@pytest.fixture(scope="module")
def coordinator(study: Engine, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Rate four responses by two clinicians of whom one is simulated; return a coordinator's code."""
    import_small(study, tmp_path_factory.mktemp("files"))
    rows = [
        RatingRow(Origin("made", 1), response, rater, Kind.CLINICIAN, criterion, f"{1 + n % 5}")
        for rater in ("dr_a", "dr_b")
        for n, response in enumerate(("r11", "r12", "r21", "r22"))
        for criterion in CRITERIA
    ]
    import_ratings(study, rows)
    with study.begin() as connection:
        connection.execute(text("UPDATE rater SET simulated = true WHERE handle = 'dr_a'"))
    return add_people(OPERATOR, study, ["Boss Lindqvist"], Role.COORDINATOR)[0].code


def test_a_guideline_is_chosen_and_its_files_are_saved(
    browser: Browser, study: Engine, coordinator: str, axe: str, tmp_path: Path
) -> None:
    with serving(str(study.url)) as server:
        page = signed_in(browser, server, coordinator)
        screens.opened(page, server, "handover")
        choose(page, "Reporting guideline", guideline("grras").title)
        settle(page)
        files = _files(page)
        assert _broken(page, axe, "dossier") == []
    assert {*files} == {"dossier-grras.html", "dossier-grras.md"}
    assert all(SIMULATED in body.decode() for body in files.values())
    assert _broken_file(page, files["dossier-grras.html"], axe, tmp_path) == []


def _files(page: Page) -> dict[str, bytes]:
    """Make the files and download each."""
    page.get_by_role("button", name="Make the files").click()
    files = {}
    for name in ("HTML, which prints", "Markdown"):
        button = page.get_by_role("button", name=name, exact=True)
        button.wait_for(timeout=FIRST_MS)
        settle(page)
        with page.expect_download() as got:
            button.click()
        files[got.value.suggested_filename] = Path(got.value.path()).read_bytes()
    return files


def _broken(page: Page, axe: str, name: str) -> list[str]:
    """Return what axe finds on the screen, light and dark, on a laptop and a tablet."""
    broken = []
    for size in ("laptop", "tablet"):
        width, height = SIZES[size]
        page.set_viewport_size({"width": width, "height": height})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            settle(page)
            broken += screens.violations(page, axe)
            if SHOTS:
                page.screenshot(path=Path(SHOTS) / f"handover-{name}-{width}-{scheme}.png")
    return broken


def _broken_file(page: Page, html: bytes, axe: str, folder: Path) -> list[str]:
    """Return what axe finds in the HTML; its script is let in past the page's own policy."""
    file = folder / "dossier.html"
    file.write_bytes(html)
    assert page.context.browser is not None
    context = page.context.browser.new_context(bypass_csp=True)
    shown, broken = context.new_page(), []
    shown.goto(file.as_uri())
    for scheme in ("light", "dark"):
        shown.emulate_media(color_scheme=scheme)
        broken += screens.violations(shown, axe)
        if SHOTS:
            shown.screenshot(path=Path(SHOTS) / f"dossier-{scheme}.png")
    if SHOTS:
        shown.pdf(path=Path(SHOTS) / "dossier.pdf")
    context.close()
    return broken
