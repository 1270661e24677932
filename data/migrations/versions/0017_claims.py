"""Claims of responses: their lists, and the calls that asked a model for them."""

import sqlalchemy as sa
import sqlmodel
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "claim_list",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("response", sa.Integer(), nullable=False),
        sa.Column("splitter", sa.Integer(), nullable=False),
        sa.Column("claims", sa.JSON(), nullable=False),
        sa.Column("origin", sqlmodel.AutoString(), nullable=False),
        sa.Column("author", sqlmodel.AutoString(), nullable=False),
        sa.Column("at", sqlmodel.UTCDateTime(), nullable=False),
        sa.Column("batch", sqlmodel.AutoString(), nullable=True),
        *_foreign_keys("claim_list", "splitter"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_claim_list")),
    )
    op.create_index("ix_claim_list_key", "claim_list", ["response", "splitter"])
    op.create_index(op.f("ix_claim_list_batch"), "claim_list", ["batch"])
    op.create_table(
        "claim_split",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("response", sa.Integer(), nullable=False),
        sa.Column("rater", sa.Integer(), nullable=False),
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
        *_foreign_keys("claim_split", "rater"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_claim_split")),
    )
    op.create_index("ix_claim_split_key", "claim_split", ["rater", "response"])
    op.create_index(op.f("ix_claim_split_response"), "claim_split", ["response"])


def _foreign_keys(table: str, rater: str) -> list[sa.ForeignKeyConstraint]:
    return [
        sa.ForeignKeyConstraint([name], [to], name=op.f(f"fk_{table}_{name}_{to.split('.')[0]}"))
        for name, to in (("response", "response.id"), (rater, "rater.id"))
    ]


def downgrade() -> None:
    op.drop_table("claim_split")
    op.drop_table("claim_list")
