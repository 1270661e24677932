"""The report in a browser: nothing is fetched, nothing overflows, axe-core finds nothing."""

import pytest
from kit.browsers import LAPTOP, TABLET
from kit.scores import study
from kit.screens import TAGS, violations
from kit.screens import axe as axe
from kit.studies import content_of

from calibration.report.page import page as report

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    scores = study(benchmarks=("aci", "a_benchmark_with_a_rather_long_name"), n=24, per=2)
    place = tmp_path_factory.mktemp("report") / "report.html"
    place.write_text(report(content_of(scores)), "utf-8")
    return place.as_uri()


def test_axe_finds_nothing_on_the_report_and_it_never_scrolls_sideways(page, address, axe):
    for scheme, size in (("light", LAPTOP), ("dark", TABLET), ("light", TABLET), ("dark", LAPTOP)):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.goto(address)
        assert violations(page, axe, (*TAGS, "best-practice")) == []
    for width in (1366, 820, 390):
        page.set_viewport_size({"width": width, "height": 768})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_browser_with_no_script_fetches_the_page_alone_and_finds_no_fault(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    asked: list[str] = []
    told: list[str] = []
    page.on("request", lambda one: asked.append(one.url))
    page.on("console", lambda one: told.append(one.text))
    page.goto(address)
    assert page.get_by_role("heading", level=1).is_visible()
    assert page.locator("svg").first.is_visible()
    assert (asked, told) == ([address], [])
    context.close()
