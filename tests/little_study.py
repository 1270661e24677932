"""Small simulated studies whose answers are known, for tests of the agreement table."""

import numpy as np
import pandas as pd

from calibration.scores import RubricShape, Scores

CRITERIA = ("accuracy", "completeness", "clarity")
FIELDS = ["response_id", "instance_id", "benchmark", "rater", "kind", "criterion", "score"]
DOCTORS = tuple(f"dr{i}" for i in range(5))
JURORS = ("claude", "gpt", "llama")


def study(
    benchmarks=("aci",),
    n=30,
    per=1,
    seed=0,
    juror_noise=0.6,
    scales=None,
    criteria=None,
    simulated=(),
):
    """Two of five clinicians a response, three jurors and a metric, all seeing one quality."""
    random = np.random.default_rng(seed)
    scales, criteria = scales or {}, criteria or {}
    rubrics = {
        name: RubricShape(criteria.get(name, CRITERIA), *scales.get(name, (1, 5)))
        for name in benchmarks
    }
    rows, responses = [], []
    for benchmark in benchmarks:
        for i in range(n):
            place = (f"{benchmark}-r{i}", f"{benchmark}-i{i // per}", benchmark)
            quality = 3 + random.normal()
            responses.append(place)
            doctors = [(name, "clinician", 0.6) for name in random.permutation(DOCTORS)[:2]]
            jurors = [(name, "juror", juror_noise) for name in JURORS]
            for name, kind, noise in doctors + jurors:
                for criterion in rubrics[benchmark].criteria:
                    score = float(np.clip(round(quality + noise * random.normal()), 1, 5))
                    rows.append((*place, str(name), kind, criterion, score))
            rows.append((*place, "rouge-l", "metric", "f", quality / 5 + 0.2 * random.normal()))
    ratings = pd.DataFrame(rows, columns=FIELDS).assign(pass_=0, replicate=0)
    return Scores(
        ratings, pd.DataFrame(responses, columns=FIELDS[:3]), rubrics, frozenset(simulated)
    )


def without(scores, rows):
    return Scores(scores.ratings[~rows], scores.responses, scores.rubrics, scores.simulated)


def rows_of(table):
    return {(row.benchmark, row.scorer): row for row in table.itertuples(index=False)}
