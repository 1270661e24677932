"""A hospital's sign-in for tests: OpenID Connect on loopback that lets anybody in at once."""

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

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
