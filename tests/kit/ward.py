"""A ward's outputs: drops, and a watch on the test's study whose time moves only when it is told to."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from annotate.watching.cycle import Watch
from annotate.watching.drops import Folder
from annotate.watching.log import Log
from annotate.watching.messages import Ways
from annotate.watching.settings import WatchSettings
from data.store.watch import NewAlarm
from jury.panel import Panel
from kit.jury_runs import HASTY
from kit.studies import HEAD

NO_WAYS = Ways("", None, "", "")
ALARM = NewAlarm("combined | a | baseline", "combined", "Dr Lee", "Rate anew.", 14, {"icc": 0.2})


class Time:
    """Seconds and a calendar that move only when they are told to."""

    def __init__(self) -> None:
        self.seconds, self.at = 0.0, datetime(2026, 3, 2, 9, tzinfo=UTC)

    def __call__(self) -> float:
        """Return the seconds."""
        return self.seconds

    def calendar(self) -> datetime:
        """Return the day and the time of day."""
        return self.at


def times_of(watch: Watch) -> Time:
    """Return the time that a watch goes by."""
    assert isinstance(watch.monotonic, Time)
    return watch.monotonic


def lines(first: int, count: int, text: str = "Answer {}.") -> str:
    """Return a CSV of outputs by two models in turn."""
    rows = [
        f"i{n},visits,Context {n}.,Write.,,r{n},m{n % 2},{text.format(n)}"
        for n in range(first, first + count)
    ]
    return "\n".join([HEAD, *rows]) + "\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder that outputs are dropped into."""
    (tmp_path / "drops").mkdir()
    return tmp_path / "drops"


@pytest.fixture
def made(engine: Engine, folder: Path, tmp_path: Path) -> Callable[..., Watch]:
    """Return a watch on the test's study, whose time stands still unless a test moves it."""
    times = Time()

    def make(panel: Panel | None = None, ways: Ways = NO_WAYS, **parts: Any) -> Watch:
        source = {"settle_seconds": 0} | parts.pop("source", {})
        settings = WatchSettings.model_validate({"source": source} | parts)
        at = Folder(folder, settings.source, times)
        at.prepare()
        log = Log(tmp_path / "log.jsonl", times.calendar)
        watch = Watch(engine, settings, at, ways, panel, log, monotonic=times, clock=times.calendar)
        if watch.asking:
            watch.asking.patience = HASTY
        return watch

    return make


def events(tmp_path: Path) -> list[dict[str, Any]]:
    """Return the lines of a watch's log."""
    return [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]


def names(folder: Path) -> list[str]:
    """Return the names in a folder."""
    return sorted(path.name for path in folder.iterdir())
