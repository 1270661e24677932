"""Tags and notes that reviewers put on responses."""

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "review",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("response", sa.Integer(), nullable=False),
        sa.Column("reviewer", sqlmodel.AutoString(), nullable=False),
        sa.Column("kind", sqlmodel.AutoString(), nullable=False),
        sa.Column("text", sqlmodel.AutoString(), nullable=False),
        sa.Column("at", sqlmodel.UTCDateTime(), nullable=False),
        sa.Column("batch", sqlmodel.AutoString(), nullable=True),
        sa.ForeignKeyConstraint(
            ["response"], ["response.id"], name=op.f("fk_review_response_response")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_review")),
    )
    op.create_index(op.f("ix_review_response"), "review", ["response"])
    op.create_index(op.f("ix_review_batch"), "review", ["batch"])


def downgrade() -> None:
    op.drop_table("review")
