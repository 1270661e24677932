"""Scores of the jury and the clinicians side by side, response by response.

The table of authors is not read here.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isclose
from statistics import fmean, stdev
from threading import Lock
from typing import Literal

from sqlalchemy import Engine, TextClause, exists, func, text
from sqlmodel import col, select

from data.card import THIRD
from data.database import one_moment, reading
from data.person import Person, only
from data.queries.base import response_names
from data.schema import Benchmark, Expert, Kind, Rater, Rating, Role
from data.study.standing import benchmarks, version

_COMPOSITES = """
WITH showing AS (
    SELECT g.response, g.rater, AVG(g.score) AS mean
    FROM rating g
    WHERE {among}g.response IN (
        SELECT r.id FROM response r JOIN instance i ON i.id = r.instance
        WHERE i.benchmark = :benchmark AND r.id NOT IN (SELECT response FROM expert)
      )
      AND g.rubric_sha256 = :sha{by}
      AND NOT EXISTS (
        SELECT 1 FROM rating n
        WHERE n.response = g.response AND n.rater = g.rater AND n.pass_ = g.pass_
        AND n.replicate = g.replicate AND n.criterion = g.criterion
        AND n.rubric_sha256 = g.rubric_sha256 AND n.id > g.id
      )
      AND g.pass_ < :third AND (:criterion = '' OR g.criterion = :criterion)
    GROUP BY g.response, g.rater, g.pass_, g.replicate
    HAVING COUNT(*) = :needed
)
SELECT response, rater, AVG(mean) FROM showing GROUP BY response, rater
"""
LATER = "g.response IN (SELECT response FROM rating WHERE id > :since) AND "
BY_CLINICIANS = """g.response IN (
        SELECT c.response FROM rating c JOIN rater w ON w.id = c.rater AND w.kind = 'clinician'
      ) AND """
ONE_RATER = " AND g.rater = :rater"
HAS_RATED = exists().where(col(Rating.rater) == Rater.id)  # one rating is looked for, not all
REMARKED = text("""
SELECT a.response, m.kind FROM remark m JOIN assignment a ON a.id = m.assignment
WHERE m.revision >= a.revision - 1 AND m.about IS NULL
""")
MARKED = text("""
SELECT DISTINCT a.response, s.severity FROM span s JOIN assignment a ON a.id = s.assignment
WHERE s.revision = a.revision - 1
""")
FAILED = text("""
SELECT DISTINCT t.response FROM attempt t
WHERE t.id IN (SELECT MAX(id) FROM attempt GROUP BY rater, response, replicate)
  AND t.status != 'ok'
""")
STEER = (Role.RESEARCHER, Role.COORDINATOR)
CRITICAL = "critical"
Measure = Literal["points", "z"]
MOST_KEPT = 16  # comparisons
# Ratings that are read again: on PostgreSQL one that was begun earlier may be stored later.
LOOK_BACK = 5_000
MOST_LATER = 20_000  # of more ratings all is read anew
Means = Mapping[int, Mapping[int, float]]  # rater -> response -> composite


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
    """What one side makes of a response: the mean, None where there is none, and of how many."""

    mean: float | None
    scored: int
    of: int


@dataclass(frozen=True, slots=True)
class Compared:
    """A response (primary key) with what clinicians and jury make of it.

    Attributes
    ----------
    difference
        Jury less clinicians; None unless both have a mean. A jury has one only if all its jurors
        scored the response.
    flags
        What clinicians said of it apart from scores, "marked" and "critical" where they marked
        something, and "failed" for a juror's call.
    """

    response: int
    response_id: str
    benchmark: str
    clinicians: Side
    jury: Side
    difference: float | None
    flags: frozenset[str]


@only(*STEER)
def compared(person: Person, engine: Engine, chosen: Chosen) -> list[Compared]:
    """Return the responses that anybody rated, or clinicians did, the largest disagreement first."""
    rows = _compared(engine, version(engine), chosen)
    return sorted(rows, key=lambda one: (-abs(one.difference or 0), one.difference is None))


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
    query = select(Rater).where(Rater.kind == Kind.CLINICIAN, HAS_RATED)
    with reading(engine) as session:
        raters = session.exec(query.order_by(col(Rater.id))).all()
    knows = person.role == Role.COORDINATOR
    return {_pseudonym(rater): rater.handle if knows else _pseudonym(rater) for rater in raters}


def _pseudonym(rater: Rater) -> str:
    return rater.pseudonym or f"clinician {rater.id}"


@only(*STEER)
def simulated_among(person: Person, engine: Engine, chosen: Chosen) -> list[str]:
    """Return the jurors who sit and are simulated, and "clinicians" if any of them is."""
    query = select(Rater.kind, Rater.handle).where(col(Rater.simulated).is_(True))
    with reading(engine) as session:
        rows = session.exec(query).all()
    jurors_chosen = chosen.jurors or set(default_jury(engine).values())
    jurors = sorted(name for kind, name in rows if kind == Kind.JUROR and name in jurors_chosen)
    clinicians = ["clinicians"] if any(kind == Kind.CLINICIAN for kind, _ in rows) else []
    return clinicians + jurors


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a comparison, and what they were made from.

    Attributes
    ----------
    version : of the study
    basis : all but ratings that rows rest on; where it is another, none of them holds
    newest : id of the last rating
    clinicians, jury : the raters of both sides who have a composite
    """

    version: tuple[int, ...]
    basis: tuple[object, ...]
    newest: int
    clinicians: tuple[int, ...]
    jury: tuple[int, ...]
    rows: dict[int, Compared]


