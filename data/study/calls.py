"""Calls to jurors with their answers, batches of them, and the verdicts that are still owed.

A call is stored before it is sent, with what it can cost at most; its answer is never changed. The
table of authors is not read here.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from statistics import median
from typing import Any

from sqlalchemy import Engine, and_, case, func
from sqlmodel import Session, col, select

from data.calls import ANSWERED, is_other_model
from data.card import Card, Order, Reply, Score, points_of, turned
from data.database import reading, transaction
from data.errors import Conflict
from data.importers.rows import JurorRecord
from data.points import case_score
from data.record import add_rows, delete_rows, log, refuse_locked, update_unsealed
from data.rubric import Rubric
from data.schema import (
    Attempt,
    BatchState,
    Instance,
    Intent,
    JuryBatch,
    JuryRequest,
    Kind,
    PointSet,
    Purpose,
    Rater,
    Rating,
    Response,
    RubricText,
    Status,
    now,
)
from data.study.base import FOR_STUDY, Columns, card, columns_of, in_pages, shown
from data.study.readings import NEWEST, readings
from data.study.rubrics import keep_rubric
from data.study.standing import BenchmarkView, benchmarks

# A call or its columns; to make the object takes ten times as long.
CallRow = Attempt | Mapping[str, Any]
Entry = tuple[CallRow, Rubric | None, Reply | None]


def add_jurors(engine: Engine, jurors: Sequence[JurorRecord]) -> dict[str, int]:
    """Store jurors that are new; return each one's primary key.

    Raises
    ------
    Conflict
        If a juror of that name with another profile has rated here: its ratings would mix.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        return {juror.handle: keep_juror(session, juror) for juror in jurors}


def known_jurors(engine: Engine, jurors: Sequence[JurorRecord]) -> dict[str, int]:
    """Return the primary keys of those jurors that the study has; stores nothing.

    Raises
    ------
    Conflict
        As `add_jurors`.
    """
    with reading(engine) as session:
        keys = {juror.handle: _stored_juror(session, juror) for juror in jurors}
    return {handle: key for handle, key in keys.items() if key is not None}


def _keep_rubrics(session: Session, rubrics: Iterable[Rubric | None]) -> None:
    """Store rubrics that are new; None is of a call that has none."""
    for rubric in {rubric.sha256: rubric for rubric in rubrics if rubric is not None}.values():
        keep_rubric(session, rubric)


def write_attempts(session: Session, entries: Sequence[Entry]) -> None:
    """Store calls inside the caller's transaction, their rubrics, and their ratings with the event."""
    if not entries:
        return
    _keep_rubrics(session, (rubric for _, rubric, _ in entries))
    rows = [
        _row(call) | {"rubric_sha256": rubric.sha256 if rubric else None}
        for call, rubric, _ in entries
    ]
    add_rows(session, Attempt, rows)
    calls = zip(rows, entries, strict=True)
    scores = [row for call, (_, rubric, reply) in calls for row in _ratings(call, rubric, reply)]
    add_rows(session, Rating, scores)
    log(session, "jury", "jurors rated" if scores else "jurors asked", {"calls": len(rows)})


def _row(call: CallRow) -> dict[str, Any]:
    """Return the columns of a call as it is stored now; those not given are as the table has them."""
    if isinstance(call, Mapping):
        return {**call, "at": now()}
    columns = type(call).model_fields.keys() - {"id"}
    return {name: getattr(call, name) for name in columns} | {"at": now()}


def _ratings(
    attempt: Mapping[str, Any], rubric: Rubric | None, reply: Reply | None
) -> list[dict[str, Any]]:
    """Return the columns of the ratings that a call gave: none unless it is OK."""
    if rubric is None or reply is None or attempt["status"] != Status.OK:
        return []
    scores = {
        name: rubric.score(name, reply.scores[name], "juror", "response")
        for name in rubric.criteria
    }
    verdict = {name: attempt[name] for name in ("response", "rater", "replicate")}
    first = order_of(attempt["replicate"], rubric)
    own = turned(scores) if first == "second" else scores
    return rating_rows(verdict | {"pass_": 0, "shown_first": first}, rubric, own, reply)


