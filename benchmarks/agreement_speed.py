"""Measure resampling an ICC beside pingouin and R, the whole agreement table, and how both grow.

    uv run python benchmarks/agreement_speed.py [--curve]

The values are compared before anything is timed. pingouin gets as many replicates as take
some seconds; its time for all is that times the ratio. R's boot (r-cran-boot) is used where
Rscript is there, with the ICC in closed form. One BLAS thread.
"""

import argparse
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from calibration.bootstrap import BootstrapPlan, draw_counts, replicates
from calibration.columns import PanelColumns, column_icc, columns
from calibration.rating_matrix import RatingMatrix
from calibration.scores import RubricShape, Scores
from calibration.table import agreement_table
from calibration.weighted import scorer_iccs

T = TypeVar("T")
R = shutil.which("Rscript")
REPS = 10_000
PINGOUIN_REPS = 60
CRITERIA = ("accuracy", "completeness", "clarity")
R_SCRIPT = """
suppressMessages(library(boot))
d <- as.matrix(read.csv("%s"))
icc <- function(d, i) { x <- scale(d[i, ]); r <- cor(x[, 1], x[, 2]); 2 * r / (1 + r) }
stopifnot(abs(icc(d, 1:nrow(d)) - %.15f) < 1e-9)
invisible(boot(d, icc, R = 100))
cat(system.time(boot(d, icc, R = %d))[["elapsed"]])
"""


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--curve", action="store_true", help="to 100,000 responses x 12 jurors")
    options = asked.parse_args()
    with threadpool_limits(1):
        bootstrap()
        table(10_000, times=3)
        if options.curve:
            for responses in (1_000, 10_000, 30_000, 100_000):
                _alone(responses)


def bootstrap() -> None:
    """Time 10,000 replicates of the ICC of 56 responses in three ways."""
    grid = _small()
    panel = PanelColumns(("juror",), 1)
    pair = columns(grid, panel, "paper")
    icc = column_icc(pair.clinicians, pair.scorer, "paper")
    how = BootstrapPlan(grid.n_clusters, len(grid.responses), REPS, 0)
    statistic = partial(scorer_iccs, grid, [panel], "paper")
    ours, drawn = _best(lambda: replicates(statistic, how), 7)
    theirs, peer = _pingouin(grid)
    gap = float(np.abs(drawn[:PINGOUIN_REPS, 0] - peer).max())
    print(f"56 responses, {REPS} replicates, z recomputed in each; ICC {icc:.4f}")
    print(
        f"  medjury {1000 * ours:.1f} ms; pingouin {theirs:.1f} s ({theirs / ours:,.0f} x); ",
        end="",
    )
    print(f"largest difference over {PINGOUIN_REPS} replicates {gap:.1e}")
    if R:
        seconds = _r(grid, icc)
        print(f"  R boot, closed form: {1000 * seconds:.0f} ms ({seconds / ours:.0f} x)")
    else:
        print("  R: no Rscript here (apt-get install r-base-core r-cran-boot)")


def table(responses: int, times: int) -> None:
    """Time the whole table of a study with 12 jurors and two clinicians a response."""
    scores = _study(responses)
    seconds, found = _best(lambda: agreement_table(scores, reps=2000), times)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"table: {responses} responses x 12 jurors, 2,000 replicates, {len(found)} rows: ", end=""
    )
    print(f"{seconds:.2f} s, peak {peak:.0f} MB", flush=True)


def _alone(responses: int) -> None:
    """Time one table in a process of its own, for its memory."""
    code = f"import agreement_speed as a; a.table({responses}, 1)"
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent, check=True)


def _best(work: Callable[[], T], times: int) -> tuple[float, T]:
    """Return the median time of some runs, and what the last returned."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        found = work()
        took.append(time.perf_counter() - began)
    return statistics.median(took), found


def _small() -> RatingMatrix:
    random = np.random.default_rng(0)
    truth = random.normal(size=56)
    raters = np.column_stack([truth + random.normal(size=56), truth + random.normal(size=56)])
    return RatingMatrix(
        composites=raters,
        responses=tuple(f"r{n}" for n in range(56)),
        clusters=np.arange(56),
        raters=("dr-a", "juror"),
        kinds=("clinician", "juror"),
    )


def _pingouin(grid: RatingMatrix) -> tuple[float, np.ndarray]:
    """Return the seconds all replicates would take, and the first ones, on the same resamples."""
    import pingouin

    counts = next(draw_counts(56, reps=REPS, seed=0, rows=56))[:PINGOUIN_REPS].astype(int)
    found = []
    began = time.perf_counter()
    for one in counts:
        values = grid.composites[np.repeat(np.arange(56), one)]
        values = (values - values.mean(axis=0)) / values.std(axis=0, ddof=1)
        long = pd.DataFrame(
            {"item": np.repeat(np.arange(56), 2), "rater": [0, 1] * 56, "score": values.ravel()}
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            told = pingouin.intraclass_corr(long, "item", "rater", "score").set_index("Type")
        found.append(told.loc["ICC(C,k)", "ICC"])
    return (time.perf_counter() - began) * REPS / PINGOUIN_REPS, np.array(found)


def _r(grid: RatingMatrix, icc: float) -> float:
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "pair.csv"
        pd.DataFrame(grid.composites).to_csv(data, index=False)
        script = Path(folder) / "boot.R"
        script.write_text(R_SCRIPT % (data, icc, REPS))
        ran = subprocess.run([R, str(script)], capture_output=True, text=True, check=True)
    return float(ran.stdout)


def _study(responses: int) -> Scores:
    """Return a made-up study: 20 clinicians, two a response, 12 jurors, one benchmark."""
    random = np.random.default_rng(1)
    truth = random.normal(3.5, 0.7, responses)
    ids = np.array([f"r{n}" for n in range(responses)])
    parts = []
    first = random.integers(0, 20, responses)
    for shift in (0, 7):
        who = (first + shift) % 20
        parts += [_part(random, ids, truth, np.array([f"dr-{n}" for n in who]), "clinician", 0.8)]
    for n in range(12):
        parts += [_part(random, ids, truth, np.full(responses, f"j{n}"), "juror", 0.6)]
    ratings = pd.concat(parts, ignore_index=True)
    about = pd.DataFrame({"response_id": ids, "instance_id": ids, "benchmark": "made_up"})
    return Scores(ratings, about, {"made_up": RubricShape(CRITERIA, 1, 5)})


def _part(
    random: np.random.Generator,
    ids: np.ndarray,
    truth: np.ndarray,
    raters: np.ndarray,
    kind: str,
    noise: float,
) -> pd.DataFrame:
    """Return one reading of every response on all criteria."""
    n = len(ids)
    scores = truth[:, None] + random.normal(0, noise, (n, len(CRITERIA)))
    return pd.DataFrame(
        {
            "response_id": np.repeat(ids, len(CRITERIA)),
            "instance_id": np.repeat(ids, len(CRITERIA)),
            "benchmark": "made_up",
            "rater": np.repeat(raters, len(CRITERIA)),
            "kind": kind,
            "criterion": np.tile(CRITERIA, n),
            "score": np.clip(np.rint(scores), 1, 5).ravel(),
            "pass_": 0,
            "replicate": 0,
        }
    )


if __name__ == "__main__":
    main()
