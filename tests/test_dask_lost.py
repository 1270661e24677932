"""Calls that break because a worker is lost: what they count for, and what is told of them."""

from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from typing import Any

from kit.jurors import Stub
from kit.jury_runs import HASTY, panel_at
from sqlalchemy import Engine

from jury.providers.executor import LOST, NO_WORKER, ExecutorProvider, NoWorker, with_lost_jurors
from jury.run import run_panel
from medjury.cli.jury_words import AGAIN, WORKERS, advice


class Breaking(Executor):
    """Makes calls here, and breaks those of its first ones that are told to."""

    def __init__(self, *breaks: BrokenExecutor | None) -> None:
        self.breaks, self.pool = list(breaks), ThreadPoolExecutor(8)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Return a call's future, or a broken one."""
        broken: Future[Any] = Future()
        if not (error := self.breaks.pop(0) if self.breaks else None):
            return self.pool.submit(fn, *args, **kwargs)
        broken.set_exception(error)
        return broken


def test_a_juror_that_nobody_was_left_to_ask_is_named_with_what_to_do(
    small_study: Engine, stub: Stub
) -> None:
    panel, absent = panel_at(stub), NoWorker(f"{NO_WORKER} at tcp://far:8786")
    alone = ([None, *6 * [absent]], 1, [AGAIN]), (6 * [absent], 1, [WORKERS]), ([absent], 0, [])
    for breaks, missing, told in alone:  # of six tries for the last verdict, and of the one before
        lines = {"a": ExecutorProvider(panel.juror[0], Breaking(*breaks))}
        result = run_panel(
            small_study, panel, providers=lines, concurrency=1, replicates=1, patience=HASTY
        )
        assert (result.missing, result.stopped) == (missing, {})
        assert advice(with_lost_jurors(result, lines)) == told


def test_a_lost_call_counts_in_full_against_the_cap(small_study: Engine, stub: Stub) -> None:
    panel = panel_at(stub, usd_per_million_in=0.0, usd_per_million_out=1000.0, max_tokens=1000)
    lost, absent = BrokenExecutor(f"worker w {LOST}"), NoWorker(NO_WORKER)
    for broken, calls, rated, unknown in ((lost, 10, 9, 1), (absent, 20, 9 + 19, 0)):
        result = run_panel(
            small_study,
            panel,
            providers={"a": ExecutorProvider(panel.juror[0], Breaking(broken))},
            concurrency=1,
            max_usd=2.85,  # a call costs 0.1, and 1.0 at worst
            replicates=10,
            patience=HASTY,
        )
        assert (result.calls, result.rated, result.usd_unknown) == (calls, rated, unknown)
