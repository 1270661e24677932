"""The ratings that no longer count, kept by the database as newer ones come; an index by reading."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

READING = ["response", "rater", "pass_", "replicate", "criterion"]
FILL = """
    INSERT INTO superseded (rating)
    SELECT id FROM rating WHERE id NOT IN (
        SELECT MAX(id) FROM rating
        GROUP BY response, rater, criterion, rubric_sha256, pass_, replicate
    )
"""
# Of two ratings either may be the one that is added: rows that are copied keep their numbers.
SQLITE = """
    CREATE TRIGGER rating_supersedes AFTER INSERT ON rating BEGIN
        INSERT OR IGNORE INTO superseded (rating)
        SELECT older.id FROM rating AS older, rating AS newer
        WHERE newer.response = NEW.response AND newer.rater = NEW.rater
        AND newer.pass_ = NEW.pass_ AND newer.replicate = NEW.replicate
        AND newer.criterion = NEW.criterion
        AND older.response = newer.response AND older.rater = newer.rater
        AND older.pass_ = newer.pass_ AND older.replicate = newer.replicate
        AND older.criterion = newer.criterion AND older.rubric_sha256 IS newer.rubric_sha256
        AND older.id < newer.id;
    END
"""
POSTGRES = (
    """
    CREATE FUNCTION rating_supersedes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO superseded (rating)
        SELECT DISTINCT older.id FROM added
        JOIN rating AS newer ON newer.response = added.response AND newer.rater = added.rater
        AND newer.pass_ = added.pass_ AND newer.replicate = added.replicate
        AND newer.criterion = added.criterion
        JOIN rating AS older ON older.response = newer.response AND older.rater = newer.rater
        AND older.pass_ = newer.pass_ AND older.replicate = newer.replicate
        AND older.criterion = newer.criterion
        AND older.rubric_sha256 IS NOT DISTINCT FROM newer.rubric_sha256 AND older.id < newer.id
        ON CONFLICT DO NOTHING;
        RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER rating_supersedes AFTER INSERT ON rating
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION rating_supersedes()
    """,
)


def upgrade() -> None:
    op.create_table(
        "superseded",
        sa.Column("rating", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("rating", name="pk_superseded"),
    )
    op.drop_index("ix_rating_key", table_name="rating")
    op.create_index("ix_rating_key", "rating", READING)
    op.execute(FILL)
    for statement in POSTGRES if op.get_bind().dialect.name == "postgresql" else (SQLITE,):
        op.execute(statement)


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP TRIGGER rating_supersedes ON rating")
        op.execute("DROP FUNCTION rating_supersedes")
    else:
        op.execute("DROP TRIGGER rating_supersedes")
    op.drop_table("superseded")
    op.drop_index("ix_rating_key", table_name="rating")
    op.create_index("ix_rating_key", "rating", ["response", "rater", "criterion"])
