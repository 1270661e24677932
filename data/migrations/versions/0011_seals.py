"""Salts of texts, authors and accounts; all that a study holds is sealed as it is found."""

import sqlalchemy as sa
import sqlmodel
from alembic import op

from data.migrations.record_at_0002 import append
from data.migrations.record_at_0011 import add_salts, any_rows, masked, requests, seals

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("response", sa.Column("salt", sqlmodel.AutoString(), nullable=True))
    for table, name in (("response", "commitment"), ("authorship", "salt"), ("account", "salt")):
        given: sa.Column[str] = sa.Column(
            name, sqlmodel.AutoString(), nullable=False, server_default=""
        )
        op.add_column(table, given)
    connection = op.get_bind()
    if any_rows(connection):
        add_salts(connection)
        said = {"sealed": seals(connection), "written": requests(connection)}
        append(connection, "sealed", said | masked(connection))


def downgrade() -> None:
    for table, name in (
        ("account", "salt"),
        ("authorship", "salt"),
        ("response", "commitment"),
        ("response", "salt"),
    ):
        op.drop_column(table, name)
