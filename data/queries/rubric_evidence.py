"""What stands behind a rubric: who rated on its exact words, and which juries were held to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, func, select
from sqlmodel import col

from data.database import reading
from data.person import Person, only
from data.queries.ledger import LedgerEntry, tried
from data.queries.reports import FrozenReport, reports
from data.queries.study import simulated_raters
from data.rubric import Rubric
from data.schema import Benchmark, Expert, Kind, Rater, Rating, Role, RubricText

COMBINED = "combined"
SIMULATED = "simulated"  # the code of a note on a figure of raters that are not real
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RatedOn:
    """How much was rated on one rubric, by its hash, by one kind of raters.

    Attributes
    ----------
    ratings
        Scores that stand in the study: corrected ones and repeats are counted too.
    readings
        Pairs of a rater and a response, of responses that are not for training.
    simulated
        How many of the raters are.
    """

    ratings: int = 0
    responses: int = 0
    raters: int = 0
    readings: int = 0
    simulated: int = 0


@dataclass(frozen=True, slots=True)
class StudyRubric:
    """A rubric that stands in the study; `benchmarks` are those rated on it now."""

    rubric: Rubric
    added: datetime
    benchmarks: tuple[str, ...]
    clinicians: RatedOn
    jurors: RatedOn


@dataclass(frozen=True, slots=True)
class Validation:
    """A jury that was held against clinicians on one exact rubric, and what was found.

    Attributes
    ----------
    report
        Number of the frozen report it is from; None from the ledger, which has no intervals.
    criterion
        Empty for the composite of all.
    like_for_like
        The difference with its interval; None where undefined or not known.
    times
        How often the ledger counts it; 1 for a report.
    """

    report: int | None
    name: str
    at: datetime
    benchmark: str
    jurors: tuple[str, ...]
    criterion: str
    method: str
    simulated: bool
    icc: float | None
    low: float | None
    high: float | None
    n_responses: int
    n_clinicians: int | None
    like_for_like: tuple[float | None, float | None, float | None]
    times: int


@only(Role.RESEARCHER, Role.COORDINATOR)
def study_rubrics(_: Person, engine: Engine) -> list[StudyRubric]:
    """Return every rubric that stands in the study, by name and then the newest first."""
    with reading(engine) as session:
        rows = list(session.scalars(select(RubricText)))
        used = list(session.execute(select(col(Benchmark.name), col(Benchmark.rubric_sha256))))
    rated = _rated(engine)
    found = [
        StudyRubric(
            Rubric.from_json(one.body),
            one.added,
            tuple(sorted(name for name, sha256 in used if sha256 == one.sha256)),
            rated.get((one.sha256, Kind.CLINICIAN), RatedOn()),
            rated.get((one.sha256, Kind.JUROR), RatedOn()),
        )
        for one in rows
    ]
    return sorted(found, key=lambda one: (one.rubric.name, -one.added.timestamp()))


@only(Role.RESEARCHER, Role.COORDINATOR)
def frozen_reports(_: Person, engine: Engine) -> list[FrozenReport]:
    """Return every frozen report, the oldest first."""
    return reports(engine)


@only(Role.RESEARCHER, Role.COORDINATOR)
def jurors_heard(_: Person, engine: Engine) -> list[str]:
    """Return the jurors that have rated anything, by name."""
    query = select(col(Rater.handle)).where(
        col(Rater.kind) == Kind.JUROR, col(Rater.id).in_(select(col(Rating.rater)))
    )
    with reading(engine) as session:
        return sorted(session.scalars(query))


@only(Role.RESEARCHER, Role.COORDINATOR)
def validations(_: Person, engine: Engine, sha256: str) -> list[Validation]:
    """Return every time a jury was held against clinicians on this exact rubric, newest first.

    Frozen reports name the rubric of each benchmark. The ledger names the benchmark, and a
    benchmark that was rated never changes its rubric. A figure over several benchmarks counts
    where all of them are rated on this rubric.
    """
    with reading(engine) as session:
        now = dict(
            map(tuple, session.execute(select(col(Benchmark.name), col(Benchmark.rubric_sha256))))
        )
    own = {name for name, used in now.items() if used == sha256}
    whole = own | ({COMBINED} if own and len(own) == len(now) else set())
    made_up = _MadeUp(frozenset(simulated_raters(engine)), _has_simulated_clinician(engine, sha256))
    found = [one for report in reports(engine) for one in _of_report(report, sha256, made_up)]
    found += [_of_ledger(one) for one in tried(engine) if one.benchmark in whole]
    return sorted(found, key=lambda one: one.at, reverse=True)


def _rated(engine: Engine) -> dict[tuple[str, Kind], RatedOn]:
    """Return what was rated on each rubric, by hash and kind of rater."""
    training = select(col(Expert.response))
    query = (
        select(
            col(Rating.rubric_sha256),
            col(Rater.kind),
            col(Rating.rater),
            col(Rater.simulated),
            func.count(),
            func.count(func.distinct(col(Rating.response))),
        )
        .join(Rater, col(Rater.id) == col(Rating.rater))
        .where(col(Rating.rubric_sha256).is_not(None), col(Rating.response).not_in(training))
        .group_by(
            col(Rating.rubric_sha256), col(Rater.kind), col(Rating.rater), col(Rater.simulated)
        )
    )
    covered = (
        select(
            col(Rating.rubric_sha256),
            col(Rater.kind),
            func.count(func.distinct(col(Rating.response))),
        )
        .join(Rater, col(Rater.id) == col(Rating.rater))
        .where(col(Rating.rubric_sha256).is_not(None), col(Rating.response).not_in(training))
        .group_by(col(Rating.rubric_sha256), col(Rater.kind))
    )
    with reading(engine) as session:
        rows = list(session.execute(query))
        responses = {(sha256, kind): n for sha256, kind, n in session.execute(covered)}
    return {
        place: _sum([row for row in rows if (row[0], row[1]) == place], n)
        for place, n in responses.items()
    }


def _sum(rows: Sequence[Any], responses: int) -> RatedOn:
    return RatedOn(
        ratings=sum(row[4] for row in rows),
        responses=responses,
        raters=len(rows),
        readings=sum(row[5] for row in rows),
        simulated=sum(bool(row[3]) for row in rows),
    )


@dataclass(frozen=True, slots=True)
class _MadeUp:
    """Who is simulated in the study now: raters by name, and whether a clinician on a rubric is."""

    raters: frozenset[str]
    has_clinician: bool

    def behind(self, jury: Sequence[str], rows: Sequence[Row]) -> bool:
        """Tell whether a report's rows rest on simulated raters; from the study if they have no codes."""
        if all("notes" in row for row in rows):
            return any(note["code"] == SIMULATED for row in rows for note in row["notes"])
        return self.has_clinician or not self.raters.isdisjoint(jury)


