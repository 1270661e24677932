"""Submissions, what clinicians are told of a study, and what a marked stretch says."""

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "study_text",
        sa.Column("sha256", sqlmodel.AutoString(length=64), nullable=False),
        sa.Column("body", sqlmodel.AutoString(), nullable=False),
        sa.Column("added", sqlmodel.UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_study_text")),
    )
    op.create_table(
        "submission",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("assignment", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("comment", sqlmodel.AutoString(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("study_text", sqlmodel.AutoString(), nullable=True),
        sa.Column("appearance", sqlmodel.AutoString(), nullable=False),
        sa.Column("at", sqlmodel.UTCDateTime(), nullable=False),
        sa.Column("batch", sqlmodel.AutoString(), nullable=True),
        sa.ForeignKeyConstraint(
            ["assignment"], ["assignment.id"], name=op.f("fk_submission_assignment_assignment")
        ),
        sa.ForeignKeyConstraint(
            ["study_text"], ["study_text.sha256"], name=op.f("fk_submission_study_text_study_text")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_submission")),
    )
    with op.batch_alter_table("submission", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_submission_assignment"), ["assignment"], unique=False)
        batch_op.create_index(batch_op.f("ix_submission_batch"), ["batch"], unique=False)
    with op.batch_alter_table("span", schema=None) as batch_op:
        batch_op.add_column(
            sa.Column("side", sqlmodel.AutoString(), nullable=False, server_default="response")
        )
        batch_op.add_column(
            sa.Column("severity", sqlmodel.AutoString(), nullable=False, server_default="")
        )
        batch_op.add_column(sa.Column("linked", sa.Integer(), nullable=True))
    op.add_column("remark", sa.Column("about", sa.Integer(), nullable=True))
    op.add_column("assignment", sa.Column("assigned_at", sqlmodel.UTCDateTime(), nullable=True))
    # Of each the study does not know it: not before the last time that work was given out.
    op.execute(
        "UPDATE assignment SET assigned_at ="
        " (SELECT MAX(at) FROM event WHERE action = 'responses assigned')"
    )


def downgrade() -> None:
    op.drop_column("assignment", "assigned_at")
    op.drop_column("remark", "about")
    with op.batch_alter_table("span", schema=None) as batch_op:
        batch_op.drop_column("linked")
        batch_op.drop_column("severity")
        batch_op.drop_column("side")
    op.drop_table("submission")
    op.drop_table("study_text")
