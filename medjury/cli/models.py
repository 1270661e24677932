"""`medjury analyse models`: the models compared, by clinicians, by the jury, and by the jury corrected."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibration.model_values import WAYS
from calibration.values import AnalysisOptions
from data.errors import BadInput
from data.queries import simulated_raters
from data.queries.authors import author_names
from data.queries.costs import recorded_calls
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
from medjury.services.model_costs import (
    JuryCost,
    ModelCost,
    jury_cost,
    model_costs,
    read_costs,
    refuse_unknown,
)
from medjury.services.models import (
    ModelsRequest,
    ModelsTask,
    compared,
    lift,
    prepared,
    refuse_blind,
)
from medjury.services.record import steered

if TYPE_CHECKING:
    from sqlalchemy import Engine

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
        found, not_noted = compared(engine, task, at)
    of_models, of_jury = model_costs(prices, found.rows), _jury_cost(engine, task.jury)
    _print(task, found, who_sits, json_to)
    _print_costs(of_models, of_jury, json_to)
    say_unnoted(not_noted)
    for line in steered(engine):
        say(line, json_to)
    write_json(_to_json(task, found, of_models, of_jury), json_to)


def _jury_cost(engine: "Engine", jury: tuple[str, ...]) -> JuryCost | None:
    """Return what the jury's calls cost, None without a jury."""
    calls = recorded_calls(engine, jury)
    return jury_cost(calls, jury, simulated_raters(engine)) if jury else None


def _to_json(
    task: ModelsTask,
    found: "ModelComparison",
    of_models: Sequence[ModelCost],
    of_jury: JuryCost | None,
) -> dict[str, Any]:
    from calibration.json_values import decision_json, json_value

    return {
        "reps": task.options.reps,
        "seed": task.options.seed,
        "jury": list(task.jury),
        "benchmarks": list(found.benchmarks),
        "rows": json_value(found.rows),
        "categories": json_value(found.categories),
        "differences": json_value(found.differences),
        "costs": {"models": json_value(of_models), "jury": json_value(of_jury)},
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
    if by_category := category_table(found.categories, TERMINAL):
        show_table(by_category, json_to, notes=False)
        say("", json_to)


def _print_costs(
    of_models: Sequence[ModelCost], of_jury: JuryCost | None, json_to: Path | None
) -> None:
    from calibration.tables.models import model_cost_spec
    from calibration.tables.numbers import TERMINAL
    from calibration.tables.spec import laid_out

    if of_models:
        spec = model_cost_spec([*of_models[0].win_rate])
        show_table(laid_out(spec, of_models, TERMINAL), json_to)
    if of_jury is None:
        return
    spent = "unknown" if of_jury.usd is None else f"${of_jury.usd:.4f}"
    more = f" and {of_jury.usd_unknown} calls of unknown price" if of_jury.usd_unknown else ""
    say(f"the jury's {of_jury.calls} recorded calls cost {spent}{more}", json_to)
    for note in of_jury.notes:
        say(f"  {note!s}", json_to)
