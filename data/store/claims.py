"""Correcting the claims of a response: a new version of their list, the earlier ones stay."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Engine, func
from sqlmodel import col, select

from data.claims import Claim, fault
from data.database import transaction
from data.errors import BadInput, NotAllowed, Unknown
from data.person import Person, only
from data.queries.base import FOR_STUDY
from data.queries.claims import has_rated
from data.rubric import first_complaint
from data.schema import ClaimList, ClaimOrigin, Rater, Response, Role, now
from data.store.audit import log, refuse_locked, write_rows

CORRECTED = "claims corrected"


@only(Role.CLINICIAN, Role.COORDINATOR)
def correct_claims(
    person: Person,
    engine: Engine,
    response: int,
    splitter: str,
    rows: Sequence[Mapping[str, Any]],
) -> bool:
    """Store another version of a response's claims; False if it is so already.

    Parameters
    ----------
    response : its primary key
    splitter : name of the model whose list is corrected
    rows : `claim` and `quote` of each claim, all of them

    Raises
    ------
    Unknown
        If the study has no such response, or no list of it by that model.
    BadInput
        If the list cannot be one of this response.
    NotAllowed
        If the study is locked, or a clinician has not rated the response.
    """
    claims = [_claim(number, row) for number, row in enumerate(rows, 1)]
    with transaction(engine) as session:
        refuse_locked(session)
        shown = func.coalesce(Response.shown, Response.text)
        text = session.exec(select(shown).where(Response.id == response, FOR_STUDY)).first()
        present = session.exec(
            select(ClaimList)
            .join(Rater)
            .where(ClaimList.response == response, Rater.handle == splitter)
            .order_by(col(ClaimList.id).desc())
        ).first()
        if text is None or present is None:
            raise Unknown(f"response {response}: the study has no claims of it by {splitter}")
        if person.role == Role.CLINICIAN and not has_rated(session, person, response):
            raise NotAllowed("claims are corrected by clinicians who have rated the response")
        if why := fault(claims, text):
            raise BadInput(f"claims: {why}; nothing was stored")
        stored = [claim.model_dump() for claim in claims]
        if stored == present.claims:
            return False
        row = {
            "response": response,
            "splitter": present.splitter,
            "claims": stored,
            "origin": ClaimOrigin.PEOPLE.value,
            "author": person.actor,
            "at": now(),
        }
        log(session, person.actor, CORRECTED, {"written": write_rows(session, ClaimList, [row])})
        return True


def _claim(number: int, row: Mapping[str, Any]) -> Claim:
    texts = {name: " ".join(f"{row.get(name) or ''}".split()) for name in ("claim", "quote")}
    try:
        return Claim(**texts)
    except ValidationError as error:
        raise BadInput(f"claims, number {number}: {first_complaint(error.errors())}") from error