def order_of(replicate: int, rubric: Rubric) -> Order:
    """Return which response of a pair a juror is shown first in a replicate; "" of no pair."""
    if not rubric.compares:
        return ""
    return "second" if replicate % rubric.orders else "first"


def scored(said: Score) -> dict[str, Any]:
    """Return the columns of a rating that say what was said: a score, or an answer in its place."""
    if isinstance(said, str):
        return {"score": None, "answer": said}
    return {"score": said, "answer": ""}


def rating_rows(
    verdict: Mapping[str, Any], rubric: Rubric, scores: Mapping[str, Score], reply: Reply
) -> list[dict[str, Any]]:
    """Return the columns of a reply's ratings; `verdict` has response, rater, pass_, replicate, shown_first.

    Answers on points of a case are followed by the score that they come to, on the benchmark's
    rubric, where they come to one.
    """
    rows = [
        {
            **verdict,
            "criterion": name,
            **scored(score),
            "rubric_sha256": rubric.sha256,
            "comment": reply.comments.get(name, ""),
            "at": now(),
        }
        for name, score in scores.items()
    ]
    whole = case_score(rubric, points_of(scores))
    if rubric.case is not None and whole is not None:
        of_case = {"criterion": rubric.case.criterion, **scored(whole), "comment": ""}
        rows.append({**verdict, **of_case, "rubric_sha256": rubric.case.rubric, "at": now()})
    return rows


def keep_juror(session: Session, juror: JurorRecord) -> int:
    """Store a juror if it is new and return its primary key."""
    key = _stored_juror(session, juror)
    if key is not None:
        return key
    rater = Rater(
        kind=Kind.JUROR,
        handle=juror.handle,
        family=juror.family,
        simulated=juror.simulated,
        profile=dict(juror.profile),
    )
    session.add(rater)
    session.flush()
    log(session, "researcher", "juror added", {"juror": juror.handle})
    return rater.id or 0


def _stored_juror(session: Session, juror: JurorRecord) -> int | None:
    """Return a juror's primary key, None if it is new; refuse another one of the same name."""
    rater = session.exec(select(Rater).where(Rater.handle == juror.handle)).first()
    if rater is None:
        return None
    if rater.kind != Kind.JUROR or rater.profile != dict(juror.profile):
        raise Conflict(
            f"juror {juror.handle!r}: a {rater.kind} of this name with another profile is in the "
            "study, and their ratings must not mix; give the juror another name in the panel"
        )
    return rater.id


@dataclass(frozen=True, slots=True)
class Step:
    """One step of one call: it is about to be made, or has ended.

    Attributes
    ----------
    intent
        The call that is about to be made.
    attempt
        What came of a call.
    rubrics
        Those that its answer makes.
    settles
        Key of the intent that this ends, empty if none.
    unknown
        Whether the vendor may have billed the call and nobody knows how much: then the intent
        stays, as counted against the cap of its own run.
    """

    intent: Intent | None = None
    attempt: Entry | None = None
    rubrics: tuple[Rubric, ...] = ()
    settles: str = ""
    unknown: bool = False