_kept: OrderedDict[tuple[Engine, Chosen], _Rows] = OrderedDict()
_lock = Lock()


def _compared(engine: Engine, at: tuple[int, ...], chosen: Chosen) -> list[Compared]:
    """Return what is compared; after a change of the study only what was rated since is read."""
    with _lock:
        before = _kept.get((engine, chosen))
    if before is None or before.version != at:
        with one_moment(engine):
            after = _updated(engine, at, chosen, before) if before else None
            before = after or _whole(engine, at, chosen)
    with _lock:
        _kept[engine, chosen] = before
        _kept.move_to_end((engine, chosen))
        while len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
    return [*before.rows.values()]


def _whole(engine: Engine, at: tuple[int, ...], chosen: Chosen) -> _Rows:
    """Return the comparison made of all ratings."""
    kinds, jurors = _kinds_of_raters(engine), _jurors(engine, chosen)
    means = _means(engine, chosen)
    clinicians = [key for key in means if kinds[key][0] == Kind.CLINICIAN]
    if chosen.clinician:
        clinicians = [key for key in clinicians if key in _raters_called(engine, chosen.clinician)]
    jury_heard = [
        key
        for key in jurors
        if chosen.jurors
        or key in means
        or (not chosen.jury_alone and _has_any(engine, chosen, key))
    ]
    if chosen.measure == "z":
        means = _standardised(means, {response for key in clinicians for response in means[key]})
    with reading(engine) as session:
        names = response_names(session)
    raters = tuple(clinicians), tuple(jury_heard)
    rows = _rows(means, raters, names, _flags(engine))
    return _Rows(at, _basis(engine, chosen), _newest(engine), *raters, rows)


def _updated(engine: Engine, at: tuple[int, ...], chosen: Chosen, before: _Rows) -> _Rows | None:
    """Return a comparison with what was rated since; None where it has to be made anew.

    That is in z, where any score moves all; where many rated or somebody scored for the first time,
    or where raters, rubrics or training changed.
    """
    basis, newest = _basis(engine, chosen), _newest(engine)
    few = newest - before.newest <= MOST_LATER
    if chosen.measure == "z" or basis != before.basis or not few:
        return None
    kinds = _kinds_of_raters(engine)
    means = _means(engine, chosen, since=max(before.newest - LOOK_BACK, 0))
    clinicians = {key for key in means if kinds[key][0] == Kind.CLINICIAN}
    if chosen.clinician:
        clinicians &= _raters_called(engine, chosen.clinician)
    jury = {*_jurors(engine, chosen)} & means.keys()
    if not (clinicians <= {*before.clinicians} and jury <= {*before.jury}):
        return None
    changed = set[int]().union(*means.values())
    with reading(engine) as session:
        names = response_names(session, changed)
    flags, nothing = _flags(engine), frozenset[str]()
    rows = before.rows | _rows(means, (before.clinicians, before.jury), names, flags)
    for response, row in rows.items():
        if row.flags != flags.get(response, nothing):
            rows[response] = replace(row, flags=flags.get(response, nothing))
    in_order = {response: rows[response] for response in sorted(rows)}
    return _Rows(at, basis, newest, before.clinicians, before.jury, in_order)


def _rows(
    means: Means,
    raters: tuple[Sequence[int], Sequence[int]],
    names: Mapping[int, tuple[str, str]],
    flags: Mapping[int, frozenset[str]],
) -> dict[int, Compared]:
    """Return a row for each response that anybody of both sides rated, in their order."""
    nothing = frozenset[str]()
    by_clinicians, by_jury = ([means.get(key, {}) for key in keys] for keys in raters)
    return {
        response: _row(
            response,
            names[response],
            _side(by_clinicians, response, needs_all=False),
            _side(by_jury, response, needs_all=True),
            flags.get(response, nothing),
        )
        for response in sorted(set[int]().union(*by_clinicians, *by_jury))
    }


def _jurors(engine: Engine, chosen: Chosen) -> list[int]:
    """Return the jurors who sit."""
    if not chosen.jurors:
        return [*default_jury(engine)]
    named = {(Kind.JUROR, name) for name in chosen.jurors}
    return [key for key, rater in _kinds_of_raters(engine).items() if rater in named]


