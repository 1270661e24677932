"""Where clouds give out credentials, on the loopback: Azure's managed identity, Google's tokens.

`with TokenServer() as tokens:` counts the tokens it has given ("token-1", "token-2", ...);
`seconds` is how long each is said to last, and `status` what is answered instead of one.
"""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa


class TokenServer:
    """A server that gives tokens; `asked` holds the path and the body of each request."""

    def __init__(self, seconds: int = 3600) -> None:
        self.seconds = seconds
        self.status = 200
        self.given = 0
        self.asked: list[tuple[str, str]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Where tokens are given."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/token"

    def managed_identity(self) -> dict[str, str]:
        """Return the environment of a machine in Azure that has an identity of its own."""
        return {"IDENTITY_ENDPOINT": self.url, "IDENTITY_HEADER": "header"}

    def service_account(self, folder: Path) -> dict[str, str]:
        """Return the environment of a machine with a Google service account's file."""
        key = rsa.generate_private_key(65537, 2048)
        pem = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        path = folder / "account.json"
        account = {
            "type": "service_account",
            "project_id": "the-project",
            "private_key": pem.decode(),
            "private_key_id": "1",
            "client_email": "jury@the-project.example",
            "token_uri": self.url,
        }
        path.write_text(json.dumps(account), "utf-8")
        return {"GOOGLE_APPLICATION_CREDENTIALS": str(path)}

    def _answer(self) -> dict[str, Any]:
        if self.status != 200:
            return {"error": "invalid_grant", "error_description": "no"}
        self.given += 1
        return {
            "access_token": f"token-{self.given}",
            "token_type": "Bearer",
            "expires_in": self.seconds,
            "expires_on": str(int(time.time()) + self.seconds),
            "resource": "r",
        }

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                size = int(self.headers.get("content-length", 0))
                server.asked.append((self.path, self.rfile.read(size).decode()))
                body = json.dumps(server._answer()).encode()
                self.send_response(server.status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler
