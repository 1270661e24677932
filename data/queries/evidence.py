"""What statistics on jurors need beside the scores: lengths and families; never for raters or jurors."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, select
from sqlmodel import col

from data.database import reading
from data.queries.families import families_of
from data.schema import Authorship, Expert, Kind, Rater, Response


@dataclass(frozen=True, slots=True)
class Evidence:
    """Facts about responses and jurors that no rater is shown.

    Attributes
    ----------
    words
        response_id -> number of words of the response as raters see it.
    authors
        response_id -> family of its author; absent where the name tells none, or two.
    families
        Juror -> family, as its panel said when it was first run; "" where none is known.
    """

    words: Mapping[str, int]
    authors: Mapping[str, str]
    families: Mapping[str, str]


def evidence(engine: Engine, panel: Mapping[str, str] = {}) -> Evidence:
    """Return the lengths and author families of all but training responses, and the jurors'.

    `panel` has families of jurors; they count where the study has none, as of imported jurors.
    """
    with reading(engine) as session:
        jurors: Any = session.execute(
            select(col(Rater.handle), col(Rater.family)).where(col(Rater.kind) == Kind.JUROR)
        ).all()
        families = {handle: _family(family or panel.get(handle, "")) for handle, family in jurors}
        rows: Any = session.execute(
            select(
                col(Response.response_id),
                col(Response.shown),
                col(Response.text),
                col(Authorship.model),
            )
            .outerjoin(Authorship, col(Authorship.response) == col(Response.id))
            .where(col(Response.id).not_in(select(col(Expert.response))))
            .order_by(col(Response.id))
        )
        words, authors = dict[str, int](), dict[str, str]()
        for name, shown, text, model in rows:
            words[name] = len((text if shown is None else shown).split())
            if len(known := families_of(model or "", frozenset(families.values()) - {""})) == 1:
                authors[name] = next(iter(known))
    return Evidence(words, authors, families)


def _family(told: str) -> str:
    """Return a panel's family by the name used here, or as it is written where none fits."""
    known = families_of(told)
    return next(iter(known)) if len(known) == 1 else told.strip().casefold()
