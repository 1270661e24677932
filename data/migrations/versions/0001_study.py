"""The tables of a study, as the schema has them.

Until a version is released every change of the schema makes this form anew; after that, each is a
revision of its own and this one names its tables.
"""

from alembic import op

from data.schema import Table

revision = "study_6"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    Table.metadata.create_all(op.get_bind())


def downgrade() -> None:
    raise NotImplementedError("there is no form before this one")
