"""`medjury analyse measure`: metrics as raters, so that they are compared like everybody else."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from sqlalchemy import Engine

from data.errors import BadInput
from data.importers.rows import Origin, RatingRow, batches
from data.queries import ReferencePair, pairs
from data.schema import Kind
from data.store import import_ratings
from medjury.cli.dask_connect import On, computing
from medjury.cli.files import write_json
from medjury.cli.options import Db, Json, study_of
from medjury.cli.output import counted, progress, say

METRICS = ("rouge-l", "bertscore")
BATCH = 64
SHOWN = 5
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


def measure(
    context: typer.Context,
    metrics: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[rouge-l] [bertscore]",
            help="Metrics to compute; by default both, as far as installed.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|PATH", help="BERTScore: the model to use; by default the one installed."
        ),
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", metavar="[numpy|onnx]", help="BERTScore: what computes it.")
    ] = "numpy",
    long_texts: Annotated[
        str,
        typer.Option(
            metavar="[truncate|windows]",
            help="BERTScore: read the first 512 word pieces, as HELM does, or the whole text in windows.",
        ),
    ] = "truncate",
    on: On = None,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Score every response against its reference with ROUGE-L and BERTScore."""
    unknown = [name for name in metrics or () if name not in METRICS]
    if unknown:
        raise BadInput(f"metric {unknown[0]!r}: choose from {' and '.join(METRICS)}")
    study = study_of(context, db)
    chosen = metrics or (measurable() if model is None and on is None else METRICS)
    chosen_metrics = {name: way(name, model, engine, long_texts) for name in chosen}
    pairs_to_score = _with_reference(study, next(iter(chosen_metrics)))
    with computing(on, "texts of the responses and references are") as executor:
        body = run_metrics(study, chosen_metrics, pairs_to_score, executor)
    write_json(body, json_to)


def way(
    name: str, model: str | None = None, engine: str = "numpy", long_texts: str = "truncate"
) -> Metric:
    """Return what measures texts by a metric."""
    return rouge if name == "rouge-l" else bertscore(model, engine, long_texts)


def measurable() -> tuple[str, ...]:
    """Return the metrics that this installation can compute; say which it leaves out, and why."""
    from calibration.baselines.backbone import NO_MINILM, has_minilm

    if has_minilm():
        return METRICS
    say(f"bertscore is left out: {NO_MINILM}")
    return tuple(name for name in METRICS if name != "bertscore")


def run_metric(study: Engine, name: str) -> None:
    """Score what has a reference by one metric, here."""
    run_metrics(study, {name: way(name)}, _with_reference(study, name))


def run_metrics(
    study: Engine,
    metrics: Mapping[str, Metric],
    with_reference: tuple[list[ReferencePair], int],
    executor: Executor | None = None,
) -> dict[str, Any]:
    """Score what has a reference of so many, store it, and say what was left out and why.

    Return it as `analyse measure --json` has it.

    All is computed before anything is stored, all or nothing: clinicians rate meanwhile, and
    workers may be lost.
    """
    results = [_scored(with_reference, name, metric, executor) for name, metric in metrics.items()]
    added = import_ratings(study, [row for scored in results for row in scored.rows])
    for scored in results:
        _say(scored)
    if added.unchanged:
        say(f"{added.unchanged} of these values were there already")
    return {"metrics": [_json(scored) for scored in results], "unchanged": added.unchanged}


def _json(scored: Scored) -> dict[str, Any]:
    return {
        "metric": scored.name,
        "scored": len(scored.rows),
        "responses": scored.total,
        "truncated": list(scored.cut),
    }


def _scored(
    with_reference: tuple[list[ReferencePair], int],
    name: str,
    metric: Metric,
    executor: Executor | None,
) -> Scored:
    """Return what a metric makes of the study."""
    pairs, total = with_reference
    batch_results: list[Measured] = []
    cut: list[str] = []
    with progress(name, len(pairs)) as at:
        values = _measured(pairs, metric, executor)
        rows = list(_rows(pairs, values, (batch_results, cut), at))
    return Scored(batch_results[0].name, rows, cut, total)


def _with_reference(study: Engine, name: str) -> tuple[list[ReferencePair], int]:
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


def bertscore(model: str | None, engine: str, long_texts: str) -> Metric:
    """Return BERTScore; backbone, layer and the reading in windows are part of its name."""
    from calibration.baselines.bertscore import bert_score

    if engine not in ("numpy", "onnx"):
        raise BadInput(f"--engine {engine}: choose numpy or onnx")
    if long_texts not in ("truncate", "windows"):
        raise BadInput(f"--long-texts {long_texts}: choose truncate or windows")

    def score(texts: Texts) -> Measured:
        result = bert_score(
            texts,
            model,
            engine="onnx" if engine == "onnx" else "numpy",
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


def _say(scored: Scored) -> None:
    lost, cut = scored.total - len(scored.rows), scored.cut
    first = ", ".join(cut[:SHOWN]) + (", ..." if len(cut) > SHOWN else "")
    say(
        f"{scored.name}: scored {len(scored.rows)} of {scored.total} responses"
        + (f", {lost} have no reference" if lost else "")
        + (f", {counted(len(cut), 'pair')} {IN_PART}: {first}" if cut else "")
    )
