"""Storing what a study decides for its clinicians."""

from sqlalchemy import Engine

from data.database import transaction
from data.errors import Unknown
from data.settings import Settings, read_settings
from data.store.audit import log, refuse_locked
from data.store.seals import keep_setting


def set_setting(engine: Engine, name: str, value: str) -> None:
    """Store one setting, checked; the change stays in the record.

    Raises
    ------
    Unknown, BadInput
        If there is no such setting, or the value is not allowed.
    """
    names = list(Settings().as_text())
    if name not in names:
        raise Unknown(f"setting {name!r}: choose from {', '.join(names)}")
    read_settings({name: value})
    with transaction(engine) as session:
        refuse_locked(session)
        seals = keep_setting(session, name, value)
        log(session, "coordinator", "setting changed", {name: value}, seals)
