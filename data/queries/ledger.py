"""The ledger of juries compared with clinicians, frozen reports, and whether any was tampered with."""

import csv
import hashlib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import reading
from data.errors import Unknown
from data.person import Person, only
from data.schema import Composition, Event, Report, Role
from data.store.ledger import EVALUATED, FROZEN, WITHDRAWN, Evaluation, report_sha256

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

AT_ONCE = 65_536  # ratings that are written as text together
READING = ["response_id", "benchmark", "rater", "criterion", "pass_", "replicate", "score"]


def reports(engine: Engine) -> list[Report]:
    """Return every frozen report that was not withdrawn, the oldest first."""
    with reading(engine) as session:
        gone = {event.detail["report"] for event in _withdrawals(session)}
        every = session.exec(select(Report).order_by(col(Report.id)))
        return [stored for stored in every if stored.id not in gone]


@dataclass(frozen=True, slots=True)
class WithdrawnReport:
    """A frozen report that somebody withdrew: its number and name, when, by whom, and why."""

    number: int
    name: str
    at: datetime
    by: str
    reason: str


@only(Role.RESEARCHER, Role.COORDINATOR)
def withdrawn_reports(_: Person, engine: Engine) -> list[WithdrawnReport]:
    """Return every report that was withdrawn, in that order."""
    with reading(engine) as session:
        names = {row.id: str(row.body.get("name", "")) for row in session.exec(select(Report))}
        return [
            WithdrawnReport(
                number=event.detail["report"],
                name=names.get(event.detail["report"], ""),
                at=event.at,
                by=event.actor,
                reason=event.detail["reason"],
            )
            for event in _withdrawals(session)
        ]


def _withdrawals(session: Session) -> list[Event]:
    query = select(Event).where(Event.action == WITHDRAWN).order_by(col(Event.id))
    return list(session.exec(query))


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


def report_findings(session: Session) -> list[str]:
    """Return a sentence for each report that is not what its event says of it.

    For `queries.record.verify`: who takes a bad report out makes the others look better.
    """
    expected = _expected_digests(session)
    digests = {
        stored.id: report_sha256(stored.at, stored.fingerprint, stored.body)
        for stored in session.exec(select(Report))
    }
    differing = [
        number for number in {**expected, **digests} if expected.get(number) != digests.get(number)
    ]
    return [
        _report_finding(number, expected, digests)
        for number in sorted(number for number in differing if number is not None)
    ]


def _expected_digests(session: Session) -> dict[int, str]:
    """Return what the events say: number of a report -> its digest."""
    query = select(Event.detail).where(Event.action == FROZEN).order_by(col(Event.id))
    return {detail["report"]: detail["sha256"] for detail in session.exec(query)}


def _report_finding(number: int, expected: Mapping[Any, str], digests: Mapping[Any, str]) -> str:
    if number not in digests:
        return f"report {number}: it was frozen, and is gone"
    if number not in expected:
        return f"report {number}: no event vouches for it"
    return f"report {number}: not as it was frozen"


def compositions_tried(engine: Engine) -> list[Composition]:
    """Return every composition that was ever evaluated on the study, the oldest first."""
    query = select(Composition).order_by(col(Composition.first_at), col(Composition.key))
    with reading(engine) as session:
        return list(session.exec(query))


@only(Role.RESEARCHER, Role.COORDINATOR)
def juries_tried(_: Person, engine: Engine) -> list[Composition]:
    """Return every jury that was ever held against the clinicians, what was looked at last first."""
    return sorted(
        compositions_tried(engine), key=lambda composition: composition.last_at, reverse=True
    )


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
    """Return the SHA-256 of the ratings a figure rests on; their order makes no difference.

    Parameters
    ----------
    ratings
        As `queries.frames.ratings_frame` returns them, or some of those rows.
    """
    import numpy as np

    columns = [_ranked(ratings[name]) for name in READING]
    order = np.lexsort([ranks for ranks, _ in reversed(columns[:-1])])
    digest = hashlib.sha256((",".join(READING) + "\n").encode())
    for start in range(0, len(order), AT_ONCE):
        rows = order[start : start + AT_ONCE]
        cells = ([texts[rank] for rank in ranks[rows].tolist()] for ranks, texts in columns)
        lines = "".join(",".join(line) + "\n" for line in zip(*cells, strict=True))
        digest.update(lines.encode())
    return digest.hexdigest()


def _ranked(column: "pd.Series") -> "tuple[np.ndarray[Any, Any], list[str]]":
    """Return each row's rank among the column's different values, and these in order as CSV has them.

    A value is written as text once, however many rows have it: a column has few different ones.
    """
    import numpy as np
    import pandas as pd

    codes, values = pd.factorize(column, use_na_sentinel=False)
    different = pd.DataFrame({"value": values}).sort_values("value", kind="stable")
    ranks = np.empty(len(different), dtype=np.int64)
    ranks[different.index.to_numpy()] = np.arange(len(different))
    texts = io.StringIO(newline="")
    writer = csv.writer(texts, lineterminator="\0\n")
    writer.writerows([_plain(value), ""] for value in different["value"])
    return ranks[codes], [cell[:-1] for cell in texts.getvalue().split("\0\n")[:-1]]


def _plain(value: Any) -> Any:
    """Return a value as its CSV cell has it: a number to all its digits, nothing for a missing one."""
    if value != value:  # NaN alone
        return ""
    return f"{value:.17g}" if isinstance(value, float) else value


def ledger_findings(session: Session) -> list[str]:
    """Return a sentence for each entry that is not what the events say of it.

    For `queries.record.verify`: who takes juries out of the ledger makes the rest look better.
    """
    expected = _expected_entries(session)
    stored = {composition.key: composition for composition in session.exec(select(Composition))}
    return [
        finding
        for key in sorted({**expected, **stored})
        for finding in _entry_findings(key, expected.get(key), stored.get(key))
    ]


def _expected_entries(session: Session) -> dict[str, dict[str, Any]]:
    """Return key -> what the ledger must hold, from all the events in their order."""
    expected: dict[str, dict[str, Any]] = {}
    for at, evaluation in _evaluations(session):
        before = expected.get(evaluation["key"], {"times": 0, "compared": [], "first_at": at})
        compared = sorted({*before["compared"], *evaluation["compared"]})
        totals = {"times": before["times"] + 1, "compared": compared}
        expected[evaluation["key"]] = (
            dict(evaluation) | totals | {"first_at": before["first_at"], "last_at": at}
        )
    return expected


def _evaluations(session: Session) -> Iterator[tuple[datetime, Mapping[str, Any]]]:
    """Yield when a jury was evaluated, and what its event says of it, in their order."""
    query = select(Event.detail).where(Event.action == EVALUATED).order_by(col(Event.id))
    for detail in session.exec(query):
        at = datetime.fromisoformat(detail["at"])
        yield from ((at, jury) for jury in detail["juries"])


def _entry_findings(
    key: str, expected: Mapping[str, Any] | None, stored: Composition | None
) -> Iterator[str]:
    """Yield how an entry differs from what its events say, column by column."""
    name = f"composition {key[:12]}"
    if stored is None:
        yield f"{name}: it was evaluated, and the ledger has lost it"
    elif expected is None:
        yield f"{name}: no event vouches for it"
    else:
        for column, value in expected.items():
            if getattr(stored, column) != value:
                yield f"{name}: {column} is not as its events say"
