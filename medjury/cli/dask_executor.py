"""Work at Dask's workers: figures, computed again where lost, and calls, which cost money.

No call is made twice unasked.
"""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from data.errors import BadInput, BadPanel, MedjuryError
from jury.elsewhere import LOST, NO_WORKER, Elsewhere, NobodyThere, missing_keys
from jury.panel import Panel
from medjury.cli.dask_connect import (
    NotAnswering,
    answers,
    checked,
    connected,
    refuse_other_environments,
    told,
)
from medjury.cli.dask_worker import (
    Failed,
    Opaque,
    OtherEnvironment,
    called,
    done,
    environment_fingerprint,
)
from medjury.cli.output import say

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future as Task

T = TypeVar("T")
LOOK_SECONDS = 2.0

WAIT_SECONDS = 2.0
PATIENCE_SECONDS = 60.0  # without any worker
LOSSES = 8  # times that what was sent to workers may be gone with all who held it
AHEAD = 3  # pieces under way for each thread of a worker
LEAST_AHEAD = 12


@contextmanager
def calling(
    on: str, panel: Panel, concurrency: int, json_to: Path | None = None
) -> Iterator[dict[str, Elsewhere]]:
    """Yield each juror's line through the workers at an address.

    Raises
    ------
    BadInput
        As `dask_connect.computing`.
    BadPanel
        If a worker's environment lacks a juror's key.
    """
    with connected(on) as client:
        workers = checked(client, on)
        calls = Calls(client, on, panel, concurrency)
        calls.admit(workers)
        for line in told("texts are", on, workers):
            say(line, json_to)
        try:
            yield {one.name: Elsewhere(one, calls) for one in panel.juror}
        finally:
            client.close()  # first: a call under way would be waited for
            calls.shutdown(wait=False, cancel_futures=True)


class Calls(ThreadPoolExecutor):
    """Makes each call at the worker with the fewest under way; at most `most` in all.

    Calls are no Dask tasks: Dask would make those of a dead worker again without a word, and
    nobody could hold what they cost against the cap. Here they break, and the owner decides.
    Workers that come later are used once they are looked at; those with other versions or
    without a key are not.
    """

    def __init__(self, client: "Client", on: str, panel: Panel, most: int) -> None:
        super().__init__(max(1, most), thread_name_prefix="asks")
        self._client, self._on, self._panel = client, on, panel
        self._under_way: Counter[str] = Counter()
        self._admitted: set[str] = set()
        self._refused: set[str] = set()
        self._lock = threading.Lock()  # held for no longer than it takes to count
        self._looking = threading.Lock()
        self._looked = 0.0

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
        """Return the future of a call; it breaks with BrokenExecutor if its worker dies."""
        return super().submit(self._called, fn, *args, **kwargs)

    def admit(self, workers: Collection[str]) -> None:
        """Take workers in; raise if one is another kind or lacks a key."""
        refuse_other_environments(self._client, self._on, workers)
        names = {one.api_key_env: one for one in reversed(self._panel.juror)}
        found = answers(self._client, self._on, workers, missing_keys, sorted(names))
        for worker, name in ((worker, name) for worker, some in found.items() for name in some):
            raise BadPanel(
                f"panel {self._panel.name}, juror {names[name].name}: the environment variable "
                f"{name} is not set at worker {worker}; put the key for {names[name].host} in it "
                "where that worker is started"
            )
        with self._lock:
            self._admitted |= {*workers}
            self._looked = time.monotonic()

    def _called(self, function: Callable[..., T], *arguments: Any) -> T:
        worker = self._taken()
        try:
            work = Opaque((function, *arguments))
            found = self._client.run(called, work, workers=[worker], on_error="return")[worker]
        except Exception as error:
            found = error
        finally:
            with self._lock:
                self._under_way[worker] -= 1
        if not isinstance(found, Opaque):
            with self._lock:
                self._admitted.discard(worker)
            raise BrokenExecutor(f"worker {worker} {LOST}")
        if isinstance(found.value, Failed):
            raise found.value.error
        outcome: T = found.value
        return outcome

    def _taken(self) -> str:
        """Return the worker with the fewest calls under way, one more counted."""
        self._look_around()
        with self._lock:
            if not self._admitted:
                raise NobodyThere(f"{NO_WORKER} at {self._on}")
            worker = min(sorted(self._admitted), key=lambda one: self._under_way[one])
            self._under_way[worker] += 1
            return worker

    def _look_around(self) -> None:
        """Look for workers from time to time, one call at a time; others wait only without any."""
        with self._lock:
            alone, before = not self._admitted, self._looked
        due = alone or time.monotonic() - before > LOOK_SECONDS
        if not due or not self._looking.acquire(blocking=alone):
            return
        try:
            if self._looked == before:  # else another call has looked meanwhile
                self._look()
        finally:
            self._looking.release()

    def _look(self) -> None:
        """Take in workers that have come, and forget those that have gone."""
        try:
            there = {*self._client.nthreads()}
        except Exception:
            there = set()
        with self._lock:
            self._admitted &= there
            new = sorted(there - self._admitted - self._refused)
        for worker in new:
            try:
                self.admit([worker])
            except NotAnswering:
                continue  # it is dying, or starting
            except BadInput:
                self._refused.add(worker)
        with self._lock:
            self._looked = time.monotonic()


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
            self._client.cancel([one.task for one in under_way])

    def _begun(self, sent: "_Sent", item: tuple[Any, ...]) -> "_Piece":
        opaque = Opaque(item)
        try:
            held = sent.value(self._patience)
        except (OSError, TimeoutError):
            raise self._alone() if self._workers() == {} else self._gone() from None
        task = self._client.submit(done, self._kind, held, opaque, pure=False)
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
                found: Opaque = task.result(timeout=WAIT_SECONDS)
                return found
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
            found: dict[str, int] = self._client.nthreads()
        except (OSError, TimeoutError):
            raise self._gone() from None
        return found

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
