"""What a watch knows from the study: drops, the sample to be given out, what is pending, alarms."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Engine, func
from sqlmodel import Session, col, select

from data.card import THIRD
from data.database import reading
from data.person import Person, only
from data.queries.base import FOR_STUDY, columns_of
from data.queries.costs import CALLS, spent
from data.queries.jury import complete_ratings, is_on
from data.queries.study import BenchmarkView
from data.schema import (
    Alarm,
    AlarmStep,
    Assignment,
    Attempt,
    Event,
    Instance,
    Intake,
    Intent,
    Kind,
    Outcome,
    Rater,
    Rating,
    Response,
    Role,
    Setting,
    State,
    Status,
    StepKind,
)

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Intakes:
    """What a watch took in.

    Attributes
    ----------
    drops, refused : drops taken in, and refused
    responses, unchanged : outputs that were new, and that the study had
    drawn : of the new ones, drawn for clinicians
    last : when the last drop came
    """

    drops: int = 0
    refused: int = 0
    responses: int = 0
    unchanged: int = 0
    drawn: int = 0
    last: datetime | None = None


@dataclass(frozen=True, slots=True)
class AlarmView:
    """An alarm with all that was done about it.

    Attributes
    ----------
    due : until when its action is due
    begun : way -> how many messages were begun
    sent : ways by which a message was taken
    failure : why the last message failed, "" where it did not
    done : what was done, "" while it is open
    by, done_at : who acknowledged it, as the record's events name people, and when
    """

    id: int
    key: str
    benchmark: str
    owner: str
    action: str
    at: datetime
    due: datetime
    figures: Mapping[str, Any]
    begun: Mapping[str, int]
    sent: frozenset[str]
    failure: str = ""
    done: str = ""
    by: str = ""
    done_at: datetime | None = None

    @property
    def is_open(self) -> bool:
        """Tell whether nobody has acknowledged it."""
        return self.done_at is None


def last_intake(session: Session) -> Intake | None:
    """Return the newest drop that was taken in."""
    query = select(Intake).where(Intake.outcome == Outcome.TAKEN).order_by(col(Intake.id).desc())
    return session.exec(query.limit(1)).first()


def newest_of(session: Session, digest: str) -> Intake | None:
    """Return what came of the bytes of a digest the last time."""
    query = select(Intake).where(Intake.digest == digest).order_by(col(Intake.id).desc())
    return session.exec(query.limit(1)).first()


def was_taken(engine: Engine, digest: str) -> bool:
    """Tell whether the responses of these bytes are stored."""
    query = select(Intake.id).where(Intake.digest == digest, Intake.outcome == Outcome.TAKEN)
    with reading(engine) as session:
        return session.exec(query.limit(1)).first() is not None


def intakes(engine: Engine) -> Intakes:
    """Return what was taken in so far."""
    taken = Intake.outcome == Outcome.TAKEN
    with reading(engine) as session:
        drops, responses, unchanged, last = session.exec(
            columns_of(
                func.count(),
                func.coalesce(func.sum(Intake.responses), 0),
                func.coalesce(func.sum(Intake.unchanged), 0),
                func.max(Intake.at),
            ).where(taken)
        ).one()
        refused = session.exec(
            select(func.count()).select_from(Intake).where(Intake.outcome == Outcome.REFUSED)
        ).one()
        drawn = sum(len(keys) for keys in session.exec(select(Intake.drawn).where(taken)))
    return Intakes(drops, refused, int(responses), int(unchanged), drawn, last)


def ranges(engine: Engine) -> list[Range]:
    """Return the primary keys of all responses that a watch took in, as runs from first to last."""
    query = (
        select(Intake.first, Intake.last)
        .where(col(Intake.first).is_not(None))
        .order_by(col(Intake.id))
    )
    runs: list[Range] = []
    with reading(engine) as session:
        for first, last in session.exec(query):
            if runs and runs[-1][1] + 1 == first:
                runs[-1] = runs[-1][0], last or 0
            else:
                runs.append((first or 0, last or 0))
    return runs


def drawn_without_reader(engine: Engine) -> list[int]:
    """Return the drawn responses, primary keys, that were never given to a clinician."""
    given = select(Assignment.response).where(Assignment.pass_ == 0).distinct()
    with reading(engine) as session:
        known = set(session.exec(given))
        drawn = [key for keys in session.exec(select(Intake.drawn)) for key in keys]
    return [key for key in drawn if key not in known]


@dataclass(frozen=True, slots=True)
class Work:
    """What clinicians have: first readings, given-back ones not counted, and who shares what.

    Attributes
    ----------
    load : handle -> first readings
    next : handle -> the place after the last in their order
    shared : two handles, sorted -> responses that both read
    """

    load: Mapping[str, int]
    next: Mapping[str, int]
    shared: Mapping[tuple[str, str], int]


def work_of(engine: Engine, handles: Collection[str]) -> Work:
    """Return what these clinicians have by now."""
    query = (
        columns_of(Rater.handle, Assignment.response, Assignment.position, Assignment.pass_)
        .select_from(Assignment)
        .join(Rater)
        .where(col(Rater.handle).in_(handles), Assignment.state != State.RECUSED)
    )
    load, places = dict.fromkeys(handles, 0), dict.fromkeys(handles, 0)
    readers: dict[int, list[str]] = {}
    with reading(engine) as session:
        for handle, response, position, pass_ in session.exec(query):
            places[handle] = max(places[handle], position + 1)
            if pass_ == 0:
                load[handle] += 1
                readers.setdefault(response, []).append(handle)
    shared: dict[tuple[str, str], int] = {}
    for names in readers.values():
        for pair in ((a, b) for a in names for b in names if a < b):
            shared[pair] = shared.get(pair, 0) + 1
    return Work(load, places, shared)


def per_response_of(engine: Engine) -> int | None:
    """Return how many clinicians the study's design gives each response, None without a design."""
    with reading(engine) as session:
        setting = session.get(Setting, "per_response")
        return int(setting.value) if setting else None


