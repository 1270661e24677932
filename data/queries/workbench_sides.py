"""What each juror of two juries said of one response, for their scores to stand side by side."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import reading
from data.person import Person, only
from data.queries.base import FOR_STUDY
from data.queries.workbench import STEER
from data.queries.workbench_juries import JurySide, Part, TwoJuries, of_side, parts_of
from data.schema import Attempt, Instance, Rater, Rating, Response, Status


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
    explanations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
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


@only(*STEER)
def jurors_on(person: Person, engine: Engine, asked: TwoJuries, response: int) -> SidesOn | None:
    """Return what each juror of both sides said of a response; None where nothing is compared."""
    parts = parts_of(engine, asked)
    with reading(engine) as session:
        place = select(Instance.benchmark).join(Response).where(Response.id == response, FOR_STUDY)
        name = session.exec(place).first()
        part = next((part for part in parts if part.benchmark.name == name), None)
        if part is None:
            return None
        first, second = (
            _said(session, part, side, n, response) for n, side in enumerate(asked.sides)
        )
        return SidesOn(first, second, part.criteria, part.averaged, part.same_scale)


def _said(
    session: Session, part: Part, side: JurySide, place: int, response: int
) -> tuple[JurorOn, ...]:
    """Return what one side's jurors said of a response; of a jury by name, all its jurors."""
    query = select(Rating).order_by(col(Rating.replicate), col(Rating.id))
    ratings: dict[int, list[Rating]] = defaultdict(list)
    for rating in session.scalars(
        of_side(query, part, side, place).where(Rating.response == response)
    ):
        ratings[rating.rater].append(rating)
    ends = _ends(session, part, side, place, response)
    raters = select(Rater).where(col(Rater.id).in_(part.raters[place])).order_by(Rater.handle)
    return tuple(
        _juror(rater, ratings[key], ends.get(key, ""))
        for rater in session.exec(raters)
        for key in [rater.id or 0]
        if side.jurors or ratings[key] or key in ends
    )


def _juror(rater: Rater, ratings: Sequence[Rating], end: str) -> JurorOn:
    scores: dict[str, list[float]] = defaultdict(list)
    words: dict[str, list[str]] = defaultdict(list)
    for rating in ratings:
        scores[rating.criterion].append(rating.score)
        if rating.comment:
            words[rating.criterion].append(rating.comment)
    return JurorOn(
        rater.handle,
        rater.simulated,
        {name: fmean(points) for name, points in scores.items()},
        {name: tuple(texts) for name, texts in words.items()},
        "" if ratings or end == Status.OK else end,
    )


def _ends(
    session: Session, part: Part, side: JurySide, place: int, response: int
) -> dict[int, str]:
    """Return how the last call to each juror about a response ended."""
    query = select(Attempt.rater, Attempt.status).where(
        Attempt.response == response,
        Attempt.rubric_sha256 == part.rubrics[place],
        col(Attempt.rater).in_(part.raters[place]),
    )
    if side.verdict is not None:
        query = query.where(Attempt.replicate == side.verdict)
    ended = session.exec(query.order_by(col(Attempt.id)))
    return {rater: str(status) for rater, status in ended}
