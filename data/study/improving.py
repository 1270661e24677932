"""Improvements of juries: what they learn from, the split fixed first, what was learned and chosen.

The table of authors is not read here.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.card import Card
from data.database import reading, transaction
from data.record import log, refuse_locked
from data.rubric import Rubric
from data.schema import (
    Attempt,
    Improvement,
    Instance,
    Kind,
    Purpose,
    Response,
    RubricText,
    Status,
    now,
)
from data.study.base import FOR_STUDY, card, shown
from data.study.readings import Reading, over_verdicts, readings
from data.study.rubrics import keep_rubric, rubrics_known

BEGUN, CHOSEN, OPENED, ENDED = (
    "improvement begun",
    "rubric learned",
    "test part opened",
    "improvement ended",
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
class RatedResponse:
    """A response as jurors get it, with the first readings of clinicians who rated it whole.

    `response` and `instance` are primary keys.
    """

    response: int
    response_id: str
    instance: int
    benchmark: str
    card: Card
    readings: tuple[Reading, ...]


def improvements(engine: Engine) -> list[Improvement]:
    """Return all improvements of a study, the oldest first."""
    with reading(engine) as session:
        return list(session.exec(select(Improvement).order_by(col(Improvement.id))))


def learned_rubric(engine: Engine, sha256: str) -> Learned:
    """Return a rubric that was learned, with all that it and its ancestors were learned from.

    One that the study does not keep has no rubric and no ancestors.
    """
    known = rubrics_known(engine)
    line, above = list[str](), known.get(sha256)
    while above is not None and above.parent and above.parent not in line:
        line.append(above.parent)
        above = known.get(above.parent)
    with reading(engine) as session:
        learned = col(Improvement.learned).in_([sha256, *line])
        rows = session.exec(select(Improvement).where(learned))
        seen = {key for row in rows for part in LEARNING for key in row.split.get(part, ())}
        query = select(Response.id).where(col(Response.instance).in_(sorted(seen)))
        keys = frozenset(key for key in session.exec(query) if key is not None)
    return Learned(known.get(sha256), tuple(line), keys)


def rated_responses(engine: Engine, benchmark: str, rubric: Rubric) -> list[RatedResponse]:
    """Return the responses of a benchmark that clinicians rated whole on a rubric, by primary key.

    First readings; hidden repeats, what settled differences and training responses are left out.
    """
    said: dict[int, list[Reading]] = {}
    with reading(engine) as session:
        for one in readings(
            session,
            benchmarks=[benchmark],
            kinds=[Kind.CLINICIAN],
            rubric=rubric.sha256,
            first=True,
            words=True,
        ):
            if one.is_whole(rubric.criteria):
                said.setdefault(one.response, []).append(one)
        texts = shown(Response.id, Response.response_id, Instance.id)
        rows = session.exec(
            texts.where(col(Response.id).in_(said)).order_by(col(Response.id))
        ).all()
    return [
        RatedResponse(
            *(key, name, instance, benchmark, card(name, list(words), rubric)),
            tuple(sorted(said[key], key=lambda one: one.handle)),
        )
        for *words, key, name, instance in rows
    ]


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
    given: dict[tuple[int, str], list[Reading]] = {}
    with reading(engine) as session:
        for one in readings(
            session,
            benchmarks=benchmarks,
            kinds=[Kind.JUROR],
            raters=jurors,
            rubric=rubric.sha256,
        ):
            given.setdefault((one.response, one.handle), []).append(one)
    verdicts: dict[int, dict[str, JurorVerdict]] = {}
    for (response, juror), replicates in given.items():
        scores, words = over_verdicts(replicates)
        if scores.keys() >= {*rubric.criteria}:
            texts = tuple(f"{name}: {text}" for name, texts in words.items() for text in texts)
            verdicts.setdefault(response, {})[juror] = JurorVerdict(scores, texts)
    return verdicts


def begin_improvement(
    engine: Engine, rubric: Rubric, asked: Mapping[str, Any], split: Mapping[str, Sequence[int]]
) -> int:
    """Store what is asked for and the split, which is never changed; return the primary key."""
    with transaction(engine) as session:
        refuse_locked(session)
        row = Improvement(
            rubric_sha256=keep_rubric(session, rubric),
            asked=dict(asked),
            split={part: list(keys) for part, keys in split.items()},
        )
        session.add(row)
        session.flush()
        _log(session, BEGUN, row)
        return row.id


def keep_learned(engine: Engine, improvement: int, rubric: Rubric) -> None:
    """Store the rubric that was chosen; nothing chosen later takes its place."""
    with transaction(engine) as session:
        refuse_locked(session)
        row = session.get_one(Improvement, improvement)
        row.learned = keep_rubric(session, rubric)
        _log(session, CHOSEN, row)


def open_test(engine: Engine, improvement: int) -> None:
    """Note that the test part is looked at, before it is."""
    with transaction(engine) as session:
        refuse_locked(session)
        row = session.get_one(Improvement, improvement)
        row.opened = row.opened or now()
        _log(session, OPENED, row)


def end_improvement(engine: Engine, improvement: int, result: Mapping[str, Any]) -> None:
    """Store the figures."""
    with transaction(engine) as session:
        refuse_locked(session)
        row = session.get_one(Improvement, improvement)
        row.result = dict(result)
        _log(session, ENDED, row)


def _log(session: Session, action: str, row: Improvement) -> None:
    session.add(row)
    session.flush()
    detail = {"improvement": row.id, "learned": row.learned}
    log(session, "researcher", action, detail)
