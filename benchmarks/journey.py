"""Go a researcher's way through the app in Chromium, and count clicks, keys and seconds.

    PYTHONPATH=tests uv run python benchmarks/journey.py [--visits 40] [--systems 3]

One command makes the study (`medjury serve --create`); all else is done in the browser, on real notes of
ACI-Bench with scripted clinicians and a jury on the loopback. It goes as far as it gets: the last line
says what stopped it. `--root FOLDER` runs the app of another checkout, in this environment. Seconds are those of the machine,
nobody reads or thinks in them.
"""

import argparse
import os
import tempfile
from pathlib import Path

from kit.aci_bench import FOLDER, read_notes
from kit.browsers import LAPTOP, chromium, new_context
from kit.journey import Journey, Researcher, jury_of, table_of
from kit.jurors import Stub
from kit.servers import created


def main() -> None:
    """Go the way and print what each step took."""
    asked = _arguments()
    notes = read_notes(asked.visits, asked.systems, asked.data)
    with (
        tempfile.TemporaryDirectory() as folder,
        created(Path(folder), asked.root) as (server, code),
        Stub(jury_of(notes)) as stub,
        chromium() as browser,
    ):
        page = new_context(browser, LAPTOP).new_page()
        journey = Journey(notes, stub)
        steps = journey.go(Researcher(page, server), code)
        if steps[-1].stopped:
            page.screenshot(path=Path(tempfile.gettempdir()) / "journey.png", full_page=True)
        print(table_of(steps))
        load = " ".join(f"{figure:.1f}" for figure in os.getloadavg())
        print(f"load {load} on {os.cpu_count()} cores; {len(notes.quality)} responses")


def _arguments() -> argparse.Namespace:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--visits", type=int, default=40)
    asked.add_argument("--systems", type=int, default=3)
    asked.add_argument("--data", type=Path, default=FOLDER)
    asked.add_argument("--root", type=Path, default=None)
    return asked.parse_args()


if __name__ == "__main__":
    main()