def study_mark(engine: Engine) -> str:
    """Return a short hash that tells this study from others: of the first event of its record."""
    with reading(engine) as session:
        first = session.exec(select(Event.sha256).order_by(col(Event.id)).limit(1)).first()
    return (first or "")[:12]


def clinicians_known(engine: Engine, handles: Collection[str]) -> set[str]:
    """Return those of some handles that are real clinicians of the study."""
    query = select(Rater.handle).where(
        Rater.kind == Kind.CLINICIAN,
        col(Rater.simulated).is_(False),
        col(Rater.handle).in_(handles),
    )
    with reading(engine) as session:
        return set(session.exec(query))


def pending(
    engine: Engine,
    tasks: Iterable[BenchmarkView],
    rater: int | None,
    most_answers: int,
) -> list[int]:
    """Return the watched responses, primary keys, that a juror has still to rate.

    Parameters
    ----------
    rater
        The juror's primary key, None for one that the study does not know yet.
    most_answers
        A juror whose answers to a response were useless so many times is asked about it no more.
    """
    runs, waiting = ranges(engine), []
    for task in tasks:
        watched = _watched(engine, task.name, runs)
        if rater is not None and watched:
            done = {key for key, _ in complete_ratings(engine, rater, task.rubric)}
            watched = [key for key in watched if key not in done]
            given_up = _given_up(engine, task, rater, most_answers) if watched else set()
            watched = [key for key in watched if key not in given_up]
        waiting += watched
    return sorted(waiting)


def _watched(engine: Engine, benchmark: str, runs: Iterable[Range]) -> list[int]:
    query = select(Response.id).join(Instance).where(Instance.benchmark == benchmark, FOR_STUDY)
    with reading(engine) as session:
        return [
            key or 0
            for first, last in runs
            for key in session.exec(query.where(col(Response.id).between(first, last)))
        ]


def _given_up(engine: Engine, task: BenchmarkView, rater: int, most: int) -> set[int]:
    """Return the responses to which a juror gave as many answers as it may, none of them whole."""
    answered = col(Attempt.tokens_out).is_not(None) & (Attempt.status != Status.OK)
    query = (
        select(Attempt.response)
        .where(Attempt.rater == rater, answered, is_on(Attempt.rubric_sha256, task.rubric))
        .group_by(col(Attempt.response))
        .having(func.count() >= most)
    )
    with reading(engine) as session:
        return set(session.exec(query))


def raters_of(engine: Engine, names: Collection[str]) -> dict[str, int]:
    """Return the primary key of each of these jurors that the study knows."""
    query = select(Rater.handle, Rater.id).where(
        Rater.kind == Kind.JUROR, col(Rater.handle).in_(names)
    )
    with reading(engine) as session:
        return {name: key or 0 for name, key in session.exec(query)}


