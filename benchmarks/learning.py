"""How often an improvement finds what is planted, and claims a gain that is none, over made studies.

    .venv/bin/python benchmarks/learning.py --seeds 40 --instances 100

Jurors on the loopback misread one criterion; with `comments` the clinicians say so, without they say
nothing. The true gain is of 20,000 new responses. Prints a row for each kind of comments.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import numpy as np
from kit.jurors import Stub
from kit.jury_runs import HASTY, panel_at
from kit.learning_study import RULE, fill, juror, true_gain

from data.database import open_study
from medjury.services.improvement import Improved, ImproveQuestion, Outcome
from medjury.services.improving import improve

JURORS = ("a", "b")


def one(seed: int, instances: int, comments: bool) -> Improved:
    """Make a study and improve its jury."""
    with TemporaryDirectory() as folder, Stub(juror) as stub:
        engine = open_study(f"sqlite:///{folder}/study.db", create=True)
        fill(engine, Path(folder), seed, instances, comments=comments)
        question = ImproveQuestion(
            panel_at(stub, *JURORS), rounds=2, examples=0, seed=seed, reps=50
        )
        found = improve(engine, question, patience=HASTY)
        engine.dispose()
        return found


def main() -> None:
    """Print what was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--instances", type=int, default=100)
    given = parser.parse_args()
    truth = true_gain(JURORS)
    for comments in (True, False):
        began, found = time.perf_counter(), []
        found = [one(seed, given.instances, comments) for seed in range(given.seeds)]
        learned = [result for result in found if "test" in result.parts]
        gains = {
            part: float(np.mean([result.parts[part].gain for result in learned]))
            for part in ("train", "choose", "test")
            if learned
        }
        right = [result for result in learned if any(RULE in line for line in result.diff)]
        row = {
            "comments": "name the cause" if comments else "say nothing",
            "studies": given.seeds,
            "rule_found": len(right),
            "claimed": sum(result.outcome is Outcome.BETTER for result in found),
            "true_gain": round(truth, 3),
            "covered": sum(
                result.parts["test"].low <= truth <= result.parts["test"].high for result in right
            ),
            "mean_gain": {part: round(gain, 3) for part, gain in gains.items()},
            "seconds": round(time.perf_counter() - began),
        }
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
