"""Where clinicians disagree, who can settle it, and what is shown for a consensus reading.

The table of authors is not read here.
"""

import hashlib
import hmac
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Engine, bindparam, func
from sqlmodel import Session, col, select

from data.card import CONSENSUS, FIRST, SETTLING, THIRD, Reply, Settling
from data.database import reading
from data.person import Person, only
from data.schema import Account, Assignment, Kind, Rater, Rating, Role, Setting, State
from data.study.access import PSEUDONYM_KEY
from data.study.base import response_names
from data.study.readings import INDEPENDENT, readings

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


@only(Role.RESEARCHER, Role.COORDINATOR)
def differences(person: Person, engine: Engine, points: float) -> list[Disagreement]:
    """Return the responses on which clinicians differ by so many points or more, largest first.

    Hidden repeats do not count, nor what was rated on an earlier rubric. None where `points` is 0.
    """
    if points <= 0:
        return []
    with reading(engine) as session:
        widest = _largest_differences(session, points)
        names = response_names(session)
        waits = select(Assignment.response, func.count()).group_by(col(Assignment.response))
        waits = waits.where(Assignment.state == State.OPEN, Assignment.pass_ < THIRD)
        waiting = dict(session.exec(waits).all())
        settled = _settling_readings(session)
    disagreements = [
        Disagreement(key, *names[key], apart, criterion, clinicians, waiting.get(key, 0), *settling)
        for key, (apart, criterion, clinicians) in widest.items()
        for settling in [settled.get(key, (None, False))]
    ]
    return sorted(disagreements, key=lambda response: (-response.points, response.response_id))


@only(Role.RESEARCHER, Role.COORDINATOR)
def has_adjudications(_: Person, engine: Engine) -> bool:
    """Return whether a difference was settled in this study."""
    with reading(engine) as session:
        return session.exec(select(Rating.id).where(~INDEPENDENT).limit(1)).first() is not None


def _largest_differences(session: Session, points: float) -> dict[int, tuple[float, str, int]]:
    """Return response -> largest difference, its criterion, and how many clinicians rated it."""
    scores: dict[tuple[int, str], list[float]] = defaultdict(list)
    for one in readings(session, kinds=[Kind.CLINICIAN], first=True):
        for criterion, score in one.scores.items():
            scores[one.response, criterion].append(score)
    largest: dict[int, tuple[float, str, int]] = {}
    for (response, criterion), given in sorted(scores.items()):
        apart = max(given) - min(given)
        if apart >= points and (response not in largest or apart > largest[response][0]):
            largest[response] = apart, criterion, len(given)
    return largest


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


def other_readings(engine: Engine, rater: int, code: str) -> tuple[Reply, ...]:
    """Return what the others said, never who, for whoever settles a difference by consensus.

    Empty unless `code` is a consensus assignment of this clinician's own. The order is the same
    each time and follows from a key of the study: it tells nothing of who they are. Names of
    clinicians in comments are masked; those of models are `medjury.services.adjudication.others_shown`'s.
    """
    with reading(engine) as session:
        response = session.exec(_MINE, params={"rater": rater, "code": code}).first()
        if response is None:
            return ()
        key = session.get(Setting, PSEUDONYM_KEY)
        handles = session.exec(select(Rater.handle).where(Rater.kind == Kind.CLINICIAN))
        known = (handle for handle in handles if len(handle) >= SHORTEST_NAME)
        names = sorted(known, key=len, reverse=True)
        said = readings(session, responses=[response], kinds=[Kind.CLINICIAN], words=True)
    secret = (key.value if key else "").encode()
    keyed = {
        hmac.new(
            secret, f"{response} {one.rater} {one.pass_}".encode(), hashlib.sha256
        ).digest(): Reply(
            one.said,
            {name: _masked(text, names) for name, text in one.comments.items()},
            _masked(one.comment, names),
        )
        for one in said
        if one.rater != rater and one.pass_ in (FIRST, THIRD) and one.scores
    }
    return tuple(reply for _, reply in sorted(keyed.items()))


def _masked(text: str, clinicians: Iterable[str]) -> str:
    """Return a comment without the clinicians' names in it."""
    for name in clinicians if text else ():
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", NAMED, text, flags=re.IGNORECASE)
    return text


def comments_on(engine: Engine, responses: Iterable[int]) -> dict[int, list[str]]:
    """Return response -> what clinicians wrote on it: what a consensus reading would show."""
    comments: dict[int, list[str]] = defaultdict(list)
    with reading(engine) as session:
        for one in readings(session, responses=list(responses), kinds=[Kind.CLINICIAN], words=True):
            comments[one.response] += filter(None, [*one.comments.values(), one.comment])
    return dict(comments)