def record_steps(engine: Engine, steps: Sequence[Step]) -> None:
    """Store what calls have come to, in one transaction: all of it or nothing.

    Raises
    ------
    NotAllowed
        If the study is locked.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        _keep_rubrics(session, (rubric for step in steps for rubric in step.rubrics))
        session.add_all(step.intent for step in steps if step.intent is not None)
        settled = {step.settles: step.unknown for step in steps if step.settles}
        if unknown := [key for key, is_unknown in settled.items() if is_unknown]:
            for intent in session.exec(select(Intent).where(col(Intent.key).in_(unknown))):
                intent.counted = now()
        if known := settled.keys() - unknown:
            delete_rows(session, Intent, col(Intent.key).in_(known))
        attempts = [step.attempt for step in steps if step.attempt is not None]
        write_attempts(session, attempts)  # its event is of the intents too
        if not attempts and (settled or any(step.intent for step in steps)):
            log(session, "jury", "calls in flight", {})


def carry_over(engine: Engine) -> tuple[int, float]:
    """Return the calls in flight when earlier runs were killed, which no cap has counted yet; note them.

    How many, and what those of known price can cost at most. Call it only where no other run can be on:
    what is in flight then is a killed run's.
    """
    with transaction(engine) as session:
        intents = session.exec(select(Intent).where(col(Intent.counted).is_(None))).all()
        carried = len(intents), sum(intent.usd_most or 0.0 for intent in intents)
        for intent in intents:
            intent.counted = now()
        if intents:
            log(session, "jury", "calls carried over", {"calls": len(intents)})
    return carried


PAGE = 50
NOT_ASKED = "not_asked"
IN_FLIGHT = "in_flight"
NO_CALL = (NOT_ASKED, "", 0)  # status and reason of the last call, and calls
SCORE = re.compile(r"\bscore (.*) is not a whole number", re.DOTALL)
NUMBER = re.compile(r"\"?[-+\d.,/eE ]{1,6}\"?|true|false|null")
_CALL = (
    *(Attempt.id, Attempt.response, Attempt.status, Attempt.request_sha256, Attempt.sent),
    *(Attempt.raw, Attempt.returned_model, Attempt.answer),
)


@dataclass(frozen=True, slots=True)
class JurorCard:
    """A response as a juror gets it; it and its instance by their primary keys."""

    response: int
    benchmark: str
    card: Card
    instance: int


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """One request of a batch; `response` is a primary key, `usd_most` None where unpriced."""

    custom_id: str
    response: int
    replicate: int
    rubric: Rubric
    request_sha256: str
    usd_most: float | None = None


def juror_cards(engine: Engine, benchmark: str, rubric: Rubric) -> Iterator[JurorCard]:
    """Yield a benchmark's responses as jurors get them, instance by instance; not those of training.

    Read page by page, so that a run of hours holds no transaction open.
    """
    keys = col(Response.instance), col(Response.id)
    query = shown(*keys).where(Instance.benchmark == benchmark, FOR_STUDY)
    for *texts, instance, key in in_pages(engine, query, *keys, size=PAGE):
        yield JurorCard(key, benchmark, card(str(key), texts, rubric), instance)


def response_cards(engine: Engine, rubrics: Mapping[int, Rubric]) -> dict[int, Card]:
    """Return responses as jurors get them on a rubric each, by primary key."""
    query = shown(Response.id).where(col(Response.id).in_(rubrics))
    with reading(engine) as session:
        return {key: card(str(key), texts, rubrics[key]) for *texts, key in session.exec(query)}


def complete_ratings(engine: Engine, rater: int, rubric: Rubric) -> set[tuple[int, int]]:
    """Return (response, replicate) wherever a rater has scored every criterion of a rubric.

    Of a rubric of points, wherever all points of the case are answered, cannot tell included: a
    reply is stored whole or not at all, so that its first point stands for it.
    """
    with reading(engine) as session:
        rows = session.exec(complete(rubric).where(Rating.rater == rater))
        return {(response, replicate) for _, response, replicate in rows}


def complete(rubric: Rubric) -> Columns:
    """Select rater, response and replicate of the verdicts that `complete_ratings` returns."""
    key = col(Rating.rater), col(Rating.response), col(Rating.replicate)
    query = columns_of(*key).where(Rating.pass_ == 0, is_on(Rating.rubric_sha256, rubric), NEWEST)
    if rubric.points is None:
        count = func.count(func.distinct(Rating.criterion))
        query = query.having(count == len(rubric.criteria))
    return query.group_by(*key)


def is_on(sha256: Any, rubric: Rubric) -> Any:
    """Return the condition that a column names a rubric, or one of its cases if it is of points."""
    if rubric.points is None:
        return sha256 == rubric.sha256
    own = select(PointSet.rubric_sha256).where(PointSet.benchmark_rubric == rubric.sha256)
    return col(sha256).in_(own)


def open_batches(engine: Engine, rater: int) -> list[JuryBatch]:
    """Return a juror's batches that are not closed, the oldest first."""
    query = (
        select(JuryBatch)
        .where(JuryBatch.rater == rater, JuryBatch.state != BatchState.CLOSED)
        .order_by(col(JuryBatch.id))
    )
    with reading(engine) as session:
        return list(session.exec(query))


