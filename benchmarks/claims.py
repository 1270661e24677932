"""How often claims are said to gain, where they do and where they cannot, over made studies.

    .venv/bin/python benchmarks/claims.py --seeds 12 --instances 60

Plain jurors on the loopback go by a note's style. With `looks up` each claim is looked up in the source;
with `guesses` judging claims knows no more than the plain verdict. Prints a row for each kind.
"""

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import numpy as np
from kit.claims_study import fill, juror
from kit.jurors import Stub
from kit.jury_runs import HASTY, panel_at

from calibration.values import AnalysisOptions
from data.database import open_study
from jury.claims_run import run_claims
from jury.panel import Panel
from jury.run import run_panel
from medjury.services.claims import ClaimsFigures, ClaimsQuestion, claims_figures, jury_of

PRICED = {"usd_per_million_in": 1.0, "usd_per_million_out": 1.0}


def one(seed: int, instances: int, guesses: bool, reps: int) -> ClaimsFigures:
    """Make a study, have both juries rate it, and compare them."""
    with TemporaryDirectory() as folder, Stub(partial(juror, blind_judges=guesses)) as stub:
        engine = open_study(f"sqlite:///{folder}/study.db", create=True)
        fill(engine, Path(folder), seed, instances)
        body = panel_at(stub, "a", "b", **PRICED).model_dump(by_alias=True)
        panel = Panel.model_validate(body | {"claims": {"splitter": "a"}})
        run_panel(engine, panel, patience=HASTY)
        run_claims(engine, panel, patience=HASTY)
        found = claims_figures(
            engine, ClaimsQuestion(jury_of(panel), AnalysisOptions(reps=reps, seed=seed))
        )
        engine.dispose()
        return found


def main() -> None:
    """Print what was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--instances", type=int, default=60)
    parser.add_argument("--reps", type=int, default=500)
    given = parser.parse_args()
    for guesses in (False, True):
        began = time.perf_counter()
        found = [one(seed, given.instances, guesses, given.reps) for seed in range(given.seeds)]
        rows = [figures.compared.row for figures in found]
        kinds = [figures.compared.decision.kind.value for figures in found]
        row = {
            "judges": "guess" if guesses else "look up",
            "studies": given.seeds,
            "gain_claimed": kinds.count("first_better"),
            "loss_claimed": kinds.count("second_better"),
            "mean_icc": {
                "plain": round(float(np.nanmean([r.icc_b for r in rows])), 3),
                "claims": round(float(np.nanmean([r.icc_a for r in rows])), 3),
            },
            "mean_interval": [
                round(float(np.nanmean([getattr(r, end) for r in rows])), 3)
                for end in ("low", "high")
            ],
            "usd_ratio": round(float(np.mean([figures.price.usd_ratio for figures in found])), 3),
            "claims_a_response": found[0].counts.mean,
            "seconds": round(time.perf_counter() - began),
        }
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
