"""Compute values for the screens in one process beside the server.

What computes figures and draws charts loads pandas, Altair and scipy: 150 MB, and seconds that raters
would feel, so the server loads none of it. `annotate.worker_process` is started when it is first
asked, and again after it has ended, idle or killed. It has a thread for each lane: figures of a
study, details that nobody should wait behind, drawings of values, and probes of jurors. One process for all, because two would load pandas
twice (136 MB more) and a chart that takes 56 ms takes 59 beside a bootstrap, 82 beside a Python loop.

Before an answer come shares of the work that are done, where the function tells them: `share_done`.
An answer comes by pickle, which reads from this child and nobody else. It is unpickled here: a plain
value, or a dataclass whose module imports nothing heavy.
"""

import atexit
import hashlib
import pickle
import subprocess
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from threading import Lock
from typing import Any, Literal, TypeVar, get_args
from weakref import WeakKeyDictionary

from sqlalchemy import Engine

from annotate.worker_process import SHARE
from data.errors import MedjuryError
from data.person import Person, only
from data.schema import Role
from data.study.standing import version
from medjury import own_packages

Lane = Literal["figures", "details", "drawings", "probes"]
Question = TypeVar("Question", bound=Hashable)
Result = TypeVar("Result")
LANES: tuple[Lane, ...] = get_args(Lane)
IDLE_SECONDS = 900
MOST_ANSWERS = 64
MOST_DRAWINGS = 256
MOST_BYTES = 4_000_000  # of all drawings: while people rate, few are asked for again
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # the others are the raters'
OF_STUDY = "annotate.worker_process:of_study"
WAS_IDLE = 0  # how the process ends by itself
TRIES = 2
INTERRUPTED = "the calculation was interrupted because its process ended; try again"
STUDY_MODULES = ("annotate.calibrations", "calibration.table", "scipy.stats")
DRAWING_MODULES = ("calibration.report.charts", "vl_convert")


@dataclass(frozen=True, slots=True)
class Child:
    """A process that runs, and our ends of the connections to it."""

    process: subprocess.Popen[bytes]
    lanes: Mapping[Lane, Connection]


class Worker:
    """A process that computes: started when it is asked, and again when it has ended."""

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        self.child: Child | None = None
        self._idle_seconds = idle_seconds
        self._starting = Lock()
        self._turns = {lane: Lock() for lane in LANES}

    @property
    def runs(self) -> bool:
        """Whether there is a process to ask."""
        return self.child is not None and self.child.process.poll() is None

    def answer(
        self, lane: Lane, question: bytes, tick: Callable[[float], None] = lambda share: None
    ) -> bytes:
        """Return the answer to a pickled question, waiting for it and for those before it.

        `tick` is called with the share of the work that is done, 0 to 1.

        Where the process ended by itself, being idle, just when it was asked, another is asked. So
        it is for a drawing, which is quick, where it was killed.

        Raises
        ------
        MedjuryError
            If the process was killed meanwhile.
        """
        with self._turns[lane]:
            for _ in range(TRIES):
                child = self._running()
                with suppress(EOFError, OSError):
                    child.lanes[lane].send_bytes(question)
                    while (told := child.lanes[lane].recv_bytes()).startswith(SHARE):
                        tick(pickle.loads(told[1:]))  # noqa: S301 from our own child
                    return told[1:]
                if child.process.wait() != WAS_IDLE and lane != "drawings":
                    break
        raise MedjuryError(INTERRUPTED)

    def end(self) -> None:
        """End the process, if there is one."""
        with self._starting:
            if self.child is not None:
                self.child.process.kill()
                self.child.process.wait()
            self.child = None

    def _running(self) -> Child:
        with self._starting:
            if self.child is None or not self.runs:
                self.child = _started(self._idle_seconds)
            return self.child


_worker = Worker()
_studies = {lane: ThreadPoolExecutor(1, lane) for lane in ("figures", "details")}
_drawings = ThreadPoolExecutor(1, "drawings")
_shares: WeakKeyDictionary["Future[Any]", list[float]] = WeakKeyDictionary()
_answers: OrderedDict[tuple[Hashable, ...], "Future[Any]"] = OrderedDict()
_made: OrderedDict[bytes, bytes] = OrderedDict()  # digest of a question -> pickled answer
_lock = Lock()
atexit.register(_worker.end)


@only(Role.RESEARCHER, Role.COORDINATOR)
def ask(
    person: Person,
    engine: Engine,
    function: "Callable[[Engine, Question], Result] | str",
    question: Question,
    lane: Literal["figures", "details"] = "figures",
) -> "Future[Result]":
    """Return what a function makes of a study, to come.

    Parameters
    ----------
    person
        Who asks.
    engine
        Of the study; the process opens one of its own.
    function
        Called in the process with an engine and the question. Where its module loads pandas it is
        named, as "package.module:function".
    question
        A frozen dataclass, which is hashable and can be pickled.
    lane
        "details" for what takes long: the next first answer does not wait behind it.

    The same question on an unchanged study is computed once, however many ask; one that failed is
    forgotten. The future raises the MedjuryError that the function raised.
    """
    name = _name(function)
    return remembered(engine, (name, question), lambda: _begun(engine, lane, name, question))


def share_done(coming: "Future[Any]") -> float | None:
    """Return what share of a computation is done, 0 to 1; None while it has told nothing."""
    shares = _shares.get(coming)
    return shares[-1] if shares else None


