"""Which juries were ever held against the clinicians, frozen reports, and whether any was changed."""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import reading
from data.errors import Unknown
from data.person import Person, only
from data.schema import Composition, Event, Report, Role
from data.store.ledger import EVALUATED, FROZEN, report_sha256

if TYPE_CHECKING:
    import pandas as pd

NEARLY = timedelta(minutes=1)
READING = ["response_id", "benchmark", "rater", "criterion", "pass_", "replicate", "score"]


def reports(engine: Engine) -> list[Report]:
    """Return every frozen report, the oldest first."""
    with reading(engine) as session:
        return list(session.exec(select(Report).order_by(col(Report.id))))


def report(engine: Engine, number: int) -> Report:
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
            f"no report {number} in this study: {has}; `medjury analyse calibrate --freeze` freezes one"
        )
    return known[number]


def report_findings(session: Session) -> list[str]:
    """Return a sentence for each report that is not what its event says of it.

    For `queries.record.verify`: who takes a bad report out makes the others look better.
    """
    promised = _frozen_by_events(session)
    rows = {one.id: one for one in session.exec(select(Report))}
    found = {
        number: report_sha256(one.at, one.fingerprint, one.body) for number, one in rows.items()
    }
    wrong = [
        number for number in {**promised, **found} if promised.get(number) != found.get(number)
    ]
    return [
        _report_finding(number, promised, found)
        for number in sorted(one for one in wrong if one is not None)
    ]


def _frozen_by_events(session: Session) -> dict[int, str]:
    """Return what the events say: number of a report -> its digest."""
    query = select(Event.detail).where(Event.action == FROZEN).order_by(col(Event.id))
    return {one["report"]: one["sha256"] for one in session.exec(query)}


def _report_finding(number: int, promised: Mapping[Any, str], found: Mapping[Any, str]) -> str:
    if number not in found:
        return f"report {number}: it was frozen, and is gone"
    if number not in promised:
        return f"report {number}: no event vouches for it"
    return f"report {number}: not as it was frozen"


def tried(engine: Engine) -> list[Composition]:
    """Return every composition that was ever evaluated on the study, the oldest first."""
    query = select(Composition).order_by(col(Composition.first_at), col(Composition.key))
    with reading(engine) as session:
        return list(session.exec(query))


@only(Role.RESEARCHER, Role.COORDINATOR)
def juries_tried(_: Person, engine: Engine) -> list[Composition]:
    """Return every jury that was ever held against the clinicians, what was looked at last first."""
    return sorted(tried(engine), key=lambda one: one.last_at, reverse=True)


def comparisons_besides(entries: Iterable[Composition], here: Mapping[str, Collection[str]]) -> int:
    """Return how many comparisons were ever tried on a study beside those made here.

    It is the `tried` of `calibration.differences.difference_rows`.

    Parameters
    ----------
    entries
        The ledger, from `tried`.
    here
        Key of every composition that takes part here -> with what it is compared here.

    A composition counts once for each thing it was ever compared with, and once if with
    nothing: its ICC was seen. However often that was makes no difference. Simulated juries
    count only where one of those here is simulated: no real one was chosen among them.
    """
    known = list(entries)
    rehearsal = any(one.simulated for one in known if one.key in here)
    counted = [one for one in known if rehearsal or not one.simulated]
    new = (max(len(one.compared), 1) for one in counted if one.key not in here)
    more = (len(set(one.compared) - set(here[one.key])) for one in counted if one.key in here)
    return sum(new) + sum(more)


def fingerprint(ratings: "pd.DataFrame") -> str:
    """Return the SHA-256 of the ratings a figure rests on; their order makes no difference.

    Parameters
    ----------
    ratings
        As `queries.frames.ratings_frame` returns them, or some of those rows.
    """
    rows = ratings[READING].sort_values(READING[:-1], ignore_index=True)
    text = rows.to_csv(index=False, float_format="%.17g", lineterminator="\n")
    return hashlib.sha256(text.encode()).hexdigest()


def ledger_findings(session: Session) -> list[str]:
    """Return a sentence for each entry that is not what the events say of it.

    For `queries.record.verify`: who takes juries out of the ledger makes the rest look better.
    """
    expected = _from_events(session)
    found = {one.key: one for one in session.exec(select(Composition))}
    return [
        finding
        for key in sorted({**expected, **found})
        for finding in _entry_findings(key, expected.get(key), found.get(key))
    ]


def _from_events(session: Session) -> dict[str, dict[str, Any]]:
    """Return key -> what the ledger must hold, from all the events in their order."""
    held: dict[str, dict[str, Any]] = {}
    for at, told in _evaluations(session):
        before = held.get(told["key"], {"times": 0, "compared": [], "first_at": at})
        compared = sorted({*before["compared"], *told["compared"]})
        counted = {"times": before["times"] + 1, "compared": compared}
        held[told["key"]] = dict(told) | counted | {"first_at": before["first_at"], "last_at": at}
    return held


def _evaluations(session: Session) -> Iterator[tuple["_Time", Mapping[str, Any]]]:
    """Yield when a jury was evaluated, and what its event says of it, in their order."""
    query = select(Event.at, Event.detail).where(Event.action == EVALUATED).order_by(col(Event.id))
    for at, detail in session.exec(query):
        exact = "at" in detail
        time = _Time(datetime.fromisoformat(detail["at"]) if exact else at, exact)
        yield from ((time, told) for told in detail["juries"])


@dataclass(frozen=True, slots=True)
class _Time:
    """When an event says an entry was noted; the events of before said only about when."""

    at: datetime
    is_exact: bool

    def is_that(self, at: datetime) -> bool:
        return at == self.at if self.is_exact else abs(at - self.at) < NEARLY


def _entry_findings(
    key: str, expected: Mapping[str, Any] | None, found: Composition | None
) -> Iterator[str]:
    """Yield how an entry differs from what its events say, column by column."""
    name = f"composition {key[:12]}"
    if found is None:
        yield f"{name}: it was evaluated, and the ledger has lost it"
    elif expected is None:
        yield f"{name}: no event vouches for it"
    else:
        for column, value in expected.items():
            held = getattr(found, column)
            if not (value.is_that(held) if isinstance(value, _Time) else held == value):
                yield f"{name}: {column} is not as its events say"
