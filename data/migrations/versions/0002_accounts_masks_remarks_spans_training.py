"""Accounts, masks, remarks, spans, training."""

import sqlalchemy as sa
import sqlmodel
from alembic import op

from data.migrations.record_at_0002 import append, digest

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# What the record vouches for of each row; those of 0001 were stored before it did.
OLD_ROWS = {
    "rating": "SELECT response, rater, criterion, score, rubric_sha256, pass_, replicate, comment,"
    " at FROM rating ORDER BY id",
    "response": "SELECT response_id, text, model, benchmark, instance_id, context, prompt,"
    " reference, checklist FROM response JOIN authorship ON authorship.response = response.id"
    " JOIN instance ON instance.id = response.instance ORDER BY response.id",
}


def upgrade() -> None:
    op.create_table(
        "account",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sqlmodel.AutoString(), nullable=False),
        sa.Column("role", sqlmodel.AutoString(), nullable=False),
        sa.Column("email", sqlmodel.AutoString(), nullable=True),
        sa.Column("rater", sa.Integer(), nullable=True),
        sa.Column("created", sqlmodel.UTCDateTime(), nullable=False),
        sa.Column("ended", sqlmodel.UTCDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["rater"], ["rater.id"], name=op.f("fk_account_rater_rater")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_account")),
        sa.UniqueConstraint("email", name=op.f("uq_account_email")),
        sa.UniqueConstraint("name", name=op.f("uq_account_name")),
        sa.UniqueConstraint("rater", name=op.f("uq_account_rater")),
    )
    op.create_table(
        "drill",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("rater", sa.Integer(), nullable=False),
        sa.Column("response", sa.Integer(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("scores", sa.JSON(), nullable=False),
        sa.Column("at", sqlmodel.UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["rater"], ["rater.id"], name=op.f("fk_drill_rater_rater")),
        sa.ForeignKeyConstraint(
            ["response"], ["response.id"], name=op.f("fk_drill_response_response")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_drill")),
    )
    with op.batch_alter_table("drill", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_drill_rater"), ["rater"], unique=False)

    op.create_table(
        "expert",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("response", sa.Integer(), nullable=False),
        sa.Column("criterion", sqlmodel.AutoString(), nullable=False),
        sa.Column("score", sa.Float(), nullable=False),
        sa.Column("why", sqlmodel.AutoString(), nullable=False),
        sa.ForeignKeyConstraint(
            ["response"], ["response.id"], name=op.f("fk_expert_response_response")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_expert")),
        sa.UniqueConstraint("response", "criterion", name=op.f("uq_expert_response_criterion")),
    )
    with op.batch_alter_table("expert", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_expert_response"), ["response"], unique=False)

    op.create_table(
        "mask",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("response", sa.Integer(), nullable=False),
        sa.Column("start", sa.Integer(), nullable=False),
        sa.Column("end", sa.Integer(), nullable=False),
        sa.Column("text", sqlmodel.AutoString(), nullable=False),
        sa.Column("at", sqlmodel.UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["response"], ["response.id"], name=op.f("fk_mask_response_response")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_mask")),
    )
    with op.batch_alter_table("mask", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_mask_response"), ["response"], unique=False)

    op.create_table(
        "remark",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("assignment", sa.Integer(), nullable=False),
        sa.Column("kind", sqlmodel.AutoString(), nullable=False),
        sa.Column("text", sqlmodel.AutoString(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("at", sqlmodel.UTCDateTime(), nullable=False),
        sa.Column("batch", sqlmodel.AutoString(), nullable=True),
        sa.ForeignKeyConstraint(
            ["assignment"], ["assignment.id"], name=op.f("fk_remark_assignment_assignment")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_remark")),
    )
    with op.batch_alter_table("remark", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_remark_assignment"), ["assignment"], unique=False)
        batch_op.create_index(batch_op.f("ix_remark_batch"), ["batch"], unique=False)

    op.create_table(
        "span",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("assignment", sa.Integer(), nullable=False),
        sa.Column("criterion", sqlmodel.AutoString(), nullable=False),
        sa.Column("start", sa.Integer(), nullable=False),
        sa.Column("end", sa.Integer(), nullable=False),
        sa.Column("text", sqlmodel.AutoString(), nullable=False),
        sa.Column("error", sqlmodel.AutoString(), nullable=False),
        sa.Column("note", sqlmodel.AutoString(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("at", sqlmodel.UTCDateTime(), nullable=False),
        sa.Column("batch", sqlmodel.AutoString(), nullable=True),
        sa.ForeignKeyConstraint(
            ["assignment"], ["assignment.id"], name=op.f("fk_span_assignment_assignment")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_span")),
    )
    with op.batch_alter_table("span", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_span_assignment"), ["assignment"], unique=False)
        batch_op.create_index(batch_op.f("ix_span_batch"), ["batch"], unique=False)

    op.execute(
        "INSERT INTO account (name, role, rater, created) "
        "SELECT handle, 'clinician', id, (SELECT MIN(created) FROM access WHERE rater = rater.id) "
        "FROM rater WHERE id IN (SELECT rater FROM access)"
    )
    with op.batch_alter_table("access") as access:
        access.add_column(sa.Column("account", sa.Integer(), nullable=True))
        access.add_column(
            sa.Column("once", sa.Boolean(), nullable=False, server_default=sa.false())
        )
        access.add_column(sa.Column("expires", sqlmodel.UTCDateTime(), nullable=True))
        access.add_column(sa.Column("used", sqlmodel.UTCDateTime(), nullable=True))
    op.execute(
        "UPDATE access SET account = (SELECT id FROM account WHERE account.rater = access.rater)"
    )
    with op.batch_alter_table("access") as access:
        access.alter_column("account", existing_type=sa.Integer(), nullable=False)
        access.alter_column("once", existing_type=sa.Boolean(), server_default=None)
        access.drop_index("ix_access_rater")
        access.create_index("ix_access_account", ["account"])
        access.drop_constraint("fk_access_rater_rater", type_="foreignkey")
        access.create_foreign_key("fk_access_account_account", "account", ["account"], ["id"])
        access.drop_column("rater")
    for column in (
        sa.Column("opened_at", sqlmodel.UTCDateTime(), nullable=True),
        sa.Column("reference_opened_at", sqlmodel.UTCDateTime(), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("submitted_seq", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("previous", sa.Float(), nullable=True),
    ):
        op.add_column("assignment", column)
    op.execute("UPDATE assignment SET revision = 1, submitted_seq = draft_seq WHERE state = 'done'")
    op.add_column("rating", sa.Column("batch", sqlmodel.AutoString(), nullable=True))
    op.create_index("ix_rating_batch", "rating", ["batch"])
    op.add_column("response", sa.Column("shown", sqlmodel.AutoString(), nullable=True))
    op.add_column("response", sa.Column("batch", sqlmodel.AutoString(), nullable=True))
    op.create_index("ix_response_batch", "response", ["batch"])
    vouch_for_old_rows()


def vouch_for_old_rows() -> None:
    """Take ratings and responses from before the record into it, as they are found now."""
    connection = op.get_bind()
    written = []
    for table, query in OLD_ROWS.items():
        rows = connection.execute(sa.text(query).columns(at=sqlmodel.UTCDateTime()))
        said = digest(table, rows)
        if said["rows"]:
            given = sa.text(f"UPDATE {table} SET batch = :batch")  # noqa: S608 our names
            connection.execute(given, {"batch": said["batch"]})
            written.append(said)
    if written:
        append(connection, "taken into the record", {"written": written})


def downgrade() -> None:
    op.drop_index("ix_response_batch", "response")
    op.drop_index("ix_rating_batch", "rating")
    for table, columns in (
        ("response", ("batch", "shown")),
        ("rating", ("batch",)),
        (
            "assignment",
            ("previous", "submitted_seq", "revision", "reference_opened_at", "opened_at"),
        ),
    ):
        for column in columns:
            op.drop_column(table, column)
    with op.batch_alter_table("access") as access:
        access.add_column(sa.Column("rater", sa.Integer(), nullable=True))
    op.execute("DELETE FROM access WHERE account IN (SELECT id FROM account WHERE rater IS NULL)")
    op.execute(
        "UPDATE access SET rater = (SELECT rater FROM account WHERE account.id = access.account)"
    )
    with op.batch_alter_table("access") as access:
        access.alter_column("rater", existing_type=sa.Integer(), nullable=False)
        access.drop_index("ix_access_account")
        access.create_index("ix_access_rater", ["rater"])
        access.drop_constraint("fk_access_account_account", type_="foreignkey")
        access.create_foreign_key("fk_access_rater_rater", "rater", ["rater"], ["id"])
        for column in ("used", "expires", "once", "account"):
            access.drop_column(column)
    for table in ("span", "remark", "mask", "expert", "drill", "account"):
        op.drop_table(table)
