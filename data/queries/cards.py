"""What a card shows of a response. The author's table is not read here."""

from typing import Any

from sqlalchemy import Select, func, select
from sqlmodel import col

from data.card import Card
from data.rubric import Rubric
from data.schema import Instance, Response

Columns = Select[*tuple[Any, ...]]


def shown(*also: Any) -> Columns:
    """Select what a card shows of a response, and what else is asked for; never its author."""
    text = func.coalesce(col(Response.shown), col(Response.text))
    before = (col(Instance.context), col(Instance.prompt))
    after = (col(Instance.reference), col(Instance.checklist))
    query: Columns = (
        select(*before, text, *after, *(col(one) for one in also))
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
