"""The tables of a study."""

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "event",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sqlmodel.UTCDateTime(), nullable=False),
        sa.Column("actor", sqlmodel.AutoString(), nullable=False),
        sa.Column("action", sqlmodel.AutoString(), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.Column("previous", sqlmodel.AutoString(length=64), nullable=False),
        sa.Column("sha256", sqlmodel.AutoString(length=64), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event")),
        sa.UniqueConstraint("sha256", name=op.f("uq_event_sha256")),
    )
    op.create_table(
        "rater",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sqlmodel.AutoString(), nullable=False),
        sa.Column("handle", sqlmodel.AutoString(), nullable=False),
        sa.Column("family", sqlmodel.AutoString(), nullable=False),
        sa.Column("pseudonym", sqlmodel.AutoString(), nullable=False),
        sa.Column("specialty", sqlmodel.AutoString(), nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("profile", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rater")),
        sa.UniqueConstraint("handle", name=op.f("uq_rater_handle")),
    )
    op.create_table(
        "report",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sqlmodel.UTCDateTime(), nullable=False),
        sa.Column("fingerprint", sqlmodel.AutoString(length=64), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_report")),
    )
    op.create_table(
        "rubric",
        sa.Column("sha256", sqlmodel.AutoString(length=64), nullable=False),
        sa.Column("name", sqlmodel.AutoString(), nullable=False),
        sa.Column("version", sqlmodel.AutoString(), nullable=False),
        sa.Column("body", sqlmodel.AutoString(), nullable=False),
        sa.Column("added", sqlmodel.UTCDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_rubric")),
    )
    op.create_table(
        "setting",
        sa.Column("key", sqlmodel.AutoString(), nullable=False),
        sa.Column("value", sqlmodel.AutoString(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_setting")),
    )
    op.create_table(
        "access",
        sa.Column("lookup", sqlmodel.AutoString(), nullable=False),
        sa.Column("rater", sa.Integer(), nullable=False),
        sa.Column("secret_hash", sqlmodel.AutoString(), nullable=False),
        sa.Column("created", sqlmodel.UTCDateTime(), nullable=False),
        sa.Column("revoked", sqlmodel.UTCDateTime(), nullable=True),
        sa.ForeignKeyConstraint(["rater"], ["rater.id"], name=op.f("fk_access_rater_rater")),
        sa.PrimaryKeyConstraint("lookup", name=op.f("pk_access")),
    )
    with op.batch_alter_table("access", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_access_rater"), ["rater"], unique=False)

    op.create_table(
        "benchmark",
        sa.Column("name", sqlmodel.AutoString(), nullable=False),
        sa.Column("category", sqlmodel.AutoString(), nullable=False),
        sa.Column("subcategory", sqlmodel.AutoString(), nullable=False),
        sa.Column("rubric_sha256", sqlmodel.AutoString(), nullable=False),
        sa.ForeignKeyConstraint(
            ["rubric_sha256"], ["rubric.sha256"], name=op.f("fk_benchmark_rubric_sha256_rubric")
        ),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_benchmark")),
    )
    op.create_table(
        "instance",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("benchmark", sqlmodel.AutoString(), nullable=False),
        sa.Column("instance_id", sqlmodel.AutoString(), nullable=False),
        sa.Column("context", sqlmodel.AutoString(), nullable=False),
        sa.Column("prompt", sqlmodel.AutoString(), nullable=False),
        sa.Column("reference", sqlmodel.AutoString(), nullable=True),
        sa.Column("checklist", sqlmodel.AutoString(), nullable=True),
        sa.ForeignKeyConstraint(
            ["benchmark"], ["benchmark.name"], name=op.f("fk_instance_benchmark_benchmark")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_instance")),
        sa.UniqueConstraint(
            "benchmark", "instance_id", name=op.f("uq_instance_benchmark_instance_id")
        ),
    )
    with op.batch_alter_table("instance", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_instance_benchmark"), ["benchmark"], unique=False)

    op.create_table(
        "response",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("response_id", sqlmodel.AutoString(), nullable=False),
        sa.Column("instance", sa.Integer(), nullable=False),
        sa.Column("text", sqlmodel.AutoString(), nullable=False),
        sa.ForeignKeyConstraint(
            ["instance"], ["instance.id"], name=op.f("fk_response_instance_instance")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_response")),
        sa.UniqueConstraint("response_id", name=op.f("uq_response_response_id")),
    )
    with op.batch_alter_table("response", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_response_instance"), ["instance"], unique=False)

    op.create_table(
        "assignment",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("code", sqlmodel.AutoString(), nullable=False),
        sa.Column("rater", sa.Integer(), nullable=False),
        sa.Column("response", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("pass_", sa.Integer(), nullable=False),
        sa.Column("state", sqlmodel.AutoString(), nullable=False),
        sa.Column("draft", sa.JSON(), nullable=False),
        sa.Column("draft_seq", sa.Integer(), nullable=False),
        sa.Column("seconds_active", sa.Float(), nullable=False),
        sa.Column("done_at", sqlmodel.UTCDateTime(), nullable=True),
        sa.CheckConstraint("seconds_active >= 0", name=op.f("ck_assignment_seconds")),
        sa.ForeignKeyConstraint(["rater"], ["rater.id"], name=op.f("fk_assignment_rater_rater")),
        sa.ForeignKeyConstraint(
            ["response"], ["response.id"], name=op.f("fk_assignment_response_response")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_assignment")),
        sa.UniqueConstraint("code", name=op.f("uq_assignment_code")),
        sa.UniqueConstraint(
            "rater", "response", "pass_", name=op.f("uq_assignment_rater_response_pass_")
        ),
    )
    with op.batch_alter_table("assignment", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_assignment_rater"), ["rater"], unique=False)
        batch_op.create_index(batch_op.f("ix_assignment_response"), ["response"], unique=False)

    op.create_table(
        "attempt",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("rater", sa.Integer(), nullable=False),
        sa.Column("response", sa.Integer(), nullable=False),
        sa.Column("rubric_sha256", sqlmodel.AutoString(), nullable=False),
        sa.Column("replicate", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("request_sha256", sqlmodel.AutoString(length=64), nullable=False),
        sa.Column("sent", sa.JSON(), nullable=False),
        sa.Column("raw", sqlmodel.AutoString(), nullable=False),
        sa.Column("status", sqlmodel.AutoString(), nullable=False),
        sa.Column("reason", sqlmodel.AutoString(), nullable=False),
        sa.Column("tokens_in", sa.Integer(), nullable=True),
        sa.Column("tokens_out", sa.Integer(), nullable=True),
        sa.Column("tokens_cached", sa.Integer(), nullable=True),
        sa.Column("tokens_reasoning", sa.Integer(), nullable=True),
        sa.Column("usd", sa.Float(), nullable=True),
        sa.Column("price_source", sqlmodel.AutoString(), nullable=False),
        sa.Column("latency_seconds", sa.Float(), nullable=False),
        sa.Column("request_id", sqlmodel.AutoString(), nullable=False),
        sa.Column("returned_model", sqlmodel.AutoString(), nullable=False),
        sa.Column("at", sqlmodel.UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["rater"], ["rater.id"], name=op.f("fk_attempt_rater_rater")),
        sa.ForeignKeyConstraint(
            ["response"], ["response.id"], name=op.f("fk_attempt_response_response")
        ),
        sa.ForeignKeyConstraint(
            ["rubric_sha256"], ["rubric.sha256"], name=op.f("fk_attempt_rubric_sha256_rubric")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempt")),
    )
    with op.batch_alter_table("attempt", schema=None) as batch_op:
        batch_op.create_index("ix_attempt_key", ["rater", "response", "replicate"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_attempt_request_sha256"), ["request_sha256"], unique=False
        )
        batch_op.create_index(batch_op.f("ix_attempt_response"), ["response"], unique=False)

    op.create_table(
        "authorship",
        sa.Column("response", sa.Integer(), nullable=False),
        sa.Column("model", sqlmodel.AutoString(), nullable=False),
        sa.ForeignKeyConstraint(
            ["response"], ["response.id"], name=op.f("fk_authorship_response_response")
        ),
        sa.PrimaryKeyConstraint("response", name=op.f("pk_authorship")),
    )
    op.create_table(
        "rating",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("response", sa.Integer(), nullable=False),
        sa.Column("rater", sa.Integer(), nullable=False),
        sa.Column("criterion", sqlmodel.AutoString(), nullable=False),
        sa.Column("score", sa.Float(), nullable=False),
        sa.Column("rubric_sha256", sqlmodel.AutoString(), nullable=True),
        sa.Column("pass_", sa.Integer(), nullable=False),
        sa.Column("replicate", sa.Integer(), nullable=False),
        sa.Column("comment", sqlmodel.AutoString(), nullable=False),
        sa.Column("at", sqlmodel.UTCDateTime(), nullable=False),
        sa.ForeignKeyConstraint(["rater"], ["rater.id"], name=op.f("fk_rating_rater_rater")),
        sa.ForeignKeyConstraint(
            ["response"], ["response.id"], name=op.f("fk_rating_response_response")
        ),
        sa.ForeignKeyConstraint(
            ["rubric_sha256"], ["rubric.sha256"], name=op.f("fk_rating_rubric_sha256_rubric")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rating")),
    )
    with op.batch_alter_table("rating", schema=None) as batch_op:
        batch_op.create_index("ix_rating_key", ["response", "rater", "criterion"], unique=False)
        batch_op.create_index(batch_op.f("ix_rating_rater"), ["rater"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("rating", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_rating_rater"))
        batch_op.drop_index("ix_rating_key")

    op.drop_table("rating")
    op.drop_table("authorship")
    with op.batch_alter_table("attempt", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_attempt_response"))
        batch_op.drop_index(batch_op.f("ix_attempt_request_sha256"))
        batch_op.drop_index("ix_attempt_key")

    op.drop_table("attempt")
    with op.batch_alter_table("assignment", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_assignment_response"))
        batch_op.drop_index(batch_op.f("ix_assignment_rater"))

    op.drop_table("assignment")
    with op.batch_alter_table("response", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_response_instance"))

    op.drop_table("response")
    with op.batch_alter_table("instance", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_instance_benchmark"))

    op.drop_table("instance")
    op.drop_table("benchmark")
    with op.batch_alter_table("access", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_access_rater"))

    op.drop_table("access")
    op.drop_table("setting")
    op.drop_table("rubric")
    op.drop_table("report")
    op.drop_table("rater")
    op.drop_table("event")
