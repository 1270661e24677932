"""What those who run juries are shown: panels, progress of a run, and one response with all verdicts."""

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
from data.record import RUN
from data.rubric import Rubric
from data.schema import (
    RATED_ON,
    Assignment,
    Attempt,
    Benchmark,
    Instance,
    Kind,
    PointSet,
    Purpose,
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
from data.study.calls import without_texts
from data.study.costs import token_costs_by_juror
from data.study.people import person_by_access
from data.study.runs import PANEL, RunRow, read_run
from data.study.standing import BenchmarkView, benchmarks

STEER = (Role.RESEARCHER, Role.COORDINATOR)
MARKED = tuple(column.name for column in fields(Marked))
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
        panels = {key.removeprefix(PANEL): value for key, value in session.exec(query)}
    return dict(sorted(panels.items()))


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
        setting = session.get(Setting, RUN)
    return None if setting is None else read_run(setting.value)


# Return every benchmark with its rubric and counts, by name.
study_benchmarks = asking(benchmarks, *STEER)


@only(*STEER)
def jury_progress(
    person: Person, engine: Engine, run: RunRow, jurors: Sequence[str]
) -> list[JurorProgress]:
    """Return how far a run is, juror by juror, in the order given."""
    names = run.order.benchmarks
    chosen = [benchmark for benchmark in benchmarks(engine) if not names or benchmark.name in names]
    total = sum(benchmark.responses for benchmark in chosen) * run.order.replicates
    with reading(engine) as session:
        query = select(Rater.handle, Rater.id).where(col(Rater.handle).in_(jurors))
        keys = {name: key or 0 for name, key in session.exec(query)}
        rated = _count_complete(session, chosen, list(keys.values()), run.order.replicates)
        spent = _costs_of_run(session, list(keys.values()), run.since)
        failed = _failures_of_run(session, list(keys.values()), run.since)
    tokens = token_costs_by_juror(engine, run.since)
    return [
        replace(
            _progress(name, total, rated[key], spent.get(key), failed.get(key, [])),
            tokens=tokens.get(name, TokenCosts()),
        )
        for name in jurors
        for key in [keys.get(name, 0)]
    ]


def _progress(
    juror: str, total: int, rated: int, spent: Any, failed: Sequence[tuple[str, str]]
) -> JurorProgress:
    """Return one juror's progress from what was counted."""
    calls, usd, priced = spent or (0, 0.0, 0)
    ends = Counter(status for status, _ in failed)
    reasons = {
        status: Counter(reason for end, reason in failed if end == status).most_common(1)[0][0]
        for status in ends
    }
    return JurorProgress(
        juror, rated, total, dict(ends.most_common()), reasons, calls, usd or 0.0, calls - priced
    )


def _count_complete(
    session: Session, chosen: Sequence[BenchmarkView], keys: Sequence[int], replicates: int
) -> Counter[int]:
    """Return rater -> verdicts that stand on the present rubrics, those for training left out."""
    standing: Counter[int] = Counter()
    for benchmark in chosen:
        complete = (
            select(Rating.rater)
            .join(Response)
            .join(Instance)
            .where(
                Instance.benchmark == benchmark.name,
                Rating.rubric_sha256 == benchmark.rubric.sha256,
            )
            .where(col(Rating.rater).in_(keys), Rating.pass_ == 0, Rating.replicate < replicates)
            .where(FOR_STUDY)
            .group_by(col(Rating.rater), col(Rating.response), col(Rating.replicate))
            .having(
                func.count(func.distinct(col(Rating.criterion))) == len(benchmark.rubric.criteria)
            )
            .subquery()
        )
        counted = select(complete.c.rater, func.count()).group_by(complete.c.rater)
        for rater, number in session.exec(counted):
            standing[rater] += number
    return standing


def _costs_of_run(session: Session, keys: Sequence[int], since: int) -> dict[int, Any]:
    """Return rater -> (requests, their known cost, how many have one) of this run."""
    query = (
        select(Attempt.rater, func.count(), func.sum(Attempt.usd), func.count(col(Attempt.usd)))
        .where(col(Attempt.id) > since, col(Attempt.rater).in_(keys), Attempt.number > 0)
        .where(Attempt.purpose == Purpose.VERDICT)
        .group_by(col(Attempt.rater))
    )
    return {rater: tuple(totals) for rater, *totals in session.exec(query)}


def _failures_of_run(
    session: Session, keys: Sequence[int], since: int
) -> dict[int, list[tuple[str, str]]]:
    """Return rater -> (status, reason) of each verdict whose last call of this run failed."""
    last = (
        select(func.max(Attempt.id))
        .where(col(Attempt.id) > since, col(Attempt.rater).in_(keys))
        .where(Attempt.purpose == Purpose.VERDICT)
        .group_by(col(Attempt.rater), col(Attempt.response), col(Attempt.replicate))
    )
    query = (
        select(Attempt.rater, Attempt.status, Attempt.reason)
        .where(col(Attempt.id).in_(last), Attempt.status != Status.OK)
        .order_by(col(Attempt.id))
    )
    failures: dict[int, list[tuple[str, str]]] = {}
    for rater, status, reason in session.exec(query):
        failures.setdefault(rater, []).append((str(status), without_texts(reason)))
    return failures


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
    answers
        To the points of the case, by name; `data.points` has what each means.
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
    answers: Mapping[str, float] = field(default_factory=dict)

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
    """A response as raters see it, with its rubric, all opinions and all calls, oldest first.

    `case` is the rubric of its points, None where it is rated on the benchmark's own.
    """

    response_id: str
    benchmark: str
    instance_id: str
    card: Card
    rubric: Rubric
    opinions: tuple[Opinion, ...]
    calls: tuple[CallView, ...]
    case: Rubric | None = None


@dataclass
class _Gathered:
    """What is gathered of one reading."""

    scores: dict[str, float] = field(default_factory=dict)
    answers: dict[str, float] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)
    flags: list[tuple[str, str]] = field(default_factory=list)
    stretches: list[Marked] = field(default_factory=list)
    comment: str = ""


