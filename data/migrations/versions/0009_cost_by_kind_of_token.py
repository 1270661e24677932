"""Tokens written to a cache, and what a call cost by kind of token."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

TABLES = ("attempt", "reference_check")
AMOUNTS = ("usd_cached", "usd_cache_write", "usd_out")


def upgrade() -> None:
    for table in TABLES:
        op.add_column(table, sa.Column("tokens_cache_write", sa.Integer(), nullable=True))
        for name in AMOUNTS:
            op.add_column(table, sa.Column(name, sa.Float(), nullable=True))


def downgrade() -> None:
    for table in TABLES:
        for name in reversed(AMOUNTS):
            op.drop_column(table, name)
        op.drop_column(table, "tokens_cache_write")
