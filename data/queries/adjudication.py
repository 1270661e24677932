"""Where clinicians disagree, who can settle it, and what is shown for a consensus reading.

The table of authors is not read here.
"""

import hashlib
import hmac
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Engine, bindparam, func
from sqlmodel import Session, col, select

from data.card import CONSENSUS, FIRST, SETTLING, THIRD, Settling
from data.database import reading
from data.person import Person, asking, only
from data.queries.base import (
    FOR_STUDY,
    INDEPENDENT,
    NEWEST_SUBMISSION,
    columns_of,
    counting_ratings,
    every_reading,
    response_names,
)
from data.schema import (
    Account,
    Assignment,
    Kind,
    Rater,
    Rating,
    Role,
    Setting,
    State,
    Submission,
)
from data.study.access import PSEUDONYM_KEY

SHORTEST_NAME = 3  # a clinician's name of fewer signs may be any word
NAMED = "[a clinician]"
_MINE = select(Assignment.response).where(
    col(Assignment.rater) == bindparam("rater"),
    col(Assignment.code) == bindparam("code"),
    Assignment.pass_ == CONSENSUS,
    Assignment.state != State.RECUSED,
)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A response (primary key) on which clinicians who rated by themselves differ.

    Attributes
    ----------
    points, criterion
        The largest difference between two of them on any criterion, and on which.
    clinicians
        How many rated it.
    waits_for
        Independent readings of it that are still to come: it is not settled before.
    reading, is_done
        Which reading settles it, None where none is given out; whether that was made.
    """

    response: int
    response_id: str
    benchmark: str
    points: float
    criterion: str
    clinicians: int
    waits_for: int = 0
    reading: Settling | None = None
    is_done: bool = False

    @property
    def is_ready(self) -> bool:
        """Whether a reading that settles it can be given out now."""
        return self.reading is None and not self.waits_for


@dataclass(frozen=True, slots=True)
class Pool:
    """Who can settle which difference.

    Attributes
    ----------
    clinicians
        Handles of those who can be given work, by name.
    touched
        Response -> handles that rated it, or were ever given it.
    barred
        Response -> handles that gave it back, or were given a reading that settles it before.
    settling, open_
        Handle -> readings that settle a difference they were given, and all open work of theirs.
    """

    clinicians: tuple[str, ...]
    touched: Mapping[int, frozenset[str]]
    barred: Mapping[int, frozenset[str]]
    settling: Mapping[str, int]
    open_: Mapping[str, int]

    def able(self, response: int, reading: Settling) -> list[str]:
        """Return who may settle a response by such a reading.

        By a third one: nobody who rated it, or was ever given it. By consensus: those who
        rated it too, but nobody who gave it back.
        """
        excluded = self.touched if reading == "third" else self.barred
        return [
            handle
            for handle in self.clinicians
            if handle not in excluded.get(response, frozenset())
        ]


@dataclass(frozen=True, slots=True)
class OtherReading:
    """What another clinician made of a response by themselves; never who.

    Attributes
    ----------
    scores, comments
        By criterion; `comments` has those that were made.
    comment
        On the response as a whole, "" where there is none.
    """

    scores: Mapping[str, float]
    comments: Mapping[str, str]
    comment: str = ""


def differences(engine: Engine, points: float) -> list[Disagreement]:
    """Return the responses on which clinicians differ by so many points or more, largest first.

    Hidden repeats do not count, nor what was rated on an earlier rubric. None where `points` is 0.
    """
    if points <= 0:
        return []
    widest = _largest_differences(engine, points)
    with reading(engine) as session:
        names = response_names(session)
        waiting = _open_readings(session)
        settled = _settling_readings(session)
    disagreements = [
        Disagreement(key, *names[key], apart, criterion, clinicians, waiting.get(key, 0), *settling)
        for key, (apart, criterion, clinicians) in widest.items()
        for settling in [settled.get(key, (None, False))]
    ]
    return sorted(disagreements, key=lambda response: (-response.points, response.response_id))


# Return where clinicians differ, for those who steer the study.
differences_of = asking(differences, Role.RESEARCHER, Role.COORDINATOR)


@only(Role.RESEARCHER, Role.COORDINATOR)
def has_adjudications(_: Person, engine: Engine) -> bool:
    """Return whether a difference was settled in this study."""
    with reading(engine) as session:
        return session.exec(select(Rating.id).where(~INDEPENDENT).limit(1)).first() is not None


def _largest_differences(engine: Engine, points: float) -> dict[int, tuple[float, str, int]]:
    """Return response -> largest difference, its criterion, and how many clinicians rated it."""
    score, criterion = col(Rating.score), col(Rating.criterion)
    apart = func.max(score) - func.min(score)
    query: Any = (
        counting_ratings(Rating.response, criterion, apart, func.count(func.distinct(Rating.rater)))
        .where(FOR_STUDY, Rater.kind == Kind.CLINICIAN, Rating.pass_ == FIRST)
        .group_by(col(Rating.response), criterion)
        .having(apart >= points)
        .order_by(None)
        .order_by(col(Rating.response), criterion)
    )
    largest: dict[int, tuple[float, str, int]] = {}
    with reading(engine) as session:
        for response, name, difference, clinicians in session.exec(query):
            if response not in largest or difference > largest[response][0]:
                largest[response] = float(difference), name, clinicians
    return largest


def _open_readings(session: Session) -> dict[int, int]:
    """Return response -> independent readings that are still open."""
    query = (
        select(Assignment.response, func.count())
        .where(Assignment.state == State.OPEN, Assignment.pass_ < THIRD)
        .group_by(col(Assignment.response))
    )
    return dict(session.exec(query).all())


def _settling_readings(session: Session) -> dict[int, tuple[Settling, bool]]:
    """Return response -> which reading settles it, and whether that was made."""
    open_readings = select(Assignment.response, Assignment.pass_).where(
        Assignment.pass_ >= THIRD, Assignment.state == State.OPEN
    )
    finished_readings = select(Rating.response, Rating.pass_).where(~INDEPENDENT).distinct()
    settled: dict[int, tuple[Settling, bool]] = {}
    for query, is_done in ((open_readings, False), (finished_readings, True)):
        for response, pass_ in session.exec(query.order_by(col(query.selected_columns[1]))):
            settled[response] = (SETTLING[pass_ != THIRD], is_done)
    return settled


def pool(engine: Engine) -> Pool:
    """Return who can settle differences, and what each has done and has open."""
    can_rate = (
        select(Rater.handle)
        .join(Account)
        .where(Account.role == Role.CLINICIAN, col(Account.ended).is_(None))
        .where(col(Rater.simulated).is_(False))
        .order_by(Rater.handle)
    )
    assigned = select(Rater.handle, Assignment.response, Assignment.pass_, Assignment.state).join(
        Assignment
    )
    rated = select(Rater.handle, Rating.response).join(Rating).where(Rater.kind == Kind.CLINICIAN)
    touched, barred = defaultdict[int, set[str]](set), defaultdict[int, set[str]](set)
    settling, open_ = defaultdict[str, int](int), defaultdict[str, int](int)
    with reading(engine) as session:
        for handle, response, pass_, state in session.exec(assigned):
            touched[response].add(handle)
            open_[handle] += state == State.OPEN
            settling[handle] += pass_ >= THIRD and state != State.RECUSED
            if pass_ >= THIRD or state == State.RECUSED:
                barred[response].add(handle)
        for handle, response in session.exec(rated.distinct()):
            touched[response].add(handle)
        clinicians = tuple(session.exec(can_rate))
    return Pool(clinicians, _frozen_sets(touched), _frozen_sets(barred), settling, open_)


def _frozen_sets(sets: Mapping[int, set[str]]) -> dict[int, frozenset[str]]:
    return {key: frozenset(handles) for key, handles in sets.items()}


@dataclass
class _GatheredScores:
    """What is gathered of one reading."""

    scores: dict[str, float] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)


def other_readings(engine: Engine, rater: int, code: str) -> tuple[OtherReading, ...]:
    """Return what the others said, for whoever settles a difference by consensus.

    Empty unless `code` is a consensus assignment of this clinician's own. The order is the same
    each time and follows from a key of the study: it tells nothing of who they are. Names of
    clinicians in comments are masked; those of models are `annotate.adjudicate.others_shown`'s.
    """
    with reading(engine) as session:
        response = session.exec(_MINE, params={"rater": rater, "code": code}).first()
        if response is None:
            return ()
        key = session.get(Setting, PSEUDONYM_KEY)
        clinicians = _names_of_clinicians(session)
        comments = _comments_on_whole(session, response)
        readings = _other_readings(session, response, rater)
    secret = (key.value if key else "").encode()
    keyed = [
        (
            hmac.new(secret, f"{response} {rater} {pass_}".encode(), hashlib.sha256).digest(),
            OtherReading(
                gathered.scores,
                {name: _masked(text, clinicians) for name, text in gathered.comments.items()},
                _masked(comments.get((rater, pass_), ""), clinicians),
            ),
        )
        for (rater, pass_), gathered in readings.items()
    ]
    return tuple(other for _, other in sorted(keyed, key=lambda entry: entry[0]))


def _other_readings(
    session: Session, response: int, except_rater: int
) -> dict[tuple[int, int], _GatheredScores]:
    """Return (rater, pass) -> what counts of the other clinicians' first and third readings."""
    query = every_reading(
        *(Rating.rater, Rating.pass_, Rating.criterion, Rating.score, Rating.comment)
    ).where(
        Rating.response == response,
        Rating.rater != except_rater,
        Rater.kind == Kind.CLINICIAN,
        col(Rating.pass_).in_((FIRST, THIRD)),
    )
    readings: dict[tuple[int, int], _GatheredScores] = defaultdict(_GatheredScores)
    for rater, pass_, criterion, score, comment in session.exec(query):
        gathered = readings[rater, pass_]
        gathered.scores[criterion] = score
        if comment:
            gathered.comments[criterion] = comment
    return readings


