"""Panels that researchers keep, the jury run that is on or was the last, and runs made elsewhere.

Panels and runs stand among the settings, so that any server of the study finds them. A run's row is
rewritten while it goes; starting and stopping leave events.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Engine, func
from sqlmodel import Session, col, select

from data.database import reading, transaction
from data.errors import Conflict, NotAllowed, Unknown
from data.importers.finished import FinishedRun
from data.importers.rows import batches
from data.person import Person, only
from data.record import PROBED, RUN, log, refuse_locked
from data.rubric import Rubric
from data.safe_text import short
from data.schema import (
    Attempt,
    Instance,
    Purpose,
    Rater,
    Rating,
    Response,
    Role,
    Setting,
    Status,
    now,
)
from data.study.authors import Ids
from data.study.base import FOR_STUDY
from data.study.calls import complete, keep_juror, without_texts, write_attempts
from data.study.costs import JurorCost, juror_costs
from data.study.people import person_by_access
from data.study.ratings import RatingsAdded, keep_ratings
from data.study.responses import ResponsesAdded, keep_benchmark, keep_rows, log_added
from data.study.rubrics import keep_rubric
from data.study.standing import BenchmarkView, benchmarks
from data.study.verify import acts

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
    concurrency: int | None = None
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


def keep_probes(engine: Engine, actor: str, probes: Sequence[Mapping[str, Any]]) -> None:
    """Put what a probe found of each juror's fitness into the record; a locked study takes it too.

    Parameters
    ----------
    probes
        For each juror `juror`, `profile` (the SHA-256 of its settings), `fit` and the figures.
    """
    if probes:
        with transaction(engine) as session:
            log(session, actor, PROBED, {"probes": [dict(probe) for probe in probes]})


def newest_probes(engine: Engine) -> dict[str, dict[str, Any]]:
    """Return the newest probe of each juror, by the SHA-256 of its settings, with the day (`on`)."""
    return {
        probe["profile"]: probe | {"on": f"{event.at:%Y-%m-%d}"}
        for event in acts(engine, PROBED)
        for probe in event.detail["probes"]
    }


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
    end: dict[str, Any] = {"code": code, "said": tuple(said), "figures": dict(figures)}
    _change_run(engine, token, lambda _, run: replace(run, ended=now(), **end))


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


@dataclass(frozen=True, slots=True)
class JurorProgress:
    """How far one juror of a run is.

    Attributes
    ----------
    rated, total
        Verdicts that stand, from this run or before, of those that the run wants.
    failed
        Status -> reasons, without a word of any text, why so many of the run's verdicts ended so and do
        not stand.
    cost
        Of the requests of this run.
    """

    juror: str
    rated: int
    total: int
    failed: Mapping[str, Counter[str]] = field(default_factory=dict)
    cost: JurorCost = field(default_factory=JurorCost)


@only(Role.RESEARCHER, Role.COORDINATOR)
def own_panels(person: Person, engine: Engine) -> dict[str, str]:
    """Return the TOML texts of the panels that this study keeps, by name."""
    query = select(Setting.key, Setting.value).where(col(Setting.key).startswith(PANEL))
    with reading(engine) as session:
        panels = {key.removeprefix(PANEL): value for key, value in session.exec(query)}
    return dict(sorted(panels.items()))


@only(Role.RESEARCHER, Role.COORDINATOR)
def last_run(person: Person, engine: Engine) -> RunRow | None:
    """Return the run that is on or was the last, None where there was none in the app.

    Raises
    ------
    NotAllowed
        If the way in that this person came by is no longer valid: a page that looks again and
        again asks here.
    """
    if person.access and person_by_access(engine, person.access) is None:
        raise NotAllowed("your session has ended")
    with reading(engine) as session:
        setting = session.get(Setting, RUN)
    return None if setting is None else read_run(setting.value)


@only(Role.RESEARCHER, Role.COORDINATOR)
def jury_progress(
    person: Person, engine: Engine, run: RunRow, jurors: Sequence[str]
) -> list[JurorProgress]:
    """Return how far a run is, juror by juror, in the order given."""
    names = run.order.benchmarks
    chosen = [benchmark for benchmark in benchmarks(engine) if not names or benchmark.name in names]
    total = sum(one.responses * one.rubric.orders for one in chosen) * run.order.replicates
    with reading(engine) as session:
        query = select(Rater.handle, Rater.id).where(col(Rater.handle).in_(jurors))
        keys = {name: key or 0 for name, key in session.exec(query)}
        rated = _count_complete(session, chosen, list(keys.values()), run.order.replicates)
        failed = _failures_of_run(session, list(keys.values()), run.since)
    spent, none = juror_costs(engine, since=run.since), JurorCost()
    return [
        JurorProgress(name, rated[key], total, failed.get(key, {}), spent.get(name, none))
        for name in jurors
        for key in [keys.get(name, 0)]
    ]


def _count_complete(
    session: Session, chosen: Sequence[BenchmarkView], keys: Sequence[int], replicates: int
) -> Counter[int]:
    """Return rater -> verdicts that stand on the present rubrics, those for training left out."""
    standing: Counter[int] = Counter()
    for benchmark in chosen:
        verdicts = (
            complete(benchmark.rubric)
            .join(Response)
            .join(Instance)
            .where(Instance.benchmark == benchmark.name, FOR_STUDY, col(Rating.rater).in_(keys))
            .where(Rating.replicate < replicates * benchmark.rubric.orders)
            .subquery()
        )
        counted = select(verdicts.c.rater, func.count()).group_by(verdicts.c.rater)
        standing.update(dict(session.exec(counted).all()))
    return standing


def _failures_of_run(
    session: Session, keys: Sequence[int], since: int
) -> dict[int, dict[str, Counter[str]]]:
    """Return rater -> status -> reasons of the verdicts whose last call of this run failed."""
    last = (
        select(func.max(Attempt.id))
        .where(col(Attempt.id) > since, col(Attempt.rater).in_(keys))
        .where(Attempt.purpose == Purpose.VERDICT)
        .group_by(col(Attempt.rater), col(Attempt.response), col(Attempt.replicate))
    )
    query = (
        select(Attempt.rater, Attempt.status, Attempt.reason)
        .where(col(Attempt.id).in_(last), Attempt.status != Status.OK)
        .order_by(col(Attempt.id))
    )
    failures: dict[int, dict[str, Counter[str]]] = {}
    for rater, status, reason in session.exec(query):
        ends = failures.setdefault(rater, {})
        ends.setdefault(str(status), Counter())[without_texts(reason)] += 1
    return failures


IMPORTED_CALL = 0  # the number of a call that this study never sent


@dataclass
class FinishedAdded:
    """What an import changed; `failures` are verdicts that do not stand, stored with their reason."""

    responses: ResponsesAdded = field(default_factory=ResponsesAdded)
    ratings: RatingsAdded = field(default_factory=RatingsAdded)
    failures: int = 0


def import_finished(engine: Engine, runs: Sequence[FinishedRun]) -> FinishedAdded:
    """Store finished runs, all of them or none; what is there already stays as it is.

    A failure becomes an attempt with number 0, which cost this study nothing.

    Raises
    ------
    BadRow
        If a response contradicts the study: nothing is stored.
    Conflict
        If a juror's name belongs to another rater of the study.
    """
    added = FinishedAdded()
    with transaction(engine) as session:
        refuse_locked(session)
        for run in _store_responses(session, runs, added.responses):
            keep_rubric(session, run.rubric)
            for juror in run.jurors:
                try:
                    keep_juror(session, juror)
                except Conflict as error:
                    model = str(juror.profile.get("model", "not named in the run"))
                    raise Conflict(
                        f"juror {short(juror.handle)!r} of this run (model {short(model)}): a rater of "
                        "this name, asked otherwise, is in the study, and their ratings must not mix; "
                        "import the run into a study of its own with --db; nothing was imported"
                    ) from error
            stored = keep_ratings(session, run.ratings, run.rubric)
            for name in ("added", "revised", "unchanged"):
                setattr(added.ratings, name, getattr(added.ratings, name) + getattr(stored, name))
            added.ratings.other_rubric |= stored.other_rubric
            added.failures += _store_failures(session, run)
    return added


def _store_responses(
    session: Session, runs: Sequence[FinishedRun], added: ResponsesAdded
) -> list[FinishedRun]:
    """Store the responses of runs; return the runs with the ids that the study has for them."""
    ids, named = Ids(), []
    for run in runs:

        def keep(name: str, rubric: Rubric = run.rubric) -> None:
            keep_benchmark(session, name, rubric, added)

        names = keep_rows(session, run.responses, keep, added, {}, ids=ids)
        ratings = tuple(
            row._replace(response_id=names.get(row.response_id, row.response_id))
            for row in run.ratings
        )
        failures = tuple(
            replace(one, response_id=names.get(one.response_id, one.response_id))
            for one in run.failures
        )
        named.append(replace(run, ratings=ratings, failures=failures))
    log_added(session, added)
    return named


def _store_failures(session: Session, run: FinishedRun) -> int:
    """Store the verdicts that do not stand and are not there yet; return how many are new."""
    names = sorted({failure.response_id for failure in run.failures})
    responses = {
        name: key or 0
        for batch in batches(names)
        for name, key in session.exec(
            select(Response.response_id, Response.id).where(col(Response.response_id).in_(batch))
        )
    }
    jurors = {rater.handle: rater.id or 0 for rater in session.exec(select(Rater))}
    imported = select(Attempt.response, Attempt.rater, Attempt.status).where(
        Attempt.number == IMPORTED_CALL, Attempt.rubric_sha256 == run.rubric.sha256
    )
    stored = set(session.exec(imported))
    new = [
        Attempt(
            rubric_sha256=run.rubric.sha256,
            rater=jurors[failure.juror],
            response=responses[name],
            status=failure.status,
            request_sha256=sha256(f"{run.source} {name} {failure.juror}".encode()).hexdigest(),
            number=IMPORTED_CALL,
            sent={"source": run.source},
            reason=failure.reason,
        )
        for failure in run.failures
        for name in [failure.response_id]
        if (responses[name], jurors[failure.juror], failure.status) not in stored
    ]
    if new:
        write_attempts(session, [(attempt, run.rubric, None) for attempt in new])
        log(session, "researcher", "failed verdicts imported", {"verdicts": len(new)})
    return len(new)
