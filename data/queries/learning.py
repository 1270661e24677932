"""What juries learn from: responses with all that clinicians said of them, and what was learned.

The table of authors is not read here.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.card import Card
from data.database import reading
from data.queries.base import (
    FOR_STUDY,
    INDEPENDENT,
    NEWEST,
    NEWEST_SUBMISSION,
    Columns,
    card,
    columns_of,
    rated,
    shown,
)
from data.rubric import Rubric
from data.schema import (
    Assignment,
    Attempt,
    Improvement,
    Instance,
    Kind,
    Purpose,
    Rater,
    Rating,
    Response,
    RubricText,
    Span,
    Status,
    Submission,
)

LEARNING = ("train", "choose")  # parts of a split that a rubric has seen


@dataclass(frozen=True, slots=True)
class Learned:
    """What a juror reads instead of the clinicians' rubric.

    Attributes
    ----------
    rubric
        None where it reads the clinicians' own.
    ancestors
        SHA-256 of the rubrics it was made from, the nearest first.
    responses
        Primary keys of those it was learned from or chosen by: figures on them would flatter it.
    """

    rubric: Rubric | None = None
    ancestors: tuple[str, ...] = ()
    responses: frozenset[int] = frozenset()


UNLEARNED = Learned()


@dataclass(frozen=True, slots=True)
class Said:
    """What one clinician said of a response beside scores: comments and marks, in their words.

    `by_criterion`: criterion -> comment. `marks`: criterion, the words marked, error, note.
    """

    by_criterion: Mapping[str, str] = field(default_factory=dict)
    whole: str = ""
    marks: tuple[tuple[str, str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RatedResponse:
    """A response that clinicians rated whole, as jurors get it, with what they gave and said.

    Attributes
    ----------
    response, instance
        Primary keys.
    scores
        Clinician -> criterion -> score, of those who scored every criterion.
    said
        Clinician -> comments and marks.
    """

    response: int
    response_id: str
    instance: int
    benchmark: str
    card: Card
    scores: Mapping[str, Mapping[str, float]]
    said: Mapping[str, Said] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ImprovementView:
    """An improvement as the study keeps it; `split` by part, instances by primary key."""

    id: int
    at: datetime
    rubric_sha256: str
    asked: Mapping[str, Any]
    split: Mapping[str, Sequence[int]]
    opened: datetime | None
    learned: str | None
    result: Mapping[str, Any]


def improvements(engine: Engine) -> list[ImprovementView]:
    """Return all improvements of a study, the oldest first."""
    with reading(engine) as session:
        return [
            _view(row) for row in session.exec(select(Improvement).order_by(col(Improvement.id)))
        ]


def _view(row: Improvement) -> ImprovementView:
    return ImprovementView(
        *(row.id, row.at, row.rubric_sha256, row.asked, row.split, row.opened, row.learned),
        row.result,
    )


def stored_rubric(engine: Engine, sha256: str) -> Rubric | None:
    """Return a rubric that the study keeps, by its SHA-256."""
    with reading(engine) as session:
        return _stored(session, sha256)


def _stored(session: Session, sha256: str) -> Rubric | None:
    row = session.get(RubricText, sha256)
    return None if row is None else Rubric.from_json(row.body)


def learned_rubric(engine: Engine, sha256: str) -> Learned:
    """Return a rubric that was learned, with all that it and its ancestors were learned from.

    One that the study does not keep has no rubric and no ancestors.
    """
    with reading(engine) as session:
        rubric = _stored(session, sha256)
        line, above = [], rubric
        while above is not None and above.parent and above.parent not in line:
            line.append(above.parent)
            above = _stored(session, above.parent)
        rows = session.exec(
            select(Improvement).where(col(Improvement.learned).in_([sha256, *line]))
        )
        seen = {key for row in rows for part in LEARNING for key in row.split.get(part, ())}
        query = select(Response.id).where(col(Response.instance).in_(sorted(seen)))
        keys = frozenset(key for key in session.exec(query) if key is not None)
    return Learned(rubric, tuple(line), keys)


def rated_responses(engine: Engine, benchmark: str, rubric: Rubric) -> list[RatedResponse]:
    """Return the responses of a benchmark that clinicians rated whole on a rubric, by primary key.

    First readings, hidden repeats and what settled differences left out; training responses too.
    """
    with reading(engine) as session:
        scores, comments = _scores(session, benchmark, rubric)
        said = _said(session, benchmark, comments)
        texts = shown(Response.id, Response.response_id, Instance.id).where(
            Instance.benchmark == benchmark, col(Response.id).in_(sorted(scores))
        )
        rows = session.exec(texts.order_by(col(Response.id))).all()
    return [
        RatedResponse(
            *(key, name, instance, benchmark, card(name, list(words), rubric)),
            scores[key],
            said.get(key, {}),
        )
        for *words, key, name, instance in rows
    ]


def _scores(
    session: Session, benchmark: str, rubric: Rubric
) -> tuple[dict[int, dict[str, dict[str, float]]], dict[tuple[int, str], dict[str, str]]]:
    """Return response -> clinician -> criterion -> score, and (response, clinician) -> comments."""
    wanted = (Rating.response, Rater.handle, Rating.criterion, Rating.score, Rating.comment)
    query = rated(*wanted).where(
        FOR_STUDY, INDEPENDENT, NEWEST, Rater.kind == Kind.CLINICIAN, Rating.pass_ == 0,
        Instance.benchmark == benchmark, Rating.rubric_sha256 == rubric.sha256,
    )  # fmt: skip
    given: dict[tuple[int, str], dict[str, float]] = {}
    comments: dict[tuple[int, str], dict[str, str]] = {}
    for response, rater, criterion, score, comment in session.exec(query.order_by(col(Rating.id))):
        given.setdefault((response, rater), {})[criterion] = score
        if comment:
            comments.setdefault((response, rater), {})[criterion] = comment
    scores: dict[int, dict[str, dict[str, float]]] = {}
    for (response, rater), by_criterion in sorted(given.items()):
        if set(by_criterion) == set(rubric.criteria):
            scores.setdefault(response, {})[rater] = by_criterion
    return scores, comments


def _said(
    session: Session, benchmark: str, comments: Mapping[tuple[int, str], dict[str, str]]
) -> dict[int, dict[str, Said]]:
    """Return response -> clinician -> what they said beside scores, in their newest submission."""
    whole: dict[tuple[int, str], str] = {}
    query = _first_readings(benchmark, Submission.comment).join(Submission)
    query = query.where(col(Submission.revision) == NEWEST_SUBMISSION)
    for response, rater, comment in session.exec(query):
        if comment:
            whole[response, rater] = comment
    marks: dict[tuple[int, str], list[tuple[str, str, str, str]]] = {}
    query = _first_readings(benchmark, Span.criterion, Span.text, Span.error, Span.note).join(Span)
    query = query.where(col(Span.revision) == NEWEST_SUBMISSION).order_by(col(Span.id))
    for response, rater, criterion, words, error, note in session.exec(query):
        marks.setdefault((response, rater), []).append((criterion, words, error, note))
    said: dict[int, dict[str, Said]] = {}
    for key in sorted({*comments, *whole, *marks}):
        told = Said(comments.get(key, {}), whole.get(key, ""), tuple(marks.get(key, ())))
        said.setdefault(key[0], {})[key[1]] = told
    return said


def _first_readings(benchmark: str, *columns: Any) -> Columns:
    """Select columns beside response and clinician of a benchmark's first readings."""
    query = columns_of(Assignment.response, Rater.handle, *columns).select_from(Assignment)
    query = query.join(Response).join(Instance).join(Rater)
    return query.where(Instance.benchmark == benchmark, Assignment.pass_ == 0, FOR_STUDY)


