"""Work at Dask's workers: what hands pieces out, and what runs there, handed over and back opaque.

Dask logs what fails with its arguments. So what may hold a text travels in a `Opaque`, which
shows nothing of it, and no piece of work ever fails: a failure is an outcome too.
"""

import asyncio
import hashlib
import platform
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, TypeVar

from data.errors import BadInput, MedjuryError
from medjury.own_packages import sources

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future as Task

COMPUTED_WITH = ("numpy", "scipy", "rapidfuzz", "tokenizers")
PACKAGES = ("medjury", *COMPUTED_WITH, "distributed")
COMPUTING = ("calibration", "data", "jury", "medjury")  # whose code runs at workers
CALLS_AT_ONCE = 512
Fingerprint = dict[str, str]
T = TypeVar("T")
LOOK_SECONDS = 2.0
SCHEDULER_SECONDS = 15.0  # for the scheduler to name its workers
PATIENCE_SECONDS = 40.0  # without any worker
AHEAD = 3  # pieces under way for each thread of a worker
LEAST_AHEAD = 12


@dataclass(frozen=True, eq=False, repr=False)
class Opaque:
    """Something that is sent and must not be shown."""

    value: Any


@dataclass(frozen=True, eq=False, repr=False)
class Failed:
    """What a piece of work raised, and where."""

    error: Exception
    host: str


def environment_fingerprint() -> Fingerprint:
    """Return all that must be the same on both sides for the figures to be the same."""
    return dict(_fingerprint())


def kernels() -> str:
    """Return which processor instructions numpy's products use here: they decide last digits."""
    import numpy as np
    from threadpoolctl import threadpool_info

    np.dot(np.ones(2), np.ones(2))
    blas = sorted(
        {str(library.get("architecture", "")) for library in threadpool_info()} - {"", "None"}
    )
    simd = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    return f"{' '.join(blas)} {simd[-1] if simd else ''}".strip()


def kept(work: Opaque) -> Opaque:
    """Return what is given: as a task, it is what others take from whoever holds it."""
    return work


def done(expected: Fingerprint, work: Opaque, item: Opaque) -> Opaque:
    """Return the outcome of a function of some arguments, on one thread of the matrix library."""
    own = environment_fingerprint()
    if own != expected:  # a worker that joined after the others were looked at
        return Opaque(Failed(OtherEnvironment(difference(expected, own)), platform.node()))
    _one_thread()
    return Opaque(_outcome(work.value, item.value))


async def called(work: Opaque) -> Opaque:
    """Return the outcome of a call that mostly waits, beside others and off the worker's loop."""
    function, *arguments = work.value
    loop = asyncio.get_running_loop()
    return Opaque(await loop.run_in_executor(_threads(), _outcome, function, arguments))


class OtherEnvironment(Exception):
    """A worker whose versions or code are not those of whoever sends it work."""


def difference(expected: Fingerprint, actual: Fingerprint) -> str:
    """Return what differs, "" if nothing does: "numpy 1.0, here 2.0"."""
    return ", ".join(
        f"{name} {actual.get(name, 'missing')}, here {value}"
        for name, value in expected.items()
        if actual.get(name) != value
    )


def _outcome(function: Callable[..., Any], arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Exception as error:
        return Failed(error, platform.node())


@cache
def _fingerprint() -> tuple[tuple[str, str], ...]:
    python = ".".join(platform.python_version_tuple()[:2])
    packages = [(name, installed(name)) for name in PACKAGES]
    return (("python", python), *packages, ("code of medjury", _code()))


def installed(name: str) -> str:
    """Return the version of a package, "missing" without it."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _code() -> str:
    """Return a short hash of the code that decides figures and verdicts."""
    digest = hashlib.sha256()
    for name, path in sources(*COMPUTING):
        if "report" not in name.split("/"):
            digest.update(name.encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


@cache
def _one_thread() -> None:
    """Keep the matrix library on one thread for good: with several, last digits may differ."""
    import numpy as np  # noqa: F401 its library is there to be limited only once it is loaded
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(CALLS_AT_ONCE, thread_name_prefix="call")


class Tasks(Executor):
    """Maps functions over pieces at the workers.

    A function, and all the values it holds, is a task of its own: Dask keeps it, hands it to the
    workers that need it, and makes it and every unfinished piece again where a worker dies.
    Results come in the order of the pieces, whoever computed them.
    """

    def __init__(self, client: "Client", on: str, patience: float = PATIENCE_SECONDS) -> None:
        self._client, self._on, self._patience = client, on, patience
        self._kind = environment_fingerprint()

    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
    ) -> Iterator[T]:
        """Yield the function of each piece, in order; few pieces are under way at a time.

        Raises
        ------
        BadInput
            If the scheduler is lost, no worker is left, or workers die of a piece.
        """
        return self._results(Opaque(fn), zip(*iterables, strict=False))

    def _results(self, work: Opaque, items: Iterator[tuple[Any, ...]]) -> Iterator[Any]:
        ahead = max(LEAST_AHEAD, AHEAD * sum(self._workers().values()))
        held = self._submitted(kept, work)
        under_way: deque[Task] = deque()
        try:
            for item in items:
                under_way.append(self._submitted(done, self._kind, held, Opaque(item)))
                if len(under_way) >= ahead:
                    yield self._result(under_way.popleft())
            while under_way:
                yield self._result(under_way.popleft())
        finally:
            for task in (held, *under_way):
                task.release()

    def _submitted(self, function: Callable[..., Opaque], *arguments: Any) -> "Task":
        with self._translated():
            return self._client.submit(function, *arguments, pure=False)

    def _result(self, task: "Task") -> Any:
        """Return what a piece came to; raise where nobody is left to do it."""
        alone_since = time.monotonic()
        while (outcome := self._waited(task)) is None:
            alone_since = time.monotonic() if self._workers() else alone_since
            if time.monotonic() - alone_since > self._patience:
                raise BadInput(
                    f"--on {self._on}: no worker is left since {self._patience:.0f} s; start one "
                    f"with `dask worker {self._on}` and run this again"
                )
        return self._opened(outcome.value)

    def _waited(self, task: "Task") -> Opaque | None:
        """Return the outcome of a task, None if it is not there within a moment."""
        with self._translated(), suppress(TimeoutError):
            outcome: Opaque = task.result(timeout=LOOK_SECONDS)
            return outcome
        return None

    def _workers(self) -> dict[str, int]:
        with self._translated():
            workers: dict[str, int] = self._client.nthreads(callback_timeout=SCHEDULER_SECONDS)
            return workers

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Say in one message what Dask raises when it cannot go on."""
        from distributed import KilledWorker
        from distributed.client import ClosedClientError

        try:
            yield
        except KilledWorker as error:
            raise BadInput(
                f"--on {self._on}: {error.allowed_failures + 1} workers died one after another "
                "with the same piece of work; give them more memory, or work here without --on"
            ) from None
        except (CancelledError, ClosedClientError, OSError) as error:
            raise BadInput(
                f"--on {self._on}: the connection to the scheduler was lost; see that it and its "
                "workers run, and run this again"
            ) from error

    def _opened(self, outcome: Any) -> Any:
        if not isinstance(outcome, Failed):
            return outcome
        error, where = outcome.error, f"--on {self._on}, worker on {outcome.host}"
        if isinstance(error, OtherEnvironment):
            raise BadInput(f"{where}: it has {error}; install the same versions there")
        if isinstance(error, MedjuryError):
            raise type(error)(f"{where}: {error}")
        raise error
