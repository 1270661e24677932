"""Planning a study: from an assumed ICC, or from the ratings of a pilot."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np
from sqlalchemy import Engine
from threadpoolctl import threadpool_limits

from calibration.crossed import clinicians_mixed_model, crossed_model
from calibration.json_values import json_value
from calibration.planning import (
    Pilot,
    PlanRow,
    assumed_rows,
    pilot_rows,
    protocol,
)
from calibration.reliability import (
    PanelSizeRow,
    assumed_panel_sizes,
    panel_sizes,
    reliability_rows,
)
from calibration.scope import Scope, scopes, why_undefined_scope
from calibration.scores import Scores
from calibration.table import scope_rows
from calibration.values import AnalysisOptions, PlanOptions, PlanQuestion
from data.errors import BadInput
from data.schema import State
from data.study.export import columns, reading_rows
from medjury.services.ledger import Looked
from medjury.services.record import steered
from medjury.services.scores import scores_of, silent_jurors


@dataclass(frozen=True)
class StudyPlan:
    """A plan, and what it rests on.

    Attributes
    ----------
    options : what was asked for, with the minutes that a pilot measured
    pilot : what a study's ratings say, or None
    rows : designs, and what they show
    reliability : of the mean of 1 to 6 clinicians, and of as many of a pilot's jurors
    told : sentences for a protocol, those of the pilot's record last
    unnoted : why the pilot's jury is not in the ledger, or ""
    """

    options: PlanOptions
    pilot: Pilot | None
    rows: list[PlanRow]
    reliability: list[PanelSizeRow]
    told: tuple[str, ...]
    unnoted: str = ""


def planned(engine: Engine | None, question: PlanQuestion) -> StudyPlan:
    """Return the plan that is asked for, of an assumed ICC or of the study's own ratings.

    Raises
    ------
    BadInput
        If the study has no agreement to plan from.
    """
    options = question.options
    if engine is None or question.icc is not None:
        return plan_from_assumption(options, question.icc, question.single)
    analysis = AnalysisOptions(benchmark=question.benchmark, seed=options.seed)
    return plan_from_pilot(engine, analysis, options)


def plan_from_assumption(
    options: PlanOptions, icc: float | None = None, single: float | None = None
) -> StudyPlan:
    """Return a plan from an assumed ICC(C,2), or that of a single rater; no study is needed."""
    with threadpool_limits(1):
        rows = assumed_rows(options, icc, single)
    sizes = assumed_panel_sizes(rows[0].icc_single)
    return StudyPlan(options, None, rows, sizes, tuple(protocol(rows, options)))


def plan_from_pilot(engine: Engine, analysis: AnalysisOptions, options: PlanOptions) -> StudyPlan:
    """Return a plan from what a study's ratings say.

    The ledger is told that the pilot's jury was compared with the clinicians.

    Parameters
    ----------
    engine : of the pilot
    analysis : its jury, benchmark and seed
    options : without minutes, those that its readings took are taken

    Raises
    ------
    BadInput
        If the study has no such benchmark, or one without agreement to plan from.
    """
    scores = scores_of(engine)
    if analysis.jurors:
        scores = replace(scores, silent=frozenset(silent_jurors(engine, scores)))
    jurors = tuple(analysis.jurors or scores.all_jurors())
    scope = _scope(scores, jurors, analysis)
    minutes, timed = _minutes(engine)
    options = replace(options, minutes=options.minutes or minutes)
    with threadpool_limits(1):  # many small products: BLAS threads only wait for each other
        (clinicians,) = (row for row in reliability_rows(scope) if row.form == "ICC(C,1)")
        jury = next((row for row in scope_rows(scope) if row.scorer == "jury"), None)
        given = scope.grid.composites[:, scope.grid.of_kind("clinician")]
        told, top = (
            tuple(steered(engine)),
            (given == np.nanmax(given)).sum() / np.isfinite(given).sum(),
        )
        pilot = Pilot(scope.name, jurors, clinicians, jury, minutes, timed, told, float(top))
        rows = pilot_rows(pilot, options)
    sizes = panel_sizes("clinicians", clinicians_mixed_model(scope.grid))
    if len(scope.jurors) > 1:
        of_jurors = scope.grid.composites[:, scope.grid.of_kind("juror")]
        sizes += panel_sizes("jurors", crossed_model(of_jurors))
    unnoted = ""
    if jury is not None:
        looked = Looked(jurors, len(jurors), "", "paper", "")
        unnoted = looked.remember(engine, [jury], (), scores.ratings)
    sentences = *protocol(rows, options, pilot), *told
    return StudyPlan(options, pilot, rows, sizes, sentences, unnoted)


def to_json(plan: StudyPlan) -> dict[str, Any]:
    """Return the plan as `study plan --json` has it; what is undefined becomes None."""
    return {
        "assumed": {"pilot": json_value(plan.pilot)} | json_value(plan.options),
        "rows": json_value(plan.rows),
        "reliability": json_value(plan.reliability),
        "sentences": list(plan.told),
    }


def _scope(scores: Scores, jury: Sequence[str], analysis: AnalysisOptions) -> Scope:
    """Return one benchmark of the study, or by default all of it."""
    options = AnalysisOptions(jurors=tuple(jury) or None, reps=analysis.reps, seed=analysis.seed)
    by_name = {scope.name: scope for scope in scopes(scores, options)}
    benchmark = analysis.benchmark
    if benchmark is not None and benchmark not in by_name:
        raise BadInput(f"--benchmark {benchmark}: the study has {', '.join(by_name)}")
    scope = by_name[benchmark] if benchmark is not None else list(by_name.values())[-1]
    if why := why_undefined_scope(scores, scope):
        raise BadInput(f"no pilot in {scope.name}: {why.text}; --benchmark names one by itself")
    return scope


def _minutes(engine: Engine) -> tuple[float | None, int]:
    """Return the median minutes of a finished reading, and of how many; None of none."""
    state, seconds, reading = (
        columns("readings.csv").index(name) for name in ("state", "seconds_active", "reading")
    )
    spent = [
        float(row[seconds])
        for row in reading_rows(engine)
        if row[state] == State.DONE and row[seconds] > 0 and row[reading] == "independent"
    ]
    return (median(spent) / 60 if spent else None), len(spent)