def open_requests(engine: Engine, batch: int) -> dict[str, BatchRequest]:
    """Return the requests of a batch whose end is not known, by custom id."""
    query = (
        select(JuryRequest, RubricText.body)
        .join(RubricText)
        .where(JuryRequest.batch == batch, JuryRequest.outcome == "")
    )
    with reading(engine) as session:
        return {
            row.custom_id: BatchRequest(
                *(row.custom_id, row.response, row.replicate, Rubric.from_json(body)),
                *(row.request_sha256, row.usd_most),
            )
            for row, body in session.exec(query)
        }


def requests_in_flight(
    engine: Engine, rater: int
) -> dict[tuple[int, int, str], tuple[str, float | None]]:
    """Return what a juror has been asked in batches and has not answered as far as is known.

    Returns
    -------
    dict
        (response, replicate, SHA-256 of the rubric) -> SHA-256 of the request, and what it can cost at
        most in US dollars, None where no price was known.
    """
    key = (JuryRequest.response, JuryRequest.replicate, JuryRequest.rubric_sha256)
    query = columns_of(*key, JuryRequest.request_sha256, JuryRequest.usd_most).join(JuryBatch)
    with reading(engine) as session:
        rows = session.exec(query.where(JuryBatch.rater == rater, JuryRequest.outcome == ""))
        return {tuple(about): (sha256, most) for *about, sha256, most in rows}


def waiting_in_batches(engine: Engine, handles: Iterable[str]) -> dict[str, int]:
    """Return how many answers of each of these jurors are still in batches, none left out."""
    query = (
        select(Rater.handle, func.count())
        .select_from(JuryRequest)
        .join(JuryBatch)
        .join(Rater)
        .where(JuryRequest.outcome == "", col(Rater.handle).in_(list(handles)))
        .group_by(col(Rater.handle))
    )
    with reading(engine) as session:
        return {str(handle): int(number) for handle, number in session.exec(query)}


def provider_ids(engine: Engine) -> frozenset[str]:
    """Return the providers' ids of all batches that this study knows to be its own."""
    with reading(engine) as session:
        return frozenset(session.exec(select(JuryBatch.provider_id)))


@dataclass(frozen=True, slots=True)
class MissingVerdict:
    """A verdict that does not stand on the present rubric of its benchmark.

    Attributes
    ----------
    status, reason
        Of the last call about it on this rubric; "in_flight" in a batch, "not_asked" where there
        was none. The reason holds no word of any text.
    calls
        Requests that were sent for it on this rubric.
    """

    juror: str
    benchmark: str
    response_id: str
    replicate: int
    status: str
    reason: str
    calls: int


def missing_verdicts(engine: Engine) -> list[MissingVerdict]:
    """Return what jurors have not rated, of every benchmark that they were asked about.

    Of replicates those that were ever asked for count. Training responses are left out.
    """
    missing = []
    for benchmark in benchmarks(engine):
        responses = _responses(engine, benchmark.name)
        for rater, juror in _jurors_asked(engine, benchmark.name):
            complete = complete_ratings(engine, rater, benchmark.rubric)
            last = _last_calls(engine, benchmark, rater)
            orders = range(benchmark.rubric.orders)
            replicates = sorted({*orders, *(replicate for _, replicate in last)})
            missing += [
                MissingVerdict(juror, benchmark.name, name, replicate, *last.get(key, NO_CALL))
                for response, name in responses.items()
                for replicate in replicates
                if (key := (response, replicate)) not in complete
            ]
    return sorted(
        missing, key=lambda verdict: (verdict.juror, verdict.benchmark, verdict.response_id)
    )


def seconds_of_calls(engine: Engine, raters: Collection[int]) -> dict[int, float]:
    """Return juror -> the median of the seconds that its calls for verdicts took, batches left out."""
    query = select(Attempt.rater, Attempt.latency_seconds).where(
        col(Attempt.rater).in_(raters),
        Attempt.purpose == Purpose.VERDICT,
        col(Attempt.latency_seconds) > 0,
    )
    seconds: dict[int, list[float]] = {}
    with reading(engine) as session:
        for rater, latency in session.exec(query):
            seconds.setdefault(rater, []).append(latency)
    return {rater: median(values) for rater, values in seconds.items()}


