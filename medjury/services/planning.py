"""Planning a study: from an assumed ICC, or from the ratings of a pilot."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from sqlalchemy import Engine
from threadpoolctl import threadpool_limits

from calibration.crossed import clinicians_mixed_model, crossed_model
from calibration.icc import spearman_brown
from calibration.json_values import json_value
from calibration.plan_values import (
    NonInferiorityRow,
    PanelSizeRow,
    Pilot,
    PlanOptions,
    PlanRow,
)
from calibration.planning import (
    assumed_rows,
    clinicians_reliability,
    jury_reliability,
    non_inferiority_rows,
    pilot_rows,
    protocol,
    share_at_top,
)
from calibration.reliability import assumed_panel_sizes, panel_sizes
from calibration.scope import AgreementRow, Scope, scopes, why_undefined_scope
from calibration.scores import Scores
from calibration.values import AnalysisOptions
from data.errors import BadInput
from data.queries.export import READINGS, reading_rows
from data.schema import State
from medjury.services.ledger import Looked
from medjury.services.record import steered
from medjury.services.scores import all_jurors, scores_of, silent_jurors


@dataclass(frozen=True)
class StudyPlan:
    """A plan, and what it rests on.

    Attributes
    ----------
    options : what was asked for, with the minutes that a pilot measured
    icc, single : what was assumed; None where a pilot tells
    pilot : what a study's ratings say, or None
    rows : responses for a width
    non_inferiority : what they show at a margin, where one is asked for
    reliability : of the mean of 1 to 6 clinicians, and of as many of a pilot's jurors
    told : sentences for a protocol, those of the pilot's record last
    unnoted : why the pilot's jury is not in the ledger, or ""
    """

    options: PlanOptions
    icc: float | None
    single: float | None
    pilot: Pilot | None
    rows: list[PlanRow]
    non_inferiority: list[NonInferiorityRow]
    reliability: list[PanelSizeRow]
    told: tuple[str, ...]
    unnoted: str = ""


def plan_from_assumption(
    options: PlanOptions, icc: float | None = None, single: float | None = None
) -> StudyPlan:
    """Return a plan from an assumed ICC(C,2), or that of a single rater; no study is needed."""
    rows = assumed_rows(icc, single, options)
    at_margin = non_inferiority_rows(rows, options)
    one = spearman_brown(icc or 0.0, 1 / 2) if single is None else single
    told = tuple(protocol(rows, options, at_margin=at_margin))
    sizes = assumed_panel_sizes(one)
    return StudyPlan(options, icc, single, None, rows, at_margin, sizes, told)


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
    jury = tuple(analysis.jurors or all_jurors(scores))
    scope = _scope(scores, jury, analysis)
    with threadpool_limits(1):  # many small products: BLAS threads only wait for each other
        of_clinicians, of_jury = clinicians_reliability(scope), jury_reliability(scope)
    minutes, top = _minutes(engine), share_at_top(scope)
    pilot = Pilot(scope.name, jury, of_clinicians, of_jury, *minutes, tuple(steered(engine)), top)
    if options.minutes is None:
        options = replace(options, minutes=pilot.minutes)
    rows = pilot_rows(pilot, options)
    at_margin = non_inferiority_rows(rows, options, pilot.top)
    sizes = panel_sizes("clinicians", clinicians_mixed_model(scope.grid))
    if len(scope.jurors) > 1:
        of_jurors = scope.grid.composites[:, scope.grid.of_kind("juror")]
        sizes += panel_sizes("jurors", crossed_model(of_jurors))
    told = *protocol(rows, options, pilot, at_margin), *pilot.told
    unnoted = ""
    if jury:
        row = AgreementRow(scope.name, "jury", icc=of_jury.icc, n_responses=of_jury.n_responses)
        looked = Looked(jury, len(jury), "", "paper", "")
        unnoted = looked.remember(engine, [row], (), scores.ratings)
    return StudyPlan(options, None, None, pilot, rows, at_margin, sizes, told, unnoted)


def to_json(plan: StudyPlan) -> dict[str, Any]:
    """Return the plan as `study plan --json` has it; what is undefined becomes None."""
    assumption = {"icc": plan.icc, "single_icc": plan.single}
    return {
        "assumed": assumption | {"pilot": json_value(plan.pilot)} | json_value(plan.options),
        "rows": json_value(plan.rows),
        "non_inferiority": json_value(plan.non_inferiority),
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
    state, seconds = READINGS.index("state"), READINGS.index("seconds_active")
    reading = READINGS.index("reading")
    spent = [
        float(row[seconds])
        for row in reading_rows(engine)
        if row[state] == State.DONE and row[seconds] > 0 and row[reading] == "independent"
    ]
    return (median(spent) / 60 if spent else None), len(spent)
