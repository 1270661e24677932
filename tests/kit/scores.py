"""Scores in memory whose answers are known: small studies, plain tables, periods, and their notes' words."""

from dataclasses import replace
from datetime import date

import numpy as np
import pandas as pd

from calibration.columns import PanelColumns
from calibration.monitoring import PeriodRow, finite_z, independent_se
from calibration.notes import Noted, told
from calibration.scope import Scope
from calibration.scores import RubricShape, Scores
from calibration.values import AnalysisOptions, MonitoringOptions
from kit.composites import NO_REPEATS, grid_of

CRITERIA = ("accuracy", "completeness", "clarity")
FIELDS = ["response_id", "instance_id", "benchmark", "rater", "kind", "criterion", "score"]
DOCTORS = tuple(f"dr{i}" for i in range(5))
JURORS = ("claude", "gpt", "llama")


def scores_of(rows, shapes, **other):
    """Return scores of rows: `FIELDS`, and pass and replicate where they are not 0."""
    columns = [*FIELDS, "pass_", "replicate"]
    ratings = pd.DataFrame([(*row, 0, 0)[:9] for row in rows], columns=columns)
    return Scores(ratings, ratings[FIELDS[:3]].drop_duplicates(ignore_index=True), shapes, **other)


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
    rows = []
    for benchmark in benchmarks:
        for i in range(n):
            place = (f"{benchmark}-r{i}", f"{benchmark}-i{i // per}", benchmark)
            quality = 3 + random.normal()
            doctors = [(name, "clinician", 0.6) for name in random.permutation(DOCTORS)[:2]]
            jurors = [(name, "juror", juror_noise) for name in JURORS]
            for name, kind, noise in doctors + jurors:
                for criterion in rubrics[benchmark].criteria:
                    score = float(np.clip(round(quality + noise * random.normal()), 1, 5))
                    rows.append((*place, str(name), kind, criterion, score))
            rows.append((*place, "rouge-l", "metric", "f", quality / 5 + 0.2 * random.normal()))
    return scores_of(rows, rubrics, simulated=frozenset(simulated))


def without(scores, rows):
    return replace(scores, ratings=scores.ratings[~rows])


def lost(scores, query):
    """Return scores without the ratings that a query of pandas finds."""
    return without(scores, scores.ratings.index.isin(scores.ratings.query(query).index))


def rescored(scores, change):
    """Return scores in which those of each rating are what `change` makes of the ratings."""
    return replace(scores, ratings=scores.ratings.assign(score=change(scores.ratings)))


def rescored_of(scores, who, score, criterion=None):
    """Return scores in which those of one rater are `score`, or what it makes of them."""

    def change(table):
        own = table["rater"] == who
        own &= (table["criterion"] == criterion) if criterion else True
        return table["score"].mask(own, score(table["score"]) if callable(score) else score)

    return rescored(scores, change)


def rows_of(table):
    return {(row.benchmark, row.scorer): row for row in table.itertuples(index=False)}


def rated(
    clinicians,
    jurors=(),
    metrics=(),
    *,
    instances=None,
    benchmark="visits",
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
    ratings = pd.DataFrame(rows, columns=FIELDS).assign(pass_=0, replicate=0)
    responses = pd.DataFrame([(*one, benchmark) for one in ids], columns=FIELDS[:3])
    of = {
        name: {one[0]: value for one, value in zip(ids, values, strict=True) if value}
        for name, values in (groups or {}).items()
    }
    shape = {benchmark: RubricShape(("safety",), 1, 5, (("safety", 2.0),))}
    return Scores(ratings, responses, shape, frozenset(simulated), groups=of)


def both(first, second):
    """Return the scores of two studies as one."""
    return Scores(
        pd.concat([first.ratings, second.ratings], ignore_index=True),
        pd.concat([first.responses, second.responses], ignore_index=True),
        {**first.rubrics, **second.rubrics},
        first.simulated | second.simulated,
    )


def scope_of(table, clinicians, *, per=1, reps=200, seed=0, method="paper", simulated=()):
    """Return a scope of composites (n, raters): clinicians first, then jurors."""
    table = np.asarray(table, dtype=float)
    n, jurors = len(table), table.shape[1] - clinicians
    grid = grid_of(table, np.arange(n) // per, jurors)
    members = grid.raters[clinicians:]
    return Scope(
        name="aci",
        grid=grid,
        composites=pd.DataFrame(),
        in_study=n,
        incomplete={},
        repeats=NO_REPEATS,
        jury=PanelColumns(members, len(members)) if members else None,
        jurors=members,
        metrics=(),
        simulated=frozenset(simulated),
        options=AnalysisOptions(method=method, reps=reps, seed=seed),
    )


NAN = float("nan")


def row(place, icc, n=20, *, se=NAN, boot=(NAN, NAN), **other):
    """Return the row of the period number `place`, a month from January 2025 on."""
    start, after = (date(2025 + n // 12, n % 12 + 1, 1) for n in (place, place + 1))
    values = {
        "period": f"p{place}",
        "start": start,
        "end": date.fromordinal(after.toordinal() - 1),
        "over": True,
        "too_few": False,
        "unfilled": False,
        "icc": icc,
        "low": boot[0],
        "high": boot[1],
        "fisher_z": float(finite_z(icc)),
        "se": independent_se(n) if np.isnan(se) else se,
        "n_responses": n,
        "n_instances": n,
        "n_clinicians": 2,
        "n_missing": 0,
    }
    return PeriodRow(**values | other)


def watching(**other):
    """Return options of watching by month, on a day when every period is over."""
    return MonitoringOptions(**{"today": date(2100, 1, 1)} | other)


def note_of(row: Noted) -> str:
    """Return the notes of a row as the key `note` has them."""
    return told(row.notes)


def codes(decision):
    """Return the codes of a decision's reasons."""
    return [one.code for one in decision.reasons]
