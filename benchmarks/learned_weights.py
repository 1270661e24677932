"""What weights and a line learned from clinicians bring a recorded jury' mean, on what they have not seen.

    .venv/bin/python docs/real_data/mentalbench.py DATASETS OUT
    .venv/bin/python benchmarks/learned_weights.py OUT/ratings.csv OUT/responses.csv

MentalBench's four judges and its consensus. Of a number of conversations drawn at random, three parts are
made as `medjury jury improve` makes them; candidates are learned on train, one is chosen on choose,
and its gain in points, with its interval, is of test. Prints a row for each number of conversations,
over 40 seeds.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from calibration.learning.gain import part_gain
from calibration.learning.split import split_instances
from calibration.scores import Array

SEEDS = 40
NUMBERS = (60, 120, 300, 700)
Jury = Callable[[Array], Array]


def mean(_: Array, __: Array) -> Jury:
    """Leave the jury as it is."""
    return lambda given: given.mean(axis=1)


def weights(given: Array, clinicians: Array) -> Jury:
    """Weigh the jurors, no weight below 0, together 1."""
    centred, target = given - given.mean(axis=0), clinicians - clinicians.mean()
    own, _ = nnls(centred, target)
    share = own / own.sum() if own.sum() > 0 else np.full(given.shape[1], 1 / given.shape[1])
    return lambda new: new @ share


def line(given: Array, clinicians: Array) -> Jury:
    """Put the jury's mean on the clinicians' line."""
    slope, start = np.polyfit(given.mean(axis=1), clinicians, 1)
    return lambda new: start + slope * new.mean(axis=1)


def weights_and_line(given: Array, clinicians: Array) -> Jury:
    """Weigh the jurors, then put them on the clinicians' line."""
    weighed = weights(given, clinicians)
    slope, start = np.polyfit(weighed(given), clinicians, 1)
    return lambda new: start + slope * weighed(new)


CANDIDATES = {
    "as it is": mean,
    "weights": weights,
    "line": line,
    "weights and line": weights_and_line,
}


def table(ratings: Path, responses: Path) -> pd.DataFrame:
    """Return the composite of each rater, whole ones only, with the conversation."""
    given = pd.read_csv(ratings).drop(columns="kind").set_index(["response_id", "rater"])
    composites = given.mean(axis=1, skipna=False).unstack().dropna()
    instances = pd.read_csv(responses, usecols=["response_id", "instance_id"])
    return composites.join(instances.set_index("response_id"))


def once(whole: pd.DataFrame, number: int, seed: int) -> dict[str, object]:
    """Learn, choose and test once."""
    random = np.random.default_rng(seed)
    drawn = random.choice(whole["instance_id"].unique(), number, replace=False)
    rows = whole[whole["instance_id"].isin(drawn)]
    codes, _ = pd.factorize(rows["instance_id"])
    parts = split_instances(dict.fromkeys(map(int, set(codes)), 0), seed)
    jurors = [name for name in rows.columns if name not in ("consensus", "instance_id")]
    given, clinicians = rows[jurors].to_numpy(), rows["consensus"].to_numpy()
    masks = {part: np.isin(codes, members) for part, members in parts.items()}
    made = {
        name: learn(given[masks["train"]], clinicians[masks["train"]])
        for name, learn in CANDIDATES.items()
    }
    away = {
        name: np.abs(jury(given[masks["choose"]]) - clinicians[masks["choose"]]).mean()
        for name, jury in made.items()
    }
    chosen = min(away, key=lambda name: away[name])
    gains = {
        part: part_gain(
            clinicians[mask], made["as it is"](given[mask]), made[chosen](given[mask]), codes[mask]
        )
        for part, mask in masks.items()
    }
    return {
        "chosen": chosen,
        **{part: gain.gain for part, gain in gains.items()},
        "low": gains["test"].low,
    }


def main() -> None:
    """Print the gains."""
    parser = argparse.ArgumentParser()
    parser.add_argument("ratings", type=Path)
    parser.add_argument("responses", type=Path)
    given = parser.parse_args()
    whole = table(given.ratings, given.responses)
    for number in NUMBERS:
        found = pd.DataFrame([once(whole, number, seed) for seed in range(SEEDS)])
        means = {part: round(float(found[part].mean()), 3) for part in ("train", "choose", "test")}
        chosen = found["chosen"].value_counts().to_dict()
        shown = int((found["low"] > 0).sum())
        print(json.dumps({"conversations": number, **means, "shown": shown, "chosen": chosen}))


if __name__ == "__main__":
    main()
