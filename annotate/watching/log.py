"""The log of a watch: a line of JSON for each thing that happened, with figures and codes only."""

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from data.schema import now

Clock = Callable[[], datetime]


class Log:
    """Appends lines to a file, or to standard output where none is named.

    It has no text of a patient or model, no name of a file and none of an author: who writes into it
    gives codes, numbers, digests, and names of benchmarks and jurors. Where a line cannot be written, as
    on a full disk, the watch goes on, and the next line says how many are lacking.
    """

    def __init__(self, path: Path | None = None, clock: Clock = now) -> None:
        self._path, self._clock, self._lost = path, clock, 0

    def write(self, event: str, **figures: Any) -> None:
        """Append one line."""
        line = {"at": self._clock().isoformat(timespec="seconds"), "event": event} | figures
        if self._lost:
            line["lines_lost"] = self._lost
        text = json.dumps(line, ensure_ascii=True) + "\n"
        try:
            if self._path is None:
                sys.stdout.write(text)
                sys.stdout.flush()
            else:
                with self._path.open("a", encoding="ascii") as file:
                    file.write(text)
            self._lost = 0
        except OSError:
            self._lost += 1
            with suppress(OSError):
                sys.stderr.write("medjury: the log of the watch cannot be written\n")
