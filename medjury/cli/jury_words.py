"""What is said before and during a jury run: where texts go, and how far it is."""

from datetime import UTC, datetime

from sqlalchemy import Engine

from data.study.calls import waiting_in_batches
from jury.batch.run import BatchProgress
from jury.panel import Panel
from jury.run_result import RunProgress
from medjury.cli.output import counted


def announcement(panel: Panel) -> list[str]:
    """Return what is said before anything is sent."""
    hosts = panel.hosts()
    where = "texts will be sent to: " + ", ".join(hosts) if hosts else "no text leaves this machine"
    simulated = [juror.name for juror in panel.juror if juror.simulated]
    lines = [f"panel {panel.name}: {where}", *panel.notices(datetime.now(UTC).date())]
    return lines + ([f"simulated jurors: {', '.join(simulated)}"] if simulated else [])


def batch_warnings(engine: Engine, panel: Panel) -> list[str]:
    """Return a warning for every juror that a live run would ask again and pay again."""
    waiting = waiting_in_batches(engine, [juror.name for juror in panel.juror])
    return [
        f"juror {name}: {counted(number, 'request')} in a batch already, which this run asks and "
        "pays for again; run with --batch to collect them instead"
        for name, number in waiting.items()
    ]


def own_price_notes(panel: Panel) -> list[str]:
    """Return a sentence for every juror whose price is the panel's own."""
    return [
        f"juror {juror.name}: the panel's own price counts in full; put the price for batches there "
        "if it differs"
        for juror in panel.juror
        if juror.usd_per_million_in or juror.usd_per_million_out  # nothing to say where both are 0
    ]


def progress_words(now: RunProgress) -> str:
    """Return the bar's words: what is rated, what failed and why, what was spent."""
    failed = [f"{count} {name}" for name, count in now.by_status.items() if name != "ok"]
    words = [f"{now.by_status.get('ok', 0)} rated", *failed, f"${now.usd:.2f}"]
    return ", ".join(words)


def batch_progress_words(now: BatchProgress) -> str:
    """Return the bar's words: what is rated, in flight, failed and spent."""
    ended = f" ({now.answered} ended there)" if now.answered else ""
    return (
        f"{now.rated} rated, {now.in_flight} in flight{ended}, {now.failed} failed, ${now.usd:.2f}"
    )
