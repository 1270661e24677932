"""Alembic's entry: runs the migrations on the engine that `data.database` hands over."""

from alembic import context
from sqlalchemy import Connection, create_engine, text

from data.schema import SUPERSEDED, Table

OTHERWISE = text(
    "SELECT table_name, column_name, character_maximum_length FROM information_schema.columns "
    "WHERE table_schema = current_schema() AND data_type = 'character varying' "
    "AND collation_name IS DISTINCT FROM 'C'"
)


def sort_by_code_point(connection: Connection) -> None:
    """Let PostgreSQL sort texts as SQLite and Python do, whatever the language of the server."""
    for table, column, length in connection.execute(OTHERWISE).all():
        kind = "VARCHAR" if length is None else f"VARCHAR({length})"
        connection.exec_driver_sql(
            f'ALTER TABLE "{table}" ALTER COLUMN "{column}" TYPE {kind} COLLATE "C"'
        )


engine = context.config.attributes.get("engine") or create_engine(
    context.config.get_main_option("sqlalchemy.url") or "sqlite:///medjury.db"
)

with engine.execution_options(writes=True).connect() as connection:
    context.configure(
        connection=connection,
        target_metadata=Table.metadata,
        render_as_batch=connection.dialect.name == "sqlite",
        user_module_prefix="sqlmodel.",
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()
    if connection.dialect.name == "postgresql":
        sort_by_code_point(connection)
        connection.exec_driver_sql(f"CREATE OR REPLACE VIEW superseded AS {SUPERSEDED}")
    else:
        connection.exec_driver_sql(f"CREATE VIEW IF NOT EXISTS superseded AS {SUPERSEDED}")
    connection.commit()