def _has_simulated_clinician(engine: Engine, sha256: str) -> bool:
    rated = _rated(engine).get((sha256, Kind.CLINICIAN))
    return rated is not None and rated.simulated > 0


def _of_report(one: FrozenReport, sha256: str, made_up: _MadeUp) -> list[Validation]:
    """Return what a report says of juries on one rubric."""
    rubrics = one.body.get("rubrics", {})
    own = {name for name, told in rubrics.items() if told["sha256"] == sha256}
    whole = own | ({COMBINED} if own and len(own) == len(rubrics) else set())
    rows = [row for row in one.body.get("rows", ()) if row["benchmark"] in whole]
    held = {row["benchmark"]: row for row in rows if row["scorer"] == "like_for_like"}
    return [
        _of_row(one, row, held.get(row["benchmark"], {}), made_up)
        for row in rows
        if row["scorer"] == "jury"
    ]


def _of_row(one: FrozenReport, row: Row, held: Row, made_up: _MadeUp) -> Validation:
    jury = tuple(one.body.get("jury", ()))
    return Validation(
        report=one.id,
        name=one.body.get("name", ""),
        at=one.at,
        benchmark=row["benchmark"],
        jurors=jury,
        criterion=one.body.get("options", {}).get("criterion") or "",
        method=one.body.get("method") or "",
        simulated=made_up.behind(jury, [part for part in (row, held) if part]),
        icc=row["icc"],
        low=row["boot_low"],
        high=row["boot_high"],
        n_responses=row["n_responses"],
        n_clinicians=row["n_clinicians"],
        like_for_like=(held.get("icc"), held.get("boot_low"), held.get("boot_high")),
        times=1,
    )


def _of_ledger(one: LedgerEntry) -> Validation:
    return Validation(
        report=None,
        name="",
        at=one.last_at,
        benchmark=one.benchmark,
        jurors=one.jurors,
        criterion=one.criterion,
        method=one.method,
        simulated=one.simulated,
        icc=one.icc,
        low=None,
        high=None,
        n_responses=one.n_responses,
        n_clinicians=None,
        like_for_like=(None, None, None),
        times=one.times,
    )
