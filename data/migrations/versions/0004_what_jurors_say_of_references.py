"""What jurors say of references."""

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "reference_check",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("instance", sa.Integer(), nullable=False),
        sa.Column("rater", sa.Integer(), nullable=False),
        sa.Column("absent", sa.Boolean(), nullable=True),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.Column("status", sqlmodel.AutoString(), nullable=False),
        sa.Column("reason", sqlmodel.AutoString(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("request_sha256", sqlmodel.AutoString(length=64), nullable=False),
        sa.Column("sent", sa.JSON(), nullable=False),
        sa.Column("raw", sqlmodel.AutoString(), nullable=False),
        sa.Column("tokens_in", sa.Integer(), nullable=True),
        sa.Column("tokens_out", sa.Integer(), nullable=True),
        sa.Column("tokens_cached", sa.Integer(), nullable=True),
        sa.Column("tokens_reasoning", sa.Integer(), nullable=True),
        sa.Column("usd", sa.Float(), nullable=True),
        sa.Column("price_source", sqlmodel.AutoString(), nullable=False),
        sa.Column("latency_seconds", sa.Float(), nullable=False),
        sa.Column("request_id", sqlmodel.AutoString(), nullable=False),
        sa.Column("returned_model", sqlmodel.AutoString(), nullable=False),
        sa.Column("at", sqlmodel.UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["instance"], ["instance.id"], name=op.f("fk_reference_check_instance_instance")
        ),
        sa.ForeignKeyConstraint(
            ["rater"], ["rater.id"], name=op.f("fk_reference_check_rater_rater")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reference_check")),
    )
    op.create_index("ix_reference_check_instance", "reference_check", ["instance"])
    op.create_index("ix_reference_check_key", "reference_check", ["rater", "instance"])


def downgrade() -> None:
    op.drop_table("reference_check")
