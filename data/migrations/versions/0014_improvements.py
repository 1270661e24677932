"""What juries learn from clinicians: improvements with their split, and the calls that proposed rubrics."""

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "improvement",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sqlmodel.UTCDateTime(), nullable=False),
        sa.Column("rubric_sha256", sqlmodel.AutoString(), nullable=False),
        sa.Column("asked", sa.JSON(), nullable=False),
        sa.Column("split", sa.JSON(), nullable=False),
        sa.Column("opened", sqlmodel.UTCDateTime(), nullable=True),
        sa.Column("learned", sqlmodel.AutoString(), nullable=True),
        sa.Column("result", sa.JSON(), nullable=False),
        *(
            sa.ForeignKeyConstraint(
                [name], ["rubric.sha256"], name=op.f(f"fk_improvement_{name}_rubric")
            )
            for name in ("rubric_sha256", "learned")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_improvement")),
    )
    op.create_table(
        "proposal",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("improvement", sa.Integer(), nullable=False),
        sa.Column("rater", sa.Integer(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("parent", sqlmodel.AutoString(), nullable=False),
        sa.Column("rubric_sha256", sqlmodel.AutoString(), nullable=True),
        sa.Column("status", sqlmodel.AutoString(), nullable=False),
        sa.Column("reason", sqlmodel.AutoString(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("request_sha256", sqlmodel.AutoString(length=64), nullable=False),
        sa.Column("sent", sa.JSON(), nullable=False),
        sa.Column("raw", sqlmodel.AutoString(), nullable=False),
        *(
            sa.Column(name, sa.Integer(), nullable=True)
            for name in (
                *("tokens_in", "tokens_out", "tokens_cached", "tokens_cache_write"),
                "tokens_reasoning",
            )
        ),
        *(
            sa.Column(name, sa.Float(), nullable=True)
            for name in ("usd", "usd_cached", "usd_cache_write", "usd_out")
        ),
        sa.Column("price_source", sqlmodel.AutoString(), nullable=False),
        sa.Column("latency_seconds", sa.Float(), nullable=False),
        sa.Column("request_id", sqlmodel.AutoString(), nullable=False),
        sa.Column("returned_model", sqlmodel.AutoString(), nullable=False),
        sa.Column("at", sqlmodel.UTCDateTime(), nullable=False),
        *(
            sa.ForeignKeyConstraint(
                [name], [to], name=op.f(f"fk_proposal_{name}_{to.split('.')[0]}")
            )
            for name, to in (
                ("improvement", "improvement.id"),
                ("rater", "rater.id"),
                ("parent", "rubric.sha256"),
                ("rubric_sha256", "rubric.sha256"),
            )
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_proposal")),
    )
    with op.batch_alter_table("proposal", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_proposal_improvement"), ["improvement"], unique=False)


def downgrade() -> None:
    op.drop_table("proposal")
    op.drop_table("improvement")
