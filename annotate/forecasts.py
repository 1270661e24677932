"""Compute plans, predictions, metrics, packages and backups for the screens.

The worker process runs this, never the server: it loads pandas and scipy. What it returns is light.
"""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import Engine

from annotate.results import (
    BackupQuestion,
    ErrorsAnswer,
    ErrorsAsked,
    MeasureQuestion,
    PlanAnswer,
    PlanQuestion,
    PointsAsked,
    PredictionsAnswer,
    PredictionsQuestion,
    Whole,
)
from calibration.tables.errors import ABOUT, RULE
from calibration.tables.numbers import PAGE
from calibration.tables.planning import (
    means_table,
    panel_size_table,
    plan_tables,
    single_table,
)
from calibration.tables.spec import Table
from calibration.values import AnalysisOptions
from data.csv_files import csv_bytes
from data.study.moving import Copied, back_up
from data.study.package import write_package
from data.study.standing import benchmarks
from medjury.services.calibrate import Tick
from medjury.services.errors import ErrorsQuestion, study_errors
from medjury.services.errors import csv_of as csv_of_examples
from medjury.services.measuring import Scored, measure_study
from medjury.services.planning import plan_from_assumption, plan_from_pilot
from medjury.services.points import PointsQuestion, points_agreement, tables_of
from medjury.services.predicting import csv_of, predict


def planned(engine: Engine, question: PlanQuestion) -> PlanAnswer:
    """Return the tables and sentences of a plan, of an assumed ICC or of the study's own ratings.

    Raises
    ------
    BadInput
        If the study has no agreement to plan from.
    """
    options = question.options
    plan = (
        plan_from_pilot(engine, AnalysisOptions(benchmark=question.benchmark), options)
        if question.icc is None
        else plan_from_assumption(options, question.icc)
    )
    tables = plan_tables(plan.rows, options, PAGE)
    return PlanAnswer((*tables, panel_size_table(plan.reliability, PAGE)), plan.told)


def points_agreed(engine: Engine, asked: PointsAsked) -> tuple[Table, ...]:
    """Return the tables of agreement on points of the case; none where no benchmark is rated by them.

    Raises
    ------
    Unknown, Unrated
        As `medjury.services.points.points_agreement`.
    """
    options = asked.options
    views = benchmarks(engine)
    if not any(one.rubric.points and options.benchmark in (None, one.name) for one in views):
        return ()
    question = PointsQuestion(options.benchmark, options.jurors, options.reps, options.seed)
    return tuple(table for one in points_agreement(engine, question) for table in tables_of(one))


def errors_found(engine: Engine, asked: ErrorsAsked) -> ErrorsAnswer:
    """Return the errors that clinicians marked, and examples in their words.

    Raises
    ------
    BadInput, Unknown, Unrated, TooFew
        As `medjury.services.errors.study_errors`.
    """
    question = ErrorsQuestion(asked.benchmark, asked.jurors, None, asked.per_group, asked.criterion)
    found = study_errors(engine, question)
    told = (
        f"Jury: {', '.join(found.jury) or 'none has rated'}.",
        *([f"Asked, and gave no rating: {', '.join(found.silent)}."] if found.silent else []),
        *(ABOUT, RULE.format(found.per_group)),
        *found.told,
    )
    return ErrorsAnswer(found.benchmarks, found.simulated, told, csv_bytes(*csv_of_examples(found)))


def predicted(
    engine: Engine, question: PredictionsQuestion, tick: Tick | None = None
) -> PredictionsAnswer:
    """Return whether predictions may be used, their tables, and a row a response as CSV.

    Raises
    ------
    BadInput, Unknown, TooFew
        As `medjury.services.predicting.predict`.
    """
    result = predict(engine, question.options, question.level, tick)
    level = question.level
    means = means_table(result.rows, level, PAGE)
    single = replace(single_table(result.rows, level, PAGE), notes=())  # those of the means
    tables = (means, single)
    return PredictionsAnswer(
        result.decision, tables, result.told, csv_bytes(*csv_of(result.responses))
    )


def measured(
    engine: Engine, question: MeasureQuestion, tick: Tick | None = None
) -> tuple[str, ...]:
    """Score every response against its reference, store it, and return a sentence a metric.

    Raises
    ------
    BadInput
        If no response has a reference, or the metric's model is not installed.
    """
    return tuple(map(_told, measure_study(engine, question.metrics, tick)))


def package(engine: Engine, _: Whole) -> bytes:
    """Return the study as one package without authors, which an empty study takes in."""
    with TemporaryDirectory(prefix="medjury-package-") as folder:
        path = Path(folder, "study.zip")
        write_package(engine, path, "without", [])
        return path.read_bytes()


def backed_up(engine: Engine, question: BackupQuestion) -> Copied:
    """Write the whole study, authors too, to a new file on the server, and check it.

    Raises
    ------
    BadFile
        If the file is there already, cannot be written, or is not whole.
    """
    return back_up(engine, Path(question.place))


def _told(scored: Scored) -> str:
    cut = f"; {len(scored.cut)} were read only in part" if scored.cut else ""
    return f"{scored.name}: scored {len(scored.rows):,} of {scored.total:,} responses{cut}."
