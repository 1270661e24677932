"""Jury runs that outlive the page, the browser and the server they were started from.

A run is `medjury jury run` in a process group of its own, and a keeper beside it that says in the
study that it lives, what it told, and how it ended. Whoever asks it to stop says so in the study
as well: no process has to find another.

    python -m annotate.jury_runs TOKEN      the keeper; the server starts it
"""

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from sqlalchemy import Engine

from annotate import jury_panels
from data import DEFAULT_STUDY_URL, STUDY_VARIABLE
from data.database import open_study
from data.errors import BadInput, MedjuryError
from data.person import Person, only
from data.schema import Role
from data.study.runs import RunOrder, beat_run, begin_run, end_run
from medjury import own_packages

BEAT_SECONDS = 1.0
SPOKEN = "medjury: "  # how the command line begins a message to its user
COLUMNS = 200
LINES = 40
STUDY, CRASH = "study ", "Traceback (most recent call last)"
CRASHED = "the run ended unexpectedly; the server's log says why. What was stored stays"
ENDS = (0, 1, 2, 130)  # done, something missing, refused, stopped
TRIES = 60

_keepers: list["subprocess.Popen[bytes]"] = []


@only(Role.RESEARCHER, Role.COORDINATOR)
def start(person: Person, engine: Engine, order: RunOrder) -> str:
    """Start a run of a panel that was checked, and return its token.

    Raises
    ------
    BadInput
        If the panel costs money and no cap is set.
    Conflict
        If another run is on in this study.
    """
    panel = jury_panels.usable(order.text)
    if order.cap is None and jury_panels.costs_money(panel):
        raise BadInput(f"panel {panel.name} asks hosts that cost money: set a cap in US dollars")
    token = secrets.token_hex(8)
    begin_run(person, engine, order, token)
    _keepers[:] = [keeper for keeper in _keepers if keeper.poll() is None]
    _keepers.append(
        subprocess.Popen(  # noqa: S603 ourselves; the token is our own
            own_packages.command("annotate.jury_runs", token),
            env=environment(engine),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
    )
    return token


def _arguments(order: RunOrder, path: Path) -> list[str]:
    """Return an order as the command line takes it."""
    words = ["jury", "run", str(path), "--replicates", f"{order.replicates}"]
    for name in order.benchmarks:
        words += ["--benchmark", name]
    return words


def environment(engine: Engine) -> dict[str, str]:
    """Return what a command on this study needs; its URL may hold a password: no `ps` shows it."""
    url = engine.url.render_as_string(hide_password=False)
    ours = {STUDY_VARIABLE: url, "OMP_NUM_THREADS": "1", "COLUMNS": f"{COLUMNS}"}
    return own_packages.environment() | ours


def keep(engine: Engine, token: str) -> None:
    """Carry out a run to its end, or until somebody asks it to stop."""
    run = beat_run(engine, token, ())
    if run is None:
        return
    with tempfile.TemporaryDirectory(prefix="medjury-run-") as folder:
        files = _Files(Path(folder), run.order)
        code = _watched(engine, token, files)
        messages, figures = files.said(), files.figures()
        if code not in ENDS or files.crashed:
            messages = [*messages, CRASHED]
            with suppress(OSError):
                sys.stderr.write(files.told())
    for _ in range(TRIES):
        with suppress(MedjuryError):
            end_run(engine, token, code, messages, figures)
            return
        time.sleep(BEAT_SECONDS)


class _Files:
    """The files of a run in progress, in a folder that only this user may read."""

    def __init__(self, folder: Path, order: RunOrder) -> None:
        self.order = order
        self.panel = folder / f"{order.panel}.toml"
        self.panel.write_text(order.text, "utf-8")
        self.out, self.err = folder / "out", folder / "err"
        self._keys = _keys(order)

    def told(self) -> str:
        """Return all that the command told, without keys."""
        text = self.err.read_text("utf-8", "replace")
        for key in self._keys:
            text = text.replace(key, "(key)")
        return jury_panels.without_path(text, self.panel)

    @property
    def crashed(self) -> bool:
        """Whether the command ended in a way it should not."""
        return CRASH in self.told()

    def said(self) -> list[str]:
        """Return the last messages; nothing of a crash, whose text may quote anything."""
        text = self.told().split(CRASH, 1)[0]
        lines = [line.removeprefix(SPOKEN).rstrip() for line in text.splitlines()]
        return [line for line in lines if line and not line.startswith(STUDY)][-LINES:]

    def figures(self) -> Mapping[str, Any]:
        """Return the figures that the command gave, if any."""
        try:
            figures: dict[str, Any] = json.loads(self.out.read_text("utf-8", "replace"))
        except json.JSONDecodeError:
            return {}
        return figures


def _watched(engine: Engine, token: str, files: _Files) -> int:
    """Run the command, report that it is alive, stop it when asked; return its exit code."""
    with files.out.open("wb") as out, files.err.open("wb") as err:
        child = _child(files, out.fileno(), err.fileno())
    obeyed = 0
    while _going(child):
        with suppress(MedjuryError):  # the study may be out of reach for a while
            run = beat_run(engine, token, files.said())
            stops = obeyed + 1 if run is None else run.stops
            if stops > obeyed:
                child.send_signal(signal.SIGINT)
                obeyed = stops
    return child.returncode


def _child(files: _Files, out: int, err: int) -> "subprocess.Popen[bytes]":
    """Start the command; SIGINT works in it even where the server was started without."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    order = files.order
    words = _arguments(order, files.panel)
    words += ["--concurrency", f"{order.concurrency}"] if order.concurrency else []
    words += ["--max-usd", repr(order.cap)] if order.cap is not None else []
    words += ["--batch"] if order.batch else []
    words += ["--leave-out-too-long"] if order.leave_out_too_long else []
    command = own_packages.command("medjury", *words, "--json", "-")
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)  # noqa: S603 ours

    def ended(_: int, __: FrameType | None) -> None:
        child.send_signal(signal.SIGINT)

    signal.signal(signal.SIGTERM, ended)
    return child


def _going(child: "subprocess.Popen[bytes]") -> bool:
    """Wait a moment; return whether the command still runs."""
    with suppress(subprocess.TimeoutExpired):
        child.wait(BEAT_SECONDS)
        return False
    return True


def _keys(order: RunOrder) -> list[str]:
    """Return the keys that the run may use, so that none is ever repeated."""
    with suppress(MedjuryError):
        names = [juror.api_key_env for juror in jury_panels.checked(order.text).juror]
        return [value for name in names if name and (value := os.environ.get(name))]
    return []


if __name__ == "__main__":
    keep(open_study(os.environ.get(STUDY_VARIABLE, DEFAULT_STUDY_URL)), sys.argv[1])
