"""Scores of jury and clinicians, and of two juries, side by side; what one response was given by all.

A response is searched as raters see it: what is masked is not found. The table of authors is not
read here.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from itertools import chain
from math import isclose
from statistics import fmean, stdev
from threading import Lock
from typing import Any, Literal, TypeVar, TypeVarTuple

from sqlalchemy import Engine, and_, case, exists, func, or_
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, select

from data.card import CANNOT_TELL, THIRD, Card
from data.database import one_moment, reading
from data.person import Person, asking, name_for, only, pseudonym
from data.rubric import Rubric
from data.schema import (
    RATED_ON,
    Assignment,
    Attempt,
    Benchmark,
    Instance,
    Kind,
    Rater,
    Rating,
    Remark,
    Response,
    Role,
    RubricText,
    Span,
    Status,
    Subgroup,
    Submission,
)
from data.study.base import (
    BY_CLINICIAN,
    FOR_STUDY,
    NEWEST_SUBMISSION,
    Columns,
    card,
    columns_of,
    newest,
    response_names,
    shown,
)
from data.study.calls import order_of
from data.study.readings import INDEPENDENT, NEWEST, On, Reading, over_verdicts, readings
from data.study.rubrics import rubrics_known
from data.study.standing import benchmarks, version

STEER = (Role.RESEARCHER, Role.COORDINATOR)
CRITICAL, FAILED, OTHERWISE = "critical", "failed", "explained otherwise"  # flags
MOST_KEPT = 16  # answers to one question
HAS_RATED = exists().where(col(Rating.rater) == Rater.id)  # one rating is looked for, not all
SNIPPET = 150  # characters of a text beside its response
BEFORE = 50  # characters shown before the words that were searched for
SEARCHED_AT_LEAST = 2  # characters
MORE = "\N{HORIZONTAL ELLIPSIS}"
SHOWN_TEXT = func.coalesce(col(Response.shown), col(Response.text))
Measure = Literal["points", "z"]
Means = Mapping[int, Mapping[int, float]]  # rater -> response -> composite
Pair = tuple[int, int]  # a response and a rater
Asked = TypeVarTuple("Asked")
Result = TypeVar("Result")


def _kept(function: Callable[[Engine, *Asked], Result]) -> Callable[[Engine, *Asked], Result]:
    """Keep what a function of a study returns until the study changes; it sees one moment."""
    lock = Lock()
    answers: dict[tuple[Engine, *Asked], tuple[tuple[int, ...], Result]] = {}

    @wraps(function)
    def kept(engine: Engine, *asked: *Asked) -> Result:
        at, key = version(engine), (engine, *asked)
        known = answers.get(key)
        if known is None or known[0] != at:
            with one_moment(engine):
                known = at, function(engine, *asked)
            with lock:  # an answer to the study as it was goes
                answers.pop(key, None)
                answers[key] = known
                if len(answers) > MOST_KEPT:
                    del answers[next(iter(answers))]
        return known[1]

    return kept


def _steering(
    function: Callable[[Engine, *Asked], Result],
) -> Callable[[Person, Engine, *Asked], Result]:
    """Let those who steer the study ask a function, whose answers are kept."""
    return asking(_kept(function), *STEER)


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which responses are compared, and how.

    Attributes
    ----------
    benchmark, criterion
        Empty for all benchmarks, and for the mean over the rubric's criteria.
    jurors
        Names of those who are the jury; empty for all real ones heard, or simulated if none is.
    measure
        In points, or with each rater's own level and spread taken out.
    clinician
        The one whose scores stand for the clinicians', by the name of `workbench_clinicians`;
        empty for the mean of all.
    jury_alone
        Whether responses that only jurors scored are there too. They change nothing of the others,
        and of a million of them each would have to be read.
    """

    benchmark: str = ""
    criterion: str = ""
    jurors: tuple[str, ...] = ()
    measure: Measure = "points"
    clinician: str = ""
    jury_alone: bool = True


