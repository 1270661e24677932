"""Calls that asked a model for points of cases."""

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "point_call",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("instance", sa.Integer(), nullable=False),
        sa.Column("rater", sa.Integer(), nullable=False),
        sa.Column("status", sqlmodel.AutoString(), nullable=False),
        sa.Column("reason", sqlmodel.AutoString(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("request_sha256", sqlmodel.AutoString(length=64), nullable=False),
        sa.Column("sent", sa.JSON(), nullable=False),
        sa.Column("raw", sqlmodel.AutoString(), nullable=False),
        *(
            sa.Column(name, sa.Integer(), nullable=True)
            for name in (
                *("tokens_in", "tokens_out", "tokens_cached", "tokens_cache_write"),
                "tokens_reasoning",
            )
        ),
        *(
            sa.Column(name, sa.Float(), nullable=True)
            for name in ("usd", "usd_cached", "usd_cache_write", "usd_out")
        ),
        sa.Column("price_source", sqlmodel.AutoString(), nullable=False),
        sa.Column("latency_seconds", sa.Float(), nullable=False),
        sa.Column("request_id", sqlmodel.AutoString(), nullable=False),
        sa.Column("returned_model", sqlmodel.AutoString(), nullable=False),
        sa.Column("at", sqlmodel.UTCDateTime(), nullable=False),
        *(
            sa.ForeignKeyConstraint([name], [to], name=op.f(f"fk_point_call_{name}_{name}"))
            for name, to in (("instance", "instance.id"), ("rater", "rater.id"))
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_point_call")),
    )
    op.create_index(op.f("ix_point_call_instance"), "point_call", ["instance"])


def downgrade() -> None:
    op.drop_table("point_call")
