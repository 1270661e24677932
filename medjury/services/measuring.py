"""Metrics as raters: each score of a response is stored like any rating.

Texts are compared with their reference; answers that have a key are scored by it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from data.errors import BadInput, MedjuryError, Unknown
from data.importers.rows import Origin, RatingRow, batches, filled
from data.importers.table import TableFile
from data.schema import Kind
from data.study.ratings import RatingsAdded, import_ratings
from data.study.standing import ReferencePair, pairs
from medjury.services.scores import BY_KEY

if TYPE_CHECKING:
    from calibration.closed_ended import AnswerKey, LabelScores

METRICS = ("rouge-l", "bertscore")
BATCH = 64
COLUMNS = ("instance_id", "key", "category", "lower_limit", "upper_limit")
IN_PART = "read only in part (512 word pieces)"
Texts = list[tuple[str, str]]


@dataclass
class Measured:
    """One metric's values on a batch: F-measures, the name it goes by, and a word on it."""

    name: str
    values: Sequence[float]
    said: str = ""
    truncated: tuple[int, ...] = ()


Metric = Callable[[Texts], Measured]


@dataclass(frozen=True)
class Scored:
    """One metric's ratings of a study, which responses it read in part, and of how many."""

    name: str
    rows: list[RatingRow]
    cut: list[str]
    total: int


def measure_study(
    study: Engine, metrics: Sequence[str], tick: Callable[[float], None] | None = None
) -> list[Scored]:
    """Score what has a reference by some metrics, and store it, all or nothing.

    `tick` is called with the share of the scores that are there.

    Raises
    ------
    BadInput
        If there is no such metric, no response has a reference, or a model is not installed.
    """
    if unknown := [name for name in metrics if name not in METRICS]:
        raise BadInput(f"metric {unknown[0]!r}: choose from {' and '.join(METRICS)}")
    compared = with_reference_of(study, ", ".join(metrics))
    texts = len(compared[0]) * len(metrics)
    results: list[Scored] = []
    for place, name in enumerate(metrics):

        def at(done: float, before: int = place * len(compared[0])) -> None:
            if tick:
                tick((before + done) / texts)

        results.append(scored_by(compared, way(name), at=at))
    import_ratings(study, [row for scored in results for row in scored.rows])
    return results


def way(name: str, model: str | None = None, long_texts: str = "truncate") -> Metric:
    """Return what measures texts by a metric."""
    return rouge if name == "rouge-l" else bertscore(model, long_texts)


def with_reference_of(study: Engine, name: str) -> tuple[list[ReferencePair], int]:
    """Return the responses with something to compare with, and how many there are in all."""
    all_pairs = list(pairs(study))
    with_reference = [pair for pair in all_pairs if pair.reference is not None]
    if not with_reference:
        raise BadInput(f"{name}: no response of this study has a reference to compare with")
    return with_reference, len(all_pairs)


def scored_by(
    with_reference: tuple[list[ReferencePair], int],
    metric: Metric,
    executor: Executor | None = None,
    at: Callable[[float], None] = lambda done: None,
) -> Scored:
    """Return what a metric makes of the study, batch by batch as they are measured, in order.

    Raises
    ------
    BadInput
        If two workers measured with weights that are not the same.
    """
    compared, total = with_reference
    texts = [
        [(pair.text, pair.reference or "") for pair in own] for own in batches(compared, BATCH)
    ]
    measured_batches = executor.map(metric, texts) if executor else map(metric, texts)
    first: Measured | None = None
    rows: list[RatingRow] = []
    cut: list[str] = []
    for batch, measured in zip(batches(compared, BATCH), measured_batches, strict=True):
        first = first or measured
        if (measured.name, measured.said) != (first.name, first.said):
            raise BadInput(
                f"{measured.name}: one worker has {measured.said or measured.name}, another "
                f"{first.said or first.name}; give all workers the same model. Nothing was stored"
            )
        number = len(rows) + len(batch)
        at(number)
        cut += [batch[row].response_id for row in measured.truncated]
        for row, (pair, value) in enumerate(zip(batch, measured.values, strict=True)):
            in_part = f"; {IN_PART}" if row in measured.truncated else ""
            comment = measured.said + in_part
            rows.append(_rating(measured.name, pair.response_id, "f1", value, comment, number))
    return Scored(first.name if first else "", rows, cut, total)


def _rating(
    metric: str, response: str, criterion: str, score: float, comment: str, number: int = 1
) -> RatingRow:
    origin = Origin(metric, number)
    return RatingRow(origin, response, metric, Kind.METRIC, criterion, repr(score), comment)


def rouge(texts: Texts) -> Measured:
    """Score one batch with ROUGE-L, Porter-stemmed as HELM has it."""
    from calibration.text_metrics import rouge_l

    return Measured("rouge-l", rouge_l(texts).tolist())


def bertscore(model: str | None, long_texts: str) -> Metric:
    """Return BERTScore; backbone, layer and the reading in windows are part of its name."""
    from calibration.text_metrics import bert_score

    if long_texts not in ("truncate", "windows"):
        raise BadInput(f"--long-texts {long_texts}: choose truncate or windows")

    def score(texts: Texts) -> Measured:
        result = bert_score(
            texts,
            model,
            long_texts="windows" if long_texts == "windows" else "truncate",
        )
        name = f"bertscore-{result.backbone}-{result.layer}"
        name += "-windows" if long_texts == "windows" else ""
        cut = () if long_texts == "windows" else result.truncated
        return Measured(name, result.f1.tolist(), f"weights {result.sha256[:12]}", cut)

    return score


