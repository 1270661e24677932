"""A real Dask scheduler and real workers, each a process of its own."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from distributed import Client

DASK = (sys.executable, "-m", "dask")

SECONDS = 120.0


class Place:
    """A scheduler and what has been started for it; `logs` is all that they wrote."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self._file = folder / "scheduler.json"
        scheduler = (*DASK, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-show")
        self.scheduler = self._start(
            (*scheduler, "--dashboard-address", "127.0.0.1:0", "--scheduler-file", str(self._file))
        )

    @property
    def address(self) -> str:
        """What `--on` takes."""
        until(self._written)
        return str(json.loads(self._file.read_text())["address"])

    @property
    def logs(self) -> str:
        """Everything that was written to standard output and error."""
        return "".join(path.read_text() for path in sorted(self.folder.glob("*.log")))

    def worker(self) -> subprocess.Popen[bytes]:
        """Start a worker of one thread that nobody starts again when it dies."""
        worker = (*DASK, "worker", "--scheduler-file", str(self._file), "--no-nanny")
        place = ("--host", "127.0.0.1", "--nthreads", "1", "--no-dashboard")
        own = ("--local-directory", str(self.folder), "--death-timeout", "60")
        return self._start((*worker, *place, *own))

    def ready(self, workers: int) -> None:
        """Wait until exactly so many workers are there."""
        with Client(self.address, timeout=SECONDS, set_as_default=False) as client:
            until(lambda: len(client.nthreads()) == workers)

    def _written(self) -> bool:
        """Return whether the scheduler has said where it is: its file is empty at first."""
        return self._file.exists() and self._file.read_text().rstrip().endswith("}")

    def end(self) -> None:
        """Kill what is still there."""
        for one in self.processes:
            one.kill()
        for one in self.processes:
            one.wait()

    def _start(self, command: tuple[str, ...]) -> subprocess.Popen[bytes]:
        with (self.folder / f"{len(self.processes)}.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        self.processes.append(process)
        return process


@contextmanager
def dask_place(folder: Path) -> Iterator[Place]:
    """Give a scheduler; nothing of it is left behind."""
    place = Place(folder)
    try:
        yield place
    finally:
        place.end()


def until(so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + SECONDS
    while not so():
        assert time.monotonic() < end, "it never came"
        threading.Event().wait(0.05)