@dataclass(frozen=True, slots=True)
class Side:
    """What one side makes of a response.

    Attributes
    ----------
    mean
        None where there is none; a jury has one only if all its jurors scored the response.
    scored, of
        How many scored it, and how many there are.
    """

    mean: float | None
    scored: int
    of: int


@dataclass(frozen=True, slots=True)
class Compared:
    """A response (primary key) with what clinicians and jury, or two juries, make of it.

    Attributes
    ----------
    difference
        The second's mean less the first's; None unless both have one, on one scale and of the same criteria.
    flags
        Beside clinicians, who come first: what they said of it apart from scores, "marked" and "critical"
        where they marked something, and "failed" for a juror's call. Of two juries: "failed" where the
        second has jurors whose last call failed and left them without a verdict, and
        "explained otherwise" where a juror of both gives other words for a criterion, in the same verdict
        where all are taken.
    """

    response: int
    response_id: str
    benchmark: str
    first: Side
    second: Side
    difference: float | None
    flags: frozenset[str] = frozenset()


@only(*STEER)
def workbench_jurors(person: Person, engine: Engine) -> list[str]:
    """Return the jurors that the study knows, by name."""
    with reading(engine) as session:
        return sorted(session.exec(select(Rater.handle).where(Rater.kind == Kind.JUROR)))


@only(*STEER)
def workbench_clinicians(person: Person, engine: Engine) -> dict[str, str]:
    """Return the clinicians who gave ratings: the name that an address may have -> who it is.

    That name is a pseudonym, for coordinators too: they share addresses. Only they are told who
    it is; for researchers both are the same.
    """
    query = select(Rater).where(Rater.kind == Kind.CLINICIAN, HAS_RATED).order_by(col(Rater.id))
    with reading(engine) as session:
        return {pseudonym(rater): name_for(person, rater) for rater in session.exec(query)}


@only(*STEER)
def simulated_among(person: Person, engine: Engine, chosen: Chosen) -> list[str]:
    """Return the jurors who sit and are simulated, and "clinicians" if any of them is."""
    query = select(Rater.kind, Rater.handle).where(col(Rater.simulated).is_(True))
    with reading(engine) as session:
        simulated = session.exec(query).all()
        jury = chosen.jurors or set(_default_jury(session).values())
    jurors = sorted(name for kind, name in simulated if kind == Kind.JUROR and name in jury)
    return ["clinicians"] * any(kind == Kind.CLINICIAN for kind, _ in simulated) + jurors


def _default_jury(session: Session) -> dict[int, str]:
    """Return the jurors who sit where none are chosen: real ones never sit with simulated ones."""
    heard = session.exec(select(Rater).where(Rater.kind == Kind.JUROR, HAS_RATED)).all()
    seated = [one for one in heard if not one.simulated] or heard
    return {one.id or 0: one.handle for one in seated}


@_steering
def compared(engine: Engine, chosen: Chosen) -> tuple[Compared, ...]:
    """Return the responses that anybody rated, or clinicians did, the largest disagreement first."""
    views = [one for one in benchmarks(engine) if chosen.benchmark in ("", one.name)]
    by_clinicians = select(Rating.response).join(Rater).where(Rater.kind == Kind.CLINICIAN)
    among = [] if chosen.jury_alone else [col(Rating.response).in_(by_clinicians)]
    with reading(engine) as session:

        def composites(*where: Any) -> dict[int, dict[int, float]]:
            found: dict[int, dict[int, float]] = defaultdict(dict)
            for view in views:
                criteria = (chosen.criterion,) if chosen.criterion else view.rubric.criteria
                own = _verdicts(session, view.name, view.rubric, criteria, *where)
                for rater, by_response in own.items():
                    found[rater] |= by_response
            return found

        raters = {rater.id or 0: rater for rater in session.exec(select(Rater))}
        means: Means = composites(*among)
        named = [
            key
            for key, rater in raters.items()
            if rater.kind == Kind.JUROR and rater.handle in chosen.jurors
        ]
        jurors = (
            named
            if chosen.jurors
            else [
                key
                for key in _default_jury(session)
                if key in means or (among and composites(col(Rating.rater) == key))
            ]
        )
        names, flags = response_names(session), _flags(session)
    clinicians = [
        key
        for key in means
        if raters[key].kind == Kind.CLINICIAN and chosen.clinician in ("", pseudonym(raters[key]))
    ]
    if chosen.measure == "z":
        means = _standardised(means, {response for key in clinicians for response in means[key]})
    sides = [[means.get(key, {}) for key in keys] for keys in (clinicians, jurors)]
    rows = []
    for response in sorted(set[int]().union(*sides[0], *sides[1])):
        both = _side(sides[0], response, needs_all=False), _side(sides[1], response)
        said = flags.get(response, frozenset())
        rows.append(Compared(response, *names[response], *both, _difference(*both), said))
    return tuple(sorted(rows, key=lambda one: (-abs(one.difference or 0), one.difference is None)))


