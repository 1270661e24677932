"""Which taxonomy a study uses."""

from sqlalchemy import Engine
from sqlmodel import Session, select

from data.database import transaction
from data.errors import Conflict
from data.person import asking
from data.queries.taxonomy import TAXONOMY, subcategories, taxonomy_in
from data.safe_text import short
from data.schema import Benchmark, Role, Setting
from data.store.audit import keep_setting, log, refuse_locked, taken_away
from data.taxonomy import Taxonomy, shipped_taxonomy

TAXONOMY_SET = "taxonomy set"


def use_taxonomy(engine: Engine, taxonomy: Taxonomy | None, actor: str) -> bool:
    """Have a study use a taxonomy of its own, or MedHELM's again (None); False if it does already.

    Benchmarks that somebody placed keep their places, so the taxonomy must have these.

    Raises
    ------
    Conflict
        If a benchmark stands where the taxonomy has no such place; the message names it.
    NotAllowed
        If the study is locked.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        chosen = taxonomy or shipped_taxonomy()
        if taxonomy_in(session).sha256 == chosen.sha256:
            return False
        _refuse_lost_places(session, chosen)
        stored = session.get(Setting, TAXONOMY)
        if taxonomy is not None and taxonomy.sha256 != shipped_taxonomy().sha256:
            seals = keep_setting(session, TAXONOMY, taxonomy.to_json())
        elif stored is not None:
            session.delete(stored)
            seals = [taken_away(stored)]
        detail = {"name": chosen.name, "version": chosen.version, "sha256": chosen.sha256}
        log(session, actor, TAXONOMY_SET, detail, seals)
    return True


def _refuse_lost_places(session: Session, taxonomy: Taxonomy) -> None:
    """Refuse a taxonomy without a place that a benchmark was given."""
    places = subcategories(taxonomy)
    for row in session.exec(select(Benchmark).where(Benchmark.category != "")):
        if row.category not in places or row.subcategory not in ("", *places[row.category]):
            at = " / ".join(filter(None, (row.category, row.subcategory)))
            raise Conflict(
                f"benchmark {short(row.name)}: was placed in {at}, which the taxonomy "
                f"{taxonomy.name} does not have; place it elsewhere first, or add the place to the file"
            )


# Have a study use a taxonomy; a coordinator does.
choose_taxonomy = asking(use_taxonomy, Role.COORDINATOR)
