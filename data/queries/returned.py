"""Finding again, in a study, what an export of it brings back: instances, responses, rubrics."""

from collections.abc import Iterable

from sqlalchemy import Engine, func
from sqlmodel import col, select

from data.database import reading
from data.importers.finished import InstanceTexts
from data.queries.base import columns_of
from data.rubric import Rubric
from data.schema import Instance, Response, RubricText

Key = tuple[str, str]


def instance_texts(engine: Engine, benchmarks: Iterable[str]) -> dict[Key, InstanceTexts]:
    """Return the texts of all instances of some benchmarks, by benchmark and the instance's id."""
    texts = (Instance.context, Instance.prompt, Instance.reference, Instance.checklist)
    query = columns_of(Instance.benchmark, Instance.instance_id, *texts)
    query = query.where(col(Instance.benchmark).in_(sorted(set(benchmarks))))
    with reading(engine) as session:
        return {(name, one): InstanceTexts(*rest) for name, one, *rest in session.exec(query)}


def shown_responses(engine: Engine, benchmarks: Iterable[str]) -> dict[str, tuple[Key, str]]:
    """Return the place of each response and its text as raters see it, by its id."""
    place = (Instance.benchmark, Instance.instance_id)
    shown = func.coalesce(Response.shown, Response.text)
    query = columns_of(Response.response_id, *place, shown)
    query = query.select_from(Response).join(Instance)
    query = query.where(col(Instance.benchmark).in_(sorted(set(benchmarks))))
    with reading(engine) as session:
        return {name: ((where, one), text) for name, where, one, text in session.exec(query)}


def rubrics_known(engine: Engine) -> dict[str, Rubric]:
    """Return every rubric that stands in the study, by its hash."""
    with reading(engine) as session:
        rows = session.exec(select(RubricText.sha256, RubricText.body))
        return {sha256: Rubric.from_json(body) for sha256, body in rows}
