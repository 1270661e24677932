"""A study for tests of juries: two clinicians, three jurors, one score lost."""

from pathlib import Path

import numpy as np
from small import Run

JURORS = ("alpha", "beta", "gamma")
HEAD = "instance_id,benchmark,context,prompt,reference,response_id,model,response"


def rated(run: Run, folder: Path, n: int = 30, lost: float = 0.0) -> None:
    """Import n responses of two benchmarks; gamma lacks one score, and a share `lost` besides."""
    random, misses = np.random.default_rng(0), np.random.default_rng(1)
    lines, scores = [HEAD], ["response_id,rater,kind,accuracy,completeness,clarity"]
    for i in range(n):
        benchmark = "visits" if i < 0.6 * n else "notes"
        lines.append(f"i{i},{benchmark},c {i},Write.,,r{i},m,said {i}")
        quality = random.normal(3, 0.9)
        for rater, noise in (("dr_a", 0.6), ("dr_b", 0.6), *zip(JURORS, (0.5, 0.8, 1.1))):  # noqa: B905  # fixed
            if rater == "gamma" and (i == 3 or misses.random() < lost):
                continue
            own = np.clip(np.rint(quality + random.normal(0, noise, 3)), 1, 5).astype(int)
            kind = "clinician" if rater.startswith("dr") else "juror"
            scores.append(f"r{i},{rater},{kind},{own[0]},{own[1]},{own[2]}")
    for command, text in (("import", lines), ("ratings", scores)):
        path = folder / f"{command}.csv"
        path.write_text("\n".join(text))
        code, _, said = run(command, str(path))
        assert code == 0, said