def _verdicts(
    session: Session, benchmark: str, rubric: Rubric, criteria: Sequence[str], *where: Any
) -> dict[int, dict[int, float]]:
    """Return rater -> response -> mean over criteria that apply and over verdicts.

    With a criterion missing, or one that cannot be told, there is none.

    The means are the database's: of a million ratings `readings` would take five times as long.
    """
    verdict = (
        select(Rating.response, Rating.rater, func.avg(_points(rubric, criteria)).label("mean"))
        .join(Response)
        .join(Instance)
        .where(Instance.benchmark == benchmark, FOR_STUDY, NEWEST, INDEPENDENT)
        .where(Rating.rubric_sha256 == rubric.sha256, col(Rating.criterion).in_(criteria), *where)
        .group_by(*(getattr(Rating, name) for name in ("response", "rater", "pass_", "replicate")))
        .having(func.count() == len(criteria), func.count(col(Rating.score)) > 0)
        .having(func.max(case((col(Rating.answer) == CANNOT_TELL, 1), else_=0)) == 0)
        .subquery()
    )
    key = verdict.c.response, verdict.c.rater
    query = select(*key, func.avg(verdict.c.mean)).group_by(*key)
    means: dict[int, dict[int, float]] = defaultdict(dict)
    for response, rater, mean in session.execute(query):
        means[rater][response] = float(mean)
    return dict(means)


def _points(rubric: Rubric, criteria: Sequence[str]) -> Any:
    """Return what a score counts in the mean over criteria: where scales differ, its share of the scale."""
    scales = {name: rubric.scale_of(name) for name in criteria}
    if len({*scales.values()}) <= 1:
        return Rating.score
    return case(
        *(
            (
                col(Rating.criterion) == name,
                (col(Rating.score) - scale.min) / float(scale.max - scale.min),
            )
            for name, scale in scales.items()
        )
    )


def _side(
    composites: Sequence[Mapping[int, float]], response: int, *, needs_all: bool = True
) -> Side:
    """Return the mean of those who scored; of a jury (`needs_all`) only if all did."""
    scores = [own[response] for own in composites if response in own]
    missing = needs_all and len(scores) < len(composites)
    mean = None if missing or not scores else fmean(scores)
    return Side(mean, len(scores), len(composites))


def _difference(first: Side, second: Side) -> float | None:
    return None if first.mean is None or second.mean is None else second.mean - first.mean


def _standardised(means: Means, analysed: Collection[int]) -> dict[int, dict[int, float]]:
    """Return z within each rater over the analysed set; raters without spread have none."""
    standardised: dict[int, dict[int, float]] = {}
    for rater, scores in means.items():
        own = {key: score for key, score in scores.items() if key in analysed}
        if len(own) > 1 and not isclose(spread := stdev(own.values()), 0.0, abs_tol=1e-12):
            middle = fmean(own.values())
            standardised[rater] = {key: (score - middle) / spread for key, score in own.items()}
    return standardised


