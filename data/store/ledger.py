"""The ledger of juries that were held against the clinicians, and frozen reports.

Who tries many juries and shows the best one shows luck as well. The ledger says how many were
tried. A report is what a calibration found, kept as it was, under the audit chain; none is ever
changed or deleted, and one that is withdrawn is listed as such with the reason. Both are no content of the study but a record of looking at it, so a locked
study takes them too: to look again at locked data is what must be counted.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import transaction
from data.errors import BadInput, Unknown
from data.person import Person, only
from data.record import canonical_values, log
from data.schema import Composition, Event, Kind, Rater, Report, Role, now

EVALUATED = "juries evaluated"
AT_ONCE = 500  # keys asked for in one query; databases allow only so many
FROZEN, WITHDRAWN = "report frozen", "report withdrawn"
LONGEST_REASON = 500
COMBINED = "combined"  # all benchmarks at once


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One jury that was evaluated, and what came of it.

    Attributes
    ----------
    jurors
        Handles, in any order.
    benchmark
        Or "combined".
    method
        "paper" or "published".
    fingerprint
        Of the data it was computed from: `queries.ledger.fingerprint`.
    n_responses
        On which its ICC rests.
    icc
        NaN where undefined; stored as None.
    criterion
        Empty for the composite of all.
    instances
        Which ones were kept, as "sound references"; empty for all.
    needed
        How many jurors a response needs; None means all of them.
    compared
        Names of what its ICC was compared with: `b` of the rows of differences.
    """

    jurors: Sequence[str]
    benchmark: str
    method: str
    fingerprint: str
    n_responses: int
    icc: float = math.nan
    criterion: str = ""
    instances: str = ""
    needed: int | None = None
    compared: Sequence[str] = ()

    @property
    def members(self) -> list[str]:
        """Return the jurors, each once, in alphabetical order."""
        return sorted(set(self.jurors))

    @property
    def least(self) -> int:
        """Return how many jurors a response needs."""
        return len(self.members) if self.needed is None else self.needed

    @property
    def key(self) -> str:
        """Return the SHA-256 over all that makes it another composition."""
        told = [self.members, self.least, self.benchmark, self.instances, self.criterion]
        return hashlib.sha256(json.dumps([*told, self.method]).encode()).hexdigest()


def record_evaluations(engine: Engine, entries: Sequence[Evaluation]) -> None:
    """Note juries that were evaluated: a new one, or one more time; with an event, all or nothing.

    A locked study takes this too. Nothing is stored, and no event left, for no entries.

    Raises
    ------
    Unknown
        If a juror is not in the study.
    NoStudy
        If the database cannot be written to.
    """
    if not entries:
        return
    with transaction(engine) as session:
        simulated = _simulated(session, entries)
        evaluations = [_event_content(entry, simulated) for entry in entries]
        at = now()
        detail = {"juries": evaluations, "at": at.isoformat()}
        _count_evaluations(session, evaluations, at)
        log(session, "researcher", EVALUATED, detail)


def _simulated(session: Session, entries: Sequence[Evaluation]) -> set[str]:
    """Return which jurors are simulated; refuse names that are no juror's."""
    query = select(Rater.handle, Rater.simulated).where(Rater.kind == Kind.JUROR)
    jurors = dict(session.exec(query.order_by(col(Rater.id))).all())
    if lost := sorted({name for entry in entries for name in entry.jurors} - jurors.keys()):
        raise Unknown(f"no juror {', '.join(lost)} in this study: it has {', '.join(jurors)}")
    return {name for name, simulated in jurors.items() if simulated}


def _event_content(entry: Evaluation, simulated: set[str]) -> dict[str, Any]:
    """Return what the event says of an evaluation: all of it, in plain values."""
    fields = {name: getattr(entry, name) for name in Evaluation.__slots__}
    return fields | {
        "key": entry.key,
        "jurors": entry.members,
        "needed": entry.least,
        "simulated": not simulated.isdisjoint(entry.jurors),
        "icc": entry.icc if math.isfinite(entry.icc) else None,
        "compared": sorted(set(entry.compared)),
    }


def _count_evaluations(
    session: Session, evaluations: Sequence[Mapping[str, Any]], at: datetime
) -> None:
    """Store new compositions, and count known ones once more with their newest figures."""
    keys = [evaluation["key"] for evaluation in evaluations]
    stored = {
        one.key: one
        for start in range(0, len(keys), AT_ONCE)
        for one in session.exec(
            select(Composition).where(col(Composition.key).in_(keys[start : start + AT_ONCE]))
        )
    }
    for evaluation in evaluations:
        known = stored.get(evaluation["key"])
        if known is None:
            known = Composition(**evaluation, first_at=at, last_at=at)
            stored[known.key] = known
            session.add(known)
            continue
        for name in ("icc", "n_responses", "fingerprint", "simulated"):
            setattr(known, name, evaluation[name])
        known.compared = sorted({*known.compared, *evaluation["compared"]})
        known.times, known.last_at = known.times + 1, at


def freeze(engine: Engine, fingerprint: str, body: Mapping[str, Any]) -> int:
    """Keep a report, with an event that holds its digest; return its number.

    Parameters
    ----------
    fingerprint
        Of the ratings it was computed from: `queries.ledger.fingerprint`.
    body
        Plain values that JSON takes, without NaN.

    Raises
    ------
    NoStudy
        If the database cannot be written to.
    """
    plain = json.loads(json.dumps(body, allow_nan=False))
    with transaction(engine) as session:
        report = Report(at=now(), fingerprint=fingerprint, body=plain)
        session.add(report)
        session.flush()
        digest = report_sha256(report.at, fingerprint, plain)
        log(session, "researcher", FROZEN, {"report": report.id, "sha256": digest})
        return report.id or 0


@only(Role.COORDINATOR)
def withdraw_report(person: Person, engine: Engine, number: int, reason: str) -> None:
    """Take a frozen report out of every list and comparison; the record keeps it, by whom, and why.

    Its row stays as it was frozen, so that `verify` still holds it to its digest, and its number is
    not given again: who takes a bad report out cannot do so unseen.

    Raises
    ------
    BadInput
        If no reason is given.
    Unknown
        If there is no such report, or it was withdrawn before.
    """
    why = " ".join(reason.split())[:LONGEST_REASON]
    if not why:
        raise BadInput(f"report {number}: say why it is withdrawn; the record keeps the reason")
    with transaction(engine) as session:
        gone = session.exec(select(Event.detail).where(Event.action == WITHDRAWN)).all()
        if session.get(Report, number) is None or number in {one["report"] for one in gone}:
            raise Unknown(f"report {number}: there is none, or it was withdrawn before")
        log(session, person.actor, WITHDRAWN, {"report": number, "reason": why})


def report_sha256(at: datetime, fingerprint: str, body: Mapping[str, Any]) -> str:
    """Return the SHA-256 over all that a report holds."""
    content = json.dumps(body, sort_keys=True)
    return hashlib.sha256(canonical_values([at, fingerprint, content])).hexdigest()
