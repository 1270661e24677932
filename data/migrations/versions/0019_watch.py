"""What a watch took in, and the alarms it raised."""

from typing import Any

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def _text(name: str) -> "sa.Column[Any]":
    return sa.Column(name, sqlmodel.AutoString(), nullable=False)


def _number(name: str, *, nullable: bool = False) -> "sa.Column[Any]":
    return sa.Column(name, sa.Integer(), nullable=nullable)


def _values(name: str) -> "sa.Column[Any]":
    return sa.Column(name, sa.JSON(), nullable=False)


def _ends(table: str) -> "tuple[sa.Column[Any] | sa.PrimaryKeyConstraint, ...]":
    """Return when a row was written, the act that wrote it, and the key."""
    return (
        sa.Column("at", sqlmodel.UTCDateTime(), nullable=False),
        sa.Column("batch", sqlmodel.AutoString(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{table}")),
    )


def upgrade() -> None:
    op.create_table(
        "intake",
        _number("id"),
        sa.Column("digest", sqlmodel.AutoString(length=64), nullable=False),
        _text("outcome"),
        *(_number(name) for name in ("size", "responses", "unchanged")),
        *(_number(name, nullable=True) for name in ("first", "last")),
        sa.Column("share", sa.Float(), nullable=False),
        _number("seed"),
        *(_values(name) for name in ("drawn", "counts")),
        _text("reason"),
        *_ends("intake"),
    )
    op.create_table(
        "alarm",
        _number("id"),
        *(_text(name) for name in ("key", "benchmark", "owner", "action")),
        _number("due_days"),
        _values("figures"),
        *_ends("alarm"),
    )
    op.create_table(
        "alarm_step",
        _number("id"),
        _number("alarm"),
        *(_text(name) for name in ("kind", "way", "actor", "text")),
        sa.ForeignKeyConstraint(["alarm"], ["alarm.id"], name=op.f("fk_alarm_step_alarm_alarm")),
        *_ends("alarm_step"),
    )
    for table, columns in (
        ("intake", ("digest", "batch")),
        ("alarm", ("key", "batch")),
        ("alarm_step", ("alarm", "batch")),
    ):
        for column in columns:
            op.create_index(op.f(f"ix_{table}_{column}"), table, [column])


def downgrade() -> None:
    for table in ("alarm_step", "alarm", "intake"):
        op.drop_table(table)
