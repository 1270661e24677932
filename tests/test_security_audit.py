"""`.ci/audit`: a known vulnerability of a pinned version fails, and no advisories are no failure."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

AUDIT = Path(__file__).parent.parent / ".ci" / "audit"
FLAW = {
    "id": "GHSA-made-up",
    "summary": "made up",
    "aliases": [],
    "affected": [
        {
            "package": {"name": "uvicorn", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "99"}]}],
        }
    ],
}


class Advisories(BaseHTTPRequestHandler):
    """A service of advisories that knows one, of uvicorn."""

    def do_POST(self) -> None:
        """Answer what is known of one package."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        known = asked["package"]["name"] in self.server.flawed  # type: ignore[attr-defined]
        body = json.dumps({"vulns": [FLAW]} if known else {}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def advisories() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Advisories)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def audited(port: int) -> tuple[int, str]:
    """Audit the project's own pins at a service on this machine."""
    url = f"http://127.0.0.1:{port}/v1/query"
    call = [sys.executable, str(AUDIT), "-s", "osv", "--osv-url", url]
    ran = subprocess.run(call, capture_output=True, text=True, check=False, timeout=120)
    return ran.returncode, ran.stdout + ran.stderr


def test_a_known_vulnerability_fails_the_audit_and_none_passes(
    advisories: ThreadingHTTPServer,
) -> None:
    advisories.flawed = {"uvicorn"}  # type: ignore[attr-defined]
    code, told = audited(advisories.server_port)
    assert (code, "GHSA-made-up, fixed in 99" in told) == (1, True), told
    advisories.flawed = set()  # type: ignore[attr-defined]
    code, told = audited(advisories.server_port)
    assert (code, "0 known vulnerabilities, 0 to mend" in told) == (0, True), told


def test_where_no_advisories_can_be_had_the_audit_says_so_and_passes() -> None:
    code, told = audited(1)
    assert (code, "nothing was audited" in told) == (0, True), told
