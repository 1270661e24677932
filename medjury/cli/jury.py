"""`medjury jury`: let a panel rate, estimate, list what is missing, probe it, check references."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy import Engine

from data.errors import BadInput
from data.queries.costs import study_spending
from data.queries.references import References, references
from jury.admission import admit, api_keys, price_notices
from jury.batch.context import IN_FLIGHT
from jury.batch.run import run_batches
from jury.call import Provider
from jury.panel import Panel, ended, read_panel, refuse_ended
from jury.providers.executor import with_lost_jurors
from jury.references import check_references
from jury.run import run_panel
from jury.run_result import RunResult
from medjury.cli.dask_connect import On
from medjury.cli.jury_words import (
    FULL_PRICES,
    MISSING,
    advice,
    before,
    by_juror,
    cost_of,
    how,
    how_in_batches,
    own_prices,
    still_in_batches,
    to_json,
    told_after,
    told_before,
    told_bound,
    told_repeated,
    took,
    unsettled,
)
from medjury.cli.options import Db, Json, Named, finite, study_of
from medjury.cli.output import counted, progress, say, show
from medjury.cli.places import check_json, write_json
from medjury.services.jury_lab import RunScope, refuse_beyond_budget, run_estimate

MaxUsd = Annotated[
    float | None, typer.Option(help="Never spend more in this run.", callback=finite)
]
Concurrency = Annotated[int, typer.Option(help="Requests in flight at a time.")]
Benchmarks = Annotated[list[str] | None, typer.Option(help="Only this one; repeatable.")]
RULE = "marked: more than half of the jurors who answered, at least two, say so"


def run(
    context: typer.Context,
    panel: Named,
    max_usd: MaxUsd = None,
    estimate_only: Annotated[
        bool, typer.Option("--estimate", help="Say what it would take; send nothing.")
    ] = False,
    concurrency: Concurrency = 8,
    replicates: Annotated[int, typer.Option(help="Verdicts of each juror on a response.")] = 1,
    benchmark: Benchmarks = None,
    batch: Annotated[
        bool, typer.Option("--batch", help="In batches: about half the price, within a day.")
    ] = False,
    json_to: Json = None,
    on: On = None,
    db: Db = None,
) -> None:
    """Have every juror of a panel rate what it has not rated yet; exit 1 if ratings are missing."""
    chosen = read_panel(panel)
    engine = study_of(context, db)
    if estimate_only:
        scope = RunScope(chosen, replicates, tuple(benchmark or ()))
        _print_estimate(engine, scope, max_usd, json_to)
        if batch:
            say(FULL_PRICES, json_to)
        return
    asked = Asked(max_usd, replicates, benchmark, concurrency, batch, on)
    if let_rate(engine, chosen, asked, json_to).missing:
        raise typer.Exit(MISSING)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a run is asked for, as the command's options say."""

    max_usd: float | None
    replicates: int
    benchmarks: list[str] | None
    concurrency: int
    batch: bool
    on: str | None


def let_rate(engine: Engine, panel: Panel, asked: Asked, json_to: Path | None) -> RunResult:
    """Let a panel rate, say what goes where before and what it came to after."""
    check_json(json_to)
    refuse_ended(panel, datetime.now(UTC).date())
    if asked.on is None:
        api_keys(panel)
    elif asked.batch:
        raise BadInput("--batch, --on: batches wait at the vendor, not here; leave one out")
    else:
        admit(panel)
    scope = RunScope(panel, asked.replicates, tuple(asked.benchmarks or ()))
    expected = run_estimate(engine, scope)
    refuse_beyond_budget(engine, expected, asked.max_usd)
    for line in (*before(panel), *price_notices(panel), *told_before(expected)):
        say(line, json_to)
    result = _rated(engine, panel, asked, json_to)
    print_result(result, json_to)
    for line in told_after(expected, whole=asked.max_usd is None) if result.calls else ():
        say(line, json_to)
    write_json(result.to_json() | to_json(expected), json_to)
    return result


def _rated(engine: Engine, panel: Panel, asked: Asked, json_to: Path | None) -> RunResult:
    """Run a panel in batches, or request by request, its calls made here or by workers."""
    told = own_prices(panel) if asked.batch else still_in_batches(engine, panel)
    for line in told:
        say(line, json_to)
    options: dict[str, Any] = {
        "max_usd": asked.max_usd,
        "replicates": asked.replicates,
        "benchmarks": asked.benchmarks,
        "waiting": lambda: say("waiting: another run holds this study", json_to),
    }
    if asked.batch:
        return _in_batches(engine, panel, options, json_to)
    with (
        _lines(asked.on, panel, asked.concurrency, json_to) as lines,
        progress(f"panel {panel.name}", None) as at,
    ):
        options |= {"concurrency": asked.concurrency, "providers": lines}
        result = run_panel(
            engine, panel, progress=lambda now: at(now.done, now.total, how(now)), **options
        )
        return with_lost_jurors(result, lines or {})


def _in_batches(
    engine: Engine, panel: Panel, options: Mapping[str, Any], json_to: Path | None
) -> RunResult:
    """Run a panel in batches and say how to come by what is still with the providers."""
    with progress(f"panel {panel.name}", None) as at:
        result = run_batches(
            engine,
            panel,
            progress=lambda now: at(now.rated + now.failed, now.total, how_in_batches(now)),
            tell=lambda line: say(line, json_to),
            **options,
        )
    if open_ := result.by_status.get(IN_FLIGHT, 0):
        say(f"{counted(open_, 'verdict')} in flight: the same command collects them", json_to)
    return result


