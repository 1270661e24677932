"""`medjury jury references`: ask jurors whether references state facts that their sources lack."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer

from data.study.references import References, references
from jury.admission import api_keys, price_notices
from jury.budget import Budget
from jury.panel import read_panel, refuse_ended
from jury.references import check_references
from jury.run_result import RunResult
from medjury.cli.files import write_json
from medjury.cli.jury import Benchmarks, Concurrency, MaxUsd
from medjury.cli.jury_words import (
    MISSING,
    advice,
    announcement,
    cost_words,
    progress_words,
    spending_notes,
)
from medjury.cli.options import Db, Json, Named, study_of
from medjury.cli.output import counted, progress, say
from medjury.services.panels import refuse_long_references

RULE = "marked: more than half of the jurors who answered, at least two, say so"


def check_references_of(
    context: typer.Context,
    panel: Named,
    max_usd: MaxUsd = None,
    concurrency: Concurrency = None,
    benchmark: Benchmarks = None,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Ask every juror, once per instance, whether the reference states facts its source lacks.

    Exit 1 if answers are missing.
    """
    chosen = read_panel(panel)
    engine = study_of(context, db)
    api_keys(chosen)
    refuse_ended(chosen, datetime.now(UTC).date())
    refuse_long_references(engine, chosen, benchmark)
    for line in (*announcement(chosen), *price_notices(chosen)):
        say(line, json_to)
    with progress(f"references, panel {chosen.name}", None) as at:
        result = check_references(
            engine,
            chosen,
            concurrency=concurrency,
            budget=Budget(max_usd),
            benchmarks=benchmark,
            progress=lambda now: at(now.done, now.total, progress_words(now)),
            waiting=lambda: say("waiting: another run holds this study", json_to),
        )
    checked = references(engine, [juror.name for juror in chosen.juror], benchmark)
    _print_references(result, checked, json_to)
    write_json(_references_json(result, checked), json_to)
    if result.missing:
        raise typer.Exit(MISSING)


def _print_references(result: RunResult, checked: References, json_to: Path | None) -> None:
    """Say what the check has come to, and what is not known."""
    total = result.rated + result.missing
    lines = [
        f"{result.panel}: answered {result.rated} of {total} "
        f"({counted(result.responses, 'reference')} x {counted(result.jurors, 'juror')}), "
        f"{counted(result.calls, 'call')}, {cost_words(result)}",
        *(f"missing: {n} {status}" for status, n in result.by_status.items() if status != "ok"),
        *(f"juror {juror} was stopped: {why}" for juror, why in result.stopped.items()),
        f"{len(checked.marked)} marked, {len(checked.sound)} sound, {len(checked.not_known)} not known; "
        f"{counted(len(checked.unchecked), 'instance')} without a reference or a context, not asked "
        "about",
        f"{RULE}; a tie, or fewer than two answers, is not known",
    ]
    if checked.simulated:
        lines.append("these answers are simulated: they say nothing of the references")
    lines += [*spending_notes(result), *advice(result)]
    for line in lines:
        say(line, json_to)


def _references_json(result: RunResult, checked: References) -> dict[str, Any]:
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
        "marked": sorted(checked.marked),
        "sound": len(checked.sound),
        "not_known": sorted(checked.not_known),
        "unchecked": len(checked.unchecked),
        "simulated": checked.simulated,
    }
