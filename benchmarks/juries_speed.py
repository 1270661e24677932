"""Measure ranking every jury beside a pingouin loop and a plain numpy loop, all in one run.

    uv run python benchmarks/juries_speed.py

The values are compared before anything is timed. The peers compute a sample of the juries and
resamples; their time for all is that times the ratio, and is said to be extrapolated. Given are
seconds on the clock and, since others may use the machine, of the processor. One BLAS thread.
Each ranking runs in a process of its own, for its memory.
"""

import os
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from calibration.agreement import PanelColumns
from calibration.bootstrap import draw_counts
from calibration.juries.pools import compositions, jury_pool
from calibration.juries.ranking import Ranking, RankingOptions, jury_ranking
from calibration.rating_matrix import RatingMatrix, Repeats
from calibration.scope import Scope
from calibration.values import AnalysisOptions

REPS = 2_000
RESPONSES = 300
CLINICIANS = 2
LOST = 0.05  # of all jurors' ratings
CELLS = 200  # pairs of a jury and a resample that pingouin computes
PLAIN = 20_000  # and the plain loop
TIMES = 5


def main() -> None:
    """Measure and print."""
    print(f"load {' '.join(f'{one:.1f}' for one in os.getloadavg())} on {os.cpu_count()} cores")
    with threadpool_limits(1):
        peers(LOST)
        peers(0.0)
    for jurors, lost in ((12, 0.0), (12, LOST), (20, 0.0), (20, LOST)):
        _alone(jurors, lost)


def peers(lost: float) -> None:
    """Compare values cell by cell, then give what the loops would take for all 1,585 juries."""
    scope = _study(12, lost)
    grid, subsets = scope.grid, compositions(12, range(1, 6))
    counts = next(draw_counts(RESPONSES, reps=64, seed=0))
    ours = jury_pool(scope, grid.columns(scope.jurors), subsets).icc(counts)
    random = np.random.default_rng(1)
    for name, loop, cells in (("pingouin", _pingouin, CELLS), ("plain numpy", _plain, PLAIN)):
        which = random.integers(0, (len(counts), len(subsets)), size=(cells, 2))
        resamples = {b: _resample(grid, counts[b]) for b in np.unique(which[:, 0])}
        wall, cpu = time.perf_counter(), time.process_time()
        found = [loop(resamples[b], subsets[jury]) for b, jury in which]
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        gap = np.abs(np.array(found) - ours[which[:, 0], which[:, 1]]).max()
        all_of = len(subsets) * REPS / cells
        print(
            f"  {name} loop, {lost:.0%} lost: {cells} cells, largest difference {gap:.1e}; ", end=""
        )
        print(
            f"all {len(subsets) * REPS:,} would take {wall * all_of:,.0f} s, CPU {cpu * all_of:,.0f} s"
        )


def ranking(jurors: int, lost: float) -> None:
    """Time the ranking with intervals, ranks and honest ICCs; print medians and peak memory."""
    scope = _study(jurors, lost)
    took, found = [], None
    with threadpool_limits(1):
        for _ in range(TIMES if jurors < 20 else 3):
            wall, cpu = time.perf_counter(), time.process_time()
            found = jury_ranking(scope, RankingOptions())
            took.append((time.perf_counter() - wall, time.process_time() - cpu))
    assert isinstance(found, Ranking)
    wall, cpu = np.median(took, axis=0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"  {jurors} jurors, {len(found.rows):,} juries, {REPS:,} replicates, {RESPONSES} ", end=""
    )
    print(
        f"responses, {lost:.0%} lost: {wall:.2f} s, CPU {cpu:.2f} s, peak {peak:.0f} MB", flush=True
    )


def _alone(jurors: int, lost: float) -> None:
    code = f"import juries_speed as a; a.ranking({jurors}, {lost})"
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent, check=True)


def _study(jurors: int, lost: float) -> Scope:
    """Return a made-up scope: two clinicians and some jurors, of whose ratings some are lost."""
    random = np.random.default_rng(0)
    quality = random.normal(size=(RESPONSES, 1))
    clinicians = quality + random.normal(size=(RESPONSES, CLINICIANS))
    own = quality + np.linspace(0.8, 1.8, jurors) * random.normal(size=(RESPONSES, jurors))
    own[random.random(own.shape) < lost] = np.nan
    names = [f"dr{n}" for n in range(CLINICIANS)] + [f"j{n:02}" for n in range(jurors)]
    members = tuple(names[CLINICIANS:])
    nothing = pd.DataFrame()
    return Scope(
        name="made_up",
        grid=RatingMatrix(
            composites=np.hstack([clinicians, own]),
            responses=tuple(f"r{n}" for n in range(RESPONSES)),
            clusters=np.arange(RESPONSES),
            raters=tuple(names),
            kinds=("clinician",) * CLINICIANS + ("juror",) * jurors,
        ),
        composites=nothing,
        in_study=RESPONSES,
        incomplete={},
        repeats=Repeats(nothing, nothing, nothing),
        jury=PanelColumns(members, len(members)),
        jurors=members,
        metrics=(),
        simulated=frozenset(),
        options=AnalysisOptions(reps=REPS),
        tick=lambda resamples: None,
    )


def _resample(grid: RatingMatrix, counts: np.ndarray) -> np.ndarray:
    """Return the z of a resample written out, done once for all juries of both loops."""
    table = grid.composites[np.repeat(np.arange(RESPONSES), counts.astype(int))]
    return (table - np.nanmean(table, axis=0)) / np.nanstd(table, axis=0, ddof=1)


def _pair(z: np.ndarray, members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x, y = z[:, :CLINICIANS].mean(axis=1), z[:, CLINICIANS:][:, members].mean(axis=1)
    both = ~np.isnan(y)
    return x[both], y[both]


def _plain(z: np.ndarray, members: np.ndarray) -> float:
    """Return the ICC in closed form, one jury of one resample at a time."""
    cov = np.cov(*_pair(z, members))
    return float(4 * cov[0, 1] / cov.sum())


def _pingouin(z: np.ndarray, members: np.ndarray) -> float:
    import pingouin

    x, y = _pair(z, members)
    item = np.arange(len(x))
    long = pd.DataFrame(
        {
            "item": np.concatenate([item, item]),
            "rater": np.repeat([0, 1], len(x)),
            "score": np.concatenate([x, y]),
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        told = pingouin.intraclass_corr(long, "item", "rater", "score").set_index("Type")
    return float(told.loc["ICC(C,k)", "ICC"])


if __name__ == "__main__":
    main()