def _lines(
    on: str | None, panel: Panel, concurrency: int, json_to: Path | None
) -> AbstractContextManager[Mapping[str, Provider] | None]:
    """Return the jurors' lines through workers where they are asked for."""
    if on is None:
        return nullcontext()
    from medjury.cli.dask_executor import calling

    return calling(on, panel, concurrency, json_to)


def print_result(result: RunResult, json_to: Path | None = None) -> None:
    """Say what a run has come to: complete, or what is missing and why."""
    total = result.rated + result.missing
    say(
        f"{result.panel}: scored {result.rated} of {total} "
        f"({counted(result.responses, 'response')} x {counted(result.jurors, 'juror')}), "
        f"{counted(result.calls, 'call')}, {cost_of(result)}",
        json_to,
    )
    stopped = [f"juror {juror} was stopped: {why}" for juror, why in result.stopped.items()]
    ends = (*by_juror(result), *stopped, *unsettled(result), *advice(result))
    for line in (*took(result), *ends):
        say(line, json_to)


def _print_estimate(
    engine: Engine, scope: RunScope, max_usd: float | None, json_to: Path | None
) -> None:
    """Show what a run would take, juror by juror."""
    if scope.replicates < 1:
        raise BadInput(f"--replicates {scope.replicates}: must be at least 1")
    panel, expected = scope.panel, run_estimate(engine, scope)
    refuse_beyond_budget(engine, expected, max_usd)
    rows = [
        [one.juror, f"{one.calls}", f"{one.tokens_in}", _usd(one.usd_likely), _usd(one.usd_most)]
        for one in expected.jurors
    ]
    heads = ["juror", "calls", "tokens in", "likely USD", "at most USD"]
    show(f"Panel {panel.name}, estimated", heads, rows, json_to)
    over = ended(panel, datetime.now(UTC).date())
    told = (*price_notices(panel), *told_before(expected), *told_repeated(expected))
    for line in (*over, *told, *told_bound(expected)):
        say(line, json_to)
    jurors = [asdict(one) for one in expected.jurors]
    spent = study_spending(engine)
    money = {"usd_study": round(spent.usd, 9), "budget": spent.budget}
    write_json({"panel": panel.name, "jurors": jurors} | money | to_json(expected), json_to)


def _usd(amount: float | None) -> str:
    return "price unknown" if amount is None else f"{amount:.4f}"


def check_references_of(
    context: typer.Context,
    panel: Named,
    max_usd: MaxUsd = None,
    concurrency: Concurrency = 8,
    benchmark: Benchmarks = None,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Ask every juror, once per instance, whether the reference states facts its source lacks.

    Exit 1 if answers are missing.
    """
    chosen = read_panel(panel)
    engine = study_of(context, db)
    check_json(json_to)
    api_keys(chosen)
    refuse_ended(chosen, datetime.now(UTC).date())
    for line in (*before(chosen), *price_notices(chosen)):
        say(line, json_to)
    with progress(f"references, panel {chosen.name}", None) as at:
        result = check_references(
            engine,
            chosen,
            concurrency=concurrency,
            max_usd=max_usd,
            benchmarks=benchmark,
            progress=lambda now: at(now.done, now.total, how(now)),
            waiting=lambda: say("waiting: another run holds this study", json_to),
        )
    found = references(engine, [one.name for one in chosen.juror], benchmark)
    _print_references(result, found, json_to)
    write_json(_references_json(result, found), json_to)
    if result.missing:
        raise typer.Exit(MISSING)


def _print_references(result: RunResult, found: References, json_to: Path | None) -> None:
    """Say what the check has come to, and what is not known."""
    total = result.rated + result.missing
    lines = [
        f"{result.panel}: answered {result.rated} of {total} "
        f"({counted(result.responses, 'reference')} x {counted(result.jurors, 'juror')}), "
        f"{counted(result.calls, 'call')}, {cost_of(result)}",
        *(f"missing: {n} {status}" for status, n in result.by_status.items() if status != "ok"),
        *(f"juror {juror} was stopped: {why}" for juror, why in result.stopped.items()),
        f"{len(found.marked)} marked, {len(found.sound)} sound, {len(found.not_known)} not known; "
        f"{counted(len(found.unchecked), 'instance')} without a reference or a context, not asked "
        "about",
        f"{RULE}; a tie, or fewer than two answers, is not known",
    ]
    if found.simulated:
        lines.append("these answers are simulated: they say nothing of the references")
    lines += [*unsettled(result), *advice(result)]
    for line in lines:
        say(line, json_to)


def _references_json(result: RunResult, found: References) -> dict[str, Any]:
    """Return the figures and the marked instances' names."""
    return {
        "panel": result.panel,
        "instances": result.responses,
        "jurors": result.jurors,
        "answered": result.rated,
        "missing": result.missing,
        "by_status": dict(result.by_status),
        "calls": result.calls,
        "usd": result.usd,
        "usd_unknown": result.usd_unknown,
        "usd_in_flight": result.usd_in_flight,
        "usd_study": result.usd_study,
        "marked": sorted(found.marked),
        "sound": len(found.sound),
        "not_known": sorted(found.not_known),
        "unchecked": len(found.unchecked),
        "simulated": found.simulated,
    }