def other_models(engine: Engine) -> dict[str, list[str]]:
    """Return juror -> the models that answered instead of the one that it was asked for."""
    others: dict[str, dict[str, None]] = {}
    for juror, model, returned, *_ in _answers_counted(engine):
        if is_other_model(model, returned):
            others.setdefault(juror, {})[returned] = None
    return {juror: list(models) for juror, models in others.items()}


def usable_at_first(engine: Engine) -> dict[str, tuple[int, int]]:
    """Return juror -> how many verdicts were usable at first asking, of how many first answers.

    Counted are first calls that brought an answer of the juror's own; one that its host failed,
    filtered or cut says nothing of the juror.
    """
    counts: dict[str, tuple[int, int]] = {}
    for juror, _, _, status, number in _answers_counted(engine):
        if number and status in ANSWERED:
            usable, answers = counts.get(juror, (0, 0))
            counts[juror] = usable + number * (status == Status.OK), answers + number
    return counts


def _answers_counted(engine: Engine) -> list[tuple[str, str, str, Status, int]]:
    """Return juror, its model, the model that answered, status, and number of first calls for verdicts.

    A screen asks while a run is on: `ix_attempt_answers` has all that is read of the calls.
    """
    is_first = and_(col(Attempt.number) == 1, col(Attempt.purpose) == Purpose.VERDICT)
    kinds = (col(Attempt.rater), col(Attempt.returned_model), col(Attempt.status))
    query = select(*kinds, func.sum(case((is_first, 1), else_=0))).group_by(*kinds).order_by(*kinds)
    with reading(engine) as session:
        rows = session.exec(query).all()
        known = select(Rater.id, Rater.handle, Rater.profile)
        jurors = {key: (name, profile or {}) for key, name, profile in session.exec(known)}
    found = [
        (name, str(profile.get("model", "")), returned, Status(status), int(number))
        for rater, returned, status, number in rows
        for name, profile in [jurors[rater]]
    ]
    return sorted(found, key=lambda row: row[0])


def by_juror(rows: Sequence[MissingVerdict]) -> dict[str, dict[str, int]]:
    """Return juror -> status -> how many verdicts are missing."""
    counts: dict[str, Counter[str]] = {}
    for verdict in rows:
        counts.setdefault(verdict.juror, Counter())[verdict.status] += 1
    return {juror: dict(sorted(by_status.items())) for juror, by_status in counts.items()}


