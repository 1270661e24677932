"""The ledger of juries held against the clinicians, frozen reports, and routing rules that are kept.

Who tries many juries and shows the best one shows luck as well: the ledger says how many were tried.
A report is what a calibration found, kept as it was; none is changed or deleted, and one that is
withdrawn is listed with the reason. A locked study takes them too: to look again at locked data is
what must be counted.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import reading, transaction
from data.errors import BadInput, Conflict, Unknown
from data.person import Person, only
from data.record import canonical_values, log
from data.schema import Composition, Event, Kind, Rater, Report, Role, now
from data.study.verify import acts_in

if TYPE_CHECKING:
    import pandas as pd


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
        query = select(Rater.handle, Rater.simulated).where(Rater.kind == Kind.JUROR)
        jurors = dict(session.exec(query.order_by(col(Rater.id))).all())
        if lost := sorted({name for entry in entries for name in entry.jurors} - jurors.keys()):
            raise Unknown(f"no juror {', '.join(lost)} in this study: it has {', '.join(jurors)}")
        evaluations = [
            {name: getattr(entry, name) for name in Evaluation.__slots__}
            | {
                "key": entry.key,
                "jurors": entry.members,
                "needed": entry.least,
                "simulated": any(jurors[name] for name in entry.jurors),
                "icc": entry.icc if math.isfinite(entry.icc) else None,
                "compared": sorted(set(entry.compared)),
            }
            for entry in entries
        ]
        at = now()
        detail = {"juries": evaluations, "at": at.isoformat()}
        _count_evaluations(session, evaluations, at)
        log(session, "researcher", EVALUATED, detail)


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


READING = ["response_id", "benchmark", "rater", "criterion", "pass_", "replicate", "score"]


def reports(engine: Engine) -> list[Report]:
    """Return every frozen report that was not withdrawn, the oldest first."""
    with reading(engine) as session:
        gone = {event.detail["report"] for event in acts_in(session, WITHDRAWN)}
        every = session.exec(select(Report).order_by(col(Report.id)))
        return [stored for stored in every if stored.id not in gone]


@only(Role.RESEARCHER, Role.COORDINATOR)
def withdrawn_reports(_: Person, engine: Engine) -> list[tuple[Event, str]]:
    """Return every withdrawal of a report as the record has it, in that order, with the report's name."""
    with reading(engine) as session:
        names = {row.id: str(row.body.get("name", "")) for row in session.exec(select(Report))}
        events = acts_in(session, WITHDRAWN)
    return [(event, names.get(event.detail["report"], "")) for event in events]


def report(engine: Engine, number: int) -> Report:
    """Return one report by its number.

    Raises
    ------
    Unknown
        If there is none; names those that are there.
    """
    by_number = {stored.id: stored for stored in reports(engine)}
    if number not in by_number:
        has = f"it has {', '.join(map(str, by_number))}" if by_number else "it has none"
        raise Unknown(
            f"no report {number} in this study: {has}; `medjury analyse calibrate --freeze` freezes one"
        )
    return by_number[number]


def compositions_tried(engine: Engine) -> list[Composition]:
    """Return every composition that was ever evaluated on the study, the oldest first."""
    query = select(Composition).order_by(col(Composition.first_at), col(Composition.key))
    with reading(engine) as session:
        return list(session.exec(query))


@only(Role.RESEARCHER, Role.COORDINATOR)
def juries_tried(_: Person, engine: Engine) -> list[Composition]:
    """Return every jury that was ever held against the clinicians, what was looked at last first."""
    return sorted(compositions_tried(engine), key=lambda one: one.last_at, reverse=True)


def comparisons_besides(
    entries: Iterable[Composition], here: Evaluation, *, simulated: bool = False
) -> int:
    """Return how many different comparisons were looked at on a study beside those made here.

    Parameters
    ----------
    entries
        The ledger, from `compositions_tried`.
    here
        The jury that is looked at here, with what it is compared with here.
    simulated
        Whether a simulated juror takes part here. Where none does, simulated juries do not
        count: no real one was chosen among them.

    Two scorers that were compared count once, whatever the benchmark, criterion, method or
    instances, and whichever came first. A jury that was never compared with another scorer
    counts once too: its ICC was seen.
    """
    counting = [entry for entry in entries if simulated or not entry.simulated]
    own = _pairs(here.jurors, here.compared)
    pairs = own.union(*(_pairs(entry.jurors, entry.compared) for entry in counting))
    compared = {scorer for pair in pairs for scorer in pair} | {_scorers(here.jurors)}
    alone = {_scorers(entry.jurors) for entry in counting} - compared
    return len(pairs - own) + len(alone)


def _pairs(jurors: Sequence[str], compared: Iterable[str]) -> set[frozenset[tuple[str, ...]]]:
    """Return a jury with each of what it was compared with, in no order."""
    return {frozenset((_scorers(jurors), _scorers(other))) for other in compared}


def _scorers(scorer: str | Sequence[str]) -> tuple[str, ...]:
    """Return who a scorer is, such as "juror:a", "jury:b, a" or the jurors b and a."""
    if not isinstance(scorer, str):
        return tuple(sorted(", ".join(scorer).split(", ")))
    kind, _, names = scorer.partition(":")
    return tuple(sorted(names.split(", "))) if kind in ("juror", "jury") else (scorer,)


def fingerprint(ratings: "pd.DataFrame") -> str:
    """Return a SHA-256 over pandas' 64-bit hashes of the ratings a figure rests on, in whatever order.

    It tells whether a figure rests on the same ratings; against forgery stands the record.

    Parameters
    ----------
    ratings
        As `frames.ratings_frame` returns them, or some of those rows.
    """
    from pandas.util import hash_pandas_object

    table = ratings[READING].assign(score=ratings["score"] + 0.0)  # -0.0 is 0.0
    rows = hash_pandas_object(table, index=False).sort_values()
    return hashlib.sha256(rows.to_numpy("<u8").tobytes()).hexdigest()


RULE_KEPT = "routing rule kept"
LONGEST_NAME = 60


def keep_rule(engine: Engine, actor: str, name: str, rule: Mapping[str, Any]) -> str:
    """Keep a routing rule under a name; return its SHA-256.

    A locked study takes it too: it is no content of the study, but what was found of it.

    Parameters
    ----------
    engine, actor : of which study, and who keeps it
    name : up to 60 printable signs; a name is given once
    rule : plain values that JSON takes, without NaN

    Raises
    ------
    BadInput
        If the name is none.
    Conflict
        If a rule of this name is kept already.
    """
    if name != name.strip() or not name.isprintable() or not 0 < len(name) <= LONGEST_NAME:
        raise BadInput(f"name {name[:80]!r}: give a rule 1 to {LONGEST_NAME} printable signs")
    plain = json.loads(json.dumps(rule, allow_nan=False))
    sha256 = rule_sha256(plain)
    with transaction(engine) as session:
        every = session.exec(select(Event.detail).where(Event.action == RULE_KEPT)).all()
        if name in {one["name"] for one in every}:
            raise Conflict(f"a routing rule {name} is kept already; a rule is never changed")
        log(session, actor, RULE_KEPT, {"name": name, "sha256": sha256, "rule": plain})
    return sha256


def rule_sha256(rule: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a rule as it is kept."""
    text = json.dumps(rule, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