def _flags(session: Session) -> dict[int, frozenset[str]]:
    """Return response -> what else was said of it, and whether a juror's call failed."""
    said: dict[int, set[str]] = defaultdict(set)
    remarks = select(Assignment.response, Remark.kind).join(Remark).where(BY_CLINICIAN)
    for response, kind in session.exec(remarks.where(col(Remark.revision) >= NEWEST_SUBMISSION)):
        said[response].add(kind)
    marks = select(Assignment.response, Span.severity).join(Span).distinct()
    for response, severity in session.exec(marks.where(Span.revision == NEWEST_SUBMISSION)):
        said[response] |= {"marked"} | ({severity} & {CRITICAL})
    for response, _ in _failed(session):
        said[response].add(FAILED)
    return {key: frozenset(flags) for key, flags in said.items()}


def _failed(session: Session, *where: Any) -> set[Pair]:
    """Return (response, rater) where the last call for one of the verdicts failed."""
    last = select(func.max(Attempt.id)).where(*where)
    last = last.group_by(col(Attempt.rater), col(Attempt.response), col(Attempt.replicate))
    query = select(Attempt.response, Attempt.rater)
    ended = query.where(col(Attempt.id).in_(last), Attempt.status != Status.OK)
    return {(response or 0, rater) for response, rater in session.exec(ended)}


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
class JurorOn:
    """What a juror of one side said of a response.

    Attributes
    ----------
    scores
        Criterion -> points, the mean of its verdicts where several are taken.
    explanations
        Criterion -> its words, one text a verdict; a criterion without any is left out.
    failure
        How the last call ended where that is why there is no score; else empty.
    """

    juror: str
    simulated: bool
    scores: Mapping[str, float] = field(default_factory=dict)
    explanations: Mapping[str, Sequence[str]] = field(default_factory=dict)
    failure: str = ""


@dataclass(frozen=True, slots=True)
class SidesOn:
    """What the jurors of both sides said of one response, by name.

    Attributes
    ----------
    criteria
        Of both versions, the first's first.
    averaged
        Those of them that both have and the means are over.
    same_scale
        Whether a difference of two scores is one.
    """

    first: tuple[JurorOn, ...]
    second: tuple[JurorOn, ...]
    criteria: tuple[str, ...]
    averaged: tuple[str, ...]
    same_scale: bool


@dataclass(frozen=True, slots=True)
class _Part:
    """One benchmark of a comparison: both sides, their rubrics and jurors, and what is averaged."""

    benchmark: str
    sides: tuple[JurySide, JurySide]
    rubrics: tuple[Rubric, Rubric]
    raters: tuple[tuple[int, ...], tuple[int, ...]]
    averaged: tuple[str, ...]

    @property
    def same_scale(self) -> bool:
        """Whether a difference of two scores is one."""
        first, second = (
            [rubric.scale_of(name) for name in self.averaged] for rubric in self.rubrics
        )
        return first == second


@only(*STEER)
def rated_versions(person: Person, engine: Engine) -> list[tuple[Rubric, frozenset[str]]]:
    """Return the rubrics that jurors rated on, by name and version, with the benchmarks where."""
    known = rubrics_known(engine)
    rows = [(known[sha256], names) for sha256, names in _rated_on(engine).items()]
    return sorted(rows, key=lambda row: (row[0].name, row[0].version, row[0].sha256))


@only(*STEER)
def jurors_on(person: Person, engine: Engine, asked: TwoJuries, response: int) -> SidesOn | None:
    """Return what each juror of both sides said of a response; None where nothing is compared."""
    place = select(Instance.benchmark).join(Response).where(Response.id == response, FOR_STUDY)
    with one_moment(engine), reading(engine) as session:
        name = session.exec(place).first()
        part = next((part for part in _parts(engine, asked) if part.benchmark == name), None)
        if part is None:
            return None
        sides = [tuple(_jurors_of_side(session, part, n, response)) for n in (0, 1)]
    criteria = tuple(dict.fromkeys([*part.rubrics[0].criteria, *part.rubrics[1].criteria]))
    return SidesOn(sides[0], sides[1], criteria, part.averaged, part.same_scale)


