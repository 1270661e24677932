"""Closed-ended metrics as raters: answers that have a key are scored, and stored like any rating."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import groupby
from pathlib import Path

from sqlalchemy import Engine

from calibration.closed_ended.queries import query_of
from calibration.closed_ended.scoring import (
    EHRSQL,
    MEDCALC,
    METRICS,
    OPTION,
    BenchmarkAnswers,
    KeyedAnswer,
    answer_scores,
    benchmark_answers,
)
from data.errors import BadInput, MedjuryError, Unknown
from data.importers.answer_keys import AnswerKey, read_keys
from data.importers.helm.answers import NO_ANSWER
from data.importers.rows import Origin, RatingRow
from data.queries import ReferencePair, pairs
from data.schema import Kind
from data.sql_sandbox import Limits, QueryRows, run_queries
from data.store import RatingsAdded, import_ratings
from medjury.services.scores import BY_KEY

NEED_KEYS = (OPTION, MEDCALC, EHRSQL)
Tick = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class AnswerQuestion:
    """What is to be scored, and by what.

    Attributes
    ----------
    metrics : some of `calibration.closed_ended.scoring.METRICS`
    benchmark : of this benchmark alone; None for all whose instances have a key
    keys : file of keys or runs of HELM; None for the study's own references
    database : what EHRSQL's queries run on
    pattern : how an option's letter is found in a longer answer
    limits : of one query
    """

    metrics: tuple[str, ...]
    benchmark: str | None = None
    keys: Path | None = None
    database: Path | None = None
    pattern: str = ""
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class MetricResult:
    """What one metric came to on one benchmark.

    Attributes
    ----------
    means : rater -> mean over the benchmark's scored responses, in [0, 1]
    scored, without_key : responses with a score, and those whose instance has no key
    whole : figures of the benchmark that are no means
    stopped : why queries gave no rows -> how many, of models' queries and of keys'
    """

    metric: str
    benchmark: str
    means: Mapping[str, float]
    scored: int
    without_key: int
    whole: BenchmarkAnswers
    stopped: Mapping[str, int] = field(default_factory=dict)
    stopped_keys: int = 0


@dataclass(frozen=True)
class AnswersScored:
    """What was scored, and what storing it changed."""

    results: tuple[MetricResult, ...]
    added: RatingsAdded


def score_answers(
    engine: Engine, question: AnswerQuestion, tick: Tick = lambda _: None
) -> AnswersScored:
    """Score a study's answers by their keys and store the scores, all or nothing.

    Raises
    ------
    BadInput
        If a metric is unknown or lacks what it needs, or no response has a key.
    Unknown
        If the study has no such benchmark.
    """
    _check(question)
    keys = None if question.keys is None else read_keys(question.keys)
    told = "" if question.keys is None else f"keys {_digest(question.keys)}"
    rows: list[RatingRow] = []
    results: list[MetricResult] = []
    for benchmark, responses in _responses(engine, question.benchmark):
        keyed = [(pair, _keyed(pair, keys, question.pattern)) for pair in responses]
        found = [(pair, answer) for pair, answer in keyed if answer is not None]
        for metric in question.metrics if found else ():
            result, scored = _scored(metric, benchmark, found, question)
            results.append(replace(result, without_key=len(keyed) - len(found)))
            rows += _rows(scored, told)
            tick(len(rows))
    if not results:
        raise BadInput(_no_key(question))
    return AnswersScored(tuple(results), import_ratings(engine, rows) if rows else RatingsAdded())


def _check(question: AnswerQuestion) -> None:
    for metric in question.metrics:
        if metric not in METRICS:
            raise BadInput(f"metric {metric!r}: choose from {', '.join(METRICS)}")
        if metric in NEED_KEYS and question.keys is None:
            raise BadInput(
                f"{metric} needs --keys: a table of keys, or the run of HELM they come from"
            )
    if EHRSQL in question.metrics and question.database is None:
        raise BadInput(f"{EHRSQL} needs --database: the SQLite file that the questions are about")
    if EHRSQL not in question.metrics and question.database is not None:
        raise BadInput(f"--database belongs to {EHRSQL}")


def _digest(path: Path) -> str:
    """Return the first digits of the SHA-256 of a file, or of all files of a folder."""
    files = sorted(path.rglob("scenario_state.json")) if path.is_dir() else [path]
    whole = sha256(b"".join(sha256(file.read_bytes()).digest() for file in files))
    return whole.hexdigest()[:12]


def _responses(engine: Engine, benchmark: str | None) -> Iterator[tuple[str, list[ReferencePair]]]:
    """Yield each benchmark that is asked for with its responses."""
    found = sorted(pairs(engine), key=lambda pair: pair.benchmark)
    if benchmark is not None and benchmark not in {pair.benchmark for pair in found}:
        names = ", ".join(sorted({pair.benchmark for pair in found})) or "none"
        raise Unknown(f"no benchmark {benchmark} with responses in this study: it has {names}")
    for name, group in groupby(found, key=lambda pair: pair.benchmark):
        if benchmark in (None, name):
            yield name, list(group)


def _keyed(
    pair: ReferencePair, keys: Mapping[str, AnswerKey] | None, pattern: str
) -> KeyedAnswer | None:
    """Return an answer with its key; None where the instance has none."""
    answer = "" if pair.text == NO_ANSWER else pair.text
    if keys is None:
        return None if pair.reference is None else KeyedAnswer(answer, (pair.reference,))
    key = keys.get(pair.instance_id)
    if key is None:
        return None
    return KeyedAnswer(
        answer,
        key.keys,
        key.options,
        pattern,
        key.category,
        key.lower,
        key.upper,
        key.can_be_answered,
    )


Scored = list[tuple[ReferencePair, dict[str, float]]]


def _scored(
    metric: str,
    benchmark: str,
    found: Sequence[tuple[ReferencePair, KeyedAnswer]],
    question: AnswerQuestion,
) -> tuple[MetricResult, Scored]:
    """Return what a metric makes of one benchmark, and of each of its responses."""
    answers = [answer for _, answer in found]
    reasons: list[str] = []
    failed_keys = 0
    if metric == EHRSQL and question.database is not None:
        answers, reasons, failed_keys = _with_rows(answers, question.database, question.limits)
    scored: Scored = []
    for (pair, _), answer in zip(found, answers, strict=True):
        try:
            scored.append((pair, answer_scores(metric, answer)))
        except MedjuryError as error:
            raise BadInput(f"instance {pair.instance_id} of {benchmark}: {error}") from None
    raters = dict.fromkeys(rater for _, scores in scored for rater in scores)
    means = {rater: sum(scores[rater] for _, scores in scored) / len(scored) for rater in raters}
    stopped = {reason: reasons.count(reason) for reason in sorted(set(reasons) - {""})}
    whole = benchmark_answers(metric, answers)
    return (
        MetricResult(metric, benchmark, means, len(scored), 0, whole, stopped, failed_keys),
        scored,
    )


def _with_rows(
    answers: Sequence[KeyedAnswer], database: Path, limits: Limits
) -> tuple[list[KeyedAnswer], list[str], int]:
    """Return the answers with what both queries give, why models' gave nothing, and keys that failed."""
    queries = [query_of(answer.answer) for answer in answers]
    given = list(run_queries(database, queries, limits))
    of_keys = list(run_queries(database, [answer.keys[0].strip() for answer in answers], limits))
    filled = [
        replace(
            answer,
            rows=rows.rows,
            key_rows=key_rows.rows,
            failed=bool(rows.reason) or not query,
        )
        for answer, query, rows, key_rows in zip(answers, queries, given, of_keys, strict=True)
    ]
    reasons = [rows.reason if query else "" for query, rows in zip(queries, given, strict=True)]
    return filled, [*map(str, reasons)], _failed_keys(answers, of_keys)


def _failed_keys(answers: Sequence[KeyedAnswer], rows: Sequence[QueryRows]) -> int:
    """Return how many questions that can be answered have a key that does not run."""
    both = zip(answers, rows, strict=True)
    return sum(bool(row.reason) and answer.can_be_answered for answer, row in both)


def _rows(scored: Scored, told: str) -> Iterator[RatingRow]:
    for number, (pair, scores) in enumerate(scored, start=1):
        for rater, score in scores.items():
            yield RatingRow(
                origin=Origin(rater, number),
                response_id=pair.response_id,
                rater=rater,
                kind=Kind.METRIC,
                criterion=BY_KEY,
                score=repr(score),
                comment=told,
            )


def _no_key(question: AnswerQuestion) -> str:
    """Return why nothing was scored."""
    name = ", ".join(question.metrics)
    if question.keys is None:
        return f"{name}: no response has a reference to compare with; give keys with --keys"
    return f"{name}: {question.keys} has a key for no instance of this study; nothing was stored"
