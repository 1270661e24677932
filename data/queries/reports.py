"""Reading frozen reports, and whether any was changed behind the record's back."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import reading
from data.errors import Unknown
from data.schema import Event, Report
from data.store.reports import FROZEN, report_sha256


@dataclass(frozen=True, slots=True)
class FrozenReport:
    """A calibration as it was frozen.

    Attributes
    ----------
    id
        Its number in the study, from 1.
    at
        When, in UTC.
    fingerprint
        Of the ratings it was computed from.
    body
        As `medjury calibrate --freeze` made it: see docs/monitor.md.
    """

    id: int
    at: datetime
    fingerprint: str
    body: Mapping[str, Any]


def reports(engine: Engine) -> list[FrozenReport]:
    """Return every frozen report, the oldest first."""
    with reading(engine) as session:
        found = session.exec(select(Report).order_by(col(Report.id)))
        return [FrozenReport(one.id or 0, one.at, one.fingerprint, one.body) for one in found]


def report(engine: Engine, number: int) -> FrozenReport:
    """Return one report by its number.

    Raises
    ------
    Unknown
        If there is none; names those that are there.
    """
    known = {one.id: one for one in reports(engine)}
    if number not in known:
        has = f"it has {', '.join(map(str, known))}" if known else "it has none"
        raise Unknown(
            f"no report {number} in this study: {has}; `medjury calibrate --freeze` freezes one"
        )
    return known[number]


def report_findings(engine: Engine) -> list[str]:
    """Return a sentence for each report that is not what its event says of it.

    For `queries.record.verify`: who takes a bad report out makes the others look better.
    """
    with reading(engine) as session:
        promised = _from_events(session)
        rows = {one.id: one for one in session.exec(select(Report))}
        found = {
            number: report_sha256(one.at, one.fingerprint, one.body) for number, one in rows.items()
        }
    wrong = [
        number for number in {**promised, **found} if promised.get(number) != found.get(number)
    ]
    return [_finding(number, promised, found) for number in sorted(map(int, filter(None, wrong)))]


def _from_events(session: Session) -> dict[int | None, str]:
    """Return what the events say: number of a report -> its digest."""
    query = select(Event.detail).where(Event.action == FROZEN).order_by(col(Event.id))
    return {one["report"]: one["sha256"] for one in session.exec(query)}


def _finding(number: int, promised: Mapping[Any, str], found: Mapping[Any, str]) -> str:
    if number not in found:
        return f"report {number}: it was frozen, and is gone"
    if number not in promised:
        return f"report {number}: no event vouches for it"
    return f"report {number}: not as it was frozen"
