"""A real Dask scheduler and real workers, each a process of its own, and their certificates."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dask
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
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

    def worker(self, environment: Mapping[str, str] = {}) -> subprocess.Popen[bytes]:
        """Start a worker of one thread that nobody starts again when it dies."""
        worker = (*DASK, "worker", "--scheduler-file", str(self._file), "--no-nanny")
        place = ("--host", "127.0.0.1", "--nthreads", "1", "--no-dashboard")
        own = ("--local-directory", str(self.folder), "--death-timeout", "60")
        return self._start((*worker, *place, *own), environment)

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

    def _start(
        self,
        command: tuple[str, ...],
        environment: Mapping[str, str] = {},
    ) -> subprocess.Popen[bytes]:
        with (self.folder / f"{len(self.processes)}.log").open("wb") as log:
            process = subprocess.Popen(
                command, env=os.environ | environment, stdout=log, stderr=subprocess.STDOUT
            )
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


PEM = serialization.Encoding.PEM

SECRET = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()

ROLES = ("SCHEDULER", "WORKER", "CLIENT")

Variables = dict[str, str]


def certified(folder: Path, ca: str) -> Variables:
    """Make a CA and one certificate of it; return the variables of docs/scale.md that name them."""
    keys = {name: ec.generate_private_key(ec.SECP256R1()) for name in ("ca", "node")}
    names = {
        one: x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"{ca} {one}")])
        for one in keys
    }
    since = datetime.now(UTC) - timedelta(days=1)
    for one, key in keys.items():
        made = (
            x509.CertificateBuilder(names["ca"], names[one], key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(since)
            .not_valid_after(since + timedelta(days=2))
            .add_extension(x509.BasicConstraints(ca=one == "ca", path_length=None), critical=True)
            .sign(keys["ca"], hashes.SHA256())
        )
        (folder / f"{ca}-{one}.pem").write_bytes(made.public_bytes(PEM))
        (folder / f"{ca}-{one}.key").write_bytes(key.private_bytes(PEM, *SECRET))
    tls = "DASK_DISTRIBUTED__COMM__TLS__"
    files = {"CERT": f"{folder}/{ca}-node.pem", "KEY": f"{folder}/{ca}-node.key"}
    each = {f"{tls}{role}__{what}": path for role in ROLES for what, path in files.items()}
    return {f"{tls}CA_FILE": f"{folder}/{ca}-ca.pem"} | each


@contextmanager
def dask_reads(monkeypatch: pytest.MonkeyPatch, variables: Variables) -> Iterator[None]:
    """Set variables and let Dask read them, as a new process does."""
    with monkeypatch.context() as apart:
        for name, value in variables.items():
            apart.setenv(name, value)
        dask.config.refresh()
        yield
    dask.config.refresh()