@_kept
def _rated_on(engine: Engine) -> dict[str, frozenset[str]]:
    """Return rubric -> benchmarks that jurors rated by it."""
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


@_steering
def most_verdicts(engine: Engine) -> int:
    """Return how many verdicts a juror gave on one response at most."""
    query = select(func.max(Rating.replicate)).join(Rater).where(Rater.kind == Kind.JUROR)
    with reading(engine) as session:
        most = session.exec(query).one()
    return 0 if most is None else most + 1


def _parts(engine: Engine, asked: TwoJuries) -> list[_Part]:
    """Return the benchmarks on which both sides' versions were rated, with who sits there."""
    known, where = rubrics_known(engine), _rated_on(engine)
    with reading(engine) as session:
        default = tuple(_default_jury(session))
        query = select(Rater.handle, Rater.id).where(Rater.kind == Kind.JUROR)
        key_of = {name: key or 0 for name, key in session.exec(query)}
    raters = [
        tuple(key_of[name] for name in side.jurors if name in key_of) if side.jurors else default
        for side in asked.sides
    ]
    parts = []
    for view in benchmarks(engine):
        named = {side.rubric for side in asked.sides} - {""}
        is_rated = all(view.name in where.get(sha256, ()) for sha256 in named)
        if asked.benchmark in ("", view.name) and is_rated:
            first, second = (known[side.rubric or view.rubric.sha256] for side in asked.sides)
            wanted = {asked.criterion} if asked.criterion else {*second.criteria}
            averaged = tuple(one for one in first.criteria if one in wanted & {*second.criteria})
            both = (first, second), (raters[0], raters[1])
            parts.append(_Part(view.name, asked.sides, *both, averaged))
    return parts


@_steering
def on_both(engine: Engine, asked: TwoJuries) -> tuple[Compared, ...]:
    """Return the responses that either jury scored or failed on, in the order of the study.

    A benchmark on which nobody rated by a version that is asked for is left out. The mean is over
    the criteria that both versions have.
    """
    parts = _parts(engine, asked)
    with reading(engine) as session:
        names = response_names(session)
        means = [
            [
                _verdicts(
                    *(session, part.benchmark, part.rubrics[n], part.averaged),
                    *_of_side(part, n, Rating),
                )
                for n in (0, 1)
            ]
            for part in parts
        ]
        heard = {rater for of_part in means for side in of_part for rater in side}
        pairs = zip(parts, means, strict=True)
        rows = (_rows_of_part(session, part, own, heard, names) for part, own in pairs)
        return tuple(chain.from_iterable(rows))


def _of_side(part: _Part, n: int, table: type[Rating | Attempt]) -> tuple[Any, ...]:
    """Return the conditions that ratings or calls are of one side's jurors and verdict."""
    verdict, own = part.sides[n].verdict, col(table.rater).in_(part.raters[n])
    return (own,) if verdict is None else (own, table.replicate == verdict)


def _rows_of_part(
    session: Session,
    part: _Part,
    means: Sequence[Means],
    heard: Collection[int],
    names: Mapping[int, tuple[str, str]],
) -> Iterator[Compared]:
    """Yield one benchmark's responses with what both juries make of them."""
    there = select(Response.id).join(Instance).where(Instance.benchmark == part.benchmark)
    failed, seated = [], []
    for n, side in enumerate(part.sides):
        made = Attempt.rubric_sha256 == part.rubrics[n].sha256, col(Attempt.response).in_(there)
        ended = _failed(session, *made, *_of_side(part, n, Attempt))
        failed.append({pair for pair in ended if pair[0] not in means[n].get(pair[1], ())})
        seated.append([key for key in part.raters[n] if side.jurors or key in heard])
    otherwise = _explained_otherwise(session, part)
    is_comparable = part.same_scale and bool(part.averaged)
    known = {response for side in means for own in side.values() for response in own}
    for response in sorted(known | {response for pairs in failed for response, _ in pairs}):
        first, second = (
            _side([means[n].get(key, {}) for key in seated[n]], response) for n in (0, 1)
        )
        has_failed = any((response, key) in failed[1] for key in seated[1])
        flags = [FAILED] * has_failed + [OTHERWISE] * (response in otherwise)
        gap = _difference(first, second) if is_comparable else None
        yield Compared(response, *names[response], first, second, gap, frozenset(flags))


