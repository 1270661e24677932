"""`medjury jury`: let a panel of jurors rate, ask what it would cost, and try its jurors."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import Engine

from data.errors import BadInput
from jury.call import Provider
from jury.elsewhere import left_alone
from jury.panel import Panel, ended, keys, read_panel, refuse_ended
from jury.run import run_panel
from jury.tally import Progress, RunResult
from medjury.cli.elsewhere import On
from medjury.cli.jury_advice import advice, by_juror
from medjury.cli.jury_batch import FULL_PRICES, in_batches, still_in_batches
from medjury.cli.jury_figures import to_json, told_after, told_before, told_bound
from medjury.cli.jury_missing import missing
from medjury.cli.jury_probe import Named, probe
from medjury.cli.options import Db, Json, finite, study_of
from medjury.cli.output import counted, progress, say, show
from medjury.cli.places import check_json, write_json
from medjury.services.jury_lab import RunScope, run_estimate

MISSING = 1
jury = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Juries: run a panel, probe its jurors.",
)


@jury.command()
def run(
    context: typer.Context,
    panel: Named,
    max_usd: Annotated[
        float | None, typer.Option(help="Never spend more in this run.", callback=finite)
    ] = None,
    estimate_only: Annotated[
        bool, typer.Option("--estimate", help="Say what it would take; send nothing.")
    ] = False,
    concurrency: Annotated[int, typer.Option(help="Requests in flight at a time.")] = 8,
    replicates: Annotated[int, typer.Option(help="Verdicts of each juror on a response.")] = 1,
    benchmark: Annotated[list[str] | None, typer.Option(help="Only this one; repeatable.")] = None,
    batch: Annotated[
        bool, typer.Option("--batch", help="In batches: about half the price, within a day.")
    ] = False,
    json_to: Json = None,
    on: On = None,
    db: Db = None,
) -> None:
    """Let every juror of a panel rate what it has not rated yet. Exit 1 if ratings are missing."""
    chosen = read_panel(panel)
    engine = study_of(context, db)
    if estimate_only:
        _print_estimate(engine, chosen, replicates, benchmark, json_to)
        if batch:
            say(FULL_PRICES, json_to)
        return
    asked = Asked(max_usd, replicates, benchmark, concurrency, batch, on)
    if let_rate(engine, chosen, asked, json_to).missing:
        raise typer.Exit(MISSING)


jury.command()(probe)
jury.command()(missing)


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
        keys(panel)
    elif asked.batch:
        raise BadInput("--batch, --on: batches wait at the vendor, not here; leave one out")
    scope = RunScope(panel, asked.replicates, tuple(asked.benchmarks or ()))
    expected = run_estimate(engine, scope)
    for line in (*before(panel), *told_before(expected)):
        say(line, json_to)
    result = _rated(engine, panel, asked, json_to)
    print_result(result, json_to)
    for line in told_after(expected, whole=asked.max_usd is None) if result.calls else ():
        say(line, json_to)
    write_json(result.to_json() | to_json(expected), json_to)
    return result


def _rated(engine: Engine, panel: Panel, asked: Asked, json_to: Path | None) -> RunResult:
    """Run a panel in batches, or request by request, its calls made here or by workers."""
    if asked.batch:
        wanted = asked.max_usd, asked.replicates, asked.benchmarks
        return in_batches(engine, panel, *wanted, json_to)
    for line in still_in_batches(engine, panel):
        say(line, json_to)
    with (
        _lines(asked.on, panel, asked.concurrency, json_to) as lines,
        progress(f"panel {panel.name}", None) as at,
    ):
        result = run_panel(
            engine,
            panel,
            concurrency=asked.concurrency,
            max_usd=asked.max_usd,
            replicates=asked.replicates,
            benchmarks=asked.benchmarks,
            progress=lambda now: at(now.done, now.total, how(now)),
            providers=lines,
            waiting=lambda: say("waiting: another run holds this study", json_to),
        )
        return left_alone(result, lines or {})


def _lines(
    on: str | None, panel: Panel, concurrency: int, json_to: Path | None
) -> AbstractContextManager[Mapping[str, Provider] | None]:
    """Return the jurors' lines through workers where they are asked for."""
    if on is None:
        return nullcontext()
    from medjury.cli.elsewhere_calls import calling

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
    for line in (*by_juror(result), *stopped, *advice(result)):
        say(line, json_to)


def cost_of(result: RunResult) -> str:
    """Return what a run has cost, as far as it is known."""
    unknown = counted(result.usd_unknown, "call")
    return f"${result.usd:.4f}" + (f" and {unknown} of unknown price" if result.usd_unknown else "")


def before(panel: Panel) -> list[str]:
    """Return what is said before anything is sent."""
    hosts = panel.hosts()
    where = "texts will be sent to: " + ", ".join(hosts) if hosts else "no text leaves this machine"
    simulated = [one.name for one in panel.juror if one.simulated]
    lines = [f"panel {panel.name}: {where}", *panel.notices(datetime.now(UTC).date())]
    return lines + ([f"simulated jurors: {', '.join(simulated)}"] if simulated else [])


def how(now: Progress) -> str:
    """Return the bar's words: what is rated, what failed and why, what was spent."""
    failed = [f"{count} {name}" for name, count in now.by_status.items() if name != "ok"]
    words = [f"{now.by_status.get('ok', 0)} rated", *failed, f"${now.usd:.2f}"]
    return ", ".join(words)


def _print_estimate(
    engine: Engine, panel: Panel, replicates: int, benchmark: list[str] | None, json_to: Path | None
) -> None:
    """Show what a run would take, juror by juror."""
    if replicates < 1:
        raise BadInput(f"--replicates {replicates}: must be at least 1")
    expected = run_estimate(engine, RunScope(panel, replicates, tuple(benchmark or ())))
    rows = [
        [one.juror, f"{one.calls}", f"{one.tokens_in}", _usd(one.usd_likely), _usd(one.usd_most)]
        for one in expected.jurors
    ]
    heads = ["juror", "calls", "tokens in", "likely USD", "at most USD"]
    show(f"Panel {panel.name}, estimated", heads, rows, json_to)
    over = ended(panel, datetime.now(UTC).date())
    for line in (*over, *told_before(expected), *told_bound(expected)):
        say(line, json_to)
    jurors = [asdict(one) for one in expected.jurors]
    write_json({"panel": panel.name, "jurors": jurors} | to_json(expected), json_to)


def _usd(amount: float | None) -> str:
    return "price unknown" if amount is None else f"{amount:.4f}"
