"""`medjury measure`: metrics as raters, so that they are compared like everybody else."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from sqlalchemy import Engine

from data.errors import BadInput
from data.importers.batches import batches
from data.importers.rows import Origin, RatingRow
from data.queries import Pair, pairs
from data.schema import Kind
from data.store import RatingsAdded, import_ratings
from medjury.options import Db, study_of
from medjury.output import progress, say

METRICS = ("rouge-l", "bertscore")
BATCH = 64
Texts = list[tuple[str, str]]


@dataclass
class Measured:
    """One metric's values on a batch: F-measures, the name it goes by, and a word on it."""

    name: str
    values: Sequence[float]
    said: str = ""
    truncated: int = 0


Metric = Callable[[Texts], Measured]


def measure(
    context: typer.Context,
    metrics: Annotated[
        list[str] | None, typer.Argument(metavar="[rouge-l] [bertscore]", help="By default both.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|PATH", help="BERTScore's backbone; by default the one installed."
        ),
    ] = None,
    engine: Annotated[str, typer.Option("--engine", metavar="[numpy|onnx]")] = "numpy",
    db: Db = None,
) -> None:
    """Score every response against its reference with ROUGE-L and BERTScore."""
    unknown = [name for name in metrics or () if name not in METRICS]
    if unknown:
        raise BadInput(f"metric {unknown[0]!r}: choose from {' and '.join(METRICS)}")
    study = study_of(context, db)
    for name in metrics or METRICS:
        run_metric(study, name, model, engine)


def run_metric(study: Engine, name: str, model: str | None = None, engine: str = "numpy") -> None:
    """Score what has a reference, store it, and say what was left out and why."""
    found = list(pairs(study))
    with_reference = [one for one in found if one.reference is not None]
    if not with_reference:
        raise BadInput(f"{name}: no response of this study has a reference to compare with")
    metric = rouge if name == "rouge-l" else bertscore(model, engine)
    told: list[Measured] = []
    with progress(name, len(with_reference)) as at:
        added = import_ratings(study, _rows(with_reference, metric, told, at))
    _say(told, len(with_reference), len(found), added)


def rouge(texts: Texts) -> Measured:
    """Score one batch with ROUGE-L, Porter-stemmed as HELM has it."""
    from calibration.baselines.rouge import rouge_l

    return Measured("rouge-l", rouge_l(texts).tolist())


def bertscore(model: str | None, engine: str) -> Metric:
    """Return BERTScore on one backbone; the backbone and layer are part of its name."""
    from calibration.baselines.bertscore import bert_score

    if engine not in ("numpy", "onnx"):
        raise BadInput(f"--engine {engine}: choose numpy or onnx")

    def score(texts: Texts) -> Measured:
        found = bert_score(texts, model, engine="onnx" if engine == "onnx" else "numpy")
        name = f"bertscore-{found.backbone}-{found.layer}"
        return Measured(
            name, found.f1.tolist(), f"weights {found.sha256[:12]}", len(found.truncated)
        )

    return score


def _rows(
    found: list[Pair], metric: Metric, told: list[Measured], at: Callable[[float], None]
) -> Iterator[RatingRow]:
    """Yield a rating for each pair, batch by batch as they are stored."""
    done = 0
    for batch in batches(found, BATCH):
        measured = metric([(one.text, one.reference or "") for one in batch])
        told.append(measured)
        done += len(batch)
        at(done)
        for one, value in zip(batch, measured.values, strict=True):
            yield RatingRow(
                origin=Origin(measured.name, done),
                response_id=one.response_id,
                rater=measured.name,
                kind=Kind.METRIC,
                criterion="f1",
                score=repr(value),
                comment=measured.said,
            )


def _say(told: list[Measured], scored: int, total: int, added: RatingsAdded) -> None:
    truncated = sum(one.truncated for one in told)
    say(
        f"{told[0].name}: scored {scored} of {total} responses"
        + (f", {total - scored} have no reference" if scored < total else "")
        + (f", {truncated} pairs read only in part (512 word pieces)" if truncated else "")
        + (f"; {added.unchanged} were there already" if added.unchanged else "")
    )
