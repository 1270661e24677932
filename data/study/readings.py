"""What raters said of responses: scores, comments, flags and marks, in one query.

A rating counts if it is the newest of its kind, was made on the benchmark's present rubric, is not
of a training response, and neither it nor its rater or response was withdrawn; those that settle a
difference count where they are asked for. Where a million rows are read (frames, means, exports), SQL
has the same conditions from here. The table of authors is not read here.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import fmean
from typing import Any

from sqlalchemy import ColumnElement
from sqlmodel import Session, col, select

from data import card
from data.card import FIRST, THIRD
from data.schema import (
    RATED_ON,
    Assignment,
    Benchmark,
    Instance,
    Kind,
    Rater,
    Rating,
    Remark,
    Response,
    Span,
    Submission,
)
from data.study.base import (
    BY_CLINICIAN,
    FOR_STUDY,
    NEWEST_SUBMISSION,
    WITHDRAWN_RATERS,
    WITHDRAWN_SCORES,
    Columns,
    columns_of,
    newest,
)

# What no clinician gave to settle a difference between clinicians; see data/card.py.
INDEPENDENT = col(Rating.pass_) < THIRD


IS_WITHDRAWN = col(Rating.id).in_(WITHDRAWN_SCORES)
NEWEST = newest(Rating) & ~IS_WITHDRAWN
# What was made on the benchmark's present rubric; a metric has none.
ON_PRESENT_RUBRIC = (col(Rater.kind) == Kind.METRIC) | (
    col(Rating.rubric_sha256) == col(Benchmark.rubric_sha256)
)


def rated(*columns: Any) -> Columns:
    """Select from ratings with their response, instance, benchmark and rater, who is not withdrawn."""
    query = columns_of(*columns).select_from(Rating).join(Response).join(Instance)
    return query.join(Benchmark).join(Rater).where(col(Rating.rater).not_in(WITHDRAWN_RATERS))


def counting_ratings(*columns: Any) -> Columns:
    """Select from the independent ratings that count, in the order of storing.

    They are `rated`, and the newest of each. Clinicians' and jurors' count only where they were
    made on the benchmark's present rubric.
    """
    return every_reading(*columns).where(INDEPENDENT)


def every_reading(*columns: Any) -> Columns:
    """Select as `counting_ratings` does, with the readings that settle a difference among them."""
    return rated(*columns).where(ON_PRESENT_RUBRIC, NEWEST).order_by(col(Rating.id))


Key = tuple[int, int, int, int, str | None]
_RATING = (
    *(Rating.response, Rating.rater, Rating.pass_, Rating.replicate, Rating.rubric_sha256),
    *(
        Rating.criterion,
        Rating.score,
        Rating.answer,
        Rating.comment,
        IS_WITHDRAWN,
        Benchmark.rubric_sha256,
    ),
)


class On(StrEnum):
    """Which rubric the ratings that are read were made on.

    PRESENT: the benchmark's present one; metrics have none. CASE: that, and the points of the case,
    whose answers stand apart.
    """

    PRESENT = "present"
    CASE = "case"


_MADE_ON: dict[str, ColumnElement[bool]] = {
    On.PRESENT: ON_PRESENT_RUBRIC,
    On.CASE: col(Rating.rubric_sha256).in_((Benchmark.rubric_sha256, RATED_ON)),
}


@dataclass(slots=True)
class Reading:
    """What one rater said of a response in one reading, or a juror in one verdict.

    Attributes
    ----------
    response, rater
        Primary keys.
    rubric
        SHA-256 of the one it was made on, None for a metric and where nothing was scored.
    scores, comments
        By criterion; one left out is missing, and so is a comment without words.
    instead
        By criterion, what was said in the place of a score: one of `data.card.ANSWERS`.
    answers
        To the points of the case, by name; read with `On.CASE` alone.
    comment, flags, spans
        On the whole, apart from scores (kind and text), and marked: of a clinician's newest submission,
        and read only where words are asked for.
    """

    response: int
    rater: int
    handle: str
    kind: Kind
    simulated: bool
    pass_: int
    replicate: int
    rubric: str | None
    scores: dict[str, float] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)
    answers: dict[str, float] = field(default_factory=dict)
    comment: str = ""
    flags: list[tuple[str, str]] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    instead: dict[str, str] = field(default_factory=dict)

    @property
    def reading(self) -> card.Reading:
        """Whether it was made by itself, or settles a difference."""
        return card.reading_of_pass(self.pass_)

    def is_whole(self, criteria: Collection[str]) -> bool:
        """Return whether exactly these criteria are scored."""
        return self.scores.keys() == {*criteria}

    @property
    def said(self) -> dict[str, card.Score]:
        """Everything that was said on criteria: scores, and what stands in their place."""
        return {**self.scores, **self.instead}


def readings(
    session: Session,
    *,
    responses: Collection[int] | None = None,
    benchmarks: Collection[str] | None = None,
    kinds: Collection[Kind] = tuple(Kind),
    raters: Collection[str] | None = None,
    rubric: str = On.PRESENT,
    first: bool = False,
    words: bool = False,
) -> list[Reading]:
    """Return what raters said of responses, the oldest reading first; never of training responses.

    Parameters
    ----------
    responses, benchmarks, raters
        Primary keys, names and handles; None is all.
    rubric
        Which ratings count, or the SHA-256 of the rubric that they were made on.
    first
        Only clinicians' first readings, without hidden repeats and what settled differences.
    words
        Also comments on the whole, flags and marks. A submission without scores on such a rubric is
        then a reading of its own.
    """
    people = {
        rater.id or 0: rater
        for rater in session.exec(select(Rater).where(col(Rater.kind).in_(kinds)))
        if raters is None or rater.handle in raters
    }
    where = [FOR_STUDY]
    if responses is not None:
        where.append(col(Response.id).in_(responses))
    if benchmarks is not None:
        where.append(col(Instance.benchmark).in_(benchmarks))
    on = _MADE_ON.get(rubric, col(Rating.rubric_sha256) == rubric)
    query = rated(*_RATING).where(*where, col(Rating.rater).in_(people), on)
    found: dict[Key, Reading] = {}
    for *key, criterion, score, answer, comment, is_withdrawn, present in session.execute(
        (query.where(Rating.pass_ == FIRST) if first else query).order_by(col(Rating.id))
    ):
        is_answer = rubric == On.CASE and key[-1] != present
        if is_answer:
            key[-1] = present
        place: Any = tuple(key)
        said = found.get(place) or found.setdefault(place, _empty(people, *key))
        scores = said.answers if is_answer else said.scores
        scores.pop(criterion, None)  # of an older rating
        said.instead.pop(criterion, None)
        if not is_withdrawn:
            (said.instead if answer else scores)[criterion] = answer or score
        if comment and not is_withdrawn:
            said.comments[criterion] = comment
        else:
            said.comments.pop(criterion, None)  # of an older rating
    found = {key: one for key, one in found.items() if one.said or one.answers}
    if words:
        where += [col(Assignment.rater).in_(people)]
        _add_words(session, found, people, [*where, Assignment.pass_ == FIRST] if first else where)
    return list(found.values())


def _empty(people: Mapping[int, Rater], response: int, rater: int, *rest: Any) -> Reading:
    who = people[rater]
    return Reading(response, rater, who.handle, Kind(who.kind), who.simulated, *rest)


def _add_words(
    session: Session,
    found: dict[Key, Reading],
    people: Mapping[int, Rater],
    where: Collection[ColumnElement[bool] | bool],
) -> None:
    """Add what the newest submission of each assignment says beside scores."""
    by_showing: dict[tuple[int, int, int], list[Reading]] = {}
    for one in found.values():
        by_showing.setdefault((one.response, one.rater, one.pass_), []).append(one)
    for model, counts in (
        (Submission, (col(Submission.revision) == NEWEST_SUBMISSION, Submission.comment != "")),
        (Remark, (col(Remark.revision) >= NEWEST_SUBMISSION, BY_CLINICIAN)),
        (Span, (col(Span.revision) == NEWEST_SUBMISSION,)),
    ):
        query = columns_of(Assignment.response, Assignment.rater, Assignment.pass_, model)
        query = query.select_from(Assignment).join(Response).join(Instance).join(model)
        for *showing, row in session.execute(query.where(*where, *counts).order_by(col(model.id))):
            place: Any = tuple(showing)
            if place not in by_showing:
                key: Any = (*showing, 0, None)
                by_showing[place] = [found.setdefault(key, _empty(people, *key))]
            for said in by_showing[place]:
                _add(said, row)


def _add(said: Reading, row: Submission | Remark | Span) -> None:
    if isinstance(row, Submission):
        said.comment = row.comment
    elif isinstance(row, Remark):
        said.flags.append((row.kind, row.text))
    else:
        said.spans.append(row)


def over_verdicts(verdicts: Iterable[Reading]) -> tuple[dict[str, float], dict[str, list[str]]]:
    """Return criterion -> mean score, and criterion -> comments, of several verdicts by one juror."""
    scores, words = defaultdict[str, list[float]](list), defaultdict[str, list[str]](list)
    for one in verdicts:
        for name, score in one.scores.items():
            scores[name].append(score)
        for name, text in one.comments.items():
            words[name].append(text)
    return {name: fmean(points) for name, points in scores.items()}, dict(words)
