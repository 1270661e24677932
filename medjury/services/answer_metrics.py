"""Metrics of answers that have a key, as raters: each score is stored like any rating."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import groupby
from pathlib import Path

from sqlalchemy import Engine

from calibration.closed_ended import (
    LABELS,
    MEDCALC,
    AnswerKey,
    LabelScores,
    answer_score,
    label_scores,
)
from data.errors import BadInput, MedjuryError, Unknown
from data.importers.rows import Origin, RatingRow, filled
from data.importers.table import TableFile
from data.queries import ReferencePair, pairs
from data.schema import Kind
from data.store import RatingsAdded, import_ratings
from medjury.services.scores import BY_KEY

COLUMNS = ("instance_id", "key", "category", "lower_limit", "upper_limit")


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
    labels: LabelScores | None


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
    if MEDCALC in metrics and keys is None:
        raise BadInput(f"{MEDCALC} needs --keys: a table of keys with their limits")
    table = None if keys is None else read_keys(keys)
    comment = "" if keys is None else f"keys {sha256(keys.read_bytes()).hexdigest()[:12]}"
    rows: list[RatingRow] = []
    results: list[MetricResult] = []
    for name, responses in _responses(engine, benchmark):
        found = [(pair, key) for pair in responses if (key := _key(pair, table)) is not None]
        for metric in metrics if found else ():
            scores = {} if metric == LABELS else _scores(metric, name, found)
            rows += [_row(metric, response, score, comment) for response, score in scores.items()]
            results.append(
                MetricResult(
                    metric,
                    name,
                    sum(scores.values()) / len(scores) if scores else None,
                    len(found),
                    len(responses) - len(found),
                    _labels(found) if metric == LABELS else None,
                )
            )
            tick(len(rows))
    if not results:
        why = "no response has a reference to compare with; give keys with --keys"
        if keys is not None:
            why = f"{keys} has a key for no instance of this study; nothing was stored"
        raise BadInput(f"{', '.join(metrics)}: {why}")
    return results, import_ratings(engine, rows) if rows else RatingsAdded()


def read_keys(path: Path) -> dict[str, AnswerKey]:
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


def _responses(engine: Engine, benchmark: str | None) -> Iterator[tuple[str, list[ReferencePair]]]:
    """Yield each benchmark that is asked for with its responses."""
    found = sorted(pairs(engine), key=lambda pair: pair.benchmark)
    names = sorted({pair.benchmark for pair in found})
    if benchmark is not None and benchmark not in names:
        listed = ", ".join(names) or "none"
        raise Unknown(f"no benchmark {benchmark} with responses in this study: it has {listed}")
    for name, group in groupby(found, key=lambda pair: pair.benchmark):
        if benchmark in (None, name):
            yield name, list(group)


def _key(pair: ReferencePair, table: Mapping[str, AnswerKey] | None) -> AnswerKey | None:
    if table is not None:
        return table.get(pair.instance_id)
    return None if pair.reference is None else AnswerKey((pair.reference,))


Keyed = list[tuple[ReferencePair, AnswerKey]]


def _scores(metric: str, benchmark: str, found: Keyed) -> dict[str, float]:
    scores = {}
    for pair, key in found:
        try:
            scores[pair.response_id] = answer_score(metric, key, pair.text)
        except MedjuryError as error:
            raise BadInput(f"instance {pair.instance_id} of {benchmark}: {error}") from None
    return scores


def _labels(found: Keyed) -> LabelScores:
    return label_scores([key.keys for _, key in found], [[pair.text] for pair, _ in found])


def _row(metric: str, response: str, score: float, comment: str) -> RatingRow:
    origin = Origin(metric, 1)
    return RatingRow(origin, response, metric, Kind.METRIC, BY_KEY, repr(score), comment)
