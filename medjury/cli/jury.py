"""`medjury jury` run, missing and references: let a panel rate, see what is missing and what it cost."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from sqlalchemy import Engine

from data.calls import first_asking_words, other_model_words
from data.errors import BadInput
from data.study.calls import IN_FLIGHT, missing_verdicts, other_models, usable_at_first
from data.study.calls import by_juror as verdicts_by_juror
from data.study.costs import juror_costs, study_spending
from data.study.masks import Planted, planted_texts
from data.study.references import References
from data.study.references import references as checked_references
from jury.admission import api_keys, price_notices
from jury.batch.run import run_batches
from jury.budget import Budget
from jury.panel import Panel, ended, read_panel, refuse_ended
from jury.references import check_references
from jury.run import run_panel
from jury.run_result import RunProgress, RunResult
from medjury.cli.jury_words import (
    announcement,
    batch_progress_words,
    batch_warnings,
    own_price_notes,
    progress_words,
)
from medjury.cli.options import Named, Study, finite
from medjury.cli.output import At, counted, emit, progress, say, show
from medjury.services.panels import (
    RunEstimate,
    RunScope,
    refuse_beyond_budget,
    refuse_long_references,
    run_estimate,
)
from medjury.services.run_words import (
    advice,
    cost_words,
    estimate_json,
    estimate_lines,
    estimate_warnings,
    in_flight_words,
    left_out_notes,
    planted_words,
    result_lines,
    result_notes,
    spending_notes,
    token_words,
    unknown_window_note,
)

MISSING = 1  # the exit code where verdicts or answers are
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
WAITING = "waiting: another run holds this study"
FULL_PRICES = "these are the full prices; with --batch a listed price is about half of it"
MISSING_COLUMNS = ["juror", "response_id", "status", "calls", "reason"]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a run."""

    max_usd: MaxUsd = None
    concurrency: Concurrency = None
    replicates: Annotated[int, typer.Option(help="How many times each juror rates a response.")] = 1
    benchmark: Benchmarks = None
    batch: Annotated[
        bool, typer.Option("--batch", help="In batches: about half the price, within a day.")
    ] = False
    leave_out_too_long: Annotated[
        bool,
        typer.Option(
            "--leave-out-too-long",
            help="Store a failure for what a juror's context window cannot hold, and rate the rest.",
        ),
    ] = False


def run(
    study: Study,
    panel: Named,
    options: RunOptions,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Say what it would take; send nothing.")
    ] = False,
) -> None:
    """Have every juror of a panel rate what it has not rated yet; exit 1 if ratings are missing.

    Example:
    medjury jury run simulated
    """
    chosen = read_panel(panel)
    engine = study.open()
    scope = RunScope(
        chosen, options.replicates, tuple(options.benchmark or ()), options.concurrency
    )
    if options.replicates < 1:
        raise BadInput(f"--replicates {options.replicates}: must be at least 1")
    if not estimate:
        refuse_ended(chosen, datetime.now(UTC).date())
        api_keys(chosen)
    expected = run_estimate(engine, scope)
    refuse_beyond_budget(engine, expected, options.max_usd)
    if estimate:
        study.write(_show_estimate(engine, chosen, expected, options))
        emit(*left_out_notes(expected, asked_for=options.leave_out_too_long))
        return
    left_out = left_out_notes(expected, asked_for=options.leave_out_too_long)
    emit(*announcement(chosen), *price_notices(chosen), *estimate_warnings(expected))
    emit(*unknown_window_note(expected), *left_out)
    result = _rated(engine, chosen, options)
    emit(*result_lines(result))
    if result.calls:
        emit(*result_notes(expected, complete=options.max_usd is None))
    study.write(result.to_json() | estimate_json(expected))
    if result.missing:
        raise typer.Exit(MISSING)