def _begun(
    engine: Engine, lane: Literal["figures", "details"], name: str, question: object
) -> "Future[Any]":
    """Have the process make something of a study, and note the shares of it that are done."""
    shares: list[float] = []
    asked = OF_STUDY, (url_of(engine), name, question)
    future = _studies[lane].submit(_called, lane, asked, shares.append)
    _shares[future] = shares
    return future


def url_of(engine: Engine) -> str:
    """Return the address by which the process opens a study of its own."""
    return engine.url.render_as_string(hide_password=False)


def call(lane: Lane, function: "Callable[..., Result] | str", *arguments: object) -> Result:
    """Return what a function returns in the process, waiting for it; nothing is remembered."""
    returned: Result = _called(lane, (_name(function), arguments))
    return returned


def of_study(engine: Engine, function: str, question: Question) -> "Future[Any]":
    """Return what a function, "package.module:function", makes of a study, to come behind other details.

    Nothing is remembered: who asks again has it made again.
    """
    return _begun(engine, "details", function, question)


def _called(
    lane: Lane, asked: tuple[str, tuple[object, ...]], tick: Callable[[float], None] | None = None
) -> Any:
    """Ask the process for a function's value, telling `tick` how far it is."""
    told = {"tick": tick} if tick else {}
    return _value(_worker.answer(lane, pickle.dumps(asked), **told))


def make(function: str, *arguments: object) -> Any:
    """Return what a function makes of plain values; what was made before is there at once.

    Parameters
    ----------
    function
        Ours, as "package.module:function"; never a name that came from a browser.
    arguments
        Its arguments, which can be pickled.

    Raises
    ------
    MedjuryError
        If nothing could be made of them; the server's log says why.
    """
    question = pickle.dumps((function, arguments))
    key = hashlib.sha256(question).digest()
    if (known := _known(key)) is None:
        return _drawings.submit(_made_of, key, question).result()
    return _value(known)


def wake() -> None:
    """Start the process and have it load what draws, without waiting for it."""
    if not _worker.runs:
        load = pickle.dumps(("annotate.worker_process:load", DRAWING_MODULES))
        _drawings.submit(_worker.answer, "drawings", load)


def expect_study() -> None:
    """Start the process for somebody who is about to open Study, unless it runs."""
    if not _worker.runs:
        load = pickle.dumps(("annotate.worker_process:load", STUDY_MODULES))
        _drawings.submit(_worker.answer, "drawings", load)


def prepare() -> None:
    """Have the process load what the other screens need, without waiting for it."""
    load = pickle.dumps(("annotate.worker_process:load", ("annotate.analyses", *DRAWING_MODULES)))
    _drawings.submit(_worker.answer, "drawings", load)


def end() -> None:
    """End the process, if there is one; the next question starts another."""
    _worker.end()


def remembered(
    engine: Engine, question: Hashable, begin: "Callable[[], Future[Result]]"
) -> "Future[Result]":
    """Return what was begun for the same question on an unchanged study, else begin it.

    What belongs to an earlier state of the study can no longer be asked for, and is let go.
    """
    key = (engine.url, version(engine), question)
    with _lock:
        future = _answers.get(key)
        if future is None or (future.done() and future.exception() is not None):
            future = _answers[key] = begin()
        _answers.move_to_end(key)
        for old in [
            earlier for earlier in _answers if earlier[0] == key[0] and earlier[1] != key[1]
        ]:
            del _answers[old]
        while len(_answers) > MOST_ANSWERS:
            _answers.popitem(last=False)
    return future


def _name(function: "Callable[..., object] | str") -> str:
    if isinstance(function, str):
        return function
    return f"{function.__module__}:{function.__qualname__}"


def _started(idle_seconds: float) -> Child:
    """Start a process; what it must not tell `ps` comes over the connections."""
    pairs = [Pipe() for _ in LANES]
    theirs = [theirs.fileno() for _, theirs in pairs]
    command = own_packages.command("annotate.worker_process", f"{idle_seconds}", *map(str, theirs))
    process = subprocess.Popen(  # noqa: S603 our own module
        command,
        stdin=subprocess.DEVNULL,
        env=own_packages.environment() | ONE_THREAD,
        pass_fds=theirs,
    )
    for _, end_of_theirs in pairs:
        end_of_theirs.close()
    return Child(process, dict(zip(LANES, (ours for ours, _ in pairs), strict=True)))


def _value(answer: bytes) -> Any:
    """Return what an answer says, or raise the error that it is."""
    value = pickle.loads(answer)  # noqa: S301 from our own child
    if isinstance(value, MedjuryError):
        raise value
    return value


def _known(key: bytes) -> bytes | None:
    """Return an answer that was kept, which is then the last to be let go."""
    with _lock:
        if key in _made:
            _made.move_to_end(key)
        return _made.get(key)


def _made_of(key: bytes, question: bytes) -> Any:
    return _value(_drawn(key, question))


def _drawn(key: bytes, question: bytes) -> bytes:
    """Return an answer, kept as it came: as objects it would be thrice as big."""
    answer = _known(key) or _worker.answer("drawings", question)
    _value(answer)  # an error is not kept
    with _lock:
        _made[key] = answer
        while len(_made) > MOST_DRAWINGS or sum(map(len, _made.values())) > MOST_BYTES:
            _made.popitem(last=False)
    return answer
