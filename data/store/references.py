"""What jurors said of references: stored, never changed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Engine, insert

from data.database import transaction
from data.schema import ReferenceCheck, Status, now
from data.store.audit import refuse_locked


@dataclass(frozen=True, slots=True)
class ReferenceRecord:
    """One call about one reference, as `ReferenceCheck` stores it; keys are primary keys.

    `absent` and `facts` count only with the status OK. Unknown token counts and prices are None,
    never 0. `number` is 0 where the juror was not asked at all.
    """

    instance: int
    rater: int
    status: Status
    request_sha256: str
    absent: bool | None = None
    facts: Sequence[str] = ()
    reason: str = ""
    number: int = 1
    sent: Mapping[str, Any] = field(default_factory=dict)
    raw: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_cached: int | None = None
    tokens_reasoning: int | None = None
    usd: float | None = None
    price_source: str = ""
    latency_seconds: float = 0.0
    request_id: str = ""
    returned_model: str = ""


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
    fields = {name: getattr(record, name) for name in ReferenceRecord.__slots__}
    ok = record.status == Status.OK
    verdict = {"absent": record.absent if ok else None, "facts": list(record.facts) if ok else []}
    return fields | verdict | {"sent": dict(record.sent), "at": now()}
