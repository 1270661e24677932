"""`medjury analyse models`: the models compared, by clinicians, by the jury, and by the jury corrected."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibration.tables.models import WAYS
from calibration.values import AnalysisOptions
from data.errors import BadInput
from data.study.authors import author_names
from medjury.cli.files import write_json
from medjury.cli.options import (
    Criterion,
    Db,
    Json,
    Jurors,
    PanelOption,
    Reason,
    Reps,
    Seed,
    Who,
    named_jurors,
    study_of,
)
from medjury.cli.output import (
    progress,
    room,
    say,
    say_unnoted,
    seat_words,
    show_decision,
    show_table,
    table_width,
)
from medjury.services.models import (
    ModelsRequest,
    ModelsTask,
    compared,
    lift,
    prepared,
    read_costs,
    refuse_blind,
    refuse_unknown,
)
from medjury.services.record import steered

if TYPE_CHECKING:
    from calibration.models import ModelComparison


def models(
    context: typer.Context,
    panel: PanelOption = None,
    jurors: Jurors = None,
    by: Annotated[
        str,
        typer.Option(
            metavar="[clinicians|jury|corrected|all]",
            help="Whose scores compare the models; corrected: the jury's, by the clinicians'.",
        ),
    ] = "all",
    criterion: Criterion = None,
    reps: Reps = 2000,
    seed: Seed = 0,
    costs: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV of what each model cost; columns model, usd."),
    ] = None,
    unblind: Annotated[
        bool,
        typer.Option(
            "--unblind", help="Disclose the authors of a study that is still open; recorded."
        ),
    ] = False,
    reason: Reason = "",
    who: Who = "coordinator",
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Compare the models: win rates, mean scores, categories, cost. Unblinds."""
    if by not in (*WAYS, "all"):
        raise typer.BadParameter(f"{by!r} is not {', '.join(WAYS)} or all", param_hint="--by")
    if unblind != bool(reason.strip()):
        raise BadInput("--unblind needs a --reason, which stays in the record, and only it does")
    who_sits = named_jurors(panel, jurors)
    prices = read_costs(costs) if costs else {}
    engine = study_of(context, db)
    options = AnalysisOptions(jurors=who_sits, criterion=criterion, reps=reps, seed=seed)
    task = prepared(engine, ModelsRequest(options, WAYS if by == "all" else (by,)))
    refuse_blind(engine, reason)  # before it is told whether a model is in the study
    refuse_unknown(prices, author_names(engine))
    lift(engine, reason, who)
    with progress("resampling", 1.0) as at:
        found, not_noted = compared(engine, task, at, prices)
    _print(task, found, who_sits, json_to)
    say_unnoted(not_noted)
    for line in steered(engine):
        say(line, json_to)
    write_json(_to_json(task, found), json_to)


def _to_json(task: ModelsTask, found: "ModelComparison") -> dict[str, Any]:
    from calibration.json_values import decision_json, json_value

    return {
        "reps": task.options.reps,
        "seed": task.options.seed,
        "jury": list(task.jury),
        "benchmarks": list(found.benchmarks),
        "rows": json_value(found.rows),
        "differences": json_value(found.differences),
        "decision": decision_json(found.decision),
    }


def _print(
    task: ModelsTask,
    found: "ModelComparison",
    named: tuple[str, ...] | None,
    json_to: Path | None,
) -> None:
    """Print the decision, by whose scores, and the tables."""
    from calibration.models import deciding_way
    from calibration.tables.models import MEANING, category_table, difference_table, model_table
    from calibration.tables.numbers import TERMINAL

    show_decision(found.decision, json_to)
    say("", json_to)
    if task.silent:
        say(seat_words(task.silent, named=bool(named)), json_to)
    say(f"jury: {', '.join(task.jury)}" if task.jury else "by clinicians alone", json_to)
    wide = model_table(found.rows, TERMINAL)
    fits = table_width(wide) <= room(json_to)
    show_table(wide if fits else model_table(found.rows, TERMINAL, narrow=True), json_to)
    say(f"\n{MEANING}\n", json_to)
    decides = deciding_way(found.rows)
    if pairs := [row for row in found.differences if row.by == decides]:
        show_table(difference_table(pairs, TERMINAL, narrow=True), json_to, notes=False)
        say("", json_to)
    if by_category := category_table(found.rows, TERMINAL):
        show_table(by_category, json_to, notes=False)
        say("", json_to)
