"""What a clinician is at. The author's table is not read here."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any

from sqlalchemy import BindParameter, Engine, bindparam, func
from sqlmodel import col, select

from data.card import Card
from data.database import reading
from data.queries.cards import Columns, card, shown
from data.rubric import Rubric
from data.schema import (
    Assignment,
    Benchmark,
    Instance,
    Rating,
    Response,
    RubricText,
    Setting,
    State,
)
from data.settings import Settings, read_settings

ENDED = (State.DONE, State.UNRATED)
LOCKED = "locked"
TEXTS = 5

# Made once: each message of a clinician asks them, and making one costs more than asking it.
RATER: BindParameter[int] = bindparam("rater")
_MINE = (col(Assignment.rater) == RATER, col(Assignment.state) != State.RECUSED)
_SETTINGS = select(Setting.key, Setting.value)
_PROGRESS = select(
    func.count(col(Assignment.id)).filter(col(Assignment.state).in_(ENDED)),
    func.count(col(Assignment.id)),
).where(*_MINE)
_KEPT = select(Assignment.draft, Assignment.draft_seq).where(
    *_MINE, Assignment.code == bindparam("code")
)
# When it was first rated, by the order of storing: a clock may be set back. The sum keeps a
# database from looking for the least number through all that the rater has rated.
_FIRST_RATING = (
    select(func.min(col(Rating.id) + 0))
    .where(
        Rating.response == Assignment.response,
        Rating.rater == Assignment.rater,
        Rating.pass_ == Assignment.pass_,
    )
    .correlate(Assignment)
    .scalar_subquery()
)
_RATED = (
    select(Assignment.code, _FIRST_RATING)
    .where(Assignment.rater == RATER, col(Assignment.state).in_(ENDED))
    .order_by(col(Assignment.position))
)
_TASKS = (
    shown(
        Assignment.code,
        RubricText.body,
        Assignment.draft,
        Assignment.draft_seq,
        Assignment.seconds_active,
        Assignment.state,
        Assignment.revision,
        Assignment.opened_at,
        Assignment.reference_opened_at,
        Assignment.submitted_seq,
        Assignment.done_at,
    )
    .join(Assignment, col(Assignment.response) == col(Response.id))
    .join(Benchmark, col(Benchmark.name) == col(Instance.benchmark))
    .join(RubricText, col(RubricText.sha256) == col(Benchmark.rubric_sha256))
    .where(*_MINE)
)
_BY_CODE = _TASKS.where(col(Assignment.code) == bindparam("code"))
_FIRST_OPEN = (
    select(Assignment.id)
    .where(*_MINE, Assignment.state == State.OPEN)
    .order_by(col(Assignment.position))
    .limit(1)
    .scalar_subquery()
)
_NEXT = _TASKS.where(col(Assignment.id) == _FIRST_OPEN)  # not to sort the texts of all


@dataclass(frozen=True, slots=True)
class House:
    """What holds for every clinician of a study: its settings, and whether it is locked."""

    settings: Settings
    locked: bool


@dataclass(frozen=True, slots=True)
class Progress:
    """How many of a clinician's assignments are done; those given back do not count."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Task:
    """A response a clinician is at, with what they have entered so far.

    Attributes
    ----------
    draft, draft_seq
        The newest state of the form, and its number.
    state, revision
        Whether it is rated, and how often it was submitted.
    opened
        Whether it has been shown before.
    reference_opened
        Whether its reference has been opened.
    submitted_seq, done_at
        The draft's number at the last submission, and when the first one was made.
    """

    card: Card
    rubric: Rubric
    draft: Mapping[str, Any]
    draft_seq: int
    seconds_active: float
    state: State = State.OPEN
    revision: int = 0
    opened: bool = False
    reference_opened: bool = False
    submitted_seq: int = 0
    done_at: datetime | None = None

    @property
    def ended(self) -> bool:
        """Whether this response was submitted, rated or as one that cannot be rated."""
        return self.state in ENDED


def house(engine: Engine) -> House:
    """Return what holds for every clinician, in one reading."""
    with reading(engine) as session:
        stored = dict(session.exec(_SETTINGS).all())
    return House(read_settings(stored), LOCKED in stored)


def progress(engine: Engine, rater: int) -> Progress:
    """Return how far a clinician has come."""
    with reading(engine) as session:
        row = session.exec(_PROGRESS, params={"rater": rater}).one()
    return Progress(*row)


def next_task(engine: Engine, rater: int) -> Task | None:
    """Return the first open response in a clinician's own order, or None when all is done."""
    return _first(engine, _NEXT, {"rater": rater})


def task(engine: Engine, rater: int, code: str) -> Task | None:
    """Return a clinician's own response by its code, rated or not; None if it is not theirs."""
    return _first(engine, _BY_CODE, {"rater": rater, "code": code})


def kept(engine: Engine, rater: int, code: str) -> dict[str, Any]:
    """Return the newest state of the form that is stored, and its number; empty if not theirs."""
    with reading(engine) as session:
        row = session.exec(_KEPT, params={"rater": rater, "code": code}).first()
    return {} if row is None else dict(row[0]) | {"seq": row[1]}


def rated_codes(engine: Engine, rater: int) -> list[str]:
    """Return the codes of what a clinician has rated, in the order it was first submitted.

    What could not be rated stands after what is before it in the clinician's list.
    """
    with reading(engine) as session:
        rows = session.execute(_RATED, {"rater": rater}).all()
    last, found = 0, []
    for code, first in rows:
        last = last if first is None else first
        found.append((last, code))
    return [code for _, code in sorted(found, key=itemgetter(0))]


def _first(engine: Engine, query: Columns, values: Mapping[str, object]) -> Task | None:
    """Return the one task a query finds."""
    with reading(engine) as session:
        row = session.execute(query, values).first()
    if row is None:
        return None
    texts, (code, body, *entered) = list(row[:TEXTS]), row[TEXTS:]
    rubric = Rubric.from_json(body)
    draft, seq, seconds, state, revision, opened, reference, submitted, done = entered
    return Task(
        card=card(code, texts, rubric),
        rubric=rubric,
        draft=draft,
        draft_seq=seq,
        seconds_active=seconds,
        state=State(state),
        revision=revision,
        opened=opened is not None,
        reference_opened=reference is not None,
        submitted_seq=submitted,
        done_at=done,
    )
