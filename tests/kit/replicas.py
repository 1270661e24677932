"""Replicas of the server on one study, behind nginx set up as docs/server.md says."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, Page
from sqlalchemy import Engine
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from data.person import Person
from kit.browsers import PATIENCE_MS
from kit.rating_study import in_browser, session_of
from kit.servers import START_SECONDS, Server, free_port, self_signed

DOCS = Path(__file__).parents[2] / "docs/server.md"

NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")

ROUND = """
daemon off;
{user}
pid {here}/pid;
error_log {here}/errors;
events {{ }}
http {{
    client_body_temp_path {here}/body; proxy_temp_path {here}/proxy; fastcgi_temp_path {here}/f;
    uwsgi_temp_path {here}/u; scgi_temp_path {here}/s;
    access_log off;
    add_header X-Replica $upstream_addr always;
{documented}
}}
"""

TRIES = 64


@dataclass
class Front:
    """nginx, and the replicas behind it by their addresses."""

    port: int
    replicas: dict[str, Server]
    nginx: "subprocess.Popen[bytes]"

    @property
    def address(self) -> str:
        """Where browsers go."""
        return f"https://127.0.0.1:{self.port}"

    def asked(self, method: str, path: str, **how: object) -> httpx2.Response:
        """Ask through nginx, following no redirect; `source` is the address that asks."""
        came = httpx2.HTTPTransport(local_address=str(how.pop("source", "127.0.0.1")))
        with httpx2.Client(transport=came, base_url=self.address, timeout=60) as client:
            return client.request(method, path, **how)  # type: ignore[arg-type]

    def start(self, replica: str) -> None:
        """Start a replica again that was killed, and have nginx forget that it failed."""
        self.replicas[replica].start()
        self.nginx.send_signal(signal.SIGHUP)

    def session_at(self, engine: Engine, person: Person, replica: str) -> str:
        """Return a new session of a person that nginx sends to a replica."""
        for _ in range(TRIES):
            token = session_of(engine, person, https=True)
            answer = self.asked("GET", "/join", headers={"Cookie": token})
            if answer.headers["x-replica"] == replica:
                return token
        raise AssertionError(f"no session of {TRIES} came to {replica}")


def known_at(front: Front, token: str) -> list[bool]:
    """Return whether each replica, asked itself, takes a session for one."""
    asked = [
        httpx2.get(one.address, headers={"Cookie": token, "X-Forwarded-Proto": "https"}, timeout=60)
        for one in front.replicas.values()
    ]
    return [one.status_code == 200 for one in asked]


def connected(front: Front, token: str, origin: str) -> bool:
    """Open a WebSocket as a page of an origin does."""
    with connect(
        front.address.replace("https", "wss") + "/_stcore/stream",
        origin=Origin(origin),
        subprotocols=[Subprotocol("streamlit")],
        additional_headers={"Cookie": token},
    ) as socket:
        return socket.response is not None


def opened(browser: Browser, front: Front, token: str) -> Page:
    """Return a page of somebody signed in, in a browser of their own."""
    context = browser.new_context(ignore_https_errors=True)
    context.set_default_timeout(PATIENCE_MS)
    context.add_cookies([in_browser(token, front.address)])
    page = context.new_page()
    page.goto(front.address)
    return page


@contextmanager
def replicated(db_url: str, folder: Path) -> Iterator[Front]:
    """Serve a study by two replicas behind nginx; whoever asks here trusts its certificate."""
    if NGINX is None:
        reason = "no nginx: `apt-get install nginx-light`"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    servers = [Server(db_url, free_port()) for _ in range(2)]
    port = free_port()
    config = _config(folder, port, servers)
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor() as pool:
        patch.setenv("SSL_CERT_FILE", str(folder / "rate.pem"))
        list(pool.map(Server.start, servers))
        nginx = subprocess.Popen([NGINX, "-p", folder, "-c", config], stderr=subprocess.DEVNULL)
        try:
            _wait(port, nginx)
            yield Front(port, {f"127.0.0.1:{one.port}": one for one in servers}, nginx)
        finally:
            nginx.terminate()
            nginx.wait(START_SECONDS)
            for one in servers:
                one.stop()


def _config(folder: Path, port: int, servers: list[Server]) -> Path:
    """Write what the documentation says, with ports and paths of the test."""
    self_signed(folder, "rate")
    section = DOCS.read_text("utf-8").partition("## Several replicas")[2].partition("\n## ")[0]
    text = "\n".join(line for line in section.splitlines() if line.startswith("    "))
    said = {
        "127.0.0.1:8501": f"127.0.0.1:{servers[0].port}",
        "127.0.0.1:8502": f"127.0.0.1:{servers[1].port}",
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "/etc/ssl/": f"{folder}/",
    }
    for documented, here in said.items():
        assert documented in text, documented
        text = text.replace(documented, here)
    user = "user root;" if os.geteuid() == 0 else ""
    path = folder / "nginx.conf"
    path.write_text(ROUND.format(here=folder, user=user, documented=text))
    return path


def _wait(port: int, nginx: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert nginx.poll() is None, "nginx refused the documented configuration"
            assert time.monotonic() < until, "nginx did not start"
            time.sleep(0.05)
        else:
            return
