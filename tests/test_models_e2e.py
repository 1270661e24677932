"""The models screen in Chromium: nobody learns an author before the blind is lifted."""

import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from kit import rating_files, screens
from kit.browsers import PATIENCE_MS
from kit.screens import server as server
from kit.servers import Server
from kit.studies import Run
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import Engine

from data.person import is_blind
from data.schema import Role
from data.study.verify import acts

pytestmark = pytest.mark.e2e
axe, codes = screens.axe, screens.codes
COSTS = b"model,usd\nmodel-one,12\nmodel-two,3\n"
WAYS = {
    "By clinicians": ("one", "two", "three"),
    "By the jury, uncorrected": ("three", "one", "two"),
    "By the jury, corrected with the clinicians' ratings": ("one", "two", "three"),
}
PHONE = {"width": 480, "height": 900}
NO_WIDTH = re.compile(r"(\d\.\d+) to \1\b")


@pytest.fixture
def rated(run: Run, write: Callable[[str, str], Path]) -> None:
    assert (
        run("study", "import", str(write("responses.csv", rating_files.model_responses())))[0] == 0
    )
    assert (
        run("rate", "ratings", str(write("ratings.csv", rating_files.model_ratings(lenient=3))))[0]
        == 0
    )


def names_under(shown: str, way: str) -> list[str]:
    """Return the models under one way of scoring, in their order."""
    return re.findall(r"model-\w+", shown.split(way)[1])[:3]


def costs_on_disk() -> set[Path]:
    """Return the files of costs that any server here has put down."""
    return {*Path(tempfile.gettempdir()).glob("medjury-costs-*/*")}


def scrolled_in_its_box(page: Page) -> dict[str, bool]:
    """Scroll the widest table to its right end; tell whether its box and its names stay in place."""
    found: dict[str, bool] = page.locator(".mj-scroll").first.evaluate(
        """box => {
          const name = box.querySelector("tbody th[scope=row]"), left = name.getBoundingClientRect().left;
          box.scrollLeft = box.scrollWidth;
          return {
            wider: box.scrollWidth > box.clientWidth && box.scrollLeft > 0,
            inside: box.getBoundingClientRect().right <= document.documentElement.clientWidth,
            stays: Math.abs(name.getBoundingClientRect().left - left) < 1,
          };
        }"""
    )
    return found


@pytest.mark.usefixtures("rated")
@pytest.mark.slow  # CI has 15 minutes
def test_models_are_compared_only_once_a_coordinator_has_lifted_the_blind(
    browser: Browser, server: Server, codes: dict[Role, str], engine: Engine, axe: str
) -> None:
    reader = screens.signed_in(browser, server, codes[Role.RESEARCHER], "tablet")
    screens.opened(reader, server, "models")
    expect(reader.get_by_text("This study is open and blind")).to_be_visible()
    expect(reader.get_by_role("button", name="Unblind and compare")).to_have_count(0)
    assert "model-one" not in reader.content()
    page = screens.signed_in(browser, server, codes[Role.COORDINATOR])
    screens.opened(page, server, "models")
    lift = page.get_by_role("button", name="Unblind and compare")
    lift.click()
    expect(page.get_by_role("alert").filter(has_text="Tick")).to_be_visible()
    assert is_blind(engine)
    assert screens.violations(page, axe) == []
    page.get_by_label("Reason").fill("--final analysis")
    page.get_by_text("I know that this cannot be undone", exact=True).click()
    lift.click()
    answer = page.locator(".mj-decision")
    expect(answer.get_by_role("heading")).to_have_text(
        "Too few data to say whether any model leads.", timeout=4 * PATIENCE_MS
    )
    expect(answer).to_contain_text(
        "have clinicians rate responses to at least 20 instances", ignore_case=True
    )
    models = page.get_by_role("table", name="Models", exact=True)
    for way, order in WAYS.items():
        expect(models).to_contain_text(way)
        names = [f"model-{one}" for one in order]
        assert names_under(models.inner_text(), way) == names
    assert models.inner_text().count("1 to 3") == 9
    assert not NO_WIDTH.search(models.inner_text())
    [told] = acts(engine, "unblinded")
    assert told.detail == {"reason": "--final analysis"}
    assert told.actor.startswith("account ")
    before = costs_on_disk()
    page.get_by_text("Costs of the models").click()
    page.locator("input[type=file]").set_input_files(
        {"name": "c.csv", "mimeType": "text/csv", "buffer": b"model,usd\nmodel-one,12\nno-such,3\n"}
    )
    expect(page.get_by_text("no-such")).to_be_visible(timeout=4 * PATIENCE_MS)
    expect(answer).to_be_visible()
    page.locator("input[type=file]").set_input_files(
        {"name": "long.csv", "mimeType": "text/csv", "buffer": COSTS + b"model-one,12\n" * 9000}
    )
    expect(page.get_by_text("long.csv has more than 100,000 bytes")).to_be_visible()
    page.locator("input[type=file]").set_input_files(
        {
            "name": "c.csv",
            "mimeType": "text/csv",
            "buffer": COSTS,
        }
    )
    costs = page.get_by_role("table", name="Cost, and win rate by")
    expect(costs).to_be_visible(timeout=4 * PATIENCE_MS)
    screens.settle(page)
    assert costs_on_disk() == before
    assert [one for one in screens.violations(page, axe) if "stFileUploader" not in one] == []
    page.context.close()
    screens.opened(reader, server, "models")
    expect(reader.get_by_role("table", name="Models")).to_be_visible()
    screens.settle(reader)
    reader.set_viewport_size(PHONE)
    assert scrolled_in_its_box(reader) == {"wider": True, "inside": True, "stays": True}
    reader.context.close()
