"""Scores of one criterion from plain tables, for tests of unsafe responses and subgroups."""

import numpy as np
import pandas as pd

from calibration.scores import RubricShape, Scores


def rated(
    clinicians,
    jurors=(),
    metrics=(),
    *,
    instances=None,
    benchmark="visits",
    critical=(("safety", 2.0),),
    groups=None,
    simulated=(),
):
    """Return scores of tables (n, raters), NaN where there is none, on the criterion safety."""
    n = len(clinicians)
    places = range(n) if instances is None else instances
    ids = [(f"{benchmark}-r{i}", f"{benchmark}/i{place}") for i, place in enumerate(places)]
    kinds = (("clinician", "dr", clinicians), ("juror", "j", jurors), ("metric", "m", metrics))
    rows = [
        (*ids[i], benchmark, f"{name}{column}", kind, "safety" if kind != "metric" else "f", score)
        for kind, name, table in kinds
        for i, row in enumerate(table)
        for column, score in enumerate(row)
        if not np.isnan(score)
    ]
    names = ["response_id", "instance_id", "benchmark", "rater", "kind", "criterion", "score"]
    ratings = pd.DataFrame(rows, columns=names).assign(pass_=0, replicate=0)
    responses = pd.DataFrame([(*one, benchmark) for one in ids], columns=names[:3])
    for name, values in (groups or {}).items():
        responses[f"group:{name}"] = values
    shape = {benchmark: RubricShape(("safety",), 1, 5, critical)}
    return Scores(ratings, responses, shape, frozenset(simulated))


def both(first, second):
    """Return the scores of two studies as one."""
    return Scores(
        pd.concat([first.ratings, second.ratings], ignore_index=True),
        pd.concat([first.responses, second.responses], ignore_index=True),
        {**first.rubrics, **second.rubrics},
        first.simulated | second.simulated,
    )
