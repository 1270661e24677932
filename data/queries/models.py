"""Who wrote what, for comparing models: read only where the blind is lifted or the study locked."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine, func, select
from sqlmodel import col

import data
from data.database import reading
from data.queries.record import acts
from data.schema import Attempt, Authorship, Benchmark, Expert, Rater, Response

TAXONOMY = Path(data.__file__).parent / "taxonomy.toml"


@dataclass(frozen=True, slots=True)
class Recorded:
    """What one juror's stored calls have come to.

    Attributes
    ----------
    calls
        Requests sent, those in vain among them.
    tokens_in
        Read by all of them; None where a call does not say.
    usd
        Of the calls whose price is known; `unknown` of them have none.
    """

    juror: str
    calls: int
    tokens_in: int | None
    usd: float
    unknown: int


def lifted(engine: Engine) -> bool:
    """Tell whether the blind was lifted since the study was last reopened."""
    told = acts(engine, "unblinded", "reopened")
    return bool(told) and told[-1].action == "unblinded"


def authors(engine: Engine) -> dict[str, str]:
    """Return response_id -> model of all but training responses."""
    query = (
        select(col(Response.response_id), col(Authorship.model))
        .join(Authorship, col(Authorship.response) == col(Response.id))
        .where(col(Response.id).not_in(select(col(Expert.response))))
        .order_by(col(Response.response_id))
    )
    with reading(engine) as session:
        return dict(map(tuple, session.execute(query)))


def model_names(engine: Engine) -> frozenset[str]:
    """Return the models that wrote the study's responses; not which."""
    with reading(engine) as session:
        return frozenset(session.scalars(select(col(Authorship.model)).distinct()))


def categories(engine: Engine) -> dict[str, str]:
    """Return benchmark -> category: its own, else that of MedHELM's benchmark of this name, or ""."""
    known = _medhelm()
    with reading(engine) as session:
        found = session.execute(select(col(Benchmark.name), col(Benchmark.category)))
        return {name: own or known.get(name, "") for name, own in found}


def recorded(engine: Engine, jurors: Sequence[str]) -> list[Recorded]:
    """Return what the calls to some jurors have come to; none for a juror without calls."""
    tokens = col(Attempt.tokens_in)
    query = (
        select(
            *(col(Rater.handle), func.count(), func.count(tokens), func.sum(tokens)),
            *(func.sum(col(Attempt.usd)), func.count(col(Attempt.usd))),
        )
        .join(Rater, col(Rater.id) == col(Attempt.rater))
        .where(col(Rater.handle).in_(jurors), col(Attempt.number) > 0)
        .group_by(col(Rater.handle))
        .order_by(col(Rater.handle))
    )
    with reading(engine) as session:
        return [
            Recorded(name, calls, read if told == calls else None, usd or 0.0, calls - priced)
            for name, calls, told, read, usd, priced in session.execute(query)
        ]


def _medhelm() -> Mapping[str, str]:
    """Return MedHELM's benchmark -> category."""
    taxonomy = tomllib.loads(TAXONOMY.read_text("utf-8"))
    return {
        benchmark: category["name"]
        for category in taxonomy["category"]
        for part in category["subcategory"]
        for benchmark in part["benchmarks"]
    }
