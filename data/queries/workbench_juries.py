"""Two juries' verdicts on the same responses: other jurors, another rubric version, another verdict.

The table of authors is not read here.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean
from typing import Any

from sqlalchemy import Engine, and_, func
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, select

from data.card import THIRD
from data.database import reading
from data.person import Person, only
from data.queries.base import FOR_STUDY, INDEPENDENT, NEWEST, newest, response_names
from data.queries.export import rubrics_known
from data.queries.workbench import STEER, default_jury
from data.rubric import Rubric
from data.schema import Attempt, Instance, Kind, Purpose, Rater, Rating, Response, Status
from data.study.standing import BenchmarkView, benchmarks, version

Pair = tuple[int, int]  # a response and a rater


@dataclass(frozen=True, slots=True)
class JurySide:
    """Which verdicts of which jurors stand on one side.

    Attributes
    ----------
    jurors
        Names; empty for all real ones heard on either side, or simulated if none is.
    rubric
        SHA-256 of the version that they rated on; empty for each benchmark's present one.
    verdict
        Which of a juror's verdicts on a response, from 0: each is of a run of its own. None for
        the mean of all.
    """

    jurors: tuple[str, ...] = ()
    rubric: str = ""
    verdict: int | None = None


@dataclass(frozen=True, slots=True)
class TwoJuries:
    """What is set side by side; `benchmark` and `criterion` are empty as in `Chosen`."""

    first: JurySide
    second: JurySide
    benchmark: str = ""
    criterion: str = ""

    @property
    def sides(self) -> tuple[JurySide, JurySide]:
        """Both sides, the first first."""
        return self.first, self.second


@dataclass(frozen=True, slots=True)
class JuryOn:
    """What one jury makes of a response, in points.

    Attributes
    ----------
    mean
        None unless all its jurors scored it.
    scored, of
        How many of its jurors did.
    failed
        Whether the last call to one of its jurors failed, and left it without a verdict.
    """

    mean: float | None
    scored: int
    of: int
    failed: bool = False


@dataclass(frozen=True, slots=True)
class OnBoth:
    """A response (primary key) with what two juries make of it.

    Attributes
    ----------
    comparable
        Whether both rated on one scale and on criteria that both have: else no difference is one.
    explained_otherwise
        Whether a juror of both gives other words for a criterion, in the same verdict where all
        are taken.
    """

    response: int
    response_id: str
    benchmark: str
    first: JuryOn
    second: JuryOn
    comparable: bool = True
    explained_otherwise: bool = False


@dataclass(frozen=True, slots=True)
class RatedVersion:
    """A rubric that jurors rated on, and the benchmarks where they did."""

    sha256: str
    name: str
    version: str
    benchmarks: frozenset[str]


@dataclass(frozen=True, slots=True)
class Part:
    """One benchmark's part of a comparison: both sides' rubrics, jurors and what is averaged."""

    benchmark: BenchmarkView
    rubrics: tuple[str, str]
    raters: tuple[tuple[int, ...], tuple[int, ...]]
    criteria: tuple[str, ...]
    averaged: tuple[str, ...]
    same_scale: bool


@dataclass(frozen=True, slots=True)
class _Read:
    """What both sides gave on one benchmark: means, and what failed, of each (response, rater)."""

    part: Part
    means: tuple[Mapping[Pair, float], Mapping[Pair, float]]
    failed: tuple[Collection[Pair], Collection[Pair]]
    otherwise: frozenset[int]


@only(*STEER)
def rated_versions(person: Person, engine: Engine) -> list[RatedVersion]:
    """Return the rubrics that jurors rated on, by name and version."""
    known = rubrics_known(engine)
    where = _versions(engine, version(engine))
    rows = [
        RatedVersion(sha256, known[sha256].name, known[sha256].version, names)
        for sha256, names in where.items()
    ]
    return sorted(rows, key=lambda row: (row.name, row.version, row.sha256))


@only(*STEER)
def most_verdicts(person: Person, engine: Engine) -> int:
    """Return how many verdicts a juror gave on one response at most."""
    return _most_verdicts(engine, version(engine))


@only(*STEER)
def on_both(person: Person, engine: Engine, asked: TwoJuries) -> list[OnBoth]:
    """Return the responses that either jury scored or failed on, in the order of the study.

    A benchmark on which nobody rated by a version that is asked for is left out. The mean is over
    the criteria that both versions have.
    """
    return _on_both(engine, version(engine), asked)


@lru_cache(maxsize=8)
def _versions(engine: Engine, _: tuple[int, ...]) -> dict[str, frozenset[str]]:
    """Return rubric -> benchmarks that jurors rated by it; kept until the study changes."""
    query = (
        select(Rating.rubric_sha256, Instance.benchmark)
        .join(Rater)
        .join(Response, col(Response.id) == Rating.response)
        .join(Instance)
        .where(Rater.kind == Kind.JUROR, FOR_STUDY)
        .distinct()
    )
    found: dict[str, set[str]] = defaultdict(set)
    with reading(engine) as session:
        for sha256, benchmark in session.exec(query):
            found[sha256 or ""].add(benchmark)
    return {sha256: frozenset(names) for sha256, names in found.items() if sha256}


@lru_cache(maxsize=8)
def _most_verdicts(engine: Engine, _: tuple[int, ...]) -> int:
    query = select(func.max(Rating.replicate)).join(Rater).where(Rater.kind == Kind.JUROR)
    with reading(engine) as session:
        most = session.exec(query).one()
    return 0 if most is None else most + 1


@lru_cache(maxsize=8)
def _on_both(engine: Engine, _: tuple[int, ...], asked: TwoJuries) -> list[OnBoth]:
    """Return what is compared; kept until the study changes."""
    with reading(engine) as session:
        names = response_names(session)
        read = [_read(session, part, asked) for part in parts_of(engine, asked)]
    heard = {rater for part in read for means in part.means for _, rater in means}
    return [row for part in read for row in _rows(part, asked, heard, names)]


def parts_of(engine: Engine, asked: TwoJuries) -> list[Part]:
    """Return the benchmarks on which both sides' versions were rated, with who sits there."""
    known, where = rubrics_known(engine), _versions(engine, version(engine))
    keys = _keys(engine, asked)
    parts = []
    for view in benchmarks(engine):
        sides = [side.rubric or view.rubric.sha256 for side in asked.sides]
        named = {side.rubric for side in asked.sides} - {""}
        if asked.benchmark not in ("", view.name):
            continue
        if all(view.name in where.get(sha256, ()) for sha256 in named):
            first, second = (known[sha256] for sha256 in sides)
            every = tuple(dict.fromkeys([*first.criteria, *second.criteria]))
            averaged = _averaged(first, second, asked.criterion)
            same_scale = _scale(first) == _scale(second)
            parts.append(Part(view, (sides[0], sides[1]), keys, every, averaged, same_scale))
    return parts


