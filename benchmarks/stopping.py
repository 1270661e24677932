"""How often intervals that are looked at while clinicians rate cover the truth, and how early they stop.

    nice uv run python benchmarks/stopping.py --studies 300 --looks 5 --most 200

Each study: three clinicians and a jury rate cases in points of a five-point scale; after each fifth of
the cases somebody looks, and stops when the goal is shown, refuted, or out of reach. The goal is that
like for like (the jury's ICC less a clinician's) is over minus the margin. The truth of each setting
is the figure of one study of 200,000 cases. Figures are simulated: no judgement of any model.
"""

import argparse
from dataclasses import dataclass

import numpy as np

from calibration.agreement import PanelColumns
from calibration.bootstrap import BootstrapPlan, percentile_interval, replicates
from calibration.like_for_like import held_replicates, like_for_like
from calibration.rating_matrix import RatingMatrix
from calibration.stopping import judge, statistic_of
from calibration.ward_values import Look, PastLook, Verdict

CLINICIANS, MARGIN, REPS = 3, 0.1, 300
# Noise of the jury's mean, in standard deviations of the cases; a clinician's is 0.7.
JURIES = (0.5, 0.7, 0.82, 1.0)
JURY = PanelColumns(("jury",), 1)


@dataclass(frozen=True)
class Ended:
    """How a study ended: at which look, how, and whether its interval and the usual one cover."""

    look: int
    verdict: Verdict
    covers: bool
    fixed_covers: bool


def cases(number: int, noise: float, random: np.random.Generator) -> RatingMatrix:
    """Return cases that three clinicians and the jury rated, in points from 1 to 5."""
    quality = random.normal(size=(number, 1))
    spread = np.array([0.7] * CLINICIANS + [noise])
    seen = quality + spread * random.normal(size=(number, CLINICIANS + 1))
    points = np.clip(np.round(3.3 + 0.9 * seen), 1, 5)
    points[:, -1] = np.clip(3.3 + 0.9 * seen[:, -1], 1, 5)  # a mean of jurors is no whole number
    names = tuple(f"dr{n}" for n in range(CLINICIANS))
    kinds = ("clinician",) * CLINICIANS + ("juror",)
    ids = tuple(map(str, range(number)))
    return RatingMatrix(points, ids, np.arange(number), (*names, "jury"), kinds)


def figure(grid: RatingMatrix, seed: int) -> tuple[float, float]:
    """Return like for like and its standard error, as `rate next` takes it from the table."""
    held = like_for_like(grid, JURY, "paper")
    plan = BootstrapPlan(grid.n_clusters, len(grid.responses), REPS, seed)
    drawn = replicates(held_replicates(grid, JURY, held, "paper"), plan)
    ends = percentile_interval(drawn)
    return held.difference, (ends.high - ends.low) / 3.92


def study(noise: float, truth: float, given: argparse.Namespace, seed: int) -> Ended:
    """Look at one study until it ends."""
    grid = cases(given.most, noise, np.random.default_rng([seed, round(noise * 100)]))
    steps = [round(given.most * (n + 1) / given.looks) for n in range(given.looks)]
    before: list[PastLook] = []
    for place, number in enumerate(steps):
        part = RatingMatrix(
            grid.composites[:number],
            grid.responses[:number],
            grid.clusters[:number],
            grid.raters,
            grid.kinds,
        )
        estimate, error = figure(part, seed)
        look = Look(number, given.most, estimate, error, -MARGIN, number)
        found = judge(before, look)
        before.append(PastLook(number, statistic_of(look)))
        if found.verdict is not Verdict.GO_ON or place + 1 == given.looks:
            covers = found.low <= truth <= found.high
            fixed = found.fixed_low <= truth <= found.fixed_high
            return Ended(place + 1, found.verdict, covers, fixed)
    raise AssertionError("a study has at least one look")


def main() -> None:
    """Print a row for each jury."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--studies", type=int, default=300)
    parser.add_argument("--looks", type=int, default=5)
    parser.add_argument("--most", type=int, default=200)
    given = parser.parse_args()
    for noise in JURIES:
        whole = cases(200_000, noise, np.random.default_rng(1))
        truth = like_for_like(whole, JURY, "paper").difference
        ended = [study(noise, truth, given, seed) for seed in range(given.studies)]
        shares = {
            str(verdict): round(np.mean([one.verdict is verdict for one in ended]), 3)
            for verdict in Verdict
        }
        covers, fixed = (
            np.mean([getattr(one, name) for one in ended]) for name in ("covers", "fixed_covers")
        )
        looks = np.mean([one.look for one in ended])
        print(
            f"truth {truth:+.3f}: covers {covers:.3f}, usual interval {fixed:.3f}, "
            f"{looks * given.most / given.looks:.0f} of {given.most} cases, {shares}",
            flush=True,
        )


if __name__ == "__main__":
    main()