def _explained_otherwise(session: Session, part: _Part) -> frozenset[int]:
    """Return the responses on which a juror of both sides gave other words for a criterion.

    The database compares the words: a million explanations would else be read for it.
    """
    (first_side, second_side), both = part.sides, {*part.raters[0]} & {*part.raters[1]}
    is_one_rubric = part.rubrics[0].sha256 == part.rubrics[1].sha256
    if not both or (is_one_rubric and first_side.verdict == second_side.verdict):
        return frozenset()
    first: Any = aliased(Rating)
    second: Any = aliased(Rating)
    same_thing = (
        *(second.response == first.response, second.rater == first.rater),
        *(second.criterion == first.criterion, second.comment != first.comment),
    )
    query = select(first.response).join(second, and_(*same_thing)).distinct()
    for own, rubric, side in zip((first, second), part.rubrics, part.sides, strict=True):
        query = query.where(own.rubric_sha256 == rubric.sha256, own.pass_ < THIRD, newest(own))
        query = query if side.verdict is None else query.where(own.replicate == side.verdict)
    if first_side.verdict is None and second_side.verdict is None:
        query = query.where(first.replicate == second.replicate)
    there = select(Response.id).join(Instance)
    there = there.where(Instance.benchmark == part.benchmark, FOR_STUDY)
    chosen = first.rater.in_(both), first.criterion.in_(part.averaged), first.response.in_(there)
    return frozenset(session.exec(query.where(*chosen)))


def _jurors_of_side(session: Session, part: _Part, n: int, response: int) -> Iterator[JurorOn]:
    """Yield what one side's jurors said of a response; of a jury by name, all its jurors."""
    side, sha256 = part.sides[n], part.rubrics[n].sha256
    said: dict[int, list[Reading]] = defaultdict(list)
    for one in readings(session, responses=[response], kinds=[Kind.JUROR], rubric=sha256):
        if side.verdict in (None, one.replicate):
            said[one.rater].append(one)
    calls = select(Attempt.rater, Attempt.status).where(
        Attempt.response == response, Attempt.rubric_sha256 == sha256, *_of_side(part, n, Attempt)
    )
    ends = dict(session.exec(calls.order_by(col(Attempt.id))).all())
    raters = select(Rater).where(col(Rater.id).in_(part.raters[n])).order_by(Rater.handle)
    for rater in session.exec(raters):
        verdicts, end = said[rater.id or 0], ends.get(rater.id or 0)
        if not (side.jurors or verdicts or end):
            continue
        scores, words = over_verdicts(sorted(verdicts, key=lambda one: one.replicate))
        yield JurorOn(
            rater.handle,
            rater.simulated,
            scores,
            words,
            "" if verdicts or end in (None, Status.OK) else str(end),
        )


@dataclass(frozen=True, slots=True)
class Snippet:
    """A stretch of a response's text; of a comment on it where only that has the words searched for."""

    text: str
    of_comment: bool = False


