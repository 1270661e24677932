"""Panels that researchers keep in the study, and the jury run that is on or was the last.

Both stand among the settings, so that any server of the study, and one that was started anew,
finds them. A run's row is rewritten while it goes; starting and stopping leave events.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Engine, func
from sqlmodel import Session, col, select

from data.database import transaction
from data.errors import Conflict, Unknown
from data.person import Person, only
from data.record import RUN, log, refuse_locked
from data.schema import Attempt, Role, Setting, now

PANEL = "panel:"
STALE = timedelta(seconds=30)  # a keeper says every few seconds that it lives


@dataclass(frozen=True, slots=True)
class RunOrder:
    """What a jury run is asked for: a panel's name and its TOML text, and the command's options.

    Attributes
    ----------
    benchmarks
        Empty for all of the study.
    cap
        US dollars that this run may spend, or None.
    leave_out_too_long
        Whether what does not fit a juror's context window is stored as a failure instead of
        refusing the run.
    """

    panel: str
    text: str
    benchmarks: tuple[str, ...] = ()
    replicates: int = 1
    concurrency: int = 8
    cap: float | None = None
    batch: bool = False
    leave_out_too_long: bool = False


@dataclass(frozen=True, slots=True)
class RunRow:
    """A jury run as the study knows it.

    Attributes
    ----------
    token
        Random; whoever keeps the run writes only while it is still this one.
    by
        Name of who started it.
    since
        The newest attempt when it started: what is newer is its own.
    seen
        When its keeper last said that it lives.
    stops
        How often somebody asked it to stop: the second time drops what is in flight.
    ended, code
        When its process ended, and with which exit code; None while it is on.
    said
        What the command told, line by line; never a text or a key.
    """

    token: str
    by: str
    order: RunOrder
    since: int
    started: datetime
    seen: datetime
    stops: int = 0
    ended: datetime | None = None
    code: int | None = None
    said: tuple[str, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)

    @property
    def on(self) -> bool:
        """Whether it goes on; one whose keeper fell silent, as in a power cut, does not.

        Nor does one seen in the future: the clock was set back, and a living keeper says so anew.
        """
        return self.ended is None and abs(now() - self.seen) < STALE

    @property
    def lost(self) -> bool:
        """Whether its keeper died before it could say how the run ended."""
        return self.ended is None and not self.on


_RUN = TypeAdapter(RunRow)


@only(Role.RESEARCHER, Role.COORDINATOR)
def keep_panel(person: Person, engine: Engine, name: str, text: str) -> None:
    """Keep a panel's TOML text, which was checked, under its name; the record says who did."""
    with transaction(engine) as session:
        refuse_locked(session)
        detail = {"panel": name, "sha256": sha256(text.encode()).hexdigest()}
        session.merge(Setting(key=PANEL + name, value=text))
        log(session, person.actor, "panel kept", detail)


@only(Role.RESEARCHER, Role.COORDINATOR)
def forget_panel(person: Person, engine: Engine, name: str) -> None:
    """Take a kept panel away; what its jurors rated stays.

    Raises
    ------
    Unknown
        If no such panel is kept.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        setting = session.get(Setting, PANEL + name)
        if setting is None:
            raise Unknown(f"panel {name!r}: no such panel is kept in this study")
        session.delete(setting)
        log(session, person.actor, "panel forgotten", {"panel": name})


@only(Role.RESEARCHER, Role.COORDINATOR)
def begin_run(person: Person, engine: Engine, order: RunOrder, token: str) -> None:
    """Make a run the study's only one.

    Raises
    ------
    Conflict
        If another is on: says who started which, and when.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        before = _stored_run(session)
        if before is not None and before.on:
            raise Conflict(
                f"{before.by} started a run of the panel {before.order.panel} at "
                f"{before.started:%H:%M} UTC on {before.started:%d %B}, and it is still on: wait "
                "until it ends, or stop it"
            )
        since = session.exec(select(func.max(col(Attempt.id)))).one() or 0
        at = now()
        _store_run(session, RunRow(token, person.name, order, since, at, at))
        detail = {"panel": order.panel, "cap": order.cap}
        log(session, person.actor, "jury run started", detail)


@only(Role.RESEARCHER, Role.COORDINATOR)
def stop_run(person: Person, engine: Engine, token: str) -> None:
    """Ask the run that is on to stop: what is in flight is waited for, but not a second time."""

    def add_stop(session: Session, run: RunRow) -> RunRow:
        log(session, person.actor, "jury run stopped", {"panel": run.order.panel})
        return replace(run, stops=run.stops + 1)

    _change_run(engine, token, add_stop)


def beat_run(engine: Engine, token: str, said: Sequence[str]) -> RunRow | None:
    """Say that a run lives and what it told last; return it, None if it is not the study's."""
    return _change_run(engine, token, lambda _, run: replace(run, seen=now(), said=tuple(said)))


def end_run(
    engine: Engine, token: str, code: int, said: Sequence[str], figures: Mapping[str, Any]
) -> None:
    """Store how a run's process ended."""

    def add_end(_: Session, run: RunRow) -> RunRow:
        return replace(run, ended=now(), code=code, said=tuple(said), figures=dict(figures))

    _change_run(engine, token, add_end)


def read_run(value: str) -> RunRow:
    """Return a run from what a study stores of it."""
    return _RUN.validate_json(value)


def _change_run(
    engine: Engine, token: str, change: Callable[[Session, RunRow], RunRow]
) -> RunRow | None:
    """Rewrite the run of this token; return what it now is, None if another took its place."""
    with transaction(engine) as session:
        run = _stored_run(session)
        if run is None or run.token != token or run.ended is not None:
            return None
        run = change(session, run)
        _store_run(session, run)
    return run


def _stored_run(session: Session) -> RunRow | None:
    setting = session.get(Setting, RUN, with_for_update=True)
    return None if setting is None else read_run(setting.value)


def _store_run(session: Session, run: RunRow) -> None:
    session.merge(Setting(key=RUN, value=_RUN.dump_json(run).decode()))
