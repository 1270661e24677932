"""`medjury jury missing`: which juror has not rated which response, why, and what all has cost."""

from pathlib import Path

import typer

from data.queries.attempts import by_juror, missing_verdicts, spending
from medjury.cli.options import Db, Json, study_of
from medjury.cli.output import counted, room, say, show, width
from medjury.cli.places import check_json, write_json

COLUMNS = ["juror", "response_id", "status", "calls", "reason"]


def missing(context: typer.Context, json_to: Json = None, db: Db = None) -> None:
    """List the verdicts that do not stand, with the last reason, and what all calls have cost."""
    engine = study_of(context, db)
    check_json(json_to)
    rows, spent = missing_verdicts(engine), spending(engine)
    if rows:
        cells = [
            [
                one.juror,
                one.response_id + (f" (replicate {one.replicate})" if one.replicate else ""),
                one.status,
                f"{one.calls}",
                one.reason,
            ]
            for one in rows
        ]
        _table(cells, json_to)
    totals = by_juror(rows)
    for juror, counts in totals.items():
        each = ", ".join(f"{number} {status}" for status, number in counts.items())
        say(f"missing: {juror}: {each}", json_to)
    if not rows:
        say("no verdict is missing of what jurors were asked for", json_to)
    unknown = f" and {counted(spent.unknown, 'call')} of unknown price" if spent.unknown else ""
    said = f"spent over all runs: ${spent.usd:.4f}{unknown} ({counted(spent.calls, 'call')})"
    say(f"{said}; probes are not stored", json_to)
    body = {
        "missing": [one.to_json() for one in rows],
        "jurors": [
            {"juror": juror, "missing": sum(counts.values()), "by_status": counts}
            for juror, counts in totals.items()
        ],
        "calls": spent.calls,
        "usd": round(spent.usd, 9),
        "usd_unknown": spent.unknown,
    }
    write_json(body, json_to)


def _table(cells: list[list[str]], json_to: Path | None) -> None:
    """Show the verdicts as a table or, where the screen is too narrow for it, a line each."""
    if width(COLUMNS, cells) <= room(json_to):
        show("Missing verdicts", COLUMNS, cells, json_to)
        return
    for juror, response, status, calls, reason in cells:
        say(f"{juror}, {response}: {status}, {counted(int(calls), 'call')}: {reason}", json_to)
