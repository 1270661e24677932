"""`medjury jury run`, `missing`: let a panel rate, and see what is missing and what it cost."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy import Engine

from data.calls import TokenCosts, first_asking_words, other_model_words
from data.errors import BadInput
from data.study.calls import MissingVerdict, missing_verdicts, other_models, usable_at_first
from data.study.calls import by_juror as verdicts_by_juror
from data.study.costs import (
    InFlight,
    Spending,
    calls_in_flight,
    spending,
    study_spending,
    token_costs_by_juror,
)
from data.study.masks import Planted, planted_texts
from jury.admission import api_keys, price_notices
from jury.batch.run import IN_FLIGHT, run_batches
from jury.budget import Budget
from jury.panel import Panel, ended, read_panel, refuse_ended
from jury.run import run_panel
from jury.run_result import RunResult
from medjury.cli.files import write_json
from medjury.cli.jury_words import (
    FULL_PRICES,
    MISSING,
    RunRequest,
    advice,
    announcement,
    answer_notes,
    batch_progress_words,
    batch_warnings,
    cost_words,
    estimate_json,
    estimate_warnings,
    in_flight_words,
    left_out_notes,
    longest_note,
    missing_by_juror,
    own_price_notes,
    paper_bound_note,
    planted_words,
    progress_words,
    result_notes,
    spending_notes,
    time_notes,
    token_notes,
    token_words,
    unknown_window_note,
)
from medjury.cli.options import Db, Json, Named, finite, study_of
from medjury.cli.output import counted, progress, room, say, show, width
from medjury.services.panels import (
    RunEstimate,
    RunScope,
    refuse_beyond_budget,
    run_estimate,
)

MaxUsd = Annotated[
    float | None, typer.Option(help="Never spend more in this run.", callback=finite)
]
Concurrency = Annotated[
    int | None,
    typer.Option(
        help="Requests in flight at a time; 8, at your own servers as many as they have slots."
    ),
]
Benchmarks = Annotated[list[str] | None, typer.Option(help="Only this one; repeatable.")]
STOPPING = "stopping: what is in flight is waited for and stored; Ctrl-C again drops it"
MISSING_COLUMNS = ["juror", "response_id", "status", "calls", "reason"]


def run(
    context: typer.Context,
    panel: Named,
    max_usd: MaxUsd = None,
    estimate_only: Annotated[
        bool, typer.Option("--estimate", help="Say what it would take; send nothing.")
    ] = False,
    concurrency: Concurrency = None,
    replicates: Annotated[
        int, typer.Option(help="How many times each juror rates a response.")
    ] = 1,
    benchmark: Benchmarks = None,
    batch: Annotated[
        bool, typer.Option("--batch", help="In batches: about half the price, within a day.")
    ] = False,
    leave_out_too_long: Annotated[
        bool,
        typer.Option(
            "--leave-out-too-long",
            help="Store a failure for what a juror's context window cannot hold, and rate the rest.",
        ),
    ] = False,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Have every juror of a panel rate what it has not rated yet; exit 1 if ratings are missing."""
    chosen = read_panel(panel)
    engine = study_of(context, db)
    if estimate_only:
        scope = RunScope(chosen, replicates, tuple(benchmark or ()), concurrency)
        expected = _print_estimate(engine, scope, max_usd, json_to)
        if batch:
            say(FULL_PRICES, json_to)
        for line in left_out_notes(expected, asked_for=leave_out_too_long):
            say(line, json_to)
        return
    request = RunRequest(max_usd, replicates, benchmark, concurrency, batch, leave_out_too_long)
    if let_rate(engine, chosen, request, json_to).missing:
        raise typer.Exit(MISSING)


def let_rate(engine: Engine, panel: Panel, request: RunRequest, json_to: Path | None) -> RunResult:
    """Let a panel rate, say what goes where before and what it came to after."""
    refuse_ended(panel, datetime.now(UTC).date())
    api_keys(panel)
    scope = RunScope(panel, request.replicates, tuple(request.benchmarks or ()))
    expected = run_estimate(engine, scope)
    refuse_beyond_budget(engine, expected, request.max_usd)
    left_out = left_out_notes(expected, asked_for=request.leave_out_too_long)
    warnings = (*estimate_warnings(expected), *unknown_window_note(expected), *left_out)
    for line in (*announcement(panel), *price_notices(panel), *warnings):
        say(line, json_to)
    result = _rated(engine, panel, request, json_to)
    print_result(result, json_to)
    for line in result_notes(expected, complete=request.max_usd is None) if result.calls else ():
        say(line, json_to)
    write_json(result.to_json() | estimate_json(expected), json_to)
    return result


