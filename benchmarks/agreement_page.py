"""Measure how fast the agreement page of 10,000 responses and 12 jurors opens, in Chromium.

    PYTHONPATH=tests uv run python benchmarks/agreement_page.py [--responses 10000]

The study is that of agreement_speed.py, in a database. The first opening starts the worker and
computes; then a criterion is asked for that was not before, by a worker that is warm; the others find
their figures kept. A page is answered when the decision is there, open when its chart and table are.
`import pandas`, timed before and after, tells how busy the machine was.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from agreement_speed import _study
from kit.browsers import chromium, new_context
from kit.rating_study import row, rubric
from kit.servers import serving
from playwright.sync_api import Page
from sqlalchemy import Engine

from data.database import open_study
from data.importers.rows import Origin, RatingRow
from data.person import OPERATOR
from data.schema import Kind, Role
from data.store import add_people, import_ratings, import_responses

TIMES = 7
VIEWS = ("Overview", "Responses")
CRITERIA = ("accuracy", "completeness", "clarity")


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--responses", type=int, default=10_000)
    responses = asked.parse_args().responses
    with tempfile.TemporaryDirectory() as folder:
        engine = open_study(f"sqlite:///{folder}/study.db", create=True)
        fill(engine, responses)
        code = add_people(OPERATOR, engine, ["Rita"], Role.RESEARCHER)[0].code
        with serving(str(engine.url)) as server, chromium() as browser:
            page = new_context(browser).new_page()
            page.set_default_timeout(600_000)
            page.goto(server.address)
            page.get_by_label("Your sign-in code").fill(code)
            page.get_by_role("button", name="Sign in").click()
            page.locator(".mj-head").wait_for()
            print(f"import pandas: {yardstick():.2f} s")
            for view in VIEWS:
                told("the first time", [opened(page, server.address, view)])
                for criterion in CRITERIA:
                    told(
                        f"{criterion}, not asked before",
                        [opened(page, server.address, f"{view}&criterion={criterion}")],
                    )
                told("kept", [opened(page, server.address, view) for _ in range(TIMES)])
            print(f"import pandas: {yardstick():.2f} s")
        engine.dispose()


def told(what: str, took: list[tuple[float, float]]) -> None:
    """Print the medians of what some openings took."""
    decision, whole = (statistics.median(one) for one in zip(*took, strict=True))
    print(f"{what}: decision {decision:.2f} s, chart and table {whole:.2f} s")


def yardstick() -> float:
    """Return the seconds that importing pandas takes in a process of its own."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import pandas"], check=True)
    return time.perf_counter() - began


def opened(page: Page, address: str, view: str) -> tuple[float, float]:
    """Open the page anew; return the seconds until the decision, and until chart and table."""
    page.goto("about:blank")
    began = time.perf_counter()
    page.goto(f"{address}/agreement?view={view}")
    page.locator(".mj-decision").wait_for()
    decision = time.perf_counter() - began
    page.locator(
        "[data-testid=stVegaLiteChart] svg, [data-testid=stVegaLiteChart] canvas"
    ).last.wait_for()
    page.get_by_role("table").first.wait_for()
    return decision, time.perf_counter() - began


def fill(engine: Engine, responses: int) -> None:
    """Put the study of agreement_speed.py into a database."""
    scores = _study(responses)
    rows = [
        row(n, "A note.", response_id=f"r{n}", instance_id=f"i{n}", benchmark="made_up")
        for n in range(responses)
    ]
    import_responses(engine, rows, lambda _: rubric())
    import_ratings(engine, _ratings(scores.ratings.itertuples(index=False)))


def _ratings(rows: Iterator[tuple[object, ...]]) -> Iterator[RatingRow]:
    for n, (response, _, _, rater, kind, criterion, score, *_) in enumerate(rows):
        yield RatingRow(
            Origin("made up", n),
            str(response),
            str(rater),
            Kind(str(kind)),
            str(criterion),
            f"{score}",
        )


if __name__ == "__main__":
    main()
