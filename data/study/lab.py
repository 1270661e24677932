"""What those who run juries are shown: the panels that a study keeps, and the progress of a run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Engine, func
from sqlmodel import Session, col, select

from data.calls import TokenCosts
from data.database import reading
from data.errors import NotAllowed
from data.person import Person, asking, only
from data.record import RUN
from data.schema import Attempt, Instance, Rater, Rating, Response, Role, Setting, Status
from data.study.base import FOR_STUDY
from data.study.calls import without_texts
from data.study.costs import token_costs_by_juror
from data.study.people import person_by_access
from data.study.runs import PANEL, RunRow, read_run
from data.study.standing import BenchmarkView, benchmarks

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
    tokens
        What they took, by kind of token.
    """

    juror: str
    rated: int
    total: int
    failed: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    calls: int = 0
    usd: float = 0.0
    unknown: int = 0
    tokens: TokenCosts = field(default_factory=TokenCosts)


@only(*STEER)
def own_panels(person: Person, engine: Engine) -> dict[str, str]:
    """Return the TOML texts of the panels that this study keeps, by name."""
    query = select(Setting.key, Setting.value).where(col(Setting.key).startswith(PANEL))
    with reading(engine) as session:
        panels = {key.removeprefix(PANEL): value for key, value in session.exec(query)}
    return dict(sorted(panels.items()))


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
        setting = session.get(Setting, RUN)
    return None if setting is None else read_run(setting.value)


# Return every benchmark with its rubric and counts, by name.
study_benchmarks = asking(benchmarks, *STEER)


@only(*STEER)
def jury_progress(
    person: Person, engine: Engine, run: RunRow, jurors: Sequence[str]
) -> list[JurorProgress]:
    """Return how far a run is, juror by juror, in the order given."""
    names = run.order.benchmarks
    chosen = [benchmark for benchmark in benchmarks(engine) if not names or benchmark.name in names]
    total = sum(benchmark.responses for benchmark in chosen) * run.order.replicates
    with reading(engine) as session:
        query = select(Rater.handle, Rater.id).where(col(Rater.handle).in_(jurors))
        keys = {name: key or 0 for name, key in session.exec(query)}
        rated = _count_complete(session, chosen, list(keys.values()), run.order.replicates)
        spent = _costs_of_run(session, list(keys.values()), run.since)
        failed = _failures_of_run(session, list(keys.values()), run.since)
    tokens = token_costs_by_juror(engine, run.since)
    return [
        replace(
            _progress(name, total, rated[key], spent.get(key), failed.get(key, [])),
            tokens=tokens.get(name, TokenCosts()),
        )
        for name in jurors
        for key in [keys.get(name, 0)]
    ]


def _progress(
    juror: str, total: int, rated: int, spent: Any, failed: Sequence[tuple[str, str]]
) -> JurorProgress:
    """Return one juror's progress from what was counted."""
    calls, usd, priced = spent or (0, 0.0, 0)
    ends = Counter(status for status, _ in failed)
    reasons = {
        status: Counter(reason for end, reason in failed if end == status).most_common(1)[0][0]
        for status in ends
    }
    return JurorProgress(
        juror, rated, total, dict(ends.most_common()), reasons, calls, usd or 0.0, calls - priced
    )


def _count_complete(
    session: Session, chosen: Sequence[BenchmarkView], keys: Sequence[int], replicates: int
) -> Counter[int]:
    """Return rater -> verdicts that stand on the present rubrics, those for training left out."""
    standing: Counter[int] = Counter()
    for benchmark in chosen:
        complete = (
            select(Rating.rater)
            .join(Response)
            .join(Instance)
            .where(
                Instance.benchmark == benchmark.name,
                Rating.rubric_sha256 == benchmark.rubric.sha256,
            )
            .where(col(Rating.rater).in_(keys), Rating.pass_ == 0, Rating.replicate < replicates)
            .where(FOR_STUDY)
            .group_by(col(Rating.rater), col(Rating.response), col(Rating.replicate))
            .having(
                func.count(func.distinct(col(Rating.criterion))) == len(benchmark.rubric.criteria)
            )
            .subquery()
        )
        counted = select(complete.c.rater, func.count()).group_by(complete.c.rater)
        for rater, number in session.exec(counted):
            standing[rater] += number
    return standing


def _costs_of_run(session: Session, keys: Sequence[int], since: int) -> dict[int, Any]:
    """Return rater -> (requests, their known cost, how many have one) of this run."""
    query = (
        select(Attempt.rater, func.count(), func.sum(Attempt.usd), func.count(col(Attempt.usd)))
        .where(col(Attempt.id) > since, col(Attempt.rater).in_(keys), Attempt.number > 0)
        .group_by(col(Attempt.rater))
    )
    return {rater: tuple(totals) for rater, *totals in session.exec(query)}


def _failures_of_run(
    session: Session, keys: Sequence[int], since: int
) -> dict[int, list[tuple[str, str]]]:
    """Return rater -> (status, reason) of each verdict whose last call of this run failed."""
    last = (
        select(func.max(Attempt.id))
        .where(col(Attempt.id) > since, col(Attempt.rater).in_(keys))
        .group_by(col(Attempt.rater), col(Attempt.response), col(Attempt.replicate))
    )
    query = (
        select(Attempt.rater, Attempt.status, Attempt.reason)
        .where(col(Attempt.id).in_(last), Attempt.status != Status.OK)
        .order_by(col(Attempt.id))
    )
    failures: dict[int, list[tuple[str, str]]] = {}
    for rater, status, reason in session.exec(query):
        failures.setdefault(rater, []).append((str(status), without_texts(reason)))
    return failures