def _rated(engine: Engine, panel: Panel, options: RunOptions) -> RunResult:
    """Run a panel in batches, or request by request."""
    emit(*(own_price_notes(panel) if options.batch else batch_warnings(engine, panel)))
    also: dict[str, Any] = {
        "budget": Budget(options.max_usd),
        "replicates": options.replicates,
        "benchmarks": options.benchmark,
        "waiting": lambda: say(WAITING),
    }
    with progress(f"panel {panel.name}", None) as at:
        if not options.batch:
            return run_panel(
                engine,
                panel,
                progress=_moves(at),
                concurrency=options.concurrency,
                interrupted=lambda: say(STOPPING),
                **also,
            )
        result = run_batches(
            engine,
            panel,
            progress=lambda now: at(now.rated + now.failed, now.total, batch_progress_words(now)),
            tell=say,
            **also,
        )
    if waiting := result.by_status.get(IN_FLIGHT, 0):
        say(f"{counted(waiting, 'verdict')} in flight: the same command collects them")
    return result


def _moves(at: At) -> Any:
    """Return what moves a bar as a run goes on."""

    def moved(now: RunProgress) -> None:
        at(now.done, now.total, progress_words(now))

    return moved


def _show_estimate(
    engine: Engine, panel: Panel, expected: RunEstimate, options: RunOptions
) -> dict[str, Any]:
    """Show what a run would take, juror by juror, and return it as `--estimate --json` has it."""
    rows = [
        (row.juror, row.calls, row.tokens_in, _usd(row.usd_likely), _usd(row.usd_most))
        for row in expected.jurors
    ]
    heads = ["juror", "calls", "tokens in", "likely USD", "at most USD"]
    show(f"Panel {panel.name}, estimated", heads, rows)
    emit(*ended(panel, datetime.now(UTC).date()), *price_notices(panel), *estimate_lines(expected))
    if options.batch:
        say(FULL_PRICES)
    jurors = [asdict(row) for row in expected.jurors]
    spent = study_spending(engine)
    taken = {"seconds": expected.seconds, "usd_study": round(spent.usd, 9), "budget": spent.budget}
    return {"panel": panel.name, "jurors": jurors} | taken | estimate_json(expected)


def _usd(amount: float | None) -> str:
    return "price unknown" if amount is None else f"{amount:.4f}"


