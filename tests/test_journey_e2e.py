"""A researcher's whole way in Chromium on real notes: from an empty study to a verdict and a report."""

from pathlib import Path

import pytest
from kit import aci_bench
from kit.browsers import LAPTOP, new_context
from kit.journey import Journey, Researcher, jury_of, table_of
from kit.jurors import Stub
from kit.servers import created
from playwright.sync_api import Browser

from data.database import open_study
from data.queries.record import verify

VISITS, SYSTEMS = 12, 2
MOST_CLICKS, MOST_KEYS = 45, 60

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.real]


def test_a_researcher_comes_from_nothing_to_a_verdict_and_a_report_without_a_terminal(
    browser: Browser, tmp_path: Path
) -> None:
    if not aci_bench.FOLDER.is_dir():
        pytest.skip(f"the public data set ACI-Bench is not at {aci_bench.FOLDER}")
    notes = aci_bench.read_notes(VISITS, SYSTEMS)
    with created(tmp_path) as (server, code), Stub(jury_of(notes)) as stub:
        page = new_context(browser, LAPTOP).new_page()
        journey = Journey(notes, stub)
        steps = journey.go(Researcher(page, server), code)
        page.context.close()
        told = table_of(steps)
    print(told)  # noqa: T201 what the way takes, for whoever runs it with -s
    assert [step.stopped for step in steps if step.stopped] == [], told
    assert steps[-1].name == "save the report"
    assert sum(step.led for step in steps) >= 4, told
    assert sum(step.clicks for step in steps) <= MOST_CLICKS, told
    assert sum(step.keys for step in steps) <= MOST_KEYS, told
    assert journey.readings >= 2 * VISITS * SYSTEMS
    # An offer to use the jury would take more responses than a test has.
    assert journey.verdict.startswith("Too few data")
    assert journey.verdict in journey.report
    assert [name for name in aci_bench.SYSTEMS if name.partition("_")[0] in journey.report] == []
    study = open_study(server.db_url)
    assert verify(study).findings == ()
    study.dispose()
