"""Answering a flag: the answer goes to a clinician, so that it must not name a model."""

from sqlalchemy import Engine

from annotate.blind import find_self_naming
from data.errors import BadInput
from data.person import Person
from data.queries.text_search import names_to_mask
from data.store.flags import answer_flag_as


def answer(person: Person, engine: Engine, remark: int, text: str) -> int:
    """Answer a flag in a coordinator's name; return the answer's key.

    Raises
    ------
    BadInput
        If the text names a model of the study, or any that is well known: who reads it rates blind.
    Unknown, NotAllowed
        If there is no such flag; unless a coordinator asks.
    """
    hits = find_self_naming(text, names_to_mask(person, engine))
    if hits:
        names = ", ".join(dict.fromkeys(hit.text for hit in hits))
        raise BadInput(f"the answer names what may be a model ({names}): who reads it rates blind")
    return answer_flag_as(person, engine, person.actor, remark, text)
