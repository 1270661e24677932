"""Claims of responses as the study has them: the list that counts, what jurors said, and what it cost.

Nothing that serves raters before they have rated reads this, and the table of authors is not read.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, func
from sqlmodel import Session, col, select

from data.card import FIRST, Card
from data.claims import CLAIMS, Claim, claims_rubric, coverage
from data.database import reading
from data.person import Person, only
from data.queries.base import FOR_STUDY, NEWEST, card, columns_of, shown
from data.queries.people import names_of_actors
from data.rubric import Rubric
from data.schema import (
    Assignment,
    Attempt,
    Benchmark,
    ClaimList,
    ClaimOrigin,
    ClaimSplit,
    Instance,
    Kind,
    Rater,
    Rating,
    Response,
    Role,
    RubricText,
    State,
)

_NEWEST_LIST = select(func.max(ClaimList.id)).group_by(
    col(ClaimList.response), col(ClaimList.splitter)
)


@dataclass(frozen=True, slots=True)
class StoredClaims:
    """The list of a response (primary key) that counts; `versions` are all there have been."""

    response: int
    claims: tuple[Claim, ...]
    origin: ClaimOrigin
    versions: int = 1


def newest_claims(engine: Engine, splitter: int, benchmark: str) -> dict[int, StoredClaims]:
    """Return response -> the list that counts, of a splitter (primary key) on a benchmark."""
    versions = (
        select(ClaimList.response, func.count())
        .where(ClaimList.splitter == splitter)
        .group_by(col(ClaimList.response))
    )
    query = (
        columns_of(ClaimList.response, ClaimList.claims, ClaimList.origin)
        .select_from(ClaimList)
        .join(Response)
        .join(Instance)
        .where(Instance.benchmark == benchmark, ClaimList.splitter == splitter)
        .where(col(ClaimList.id).in_(_NEWEST_LIST))
    )
    with reading(engine) as session:
        number = dict(session.exec(versions).all())
        return {
            response: StoredClaims(response, _claims(stored), ClaimOrigin(origin), number[response])
            for response, stored, origin in session.execute(query)
        }


def _claims(stored: Sequence[Mapping[str, Any]]) -> tuple[Claim, ...]:
    return tuple(Claim.model_validate(one) for one in stored)


def rated_by(engine: Engine, rater: int) -> set[tuple[int, str]]:
    """Return (response, SHA-256 of a rubric) wherever a juror has given ratings."""
    query = (
        select(Rating.response, Rating.rubric_sha256)
        .where(Rating.rater == rater, Rating.pass_ == FIRST, Rating.replicate == 0)
        .distinct()
    )
    with reading(engine) as session:
        return {(response, sha or "") for response, sha in session.exec(query)}


def whole_verdicts(engine: Engine, rater: int, rubric: Rubric) -> dict[int, dict[str, float]]:
    """Return response -> criterion -> score of a juror's first verdicts that have every criterion."""
    query = (
        select(Rating.response, Rating.criterion, Rating.score)
        .where(Rating.rater == rater, Rating.rubric_sha256 == rubric.sha256)
        .where(Rating.pass_ == FIRST, Rating.replicate == 0, NEWEST)
    )
    scores: dict[int, dict[str, float]] = {}
    with reading(engine) as session:
        for response, criterion, score in session.exec(query):
            scores.setdefault(response, {})[criterion] = score
    return {key: own for key, own in scores.items() if set(rubric.criteria) <= set(own)}


@dataclass(frozen=True, slots=True)
class Spent:
    """What some calls cost: `unknown` of the `calls` have no known price."""

    usd: float = 0.0
    calls: int = 0
    unknown: int = 0

    def plus(self, other: "Spent") -> "Spent":
        """Return the sum."""
        return Spent(self.usd + other.usd, self.calls + other.calls, self.unknown + other.unknown)


def spent_on(
    engine: Engine,
    table: type[Attempt] | type[ClaimSplit],
    raters: Collection[int],
    responses: Collection[int],
) -> Spent:
    """Return what calls of some raters about some responses cost, those in vain among them."""
    query = columns_of(table.response, table.usd).where(
        col(table.rater).in_(raters), table.number > 0
    )
    with reading(engine) as session:
        own = [usd for response, usd in session.execute(query) if response in responses]
    known = [usd for usd in own if usd is not None]
    return Spent(sum(known), len(own), len(own) - len(known))


def split_failures(engine: Engine, splitter: int) -> dict[int, tuple[str, str]]:
    """Return response -> (status, reason) of the last call for its claims, where there is no list."""
    have = select(ClaimList.response).where(ClaimList.splitter == splitter)
    query = (
        select(ClaimSplit.response, ClaimSplit.status, ClaimSplit.reason)
        .where(ClaimSplit.rater == splitter, col(ClaimSplit.response).not_in(have))
        .order_by(col(ClaimSplit.id))
    )
    with reading(engine) as session:
        return {response: (str(status), reason) for response, status, reason in session.exec(query)}


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """What a juror answered to a claim, and the words of the material that decide."""

    answer: float
    evidence: str


@dataclass(frozen=True, slots=True)
class JudgedClaims:
    """The claims of one response by one splitter, with what jurors said of those that count.

    Attributes
    ----------
    response
        Its primary key.
    splitter
        Its name in the study.
    author
        Who made the list; to coordinators an account's own name.
    verdicts
        Juror -> claim's number, from 0 -> verdict; only on this version of the list.
    derived
        Juror -> the score that was derived on this version.
    outdated
        Jurors whose score on an earlier version counts no longer: the next run asks them again.
    coverage
        Share of the response's words, 0 to 1, that the claims quote.
    """

    response: int
    response_id: str
    benchmark: str
    card: Card
    splitter: str
    claims: tuple[Claim, ...]
    origin: ClaimOrigin
    author: str
    at: datetime
    versions: int
    coverage: float
    verdicts: Mapping[str, Mapping[int, ClaimVerdict]] = field(default_factory=dict)
    derived: Mapping[str, float] = field(default_factory=dict)
    outdated: tuple[str, ...] = ()


