"""`medjury analyse claims`: what judging claims gains over plain verdicts, and what it costs."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from medjury.cli.files import write_json
from medjury.cli.options import (
    METHODS,
    BenchmarkOption,
    Db,
    Json,
    Method,
    Named,
    Reps,
    Seed,
    either,
    study_of,
)
from medjury.cli.output import (
    counted,
    progress,
    say,
    say_unnoted,
    show_decision,
    show_table,
)

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from data.queries.claims import Spent
    from jury.budget import Budget
    from jury.panel import Panel
    from jury.run_result import RunResult
    from medjury.cli.jury_words import RunRequest
    from medjury.services.claims import ClaimsFigures

TOLD = ("notes", "splitter")  # of the claims: they stand elsewhere in the JSON


def claims(
    context: typer.Context,
    panel: Named,
    benchmark: BenchmarkOption = None,
    composite: Annotated[
        bool,
        typer.Option("--composite", help="Compare the mean of all criteria, not the derived one."),
    ] = False,
    method: Method = "paper",
    reps: Reps = 2000,
    seed: Seed = 0,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Compare the jury that judges claims with the plain one: gain, price, claims per response."""
    from calibration.tables.numbers import TERMINAL
    from calibration.values import AnalysisOptions
    from jury.panel import read_panel
    from medjury.services.claims import (
        ClaimsQuestion,
        claims_figures,
        figures_lines,
        figures_tables,
        jury_of,
    )

    by = either(method, METHODS, "--method")
    options = AnalysisOptions(benchmark=benchmark, method=by, reps=reps, seed=seed)
    figures = claims_figures(
        study_of(context, db), ClaimsQuestion(jury_of(read_panel(panel)), options, composite)
    )
    say_unnoted(figures.compared.unnoted)
    show_decision(figures.compared.decision, json_to)
    say("", json_to)
    for table in figures_tables(figures, TERMINAL):
        show_table(table, json_to)
    for line in figures_lines(figures):
        say(line, json_to)
    write_json(claims_json(figures), json_to)


def claims_json(figures: "ClaimsFigures") -> dict[str, Any]:
    """Return what `medjury analyse claims --json` writes; undefined is None."""
    from calibration.json_values import json_value
    from medjury.cli.juries import comparison_json

    price, counts = figures.price, asdict(figures.counts)
    own: dict[str, Any] = json_value(
        {
            "claims_criterion": figures.criterion,
            "formula": figures.formula,
            "splitter": figures.splitter,
            "n_both": figures.n_both,
            "usd": {
                "plain": _spent(price.plain),
                "split": _spent(price.split),
                "judged": _spent(price.judged),
                "claims": _spent(price.whole),
                "ratio": price.usd_ratio,
            },
            "claims": {name: value for name, value in counts.items() if name not in TOLD},
        }
    )
    return comparison_json(figures.compared) | own


def _spent(spent: "Spent") -> dict[str, Any]:
    return {"usd": round(spent.usd, 9), "calls": spent.calls, "usd_unknown": spent.unknown}


def refuse_with_claims(engine: "Engine", panel: "Panel", request: "RunRequest") -> None:
    """Refuse options that a panel which judges claims cannot be run with; nothing is sent before."""
    from jury.claims_run import refuse_claims
    from jury.worklist import benchmarks_to_rate

    if panel.claims is None:
        return
    several = request.replicates > 1
    options = {"--batch": request.batch, "--on": request.on, "--replicates": several}
    refuse_claims(panel, benchmarks_to_rate(engine, panel, request.benchmarks), **options)


def with_judged_claims(
    engine: "Engine",
    panel: "Panel",
    request: "RunRequest",
    plain: "RunResult",
    budget: "Budget",
    json_to: Path | None,
) -> "RunResult":
    """Have responses split into claims and these judged; return the result of the whole run."""
    from jury.claims_run import run_claims, with_claims
    from medjury.cli.jury_words import cost_words, progress_words

    with progress(f"panel {panel.name}, claims", None) as at:
        claims = run_claims(
            engine,
            panel,
            concurrency=request.concurrency,
            budget=budget,
            benchmarks=request.benchmarks,
            progress=lambda now: at(now.done, now.total, progress_words(now)),
            waiting=lambda: say("waiting: another run holds this study", json_to),
        )
    split = claims.split
    say(
        f"claims: split {split.rated} of {counted(split.rated + split.missing, 'response')} that had "
        f"none, {cost_words(split)}",
        json_to,
    )
    return with_claims(plain, claims)
