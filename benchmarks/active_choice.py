"""Whether choosing what clinicians rate by the jury's scores gives narrower intervals than chance.

    .venv/bin/python docs/real_data/mentalbench.py DATASETS OUT/m     # and summeval.py, to OUT/s
    OPENBLAS_NUM_THREADS=1 nice .venv/bin/python benchmarks/active_choice.py OUT/m/ratings.csv OUT/s/ratings.csv

The rule, set before any result. A way to choose wins for a statistic and a number of ratings if on every
population below that has both (the simulation "uneven", MentalBench, SummEval; not "even", where the
jury errs alike everywhere and little can be gained) its 95 % interval covers the truth in 93 to 97 %
and is narrower on average than that of uniform choice with the same estimator, by a difference whose
95 % Monte Carlo interval is below 0. A statistic that is not in both public sets cannot win.

Each population is finite and fully rated, its own figure is the truth, and single responses are drawn from
it without replacement: 16 summaries of a product are no clusters of this design, and an interval for other
products would be wider whatever is chosen. Learned choice takes 30 responses at random first and
keeps them. In SummEval two annotators, or one, stand in for the jury: no judgement of any model.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from active_designs import Draw, Population, by_size, interval, learned, stratified, uniform

from calibration.scores import Array

RATED, COVERS = (100, 200), (0.93, 0.97)
STATISTICS = ("mean assisted", "icc", "icc assisted", "like for like", "like for like assisted")
PUBLIC = ("MentalBench", "SummEval")
CASES, HARDNESS = 2000, 1.0  # of a simulation; sd of the log of how hard a case is for the jury
Sampler = Callable[[Population, int, np.random.Generator], Draw]


def samplers(whole: Population, statistic: str) -> dict[str, Sampler]:
    """Return every way to choose, by name; some look at what matters for the statistic."""
    return {
        "uniform": uniform,
        "strata": stratified,
        "strata, Neyman": partial(stratified, target=statistic),
        "by spread": partial(by_size, sizes=whole.spread),
        "by far score": partial(by_size, sizes=np.abs(whole.jury)),
        "by learned error": partial(learned, target="mean assisted"),
        "by learned influence": partial(learned, target=statistic),
    }


def simulated(name: str, hardness: float) -> Population:
    """Return cases like those of stopping.py: three clinicians, and three jurors whose mean has noise 0.7."""
    random = np.random.default_rng(1)
    quality = random.normal(size=(CASES, 1))
    hard = np.exp(hardness * random.normal(size=(CASES, 1)) - hardness**2)
    shared, own = 0.57 * random.normal(size=(CASES, 1)), 0.7 * random.normal(size=(CASES, 3))
    clinicians = np.round(3.3 + 0.9 * (quality + 0.7 * random.normal(size=(CASES, 3))))
    jurors = 3.3 + 0.9 * (quality + hard * (shared + own))
    points = np.clip(np.hstack([clinicians, jurors]), 1, 5)
    return Population(name, points, 3)


def public(name: str, ratings: Path, stand_ins: int = 0) -> Population:
    """Return the complete responses of a file; the last clinicians stand in where it has no jurors."""
    table = pd.read_csv(ratings)
    kinds = table.drop_duplicates("rater").set_index("rater")["kind"].sort_values(kind="stable")
    by_rater = table.drop(columns="kind").set_index(["response_id", "rater"])
    composites = by_rater.mean(axis=1, skipna=False).unstack()[list(kinds.index)].dropna()
    clinicians = int((kinds == "clinician").sum()) - stand_ins
    return Population(name, composites.to_numpy(), clinicians)


@dataclass(frozen=True)
class Figures:
    """What many studies of one population came to; widths of shape (studies,)."""

    bias: float
    sd: float
    covers: float
    widths: Array

    def narrower(self, other: "Figures") -> tuple[float, float, float]:
        """Return the mean width beside another's, less 1, and the ends of its Monte Carlo interval."""
        gap = (self.widths - other.widths) / other.widths.mean()
        error = 1.96 * gap.std(ddof=1) / np.sqrt(len(gap))
        return float(gap.mean()), float(gap.mean() - error), float(gap.mean() + error)


def studies(
    whole: Population, statistic: str, sampler: Sampler, rated: int, seeds: range
) -> Figures:
    """Draw, estimate and compare with the truth many times."""
    truth = whole.truth(statistic)
    randoms = [np.random.default_rng([seed, rated]) for seed in seeds]
    found = np.array([interval(whole, sampler(whole, rated, r), statistic) for r in randoms])
    estimate, low, high = found.T
    covers = float(((low <= truth) & (truth <= high)).mean())
    return Figures(float(estimate.mean() - truth), float(estimate.std(ddof=1)), covers, high - low)


def compare(whole: Population, statistic: str, rated: int, seeds: range) -> dict[str, bool]:
    """Print a row for each way to choose; return which beat uniform choice here."""
    runs = {
        name: studies(whole, statistic, sampler, rated, seeds)
        for name, sampler in samplers(whole, statistic).items()
        if whole.has(statistic, name)
    }
    beats = {}
    for name, run in runs.items():
        gap, low, high = run.narrower(runs["uniform"])
        beats[name] = COVERS[0] <= run.covers <= COVERS[1] and high < 0
        cells = (whole.name, statistic, rated, name, f"{whole.truth(statistic):.3f}")
        figures = (f"{run.bias:+.4f}", f"{run.sd:.4f}", f"{run.covers:.3f}")
        width = (f"{run.widths.mean():.4f}", f"{gap:+.1%} ({low:+.1%} to {high:+.1%})")
        print("|", " | ".join(map(str, (*cells, *figures, *width))), "|", flush=True)
    return beats


def verdict(beaten: dict[tuple[str, str, int, str], bool]) -> None:
    """Print what wins by the rule; `beaten` has for population, statistic, number and way whether it beat uniform."""
    deciding = {key: beat for key, beat in beaten.items() if key[0] != "even"}
    for statistic, rated, name in dict.fromkeys(key[1:] for key in deciding):
        here = {key[0]: won for key, won in deciding.items() if key[1:] == (statistic, rated, name)}
        sets = {public for public in PUBLIC for place in here if place.startswith(public)}
        wins = all(here.values()) and len(sets) == len(PUBLIC) and "uneven" in here
        places = "; ".join(place for place, beat in here.items() if beat) or "nowhere"
        if name != "uniform":
            word = "WINS" if wins else "does not win"
            print(f"{statistic}, {rated} rated, {name}: {word} (beats uniform: {places})")


def main() -> None:
    """Print every comparison and the verdict."""
    parser = argparse.ArgumentParser()
    parser.add_argument("mentalbench", type=Path)
    parser.add_argument("summeval", type=Path)
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="of the first study")
    given = parser.parse_args()
    seeds = range(given.seed, given.seed + given.studies)
    populations = (
        simulated("even", 0),
        simulated("uneven", HARDNESS),
        public("MentalBench", given.mentalbench),
        public("SummEval, two stand in", given.summeval, 2),
        public("SummEval, one stands in", given.summeval, 1),
    )
    print(
        "| population | statistic | rated | choice | truth | bias | sd | covers | width | of uniform |"
    )
    print("|", " | ".join(["---"] * 10), "|")
    beaten = {
        (whole.name, statistic, rated, name): won
        for whole, statistic, rated in product(populations, STATISTICS, RATED)
        if whole.has(statistic, "uniform")
        for name, won in compare(whole, statistic, rated, seeds).items()
    }
    verdict(beaten)


if __name__ == "__main__":
    main()
