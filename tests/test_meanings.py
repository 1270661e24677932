"""Headings of statistics say what they mean, where one stands."""

import importlib
import pkgutil
from pathlib import Path

from annotate.tables import CLASSES
from calibration import tables
from calibration.tables.meanings import MEANINGS
from calibration.tables.spec import Group, Table, TableSpec
from calibration.writers.html import REPORT, html_table

ROOT = Path(__file__).parents[1]
TABLE = Table("Agreement", ("Scorer", "ICC(C,2)"), (Group("", (("jury", "0.5"),)),))


def headings() -> set[str]:
    """Return every heading of a column that a table may have."""
    modules = [
        importlib.import_module(f"calibration.tables.{module.name}")
        for module in pkgutil.iter_modules(tables.__path__)
    ]
    specs = [
        own for module in modules for own in vars(module).values() if isinstance(own, TableSpec)
    ]
    return {column.heading for spec in specs for column in spec.columns}


def test_a_meaning_belongs_to_a_heading_and_its_page_is_there() -> None:
    assert set(MEANINGS) - headings() == set()
    pages = {meaning.page for meaning in MEANINGS.values()}
    assert [page for page in pages if not (ROOT / "docs" / f"{page}.md").exists()] == []


def test_a_heading_in_the_app_links_to_its_meaning_and_tells_it() -> None:
    page = html_table(TABLE, CLASSES)
    assert 'href="/meanings#icc-c-2"' in page
    assert f'aria-description="{MEANINGS["ICC(C,2)"].sentence[:20]}' in page
    assert ">Scorer</th>" in page


def test_a_report_that_is_handed_on_has_no_link_into_the_app() -> None:
    assert "mj-term" not in html_table(TABLE, REPORT)
