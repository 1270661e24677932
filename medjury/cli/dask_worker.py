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
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from data.errors import BadInput, MedjuryError
from medjury.own_packages import sources

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future as Task

COMPUTED_WITH = ("numpy", "scipy", "rapidfuzz", "tokenizers", "onnxruntime")
PACKAGES = ("medjury", *COMPUTED_WITH, "distributed")
COMPUTING = ("calibration", "data", "jury", "medjury")  # whose code runs at workers
CALLS_AT_ONCE = 512
Fingerprint = dict[str, str]
T = TypeVar("T")
LOOK_SECONDS = 2.0
PATIENCE_SECONDS = 60.0  # without any worker
LOSSES = 8  # times that what was sent to workers may be gone with all who held it
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

    A function, and all the values it holds, is sent to each worker once, and each piece with
    its task. Results come in the order of the pieces, whoever computed them. A piece whose
    worker dies is computed by another.
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
        """Yield the function of each piece, in order; few pieces are under way at a time."""
        return self._results(_Sent(self._client, fn), zip(*iterables, strict=False))

    def _results(self, sent: "_Sent", items: Iterator[tuple[Any, ...]]) -> Iterator[Any]:
        ahead = max(LEAST_AHEAD, AHEAD * sum(self._workers().values()))
        under_way: deque[_Piece] = deque()
        try:
            for item in items:
                under_way.append(self._begun(sent, item))
                if len(under_way) >= ahead:
                    yield self._result(sent, under_way.popleft())
            while under_way:
                yield self._result(sent, under_way.popleft())
        finally:
            self._client.cancel([call.task for call in under_way])

    def _begun(self, sent: "_Sent", item: tuple[Any, ...]) -> "_Piece":
        opaque = Opaque(item)
        try:
            begun = sent.value(self._patience)
        except (OSError, TimeoutError):
            raise self._alone() if self._workers() == {} else self._gone() from None
        task = self._client.submit(done, self._kind, begun, opaque, pure=False)
        return _Piece(item, task, sent.times)

    def _result(self, sent: "_Sent", piece: "_Piece") -> Any:
        """Return the outcome of a piece, computed again if it is lost with all who held its parts."""
        while True:
            try:
                return self._opened(self._waited(piece.task).value)
            except CancelledError:
                if self._client.status != "running":
                    raise self._gone() from None
                if piece.sent == sent.times:
                    sent.again(self._on)
                piece = self._begun(sent, piece.item)

    def _waited(self, task: "Task") -> Opaque:
        """Return what a task came to; raise where nobody is left to do it."""
        from distributed import KilledWorker

        alone_since = time.monotonic()
        while True:
            try:
                result: Opaque = task.result(timeout=LOOK_SECONDS)
                return result
            except TimeoutError:
                alone_since = time.monotonic() if self._workers() else alone_since
                if time.monotonic() - alone_since > self._patience:
                    raise self._alone() from None
            except KilledWorker:
                raise BadInput(
                    f"--on {self._on}: one piece of work took several workers down one after "
                    "another; give them more memory, or work here without --on"
                ) from None

    def _workers(self) -> dict[str, int]:
        try:
            workers: dict[str, int] = self._client.nthreads()
        except (OSError, TimeoutError):
            raise self._gone() from None
        return workers

    def _opened(self, outcome: Any) -> Any:
        if not isinstance(outcome, Failed):
            return outcome
        error, where = outcome.error, f"--on {self._on}, worker on {outcome.host}"
        if isinstance(error, OtherEnvironment):
            raise BadInput(f"{where}: it has {error}; install the same versions there")
        if isinstance(error, MedjuryError):
            raise type(error)(f"{where}: {error}")
        raise error

    def _alone(self) -> BadInput:
        return BadInput(
            f"--on {self._on}: no worker is left since {self._patience:.0f} s; start one with "
            f"`dask worker {self._on}` and run this again"
        )

    def _gone(self) -> BadInput:
        return BadInput(
            f"--on {self._on}: the scheduler is gone; start it and its workers, and run this again"
        )


class _Piece(NamedTuple):
    """A piece under way: what it is of, its task, and which sending of the function it has."""

    item: tuple[Any, ...]
    task: "Task"
    sent: int


class _Sent:
    """A function at the workers, sent on first use and again if all who held it are gone."""

    def __init__(self, client: "Client", function: Callable[..., Any]) -> None:
        self._client, self._sealed = client, Opaque(function)
        self._held: Task | None = None
        self.times = 0

    def value(self, patience: float) -> "Task":
        """Return where it is held; raise TimeoutError where nobody comes to hold it, in seconds."""
        if self._held is None:
            self._held = self._client.scatter(
                self._sealed, broadcast=True, hash=False, timeout=patience
            )
        return self._held

    def again(self, on: str) -> None:
        """Forget where it was held."""
        self._held, self.times = None, self.times + 1
        if self.times > LOSSES:
            raise BadInput(f"--on {on}: workers came and went {LOSSES} times; run this again")
