"""Batches of requests to jurors."""

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "jury_batch",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("marker", sqlmodel.AutoString(length=32), nullable=False),
        sa.Column("rater", sa.Integer(), nullable=False),
        sa.Column("host", sqlmodel.AutoString(), nullable=False),
        sa.Column("state", sqlmodel.AutoString(), nullable=False),
        sa.Column("provider_id", sqlmodel.AutoString(), nullable=False),
        sa.Column("input_file", sqlmodel.AutoString(), nullable=False),
        sa.Column("requests", sa.Integer(), nullable=False),
        sa.Column("sent", sa.JSON(), nullable=False),
        sa.Column("counts", sa.JSON(), nullable=False),
        sa.Column("reason", sqlmodel.AutoString(), nullable=False),
        sa.Column("prepared", sqlmodel.UTCDateTime(), nullable=False),
        sa.Column("asked", sqlmodel.UTCDateTime(), nullable=True),
        sa.Column("submitted", sqlmodel.UTCDateTime(), nullable=True),
        sa.Column("closed", sqlmodel.UTCDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["rater"], ["rater.id"], name=op.f("fk_jury_batch_rater_rater")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jury_batch")),
        sa.UniqueConstraint("marker", name=op.f("uq_jury_batch_marker")),
    )
    with op.batch_alter_table("jury_batch", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_jury_batch_rater"), ["rater"], unique=False)
        batch_op.create_index(batch_op.f("ix_jury_batch_state"), ["state"], unique=False)

    op.create_table(
        "jury_request",
        sa.Column("custom_id", sqlmodel.AutoString(length=64), nullable=False),
        sa.Column("batch", sa.Integer(), nullable=False),
        sa.Column("response", sa.Integer(), nullable=False),
        sa.Column("replicate", sa.Integer(), nullable=False),
        sa.Column("rubric_sha256", sqlmodel.AutoString(), nullable=False),
        sa.Column("request_sha256", sqlmodel.AutoString(length=64), nullable=False),
        sa.Column("usd_most", sa.Float(), nullable=True),
        sa.Column("outcome", sqlmodel.AutoString(), nullable=False),
        sa.ForeignKeyConstraint(
            ["batch"], ["jury_batch.id"], name=op.f("fk_jury_request_batch_jury_batch")
        ),
        sa.ForeignKeyConstraint(
            ["response"], ["response.id"], name=op.f("fk_jury_request_response_response")
        ),
        sa.ForeignKeyConstraint(
            ["rubric_sha256"], ["rubric.sha256"], name=op.f("fk_jury_request_rubric_sha256_rubric")
        ),
        sa.PrimaryKeyConstraint("custom_id", name=op.f("pk_jury_request")),
    )
    with op.batch_alter_table("jury_request", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_jury_request_batch"), ["batch"], unique=False)
        batch_op.create_index(batch_op.f("ix_jury_request_response"), ["response"], unique=False)


def downgrade() -> None:
    for table in ("jury_request", "jury_batch"):
        op.drop_table(table)
