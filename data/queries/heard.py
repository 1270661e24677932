"""The ledger of juries tried, for those who steer a study or read it."""

from sqlalchemy import Engine

from data.person import Person, only
from data.queries.ledger import LedgerEntry, tried
from data.schema import Role


@only(Role.RESEARCHER, Role.COORDINATOR)
def juries_tried(_: Person, engine: Engine) -> list[LedgerEntry]:
    """Return every jury that was ever held against the clinicians, what was looked at last first."""
    return sorted(tried(engine), key=lambda one: one.last_at, reverse=True)
