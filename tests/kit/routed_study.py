"""A study with a rated part and a rest that only the jury has scored, as routing needs it."""

from pathlib import Path

import numpy as np

from kit.studies import HEAD, Run, bring_in


def fill(
    run: Run, folder: Path, rated: int = 150, jurors: tuple[str, ...] = ("gpt", "llama")
) -> None:
    """Make 200 responses, one of each instance; the first juror missed response r7."""
    random = np.random.default_rng(0)
    rows, scores = [HEAD], ["response_id,rater,kind,accuracy,completeness,clarity"]
    for n in range(200):
        rows.append(f"i{n},visits,Pain.,Write.,,r{n},secret-{n % 3},Word {n}")
        quality = 3.2 + random.normal()
        doctors = [("dr-a", "clinician"), ("dr-b", "clinician")] if n < rated else []
        for rater, kind in [*doctors, *((name, "juror") for name in jurors)]:
            own = np.clip(np.round(quality + 0.5 * random.normal(size=3)), 1, 5)
            if (n, rater) != (7, "gpt"):
                scores.append(f"r{n},{rater},{kind}," + ",".join(f"{one:g}" for one in own))
    bring_in(run, folder, rows, scores)
