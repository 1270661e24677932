"""The demo study as a user makes it: made once for all processes of a run, copied by each test."""

import fcntl
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Demo:
    """The file of the demo study, and what the command said while it made it."""

    study: Path
    output: str


def demo_of_run(folder: Path) -> Demo:
    """Return the demo of a folder that the run's processes share; the first to ask makes it."""
    place, output = folder / "demo", folder / "demo" / "output.txt"
    with (folder / "demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not output.exists():
            place.mkdir(exist_ok=True)
            output.write_text(make_demo(place), "utf-8")
    return Demo(place / "medjury.db", output.read_text("utf-8"))


def make_demo(folder: Path, url: str | None = None) -> str:
    """Make the demo in a process and a folder of its own; return what the command says."""
    call = [sys.executable, "-m", "medjury", "demo", "--no-serve"]
    environment = {name: value for name, value in os.environ.items() if name != "MEDJURY_DB"}
    environment |= {"MEDJURY_DB": url} if url else {}
    made = subprocess.run(call, cwd=folder, env=environment, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return made.stdout