def _comments_on_whole(session: Session, response: int) -> dict[tuple[int, int], str]:
    """Return (rater, pass) -> the comment on the whole of each newest submission."""
    query = (
        columns_of(Assignment.rater, Assignment.pass_, Submission.comment)
        .join(Submission)
        .where(Assignment.response == response, Assignment.state == State.DONE)
        .where(Submission.revision == NEWEST_SUBMISSION)
    )
    return {(rater, pass_): comment for rater, pass_, comment in session.exec(query)}


def _names_of_clinicians(session: Session) -> list[str]:
    """Return what is masked in comments: clinicians' handles, the longest first."""
    query = select(Rater.handle).where(Rater.kind == Kind.CLINICIAN)
    return sorted(
        (handle for handle in session.exec(query) if len(handle) >= SHORTEST_NAME), key=len
    )[::-1]


def _masked(text: str, clinicians: Iterable[str]) -> str:
    """Return a comment without the clinicians' names in it."""
    for name in clinicians if text else ():
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", NAMED, text, flags=re.IGNORECASE)
    return text


def comments_on(engine: Engine, responses: Iterable[int]) -> dict[int, list[str]]:
    """Return response -> all that clinicians wrote on it: what a consensus reading would show."""
    keys = list(responses)
    of_criteria = (
        select(Rating.response, Rating.comment)
        .join(Rater)
        .where(Rater.kind == Kind.CLINICIAN, Rating.comment != "")
    )
    of_submissions = (
        select(Assignment.response, Submission.comment)
        .join(Submission)
        .where(Submission.comment != "")
    )
    comments: dict[int, list[str]] = defaultdict(list)
    with reading(engine) as session:
        for query, column in (
            (of_criteria, Rating.response),
            (of_submissions, Assignment.response),
        ):
            for response, text in session.exec(query.where(col(column).in_(keys))):
                comments[response].append(text)
    return dict(comments)
