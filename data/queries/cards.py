"""What a card shows of a response. The author's table is not read here."""

from typing import Any

from sqlalchemy import Select, select
from sqlmodel import col

from data.card import Card
from data.rubric import Rubric
from data.schema import Instance, Response

Columns = Select[*tuple[Any, ...]]


def shown(*also: Any) -> Columns:
    """Select what a card shows of a response, and what else is asked for; never its author."""
    texts = (Instance.context, Instance.prompt, Response.text)
    support = (Instance.reference, Instance.checklist)
    query: Columns = (
        select(*(col(one) for one in (*texts, *support)), *(col(one) for one in also))
        .select_from(Response)
        .join(Instance, col(Instance.id) == col(Response.instance))
    )
    return query


def card(code: str, texts: list[Any], rubric: Rubric) -> Card:
    """Return a card, with the reference only where the rubric's gold policy shows one."""
    context, prompt, response, reference, checklist = texts
    if rubric.gold == "never":
        reference = None
    return Card(code, context, prompt, response, reference, checklist)