def _rated(engine: Engine, panel: Panel, request: RunRequest, json_to: Path | None) -> RunResult:
    """Run a panel in batches, or request by request, its calls made here or by workers."""
    notices = own_price_notes(panel) if request.batch else batch_warnings(engine, panel)
    for line in notices:
        say(line, json_to)
    budget = Budget(request.max_usd)
    options: dict[str, Any] = {
        "budget": budget,
        "replicates": request.replicates,
        "benchmarks": request.benchmarks,
        "waiting": lambda: say("waiting: another run holds this study", json_to),
    }
    if request.batch:
        return _in_batches(engine, panel, options, json_to)
    with progress(f"panel {panel.name}", None) as at:
        return run_panel(
            engine,
            panel,
            progress=lambda now: at(now.done, now.total, progress_words(now)),
            concurrency=request.concurrency,
            interrupted=lambda: say(STOPPING, json_to),
            **options,
        )


def _in_batches(
    engine: Engine, panel: Panel, options: Mapping[str, Any], json_to: Path | None
) -> RunResult:
    """Run a panel in batches and say how to come by what is still with the providers."""
    with progress(f"panel {panel.name}", None) as at:
        result = run_batches(
            engine,
            panel,
            progress=lambda now: at(now.rated + now.failed, now.total, batch_progress_words(now)),
            tell=lambda line: say(line, json_to),
            **options,
        )
    if open_ := result.by_status.get(IN_FLIGHT, 0):
        say(f"{counted(open_, 'verdict')} in flight: the same command collects them", json_to)
    return result


def print_result(result: RunResult, json_to: Path | None = None) -> None:
    """Say what a run has come to: complete, or what is missing and why."""
    total = result.rated + result.missing
    say(
        f"{result.panel}: scored {result.rated} of {total} "
        f"({counted(result.responses, 'response')} x {counted(result.jurors, 'juror')}), "
        f"{counted(result.calls, 'call')}, {cost_words(result)}",
        json_to,
    )
    stopped = [f"juror {juror} was stopped: {why}" for juror, why in result.stopped.items()]
    ends = (
        *missing_by_juror(result),
        *stopped,
        *answer_notes(result),
        *spending_notes(result),
        *advice(result),
    )
    for line in (*token_notes(result), *ends):
        say(line, json_to)


def _print_estimate(
    engine: Engine, scope: RunScope, max_usd: float | None, json_to: Path | None
) -> RunEstimate:
    """Show what a run would take, juror by juror, and return it."""
    if scope.replicates < 1:
        raise BadInput(f"--replicates {scope.replicates}: must be at least 1")
    panel, expected = scope.panel, run_estimate(engine, scope)
    refuse_beyond_budget(engine, expected, max_usd)
    rows = [
        [row.juror, f"{row.calls}", f"{row.tokens_in}", _usd(row.usd_likely), _usd(row.usd_most)]
        for row in expected.jurors
    ]
    heads = ["juror", "calls", "tokens in", "likely USD", "at most USD"]
    show(f"Panel {panel.name}, estimated", heads, rows, json_to)
    ended_models = ended(panel, datetime.now(UTC).date())
    notices = (*price_notices(panel), *estimate_warnings(expected))
    windows = (*longest_note(expected), *unknown_window_note(expected))
    ends = (*time_notes(expected), *paper_bound_note(expected))
    for line in (*ended_models, *notices, *windows, *ends):
        say(line, json_to)
    jurors = [asdict(row) for row in expected.jurors]
    spent = study_spending(engine)
    run = {"seconds": expected.seconds, "usd_study": round(spent.usd, 9), "budget": spent.budget}
    write_json({"panel": panel.name, "jurors": jurors} | run | estimate_json(expected), json_to)
    return expected


def _usd(amount: float | None) -> str:
    return "price unknown" if amount is None else f"{amount:.4f}"


