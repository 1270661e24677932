"""The ledger of juries that were evaluated."""

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "composition",
        sa.Column("key", sqlmodel.AutoString(length=64), nullable=False),
        sa.Column("jurors", sa.JSON(), nullable=False),
        sa.Column("needed", sa.Integer(), nullable=False),
        sa.Column("benchmark", sqlmodel.AutoString(), nullable=False),
        sa.Column("instances", sqlmodel.AutoString(), nullable=False),
        sa.Column("criterion", sqlmodel.AutoString(), nullable=False),
        sa.Column("method", sqlmodel.AutoString(), nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("compared", sa.JSON(), nullable=False),
        sa.Column("icc", sa.Float(), nullable=True),
        sa.Column("n_responses", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sqlmodel.AutoString(length=64), nullable=False),
        sa.Column("times", sa.Integer(), nullable=False),
        sa.Column("first_at", sqlmodel.UTCDateTime(), nullable=False),
        sa.Column("last_at", sqlmodel.UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_composition")),
    )


def downgrade() -> None:
    op.drop_table("composition")
