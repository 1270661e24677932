"""Calls that are about to be made: what they can cost at most is kept over a kill."""

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "intent",
        sa.Column("key", sqlmodel.AutoString(length=40), nullable=False),
        sa.Column("rater", sa.Integer(), nullable=False),
        sa.Column("response", sa.Integer(), nullable=True),
        sa.Column("instance", sa.Integer(), nullable=True),
        sa.Column("replicate", sa.Integer(), nullable=False),
        sa.Column("usd_most", sa.Float(), nullable=True),
        sa.Column("at", sqlmodel.UTCDateTime(), nullable=False),
        sa.Column("counted", sqlmodel.UTCDateTime(), nullable=True),
        sa.ForeignKeyConstraint(
            ["instance"], ["instance.id"], name=op.f("fk_intent_instance_instance")
        ),
        sa.ForeignKeyConstraint(["rater"], ["rater.id"], name=op.f("fk_intent_rater_rater")),
        sa.ForeignKeyConstraint(
            ["response"], ["response.id"], name=op.f("fk_intent_response_response")
        ),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_intent")),
    )


def downgrade() -> None:
    op.drop_table("intent")
