"""Points of the case: the lists that each instance of a benchmark is rated by."""

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "point_set",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("instance", sa.Integer(), nullable=False),
        sa.Column("benchmark_rubric", sqlmodel.AutoString(), nullable=False),
        sa.Column("rubric_sha256", sqlmodel.AutoString(), nullable=False),
        sa.Column("origin", sqlmodel.AutoString(), nullable=False),
        sa.Column("author", sqlmodel.AutoString(), nullable=False),
        sa.Column("at", sqlmodel.UTCDateTime(), nullable=False),
        sa.Column("batch", sqlmodel.AutoString(), nullable=True),
        *(
            sa.ForeignKeyConstraint(
                [name], [to], name=op.f(f"fk_point_set_{name}_{to.split('.')[0]}")
            )
            for name, to in (
                ("instance", "instance.id"),
                ("benchmark_rubric", "rubric.sha256"),
                ("rubric_sha256", "rubric.sha256"),
            )
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_point_set")),
    )
    op.create_index(op.f("ix_point_set_instance"), "point_set", ["instance"])
    op.create_index(op.f("ix_point_set_rubric_sha256"), "point_set", ["rubric_sha256"])
    op.create_index(op.f("ix_point_set_batch"), "point_set", ["batch"])


def downgrade() -> None:
    op.drop_table("point_set")