def missing(study: Study) -> None:
    """List missing verdicts with the last reason, and what all calls have cost.

    Example:
    medjury jury missing
    """
    engine = study.open()
    rows, planted = missing_verdicts(engine), planted_texts(engine)
    cells = [
        (
            row.juror,
            row.response_id + (f" (replicate {row.replicate})" if row.replicate else ""),
            *(row.status, row.calls, row.reason),
        )
        for row in rows
    ]
    if rows:
        show("Missing verdicts", MISSING_COLUMNS, cells, or_lines=True)
    totals = verdicts_by_juror(rows)
    for juror, counts in totals.items():
        statuses = ", ".join(f"{number} {status}" for status, number in counts.items())
        say(f"missing: {juror}: {statuses}")
    if not rows:
        say("no verdict is missing of what jurors were asked for")
    others, first = other_models(engine), usable_at_first(engine)
    costs = {juror: cost.tokens for juror, cost in juror_costs(engine).items()}
    emit(*planted_words(planted))
    emit(*(f"{juror}: {other_model_words(models)}" for juror, models in others.items()))
    emit(*(f"{juror}: {first_asking_words(*numbers)}" for juror, numbers in first.items()))
    money = _spent(engine)
    emit(*(f"{juror}: {words}" for juror, one in costs.items() if (words := token_words(one))))
    by_response = {(one.benchmark, one.response_id): one for one in planted}
    body = {
        "missing": [
            asdict(row) | _of_response(by_response.get((row.benchmark, row.response_id)))
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
    study.write(body | money)


def _of_response(planted: Planted | None) -> dict[str, Any]:
    """Return what a row says of what its response holds."""
    return {
        "verdict_in_response": planted is not None and planted.verdict,
        "tags_broken_in": list(planted.tags_broken_in) if planted is not None else [],
    }


def _planted_json(planted: Sequence[Planted]) -> dict[str, Any]:
    """Return which responses of the study hold a verdict, and which tags of the prompt."""
    named = [({"benchmark": one.benchmark, "response_id": one.response_id}, one) for one in planted]
    return {
        "verdicts_in_responses": [name for name, one in named if one.verdict],
        "tags_broken_in": [
            name | {"parts": list(one.tags_broken_in)} for name, one in named if one.tags_broken_in
        ],
    }


def _spent(engine: Engine) -> dict[str, float]:
    """Say what all calls of the study have cost and can have cost besides; return the figures."""
    spent = study_spending(engine)
    unknown = f" and {counted(spent.unknown, 'call')} of unknown price" if spent.unknown else ""
    total = f"spent over all runs: ${spent.known:.4f}{unknown} ({counted(spent.calls, 'call')})"
    say(f"{total}; what probes cost is not stored")
    if spent.in_flight:
        say(in_flight_words(spent.in_flight, spent.usd_in_flight))
    return {
        "calls": spent.calls,
        "usd": round(spent.known, 9),
        "usd_unknown": spent.unknown,
        "calls_in_flight": spent.in_flight,
        "usd_in_flight": round(spent.usd_in_flight, 9),
        "usd_study": round(spent.usd, 9),
    }


def references(
    study: Study,
    panel: Named,
    max_usd: MaxUsd = None,
    concurrency: Concurrency = None,
    benchmark: Benchmarks = None,
) -> None:
    """Ask every juror, once per instance, whether the reference states facts its source lacks.

    Exit 1 if answers are missing.

    Example:
    medjury jury references simulated
    """
    chosen = read_panel(panel)
    engine = study.open()
    api_keys(chosen)
    refuse_ended(chosen, datetime.now(UTC).date())
    refuse_long_references(engine, chosen, benchmark)
    emit(*announcement(chosen), *price_notices(chosen))
    with progress(f"references, panel {chosen.name}", None) as at:
        result = check_references(
            engine,
            chosen,
            concurrency=concurrency,
            budget=Budget(max_usd),
            benchmarks=benchmark,
            progress=_moves(at),
            waiting=lambda: say(WAITING),
        )
    checked = checked_references(engine, [juror.name for juror in chosen.juror], benchmark)
    _show_references(result, checked)
    study.write(_references_json(result, checked))
    if result.missing:
        raise typer.Exit(MISSING)


def _show_references(result: RunResult, checked: References) -> None:
    """Say what the check has come to, and what is not known."""
    total = result.rated + result.missing
    emit(
        f"{result.panel}: answered {result.rated} of {total} "
        f"({counted(result.responses, 'reference')} x {counted(result.jurors, 'juror')}), "
        f"{counted(result.calls, 'call')}, {cost_words(result)}",
        *(f"missing: {n} {status}" for status, n in result.by_status.items() if status != "ok"),
        *(f"juror {juror} was stopped: {why}" for juror, why in result.stopped.items()),
        f"{len(checked.marked)} marked, {len(checked.sound)} sound, {len(checked.not_known)} not known; "
        f"{counted(len(checked.unchecked), 'instance')} without a reference or a context, not asked about",
        "marked: more than half of the jurors who answered, at least two, say so; a tie, or fewer "
        "than two answers, is not known",
    )
    if checked.simulated:
        say("these answers are simulated: they say nothing of the references")
    emit(*spending_notes(result), *advice(result))


def _references_json(result: RunResult, checked: References) -> dict[str, Any]:
    """Return the figures and the marked instances' names."""
    money = ("calls", "usd", "usd_unknown", "usd_in_flight", "usd_study")
    return {
        "panel": result.panel,
        "instances": result.responses,
        "jurors": result.jurors,
        "answered": result.rated,
        "missing": result.missing,
        "by_status": dict(result.by_status),
        **{name: getattr(result, name) for name in money},
        "marked": sorted(checked.marked),
        "sound": len(checked.sound),
        "not_known": sorted(checked.not_known),
        "unchecked": len(checked.unchecked),
        "simulated": checked.simulated,
    }
