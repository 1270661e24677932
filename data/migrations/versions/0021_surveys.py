"""Surveys of a taxonomy: rounds, who is asked, and what they answered."""

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "survey",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("taxonomy", sqlmodel.AutoString(), nullable=False),
        sa.Column("items", sqlmodel.AutoString(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("opened_by", sqlmodel.AutoString(), nullable=False),
        sa.Column("at", sqlmodel.UTCDateTime(), nullable=False),
        sa.Column("closed", sqlmodel.UTCDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_survey")),
        sa.UniqueConstraint("round", name=op.f("uq_survey_round")),
    )
    op.create_table(
        "survey_invitation",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("survey", sa.Integer(), nullable=False),
        sa.Column("rater", sa.Integer(), nullable=False),
        sa.Column("code", sqlmodel.AutoString(), nullable=False),
        sa.Column("at", sqlmodel.UTCDateTime(), nullable=False),
        sa.Column("draft", sa.JSON(), nullable=False),
        sa.Column("draft_seq", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("submitted_seq", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["survey"], ["survey.id"], name=op.f("fk_survey_invitation_survey_survey")
        ),
        sa.ForeignKeyConstraint(
            ["rater"], ["rater.id"], name=op.f("fk_survey_invitation_rater_rater")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_survey_invitation")),
        sa.UniqueConstraint("code", name=op.f("uq_survey_invitation_code")),
        sa.UniqueConstraint("survey", "rater", name=op.f("uq_survey_invitation_survey_rater")),
    )
    op.create_index(op.f("ix_survey_invitation_survey"), "survey_invitation", ["survey"])
    op.create_index(op.f("ix_survey_invitation_rater"), "survey_invitation", ["rater"])
    op.create_table(
        "survey_answer",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("invitation", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("answer", sqlmodel.AutoString(), nullable=False),
        sa.Column("at", sqlmodel.UTCDateTime(), nullable=False),
        sa.Column("batch", sqlmodel.AutoString(), nullable=True),
        sa.ForeignKeyConstraint(
            ["invitation"],
            ["survey_invitation.id"],
            name=op.f("fk_survey_answer_invitation_survey_invitation"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_survey_answer")),
    )
    op.create_index(op.f("ix_survey_answer_invitation"), "survey_answer", ["invitation"])
    op.create_index(op.f("ix_survey_answer_batch"), "survey_answer", ["batch"])


def downgrade() -> None:
    op.drop_table("survey_answer")
    op.drop_table("survey_invitation")
    op.drop_table("survey")
