"""What comparing models takes beside scores and authors: the taxonomy, and what calls have cost."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, func
from sqlmodel import col, select

import data
from data.database import reading
from data.queries.base import columns_of
from data.schema import Attempt, Benchmark, Rater

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


def categories(engine: Engine) -> dict[str, str]:
    """Return benchmark -> category: its own, else that of MedHELM's benchmark of this name, or ""."""
    known = known_places()
    with reading(engine) as session:
        found = session.exec(select(Benchmark.name, Benchmark.category))
        return {name: own or known.get(name, ("", ""))[0] for name, own in found}


def recorded(engine: Engine, jurors: Sequence[str]) -> list[Recorded]:
    """Return what the calls to some jurors have come to; none for a juror without calls."""
    tokens = col(Attempt.tokens_in)
    query = (
        columns_of(
            *(Rater.handle, func.count(), func.count(tokens), func.sum(tokens)),
            *(func.sum(Attempt.usd), func.count(col(Attempt.usd))),
        )
        .select_from(Attempt)
        .join(Rater)
        .where(col(Rater.handle).in_(jurors), Attempt.number > 0)
        .group_by(col(Rater.handle))
        .order_by(col(Rater.handle))
    )
    with reading(engine) as session:
        return [
            Recorded(name, calls, read if told == calls else None, usd or 0.0, calls - priced)
            for name, calls, told, read, usd, priced in session.exec(query)
        ]


def taxonomy() -> dict[str, list[str]]:
    """Return MedHELM's categories with their subcategories, in its order."""
    return {
        category["name"]: [part["name"] for part in category["subcategory"]]
        for category in _taxonomy()["category"]
    }


def known_places() -> Mapping[str, tuple[str, str]]:
    """Return category and subcategory of MedHELM's benchmarks, by name."""
    return {
        benchmark: (category["name"], part["name"])
        for category in _taxonomy()["category"]
        for part in category["subcategory"]
        for benchmark in part["benchmarks"]
    }


@cache
def _taxonomy() -> dict[str, Any]:
    return tomllib.loads(TAXONOMY.read_text("utf-8"))
