"""Tables of claims: the list of each response by its versions, and the calls that asked for one."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import JSON, Column, Index
from sqlmodel import AutoString, Field

from data.schema.model_calls import ModelCall
from data.schema.study import Table, now


class ClaimOrigin(StrEnum):
    """Who made a list of claims: the model that splits, or people who corrected it."""

    SPLITTER = "splitter"
    PEOPLE = "people"


class ClaimList(Table, table=True):
    """One version of the claims of a response; see `data.claims`.

    Append-only: of those of a response and a splitter (the primary key of the rater that is named so)
    the newest counts. `claims` has a `claim` and a `quote` for each, and is empty where the response
    states nothing that can be checked. `author` is who made it, as the record's events name people, or
    the splitter's name.
    """

    __tablename__ = "claim_list"
    __table_args__ = (Index("ix_claim_list_key", "response", "splitter"),)
    id: int | None = Field(default=None, primary_key=True)
    response: int = Field(foreign_key="response.id")
    splitter: int = Field(foreign_key="rater.id")
    claims: list[Any] = Field(default_factory=list, sa_column=Column(JSON, nullable=False))
    origin: ClaimOrigin = Field(sa_type=AutoString)
    author: str
    at: datetime = Field(default_factory=now)
    batch: str | None = Field(default=None, index=True)


class ClaimSplit(ModelCall, table=True):
    """One call that asked a model for the claims of a response; a failure is a row too, with its reason.

    Append-only. What it gave is in `claim_list`. `usd` is None where no price is known.
    """

    __tablename__ = "claim_split"
    __table_args__ = (Index("ix_claim_split_key", "rater", "response"),)
    response: int = Field(foreign_key="response.id", index=True)
