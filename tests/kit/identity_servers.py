"""Who vouches for people and machines, on the loopback: a hospital's sign-in, clouds' tokens."""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from kit.loopback import HTTPLoopback, QuietHandler

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

    class Handler(QuietHandler):
        def answer(self) -> None:
            self.vouch() if self.command == "POST" else self.show()

        def show(self) -> None:
            url = urlsplit(self.path)
            query = {name: value[0] for name, value in parse_qs(url.query).items()}
            if url.path == "/authorize":
                asked["nonce"] = query["nonce"]
                back = urlencode({"code": "good", "state": query["state"]})
                self.send_response(302)
                self.send_header("Location", f"{query['redirect_uri']}?{back}")
                self.end_headers()
            elif url.path == "/keys":
                self.send_json({"keys": [key.as_dict(private=False)]})
            else:
                self.send_json(
                    {
                        "issuer": address,
                        "authorization_endpoint": f"{address}/authorize",
                        "token_endpoint": f"{address}/token",
                        "jwks_uri": f"{address}/keys",
                    }
                )

        def vouch(self) -> None:
            self.read_body()
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
            self.send_json({"access_token": "x", "token_type": "Bearer", "id_token": token})

    with HTTPLoopback(Handler) as server:
        address = server.address
        yield address


class TokenServer(HTTPLoopback):
    """A server that gives tokens; `asked` holds the path and the body of each request."""

    def __init__(self, seconds: int = 3600) -> None:
        super().__init__(TokenHandler)
        self.seconds = seconds
        self.status = 200
        self.given = 0
        self.asked: list[tuple[str, str]] = []

    @property
    def url(self) -> str:
        """Where tokens are given."""
        return f"{self.address}/token"

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

    def token(self) -> dict[str, Any]:
        """Return a new token, or the error that is planned."""
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


class TokenHandler(QuietHandler):
    """Notes what was asked and gives a token."""

    def answer(self) -> None:
        """Answer for the server that it belongs to."""
        tokens: TokenServer = self.server.owner  # type: ignore[attr-defined]
        tokens.asked.append((self.path, self.read_body().decode()))
        self.send_json(tokens.token(), tokens.status)


def auth(address: str, here: str) -> dict[str, str]:
    """Return what an administrator of a server at `here` writes of a hospital at an address."""
    return {
        "redirect_uri": f"{here}/oauth2callback",
        "cookie_secret": "thirty-two characters for a test",
        "client_id": CLIENT,
        "client_secret": SECRET,
        "server_metadata_url": f"{address}/.well-known/openid-configuration",
    }