def _averaged(first: Rubric, second: Rubric, criterion: str) -> tuple[str, ...]:
    """Return the criteria that both have; of these the one that is asked for, if one is."""
    both = [name for name in first.criteria if name in second.criteria]
    return tuple(name for name in both if criterion in ("", name))


def _scale(rubric: Rubric) -> tuple[int, int]:
    return rubric.scale.min, rubric.scale.max


def _keys(engine: Engine, asked: TwoJuries) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the keys of both sides' jurors."""
    default = tuple(default_jury(engine))
    with reading(engine) as session:
        query = select(Rater.handle, Rater.id).where(Rater.kind == Kind.JUROR)
        key_of = {name: key or 0 for name, key in session.exec(query)}
    first, second = (
        tuple(key_of[name] for name in side.jurors if name in key_of) if side.jurors else default
        for side in asked.sides
    )
    return first, second


def _read(session: Session, part: Part, asked: TwoJuries) -> _Read:
    """Return the verdicts of both sides on one benchmark."""
    means = [_means(session, part, side, n) for n, side in enumerate(asked.sides)]
    failed = [
        _failures(session, part, side, n) - means[n].keys() for n, side in enumerate(asked.sides)
    ]
    otherwise = _explained_otherwise(session, part, asked)
    return _Read(part, (means[0], means[1]), (failed[0], failed[1]), otherwise)


def _rows(
    read: _Read, asked: TwoJuries, heard: Collection[int], names: Mapping[int, tuple[str, str]]
) -> Iterator[OnBoth]:
    """Yield one benchmark's responses with what both juries make of them."""
    seated = [
        [key for key in read.part.raters[n] if side.jurors or key in heard]
        for n, side in enumerate(asked.sides)
    ]
    found = (*read.means, *read.failed)
    is_comparable = read.part.same_scale and bool(read.part.averaged)
    for response in sorted({response for keys in found for response, _ in keys}):
        first, second = (_on(response, seated[n], read.means[n], read.failed[n]) for n in (0, 1))
        changed = response in read.otherwise
        yield OnBoth(response, *names[response], first, second, is_comparable, changed)


