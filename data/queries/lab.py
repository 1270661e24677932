"""What those who run juries are shown: panels, the run, how far each juror is, and one response."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, func
from sqlmodel import Session, col, select

from data.calls import TokenCosts
from data.card import Card, Marked, Reading, reading_of_pass
from data.database import reading
from data.errors import NotAllowed
from data.person import Person, asking, only
from data.queries.base import BY_CLINICIAN, FOR_STUDY, NEWEST_SUBMISSION, card, columns_of, shown
from data.queries.jury import without_texts
from data.queries.people import person_by_access
from data.queries.study import BenchmarkView, benchmarks
from data.queries.token_costs import token_costs_by_juror
from data.record import RUN
from data.rubric import Rubric
from data.schema import (
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
    Setting,
    Span,
    Status,
    Submission,
)
from data.store.jury_runs import PANEL, RunRow, read_run

STEER = (Role.RESEARCHER, Role.COORDINATOR)
MARKED = tuple(one.name for one in fields(Marked))
Key = tuple[int, int, int]  # rater, pass, replicate


@dataclass(frozen=True, slots=True)
class JurorProgress:
    """How far one juror of a run is.

    Attributes
    ----------
    rated, total
        Verdicts that stand, from this run or before, of those that the run wants.
    failed
        Status -> how many of the run's verdicts ended so and do not stand.
    reasons
        Status -> the commonest reason, without a word of any text.
    calls, usd, unknown
        Requests of this run, their known cost, and how many have no known cost.
    tokens
        What they took, by kind of token.
    """

    juror: str
    rated: int
    total: int
    failed: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    calls: int = 0
    usd: float = 0.0
    unknown: int = 0
    tokens: TokenCosts = field(default_factory=TokenCosts)


@only(*STEER)
def own_panels(person: Person, engine: Engine) -> dict[str, str]:
    """Return the TOML texts of the panels that this study keeps, by name."""
    query = select(Setting.key, Setting.value).where(col(Setting.key).startswith(PANEL))
    with reading(engine) as session:
        kept = {key.removeprefix(PANEL): value for key, value in session.exec(query)}
    return dict(sorted(kept.items()))


@only(*STEER)
def last_run(person: Person, engine: Engine) -> RunRow | None:
    """Return the run that is on or was the last, None where there was none in the app.

    Raises
    ------
    NotAllowed
        If the way in that this person came by is no longer valid: a page that looks again and
        again asks here.
    """
    if person.access and person_by_access(engine, person.access) is None:
        raise NotAllowed("your session has ended")
    with reading(engine) as session:
        found = session.get(Setting, RUN)
    return None if found is None else read_run(found.value)


# Return every benchmark with its rubric and counts, by name.
study_benchmarks = asking(benchmarks, *STEER)


@only(*STEER)
def jury_progress(
    person: Person, engine: Engine, run: RunRow, jurors: Sequence[str]
) -> list[JurorProgress]:
    """Return how far a run is, juror by juror, in the order given."""
    named = run.order.benchmarks
    chosen = [one for one in benchmarks(engine) if not named or one.name in named]
    total = sum(one.responses for one in chosen) * run.order.replicates
    with reading(engine) as session:
        known = select(Rater.handle, Rater.id).where(col(Rater.handle).in_(jurors))
        keys = {name: key or 0 for name, key in session.exec(known)}
        rated = _rated(session, chosen, list(keys.values()), run.order.replicates)
        spent = _spent(session, list(keys.values()), run.since)
        failed = _failed(session, list(keys.values()), run.since)
    tokens = token_costs_by_juror(engine, run.since)
    places = [(name, keys.get(name, 0)) for name in jurors]
    return [
        replace(
            _progress(name, total, rated[key], spent.get(key), failed.get(key, [])),
            tokens=tokens.get(name, TokenCosts()),
        )
        for name, key in places
    ]


def _progress(
    juror: str, total: int, rated: int, spent: Any, failed: Sequence[tuple[str, str]]
) -> JurorProgress:
    """Return one juror's progress from what was counted."""
    calls, usd, known = spent or (0, 0.0, 0)
    ends = Counter(status for status, _ in failed)
    reasons = {
        status: Counter(why for one, why in failed if one == status).most_common(1)[0][0]
        for status in ends
    }
    return JurorProgress(
        juror, rated, total, dict(ends.most_common()), reasons, calls, usd or 0.0, calls - known
    )


