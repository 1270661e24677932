"""Measure how fast the agreement table and a jury run go with 1 and 2 Dask workers, beside none.

    PYTHONPATH=tests:benchmarks uv run python benchmarks/scale/workers.py [--responses 10000] [--calls 1200]

Workers are `dask worker` processes of one thread beside a real scheduler. The figures are compared
before anything is told: the table must be the same to the last bit. The jury run goes to the stub
of the tests, which answers after 200 ms. One BLAS thread everywhere.
"""

import argparse
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TypeVar

import pandas as pd
from agreement_speed import _study as study
from kit.dask_place import dask_place
from kit.jurors import Do, Stub
from storage import filled, texts
from threadpoolctl import threadpool_limits

from calibration.scores import Scores
from calibration.table import agreement_table
from jury.panel import Panel
from jury.run import run_panel
from medjury.cli.dask_connect import computing
from medjury.cli.dask_executor import calling

LATENCY = 0.2
AT_ONCE = 64
T = TypeVar("T")


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--responses", type=int, default=10_000)
    asked.add_argument("--reps", type=int, default=2_000)
    asked.add_argument("--calls", type=int, default=1_200)
    asked.add_argument("--times", type=int, default=3)
    options = asked.parse_args()
    print(f"load {' '.join(f'{one:.1f}' for one in os.getloadavg())} on {os.cpu_count()} cores")
    scores = study(options.responses)
    print(f"table of {options.responses} responses x 12 jurors, {options.reps} replicates")
    with threadpool_limits(1):
        here = table(scores, options.reps, None, options.times)
        for workers in (1, 2):
            assert table(scores, options.reps, workers, options.times).equals(here)
    print(f"jury run of {options.calls} calls of {LATENCY} s, {AT_ONCE} at a time")
    for where in (None, 1, 2):
        calls(options.calls, where)


def table(scores: Scores, reps: int, workers: int | None, times: int) -> pd.DataFrame:
    """Time the table, here or at some workers, and return it."""
    with tempfile.TemporaryDirectory() as folder, dask_place(Path(folder)) as place:
        for _ in range(workers or 0):
            place.worker()
        place.ready(workers or 0)
        with computing(place.address if workers else None, "scores are") as executor:
            took, found = timed(
                lambda: agreement_table(scores, reps=reps, executor=executor), times
            )
    told("here" if workers is None else f"{workers} workers", took)
    return found


def calls(count: int, workers: int | None) -> None:
    """Time a run of one juror, its calls made here or by workers."""
    with (
        tempfile.TemporaryDirectory() as folder,
        dask_place(Path(folder)) as place,
        Stub(lambda _: Do(seconds=LATENCY)) as stub,
    ):
        engine = filled(f"sqlite:///{folder}/study.db", texts(count, words=300))
        panel = panel_at(stub)
        for _ in range(workers or 0):
            place.worker()
        place.ready(workers or 0)
        through = calling(place.address, panel, AT_ONCE) if workers else nullcontext()
        with through as lines:
            began, used = time.perf_counter(), _used()
            run_panel(engine, panel, concurrency=AT_ONCE, providers=lines)
            seconds, used = time.perf_counter() - began, 1000 * (_used() - used) / count
        engine.dispose()
    where = "here" if workers is None else f"{workers} workers"
    print(f"  {where}: {seconds:.2f} s, {count / seconds:.0f} calls/s, ", end="")
    print(f"the command's own processor time {used:.2f} ms a call, the stub's included", flush=True)


def panel_at(stub: Stub) -> Panel:
    """Return a panel of one juror at the stub."""
    line = {"provider": "openai", "model": "m", "family": "x", "base_url": stub.openai_url}
    return Panel.model_validate({"name": "p", "juror": [{"name": "a"} | line]})


def timed(work: Callable[[], T], times: int) -> tuple[list[tuple[float, float]], T]:
    """Return seconds on the clock and of this process's processor time, and what came out."""
    took = []
    for _ in range(times):
        began, used = time.perf_counter(), _used()
        found = work()
        took.append((time.perf_counter() - began, _used() - used))
    return took, found


def told(where: str, took: list[tuple[float, float]]) -> None:
    """Print the medians."""
    clock, used = (statistics.median(one) for one in zip(*took, strict=True))
    print(f"  {where}: {clock:.2f} s, of the command's own processor time {used:.2f} s", flush=True)


def _used() -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime


if __name__ == "__main__":
    main()
