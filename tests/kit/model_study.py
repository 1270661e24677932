"""Studies of several models whose answers are known, for tests of comparisons."""

import dataclasses

import numpy as np
import pandas as pd

from calibration.models import compare_models
from calibration.scores import RubricShape, Scores
from calibration.tables.models import WAYS, ModelRow
from calibration.values import AnalysisOptions

SCALE = RubricShape(("accuracy",), 1, 5)

QUALITY = {"alpha": 3.4, "beta": 3.1, "gamma": 2.8}

FIELDS = ["response_id", "instance_id", "benchmark", "rater", "kind", "criterion", "score"]


def model_study(
    quality,
    *,
    bias=None,
    n=60,
    rated=25,
    benchmarks=("letters", "notes"),
    noise=0.4,
    seed=0,
    simulated=(),
):
    """Return scores and authors: every response juried, `rated` instances a benchmark rated.

    `quality` is model -> points on 1 to 5, `bias` model -> points that the jury adds.
    Scores are not rounded, and with qualities between 2 and 4 hardly one is cut at 1 or 5.
    """
    random = np.random.default_rng(seed)
    rows, responses, authors = [], [], {}
    for benchmark in benchmarks:
        hard = 0.3 * random.normal(size=n)
        chosen = set(random.permutation(n)[:rated].tolist())
        for i in range(n):
            for model, points in quality.items():
                place = (f"{benchmark}-{i}-{model}", f"{benchmark}/{i}", benchmark)
                authors[place[0]] = model
                responses.append(place)
                true = points + hard[i] + noise * random.normal()
                jury = true + (bias or {}).get(model, 0.0) + noise * random.normal(size=2)
                given = [("gpt", "juror", jury[0]), ("llama", "juror", jury[1])]
                if i in chosen:
                    doctors = true + noise * random.normal(size=2)
                    given += [("dr_a", "clinician", doctors[0]), ("dr_b", "clinician", doctors[1])]
                rows += [
                    (*place, who, kind, "accuracy", float(np.clip(score, 1, 5)))
                    for who, kind, score in given
                ]
    ratings = pd.DataFrame(rows, columns=FIELDS).assign(pass_=0, replicate=0)
    shapes = dict.fromkeys(benchmarks, SCALE)
    table = pd.DataFrame(responses, columns=FIELDS[:3])
    return Scores(ratings, table, shapes, frozenset(simulated)), authors


def by_hand():
    """Three models, one benchmark of two instances, one clinician and one juror; no chance in it.

    Clinician a 5, 4; b 3, 5; c 2, 2. Juror a 1, 1; b 2, 2; c 3, missing.
    """
    doctor = {"a": (5, 4), "b": (3, 5), "c": (2, 2)}
    juror = {"a": (1, 1), "b": (2, 2), "c": (3, None)}
    rows, responses = [], []
    for model, given in doctor.items():
        for i, points in enumerate(given):
            place = (f"{model}{i}", f"notes/{i}", "notes")
            responses.append(place)
            rows.append((*place, "dr_a", "clinician", "accuracy", float(points)))
            if juror[model][i] is not None:
                rows.append((*place, "gpt", "juror", "accuracy", float(juror[model][i])))
    ratings = pd.DataFrame(rows, columns=FIELDS).assign(pass_=0, replicate=0)
    table = pd.DataFrame(responses, columns=FIELDS[:3])
    return Scores(ratings, table, {"notes": SCALE}), {one[0]: one[0][0] for one in responses}


def compared(scores, authors, categories=None, by=WAYS, **options):
    options = {"jurors": ("gpt", "llama"), "reps": 200} | options
    return compare_models(scores, authors, categories or {}, AnalysisOptions(**options), by)


def by_instance(table, column):
    """Return the scores of one benchmark, shape (models, instances), of one response each."""
    return table.pivot(index="model", columns="instance", values=column).to_numpy()


def by_model(found, by):
    return {row.model: row for row in found.rows if row.by == by}


def model_row(model="alpha", by="clinicians", **fields):
    """Return a row of figures that are all 0.5, with other fields in their place."""
    figures = dict.fromkeys(
        [one.name for one in dataclasses.fields(ModelRow) if one.type is float], 0.5
    )
    counts = {"shared_rank_low": 1, "shared_rank_high": 1}
    counts |= {"n_benchmarks": 2, "n_responses": 9, "n_missing": 21, "n_rated": 9}
    rest = {"not_told_apart": (), "without": (), "categories": {"": 0.5}}
    return ModelRow(**({"model": model, "by": by, **figures, **counts, **rest} | fields))
