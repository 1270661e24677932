"""A knock at a Dask scheduler: whether one is there, and lets this machine in by that address.

Dask would try again for long, wait without end for one that is silent, or say nothing of why.
"""

import socket
import ssl
from pathlib import Path
from urllib.parse import urlsplit

from data.errors import BadInput

SECONDS = 15.0  # to find the scheduler, and its first worker
QUIET_SECONDS = 2.0  # a scheduler speaks first; one that does not may be waiting for TLS
LONGEST_GREETING = 2**20  # bytes; it begins with its length in eight
ENCRYPTION = "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION"
CA = "DASK_DISTRIBUTED__COMM__TLS__CA_FILE"
CERT = "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT"
KEY = "DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY"
START = "start one with `dask scheduler`, and name the address it prints"


def knock(on: str, address: str, context: ssl.SSLContext | None) -> None:
    """Raise BadInput, saying what to do, where no Dask scheduler can be spoken to."""
    parts = urlsplit(address)
    place = parts.hostname or "", parts.port or 0
    try:
        with socket.create_connection(place, SECONDS) as line:
            greeting = _greeting(on, line) if context is None else _let_in(on, line, context)
    except OSError as error:
        why = error.strerror or "no answer"
        raise BadInput(f"--on {on}: no Dask scheduler answers there ({why}); {START}") from error
    if not 0 < int.from_bytes(greeting, "little") < LONGEST_GREETING:
        raise BadInput(f"--on {on}: what answers there is no Dask scheduler; {START}")


def certificates(on: str) -> ssl.SSLContext | None:
    """Return what Dask's settings let this machine show and trust; None where it is not tls://."""
    from distributed import Security

    try:
        security = Security()
        if not on.startswith("tls://"):
            if security.require_encryption:
                raise BadInput(f"--on {on}: {ENCRYPTION} is set here: give tls://HOST:PORT")
            return None
        _files(on, security.get_tls_config_for_role("client"))
        context: ssl.SSLContext = security.get_connection_args("client")["ssl_context"]
    except (OSError, ValueError) as error:  # SSLError among them
        why = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise BadInput(
            f"--on {on}: {CA}, {CERT} and {KEY} must name a CA, a certificate and its key "
            f"in PEM form ({why})"
        ) from error
    return context


def _files(on: str, named: dict[str, str | None]) -> None:
    """Raise BadInput where a file is not named or not there; the key may stand in the certificate's."""
    names = {CA: named["ca_file"], CERT: named["cert"]}
    if without := [name for name, path in names.items() if not path]:
        raise BadInput(
            f"--on {on}: tls:// needs certificates: set {' and '.join(without)} "
            "(docs/scale.md, Certificates)"
        )
    for name, path in (names | {KEY: named["key"]}).items():
        if path and "\n" not in path and not Path(path).is_file():
            raise BadInput(f"--on {on}: {name}={path}: no such file")


def _let_in(on: str, line: socket.socket, context: ssl.SSLContext) -> bytes:
    """Return how the greeting begins that a scheduler sends who has seen a certificate."""
    hung_up = BadInput(
        f"--on {on}: the scheduler hung up at this machine's certificate: {CERT} must name one "
        "that is signed by the scheduler's CA and valid today"
    )
    try:
        with context.wrap_socket(line) as encrypted:
            greeting = encrypted.recv(8)
    except ssl.SSLCertVerificationError as error:
        raise BadInput(
            f"--on {on}: the scheduler's certificate is not accepted ({error.verify_message}): "
            f"it must be signed by the CA in {CA} and valid today"
        ) from error
    except ssl.SSLError as error:
        if isinstance(error, ssl.SSLEOFError) or "ALERT" in (error.reason or ""):
            raise hung_up from error
        raise BadInput(
            f"--on {on}: what answers there does not speak TLS; start it with "
            "`dask scheduler --protocol tls`, or give tcp://, which is not encrypted"
        ) from error
    except ConnectionError as error:
        raise hung_up from error
    if not greeting:
        raise hung_up
    return greeting


def _greeting(on: str, line: socket.socket) -> bytes:
    """Return how the greeting begins; raise BadInput where TLS is spoken."""
    line.settimeout(QUIET_SECONDS)
    try:
        return line.recv(8)
    except TimeoutError:
        if _speaks_tls(line.getpeername()[:2]):
            raise BadInput(
                f"--on {on}: the scheduler speaks TLS; give tls://HOST:PORT, with certificates "
                "(docs/scale.md, Certificates)"
            ) from None
    line.settimeout(SECONDS - 2 * QUIET_SECONDS)
    return line.recv(8)


def _speaks_tls(place: tuple[str, int]) -> bool:
    """Return whether a greeting in TLS is answered in TLS; nothing else is sent."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts anybody: it has nothing to say
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection(place, QUIET_SECONDS) as line:
            context.wrap_socket(line).close()
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")
    except OSError:
        return False
    return True
