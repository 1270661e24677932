"""A server in a process of its own, and what it costs."""

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

PATIENCE_SECONDS = 90
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Serving:
    """A server that answers: where, in which process, and how long it took to be ready."""

    address: str
    pid: int
    ready_seconds: float

    def rss_mb(self) -> float:
        """Return the memory it holds now."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise RuntimeError(f"process {self.pid} has ended")

    def cpu_seconds(self) -> float:
        """Return the processor time it has used so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def loads(self, *parts: str) -> list[str]:
        """Return which of these the process has mapped, by a piece of their path."""
        maps = Path(f"/proc/{self.pid}/maps").read_text()
        return [part for part in parts if part in maps]


@contextmanager
def serving(command: Sequence[str], port: int, health: str, cwd: Path) -> Iterator[Serving]:
    """Run a server until the block ends; it is ready when `health` is answered with 200."""
    with (cwd / "server.log").open("wb") as log:
        started = time.monotonic()
        process = subprocess.Popen(command, cwd=cwd, env=_environment(), stdout=log, stderr=log)
        try:
            address = f"http://127.0.0.1:{port}"
            _wait(process, address + health)
            yield Serving(address, process.pid, time.monotonic() - started)
        finally:
            process.kill()
            process.wait(10)


def free_port() -> int:
    """Return a port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def machine() -> str:
    """Return what else the machine is doing, for beside the figures."""
    return "load {:.1f} {:.1f} {:.1f}".format(*os.getloadavg()) + f" on {os.cpu_count()} cores"


def _environment() -> dict[str, str]:
    """Return the environment with Python's compiled files kept, as Python does unless told not to.

    They go beside this machine's other temporary files; the first start of all writes them.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / "medjury-bytecode")}


def _wait(process: subprocess.Popen[bytes], address: str) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            with urlopen(address, timeout=5) as answer:  # noqa: S310 loopback
                if answer.status == 200:
                    return
        except (URLError, OSError):
            time.sleep(0.02)
    raise RuntimeError(f"{address} did not answer; see server.log")
