"""Planning a study: from an assumed ICC, or from the ratings of a pilot."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from sqlalchemy import Engine
from threadpoolctl import threadpool_limits

from calibration.crossed import clinicians_mixed_model, crossed_model
from calibration.json_values import json_value
from calibration.notes import Note, sentence
from calibration.planning.non_inferiority import non_inferiority_rows
from calibration.planning.pilot import (
    clinicians_reliability,
    jury_reliability,
    share_at_top,
    variations,
)
from calibration.planning.plan import assumed_iccs, pilot_iccs, plan_rows, power_rows, protocol
from calibration.planning.rows import (
    NonInferiorityRow,
    PanelSizeRow,
    Pilot,
    PlanOptions,
    PlanRow,
    PowerRow,
)
from calibration.planning.sample_size import single_rater_icc
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


@dataclass(frozen=True, slots=True)
class Assumption:
    """The ICC that is assumed: ICC(C,2) as in the agreement table, or that of a single rater."""

    icc: float | None = None
    single: float | None = None


@dataclass(frozen=True)
class StudyPlan:
    """A plan, and what it rests on.

    Attributes
    ----------
    options : what was asked for, with the minutes that a pilot measured
    assumption : without a value where a pilot tells
    pilot : what a study's ratings say, or None
    rows, power : responses for a width, and the differences that they find
    non_inferiority : what they show at a margin, where one is asked for
    sentences : for a protocol
    reliability : of the mean of 1 to 6 clinicians, and of as many of a pilot's jurors
    unnoted : why the pilot's jury is not in the ledger, or ""
    """

    options: PlanOptions
    assumption: Assumption
    pilot: Pilot | None
    rows: tuple[PlanRow, ...]
    power: tuple[PowerRow, ...]
    sentences: tuple[Note, ...]
    unnoted: str = ""
    non_inferiority: tuple[NonInferiorityRow, ...] = ()
    reliability: tuple[PanelSizeRow, ...] = ()

    @property
    def told(self) -> tuple[str, ...]:
        """Return its sentences in words, those of the pilot's record last."""
        return (*map(sentence, self.sentences), *(self.pilot.told if self.pilot else ()))


def plan_from_assumption(assumption: Assumption, options: PlanOptions) -> StudyPlan:
    """Return a plan from an assumed ICC; no study is needed."""
    rows = plan_rows(
        [*assumed_iccs(assumption.icc, assumption.single, options.per_response)], options
    )
    power, at_margin = power_rows(rows, options), tuple(non_inferiority_rows(rows, options))
    sentences = protocol(rows, power, options, at_margin=at_margin)
    single = (
        single_rater_icc(assumption.icc or 0.0) if assumption.single is None else assumption.single
    )
    sizes = tuple(assumed_panel_sizes(single))
    plan = StudyPlan(options, assumption, None, tuple(rows), tuple(power), sentences)
    return replace(plan, non_inferiority=at_margin, reliability=sizes)


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
    pilot, unnoted, sizes = _piloted(engine, analysis)
    if options.minutes is None:
        options = replace(options, minutes=pilot.minutes)
    rows = plan_rows([*pilot_iccs(pilot, options.per_response)], options)
    power = power_rows(rows, options, pilot)
    at_margin = tuple(non_inferiority_rows(rows, options, pilot.top))
    sentences = protocol(rows, power, options, pilot, at_margin)
    plan = StudyPlan(options, Assumption(), pilot, tuple(rows), tuple(power), sentences, unnoted)
    return replace(plan, non_inferiority=at_margin, reliability=sizes)


def _piloted(
    engine: Engine, analysis: AnalysisOptions
) -> tuple[Pilot, str, tuple[PanelSizeRow, ...]]:
    """Return what the ratings say, why their jury is not in the ledger, or "", and panel sizes."""
    scores = scores_of(engine, of_clinicians=True)
    if analysis.jurors:
        scores = replace(scores, silent=frozenset(silent_jurors(engine, scores)))
    jury = analysis.jurors or all_jurors(scores)
    scope = _scope(scores, jury, analysis)
    with threadpool_limits(1):  # many small products: BLAS threads only wait for each other
        clinicians, of_jury = clinicians_reliability(scope), jury_reliability(scope)
        varied = variations(scope)
    minutes, timed = _minutes(engine)
    pilot = Pilot(
        scope.name,
        tuple(jury),
        clinicians,
        of_jury,
        tuple(varied),
        minutes,
        timed,
        tuple(steered(engine)),
        share_at_top(scope),
    )
    return pilot, _remember(engine, pilot, scores) if jury else "", _sizes(scope)


def _sizes(scope: Scope) -> tuple[PanelSizeRow, ...]:
    """Return how reliable the mean of 1 to 6 clinicians is, and of jurors where there are several."""
    grid = scope.grid
    jurors = grid.composites[:, grid.of_kind("juror")]
    sizes = panel_sizes("clinicians", clinicians_mixed_model(grid))
    return (
        *sizes,
        *(panel_sizes("jurors", crossed_model(jurors)) if len(scope.jurors) > 1 else ()),
    )


def to_json(plan: StudyPlan) -> dict[str, Any]:
    """Return the plan as `study plan --json` has it; what is undefined becomes None."""
    assumption = {"icc": plan.assumption.icc, "single_icc": plan.assumption.single}
    return {
        "assumed": assumption | {"pilot": json_value(plan.pilot)} | json_value(plan.options),
        "rows": json_value(plan.rows),
        "power": [json_value(row) | {"source": str(row.source)} for row in plan.power],
        "non_inferiority": json_value(plan.non_inferiority),
        "reliability": json_value(plan.reliability),
        "sentences": list(plan.told),
    }


def _remember(engine: Engine, pilot: Pilot, scores: Scores) -> str:
    looked = Looked(pilot.jurors, len(pilot.jurors), "", "paper", "")
    jury = pilot.jury
    row = AgreementRow(pilot.benchmark, "jury", icc=jury.icc, n_responses=jury.n_responses)
    return looked.remember(engine, [row], (), scores.ratings)


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
