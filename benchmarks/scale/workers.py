"""Measure what `--on local:2` wins and loses beside none, and what a jury run costs with workers.

    PYTHONPATH=tests:benchmarks uv run python benchmarks/scale/workers.py [--calls 1200]

The agreement table of 10,000 responses, juries of 20 jurors, ROUGE-L and BERTScore of made texts.
Figures are compared before anything is told: they must be the same to the last bit. The clock is
told with and without the workers' start, which a user pays at every command. The jury run goes to
the stub of the tests, which answers after 200 ms.
"""

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from agreement_speed import _study as study
from juries_speed import _study as scope_of
from kit.dask_place import dask_place
from kit.jurors import Do, Stub
from storage import filled, texts
from threadpoolctl import threadpool_limits

from calibration.baselines.backbone import has_minilm
from calibration.juries.ranking import RankingOptions, jury_ranking
from calibration.table import agreement_table
from jury.panel import Panel
from jury.run import run_panel
from medjury.cli.dask_connect import computing
from medjury.cli.dask_executor import calling
from medjury.services.measuring import way

LATENCY = 0.2
AT_ONCE = 64
ON = "local:2"
BATCH = 64
JURY_REPS = 256
Work = Callable[[Executor | None], Any]


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--responses", type=int, default=10_000)
    asked.add_argument("--pairs", type=int, default=20_000)
    asked.add_argument("--bert-pairs", type=int, default=256)
    asked.add_argument("--calls", type=int, default=1_200)
    options = asked.parse_args()
    beside(f"table of {options.responses} responses x 12 jurors", table(options.responses))
    beside(f"juries of 20 jurors, 300 responses, {JURY_REPS} resamples", juries())
    beside(f"ROUGE-L of {options.pairs} pairs", measured("rouge-l", options.pairs))
    if has_minilm():
        beside(
            f"BERTScore of {options.bert_pairs} pairs", measured("bertscore", options.bert_pairs)
        )
    print(f"jury run of {options.calls} calls of {LATENCY} s, {AT_ONCE} at a time")
    for where in (None, 1, 2) if options.calls else ():
        calls(options.calls, where)


def beside(name: str, work: Work) -> None:
    """Time some work here and at local workers, and compare what comes out."""
    print(f"{name}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    began = time.perf_counter()
    here = work(None)
    took = time.perf_counter() - began
    began = time.perf_counter()
    with computing(ON, "made scores and texts are") as executor:
        ready = time.perf_counter()
        there = work(executor)
        computed = time.perf_counter() - ready
    whole = time.perf_counter() - began
    assert here == there
    print(f"  here {took:.1f} s; {ON} {whole:.1f} s, {computed:.1f} s of it computing", flush=True)


def table(responses: int) -> Work:
    """Return what computes an agreement table, as text, with 2,000 resamples."""
    scores = study(responses)

    def work(executor: Executor | None) -> str:
        with threadpool_limits(1):
            return agreement_table(scores, executor=executor).to_csv()

    return work


def juries() -> Work:
    """Return what ranks every jury of up to five of 20 jurors."""
    made = scope_of(20, 0.05)
    scope = replace(made, options=replace(made.options, reps=JURY_REPS))

    def work(executor: Executor | None) -> str:
        with threadpool_limits(1):
            options = replace(scope.options, executor=executor)
            return repr(jury_ranking(replace(scope, options=options), RankingOptions()).rows)

    return work


def measured(metric: str, count: int) -> Work:
    """Return what scores made pairs of 300 words by a metric."""
    random = np.random.default_rng(0)
    words = np.array([f"word{n}" for n in range(2_000)])
    each = [[" ".join(random.choice(words, 300)) for _ in range(2)] for _ in range(count)]
    pairs = [(text, reference) for text, reference in each]
    batches = [pairs[start : start + BATCH] for start in range(0, count, BATCH)]
    score = way(metric)

    def work(executor: Executor | None) -> list[Any]:
        return list(executor.map(score, batches) if executor else map(score, batches))

    return work


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


def _used() -> float:
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime


if __name__ == "__main__":
    main()