def spent_since(engine: Engine, since: datetime) -> float:
    """Return what calls since a time may have cost in US dollars.

    Calls of unknown cost count at their highest, once a run has counted them against a cap; those of
    killed runs that no run has counted yet are left to the next one, which does.
    """
    total = 0.0
    with reading(engine) as session:
        for table in CALLS:
            query = select(func.coalesce(spent(table), 0.0)).where(col(table.at) >= since)
            total += float(session.exec(query).one() or 0.0)
        counted = select(func.coalesce(func.sum(Intent.usd_most), 0.0)).where(
            col(Intent.counted) >= since
        )
        total += float(session.exec(counted).one() or 0.0)
    return total


def mean_cost(engine: Engine, raters: Collection[int]) -> float:
    """Return what one of the last 200 paid calls to these jurors cost on average, 0 without any."""
    last = (
        select(Attempt.usd)
        .where(col(Attempt.rater).in_(raters), col(Attempt.usd) > 0)
        .order_by(col(Attempt.id).desc())
        .limit(200)
    )
    with reading(engine) as session:
        costs = [usd for usd in session.exec(last) if usd]
    return sum(costs) / len(costs) if costs else 0.0


def newest_clinician_rating(engine: Engine) -> int:
    """Return the key of the newest rating by a clinician, 0 without one."""
    query = select(func.max(Rating.id)).join(Rater).where(Rater.kind == Kind.CLINICIAN)
    with reading(engine) as session:
        return session.exec(query.where(Rating.pass_ < THIRD)).one() or 0


def newest_of_routing(engine: Engine) -> tuple[int, int]:
    """Return the keys of the newest response and of the newest rating by a juror, 0 without one."""
    query = select(func.max(Rating.id)).join(Rater).where(Rater.kind == Kind.JUROR)
    with reading(engine) as session:
        newest = session.exec(select(func.max(Response.id))).one()
        return newest or 0, session.exec(query).one() or 0


def is_acknowledged(session: Session, alarm: int) -> bool:
    """Tell whether somebody acknowledged an alarm."""
    done = AlarmStep.kind == StepKind.ACKNOWLEDGED
    query = select(AlarmStep.id).where(AlarmStep.alarm == alarm, done)
    return session.exec(query.limit(1)).first() is not None


def alarms(engine: Engine) -> list[AlarmView]:
    """Return all alarms, the oldest first."""
    with reading(engine) as session:
        rows = session.exec(select(Alarm).order_by(col(Alarm.id))).all()
        steps = session.exec(select(AlarmStep).order_by(col(AlarmStep.id))).all()
        return [_view(row, [step for step in steps if step.alarm == row.id]) for row in rows]


@only(Role.RESEARCHER, Role.COORDINATOR)
def alarms_raised(_: Person, engine: Engine) -> list[AlarmView]:
    """Return all alarms, the newest first."""
    return alarms(engine)[::-1]


@only(Role.RESEARCHER, Role.COORDINATOR)
def watched_so_far(_: Person, engine: Engine) -> Intakes:
    """Return what a watch took in so far."""
    return intakes(engine)


@only(Role.RESEARCHER, Role.COORDINATOR)
def refusals(_: Person, engine: Engine, most: int = 20) -> list[Intake]:
    """Return the newest drops that were refused."""
    query = (
        select(Intake)
        .where(Intake.outcome == Outcome.REFUSED)
        .order_by(col(Intake.id).desc())
        .limit(most)
    )
    with reading(engine) as session:
        rows = list(session.exec(query))
        session.expunge_all()
    return rows


def _view(alarm: Alarm, steps: Iterable[AlarmStep]) -> AlarmView:
    begun: dict[str, int] = {}
    sent: set[str] = set()
    failure, done = "", None
    for step in steps:
        if step.kind == StepKind.BEGUN:
            begun[step.way] = begun.get(step.way, 0) + 1
        elif step.kind == StepKind.SENT:
            sent.add(step.way)
            failure = ""
        elif step.kind == StepKind.FAILED:
            failure = f"{step.way}: {step.text}"
        else:
            done = done or step
    named = {name: getattr(alarm, name) for name in ("key", "benchmark", "owner", "action", "at")}
    return AlarmView(
        id=alarm.id or 0,
        **named,
        due=alarm.at + timedelta(days=alarm.due_days),
        figures=dict(alarm.figures),
        begun=begun,
        sent=frozenset(sent),
        failure=failure,
        done=done.text if done else "",
        by=done.actor if done else "",
        done_at=done.at if done else None,
    )
