"""What all tables share."""

from datetime import UTC, datetime

from sqlalchemy import MetaData
from sqlalchemy.orm import registry
from sqlmodel import SQLModel

NAMING = {
    "ix": "ix_%(column_0_label)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


def now() -> datetime:
    """Return the present time, aware, in UTC."""
    return datetime.now(UTC)


class Table(SQLModel, registry=registry(metadata=MetaData(naming_convention=NAMING))):
    """Base of all tables, with names for every constraint so that migrations can move them."""