def _on(
    response: int, raters: Sequence[int], means: Mapping[Pair, float], failed: Collection[Pair]
) -> JuryOn:
    scores = [means[response, key] for key in raters if (response, key) in means]
    is_whole = bool(scores) and len(scores) == len(raters)
    has_failed = any((response, key) in failed for key in raters)
    return JuryOn(fmean(scores) if is_whole else None, len(scores), len(raters), has_failed)


def _means(session: Session, part: Part, side: JurySide, place: int) -> dict[Pair, float]:
    """Return each juror's mean on each response; one with a criterion missing is none."""
    verdict = (
        of_side(select(Rating.response, Rating.rater, func.avg(Rating.score)), part, side, place)
        .where(col(Rating.criterion).in_(part.averaged))
        .group_by(
            *(col(c) for c in (Rating.response, Rating.rater, Rating.pass_, Rating.replicate))
        )
        .having(func.count() == len(part.averaged))
    )
    found: dict[Pair, list[float]] = defaultdict(list)
    for response, rater, mean in session.execute(verdict):
        found[response, rater].append(float(mean))
    return {key: fmean(means) for key, means in found.items()}


def of_side(query: Any, part: Part, side: JurySide, place: int) -> Any:
    """Let a query of ratings take those of one side that count."""
    query = (
        query.join(Response)
        .join(Instance)
        .where(
            Instance.benchmark == part.benchmark.name,
            FOR_STUDY,
            NEWEST,
            INDEPENDENT,
            Rating.rubric_sha256 == part.rubrics[place],
            col(Rating.rater).in_(part.raters[place]),
        )
    )
    return query if side.verdict is None else query.where(Rating.replicate == side.verdict)


def _failures(session: Session, part: Part, side: JurySide, place: int) -> set[Pair]:
    """Return (response, rater) where the last call for one of the verdicts failed."""
    last = (
        select(func.max(Attempt.id))
        .where(
            Attempt.purpose == Purpose.VERDICT,
            Attempt.rubric_sha256 == part.rubrics[place],
            col(Attempt.rater).in_(part.raters[place]),
        )
        .group_by(col(Attempt.rater), col(Attempt.response), col(Attempt.replicate))
    )
    if side.verdict is not None:
        last = last.where(Attempt.replicate == side.verdict)
    query = (
        select(Attempt.response, Attempt.rater)
        .join(Response)
        .join(Instance)
        .where(Instance.benchmark == part.benchmark.name, FOR_STUDY)
        .where(col(Attempt.id).in_(last), Attempt.status != Status.OK)
    )
    return {(response or 0, rater) for response, rater in session.exec(query)}


def _explained_otherwise(session: Session, part: Part, asked: TwoJuries) -> frozenset[int]:
    """Return the responses on which a juror of both sides gave other words for a criterion."""
    sides, both = asked.sides, {*part.raters[0]} & {*part.raters[1]}
    is_one_verdict = part.rubrics[0] == part.rubrics[1] and sides[0].verdict == sides[1].verdict
    if not both or is_one_verdict:
        return frozenset()
    first: Any = aliased(Rating)
    second: Any = aliased(Rating)
    same_thing = (
        *(second.response == first.response, second.rater == first.rater),
        *(second.criterion == first.criterion, second.comment != first.comment),
    )
    query = select(first.response).join(second, and_(*same_thing)).distinct()
    for own, sha256, side in zip((first, second), part.rubrics, sides, strict=True):
        query = query.where(own.rubric_sha256 == sha256, own.pass_ < THIRD)
        query = query.where(newest(own))
        query = query if side.verdict is None else query.where(own.replicate == side.verdict)
    if sides[0].verdict is None and sides[1].verdict is None:
        query = query.where(first.replicate == second.replicate)
    there = select(Response.id).join(Instance)
    there = there.where(Instance.benchmark == part.benchmark.name, FOR_STUDY)
    chosen = first.rater.in_(both), first.criterion.in_(part.averaged), first.response.in_(there)
    return frozenset(session.scalars(query.where(*chosen)))
