"""What jurors said of references: stored, never changed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, insert

from data.database import transaction
from data.schema import ReferenceCheck, Status
from data.store.attempts import CallRecord
from data.store.audit import refuse_locked


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRecord(CallRecord):
    """One call about the reference of an instance (primary key), as `ReferenceCheck` stores it.

    `absent` and `facts` count only with the status OK.
    """

    instance: int
    absent: bool | None = None
    facts: Sequence[str] = ()


def record_references(engine: Engine, records: Iterable[ReferenceRecord]) -> None:
    """Store calls about references, in one transaction.

    Raises
    ------
    NotAllowed
        If the study is locked.
    """
    rows = [_row(one) for one in records]
    if not rows:
        return
    with transaction(engine) as session:
        refuse_locked(session)
        session.execute(insert(ReferenceCheck), rows)


def _row(record: ReferenceRecord) -> dict[str, Any]:
    """Return the columns of a call; a verdict stands only with the status OK."""
    ok = record.status == Status.OK
    verdict = {"absent": record.absent if ok else None, "facts": list(record.facts) if ok else []}
    return record.columns() | verdict
