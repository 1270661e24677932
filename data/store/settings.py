"""Storing what a study decides: for its clinicians, and when a rubric with a jury counts as valid."""

import math
from dataclasses import asdict

from sqlalchemy import Engine

from data.database import transaction
from data.errors import BadInput, Unknown
from data.person import Person, only
from data.queries.validation import PREFIX, Needed
from data.schema import Role, Setting
from data.settings import Settings, read_settings
from data.store.audit import log, refuse_locked

STATED = "criterion of validity stated"
FEWEST = {"responses": 3, "instances": 3, "clinicians": 1}
MOST = 1_000_000


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
        session.merge(Setting(key=name, value=value))
        log(session, "coordinator", "setting changed", {name: value})


@only(Role.COORDINATOR)
def state_valid(by: Person, engine: Engine, wanted: Needed) -> bool:
    """State when a rubric counts as valid, with an event; False if that is stated already.

    Raises
    ------
    BadInput
        If a number cannot be one of its kind.
    NotAllowed
        If the study is locked: what counts as valid is stated before its end.
    """
    _check(wanted)
    told = {PREFIX + name: f"{value:g}" for name, value in asdict(wanted).items()}
    with transaction(engine) as session:
        refuse_locked(session)
        held = {name: session.get(Setting, name) for name in told}
        if all(one and one.value == told[name] for name, one in held.items()):
            return False
        for name, value in told.items():
            session.merge(Setting(key=name, value=value))
        log(session, by.actor, STATED, told)
    return True


def _check(wanted: Needed) -> None:
    """Refuse numbers that no count and no ICC can be."""
    for name, fewest in FEWEST.items():
        value = getattr(wanted, name)
        if not fewest <= value <= MOST:
            raise BadInput(f"least {name} {value:g}: must be {fewest} or more")
        if name != "clinicians" and value != int(value):
            raise BadInput(f"least {name} {value:g}: must be a whole number")
    for name in ("icc", "like_for_like"):
        value = getattr(wanted, name)
        if not (math.isfinite(value) and -1 <= value < 1):
            raise BadInput(f"lower end of {name} {value:g}: must be from -1 to below 1")