@only(Role.RESEARCHER, Role.COORDINATOR)
def opened_response(person: Person, engine: Engine, response: int) -> Opened | None:
    """Return a response by its primary key, None if there is none or it is for training."""
    query = (
        shown(
            *(Response.response_id, Instance.benchmark, Instance.instance_id),
            *(RubricText.body, RATED_ON),
        )
        .join(Benchmark)
        .join(RubricText, col(RubricText.sha256) == Benchmark.rubric_sha256)
        .where(Response.id == response, FOR_STUDY)
    )
    with reading(engine) as session:
        row = session.exec(query).first()
        if row is None:
            return None
        *texts, name, benchmark, instance, body, rated_on = row
        rubric, raters = Rubric.from_json(body), _raters_with_names(session, person)
        opinions = tuple(_opinions(session, response, {rubric.sha256, rated_on}, raters))
        calls = tuple(_calls(session, response, texts, raters))
        shown_card = card(name, texts, rubric)
        own = session.get_one(RubricText, rated_on).body
        case = Rubric.from_json(own) if own != body else None
        return Opened(name, benchmark, instance, shown_card, rubric, opinions, calls, case)


def _raters_with_names(session: Session, person: Person) -> dict[int, tuple[Rater, str]]:
    """Return each rater with the name it has for whoever asks."""
    names = {}
    for rater in session.exec(select(Rater)):
        name = rater.handle
        if rater.kind == Kind.CLINICIAN and person.role != Role.COORDINATOR:
            name = rater.pseudonym or f"clinician {rater.id}"
        names[rater.id or 0] = (rater, name)
    return names


def _opinions(
    session: Session, response: int, rubrics: set[str], raters: Mapping[int, tuple[Rater, str]]
) -> list[Opinion]:
    """Return who said what on the present rubrics: clinicians first, then jurors, by name."""
    gathered: dict[Key, _Gathered] = {}
    ratings = (
        select(Rating)
        .where(Rating.response == response, col(Rating.rubric_sha256).in_(rubrics))
        .order_by(col(Rating.id))
    )
    own_points = select(PointSet.rubric_sha256).where(col(PointSet.rubric_sha256).in_(rubrics))
    on_points = set(session.exec(own_points))
    for rating in session.exec(ratings):
        own = gathered.setdefault((rating.rater, rating.pass_, rating.replicate), _Gathered())
        given = own.answers if rating.rubric_sha256 in on_points else own.scores
        given[rating.criterion] = rating.score
        own.comments[rating.criterion] = rating.comment
    _gather_remarks(session, response, gathered)
    opinions = [_opinion(key, own, *raters[key[0]]) for key, own in gathered.items()]
    return sorted(
        (opinion for opinion in opinions if opinion.kind != Kind.METRIC),
        key=lambda opinion: (opinion.kind, opinion.who, opinion.repeat, opinion.replicate),
    )  # "clinician" before "juror"


def _opinion(key: Key, gathered: _Gathered, rater: Rater, name: str) -> Opinion:
    rated_by = (key[0], name, Kind(rater.kind), rater.simulated, *key[1:])
    remarks = tuple(gathered.flags), tuple(gathered.stretches), gathered.comment, gathered.answers
    return Opinion(*rated_by, gathered.scores, gathered.comments, *remarks)


def _gather_remarks(session: Session, response: int, gathered: dict[Key, _Gathered]) -> None:
    """Add flags, comments on the whole and marked stretches of the newest submissions."""
    remarks = (
        select(Assignment.rater, Assignment.pass_, Remark.kind, Remark.text)
        .join(Remark)
        .where(Assignment.response == response, Remark.revision >= NEWEST_SUBMISSION)
        .where(BY_CLINICIAN)
    )
    for rater, repeat, kind, words in session.exec(remarks):
        gathered.setdefault((rater, repeat, 0), _Gathered()).flags.append((kind, words))
    comments = (
        select(Assignment.rater, Assignment.pass_, Submission.comment)
        .join(Submission)
        .where(Assignment.response == response, Submission.revision == NEWEST_SUBMISSION)
        .where(Submission.comment != "")
    )
    for rater, repeat, words in session.exec(comments):
        gathered.setdefault((rater, repeat, 0), _Gathered()).comment = words
    spans = (
        columns_of(Assignment.rater, Assignment.pass_, *(getattr(Span, name) for name in MARKED))
        .join(Span)
        .where(Assignment.response == response, Span.revision == NEWEST_SUBMISSION)
        .order_by(col(Span.id))
    )
    for rater, repeat, *stretch in session.exec(spans):
        gathered.setdefault((rater, repeat, 0), _Gathered()).stretches.append(Marked(*stretch))


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
    columns = set(CallView.__slots__) - {"juror", "profile", "rubric", "card"}
    calls = []
    for attempt, body in session.exec(query):
        rater, name = raters[attempt.rater]
        read = session.get(RubricText, rater.profile.get("reads") or "")
        rubric = Rubric.from_json(read.body if read else body)  # the words that it was asked in
        values = {name: getattr(attempt, name) for name in columns}
        values["status"] = str(attempt.status)
        shown_card = card(str(response), texts, rubric)
        context: dict[str, Any] = {
            "juror": name,
            "profile": rater.profile,
            "rubric": rubric,
            "card": shown_card,
        }
        calls.append(CallView(**context, **values))
    return calls
