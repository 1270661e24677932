"""Subgroups of responses."""

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "subgroup",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("response", sa.Integer(), nullable=False),
        sa.Column("name", sqlmodel.AutoString(), nullable=False),
        sa.Column("value", sqlmodel.AutoString(), nullable=False),
        sa.Column("batch", sqlmodel.AutoString(), nullable=True),
        sa.ForeignKeyConstraint(
            ["response"], ["response.id"], name=op.f("fk_subgroup_response_response")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_subgroup")),
        sa.UniqueConstraint("response", "name", name=op.f("uq_subgroup_response_name")),
    )
    with op.batch_alter_table("subgroup", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_subgroup_batch"), ["batch"], unique=False)


def downgrade() -> None:
    op.drop_table("subgroup")
