"""Measure how fast the agreement page of 10,000 responses and 12 jurors opens, in Chromium.

    PYTHONPATH=tests uv run python benchmarks/agreement_page.py [--responses 10000]

The study is that of agreement_speed.py, in a database. The first opening waits for the command;
the others are warm: its figures are kept. A page is open when the chart and the table are there.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator

from agreement_speed import _study
from playwright.sync_api import Page
from rating_server import chromium, new_context, row, rubric, serving
from sqlalchemy import Engine

from data.database import open_study
from data.importers.rows import Origin, RatingRow
from data.person import OPERATOR
from data.schema import Kind, Role
from data.store import add_people, import_ratings, import_responses

TIMES = 7
VIEWS = ("Overview", "Responses")


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
            for view in VIEWS:
                print(f"{view}, the first time: {opened(page, server.address, view):.2f} s")
                took = [opened(page, server.address, view) for _ in range(TIMES)]
                print(
                    f"{view}, warm: median {statistics.median(took):.2f} s, max {max(took):.2f} s"
                )
        engine.dispose()


def opened(page: Page, address: str, view: str) -> float:
    """Open the page anew; return the seconds until its chart and its table are there."""
    page.goto("about:blank")
    began = time.perf_counter()
    page.goto(f"{address}/agreement?view={view}")
    page.locator(
        "[data-testid=stVegaLiteChart] svg, [data-testid=stVegaLiteChart] canvas"
    ).last.wait_for()
    page.get_by_role("table").first.wait_for()
    return time.perf_counter() - began


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
