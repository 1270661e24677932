"""What a watch stores: drops with their responses, refusals, alarms and what was done about them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import transaction
from data.errors import BadInput, Conflict, Unknown
from data.importers.rows import ResponseRow
from data.person import Person, only
from data.queries.base import columns_of
from data.queries.watch import is_acknowledged, last_intake, newest_of
from data.schema import (
    Alarm,
    AlarmStep,
    Instance,
    Intake,
    Outcome,
    Response,
    Role,
    StepKind,
    Subgroup,
    now,
)
from data.store.audit import log, refuse_locked, write_rows
from data.store.responses import ResponsesAdded, RubricFor, import_responses

WATCH = "watch"  # the actor of what a watch does by itself
TAKEN, REFUSED, RAISED, STEPPED = "drop taken in", "drop refused", "alarm raised", "alarm handled"
LONGEST_DONE = 2000


@dataclass(frozen=True, slots=True)
class Drop:
    """A drop by the SHA-256 of its bytes and their number."""

    digest: str
    size: int


class Draw(Protocol):
    """Draws the sample for clinicians; see `annotate.watching.sample.Sample`."""

    @property
    def share(self) -> float:
        """Share of each stratum."""

    @property
    def seed(self) -> int:
        """What it is drawn with."""

    @property
    def by(self) -> str:
        """Subgroup that makes strata besides the benchmark, "" for none."""

    def draw(self, counts: Mapping[str, int], arrivals: Iterable[tuple[int, str]]) -> list[int]:
        """Return which arrivals are drawn, after so many of each stratum."""


def take_in(
    engine: Engine,
    drop: Drop,
    rows: Iterable[ResponseRow],
    rubric_for: RubricFor,
    draw: Draw,
    unchanged_since: Callable[[], None] = lambda: None,
) -> ResponsesAdded:
    """Store a drop's responses, the sample drawn of them, and that it was taken in, or nothing.

    Parameters
    ----------
    unchanged_since
        Called before all is stored; raises if the drop is no longer what was read.

    Raises
    ------
    BadRow, Conflict
        As `import_responses`.
    """

    def also(session: Session, added: ResponsesAdded) -> None:
        unchanged_since()
        arrivals = _newest(session, added.responses, draw.by)
        last = last_intake(session)
        counts = dict(last.counts) if last else {}
        drawn = draw.draw(counts, arrivals)
        for _, stratum in arrivals:
            counts[stratum] = counts.get(stratum, 0) + 1
        keys = [key for key, _ in arrivals]
        row = _intake(drop, Outcome.TAKEN) | {
            "responses": added.responses,
            "unchanged": added.unchanged,
            "first": min(keys, default=None),
            "last": max(keys, default=None),
            "share": draw.share,
            "seed": draw.seed,
            "drawn": drawn,
            "counts": counts,
        }
        log(session, WATCH, TAKEN, {"written": write_rows(session, Intake, [row])})

    return import_responses(engine, rows, rubric_for, also=also)


def _newest(session: Session, number: int, by: str) -> list[tuple[int, str]]:
    """Return the last responses of the study with their strata: the benchmark, and a subgroup's value.

    A transaction is alone in the study, so that the last are those that it stored.
    """
    query = (
        columns_of(Response.id, Instance.benchmark, Subgroup.value)
        .select_from(Response)
        .join(Instance)
        .join(
            Subgroup,
            (col(Subgroup.response) == Response.id) & (col(Subgroup.name) == by),
            isouter=True,
        )
        .order_by(col(Response.id).desc())
        .limit(number)
    )
    return [
        (key, benchmark if value is None else f"{benchmark} / {value}")
        for key, benchmark, value in reversed(session.exec(query).all())
    ]


def refuse_drop(engine: Engine, drop: Drop, reason: str) -> bool:
    """Keep that nothing of a drop was stored, and why; False if that is kept already."""
    with transaction(engine) as session:
        newest = newest_of(session, drop.digest)
        if newest and newest.outcome == Outcome.REFUSED and newest.reason == reason:
            return False
        row = _intake(drop, Outcome.REFUSED) | {"reason": reason}
        log(session, WATCH, REFUSED, {"written": write_rows(session, Intake, [row])})
    return True


def _intake(drop: Drop, outcome: Outcome) -> dict[str, Any]:
    """Return a row in which nothing was stored or drawn."""
    numbers = dict.fromkeys(("responses", "unchanged", "seed"), 0)
    ends: dict[str, Any] = {"first": None, "last": None, "share": 0.0, "drawn": [], "counts": {}}
    named = {"digest": drop.digest, "outcome": outcome.value, "size": drop.size, "reason": ""}
    return named | numbers | ends | {"at": now()}


@dataclass(frozen=True, slots=True)
class NewAlarm:
    """An alarm to be raised; see `data.schema.Alarm`."""

    key: str
    benchmark: str
    owner: str
    action: str
    due_days: int
    figures: Mapping[str, Any]


def raise_alarm(engine: Engine, alarm: NewAlarm) -> bool:
    """Keep an alarm; False if there was one about the same before."""
    with transaction(engine) as session:
        if session.exec(select(Alarm.id).where(Alarm.key == alarm.key)).first() is not None:
            return False
        names = ("key", "benchmark", "owner", "action", "due_days")
        row = {name: getattr(alarm, name) for name in names}
        row |= {"figures": dict(alarm.figures), "at": now()}
        log(session, WATCH, RAISED, {"written": write_rows(session, Alarm, [row])})
    return True


def note_step(engine: Engine, alarm: int, kind: StepKind, way: str, text: str = "") -> None:
    """Keep that a message of an alarm was begun, sent, or failed and why."""
    with transaction(engine) as session:
        _step(session, WATCH, {"alarm": alarm, "kind": kind.value, "way": way, "text": text})


@only(Role.RESEARCHER, Role.COORDINATOR)
def acknowledge(person: Person, engine: Engine, alarm: int, done: str) -> None:
    """Keep what a person did about an alarm (primary key); from then on it is no longer open.

    Raises
    ------
    BadInput
        If nothing is said, or more than 2,000 characters.
    Unknown
        If there is no such alarm.
    Conflict
        If it was acknowledged already.
    NotAllowed
        If the study is locked.
    """
    text = done.strip()
    if not 0 < len(text) <= LONGEST_DONE:
        raise BadInput(f"say what was done about the alarm, in 1 to {LONGEST_DONE:,} characters")
    with transaction(engine) as session:
        refuse_locked(session)
        if session.get(Alarm, alarm) is None:
            raise Unknown(f"alarm {alarm}: the study has none of this number")
        if is_acknowledged(session, alarm):
            raise Conflict(f"alarm {alarm}: somebody acknowledged it already; reload the page")
        row = {"alarm": alarm, "kind": StepKind.ACKNOWLEDGED.value, "way": "", "text": text}
        _step(session, person.actor, row)


def _step(session: Session, actor: str, row: Mapping[str, Any]) -> None:
    written = write_rows(session, AlarmStep, [{**row, "actor": actor, "at": now()}])
    log(session, actor, STEPPED, {"alarm": row["alarm"], "step": row["kind"], "written": written})
