"""How long Study, Agreement and Workbench take to open on a large study, in Chromium, cold and warm.

    PYTHONPATH=tests uv run python benchmarks/scale/screens.py --db sqlite:////tmp/s30.db

The study is one of `made.py`; each screen gives it a researcher, so give a copy. Changed: a server that
has just been started on a study changed since, so that nothing kept is of use; from the click on Sign in
for Study, else from the address to the figures, by somebody who signed in a moment before. Cold: another
server that has just been started, the study unchanged. Warm: the same address in a new page of that
browser. `load` is the machine's before it began. Python has compiled all modules before, as where
medjury is installed.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

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
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(Path(tempfile.gettempdir()) / "medjury-bytecode")
    timed(given.db, "agreement", researcher(given.db))  # compiles
    for screen in given.screens.split(","):
        path, code = "" if screen == "study" else screen, researcher(given.db)
        load = round(os.getloadavg()[0], 1)
        changed, _ = timed(given.db, path, code)
        time.sleep(2)  # what was computed is kept
        cold, warm = timed(given.db, path, code)
        row = {"screen": screen, "changed": changed, "cold": cold, "warm": warm, "load": load}
        print(json.dumps(row), flush=True)


def researcher(db: str) -> str:
    """Add a researcher, which changes the study; return their code."""
    engine = open_study(db)
    try:
        name = f"Rita {time.time():.0f}"
        return add_people(OPERATOR, engine, [name], Role.RESEARCHER)[0].code
    finally:
        engine.dispose()


def timed(db: str, path: str, code: str) -> tuple[float, float]:
    """Return the seconds of both openings of a screen of a server that has just been started."""
    with serving(db) as server, chromium() as browser:
        first, second = opened(browser, server.address, code, path)
        time.sleep(1)
    return round(first, 2), round(second, 2)


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
