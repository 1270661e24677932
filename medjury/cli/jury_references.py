"""`medjury jury references`: ask jurors which references say more than their source holds."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from data.queries.references import References, references
from jury.loop import RunResult
from jury.panel import keys, read_panel, refuse_ended
from jury.references import check_references
from medjury.cli.jury_probe import Named
from medjury.cli.jury_words import MISSING, advice, before, cost_of, how
from medjury.cli.options import Db, Json, finite, study_of
from medjury.cli.output import counted, progress, say
from medjury.cli.places import check_json, write_json

RULE = "marked: more than half of the jurors who answered, at least two, say so"


def check(
    context: typer.Context,
    panel: Named,
    max_usd: Annotated[
        float | None, typer.Option(help="Never spend more in this run.", callback=finite)
    ] = None,
    concurrency: Annotated[int, typer.Option(help="Requests in flight at a time.")] = 8,
    benchmark: Annotated[list[str] | None, typer.Option(help="Only this one; repeatable.")] = None,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Ask every juror, once an instance, whether its reference states facts its source lacks.

    Exit 1 if answers are missing.
    """
    chosen = read_panel(panel)
    engine = study_of(context, db)
    check_json(json_to)
    keys(chosen)
    refuse_ended(chosen, datetime.now(UTC).date())
    for line in before(chosen):
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
    _print(result, found, json_to)
    write_json(_json(result, found), json_to)
    if result.missing:
        raise typer.Exit(MISSING)


def _print(result: RunResult, found: References, json_to: Path | None) -> None:
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
    lines += advice(result)
    for line in lines:
        say(line, json_to)


def _json(result: RunResult, found: References) -> dict[str, Any]:
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
        "marked": sorted(found.marked),
        "sound": len(found.sound),
        "not_known": sorted(found.not_known),
        "unchecked": len(found.unchecked),
        "simulated": found.simulated,
    }
