"""`medjury jury run --batch`: what is said around a run in batches."""

from pathlib import Path

from sqlalchemy import Engine

from data.queries.batches import waiting_in_batches
from jury.batch.room import IN_FLIGHT, BatchProgress
from jury.batch.run import run_batches
from jury.panel import Panel
from jury.tally import RunResult
from medjury.cli.output import counted, progress, say

FULL_PRICES = "these are the full prices; with --batch a listed price is about half of it"


def in_batches(
    engine: Engine,
    panel: Panel,
    max_usd: float | None,
    replicates: int,
    benchmark: list[str] | None,
    json_to: Path | None,
) -> RunResult:
    """Run a panel in batches and say how to come by what is still with the providers."""
    for line in _prices(panel):
        say(line, json_to)
    with progress(f"panel {panel.name}", None) as at:
        result = run_batches(
            engine,
            panel,
            max_usd=max_usd,
            replicates=replicates,
            benchmarks=benchmark,
            progress=lambda now: at(now.rated + now.failed, now.total, _how(now)),
            tell=lambda line: say(line, json_to),
            waiting=lambda: say("waiting: another run holds this study", json_to),
        )
    if open_ := result.by_status.get(IN_FLIGHT, 0):
        say(f"{counted(open_, 'verdict')} in flight: the same command collects them", json_to)
    return result


def still_in_batches(engine: Engine, panel: Panel) -> list[str]:
    """Return a warning for every juror that a live run would ask again and pay again."""
    waiting = waiting_in_batches(engine, [one.name for one in panel.juror])
    return [
        f"juror {name}: {counted(number, 'request')} in a batch already, which this run asks and "
        "pays for again; run with --batch to collect them instead"
        for name, number in waiting.items()
    ]


def _prices(panel: Panel) -> list[str]:
    """Return a sentence for every juror whose price is the panel's own."""
    return [
        f"juror {one.name}: the panel's own price counts in full; put the price for batches there "
        "if it differs"
        for one in panel.juror
        if one.usd_per_million_in or one.usd_per_million_out  # nothing to say where both are 0
    ]


def _how(now: BatchProgress) -> str:
    """Return the bar's words: what is rated, in flight, failed and spent."""
    ended = f" ({now.answered} ended there)" if now.answered else ""
    return (
        f"{now.rated} rated, {now.in_flight} in flight{ended}, {now.failed} failed, ${now.usd:.2f}"
    )