def _rated(
    session: Session, chosen: Sequence[BenchmarkView], keys: Sequence[int], replicates: int
) -> Counter[int]:
    """Return rater -> verdicts that stand on the present rubrics, those for training left out."""
    found: Counter[int] = Counter()
    for one in chosen:
        whole = (
            select(Rating.rater)
            .join(Response)
            .join(Instance)
            .where(Instance.benchmark == one.name, Rating.rubric_sha256 == one.rubric.sha256)
            .where(col(Rating.rater).in_(keys), Rating.pass_ == 0, Rating.replicate < replicates)
            .where(FOR_STUDY)
            .group_by(col(Rating.rater), col(Rating.response), col(Rating.replicate))
            .having(func.count(func.distinct(col(Rating.criterion))) == len(one.rubric.criteria))
            .subquery()
        )
        counted = select(whole.c.rater, func.count()).group_by(whole.c.rater)
        for rater, number in session.exec(counted):
            found[rater] += number
    return found


def _spent(session: Session, keys: Sequence[int], since: int) -> dict[int, Any]:
    """Return rater -> (requests, their known cost, how many have one) of this run."""
    query = (
        select(Attempt.rater, func.count(), func.sum(Attempt.usd), func.count(col(Attempt.usd)))
        .where(col(Attempt.id) > since, col(Attempt.rater).in_(keys), Attempt.number > 0)
        .group_by(col(Attempt.rater))
    )
    return {rater: tuple(rest) for rater, *rest in session.exec(query)}


