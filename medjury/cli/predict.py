"""`medjury analyse predict`: a validated jury on responses that no clinician rated."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calibration.values import AnalysisOptions
from data.csv_files import write_csv
from data.errors import BadFile, BadInput
from medjury.cli.files import write_json, writes_to
from medjury.cli.options import (
    BenchmarkOption,
    Criterion,
    Db,
    Json,
    Jurors,
    MinJurors,
    PanelOption,
    Seed,
    finite,
    named_jurors,
    study_of,
)
from medjury.cli.output import (
    fitting,
    progress,
    say,
    say_unnoted,
    seat_words,
    show_decision,
    show_table,
)

if TYPE_CHECKING:
    from medjury.services.predicting import Predictions

CsvNew = Annotated[
    Path | None,
    typer.Option("--csv", metavar="FILE", help="Write a row a response; new.", callback=writes_to),
]
ABOUT = (
    "corrected: the jury on all n + N responses, corrected by what clinicians said of n. gain: so "
    "many times n ratings would give clinicians alone that interval. Right if the n are a random "
    "sample of their benchmark.",
    "Single responses: the jury's composite mapped to the clinicians' scale, -+ half the width, from "
    "rated instances that the map was not fitted on.",
)


def predict(
    context: typer.Context,
    panel: PanelOption = None,
    jurors: Jurors = None,
    benchmark: BenchmarkOption = None,
    criterion: Criterion = None,
    level: Annotated[
        float, typer.Option(help="Of the intervals, between 0 and 1.", callback=finite)
    ] = 0.9,
    seed: Seed = 0,
    min_jurors: MinJurors = None,
    csv_to: CsvNew = None,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Predict clinicians' scores of responses they did not rate, from a validated jury."""
    from medjury.services.predicting import csv_of, to_json
    from medjury.services.predicting import predict as predicted

    if csv_to is not None and csv_to.exists():
        raise BadFile(f"--csv {csv_to}: is there already; name another file")
    if not 0 < level < 1:
        raise BadInput(f"--level {level:g}: give a share between 0 and 1, such as 0.9")
    options = AnalysisOptions(
        jurors=named_jurors(panel, jurors),
        min_jurors=min_jurors,
        benchmark=benchmark,
        criterion=criterion,
        seed=seed,
    )
    engine = study_of(context, db)
    with progress("resampling", 1.0) as at:
        predictions = predicted(engine, options, level, at)
    _show(predictions, json_to)
    if csv_to is not None:
        say(f"{csv_to}: {write_csv(csv_to, *csv_of(predictions.responses))} responses", json_to)
    write_json(to_json(predictions), json_to)


def _show(predictions: "Predictions", json_to: Path | None) -> None:
    """Print whether the predictions may be used, who predicts, and the two tables."""
    from calibration.tables.planning import means_table, single_table

    say_unnoted(predictions.unnoted)
    show_decision(predictions.decision, json_to)
    say(f"jury: {', '.join(predictions.jury)}", json_to)
    if predictions.silent:
        named = predictions.options.jurors is not None
        say(seat_words(predictions.silent, named=named), json_to)
    rows, level = predictions.rows, predictions.level
    means = fitting(partial(means_table, rows, level), json_to)
    for table in (means, single_table(rows, level)):
        say("", json_to)
        show_table(table, json_to, notes=table is not means)
    for line in ("", *ABOUT, *predictions.told):
        say(line, json_to)
