"""What those who run juries are shown: kept panels, the run, and how far each juror is."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Engine, func, select
from sqlmodel import Session, col

from data.database import reading
from data.errors import NotAllowed
from data.person import Person, only
from data.queries.attempts import Spending, spending, without_texts
from data.queries.people import person_by_access
from data.queries.study import BenchmarkView, benchmarks
from data.schema import Attempt, Expert, Instance, Rater, Rating, Response, Role, Setting, Status
from data.store.jury_runs import PANEL, RUN, RunRow, read_run

STEER = (Role.RESEARCHER, Role.COORDINATOR)


@dataclass(frozen=True, slots=True)
class JurorProgress:
    """How far one juror of a run is.

    Attributes
    ----------
    rated, total
        Verdicts that stand, from this run or before, of those that the run wants.
    failed
        Status -> how many of the run's verdicts ended so and do not stand.
    reasons
        Status -> the commonest reason, without a word of any text.
    calls, usd, unknown
        Requests of this run, their known cost, and how many have no known cost.
    """

    juror: str
    rated: int
    total: int
    failed: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    calls: int = 0
    usd: float = 0.0
    unknown: int = 0


@only(*STEER)
def own_panels(person: Person, engine: Engine) -> dict[str, str]:
    """Return the TOML texts of the panels that this study keeps, by name."""
    query = select(col(Setting.key), col(Setting.value)).where(col(Setting.key).startswith(PANEL))
    with reading(engine) as session:
        kept = {key.removeprefix(PANEL): value for key, value in session.execute(query)}
    return dict(sorted(kept.items()))


@only(*STEER)
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
        found = session.get(Setting, RUN)
    return None if found is None else read_run(found.value)


@only(*STEER)
def study_benchmarks(person: Person, engine: Engine) -> list[BenchmarkView]:
    """Return every benchmark with its rubric and counts, by name."""
    return benchmarks(engine)


@only(*STEER)
def all_spending(person: Person, engine: Engine) -> Spending:
    """Return what all calls of all runs have cost."""
    return spending(engine)


@only(*STEER)
def jury_progress(
    person: Person, engine: Engine, run: RunRow, jurors: Sequence[str]
) -> list[JurorProgress]:
    """Return how far a run is, juror by juror, in the order given."""
    chosen = [
        one
        for one in benchmarks(engine)
        if not run.order.benchmarks or one.name in run.order.benchmarks
    ]
    total = sum(one.responses for one in chosen) * run.order.replicates
    with reading(engine) as session:
        keys = dict(_keys(session, jurors))
        rated = _rated(session, chosen, list(keys.values()), run.order.replicates)
        spent = _spent(session, list(keys.values()), run.since)
        failed = _failed(session, list(keys.values()), run.since)
    places = [(name, keys.get(name, 0)) for name in jurors]
    return [
        _progress(name, total, rated[key], spent.get(key), failed.get(key, []))
        for name, key in places
    ]


def _progress(
    juror: str, total: int, rated: int, spent: Any, failed: Sequence[tuple[str, str]]
) -> JurorProgress:
    """Return one juror's progress from what was counted."""
    calls, usd, known = spent or (0, 0.0, 0)
    ends = Counter(status for status, _ in failed)
    reasons = {
        status: Counter(why for one, why in failed if one == status).most_common(1)[0][0]
        for status in ends
    }
    return JurorProgress(
        juror, rated, total, dict(ends.most_common()), reasons, calls, usd or 0.0, calls - known
    )


def _keys(session: Session, jurors: Sequence[str]) -> Iterable[tuple[str, int]]:
    """Return the primary keys of those jurors that the study knows, by name."""
    query = select(col(Rater.handle), col(Rater.id)).where(col(Rater.handle).in_(jurors))
    return [(name, key) for name, key in session.execute(query)]


def _rated(
    session: Session, chosen: Sequence[BenchmarkView], keys: Sequence[int], replicates: int
) -> Counter[int]:
    """Return rater -> verdicts that stand on the present rubrics, those for training left out."""
    found: Counter[int] = Counter()
    for one in chosen:
        whole = (
            select(col(Rating.rater))
            .join(Response, col(Response.id) == col(Rating.response))
            .join(Instance, col(Instance.id) == col(Response.instance))
            .where(
                col(Instance.benchmark) == one.name,
                col(Rating.rater).in_(keys),
                col(Rating.rubric_sha256) == one.rubric.sha256,
                col(Rating.pass_) == 0,
                col(Rating.replicate) < replicates,
                col(Response.id).not_in(select(col(Expert.response))),
            )
            .group_by(col(Rating.rater), col(Rating.response), col(Rating.replicate))
            .having(func.count(func.distinct(col(Rating.criterion))) == len(one.rubric.criteria))
            .subquery()
        )
        counted = select(whole.c.rater, func.count()).group_by(whole.c.rater)
        for rater, number in session.execute(counted):
            found[rater] += number
    return found


def _spent(session: Session, keys: Sequence[int], since: int) -> dict[int, Any]:
    """Return rater -> (requests, their known cost, how many have one) of this run."""
    query = (
        select(
            col(Attempt.rater),
            func.count(),
            func.sum(col(Attempt.usd)),
            func.count(col(Attempt.usd)),
        )
        .where(col(Attempt.id) > since, col(Attempt.rater).in_(keys), col(Attempt.number) > 0)
        .group_by(col(Attempt.rater))
    )
    return {rater: tuple(rest) for rater, *rest in session.execute(query)}


def _failed(session: Session, keys: Sequence[int], since: int) -> dict[int, list[tuple[str, str]]]:
    """Return rater -> (status, reason) of each verdict whose last call of this run failed."""
    last = (
        select(func.max(col(Attempt.id)))
        .where(col(Attempt.id) > since, col(Attempt.rater).in_(keys))
        .group_by(col(Attempt.rater), col(Attempt.response), col(Attempt.replicate))
    )
    query = (
        select(col(Attempt.rater), col(Attempt.status), col(Attempt.reason))
        .where(col(Attempt.id).in_(last), col(Attempt.status) != Status.OK)
        .order_by(col(Attempt.id))
    )
    found: dict[int, list[tuple[str, str]]] = {}
    for rater, status, reason in session.execute(query):
        found.setdefault(rater, []).append((str(status), without_texts(reason)))
    return found
