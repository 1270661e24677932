"""`medjury analyse models`: the models compared, by clinicians, by the jury, and by the jury corrected."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibration.models.rows import ALL_WAYS, PAPER, WAYS
from calibration.values import AnalysisOptions
from data.errors import BadInput
from data.queries import simulated_raters
from data.queries.authors import author_names
from data.queries.costs import recorded_calls
from jury.panel import Panel, read_panel
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
    ModelsResult,
    compared,
    lift,
    prepared,
    refuse_blind,
)
from medjury.services.record import steered

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from calibration.tables.spec import Table


def models(
    context: typer.Context,
    panel: PanelOption = None,
    jurors: Jurors = None,
    by: Annotated[
        str,
        typer.Option(
            metavar="[clinicians|jury|corrected|paper|all]",
            help="Whose scores compare the models; corrected: the jury's, by the clinicians'; paper: each "
            "benchmark's own metric where it was measured, else the jury; all: the first three, and paper where there is such a benchmark.",
        ),
    ] = "all",
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="BENCHMARK=METRIC", help="Of paper: the metric that scores a benchmark."
        ),
    ] = None,
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
    """Compare the models: win rates, mean scores, detectable differences, cost. Unblinds."""
    if by not in (*ALL_WAYS, "all"):
        raise typer.BadParameter(f"{by!r} is not {', '.join(ALL_WAYS)} or all", param_hint="--by")
    measured = named_metrics(metric or (), by)
    if unblind != bool(reason.strip()):
        raise BadInput("--unblind needs a --reason, which stays in the record, and only it does")
    who_sits, seats = named_jurors(panel, jurors), read_panel(panel) if panel else None
    prices = read_costs(costs) if costs else {}
    engine = study_of(context, db)
    options = AnalysisOptions(jurors=who_sits, criterion=criterion, reps=reps, seed=seed)
    task = prepared(engine, ModelsRequest(options, WAYS if by == "all" else (by,), measured))
    refuse_blind(engine, reason)  # before it is told whether a model is in the study
    refuse_unknown(prices, author_names(engine))
    lift(engine, reason, who)
    with progress("resampling", 1.0) as at:
        result = compared(engine, task, at)
    spent = model_costs(prices, result.rows), _jury_cost(engine, result, seats)
    _print(result, who_sits, json_to)
    _print_costs(*spent, json_to)
    say_unnoted(result.not_noted)
    for line in steered(engine):
        say(line, json_to)
    write_json(_to_json(result, *spent), json_to)


def named_metrics(named: Sequence[str], by: str = PAPER) -> dict[str, str]:
    """Return benchmark -> metric as --metric names them."""
    if named and by not in (PAPER, "all"):
        raise typer.BadParameter("belongs to --by paper or all", param_hint="--metric")
    pairs = [name.rpartition("=")[::2] for name in named]
    for name, (benchmark, metric) in zip(named, pairs, strict=True):
        if not (benchmark and metric):
            raise typer.BadParameter(f"{name!r} is not BENCHMARK=METRIC", param_hint="--metric")
    return dict(pairs)


def _jury_cost(engine: "Engine", result: ModelsResult, panel: Panel | None) -> JuryCost | None:
    """Return what the jury's calls cost, None without a jury."""
    if not result.jury:
        return None
    calls = recorded_calls(engine, result.jury)
    return jury_cost(calls, result.jury, panel, simulated_raters(engine))


def _to_json(
    result: ModelsResult, of_models: Sequence[ModelCost], of_jury: JuryCost | None
) -> dict[str, Any]:
    from calibration.json_values import decision_json, json_value

    return {
        "reps": result.options.reps,
        "seed": result.options.seed,
        "jury": list(result.jury),
        "benchmarks": list(result.benchmarks),
        "rows": json_value(result.rows),
        "categories": json_value(result.categories),
        "detectable": json_value(result.detectable),
        "costs": {"models": json_value(of_models), "jury": json_value(of_jury)},
        "decision": decision_json(result.decision),
        "measured": dict(result.measured),
    }


def _print(result: ModelsResult, named: tuple[str, ...] | None, json_to: Path | None) -> None:
    """Print the decision, by whose scores, and the tables."""
    from calibration.tables.models import (
        MEANING,
        MEANING_BY_INSTANCE,
        MEANING_DETECTABLE,
        category_tables,
        detectable_tables,
        model_tables,
    )
    from calibration.tables.numbers import TERMINAL

    show_decision(result.decision, json_to)
    say("", json_to)
    for line in _whose_scores(result, named):
        say(line, json_to)
    wide = model_tables(result.rows, TERMINAL)
    fits = max(map(table_width, wide)) <= room(json_to)
    _show(wide if fits else model_tables(result.rows, TERMINAL, narrow=True), json_to)
    say(f"{MEANING} {MEANING_BY_INSTANCE}" if fits else MEANING, json_to)
    say("", json_to)
    _show(category_tables(result.categories, TERMINAL), json_to, notes=False)
    _show(detectable := detectable_tables(result.detectable, TERMINAL), json_to)
    if detectable:
        say(MEANING_DETECTABLE, json_to)


def _whose_scores(result: ModelsResult, named: tuple[str, ...] | None) -> list[str]:
    """Return who sits on the jury, and who was asked and does not."""
    lines = []
    if result.silent:
        lines.append(seat_words(result.silent, named=bool(named)))
    lines += [f"{name}: by {metric}" for name, metric in sorted(result.measured.items())]
    if not result.jury:
        return lines if result.measured else [*lines, "by clinicians alone"]
    return [*lines, f"jury: {', '.join(result.jury)}"]


def _show(tables: "Sequence[Table]", json_to: Path | None, *, notes: bool = True) -> None:
    for table in tables:
        show_table(table, json_to, notes=notes)
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
    bound = of_jury.paper_usd
    formula = "" if bound is None else f"; by the paper's formula ${bound:.4f}"
    say(f"the jury's {of_jury.calls} recorded calls cost {spent}{more}{formula}", json_to)
    for note in of_jury.notes:
        say(f"  {note!s}", json_to)
