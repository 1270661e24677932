"""`--on ADDRESS`: the work is done by Dask workers elsewhere, or by processes of this machine.

Before Dask is asked for anything a knock tells whether a scheduler is there and lets this machine
in: Dask would try again for long, wait without end for one that is silent, or say nothing of why.
"""

import asyncio
import logging
import re
import socket
import ssl
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, nullcontext
from importlib.metadata import version
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from data.errors import BadInput
from medjury.cli.dask_worker import Tasks, difference, environment_fingerprint, kernels
from medjury.cli.output import counted, say

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from distributed import Client

ANSWER_SECONDS = 30.0  # for a worker to say what it is; its first answer loads medjury there
LOCAL = re.compile(r"local:([1-9][0-9]{0,2})")
REMOTE = re.compile(r"(tcp|tls)://[^\s/:@]+:[0-9]{1,5}|(tcp|tls)://\[[0-9a-fA-F:.]+\]:[0-9]{1,5}")
FORMS = "tcp://HOST:8786 or tls://HOST:8786 of a Dask scheduler, or local:N for N processes here"
INSTALL = "uv sync --extra dask"
SCORES = "scores, no texts, are"  # of what is told to be sent
On = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="ADDRESS",
        help="Dask workers that do the work: tcp://HOST:8786, or local:N for processes here.",
    ),
]
OnNowhere = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="ADDRESS",
        help="Takes no effect: this table is computed here, which is quicker than at Dask workers.",
    ),
]
SECONDS = 15.0  # to find the scheduler, and its first worker
QUIET_SECONDS = 2.0  # a scheduler speaks first; one that does not may be waiting for TLS
LONGEST_GREETING = 2**20  # bytes; it begins with its length in eight
ENCRYPTION = "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION"
CA = "DASK_DISTRIBUTED__COMM__TLS__CA_FILE"
CERT = "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT"
KEY = "DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY"
START = "start one with `dask scheduler`, and name the address it prints"


@contextmanager
def computing(
    on: str | None, contents: str, json_to: Path | None = None
) -> Iterator[Executor | None]:
    """Yield what computes at an address, None for this process; says what goes where.

    Raises
    ------
    BadInput
        Before anything is sent: no such address, no scheduler or worker there, or a worker
        with other versions.
    """
    if on is None:
        yield None
        return
    with connected(on) as client:
        workers = checked(client, on)
        for line in (*told(contents, on, workers), *other_kernels(client, on, workers)):
            say(line, json_to)
        yield Tasks(client, on)


@contextmanager
def connected(on: str) -> Iterator["Client"]:
    """Yield a line to the scheduler at an address, or to one made here that ends with the block."""
    _refuse(on)
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    context = certificates(on)
    with _cluster(on) as cluster:
        address = on if cluster is None else cluster.scheduler_address
        knock(on, address, context)
        client = _client(on, address)
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        try:
            yield client
        finally:
            client.close(timeout=SECONDS)


def checked(client: "Client", on: str) -> dict[str, int]:
    """Return the workers, address -> threads; raise BadInput if there is none, or one differs."""
    try:
        client.wait_for_workers(1, timeout=SECONDS)
    except TimeoutError:
        raise BadInput(
            f"--on {on}: the scheduler has no worker; start one with `dask worker {on}`"
        ) from None
    workers: dict[str, int] = client.nthreads()
    refuse_other_environments(client, on, workers)
    return workers


class NotAnswering(BadInput):
    """A worker that the scheduler names and that does not answer."""


def refuse_other_environments(client: "Client", on: str, workers: Iterable[str]) -> None:
    """Raise BadInput if a worker has other versions or code: its figures could differ."""
    own = environment_fingerprint()
    for worker, result in answers(client, on, workers, version, "medjury").items():
        if isinstance(result, Exception):
            raise _other(on, worker, f"medjury missing, here {own['medjury']}")
    for worker, result in answers(client, on, workers, environment_fingerprint).items():
        older = isinstance(result, Exception)
        if differs := "an older medjury" if older else difference(own, result):
            raise _other(on, worker, differs)


