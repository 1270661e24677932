"""`--on ADDRESS`: the work is done by Dask workers elsewhere, or by processes of this machine."""

import asyncio
import logging
import re
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
from medjury.cli.at_a_worker import difference, kernels, kind
from medjury.cli.elsewhere_knock import SECONDS, START, certificates, knock
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


@contextmanager
def computing(on: str | None, what: str, json_to: Path | None = None) -> Iterator[Executor | None]:
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
    from medjury.cli.elsewhere_tasks import Tasks

    with connected(on) as client:
        workers = checked(client, on)
        for line in (*told(what, on, workers), *other_kernels(client, on, workers)):
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
    """Return the workers, address -> threads; raise BadInput if there is none or one is another kind."""
    try:
        client.wait_for_workers(1, timeout=SECONDS)
    except TimeoutError:
        raise BadInput(
            f"--on {on}: the scheduler has no worker; start one with `dask worker {on}`"
        ) from None
    workers: dict[str, int] = client.nthreads()
    refuse_other_kinds(client, on, workers)
    return workers


class NotAnswering(BadInput):
    """A worker that the scheduler names and that does not answer."""


def refuse_other_kinds(client: "Client", on: str, workers: Iterable[str]) -> None:
    """Raise BadInput if a worker has other versions or code: its figures could differ."""
    own = kind()
    for worker, found in answers(client, on, workers, version, "medjury").items():
        if isinstance(found, Exception):
            raise _other(on, worker, f"medjury missing, here {own['medjury']}")
    for worker, found in answers(client, on, workers, kind).items():
        older = isinstance(found, Exception)
        if differs := "an older medjury" if older else difference(own, found):
            raise _other(on, worker, differs)


def answers(
    client: "Client", on: str, workers: Iterable[str], function: Callable[..., Any], *arguments: Any
) -> dict[str, Any]:
    """Return what a function answers at each worker, or the exception it raised there.

    No argument may hold a text: Dask logs those of a function that fails. A worker that is
    silent for `ANSWER_SECONDS` raises NotAnswering.
    """
    asked = [*workers]

    async def one(worker: str) -> Any:
        answer = client.run(function, *arguments, workers=[worker], on_error="return")
        try:
            return (await asyncio.wait_for(answer, ANSWER_SECONDS))[worker]
        except TimeoutError as error:
            return error

    async def each() -> list[Any]:
        return await asyncio.gather(*map(one, asked))

    try:
        found = dict(zip(asked, client.sync(each), strict=True))
    except (OSError, KeyError) as error:
        raise NotAnswering(f"--on {on}: the scheduler does not answer") from error
    for worker, answer in found.items():
        if isinstance(answer, (OSError, TimeoutError)):
            raise NotAnswering(f"--on {on}: worker {worker} does not answer; look at its log")
    return found


def told(what: str, on: str, workers: dict[str, int]) -> list[str]:
    """Return what is said before anything is sent: what goes to whom, and whether it is open."""
    hosts = sorted({urlsplit(one).hostname or one for one in workers})
    where = f"{what} sent to {counted(len(workers), 'worker')} on {', '.join(hosts)}"
    scheduler = urlsplit(on).hostname  # all goes through it; its own workers may say 127.0.0.1
    between = [scheduler] if scheduler and scheduler not in hosts else []
    through = "".join(f", through the scheduler on {one}" for one in between)
    plain = [urlsplit(one).hostname or one for one in (on, *workers) if one.startswith("tcp://")]
    open_line = not all(map(_loopback, plain))
    return [where + through + ("; tcp:// is not encrypted, tls:// is" if open_line else "")]


def other_kernels(client: "Client", on: str, workers: dict[str, int]) -> list[str]:
    """Return a sentence where workers' processors may round the last digit in another way."""
    here = kernels()
    return [
        f"worker {one}: processor kernels {found}, here {here}: last digits may differ"
        for one, found in answers(client, on, workers, kernels).items()
        if found != here
    ]


def _refuse(on: str) -> None:
    if not (LOCAL.fullmatch(on) or REMOTE.fullmatch(on)):
        raise BadInput(f"--on {on}: give {FORMS}")
    if find_spec("distributed") is None:
        raise BadInput(f"--on {on}: Dask is not installed; install it with `{INSTALL}`")


def _cluster(on: str) -> "AbstractContextManager[Any]":
    """Return processes on this machine where they are asked for, which end with the block."""
    found = LOCAL.fullmatch(on)
    if found is None:
        return nullcontext()
    from distributed import LocalCluster

    cluster: AbstractContextManager[Any] = LocalCluster(
        n_workers=int(found[1]),
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
