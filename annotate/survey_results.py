"""The results of a survey as tables, made in the worker process: it loads numpy and scipy."""

from sqlalchemy import Engine

from annotate.results import SurveyQuestion
from calibration.tables.spec import Table
from medjury.services.surveys import survey_results, tables_of


def surveyed(engine: Engine, question: SurveyQuestion) -> tuple[Table, ...]:
    """Return the results of all rounds as tables."""
    return tuple(tables_of(survey_results(engine, question.reps, question.seed)))
