"""The distribution of each score that a juror gave, where its endpoint tells probabilities."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("attempt", sa.Column("distribution", sa.JSON(), nullable=True))


def downgrade() -> None:
    op.drop_column("attempt", "distribution")