def missing(context: typer.Context, json_to: Json = None, db: Db = None) -> None:
    """List missing verdicts with the last reason, and what all calls have cost."""
    engine = study_of(context, db)
    rows, spent, open_ = missing_verdicts(engine), spending(engine), calls_in_flight(engine)
    planted = planted_texts(engine)
    by_response = {(response.benchmark, response.response_id): response for response in planted}
    if rows:
        _table(_cells(rows), json_to)
    totals = verdicts_by_juror(rows)
    for juror, counts in totals.items():
        statuses = ", ".join(f"{number} {status}" for status, number in counts.items())
        say(f"missing: {juror}: {statuses}", json_to)
    if not rows:
        say("no verdict is missing of what jurors were asked for", json_to)
    for line in planted_words(planted):
        say(line, json_to)
    others = other_models(engine)
    for juror, models in others.items():
        say(f"{juror}: {other_model_words(models)}", json_to)
    first = usable_at_first(engine)
    for juror, counts_first in first.items():
        say(f"{juror}: {first_asking_words(*counts_first)}", json_to)
    _say_spent(spent, open_, json_to)
    costs = token_costs_by_juror(engine)
    for line in token_cost_lines(costs):
        say(line, json_to)
    body = {
        "missing": [
            row.to_json() | _of_its_response(by_response.get((row.benchmark, row.response_id)))
            for row in rows
        ],
        **_planted_json(planted),
        "jurors": [
            {"juror": juror, "missing": sum(counts.values()), "by_status": counts}
            for juror, counts in totals.items()
        ],
        "tokens": {juror: cost.to_json() for juror, cost in costs.items()},
        "other_models": others,
        "usable_at_first": {
            juror: {"usable": usable, "answers": answers}
            for juror, (usable, answers) in first.items()
        },
    }
    write_json(body | _money(spent, open_), json_to)


def _of_its_response(planted: Planted | None) -> dict[str, Any]:
    """Return what a row says of what its response holds."""
    return {
        "verdict_in_response": planted is not None and planted.verdict,
        "tags_broken_in": list(planted.tags_broken_in) if planted is not None else [],
    }


def _planted_json(planted: Sequence[Planted]) -> dict[str, Any]:
    """Return which responses of the study hold a verdict, and which tags of the prompt."""
    named = [
        ({"benchmark": response.benchmark, "response_id": response.response_id}, response)
        for response in planted
    ]
    return {
        "verdicts_in_responses": [name for name, response in named if response.verdict],
        "tags_broken_in": [
            name | {"parts": list(response.tags_broken_in)}
            for name, response in named
            if response.tags_broken_in
        ],
    }


def token_cost_lines(costs: Mapping[str, TokenCosts]) -> Iterator[str]:
    """Yield what each juror's calls took and cost, by kind of token."""
    for juror, tokens in costs.items():
        if words := token_words(tokens):
            yield f"{juror}: {words}"


def _money(spent: Spending, open_: InFlight) -> dict[str, float]:
    """Return the figures on all calls of the study."""
    return {
        "calls": spent.calls,
        "usd": round(spent.usd, 9),
        "usd_unknown": spent.unknown,
        "calls_in_flight": open_.calls + open_.batched,
        "usd_in_flight": round(open_.usd, 9),
        "usd_study": round(spent.usd + open_.usd, 9),
    }


def _say_spent(spent: Spending, open_: InFlight, json_to: Path | None) -> None:
    """Say what all calls have cost, and what some can have cost besides."""
    unknown = f" and {counted(spent.unknown, 'call')} of unknown price" if spent.unknown else ""
    total = f"spent over all runs: ${spent.usd:.4f}{unknown} ({counted(spent.calls, 'call')})"
    say(f"{total}; what probes cost is not stored", json_to)
    if number := open_.calls + open_.batched:
        say(in_flight_words(number, open_.usd), json_to)


def _cells(rows: Sequence[MissingVerdict]) -> list[list[str]]:
    """Return the rows of the table of missing verdicts."""
    return [
        [
            row.juror,
            row.response_id + (f" (replicate {row.replicate})" if row.replicate else ""),
            row.status,
            f"{row.calls}",
            row.reason,
        ]
        for row in rows
    ]


def _table(cells: list[list[str]], json_to: Path | None) -> None:
    """Show the verdicts as a table or, where the screen is too narrow for it, a line each."""
    if width(MISSING_COLUMNS, cells) <= room(json_to):
        show("Missing verdicts", MISSING_COLUMNS, cells, json_to)
        return
    for juror, response, status, calls, reason in cells:
        say(f"{juror}, {response}: {status}, {counted(int(calls), 'call')}: {reason}", json_to)
