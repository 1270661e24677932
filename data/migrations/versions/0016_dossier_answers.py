"""Answers of people to the questions of reporting guidelines."""

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "dossier_answer",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("question", sqlmodel.AutoString(), nullable=False),
        sa.Column("kind", sqlmodel.AutoString(), nullable=False),
        sa.Column("text", sqlmodel.AutoString(), nullable=False),
        sa.Column("author", sqlmodel.AutoString(), nullable=False),
        sa.Column("at", sqlmodel.UTCDateTime(), nullable=False),
        sa.Column("batch", sqlmodel.AutoString(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dossier_answer")),
    )
    op.create_index(op.f("ix_dossier_answer_question"), "dossier_answer", ["question"])
    op.create_index(op.f("ix_dossier_answer_batch"), "dossier_answer", ["batch"])


def downgrade() -> None:
    op.drop_table("dossier_answer")
