"""Points of the case: a list for each instance, and never another once it was rated by one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import reading, transaction
from data.errors import BadInput, Conflict, Unknown
from data.importers.ratings import PointRow
from data.person import asking
from data.points import case_rubric
from data.record import log, refuse_locked
from data.rubric import Rubric
from data.safe_text import short
from data.schema import (
    IS_RATED_ON,
    RATED_ON,
    Benchmark,
    Instance,
    PointSet,
    Rating,
    Response,
    Role,
    RubricText,
)
from data.study.base import columns_of
from data.study.readings import On, Reading, readings
from data.study.rubrics import keep_rubric, move_to_rubric
from data.study.standing import BenchmarkView

IMPORTED = "points imported"


@dataclass
class PointsAdded:
    """What an import of points changed, in instances; `points` counts the points of the new lists."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    points: int = 0
    instances: list[str] = field(default_factory=list)


def add_points(
    engine: Engine, benchmark: str, rows: Iterable[PointRow], rubric: Rubric, actor: str
) -> PointsAdded:
    """Store the points of a benchmark's instances; the benchmark is rated on `rubric` from then on.

    All of the file, or nothing. A list that is as the study has it changes nothing; another one takes
    its place, as long as nobody has rated by it.

    Raises
    ------
    BadInput, BadRow
        If a row or a list cannot be; the message names it.
    Unknown
        If the study has no such benchmark or instance.
    Conflict
        If the benchmark, or an instance whose list differs, has been rated already.
    """
    lists: dict[str, list[PointRow]] = {}
    for row in rows:
        lists.setdefault(row.instance_id, []).append(row)
    if not lists:
        raise BadInput("points: the file has none; nothing was imported")
    with transaction(engine) as session:
        refuse_locked(session)
        _put_on(session, benchmark, rubric)
        query = select(Instance.instance_id, Instance.id).where(Instance.benchmark == benchmark)
        keys = {name: key or 0 for name, key in session.exec(query)}
        result = PointsAdded()
        new = []
        for name, points in lists.items():
            if name not in keys:
                raise points[0].origin.wrong(
                    "instance_id",
                    name,
                    f"the benchmark {benchmark} has no such instance; import it first",
                )
            try:
                own = case_rubric(rubric, [row.point for row in points])
            except BadInput as error:
                where = f"{points[0].origin}, instance {short(name)}"
                raise BadInput(f"{where}: {error}; nothing was imported") from error
            if _is_new(session, keys[name], name, own, result):
                new.append((keys[name], own))
                result.instances.append(name)
                result.points += len(own.criteria)
        _write(session, rubric, new, actor)
    return result


# Store points in a coordinator's name.
bring_points = asking(add_points, Role.COORDINATOR)


def _put_on(session: Session, benchmark: str, rubric: Rubric) -> None:
    """Have a benchmark rated by points, or refuse it."""
    if session.get(Benchmark, benchmark) is None:
        known = ", ".join(session.exec(select(Benchmark.name)).all()) or "none"
        raise Unknown(f"benchmark {short(benchmark)!r}: the study has {known}")
    if rubric.points is None:
        raise BadInput(
            f'rubric {rubric.name}: is not of points; its rubric.toml has no line points = "clipped"'
        )
    if not move_to_rubric(session, benchmark, rubric):
        present = session.get_one(Benchmark, benchmark).rubric_sha256
        name = Rubric.from_json(session.get_one(RubricText, present).body).name
        raise Conflict(
            f"benchmark {benchmark}: has ratings on {name}, and cannot be rated by points as well; "
            "import its responses once more as a benchmark of another name"
        )