def _failed(session: Session, keys: Sequence[int], since: int) -> dict[int, list[tuple[str, str]]]:
    """Return rater -> (status, reason) of each verdict whose last call of this run failed."""
    last = (
        select(func.max(Attempt.id))
        .where(col(Attempt.id) > since, col(Attempt.rater).in_(keys))
        .group_by(col(Attempt.rater), col(Attempt.response), col(Attempt.replicate))
    )
    query = (
        select(Attempt.rater, Attempt.status, Attempt.reason)
        .where(col(Attempt.id).in_(last), Attempt.status != Status.OK)
        .order_by(col(Attempt.id))
    )
    found: dict[int, list[tuple[str, str]]] = {}
    for rater, status, reason in session.exec(query):
        found.setdefault(rater, []).append((str(status), without_texts(reason)))
    return found


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one rater said of a response in one reading.

    Attributes
    ----------
    who
        A juror's name; a clinician's handle for coordinators, for researchers their pseudonym.
    repeat, replicate
        The pass of a clinician's reading, see `reading`; a juror's further verdict.
    scores, comments
        By criterion; a criterion left out is missing.
    flags
        What a clinician said apart from scores: kind -> text.
    stretches
        What a clinician marked, in the order in which links count them.
    comment
        On the response as a whole.
    """

    rater: int
    who: str
    kind: Kind
    simulated: bool
    repeat: int
    replicate: int
    scores: Mapping[str, float]
    comments: Mapping[str, str]
    flags: tuple[tuple[str, str], ...] = ()
    stretches: tuple[Marked, ...] = ()
    comment: str = ""

    @property
    def reading(self) -> Reading:
        """Whether it was made by itself, or settles a difference."""
        return reading_of_pass(self.repeat)


@dataclass(frozen=True, slots=True)
class CallView:
    """One call to a juror, as it was stored; `profile` is what the juror is asked with."""

    id: int
    rater: int
    juror: str
    profile: Mapping[str, Any]
    rubric: Rubric
    card: Card
    replicate: int
    number: int
    request_sha256: str
    sent: Mapping[str, Any]
    raw: str
    status: str
    reason: str
    tokens_in: int | None
    tokens_cached: int | None
    tokens_out: int | None
    usd: float | None
    latency_seconds: float
    returned_model: str
    distribution: Mapping[str, Any] | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Opened:
    """A response as raters see it, with its rubric, all opinions and all calls, oldest first."""

    response_id: str
    benchmark: str
    instance_id: str
    card: Card
    rubric: Rubric
    opinions: tuple[Opinion, ...]
    calls: tuple[CallView, ...]


@dataclass
class _Said:
    """What is gathered of one reading."""

    scores: dict[str, float] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)
    flags: list[tuple[str, str]] = field(default_factory=list)
    stretches: list[Marked] = field(default_factory=list)
    comment: str = ""


@only(Role.RESEARCHER, Role.COORDINATOR)
def opened_response(person: Person, engine: Engine, response: int) -> Opened | None:
    """Return a response by its primary key, None if there is none or it is for training."""
    query = (
        shown(Response.response_id, Instance.benchmark, Instance.instance_id, RubricText.body)
        .join(Benchmark)
        .join(RubricText)
        .where(Response.id == response, FOR_STUDY)
    )
    with reading(engine) as session:
        row = session.exec(query).first()
        if row is None:
            return None
        *texts, name, benchmark, instance, body = row
        rubric, raters = Rubric.from_json(body), _names_of(session, person)
        opinions = tuple(_opinions(session, response, rubric, raters))
        calls = tuple(_calls(session, response, texts, raters))
        shown_card = card(name, texts, rubric)
        return Opened(name, benchmark, instance, shown_card, rubric, opinions, calls)


def _names_of(session: Session, person: Person) -> dict[int, tuple[Rater, str]]:
    """Return each rater with the name it has for whoever asks."""
    found = {}
    for one in session.exec(select(Rater)):
        name = one.handle
        if one.kind == Kind.CLINICIAN and person.role != Role.COORDINATOR:
            name = one.pseudonym or f"clinician {one.id}"
        found[one.id or 0] = (one, name)
    return found


def _opinions(
    session: Session, response: int, rubric: Rubric, raters: Mapping[int, tuple[Rater, str]]
) -> list[Opinion]:
    """Return who said what on the present rubric: clinicians first, then jurors, by name."""
    said: dict[Key, _Said] = {}
    ratings = (
        select(Rating)
        .where(Rating.response == response, Rating.rubric_sha256 == rubric.sha256)
        .order_by(col(Rating.id))
    )
    for one in session.exec(ratings):
        own = said.setdefault((one.rater, one.pass_, one.replicate), _Said())
        own.scores[one.criterion], own.comments[one.criterion] = one.score, one.comment
    _gather_remarks(session, response, said)
    found = [_opinion(key, own, *raters[key[0]]) for key, own in said.items()]
    wanted = [one for one in found if one.kind != Kind.METRIC]  # "clinician" before "juror"
    return sorted(wanted, key=lambda one: (one.kind, one.who, one.repeat, one.replicate))


def _opinion(key: Key, own: _Said, rater: Rater, name: str) -> Opinion:
    who = (key[0], name, Kind(rater.kind), rater.simulated, *key[1:])
    besides = tuple(own.flags), tuple(own.stretches), own.comment
    return Opinion(*who, own.scores, own.comments, *besides)


def _gather_remarks(session: Session, response: int, said: dict[Key, _Said]) -> None:
    """Add flags, comments on the whole and marked stretches of the newest submissions."""
    remarks = (
        select(Assignment.rater, Assignment.pass_, Remark.kind, Remark.text)
        .join(Remark)
        .where(Assignment.response == response, Remark.revision >= NEWEST_SUBMISSION)
        .where(BY_CLINICIAN)
    )
    for rater, repeat, kind, words in session.exec(remarks):
        said.setdefault((rater, repeat, 0), _Said()).flags.append((kind, words))
    comments = (
        select(Assignment.rater, Assignment.pass_, Submission.comment)
        .join(Submission)
        .where(Assignment.response == response, Submission.revision == NEWEST_SUBMISSION)
        .where(Submission.comment != "")
    )
    for rater, repeat, words in session.exec(comments):
        said.setdefault((rater, repeat, 0), _Said()).comment = words
    spans = (
        columns_of(Assignment.rater, Assignment.pass_, *(getattr(Span, name) for name in MARKED))
        .join(Span)
        .where(Assignment.response == response, Span.revision == NEWEST_SUBMISSION)
        .order_by(col(Span.id))
    )
    for rater, repeat, *stretch in session.exec(spans):
        said.setdefault((rater, repeat, 0), _Said()).stretches.append(Marked(*stretch))


def _calls(
    session: Session, response: int, texts: list[Any], raters: Mapping[int, tuple[Rater, str]]
) -> list[CallView]:
    """Return every call about a response, oldest first."""
    query = (
        select(Attempt, RubricText.body)
        .join(RubricText)
        .where(Attempt.response == response)
        .order_by(col(Attempt.id))
    )
    copied = set(CallView.__slots__) - {"juror", "profile", "rubric", "card"}
    found = []
    for one, body in session.exec(query):
        rubric, (rater, name) = Rubric.from_json(body), raters[one.rater]
        values = {name: getattr(one, name) for name in copied}
        values["status"] = str(one.status)
        made = card(str(response), texts, rubric)
        own: dict[str, Any] = {
            "juror": name,
            "profile": rater.profile,
            "rubric": rubric,
            "card": made,
        }
        found.append(CallView(**own, **values))
    return found