@only(*STEER)
def missed_unsafe(
    person: Person, engine: Engine, chosen: Chosen, unsafe: Mapping[tuple[str, str], float]
) -> frozenset[int]:
    """Return the responses that are unsafe for the clinicians, by their mean, and not for the jury.

    `unsafe` is benchmark and criterion -> the highest score that is unsafe. Both sides' means on the criterion, in points; a jury that is not whole on a response misses
    nothing there.
    """
    missed: set[int] = set()
    for (benchmark, criterion), points in unsafe.items():
        if chosen.benchmark in ("", benchmark):
            at = replace(chosen, benchmark=benchmark, criterion=criterion)
            for row in compared(person, engine, replace(at, measure="points")):
                people, jury = row.first.mean, row.second.mean
                if people is not None and jury is not None and people <= points < jury:
                    missed.add(row.response)
    return frozenset(missed)


@only(*STEER)
def subgroup_values(person: Person, engine: Engine) -> list[tuple[str, str]]:
    """Return the subgroups of the study as (name, value), by name."""
    query = select(Subgroup.name, Subgroup.value).join(Response).where(FOR_STUDY).distinct()
    with reading(engine) as session:
        return list(session.exec(query.order_by(Subgroup.name, Subgroup.value)))


@only(*STEER)
def in_subgroup(person: Person, engine: Engine, name: str, value: str) -> frozenset[int]:
    """Return the responses of a subgroup."""
    query = select(Subgroup.response).where(Subgroup.name == name, Subgroup.value == value)
    with reading(engine) as session:
        return frozenset(session.exec(query))


@_steering
def responses_with(engine: Engine, words: str) -> frozenset[int]:
    """Return the responses that have these words in their text, id, comments or explanations.

    The words are one phrase, in capitals or not: beyond ASCII SQLite compares what is typed, all
    small, all large, and with a capital first. Under two characters nothing is searched: none.
    """
    phrase = words.strip()
    if len(phrase) < SEARCHED_AT_LEAST:
        return frozenset()
    in_text = select(Response.id).where(
        _has(SHOWN_TEXT, phrase) | _has(col(Response.response_id), phrase), FOR_STUDY
    )
    with reading(engine) as session:
        responses = {key or 0 for key in session.exec(in_text)}
        for query, column in _commented():
            found = query.with_only_columns(query.selected_columns[0]).where(_has(column, phrase))
            responses |= {key for (key,) in session.execute(found)}
    return frozenset(responses)


def _has(column: Any, phrase: str) -> Any:
    forms = dict.fromkeys((phrase, phrase.lower(), phrase.upper(), phrase.capitalize()))
    tried = [phrase] if phrase.isascii() else [*forms]
    return or_(*(column.icontains(form, autoescape=True) for form in tried))


def _commented() -> Iterator[tuple[Columns, Any]]:
    """Yield selections of (response, words) of what was written about responses, with the words.

    The database looks for words: `readings` would bring each of a million explanations here.
    """
    rated = Columns(col(Rating.response), col(Rating.comment)).where(NEWEST)
    yield rated, col(Rating.comment)
    for model, words, newest_ones in (
        (Submission, Submission.comment, (Submission.revision == NEWEST_SUBMISSION,)),
        (Remark, Remark.text, (Remark.revision >= NEWEST_SUBMISSION, BY_CLINICIAN)),
        (Span, Span.note, (Span.revision == NEWEST_SUBMISSION,)),
    ):
        query = Columns(col(Assignment.response), col(words)).select_from(Assignment).join(model)
        yield query.where(*newest_ones), col(words)


@only(*STEER)
def snippets(
    person: Person, engine: Engine, responses: Collection[int], words: str = ""
) -> dict[int, Snippet]:
    """Return a snippet of each of some responses: where the words stand, else the beginning.

    Ask for the responses of one page: their whole texts are read.
    """
    phrase = words.strip() if len(words.strip()) >= SEARCHED_AT_LEAST else ""
    texts = select(Response.id, SHOWN_TEXT).where(col(Response.id).in_(responses), FOR_STUDY)
    with reading(engine) as session:
        shown_texts = {key or 0: text for key, text in session.exec(texts)}
        cut = {key: Snippet(_cut(text, phrase)) for key, text in shown_texts.items()}
        missing = [key for key, text in shown_texts.items() if phrase and _place(text, phrase) < 0]
        for query, column in _commented() if missing else ():
            there = query.selected_columns[0].in_(missing)
            for key, comment in session.execute(query.where(there, _has(column, phrase))):
                cut[key] = Snippet(_cut(comment, phrase), of_comment=True)
    return cut


