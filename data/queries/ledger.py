"""The ledger of juries compared with clinicians, frozen reports, and whether any was tampered with."""

import csv
import hashlib
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import reading
from data.errors import Unknown
from data.person import Person, only
from data.schema import Composition, Event, Report, Role
from data.store.ledger import WITHDRAWN, Evaluation

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