def juror_profiles(engine: Engine, names: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Return the settings of those jurors that the study knows, by name."""
    query = select(Rater.handle, Rater.profile).where(
        Rater.kind == Kind.JUROR, col(Rater.handle).in_(names)
    )
    with reading(engine) as session:
        return {name: dict(profile or {}) for name, profile in session.exec(query)}


def without_texts(reason: str) -> str:
    """Return a reason without what a juror wrote for a score, unless that is a number."""
    match = SCORE.search(reason)
    if match is None or NUMBER.fullmatch(match[1]):
        return reason
    return reason[: match.start(1)] + "(no number)" + reason[match.end(1) :]


def _last_calls(
    engine: Engine, benchmark: BenchmarkView, rater: int
) -> dict[tuple[int, int], tuple[str, str, int]]:
    """Return (response, replicate) -> status and reason of its last call on the present rubric, and calls."""
    verdict, outcome = (Attempt.response, Attempt.replicate), (Attempt.status, Attempt.reason)
    here: Any = is_on(Attempt.rubric_sha256, benchmark.rubric)
    calls = (
        columns_of(Attempt.number, *verdict, *outcome)
        .where(Attempt.rater == rater, Attempt.purpose == Purpose.VERDICT, here)
        .order_by(col(Attempt.id))
    )
    waiting = (
        select(JuryRequest.response, JuryRequest.replicate)
        .join(JuryBatch)
        .where(JuryBatch.rater == rater, JuryRequest.outcome == "")
        .where(is_on(JuryRequest.rubric_sha256, benchmark.rubric))
    )
    last: dict[tuple[int, int], tuple[str, str, int]] = {}
    with reading(engine) as session:
        for number, response, replicate, status, reason in session.exec(calls):
            asked = last.get((response, replicate), NO_CALL)[2] + (number > 0)
            last[response, replicate] = str(status), without_texts(reason), asked
        for response, replicate in session.exec(waiting):
            asked = last.get((response, replicate), NO_CALL)[2]
            last[response, replicate] = IN_FLIGHT, "in a batch", asked
    return last


def _responses(engine: Engine, benchmark: str) -> dict[int, str]:
    """Return the responses of a benchmark by primary key, those for training left out."""
    query = columns_of(Response.id, Response.response_id).select_from(Response).join(Instance)
    with reading(engine) as session:
        rows = session.exec(query.where(Instance.benchmark == benchmark, FOR_STUDY))
        return dict(map(tuple, rows))


def _jurors_asked(engine: Engine, benchmark: str) -> list[tuple[int, str]]:
    """Return the jurors (primary key, name) that were ever asked about a benchmark."""
    keys = select(Response.id).join(Instance).where(Instance.benchmark == benchmark)
    live = select(Attempt.rater).where(col(Attempt.response).in_(keys))
    batches = select(JuryBatch.rater).join(JuryRequest).where(col(JuryRequest.response).in_(keys))
    query = select(Rater.id, Rater.handle).where(
        col(Rater.id).in_(live.union(batches)), Rater.kind == Kind.JUROR
    )
    with reading(engine) as session:
        return [(key or 0, name) for key, name in session.exec(query)]


def responses_with_equal_texts(engine: Engine) -> frozenset[int]:
    """Return the responses (primary keys) whose text, as raters see it, another one has as well."""
    text = func.coalesce(Response.shown, Response.text)
    twice = columns_of(text).where(FOR_STUDY).group_by(text).having(func.count() > 1)
    query = columns_of(Response.id).where(text.in_(twice), FOR_STUDY)
    with reading(engine) as session:
        return frozenset(key for (key,) in session.exec(query))


def jurors_asked(engine: Engine) -> frozenset[int]:
    """Return the jurors (primary keys) to whom a request was ever sent."""
    query = columns_of(Attempt.rater).where(Attempt.number > 0).distinct()
    with reading(engine) as session:
        return frozenset(key for (key,) in session.exec(query))


def verdict_of_same_prompt(
    engine: Engine, rater: int, rubric: Rubric, replicate: int, hashes: Sequence[str]
) -> tuple[Any, Reply] | None:
    """Return the first call with a verdict that a juror gave to a prompt; None if none stands.

    Parameters
    ----------
    hashes
        SHA-256 of the request with this prompt, in each form it may have had.
    """
    by_juror = (Attempt.rater == rater, Attempt.replicate == replicate, Attempt.number > 0)
    calls_here = (*by_juror, Attempt.rubric_sha256 == rubric.sha256)
    same_response = select(Attempt.response).where(
        *calls_here, col(Attempt.request_sha256).in_(hashes)
    )
    calls = columns_of(*_CALL).where(*calls_here, col(Attempt.response).in_(same_response))
    with reading(engine) as session:
        rows: Sequence[Any] = session.exec(calls.order_by(col(Attempt.id))).all()
        same_prompt: dict[int, bool] = {}  # that call, or the one when it was asked once more
        for call in rows:
            if call.sent.get("turns", 1) == 1:
                same_prompt[call.response] = call.request_sha256 in hashes
            if call.status != Status.OK or not same_prompt.get(call.response):
                continue
            reply = _stored_reply(session, rater, call.response, rubric, replicate)
            if reply is not None:
                return call, reply
    return None


def _stored_reply(
    session: Session, rater: int, response: int, rubric: Rubric, replicate: int
) -> Reply | None:
    """Return a verdict by the ratings that count, None unless they are whole."""
    for one in readings(session, responses=[response], kinds=[Kind.JUROR], rubric=rubric.sha256):
        is_asked_for = (one.rater, one.replicate) == (rater, replicate)
        if is_asked_for and {*rubric.criteria} <= one.scores.keys():
            shown_second = order_of(replicate, rubric) == "second"
            return Reply(turned(one.scores) if shown_second else one.scores, one.comments)
    return None


TIMES = {
    BatchState.SUBMITTING: "asked",
    BatchState.SUBMITTED: "submitted",
    BatchState.CLOSED: "closed",
}


@dataclass(frozen=True, slots=True)
class Collected:
    """How one request ended: with an attempt, and a reply if it is OK, or with neither."""

    custom_id: str
    outcome: str
    rubric: Rubric
    attempt: Attempt | None = None
    reply: Reply | None = None


def prepare(engine: Engine, batch: JuryBatch, requests: Sequence[BatchRequest]) -> int:
    """Store a batch with its requests before anything of it is sent; return its primary key.

    Raises
    ------
    NotAllowed
        If the study is locked.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        _keep_rubrics(session, (request.rubric for request in requests))
        session.add(batch)
        session.flush()
        key = batch.id
        ordered = sorted(requests, key=lambda request: request.custom_id)
        names = [name for name in BatchRequest.__slots__ if name != "rubric"]
        rows = [
            {name: getattr(request, name) for name in names}
            | {"rubric_sha256": request.rubric.sha256, "batch": key, "outcome": ""}
            for request in ordered
        ]
        add_rows(session, JuryRequest, rows)
        log(session, "jury", "batch prepared", {"batch": key, "rows": len(rows)})
    return key


def move(engine: Engine, key: int, state: BatchState | None = None, **fields: Any) -> None:
    """Put a batch into a state, if one is given, with the fields that are known from then on.

    Parameters
    ----------
    **fields
        Any of `provider_id`, `input_file`, `reason` and `counts`: how many requests the provider says have
        ended, by how they ended.
    """
    with transaction(engine) as session:
        values = fields | (_state_columns(state) if state else {})
        update_unsealed(session, JuryBatch, col(JuryBatch.id) == key, **values)


def collect(engine: Engine, key: int, results: Iterable[Collected]) -> list[str]:
    """Store how requests of a batch ended, in one transaction; return the custom ids it was new of.

    A request whose end is stored already is left as it is, so that collecting twice stores once.

    Raises
    ------
    NotAllowed
        If the study is locked.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        by_id = {result.custom_id: result for result in results}
        is_open = JuryRequest.batch == key, JuryRequest.outcome == ""
        query = select(JuryRequest.custom_id).where(*is_open, col(JuryRequest.custom_id).in_(by_id))
        new_results = [by_id[name] for name in session.exec(query)]
        write_attempts(
            session, [(new.attempt, new.rubric, new.reply) for new in new_results if new.attempt]
        )
        unknown = []
        for result in new_results:
            request = session.get_one(JuryRequest, result.custom_id)
            request.outcome = result.outcome
            answer = result.attempt
            if answer and answer.usd is None and request.usd_most is not None:
                name = f"batch-{sha256(request.custom_id.encode()).hexdigest()[:32]}"
                about = {one: getattr(answer, one) for one in ("rater", "response", "replicate")}
                unknown.append(Intent(key=name, **about, usd_most=request.usd_most, counted=now()))
        if unknown:
            session.add_all(unknown)
            log(session, "jury", "calls in flight", {})
    return [result.custom_id for result in new_results]


def finish(
    engine: Engine, key: int, outcome: str, reason: str = "", state: BatchState = BatchState.CLOSED
) -> None:
    """Give every request of a batch that has no end yet the same one, and move the batch on."""
    is_open = col(JuryRequest.batch) == key, col(JuryRequest.outcome) == ""
    values = _state_columns(state) | {"reason": reason}
    with transaction(engine) as session:
        update_unsealed(session, JuryRequest, *is_open, outcome=outcome)
        update_unsealed(session, JuryBatch, col(JuryBatch.id) == key, **values)


def _state_columns(state: BatchState) -> dict[str, Any]:
    """Return the columns of a batch that is now in a state."""
    return {"state": state} | ({TIMES[state]: now()} if state in TIMES else {})
