"""`medjury analyse measure`: metrics as raters, so that they are compared like everybody else."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy import Engine

from data.errors import BadInput
from data.study.ratings import import_ratings
from data.study.standing import ReferencePair
from medjury.cli.dask_workers import On, computing
from medjury.cli.options import BenchmarkOption, Study
from medjury.cli.output import counted, emit, progress, say, show
from medjury.services.measuring import (
    IN_PART,
    METRICS,
    Metric,
    Scored,
    score_answers,
    scored_by,
    way,
    with_reference_of,
)

SHOWN = 5
# As `calibration.closed_ended.METRICS`, which loads more than help needs.
ANSWER_METRICS = ("exact-match", "quasi-exact-match", "label-f1", "medcalc")


def measure(
    study: Study,
    metrics: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[METRIC]...",
            help="rouge-l and bertscore, as far as installed; or metrics of answers that have a key: "
            f"{', '.join(ANSWER_METRICS)}.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|PATH", help="BERTScore: the model to use; by default the one installed."
        ),
    ] = None,
    long_texts: Annotated[
        str,
        typer.Option(
            metavar="[truncate|windows]",
            help="BERTScore: read the first 512 word pieces, as HELM does, or the whole text in windows.",
        ),
    ] = "truncate",
    keys: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Of answers: a table with instance_id and key; by default the references.",
        ),
    ] = None,
    benchmark: BenchmarkOption = None,
    on: On = None,
) -> None:
    """Score responses by metrics: against references, or answers by their key as HELM does.

    Example:
    medjury analyse measure rouge-l
    """
    unknown = [name for name in metrics or () if name not in (*METRICS, *ANSWER_METRICS)]
    if unknown:
        raise BadInput(
            f"metric {unknown[0]!r}: choose from {', '.join((*METRICS, *ANSWER_METRICS))}"
        )
    engine = study.open()
    of_answers = tuple(name for name in metrics or () if name in ANSWER_METRICS)
    if of_answers or keys or benchmark:
        _refuse_mixed(metrics or (), of_answers)
        study.write(_measure_answers(engine, of_answers, benchmark, keys))
        return
    chosen = metrics or (measurable() if model is None and on is None else METRICS)
    chosen_metrics = {name: way(name, model, long_texts) for name in chosen}
    pairs_to_score = with_reference_of(engine, next(iter(chosen_metrics)))
    with computing(on, "texts of the responses and references are") as executor:
        body = run_metrics(engine, chosen_metrics, pairs_to_score, executor)
    study.write(body)


def _refuse_mixed(metrics: Sequence[str], of_answers: Sequence[str]) -> None:
    """Refuse metrics of texts beside those of answers, or options of answers without such a metric."""
    if not of_answers:
        named = ", ".join(ANSWER_METRICS)
        raise BadInput(f"--keys and --benchmark belong to metrics of answers: name one of {named}")
    if other := [name for name in metrics if name not in of_answers]:
        raise BadInput(
            f"{other[0]} compares texts, {of_answers[0]} answers with keys: measure them one by one"
        )


def _measure_answers(
    engine: Engine, metrics: tuple[str, ...], benchmark: str | None, keys: Path | None
) -> dict[str, Any]:
    """Score answers, show what came of it, and return it as `analyse measure --json` has it."""
    with progress("scoring answers", None) as at:
        results, added = score_answers(engine, metrics, benchmark, keys, at)
    cells, rows = [], []
    for one in results:
        means = {} if one.mean is None else {one.metric: one.mean}
        shown = means or {one.metric: 0.0}
        if one.labels is not None:
            shown = {
                "macro F1 of labels": one.labels.macro_f1,
                "micro F1 of labels": one.labels.micro_f1,
            }
        counts = {"scored": one.scored, "without_key": one.without_key}
        for name, value in shown.items():
            cells.append((one.benchmark, name, f"{value:.3f}", *counts.values()))
        labels = asdict(one.labels) if one.labels else None
        about = {"metric": one.metric, "benchmark": one.benchmark, "means": means}
        rows.append({**about, **counts, "labels": labels})
    show("Answers by their keys", ("benchmark", "metric", "mean", "scored", "without key"), cells)
    return {"answers": rows, "unchanged": added.unchanged}


def measurable() -> tuple[str, ...]:
    """Return the metrics that this installation can compute; say which it leaves out, and why."""
    from calibration.encoder import NO_MINILM, has_minilm

    if has_minilm():
        return METRICS
    say(f"bertscore is left out: {NO_MINILM}")
    return tuple(name for name in METRICS if name != "bertscore")


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
    results = []
    for name, metric in metrics.items():
        with progress(name, len(with_reference[0])) as at:
            results.append(scored_by(with_reference, metric, executor, at))
    added = import_ratings(study, [row for scored in results for row in scored.rows])
    emit(*map(_scored_line, results))
    if added.unchanged:
        say(f"{added.unchanged} of these values were there already")
    metrics_json = [
        {
            "metric": scored.name,
            "scored": len(scored.rows),
            "responses": scored.total,
            "truncated": list(scored.cut),
        }
        for scored in results
    ]
    return {"metrics": metrics_json, "unchanged": added.unchanged}


def _scored_line(scored: Scored) -> str:
    lost, cut = scored.total - len(scored.rows), scored.cut
    first = ", ".join(cut[:SHOWN]) + (", ..." if len(cut) > SHOWN else "")
    return (
        f"{scored.name}: scored {len(scored.rows)} of {scored.total} responses"
        + (f", {lost} have no reference" if lost else "")
        + (f", {counted(len(cut), 'pair')} {IN_PART}: {first}" if cut else "")
    )
