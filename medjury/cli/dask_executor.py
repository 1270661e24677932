"""Calls to jurors by Dask's workers: they cost money, so none is made twice unasked."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from data.errors import BadInput, BadPanel
from jury.panel import Panel
from jury.providers.executor import LOST, NO_WORKER, ExecutorProvider, NoWorker, missing_keys
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
    called,
)
from medjury.cli.output import say

if TYPE_CHECKING:
    from distributed import Client

T = TypeVar("T")
LOOK_SECONDS = 2.0


@contextmanager
def calling(
    on: str, panel: Panel, concurrency: int, json_to: Path | None = None
) -> Iterator[dict[str, ExecutorProvider]]:
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
            yield {juror.name: ExecutorProvider(juror, calls) for juror in panel.juror}
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
        names = {juror.api_key_env: juror for juror in reversed(self._panel.juror)}
        missing = answers(self._client, self._on, workers, missing_keys, sorted(names))
        for worker, name in ((worker, name) for worker, some in missing.items() for name in some):
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
            result = self._client.run(called, work, workers=[worker], on_error="return")[worker]
        except Exception as error:
            result = error
        finally:
            with self._lock:
                self._under_way[worker] -= 1
        if not isinstance(result, Opaque):
            with self._lock:
                self._admitted.discard(worker)
            raise BrokenExecutor(f"worker {worker} {LOST}")
        if isinstance(result.value, Failed):
            raise result.value.error
        outcome: T = result.value
        return outcome

    def _taken(self) -> str:
        """Return the worker with the fewest calls under way, one more counted."""
        self._look_around()
        with self._lock:
            if not self._admitted:
                raise NoWorker(f"{NO_WORKER} at {self._on}")
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
            present = {*self._client.nthreads()}
        except Exception:
            present = set()
        with self._lock:
            self._admitted &= present
            new = sorted(present - self._admitted - self._refused)
        for worker in new:
            try:
                self.admit([worker])
            except NotAnswering:
                continue  # it is dying, or starting
            except BadInput:
                self._refused.add(worker)
        with self._lock:
            self._looked = time.monotonic()
