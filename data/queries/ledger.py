"""Reading the ledger: which juries were ever held against the clinicians, and how often."""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import reading
from data.schema import Composition, Event
from data.store.ledger import EVALUATED

if TYPE_CHECKING:
    import pandas as pd

READING = ["response_id", "benchmark", "rater", "criterion", "pass_", "replicate", "score"]


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A composition that was evaluated: its key, what it is, and its last figures.

    Attributes
    ----------
    key
        The same for the same jurors, needed, benchmark, instances, criterion and method.
    simulated
        Whether any of its jurors is.
    compared
        What its ICC was ever compared with.
    icc
        Of the last time; None where undefined. `n_responses` and `fingerprint` go with it.
    times
        How often it was evaluated, at least 1.
    first_at, last_at
        In UTC.
    """

    key: str
    jurors: tuple[str, ...]
    needed: int
    benchmark: str
    instances: str
    criterion: str
    method: str
    simulated: bool
    compared: tuple[str, ...]
    icc: float | None
    n_responses: int
    fingerprint: str
    times: int
    first_at: datetime
    last_at: datetime


def tried(engine: Engine) -> list[LedgerEntry]:
    """Return every composition that was ever evaluated on the study, the oldest first."""
    query = select(Composition).order_by(col(Composition.first_at), col(Composition.key))
    with reading(engine) as session:
        return [_entry(one) for one in session.exec(query)]


def comparisons_besides(entries: Iterable[LedgerEntry], here: Mapping[str, Collection[str]]) -> int:
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


def ledger_findings(engine: Engine) -> list[str]:
    """Return a sentence for each entry that is not what the events say of it.

    For `queries.record.verify`: who takes juries out of the ledger makes the rest look better.
    """
    with reading(engine) as session:
        expected = _from_events(session)
        names = list(next(iter(expected.values()), {}))
        rows = list(session.exec(select(Composition)))
        found = {one.key: {name: getattr(one, name) for name in names} for one in rows}
    wrong = [key for key in {**expected, **found} if expected.get(key) != found.get(key)]
    return [_finding(key, expected, found) for key in sorted(wrong)]


def _from_events(session: Session) -> dict[str, dict[str, Any]]:
    """Return key -> what the ledger must hold, from all the events in their order."""
    query = select(Event.detail).where(Event.action == EVALUATED).order_by(col(Event.id))
    held: dict[str, dict[str, Any]] = {}
    for told in (one for detail in session.exec(query) for one in detail["juries"]):
        before = held.get(told["key"], {"times": 0, "compared": []})
        compared = sorted({*before["compared"], *told["compared"]})
        held[told["key"]] = told | {"times": before["times"] + 1, "compared": compared}
    return held


def _finding(key: str, expected: Collection[str], found: Collection[str]) -> str:
    if key not in found:
        return f"composition {key[:12]}: it was evaluated, and the ledger has lost it"
    if key not in expected:
        return f"composition {key[:12]}: no event vouches for it"
    return f"composition {key[:12]}: not as its events say"


def _entry(one: Composition) -> LedgerEntry:
    fields = {name: getattr(one, name) for name in LedgerEntry.__slots__}
    return LedgerEntry(**fields | {"jurors": tuple(one.jurors), "compared": tuple(one.compared)})
