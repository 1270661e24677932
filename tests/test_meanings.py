"""Headings of statistics say what they mean, where one stands."""

import importlib
import pkgutil
from pathlib import Path

import pytest

from annotate import meanings
from annotate.tables import CLASSES
from calibration import tables
from calibration.tables import points
from calibration.tables.meanings import MEANINGS
from calibration.tables.spec import Group, Table, TableSpec
from calibration.writers.html import REPORT, anchor, html_table

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
    own = {column.heading for spec in specs for column in spec.columns}
    return own | {*points.AGREEMENT, *points.DETECTION, *points.POINTS}


def test_a_meaning_belongs_to_a_heading_and_its_page_is_there() -> None:
    assert set(MEANINGS) - headings() == set()
    pages = {meaning.page for meaning in MEANINGS.values()}
    assert [page for page in pages if not (ROOT / "docs" / f"{page}.md").exists()] == []


# Headings of names, counts and dates, which say all there is to say; everything else is a statistic.
PLAIN = {
    *(
        "At",
        "Benchmark",
        "Benchmarks",
        "By",
        "By instance",
        "Calls",
        "Calls of unknown price",
        "Clinicians",
    ),
    *(
        "Clinicians, points",
        "Clinicians' change",
        "Compared",
        "Comparisons",
        "Criterion",
        "Critical or major",
        "Days left",
        "Ends",
    ),
    *(
        "A clinician",
        "As in the paper",
        "Exact",
        "Frozen (UTC)",
        "ICC first",
        "ICC latest",
        "ICC of the jury",
    ),
    *(
        "ICC of the jury without it",
        "ICC with it",
        "ICC without",
        "Incomplete",
        "Input tokens",
        "Instances",
    ),
    *(
        "Jurors",
        "Jury",
        "Jury, marked",
        "Jury, unmarked",
        "Jury, points",
        "Jury minus clinicians",
        "Jury's change",
    ),
    *(
        "Kind",
        "Largest difference",
        "Last (UTC)",
        "Last, UTC",
        "Marked",
        "Marks",
        "Mean",
        "Method",
        "Model",
    ),
    *(
        "No rating",
        "On",
        "Other",
        "Other responses",
        "Own family",
        "Own responses",
        "Pairs of models",
    ),
    *(
        "Places two marked",
        "Points",
        "Rank",
        "Raters",
        "Repeats",
        "Replicates",
        "Responses",
        "Scored",
    ),
    *(
        "Scored again",
        "State",
        "Times",
        "US dollars",
        "USD",
        "What",
        "What to quote it for",
        "k",
        "Agreement",
    ),
    *(
        "ICC(C,2), 95 %",
        "Like for like, 95 %",
    ),  # figures of frozen reports, with their own headings
    # A plan's tables say in a sentence each what their columns are.
    *(
        "n",
        "at 80 % power",
        "difference",
        "power",
        "n for it",
        "scores",
        "read by",
        "these",
        "like these",
        "single",
        "margin",
        "instances",
        "validated",
    ),
    # Points of the case: the tables' own notes say these.
    *("caught", "clinicians", "instance", "jury", "kind", "pairs", "point", "responses", "scorer"),
    *("sensitivity", "undecided"),
}


def test_every_statistic_that_a_table_shows_has_a_meaning() -> None:
    assert sorted(headings() - {*MEANINGS} - PLAIN) == []
    assert sorted({*MEANINGS} & PLAIN) == []


def test_no_two_headings_share_a_place_on_the_page() -> None:
    assert len({anchor(name) for name in MEANINGS}) == len(MEANINGS)


@pytest.mark.parametrize("name", sorted(MEANINGS))
def test_a_meaning_is_one_short_sentence(name: str) -> None:
    sentence = MEANINGS[name].sentence
    assert sentence.endswith(".")
    assert len(sentence) <= 200


def test_a_heading_in_the_app_links_to_its_meaning_and_tells_it() -> None:
    page = html_table(TABLE, CLASSES)
    assert 'href="/meanings#icc-c-2"' in page
    assert f'aria-description="{MEANINGS["ICC(C,2)"].sentence[:20]}' in page
    assert ">Scorer</th>" in page


def test_a_report_that_is_handed_on_has_no_link_into_the_app() -> None:
    assert "mj-term" not in html_table(TABLE, REPORT)


def test_the_page_has_every_meaning_once() -> None:
    page = meanings.page_html()
    for name in MEANINGS:
        assert page.count(f'<dt id="{anchor(name)}">') == 1
