"""Reading what a study decides for its clinicians."""

from sqlalchemy import Engine
from sqlmodel import select

from data.database import reading
from data.schema import Setting
from data.settings import Settings, read_settings


def settings(engine: Engine) -> Settings:
    """Return a study's settings; what was never set is the default."""
    with reading(engine) as session:
        return read_settings({one.key: one.value for one in session.exec(select(Setting))})