def _is_new(session: Session, key: int, name: str, own: Rubric, result: PointsAdded) -> bool:
    """Tell whether a list is to be stored, and count it; refuse one in place of a rated one."""
    present = newest_points(session, key)
    of_rubric = present is not None and own.case is not None and own.case.rubric
    if present is None or present.benchmark_rubric != of_rubric:
        result.added += 1
        return True
    if present.rubric_sha256 == own.sha256:
        result.unchanged += 1
        return False
    rated = select(Rating.id).join(Response).where(Response.instance == key).limit(1)
    if session.exec(rated).first() is not None:
        raise Conflict(
            f"instance {short(name)}: has been rated by its points, so they stay; import it once more "
            "under another instance_id to rate it by others. Nothing was imported"
        )
    result.changed += 1
    return True


def _write(
    session: Session,
    rubric: Rubric,
    lists: Sequence[tuple[int, Rubric]],
    author: str,
) -> None:
    """Add lists with their rubrics and one event."""
    if not lists:
        return
    keep_rubric(session, rubric)
    for instance, own in lists:
        keep_rubric(session, own)
        new = PointSet(
            instance=instance,
            benchmark_rubric=rubric.sha256,
            rubric_sha256=own.sha256,
            author=author,
        )
        session.add(new)
    log(session, author, IMPORTED, {"lists": len(lists)})


@dataclass(frozen=True, slots=True)
class CaseRubric:
    """The points that an instance is rated by; `key` is the instance's primary key."""

    key: int
    instance_id: str
    rubric: Rubric


def case_rubrics(engine: Engine, benchmark: str) -> list[CaseRubric]:
    """Return the instances of a benchmark that have points, in the order of import."""
    query = (
        columns_of(Instance.id, Instance.instance_id, RubricText.body)
        .select_from(Instance)
        .join(Benchmark)
        .join(RubricText, IS_RATED_ON)
        .where(Instance.benchmark == benchmark, Benchmark.rubric_sha256 != RATED_ON)
        .order_by(col(Instance.id))
    )
    with reading(engine) as session:
        rows = session.execute(query).all()
    return [CaseRubric(key, name, Rubric.from_json(body)) for key, name, body in rows]


def without_points(engine: Engine, benchmark: str) -> list[str]:
    """Return the instances, by id, that have responses and no points yet."""
    query = (
        select(Instance.instance_id)
        .join(Benchmark)
        .where(Instance.benchmark == benchmark, Benchmark.rubric_sha256 == RATED_ON)
        .where(col(Instance.id).in_(select(Response.instance)))
        .order_by(col(Instance.id))
    )
    with reading(engine) as session:
        return list(session.exec(query))


def refuse_without_points(engine: Engine, benchmarks: Sequence[BenchmarkView]) -> None:
    """Raise BadInput if one of these benchmarks is rated by points of the case, and a case has none."""
    for benchmark in benchmarks:
        bare = without_points(engine, benchmark.name) if benchmark.rubric.points else []
        if bare:
            raise BadInput(
                f"benchmark {benchmark.name}: {len(bare)} of its instances have no points yet, such as "
                f"{short(bare[0])}; add them (`medjury study points FILE --benchmark "
                f"{benchmark.name}`; in the app: Set up, Rubric)"
            )


def newest_points(session: Session, instance: int) -> PointSet | None:
    """Return the newest version of an instance's points, in a transaction."""
    query = select(PointSet).where(PointSet.instance == instance)
    return session.exec(query.order_by(col(PointSet.id).desc()).limit(1)).first()


def given_answers(engine: Engine, benchmark: str) -> list[tuple[Reading, CaseRubric]]:
    """Return first readings and first verdicts with `answers`, the oldest first, and their points."""
    cases = {case.key: case for case in case_rubrics(engine, benchmark)}
    with reading(engine) as session:
        instances = dict(session.exec(select(Response.id, Response.instance)).all())
        said = readings(session, benchmarks=[benchmark], rubric=On.CASE, first=True)
    return [
        (one, cases[instances[one.response]]) for one in said if one.answers and not one.replicate
    ]


# Return the instances of a benchmark that have points; those that have none yet. For who steers.
cases_of = asking(case_rubrics, Role.RESEARCHER, Role.COORDINATOR)
bare_of = asking(without_points, Role.RESEARCHER, Role.COORDINATOR)
