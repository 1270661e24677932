"""Alembic's entry: runs the migrations on the engine that `data.database` hands over."""

from alembic import context
from sqlalchemy import create_engine

from data.schema import Table

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
    connection.commit()