def answers(
    client: "Client", on: str, workers: Iterable[str], function: Callable[..., Any], *arguments: Any
) -> dict[str, Any]:
    """Return what a function answers at each worker, or the exception it raised there.

    No argument may hold a text: Dask logs those of a function that fails. A worker that is
    silent for `ANSWER_SECONDS` raises NotAnswering.
    """
    addresses = [*workers]

    async def one(worker: str) -> Any:
        answer = client.run(function, *arguments, workers=[worker], on_error="return")
        try:
            return (await asyncio.wait_for(answer, ANSWER_SECONDS))[worker]
        except TimeoutError as error:
            return error

    async def each() -> list[Any]:
        return await asyncio.gather(*map(one, addresses))

    try:
        results = dict(zip(addresses, client.sync(each), strict=True))
    except (OSError, KeyError) as error:
        raise NotAnswering(f"--on {on}: the scheduler does not answer") from error
    for worker, answer in results.items():
        if isinstance(answer, (OSError, TimeoutError)):
            raise NotAnswering(f"--on {on}: worker {worker} does not answer; look at its log")
    return results


def told(contents: str, on: str, workers: dict[str, int]) -> list[str]:
    """Return what is said before anything is sent: what goes to whom, and whether it is open."""
    hosts = sorted({urlsplit(worker).hostname or worker for worker in workers})
    where = f"{contents} sent to {counted(len(workers), 'worker')} on {', '.join(hosts)}"
    scheduler = urlsplit(on).hostname  # all goes through it; its own workers may say 127.0.0.1
    between = [scheduler] if scheduler and scheduler not in hosts else []
    through = "".join(f", through the scheduler on {host}" for host in between)
    addresses = (address for address in (on, *workers) if address.startswith("tcp://"))
    plain = [urlsplit(address).hostname or address for address in addresses]
    open_line = not all(map(_loopback, plain))
    return [where + through + ("; tcp:// is not encrypted, tls:// is" if open_line else "")]


def other_kernels(client: "Client", on: str, workers: dict[str, int]) -> list[str]:
    """Return a sentence where workers' processors may round the last digit in another way."""
    own = kernels()
    return [
        f"worker {worker}: processor kernels {others}, here {own}: last digits may differ"
        for worker, others in answers(client, on, workers, kernels).items()
        if others != own
    ]


def _refuse(on: str) -> None:
    if not (LOCAL.fullmatch(on) or REMOTE.fullmatch(on)):
        raise BadInput(f"--on {on}: give {FORMS}")
    if find_spec("distributed") is None:
        raise BadInput(f"--on {on}: Dask is not installed; install it with `{INSTALL}`")


def _cluster(on: str) -> "AbstractContextManager[Any]":
    """Return processes on this machine where they are asked for, which end with the block."""
    match = LOCAL.fullmatch(on)
    if match is None:
        return nullcontext()
    from distributed import LocalCluster

    cluster: AbstractContextManager[Any] = LocalCluster(
        n_workers=int(match[1]),
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address=None,
        silence_logs=logging.CRITICAL,
    )
    return cluster


def _client(on: str, address: str) -> "Client":
    from distributed import Client
    from distributed.versions import VersionMismatchWarning

    warnings.filterwarnings("ignore", category=VersionMismatchWarning)  # ours is refused and named
    warnings.filterwarnings("ignore", message="Sending large graph")  # scores are sent once
    try:
        return Client(address, timeout=SECONDS, set_as_default=False)
    except (OSError, TypeError, RuntimeError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it hung up"
        raise BadInput(f"--on {on}: no Dask scheduler answers there ({why}); {START}") from error


def _other(on: str, worker: str, differs: str) -> BadInput:
    return BadInput(
        f"--on {on}: worker {worker} has {differs}; install the same versions there, so that the "
        "figures are those of this machine"
    )


def _loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def knock(on: str, address: str, context: ssl.SSLContext | None) -> None:
    """Raise BadInput, saying what to do, where no Dask scheduler can be spoken to."""
    parts = urlsplit(address)
    host_and_port = parts.hostname or "", parts.port or 0
    try:
        with socket.create_connection(host_and_port, SECONDS) as line:
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


def _speaks_tls(address: tuple[str, int]) -> bool:
    """Return whether a greeting in TLS is answered in TLS; nothing else is sent."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts anybody: it has nothing to say
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection(address, QUIET_SECONDS) as line:
            context.wrap_socket(line).close()
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")
    except OSError:
        return False
    return True