@only(Role.CLINICIAN, Role.RESEARCHER, Role.COORDINATOR)
def claims_on(person: Person, engine: Engine, response: int) -> list[JudgedClaims]:
    """Return the claims of a response that count, one entry a splitter.

    A clinician gets those of responses that they have rated, and no juror's answers: before, and
    with these, they would not judge by themselves.
    """
    query = (
        shown(Response.response_id, Instance.benchmark, RubricText.body)
        .join(Benchmark)
        .join(RubricText, col(RubricText.sha256) == Benchmark.rubric_sha256)
        .where(Response.id == response, FOR_STUDY)
    )
    names = {} if person.role == Role.CLINICIAN else names_of_actors(person, engine)
    with reading(engine) as session:
        row = session.exec(query).first()
        if row is None or (person.rater is not None and not has_rated(session, person, response)):
            return []
        *texts, name, benchmark, body = row
        rubric = Rubric.from_json(body)
        shown_card = card(name, texts, rubric)
        lists = session.exec(
            select(ClaimList)
            .where(ClaimList.response == response)
            .order_by(col(ClaimList.id).desc())
        ).all()
        newest = {one.splitter: one for one in reversed(lists)}
        return [
            _judged(session, person, one, len([o for o in lists if o.splitter == one.splitter]),
                    (name, benchmark, shown_card, rubric), names)
            for one in newest.values()
        ]  # fmt: skip


def has_rated(session: Session, person: Person, response: int) -> bool:
    """Tell whether a clinician has submitted every reading of a response that they were given."""
    own = select(Assignment.state).where(
        Assignment.rater == person.rater, Assignment.response == response
    )
    states = session.exec(own).all()
    return bool(states) and all(state == State.DONE for state in states)


def _judged(
    session: Session,
    person: Person,
    one: ClaimList,
    versions: int,
    of: tuple[str, str, Card, Rubric],
    names: Mapping[str, str],
) -> JudgedClaims:
    name, benchmark, shown_card, rubric = of
    claims, splitter = _claims(one.claims), session.get_one(Rater, one.splitter)
    verdicts: dict[str, dict[int, ClaimVerdict]] = {}
    derived: dict[str, float] = {}
    outdated: list[str] = []
    judges = [] if person.role == Role.CLINICIAN else _judges(session, splitter.handle)
    for judge in judges:
        own = _ratings(session, judge.id or 0, one.response)
        settings = judge.profile[CLAIMS]
        chosen = settings["criterion"], settings["formula"]
        sha = claims_rubric(rubric, *chosen, claims).sha256 if claims else ""
        given = [row for row in own if row.rubric_sha256 == sha]
        score = [
            row.score
            for row in own
            if (row.rubric_sha256, row.criterion) == (rubric.sha256, chosen[0])
        ]
        if given:
            verdicts[judge.handle] = {
                int(row.criterion.rpartition("_")[2]) - 1: ClaimVerdict(row.score, row.comment)
                for row in given
            }
            derived |= {judge.handle: score[-1]} if score else {}
        if not score and claims and any(row.rubric_sha256 == rubric.sha256 for row in own):
            outdated.append(judge.handle)
    return JudgedClaims(
        *(one.response, name, benchmark, shown_card, splitter.handle, claims, one.origin),
        *(names.get(one.author, one.author), one.at, versions),
        coverage(claims, shown_card.response),
        verdicts, derived, tuple(outdated),
    )  # fmt: skip


def _judges(session: Session, splitter: str) -> list[Rater]:
    jurors = session.exec(
        select(Rater).where(Rater.kind == Kind.JUROR).order_by(Rater.handle)
    ).all()
    return [one for one in jurors if (one.profile.get(CLAIMS) or {}).get("splitter") == splitter]


def _ratings(session: Session, rater: int, response: int) -> Sequence[Rating]:
    query = select(Rating).where(
        Rating.rater == rater, Rating.response == response, Rating.pass_ == FIRST, NEWEST
    )
    return session.exec(query.where(Rating.replicate == 0).order_by(col(Rating.id))).all()


@only(Role.CLINICIAN)
def claims_to_check(person: Person, engine: Engine) -> dict[int, str]:
    """Return the responses that a clinician has rated and that have claims: key -> opaque code.

    The code is that of their own assignment, which says nothing of the author.
    """
    query = (
        select(Assignment.response, Assignment.code)
        .where(Assignment.rater == person.rater, Assignment.state == State.DONE)
        .where(col(Assignment.response).in_(select(ClaimList.response)))
        .order_by(col(Assignment.position))
    )
    with reading(engine) as session:
        found = dict(session.exec(query).all())
        return {key: code for key, code in found.items() if has_rated(session, person, key)}


def rater_key(engine: Engine, name: str) -> int:
    """Return the primary key of a rater by its name in the study; 0 where there is none yet."""
    with reading(engine) as session:
        return session.exec(select(Rater.id).where(Rater.handle == name)).first() or 0


def given_on(engine: Engine, rater: int, response: int, rubric_sha256: str) -> list[float]:
    """Return a juror's newest answers on one rubric of a response, in no order."""
    query = select(Rating.score).where(
        *(Rating.rater == rater, Rating.response == response, Rating.pass_ == FIRST, NEWEST),
        *(Rating.rubric_sha256 == rubric_sha256, Rating.replicate == 0),
    )
    with reading(engine) as session:
        return list(session.exec(query))
