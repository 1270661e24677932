"""How long Study, Agreement and Workbench take to open on a large study, in Chromium, cold and warm.

    PYTHONPATH=tests uv run python benchmarks/scale/screens.py --db sqlite:////tmp/s30.db

The study is one of `made.py`; it gets a researcher, so give a copy. Cold: a server that has just been
started, from the click on Sign in for Study, else from the address to the figures, by somebody who
signed in a moment before. Warm: the same address in a new page of that browser. `load` is the
machine's before it began.
"""

import argparse
import json
import os
import time

from kit.browsers import chromium, new_context
from kit.servers import serving
from playwright.sync_api import Browser, Page

from data.database import open_study
from data.person import OPERATOR
from data.schema import Role
from data.store import add_people

SHOWN = {
    "": ".mj-decision",
    "agreement": ".mj-decision",
    "workbench": ".mj-list li",
}


def main() -> None:
    """Print a row for each screen."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--db", required=True)
    asked.add_argument("--screens", default="study,agreement,workbench")
    given = asked.parse_args()
    engine = open_study(given.db)
    name = f"Rita {time.time():.0f}"
    code = add_people(OPERATOR, engine, [name], Role.RESEARCHER)[0].code
    engine.dispose()
    for screen in given.screens.split(","):
        path = "" if screen == "study" else screen
        load = os.getloadavg()[0]
        with serving(given.db) as server, chromium() as browser:
            cold, warm = opened(browser, server.address, code, path)
        row = {"screen": screen, "cold": round(cold, 2), "warm": round(warm, 2), "load": load}
        print(json.dumps(row), flush=True)


def opened(browser: Browser, address: str, code: str, path: str) -> tuple[float, float]:
    """Sign in and open a screen twice; return the seconds of both openings."""
    context = new_context(browser)
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto(address)
    page.get_by_label("Your sign-in code").fill(code)
    began = time.perf_counter()
    page.get_by_role("button", name="Sign in").click()
    if path:
        page.locator(".mj-head").wait_for()
        began = time.perf_counter()
        page.goto(f"{address}/{path}")
    cold = figures(page, path, began)
    again = context.new_page()
    again.set_default_timeout(120_000)
    began = time.perf_counter()
    again.goto(f"{address}/{path}")
    return cold, figures(again, path, began)


def figures(page: Page, path: str, began: float) -> float:
    """Return the seconds until the screen shows its figures."""
    page.locator(SHOWN[path]).first.wait_for()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
