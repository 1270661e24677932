"""Running the command line from the app: in a process of its own, on the study that is served."""

import os
import subprocess
import sys

from sqlalchemy import Engine

from data.place import VARIABLE

USER_ERROR = 2
SPOKEN = "medjury: "  # how the command line begins a message to its user
COLUMNS = 200


def environment(engine: Engine, columns: int = COLUMNS) -> dict[str, str]:
    """Return what a command on this study needs; its URL may hold a password: no `ps` shows it."""
    url = engine.url.render_as_string(hide_password=False)
    return os.environ | {VARIABLE: url, "OMP_NUM_THREADS": "1", "COLUMNS": f"{columns}"}


def run(
    engine: Engine, *arguments: str, columns: int = COLUMNS
) -> "subprocess.CompletedProcess[str]":
    """Run a command on a study to its end, whatever that is."""
    return subprocess.run(  # noqa: S603 our own command; its arguments are no shell words
        [sys.executable, "-m", "medjury", *arguments],
        env=environment(engine, columns),
        capture_output=True,
        text=True,
        check=False,
    )


def refusal(ran: "subprocess.CompletedProcess[str]") -> str:
    """Return what a command told its user that it refuses, or ""."""
    lines = [line for line in ran.stderr.splitlines() if line.startswith(SPOKEN)]
    return "; ".join(line.removeprefix(SPOKEN) for line in lines)
