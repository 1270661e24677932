"""Heavy figures are made in a process of their own: no rater waits, and none loads what they need.

A question is a function of a module with plain arguments; its answer is kept as long as the
study has not changed, so that a page opened again, by whomever, is there at once.
"""

import atexit
import multiprocessing
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from threading import Lock
from typing import Any

from sqlalchemy import Engine

from data.queries.version import version

KEPT = 64
Key = tuple[Hashable, ...]

_answers: OrderedDict[Key, "Future[Any]"] = OrderedDict()
_lock = Lock()


def ask(engine: Engine, question: Callable[..., Any], *arguments: Hashable) -> "Future[Any]":
    """Return the answer to come of `question(url, *arguments)` about a study.

    Parameters
    ----------
    engine
        Of the study; its URL goes to the other process.
    question
        A function that a module holds by its name: it is found there, not sent.
    arguments
        Plain values.

    The same question about an unchanged study is worked on once, however many ask. One that
    failed is forgotten, and so is one whose process died.
    """
    url = engine.url.render_as_string(hide_password=False)
    key = (question.__module__, question.__qualname__, url, version(engine), arguments)
    with _lock:
        known = _answers.get(key)
        if known is None or (known.done() and known.exception() is not None):
            known = _answers[key] = _submitted(question, url, *arguments)
        _answers.move_to_end(key)
        while len(_answers) > KEPT:
            _answers.popitem(last=False)
    return known


def _submitted(question: Callable[..., Any], *arguments: object) -> "Future[Any]":
    """Hand a question over; to a new process if the old one was killed."""
    try:
        return _pool().submit(question, *arguments)
    except BrokenProcessPool:
        _pool.cache_clear()
        return _pool().submit(question, *arguments)


@lru_cache(maxsize=1)
def _pool() -> ProcessPoolExecutor:
    pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _one_thread)
    atexit.register(pool.shutdown, wait=False, cancel_futures=True)
    return pool


def _one_thread() -> None:
    """Keep to one processor: the others are the raters'."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