def _basis(engine: Engine, chosen: Chosen) -> tuple[object, ...]:
    """Return all but ratings that a comparison rests on."""
    with reading(engine) as session:
        rubrics = session.exec(select(Benchmark.name, Benchmark.rubric_sha256)).all()
        training = session.exec(select(Expert.response).distinct()).all()
    called = _raters_called(engine, chosen.clinician) if chosen.clinician else ()
    raters = tuple(sorted(_kinds_of_raters(engine).items()))
    own = tuple(_jurors(engine, chosen)), raters, tuple(sorted(called))
    of_study = tuple(sorted(map(tuple, rubrics))), tuple(sorted(training))
    return (*own, *of_study)


def _newest(engine: Engine) -> int:
    with reading(engine) as session:
        return session.scalar(select(func.max(Rating.id))) or 0


def default_jury(engine: Engine) -> dict[int, str]:
    """Return the jurors who sit where none are chosen.

    Real ones never sit with simulated ones.
    """
    query = select(Rater).where(Rater.kind == Kind.JUROR, HAS_RATED)
    with reading(engine) as session:
        heard = session.exec(query).all()
        seated = [one for one in heard if not one.simulated] or heard
        return {one.id or 0: one.handle for one in seated}


def _row(
    response: int, name: tuple[str, str], clinicians: Side, jury: Side, flags: frozenset[str]
) -> Compared:
    both = clinicians.mean is not None and jury.mean is not None
    difference = (jury.mean or 0.0) - (clinicians.mean or 0.0) if both else None
    return Compared(response, *name, clinicians, jury, difference, flags)


def _side(composites: Sequence[Mapping[int, float]], response: int, *, needs_all: bool) -> Side:
    """Return the mean of those who scored; of a jury (`needs_all`) only if all did."""
    scores = [own[response] for own in composites if response in own]
    missing = needs_all and len(scores) < len(composites)
    return Side(None if missing or not scores else fmean(scores), len(scores), len(composites))


def _means(engine: Engine, chosen: Chosen, since: int | None = None) -> dict[int, dict[int, float]]:
    """Return the composites that count; one with a criterion missing is none.

    `since`: only of responses that have a rating with a greater id.
    """
    among = ("" if since is None else LATER) + ("" if chosen.jury_alone else BY_CLINICIANS)
    query = text(_COMPOSITES.format(among=among, by=""))
    return _read(engine, chosen, query, {} if since is None else {"since": since})


def _has_any(engine: Engine, chosen: Chosen, rater: int) -> bool:
    """Return whether a rater has a composite that counts, on whatever response."""
    query = text(_COMPOSITES.format(among="", by=ONE_RATER))
    return bool(_read(engine, chosen, query, {"rater": rater}))


def _read(
    engine: Engine, chosen: Chosen, query: TextClause, also: Mapping[str, int]
) -> dict[int, dict[int, float]]:
    composites: dict[int, dict[int, float]] = defaultdict(dict)
    with reading(engine) as session:
        for benchmark in benchmarks(engine):
            if chosen.benchmark not in ("", benchmark.name):
                continue
            parameters: dict[str, str | int] = {
                "sha": benchmark.rubric.sha256,
                "third": THIRD,
                "benchmark": benchmark.name,
                "criterion": chosen.criterion,
                "needed": 1 if chosen.criterion else len(benchmark.rubric.criteria),
            }
            for response, rater, mean in session.connection().execute(
                query, {**parameters, **also}
            ):
                composites[rater][response] = float(mean)
    return {rater: own for rater, own in composites.items() if own}


def _standardised(means: Means, analysed: Iterable[int]) -> dict[int, dict[int, float]]:
    """Return z within each rater over the analysed set; raters without spread have none."""
    analysed_set, standardised = set(analysed), dict[int, dict[int, float]]()
    for rater, scores in means.items():
        analysed_scores = {key: score for key, score in scores.items() if key in analysed_set}
        if len(analysed_scores) > 1 and not isclose(
            spread := stdev(analysed_scores.values()), 0.0, abs_tol=1e-12
        ):
            middle = fmean(analysed_scores.values())
            standardised[rater] = {
                key: (score - middle) / spread for key, score in analysed_scores.items()
            }
    return standardised


def _raters_called(engine: Engine, pseudonym: str) -> set[int]:
    with reading(engine) as session:
        return {
            rater.id or 0 for rater in session.exec(select(Rater)) if _pseudonym(rater) == pseudonym
        }


def _kinds_of_raters(engine: Engine) -> dict[int, tuple[str, str]]:
    with reading(engine) as session:
        query = select(Rater.id, Rater.kind, Rater.handle)
        return {key or 0: (kind, name) for key, kind, name in session.exec(query)}


def _flags(engine: Engine) -> dict[int, frozenset[str]]:
    """Return response -> what else was said of it, and whether a juror's call failed."""
    flags_of: dict[int, set[str]] = defaultdict(set)
    with reading(engine) as session:
        connection = session.connection()
        for response, kind in connection.execute(REMARKED):
            flags_of[response].add(kind)
        for response, severity in connection.execute(MARKED):
            flags_of[response] |= {"marked", *([severity] if severity == CRITICAL else [])}
        for (response,) in connection.execute(FAILED):
            flags_of[response].add("failed")
    return {key: frozenset(flags) for key, flags in flags_of.items()}
