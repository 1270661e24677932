"""Compute for the screens in processes beside the server, and show who waits how far it is.

What computes figures and draws charts loads pandas, Altair and scipy: 150 MB, and seconds that raters
would feel. Each lane is a process of its own, started when it is first asked and ended when idle or
with the server: "figures" for what screens wait for, "long" for what may take minutes.
"""

import atexit
import gc
import multiprocessing
import os
import signal
import sys
import traceback
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, wait
from importlib import import_module
from inspect import signature
from itertools import count
from pkgutil import resolve_name
from threading import RLock, Thread, Timer
from typing import Any, Literal, TypeVar
from weakref import WeakKeyDictionary

import streamlit as st
from sqlalchemy import Engine

from annotate.figures import AgreementQuestion
from calibration.values import AnalysisOptions
from data.database import open_study
from data.errors import MedjuryError
from data.person import Person, only
from data.schema import Role
from data.study.standing import version

Lane = Literal["figures", "long"]
Question = TypeVar("Question", bound=Hashable)
Result = TypeVar("Result")
SPAWN = multiprocessing.get_context("spawn")
IDLE_SECONDS = 900.0
MOST_ANSWERS = 64
MOST_AT_ONCE = 64  # computations whose share is told
WAITS, BEGUN = -2.0, -1.0  # in place of a share
NICE = 5  # the raters come first
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # the other core is the raters'
LOOK_SECONDS = 0.25
IN_LINE = "Waiting for another calculation to end"
DONE = "{:.0%} done"
INTERRUPTED = "the calculation was interrupted because its process ended; try again"
SILENT = "this could not be computed; the server's log says why"


class Process:
    """A process that computes: started when it is asked, and again when it has ended."""

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        self._idle_seconds = idle_seconds
        self._lock = RLock()
        self._executor: ProcessPoolExecutor | None = None
        self._numbers, self._pending = count(), set[Future[Any]]()
        self._timer: Timer | None = None
        self._closed = False
        self._shares = SPAWN.RawArray("d", MOST_AT_ONCE)
        self._slots: WeakKeyDictionary[Future[Any], int] = WeakKeyDictionary()

    @property
    def runs(self) -> bool:
        """Whether there is a process to ask."""
        return self._executor is not None

    def submit(self, function: str, *arguments: object) -> Future[Any]:
        """Return the value of a function of ours, "package.module:function", to come.

        It raises a MedjuryError: the function's own, or that the process was killed, or that the
        server's log says why there is no value.
        """
        with self._lock:
            slot = next(self._numbers) % MOST_AT_ONCE
            self._shares[slot] = WAITS
            if self._timer is not None:
                self._timer.cancel()
            computed = self._submitted(slot, function, arguments)
            answer: Future[Any] = Future()
            self._slots[answer] = slot
            self._pending.add(computed)
        computed.add_done_callback(lambda done: self._answer(done, answer))
        return answer

    def share(self, answer: Future[Any]) -> float:
        """Return what share of a computation is done, 0 to 1; `WAITS` or `BEGUN` where none is told.

        `WAITS` of one that another process was asked for.
        """
        return self._shares[self._slots[answer]] if answer in self._slots else WAITS

    def end(self) -> None:
        """End the process once it has answered; the next question starts another."""
        with self._lock:
            executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """End the process at once and for good; all is put away before this returns, its semaphores too.

        A page that was waiting asks again, and the process that this would start had nobody to end it.
        """
        with self._lock:
            self._closed, executor, self._executor = True, self._executor, None
        if executor is not None:
            for child in multiprocessing.active_children():
                child.kill()
            executor.shutdown(cancel_futures=True)

    def _submitted(self, slot: int, function: str, arguments: tuple[object, ...]) -> Future[Any]:
        """Submit to the process there is; where it was killed while nobody waited, to another."""
        for _ in range(2):
            if self._closed:
                break
            if self._executor is None:
                self._executor = ProcessPoolExecutor(
                    1, SPAWN, initializer=_begin, initargs=(self._shares,)
                )
            try:
                return self._executor.submit(_call, slot, function, arguments)
            except BrokenExecutor:
                self._executor = None
        raise MedjuryError(INTERRUPTED)

    def _answer(self, computed: Future[Any], answer: Future[Any]) -> None:
        """Pass on what was computed, or the error that its user is told."""
        with self._lock:
            self._pending.discard(computed)
            if not self._pending:
                self._timer = Timer(self._idle_seconds, self._end_if_idle)
                self._timer.daemon = True
                self._timer.start()
        if computed.cancelled():
            answer.set_exception(MedjuryError(INTERRUPTED))
            return
        error = computed.exception()
        if isinstance(error, BrokenExecutor):
            error = MedjuryError(INTERRUPTED)
        elif error is not None and not isinstance(error, MedjuryError):
            _log(error)
            error = MedjuryError(SILENT)
        if error is None:
            answer.set_result(computed.result())
        else:
            answer.set_exception(error)

    def _end_if_idle(self) -> None:
        with self._lock:
            if not self._pending:
                self.end()