@dataclass(frozen=True)
class MetricResult:
    """What one metric came to on one benchmark.

    Attributes
    ----------
    mean : over the benchmark's scored responses, in [0, 1]; None of F1 of labels
    scored, without_key : responses with a score, and those whose instance has no key
    labels : F1 over the whole benchmark
    """

    metric: str
    benchmark: str
    mean: float | None
    scored: int
    without_key: int
    labels: "LabelScores | None" = None


def score_answers(
    engine: Engine,
    metrics: tuple[str, ...],
    benchmark: str | None = None,
    keys: Path | None = None,
    tick: Callable[[float], None] = lambda _: None,
) -> tuple[list[MetricResult], RatingsAdded]:
    """Score a study's answers by their keys and store the scores, all or nothing.

    Parameters
    ----------
    metrics : some of `calibration.closed_ended.METRICS`
    benchmark : of this benchmark alone; None for all whose instances have a key
    keys : file of keys; None for the study's own references

    Raises
    ------
    BadInput
        If a metric lacks what it needs, or no response has a key.
    Unknown
        If the study has no such benchmark.
    """
    from calibration.closed_ended import LABELS, MEDCALC, label_scores

    if MEDCALC in metrics and keys is None:
        raise BadInput(f"{MEDCALC} needs --keys: a table of keys with their limits")
    table = None if keys is None else read_keys(keys)
    comment = "" if keys is None else f"keys {sha256(keys.read_bytes()).hexdigest()[:12]}"
    rows: list[RatingRow] = []
    results: list[MetricResult] = []
    for name, responses in _answers(engine, benchmark):
        found = [(pair, key) for pair in responses if (key := _key(pair, table)) is not None]
        counts = len(found), len(responses) - len(found)
        for metric in metrics if found else ():
            if metric == LABELS:
                true, given = zip(*((key.keys, [pair.text]) for pair, key in found), strict=True)
                results.append(MetricResult(metric, name, None, *counts, label_scores(true, given)))
                continue
            scores = {pair.response_id: _score(metric, name, pair, key) for pair, key in found}
            rows += [_rating(metric, one, BY_KEY, score, comment) for one, score in scores.items()]
            mean = sum(scores.values()) / len(scores)
            results.append(MetricResult(metric, name, mean, *counts))
            tick(len(rows))
    if not results:
        why = "no response has a reference to compare with; give keys with --keys"
        if keys is not None:
            why = f"{keys} has a key for no instance of this study; nothing was stored"
        raise BadInput(f"{', '.join(metrics)}: {why}")
    return results, import_ratings(engine, rows) if rows else RatingsAdded()


def read_keys(path: Path) -> "dict[str, AnswerKey]":
    """Return instance -> its key, from a table of `COLUMNS`, the last three of calculations only.

    A row is one key; an instance may have several rows, which then count all as right and
    agree in everything else that they give.

    Raises
    ------
    BadFile
        If it cannot be read, or a column that is needed is missing.
    BadRow
        At the first row that is wrong.
    """
    from calibration.closed_ended import AnswerKey

    table = TableFile(path)
    if absent := [name for name in COLUMNS[:2] if name not in table.columns]:
        raise table.wrong(
            f"column {absent[0]!r} is missing (keys have {', '.join(COLUMNS)}; {table.header})"
        )
    merged: dict[str, AnswerKey] = {}
    for origin, cells in table:
        instance = filled(origin, cells, "instance_id")
        limits = (cells.get(name, "").strip() for name in COLUMNS[2:])
        key = AnswerKey((cells.get("key", ""),), *limits)
        before = merged.get(instance, replace(key, keys=()))
        if replace(before, keys=()) != replace(key, keys=()):
            raise origin.wrong("instance_id", instance, "its rows differ in more than the key")
        merged[instance] = replace(key, keys=tuple(dict.fromkeys((*before.keys, *key.keys))))
    return merged


def _answers(engine: Engine, benchmark: str | None) -> Iterator[tuple[str, list[ReferencePair]]]:
    """Yield each benchmark that is asked for with its responses."""
    found = sorted(pairs(engine), key=lambda pair: pair.benchmark)
    names = sorted({pair.benchmark for pair in found})
    if benchmark is not None and benchmark not in names:
        listed = ", ".join(names) or "none"
        raise Unknown(f"no benchmark {benchmark} with responses in this study: it has {listed}")
    for name, group in groupby(found, key=lambda pair: pair.benchmark):
        if benchmark in (None, name):
            yield name, list(group)


def _key(pair: ReferencePair, table: "Mapping[str, AnswerKey] | None") -> "AnswerKey | None":
    from calibration.closed_ended import AnswerKey

    if table is not None:
        return table.get(pair.instance_id)
    return None if pair.reference is None else AnswerKey((pair.reference,))


def _score(metric: str, benchmark: str, pair: ReferencePair, key: "AnswerKey") -> float:
    from calibration.closed_ended import answer_score

    try:
        return answer_score(metric, key, pair.text)
    except MedjuryError as error:
        raise BadInput(f"instance {pair.instance_id} of {benchmark}: {error}") from None
