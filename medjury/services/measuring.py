"""Metrics as raters: every response is scored against its reference, and stored like any rating."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from sqlalchemy import Engine

from data.errors import BadInput
from data.importers.rows import Origin, RatingRow, batches
from data.queries import ReferencePair, pairs
from data.schema import Kind
from data.store import import_ratings

METRICS = ("rouge-l", "bertscore")
BATCH = 64
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
    results = [
        scored_by(compared, way(name), at=_share(place, len(metrics), len(compared[0]), tick))
        for place, name in enumerate(metrics)
    ]
    import_ratings(study, [row for scored in results for row in scored.rows])
    return results


def _share(
    place: int, metrics: int, texts: int, tick: Callable[[float], None] | None
) -> Callable[[float], None]:
    """Return what turns the number of texts a metric has scored into the share of all scores."""
    return lambda done: tick((place + done / texts) / metrics) if tick else None


def way(name: str, model: str | None = None, long_texts: str = "truncate") -> Metric:
    """Return what measures texts by a metric."""
    return rouge if name == "rouge-l" else bertscore(model, long_texts)


def scored_by(
    with_reference: tuple[list[ReferencePair], int],
    metric: Metric,
    executor: Executor | None = None,
    at: Callable[[float], None] = lambda done: None,
) -> Scored:
    """Return what a metric makes of the study."""
    pairs, total = with_reference
    batch_results: list[Measured] = []
    cut: list[str] = []
    values = _measured(pairs, metric, executor)
    rows = list(_rows(pairs, values, (batch_results, cut), at))
    return Scored(batch_results[0].name, rows, cut, total)


def with_reference_of(study: Engine, name: str) -> tuple[list[ReferencePair], int]:
    """Return the responses with something to compare with, and how many there are in all."""
    all_pairs = list(pairs(study))
    with_reference = [pair for pair in all_pairs if pair.reference is not None]
    if not with_reference:
        raise BadInput(f"{name}: no response of this study has a reference to compare with")
    return with_reference, len(all_pairs)


def rouge(texts: Texts) -> Measured:
    """Score one batch with ROUGE-L, Porter-stemmed as HELM has it."""
    from calibration.baselines.rouge import rouge_l

    return Measured("rouge-l", rouge_l(texts).tolist())


def bertscore(model: str | None, long_texts: str) -> Metric:
    """Return BERTScore; backbone, layer and the reading in windows are part of its name."""
    from calibration.baselines.bertscore import bert_score

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


def _measured(
    pairs: list[ReferencePair], metric: Metric, executor: Executor | None
) -> Iterator[Measured]:
    """Yield what each batch came to, in order, wherever it is computed."""
    texts = (
        [(pair.text, pair.reference or "") for pair in batch] for batch in batches(pairs, BATCH)
    )
    return executor.map(metric, texts) if executor else map(metric, texts)


def _rows(
    pairs: list[ReferencePair],
    values: Iterator[Measured],
    collected: tuple[list[Measured], list[str]],
    at: Callable[[float], None],
) -> Iterator[RatingRow]:
    """Yield a rating for each pair, batch by batch as they are measured; note what was cut."""
    (before, cut), number = collected, 0
    for batch, measured in zip(batches(pairs, BATCH), values, strict=True):
        _refuse_other_weights(measured, before)
        before.append(measured)
        number += len(batch)
        at(number)
        cut += [batch[row].response_id for row in measured.truncated]
        for row, (pair, value) in enumerate(zip(batch, measured.values, strict=True)):
            in_part = f"; {IN_PART}" if row in measured.truncated else ""
            yield RatingRow(
                origin=Origin(measured.name, number),
                response_id=pair.response_id,
                rater=measured.name,
                kind=Kind.METRIC,
                criterion="f1",
                score=repr(value),
                comment=measured.said + in_part,
            )


def _refuse_other_weights(measured: Measured, before: list[Measured]) -> None:
    """Raise BadInput where two workers measured with weights that are not the same."""
    if before and (measured.name, measured.said) != (before[0].name, before[0].said):
        raise BadInput(
            f"{measured.name}: one worker has {measured.said or measured.name}, another "
            f"{before[0].said or before[0].name}; give all workers the same model. Nothing was stored"
        )