_lanes: dict[Lane, Process] = {"figures": Process(), "long": Process()}
_answers: OrderedDict[tuple[Hashable, ...], Future[Any]] = OrderedDict()
_lock = RLock()


@only(Role.RESEARCHER, Role.COORDINATOR)
def ask(
    person: Person,
    engine: Engine,
    function: "Callable[[Engine, Question], Result] | str",
    question: Question,
    lane: Lane = "figures",
) -> "Future[Result]":
    """Return what a function makes of a study, to come.

    The same question on an unchanged study is computed once, however many ask; one that failed is
    forgotten. The future raises the MedjuryError that the function raised.

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
    """
    return _asked(engine, _name(function), question, lane)


def _asked(engine: Engine, name: str, question: Hashable, lane: Lane) -> "Future[Any]":
    key = (engine.url, version(engine), name, question)
    with _lock:
        future = _answers.get(key)
        if future is None or (future.done() and future.exception() is not None):
            future = _answers[key] = of_study(engine, name, question, lane)
        _answers.move_to_end(key)
        for old in [one for one in _answers if one[0] == key[0] and one[1] != key[1]]:
            del _answers[old]  # nobody can ask for it again
        while len(_answers) > MOST_ANSWERS:
            _answers.popitem(last=False)
    return future


def of_study(
    engine: Engine, function: str, question: Question, lane: Lane = "long"
) -> "Future[Any]":
    """Return what a function, "package.module:function", makes of a study, to come; nothing is remembered."""
    url = engine.url.render_as_string(hide_password=False)
    return _lanes[lane].submit("annotate.compute:opened", url, function, question)


def call(
    function: "Callable[..., Result] | str", *arguments: object, lane: Lane = "long"
) -> Result:
    """Return what a function of ours makes of plain values, waiting for it; nothing is remembered."""
    returned: Result = _lanes[lane].submit(_name(function), *arguments).result()
    return returned


def prepare(engine: Engine) -> None:
    """Compute ahead what Agreement shows first, without waiting for it."""
    question = AgreementQuestion(AnalysisOptions())
    _asked(engine, "annotate.figures:agreement", question, "figures")


def load_agreement() -> None:
    """Begin to import what the screen Agreement draws with: seconds that whoever opens it does not wait."""
    if "annotate.screens.agreement" not in sys.modules:
        Thread(target=import_module, args=("annotate.screens.agreement",), daemon=True).start()


def close() -> None:
    """End the processes at once and for good, whatever they compute: the server ends."""
    for lane in _lanes.values():
        lane.close()
    gc.collect()


atexit.register(close)


def waited(coming: "Future[Result]", doing: str) -> Result:
    """Return a value that is computed, and show meanwhile what is done and how far it is.

    Parameters
    ----------
    coming
        From this module; what it raises is raised.
    doing
        What is done, as a sentence without a full stop.

    Who opens another screen meanwhile need not wait: each look at how far it is lets Streamlit go on.
    """
    if coming.done():
        return coming.result()
    place = st.empty()
    with place.container(), st.spinner(doing, show_time=True):
        line = st.empty()
        while wait([coming], LOOK_SECONDS).not_done:
            share = max(lane.share(coming) for lane in _lanes.values())
            if share >= 0:
                line.progress(min(share, 1.0), DONE.format(min(share, 1.0)))
            else:
                line.caption(IN_LINE if share == WAITS else "")
    place.empty()
    return coming.result()


def _name(function: "Callable[..., object] | str") -> str:
    if isinstance(function, str):
        return function
    return f"{function.__module__}:{function.__qualname__}"


# What follows runs in the process.

_shares: Any = None
_slot = 0


def _begin(shares: Any) -> None:
    """Prepare the process: it ends with its parent, and what libraries print goes to the log."""
    global _shares
    _shares = shares
    os.environ.update(ENVIRONMENT)
    os.nice(NICE)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(0)  # at once: a thread may be in the middle of a long computation


def _call(slot: int, function: str, arguments: tuple[object, ...]) -> Any:
    """Call a function by its name; the log has why another error than a user's was raised."""
    global _slot
    _slot, _shares[slot] = slot, BEGUN
    try:
        return resolve_name(function)(*arguments)
    except MedjuryError:
        raise
    except BaseException as error:
        _log(error)
        raise MedjuryError(SILENT) from None


def opened(url: str, function: str, question: object) -> Any:
    """Return what a function makes of a study and a question; no connection stays open."""
    engine, made = open_study(url), resolve_name(function)
    told = {"tick": _tick} if "tick" in signature(made).parameters else {}
    try:
        return made(engine, question, **told)
    finally:
        engine.dispose()


def _tick(share: float) -> None:
    """Tell how far the computation is, 0 to 1, from any thread."""
    _shares[_slot] = max(0.0, float(share))


def _log(error: BaseException) -> None:
    """Write what kind of error it was and where; its words may quote a patient's text."""
    while (cause := error.__cause__) is not None and cause.__traceback__ is not None:
        error = cause  # the last one that was raised here: another process sends its own as text
    places = "".join(traceback.format_tb(error.__traceback__))
    sys.stderr.write(f"medjury: {type(error).__qualname__} in a computation:\n{places}")
    sys.stderr.flush()
