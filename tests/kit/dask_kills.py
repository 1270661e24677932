"""Work at two Dask workers of which one is killed at a chosen moment, and how it ends."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from data.errors import BadInput
from kit.dask_place import Place
from medjury.cli.dask_connect import checked, connected
from medjury.cli.dask_worker import Tasks

PIECES = 12
SENT = 60 * 2**20  # bytes that a worker must hold before it can begin
FETCHED = 2**20  # values of eight bytes that come back for each piece
PIECE_SECONDS = 0.15


class Phases(NamedTuple):
    """Seconds since the start at which the first piece began, the first came back, and all had."""

    sent: float
    computed: float
    gathered: float

    def moments(self, count: int) -> Iterator[tuple[float, str]]:
        """Yield moments spread evenly over the three phases, each with the name of its phase."""
        edges, names = (0.0, *self), ("sending", "computing", "gathering")
        share = 3 / count
        for n in range(count):
            phase, within = int(n * share), n * share % 1
            width = edges[phase + 1] - edges[phase]
            yield edges[phase] + within * width, names[phase]


class Ended(NamedTuple):
    """How a run ended, seconds after a worker was killed: `said` is its message, "" with all figures."""

    moment: float
    phase: str
    seconds: float
    said: str


def undisturbed(place: Place) -> Phases:
    """Return how long each phase takes when nobody is killed."""
    place.ready(2)
    with connected(place.address) as client:
        checked(client, place.address)
        return _run(Tasks(client, place.address))


def killed(place: Place, moment: float, phase: str) -> Ended:
    """Kill one of two workers so many seconds after the start; return how the run ends.

    Now the older of the two is killed, now the younger: either may hold what the other needs.
    """
    place.ready(2)
    living = [process for process in place.processes[1:] if process.poll() is None]
    victim, said = living[len(place.processes) % 2], ""
    at: list[float] = []

    def kill() -> None:
        at.append(time.monotonic())
        victim.kill()

    with connected(place.address) as client:
        checked(client, place.address)
        timer = threading.Timer(moment, kill)
        timer.start()
        try:
            _run(Tasks(client, place.address))
        except BadInput as error:
            said = str(error)
        finally:
            timer.join()
    finished = time.monotonic()
    victim.wait()
    place.worker()
    return Ended(moment, phase, finished - at[0], said)


def slow_work() -> Callable[[int], np.ndarray]:
    """Return a function that is long to send, to compute and to fetch; sent by value."""
    held = np.full(SENT, 7, dtype=np.uint8)
    seconds, size = PIECE_SECONDS, FETCHED

    def piece(number: int) -> np.ndarray:
        began = time.time()
        time.sleep(seconds)
        values = np.full(size, float(held[number]) * number)
        values[0] = began
        return values

    return piece


def _run(tasks: Tasks) -> Phases:
    """Send work that is long in each phase, and compare what comes back with what it must be."""
    began, came = time.time(), []
    starts = []
    for number, piece in enumerate(tasks.map(slow_work(), range(PIECES))):
        came.append(time.time() - began)
        starts.append(float(piece[0]) - began)
        assert piece.shape == (FETCHED,)
        assert np.array_equal(piece[1:], np.full(FETCHED - 1, 7.0 * number))
    assert len(came) == PIECES
    return Phases(min(starts), came[0], came[-1])
