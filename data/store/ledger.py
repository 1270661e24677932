"""The ledger: every jury that was ever held against the clinicians is remembered.

Who tries many juries and shows the best one shows luck as well. The ledger says how many were
tried. It is no content of the study but a record of looking at it, so a locked study takes
entries too: to look again at locked data is what must be counted.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import transaction
from data.errors import Unknown
from data.schema import Composition, Kind, Rater, now
from data.store.audit import log

EVALUATED = "juries evaluated"


@dataclass(frozen=True, slots=True)
class Evaluated:
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


def remember(engine: Engine, entries: Sequence[Evaluated]) -> None:
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
        told = [_told(one, simulated) for one in entries]
        log(session, "researcher", EVALUATED, {"juries": told})  # first: it lets in one at a time
        for one in told:
            _note(session, one)


def _simulated(session: Session, entries: Sequence[Evaluated]) -> set[str]:
    """Return which jurors are simulated; refuse names that are no juror's."""
    query = select(Rater.handle, Rater.simulated).where(Rater.kind == Kind.JUROR)
    known = dict(session.exec(query.order_by(col(Rater.id))).all())
    if lost := sorted({name for one in entries for name in one.jurors} - known.keys()):
        raise Unknown(f"no juror {', '.join(lost)} in this study: it has {', '.join(known)}")
    return {name for name, simulated in known.items() if simulated}


def _told(one: Evaluated, simulated: set[str]) -> dict[str, Any]:
    """Return what the event says of an evaluation: all of it, in plain values."""
    return asdict(one) | {
        "key": one.key,
        "jurors": one.members,
        "needed": one.least,
        "simulated": bool(simulated & set(one.jurors)),
        "icc": one.icc if math.isfinite(one.icc) else None,
        "compared": sorted(set(one.compared)),
    }


def _note(session: Session, told: Mapping[str, Any]) -> None:
    """Store a new composition, or count it once more with its newest figures."""
    held = session.get(Composition, told["key"])
    if held is None:
        session.add(Composition(**told))
        session.flush()
        return
    for name in ("icc", "n_responses", "fingerprint", "simulated"):
        setattr(held, name, told[name])
    held.compared = sorted({*held.compared, *told["compared"]})
    held.times, held.last_at = held.times + 1, now()
    session.add(held)
