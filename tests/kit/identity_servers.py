"""Who vouches for people and machines, on the loopback: a hospital's sign-in, clouds' tokens."""

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlencode, urlsplit

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT, SECRET = "medjury", "a secret between medjury and the test"


@contextmanager
def hospital(claims: dict[str, Any], forged: bool = False) -> Iterator[str]:
    """Serve a hospital that says these claims of everybody; yield its address.

    A code is good for as often as it is asked. `forged` signs with a key that is not published.
    """
    from joserfc import jwt
    from joserfc.jwk import RSAKey

    key = RSAKey.generate_key(2048, {"kid": "k1", "use": "sig", "alg": "RS256"})
    signer = RSAKey.generate_key(2048, {"kid": "k1"}) if forged else key
    asked: dict[str, str] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            query = {name: value[0] for name, value in parse_qs(url.query).items()}
            if url.path == "/authorize":
                asked["nonce"] = query["nonce"]
                back = urlencode({"code": "good", "state": query["state"]})
                self.send_response(302)
                self.send_header("Location", f"{query['redirect_uri']}?{back}")
                self.end_headers()
            elif url.path == "/keys":
                self.tell({"keys": [key.as_dict(private=False)]})
            else:
                self.tell(
                    {
                        "issuer": address,
                        "authorization_endpoint": f"{address}/authorize",
                        "token_endpoint": f"{address}/token",
                        "jwks_uri": f"{address}/keys",
                    }
                )

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            sent = base64.b64decode(self.headers["Authorization"].split()[1]).decode()
            assert sent.startswith(f"{CLIENT}:"), sent
            now = int(time.time())
            body: dict[str, Any] = {
                "iss": address,
                "aud": CLIENT,
                "sub": "u1",
                "iat": now,
                "exp": now + 300,
            }
            body |= {"nonce": asked["nonce"]} | claims
            token = jwt.encode({"alg": "RS256", "kid": "k1"}, body, signer)
            self.tell({"access_token": "x", "token_type": "Bearer", "id_token": token})

        def tell(self, body: dict[str, Any]) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield address
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


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