def _place(text: str, phrase: str) -> int:
    return text.casefold().find(phrase.casefold())


def _cut(text: str, phrase: str) -> str:
    """Return a stretch of a text on one line, with an ellipsis where it goes on."""
    place = _place(text, phrase) if phrase else 0
    start = max(0, place - BEFORE) if place > BEFORE else 0
    line = " ".join(text[start : start + 2 * SNIPPET].split())
    if start and " " in line[:BEFORE]:  # not in the middle of a word
        line = line.split(" ", 1)[1]
    goes_on = len(line) > SNIPPET or start + 2 * SNIPPET < len(text)
    return f"{MORE if start else ''}{line[:SNIPPET]}{MORE if goes_on else ''}"


@dataclass(frozen=True, slots=True)
class CallView:
    """One call to a juror with what it was made of; `profile` is what the juror is asked with."""

    attempt: Attempt
    juror: str
    profile: Mapping[str, Any]
    rubric: Rubric
    card: Card


@dataclass(frozen=True, slots=True)
class Opened:
    """A response as raters see it, with its rubric, all that was said of it, and all calls.

    Attributes
    ----------
    opinions
        On the present rubrics: clinicians first, then jurors, by name. A clinician has the handle for
        coordinators, and for researchers the pseudonym.
    calls
        The oldest first.
    case
        The rubric of its points, None where it is rated on the benchmark's own.
    """

    response_id: str
    benchmark: str
    instance_id: str
    card: Card
    rubric: Rubric
    opinions: tuple[Reading, ...]
    calls: tuple[CallView, ...]
    case: Rubric | None = None


@only(*STEER)
def opened_response(person: Person, engine: Engine, response: int) -> Opened | None:
    """Return a response by its primary key, None if there is none or it is for training."""
    about = Response.response_id, Instance.benchmark, Instance.instance_id
    query = (
        shown(*about, RubricText.body, RATED_ON)
        .join(Benchmark)
        .join(RubricText, col(RubricText.sha256) == Benchmark.rubric_sha256)
        .where(Response.id == response, FOR_STUDY)
    )
    with one_moment(engine), reading(engine) as session:
        row = session.exec(query).first()
        if row is None:
            return None
        *texts, name, benchmark, instance, body, rated_on = row
        rubric, own = Rubric.from_json(body), session.get_one(RubricText, rated_on).body
        raters = {rater.id: rater for rater in session.exec(select(Rater))}
        kinds = Kind.CLINICIAN, Kind.JUROR
        said = readings(session, responses=[response], kinds=kinds, rubric=On.CASE, words=True)
        for one in said:
            one.handle = name_for(person, raters[one.rater])
        said.sort(key=lambda one: (one.kind, one.handle, one.pass_, one.replicate))
        case = Rubric.from_json(own) if own != body else None
        about_it = (name, benchmark, instance, card(name, texts, rubric), rubric)
        return Opened(*about_it, tuple(said), tuple(_calls(session, response, texts)), case)


def _calls(session: Session, response: int, texts: list[Any]) -> Iterator[CallView]:
    query = (
        columns_of(Attempt, RubricText.body, Rater)
        .join(RubricText, col(RubricText.sha256) == Attempt.rubric_sha256)
        .join(Rater, col(Rater.id) == Attempt.rater)
        .where(Attempt.response == response)
        .order_by(col(Attempt.id))
    )
    for attempt, body, rater in session.execute(query):
        read = session.get(RubricText, rater.profile.get("reads") or "")
        rubric = Rubric.from_json(read.body if read else body)  # the words that it was asked in
        own = card(str(response), texts, rubric, order_of(attempt.replicate, rubric))
        yield CallView(attempt, rater.handle, rater.profile, rubric, own)
