"""Rate the same cases by points and by scales in Chromium: keys, and seconds, a case.

    PYTHONPATH=tests uv run python benchmarks/points_keys.py [seconds between keys]

Two scripted clinicians rate 30 made-up cases on the real server: one answers eight points of each case,
the other scores the three criteria of the generic rubric and writes one line where the first is low, as
the room asks. Each key is struck as soon as the page takes it, plus a pause that stands for a person's
hand, the same for both (0.28 s, the mean of a key struck by a skilled typist: Card, Moran & Newell
1980). How long people read and think is not in it: that takes people.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from kit.browsers import chromium, new_context, sign_in, wait_for_count, wait_open
from kit.rating_study import build, row
from kit.servers import serving
from playwright.sync_api import Page

from data.database import open_study
from data.importers.points import PointRow
from data.importers.rows import Origin
from data.points import Point, points_rubric
from data.rubric import read_rubric
from data.store.points import add_points

CASES, POINTS = 30, 8
PAUSE = 0.28
LOW_EVERY = 5  # cases: a low score on the first criterion, which needs a line
LINE = "The dose is wrong."


def main(pause: float = PAUSE) -> None:
    """Rate, and print keys and seconds a case side by side."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'study.db'}"
        engine = open_study(url, create=True)
        codes = _study(engine)
        with serving(url) as server, chromium() as browser:
            print(
                "| way | keys a case, mean | seconds a case, median | p90 |\n| --- | --- | --- | --- |"
            )
            for who in ("points", "scales"):
                page = new_context(browser).new_page()
                sign_in(page, server, codes[who])
                strokes, seconds = _rate(page, who, pause)
                p90 = statistics.quantiles(seconds, n=10)[-1]
                told = (statistics.mean(strokes), statistics.median(seconds), p90)
                print(f"| {who} | " + " | ".join(f"{figure:.2f}" for figure in told) + " |")
        engine.dispose()


def _study(engine) -> dict[str, str]:
    """Make the cases twice, once for each way of rating."""
    rows = {
        who: [
            row(n, f"Note {n}: no fever, mild knee pain.", benchmark=who, response_id=f"{who}-{n}")
            for n in range(1, CASES + 1)
        ]
        for who in ("points", "scales")
    }
    build(engine, rows["points"], [], points_rubric())
    texts = [f"Says what part {n} of the talk says" for n in range(POINTS)]
    points = [
        PointRow(Origin("made", n), f"inst-hidden-{n}", Point(point=text, weight=1))
        for n in range(1, CASES + 1)
        for text in texts
    ]
    add_points(engine, "points", points, points_rubric(), "operator")
    codes = build(engine, rows["points"], ["points"], points_rubric())
    return codes | build(engine, rows["scales"], ["scales"], read_rubric("generic"))


def _rate(page: Page, who: str, pause: float) -> tuple[list[int], list[float]]:
    """Rate every case; return how many keys, and how many seconds, each took."""
    strokes, seconds = [], []
    for number in range(1, CASES + 1):
        wait_open(page)
        began = time.perf_counter()
        keys = _keys(who, number)
        for key in keys:
            page.keyboard.press(key)
            time.sleep(pause)
        if number < CASES:
            wait_for_count(page, number, CASES)
        else:
            page.get_by_role("heading", name="Thank you").wait_for()
        strokes.append(len(keys))
        seconds.append(time.perf_counter() - began)
    return strokes, seconds


def _keys(who: str, number: int) -> list[str]:
    if who == "points":
        return [*(["1", "2"] * POINTS)[:POINTS], "Control+Enter"]
    if number % LOW_EVERY:
        return ["4", "5", "3", "Control+Enter"]
    return ["1", "5", "3", "c", *(key if key != " " else "Space" for key in LINE), "Control+Enter"]


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