def responses_among(engine: Engine, keys: Collection[int], benchmarks: Collection[str]) -> int:
    """Return how many of some responses, primary keys, are of some benchmarks; no training ones."""
    if not keys:
        return 0
    query = select(Response.id).join(Instance).where(col(Instance.benchmark).in_(benchmarks))
    with reading(engine) as session:
        found: set[int | None] = set(session.exec(query.where(FOR_STUDY)))
    return len(found.intersection(keys))


@dataclass(frozen=True, slots=True)
class ProposedRubric:
    """What came of the last question for a rubric in one round; `rubric` None where none came."""

    round: int
    status: Status
    reason: str
    rubric: Rubric | None


def proposed_rubrics(engine: Engine, improvement: int) -> dict[int, ProposedRubric]:
    """Return round -> what came of the last question in it, of one improvement."""
    query = (
        select(Attempt)
        .where(Attempt.purpose == Purpose.RUBRIC, Attempt.improvement == improvement)
        .order_by(col(Attempt.id))
    )
    rounds = {}
    with reading(engine) as session:
        for row in session.exec(query):
            body = session.get_one(RubricText, row.answer["rubric"]).body if row.answer else None
            rubric = Rubric.from_json(body) if body else None
            rounds[row.round or 0] = ProposedRubric(row.round or 0, row.status, row.reason, rubric)
    return rounds


@dataclass(frozen=True, slots=True)
class JurorVerdict:
    """What a juror gave a response on one rubric: means over replicates, and its explanations."""

    scores: Mapping[str, float]
    words: tuple[str, ...] = ()


def juror_verdicts(
    engine: Engine, jurors: Collection[str], rubric: Rubric, benchmarks: Collection[str]
) -> dict[int, dict[str, JurorVerdict]]:
    """Return response -> juror -> verdict, of verdicts that have every criterion of the rubric."""
    query = rated(
        *(Rating.response, Rater.handle, Rating.criterion, Rating.score, Rating.comment)
    ).where(
        FOR_STUDY, NEWEST, Rater.kind == Kind.JUROR, col(Rater.handle).in_(jurors),
        col(Instance.benchmark).in_(benchmarks), Rating.rubric_sha256 == rubric.sha256,
    )  # fmt: skip
    given: dict[tuple[int, str], dict[str, list[float]]] = {}
    words: dict[tuple[int, str], list[str]] = {}
    with reading(engine) as session:
        for response, juror, criterion, score, comment in session.exec(
            query.order_by(col(Rating.id))
        ):
            given.setdefault((response, juror), {}).setdefault(criterion, []).append(score)
            if comment:
                words.setdefault((response, juror), []).append(f"{criterion}: {comment}")
    verdicts: dict[int, dict[str, JurorVerdict]] = {}
    for key, scores in given.items():
        if set(scores) == set(rubric.criteria):
            means = {name: sum(scores[name]) / len(scores[name]) for name in rubric.criteria}
            verdict = JurorVerdict(means, tuple(words.get(key, ())))
            verdicts.setdefault(key[0], {})[key[1]] = verdict
    return verdicts
