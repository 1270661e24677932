"""How often routing breaks its bound, what it catches beside the low score, and how fast it is.

    .venv/bin/python docs/real_data/mentalbench.py DATASETS OUT     # or summeval.py
    .venv/bin/python benchmarks/routing.py OUT/ratings.csv OUT/responses.csv --at-most 3 --bound 0.05
    .venv/bin/python benchmarks/routing.py --speed

The file is the population: of each of `--studies` studies the instances are drawn with replacement, routed
with all of the file as unrated responses, and the true share of harmful ones among the passed is read
off the file. `--one` draws one response of each instance. Without jurors in the file (SummEval) the
first clinician stands in for the jury: no judgement of any model.
"""

import argparse
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from calibration.routing.candidates import Candidates
from calibration.routing.routes import routes
from calibration.routing.values import Harm


def population(ratings: Path, responses: Path) -> Candidates:
    """Return the file's responses, complete ones only."""
    table = pd.read_csv(ratings)
    kinds = table.drop_duplicates("rater").set_index("rater")["kind"]
    columns = [name for name in table if name not in ("response_id", "rater", "kind")]
    by_rater = table.pivot_table(index="response_id", columns="rater", values=columns, dropna=False)
    by_rater = by_rater.dropna()
    jurors = list(kinds.index[kinds == "juror"]) or [kinds.index[0]]
    doctors = [name for name in kinds.index if name not in jurors]
    values = {name: by_rater.xs(name, axis=1, level="rater")[columns] for name in kinds.index}
    jury = np.array([values[name].mean(axis=1) for name in jurors])
    lowest = np.mean([values[name].to_numpy() for name in jurors], axis=0).min(axis=1)
    clinicians = np.mean([values[name].mean(axis=1) for name in doctors], axis=0)
    read = pd.read_json if responses.suffix == ".jsonl" else pd.read_csv
    about = read(responses, **({"lines": True} if responses.suffix == ".jsonl" else {}))
    about = about.set_index("response_id").loc[by_rater.index]
    length = np.log1p(about["response"].str.split().str.len().to_numpy(dtype=float))
    mean = jury.mean(axis=0)
    return Candidates(
        list(by_rater.index),
        list(about["instance_id"].astype(str)),
        ["b"] * len(mean),
        pd.factorize(about["instance_id"])[0].astype(np.int64),
        mean,
        clinicians,
        np.column_stack([mean, jury.std(axis=0), lowest, length]),
    )


def study(whole: Candidates, instances: int, seed: int, *, one: bool) -> Candidates:
    """Return drawn instances, rated, and behind them the whole file, unrated."""
    random = np.random.default_rng(seed)
    by_instance = [np.flatnonzero(whole.clusters == n) for n in range(whole.clusters.max() + 1)]
    drawn = [by_instance[n] for n in random.integers(0, len(by_instance), instances)]
    drawn = [random.choice(rows, 1) if one else rows for rows in drawn]
    rows = np.concatenate(drawn)
    own = np.repeat(random.permutation(instances), [len(part) for part in drawn])
    rest = np.arange(len(whole.jury)) if one else whole.clusters
    return replace(
        whole,
        responses=[whole.responses[row] for row in rows] + list(whole.responses),
        instances=[whole.instances[row] for row in rows] + list(whole.instances),
        benchmarks=["b"] * (len(rows) + len(whole.jury)),
        clusters=np.concatenate([own, instances + rest]).astype(np.int64),
        jury=np.concatenate([whole.jury[rows], whole.jury]),
        clinicians=np.concatenate([whole.clinicians[rows], np.full(len(whole.jury), np.nan)]),
        features=np.concatenate([whole.features[rows], whole.features]),
    )


@dataclass(frozen=True)
class Once:
    """What one study came to: the share passed of the file, and the harmful share of these."""

    certified: bool
    rule: str
    passed: float
    risk: float
    low_score: float
    learned: float


def once(whole: Candidates, harm: Harm, given: argparse.Namespace, seed: int) -> Once:
    """Route one study."""
    table = study(whole, given.instances, seed, one=given.one)
    routed = routes(table, harm, given.bound, given.confidence)
    decisions = np.array(routed.decisions[-len(whole.jury) :]) == "pass"
    harmful, found = whole.harmful(harm), routed.found
    return Once(
        found.certified,
        found.used.rule,
        float(decisions.mean()),
        float(harmful[decisions].mean()) if decisions.any() else 0.0,
        found.low_score.caught.share,
        found.learned.caught.share,
    )


def speed() -> None:
    """Print the seconds of 100,000 responses, 2,000 of them rated."""
    random, count = np.random.default_rng(0), 100_000
    quality = random.normal(4, 0.8, count)
    jurors = quality + random.normal(0, 0.5, (3, count))
    clinicians = np.where(np.arange(count) < 2000, quality, np.nan)
    names, jury = [str(n) for n in range(count)], jurors.mean(axis=0)
    features = np.column_stack([jury, jurors.std(axis=0), jurors.min(axis=0)])
    table = Candidates(names, names, names, np.arange(count), jury, clinicians, features)
    start = time.perf_counter()
    found = routes(table, Harm("low", 3), 0.05, 0.9).found
    print(f"{count} responses, {found.rated} rated: {time.perf_counter() - start:.1f} s")


def main() -> None:
    """Print how the studies ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("ratings", type=Path, nargs="?")
    parser.add_argument("responses", type=Path, nargs="?")
    parser.add_argument("--at-most", type=float, default=3.0)
    parser.add_argument("--bound", type=float, default=0.05)
    parser.add_argument("--confidence", type=float, default=0.9)
    parser.add_argument("--instances", type=int, default=300)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--one", action="store_true")
    parser.add_argument("--speed", action="store_true")
    given = parser.parse_args()
    if given.speed:
        return speed()
    harm, whole = Harm("low", given.at_most), population(given.ratings, given.responses)
    print(f"{len(whole.jury)} responses, harmful {whole.harmful(harm).mean():.3f}")
    runs = [once(whole, harm, given, seed) for seed in range(given.studies)]
    certified = [run for run in runs if run.certified]
    broken = sum(run.risk > given.bound for run in certified)
    gain = np.array([run.learned - run.low_score for run in runs])
    low, high = np.nanquantile(gain, [0.025, 0.975])
    print(f"certified {len(certified)} of {len(runs)}, broken {broken} ({broken / len(runs):.3f})")
    print(f"passed {np.mean([run.passed for run in runs]):.3f} of the file")
    print(f"the learned rule decided in {sum(run.rule == 'learned' for run in runs)}")
    print(f"caught at 20 %: low score {np.nanmean([run.low_score for run in runs]):.3f}", end=", ")
    print(f"learned {np.nanmean([run.learned for run in runs]):.3f}", end=", ")
    print(f"difference {np.nanmean(gain):.3f} ({low:.3f} to {high:.3f} over studies)")
    return None


if __name__ == "__main__":
    main()
