"""The real server in a process of its own, and plain requests to it."""

import http.client
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

START_SECONDS = 90

CODE = re.compile(r"\b\w{4}(?:-\w{4}){3}\b")


@dataclass
class Server:
    """The real server in a process of its own."""

    db_url: str
    port: int
    process: subprocess.Popen[bytes] = field(init=False)

    def start(self) -> "Server":
        """Start it and wait until it answers."""
        call = f"from annotate.server import serve; serve({self.db_url!r}, {self.port})"
        self.process = subprocess.Popen([sys.executable, "-c", call], stdout=subprocess.DEVNULL)
        return self.ready()

    def ready(self) -> "Server":
        """Wait until its process answers: it names its address before it listens there."""
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            try:
                with urlopen(f"{self.address}/_stcore/health", timeout=1):  # noqa: S310 loopback
                    return self
            except (URLError, OSError):
                time.sleep(0.05)
        self.process.kill()
        raise RuntimeError(f"the server did not start: {self.process.wait()}")

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def end(self) -> None:
        """End it, as who runs a server does: what it had begun is put away."""
        self.process.terminate()
        self.process.wait(60)

    def stop(self) -> None:
        """Kill it, as a power cut would."""
        self.process.kill()
        self.process.wait(10)


def free_port() -> int:
    """Return a port at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(db_url: str) -> Iterator[Server]:
    """Serve a study on a free port."""
    server = Server(db_url, free_port()).start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def created(folder: Path, root: Path | None = None) -> Iterator[tuple[Server, str]]:
    """Run `medjury serve --create` in an empty folder; yield its server and the code it printed.

    `root` is another checkout whose app is run, in this environment.
    """
    server = Server(f"sqlite:///{folder / 'study.db'}", free_port())
    call = [sys.executable, "-m", "medjury", "serve", "--create", "--port", f"{server.port}"]
    env = os.environ | {"MEDJURY_DB": server.db_url}
    env |= {"PYTHONPATH": f"{root}"} if root else {}
    printed = folder / "printed"
    with printed.open("w") as out:
        server.process = subprocess.Popen(call, env=env, stdout=out, cwd=root)
    try:
        server.ready()
        [code] = CODE.findall(printed.read_text())
        yield server, code
    finally:
        server.stop()


class Answer:
    """An HTTP answer: status, headers, body."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status, self.headers, self.body = answer.status, answer.headers, answer.read().decode()


def ask(server: Server, method: str, path: str, form: str = "", **headers: str) -> Answer:
    """Ask the server, following no redirect."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, form, sent)
    try:
        return Answer(connection.getresponse())
    finally:
        connection.close()


def post(server: Server, code: str, **headers: str) -> Answer:
    """Post a code to the sign-in form."""
    return ask(server, "POST", "/login", urlencode({"code": code}), **headers)


def self_signed(folder: Path, name: str) -> tuple[Path, Path]:
    """Write a certificate for this machine that its key signs itself, NAME.pem, and the key, NAME.key."""
    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "rate.example.org")])
    here = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder(who, who, key.public_key(), x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - timedelta(days=1))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .add_extension(here, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    certificate, secrets = folder / f"{name}.pem", folder / f"{name}.key"
    certificate.write_bytes(made.public_bytes(pem))
    secrets.write_bytes(key.private_bytes(pem, *secret))
    return certificate, secrets
